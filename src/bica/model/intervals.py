"""Intervals for chances, in plain numbers so that a model can be shown without loading NumPy."""

import math
from statistics import NormalDist

LEVEL = 0.95


def chance_interval(chance: float, error: float, level: float = LEVEL) -> tuple[float, float]:
    """Where the true chance lies with probability ``level``, given an estimate and its standard error.

    The interval is symmetric in the log odds, where estimates spread about evenly also near 0 and 1, so it never
    leaves [0, 1]. An estimate of exactly 0 or 1 has no log odds; there the plain interval is cut at the ends.

    >>> [round(end, 3) for end in chance_interval(0.02, 0.01)]
    [0.007, 0.053]
    >>> chance_interval(0.3, 0.0)
    (0.3, 0.3)
    """
    if math.isnan(error):
        return math.nan, math.nan
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    if chance in (0.0, 1.0) or error == 0.0:
        return max(0.0, chance - reach), min(1.0, chance + reach)
    log_odds = math.log(chance) - math.log1p(-chance)
    reach /= chance * (1.0 - chance)
    return _chance_of(log_odds - reach), _chance_of(log_odds + reach)


def _chance_of(log_odds: float) -> float:
    odds = math.exp(min(log_odds, 700.0))  # beyond that the chance is 1 to the last digit
    return odds / (1.0 + odds)
