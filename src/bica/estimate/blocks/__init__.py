"""Learning many sensors from small blocks of them, each learned exactly."""
