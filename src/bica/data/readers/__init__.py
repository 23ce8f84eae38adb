"""One file per kind of table, each yielding chunks of packed rows; `engine` serves all kinds of files."""
