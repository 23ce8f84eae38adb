"""Tables of any kind, read into one value: distinct rows with how often each occurred, or rows in their order."""
