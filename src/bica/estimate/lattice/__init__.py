"""Learning from the exact likelihood of all sensors at once, up to about twenty of them."""
