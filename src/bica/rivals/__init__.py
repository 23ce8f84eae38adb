"""Published methods, one per file, written from their mathematics; `counted` holds what they share."""
