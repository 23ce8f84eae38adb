"""Learning from the exact likelihood of all sensors at once, for up to 20 of them."""
