"""Separating the users of a radio spectrum: who is there, roughly where, and when the spectrum is free.

>>> import numpy as np
>>> from bica.data.rows import Rows
>>> rng = np.random.default_rng(1)
>>> survey = draw_survey(random_field(6, rng), random_traffic(6, rng), 2000, 0.0, rng)
>>> found = learn_users(Rows.of(survey.problem.rows)).model
>>> found.n_sources == survey.problem.model.n_sources
True
"""

from bica.applications.spectrum.field import Field, Propagation, Region, free_share, locate, quiet_share, random_field
from bica.applications.spectrum.survey import Survey, Traffic, draw_survey, learn_users, random_traffic

__all__ = [
    "Field",
    "Propagation",
    "Region",
    "Survey",
    "Traffic",
    "draw_survey",
    "free_share",
    "learn_users",
    "locate",
    "quiet_share",
    "random_field",
    "random_traffic",
]
