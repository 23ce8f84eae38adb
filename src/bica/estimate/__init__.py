"""Our methods, one per file."""
