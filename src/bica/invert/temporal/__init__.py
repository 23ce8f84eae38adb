"""Rows that are consecutive slots: sources that stay on for a while, decoded together."""
