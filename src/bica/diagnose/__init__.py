"""Can these rows come from this model? What a table shows before a fit and says of it afterwards."""
