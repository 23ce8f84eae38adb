"""Can these rows come from this model? What a table shows before a fit, and how well a fit explains it."""
