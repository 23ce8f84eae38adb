"""Compiled loops, grouped by who uses them: arrays in, arrays out; no names, no options, no checks."""
