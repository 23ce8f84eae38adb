"""Loops over tables of length 2^m, one cell for every set of m sensors."""
