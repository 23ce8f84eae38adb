"""The command line: commands, what they print, and what they share."""
