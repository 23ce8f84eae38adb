"""Loops that find or sum the activities behind a row."""
