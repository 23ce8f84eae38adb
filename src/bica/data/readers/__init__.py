"""One file per kind of table; each yields chunks of packed rows."""
