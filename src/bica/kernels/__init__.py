"""Compiled loops: arrays in, arrays out; no names, no options, no checks."""
