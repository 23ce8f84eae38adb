"""Published methods, one per file, written from their mathematics."""
