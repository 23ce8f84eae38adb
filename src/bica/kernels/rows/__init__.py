"""Loops over rows as lists of what is on, for sources of any width."""
