"""One file per command; a command with commands of its own has a folder."""
