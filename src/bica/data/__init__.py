"""Tables of any kind, read into one value: the distinct rows as bit sets, with how often each occurred."""
