"""Sources of any width, learned from rows instead of the lattice of sets: births, decoding, votes, repairs, pruning."""
