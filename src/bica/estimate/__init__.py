"""Our methods (likelihood, FindBICA) and the bootstrap; the subfolders hold the parts they are made of."""
