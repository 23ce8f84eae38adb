"""Values turned into pictures and tables."""
