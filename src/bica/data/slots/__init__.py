"""Events with a time and a sensor, turned into tables of one row per slot."""
