"""How far an answer is from the truth."""
