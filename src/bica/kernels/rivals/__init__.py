"""Loops of published methods."""
