"""Loops over the bytes of packet captures."""
