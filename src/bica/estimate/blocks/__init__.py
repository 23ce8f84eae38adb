"""Learning many sensors from small blocks of them that are exact each."""
