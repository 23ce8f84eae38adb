"""The report, live: a page on this machine that reads a table, learns its sources, shows them and answers questions."""
