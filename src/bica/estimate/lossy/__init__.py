"""Sources with lossy edges behind up to 16 sensors: the exact likelihood, its search, and families of sources."""
