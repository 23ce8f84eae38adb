"""Which sources were active in each row."""
