"""Our methods (likelihood, FindBICA), the bootstrap, and in the subfolders what they are made of."""
