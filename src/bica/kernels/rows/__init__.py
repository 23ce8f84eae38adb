"""Compiled loops over rows, whatever the number of sensors."""
