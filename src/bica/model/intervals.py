"""Intervals for probabilities, in plain numbers so that a model can be shown without loading NumPy."""

import math
from statistics import NormalDist

LEVEL = 0.95  # of every interval unless another is asked for
LARGEST_LOG_ODDS = 700.0  # beyond that the probability is 1 to the last digit


def probability_interval(probability: float, error: float, level: float = LEVEL) -> tuple[float, float]:
    """The interval that holds the true probability at confidence ``level``, from an estimate and its standard error.

    The interval is symmetric in the log odds, where estimates spread about evenly also near 0 and 1, so it never
    leaves [0, 1]. An estimate of exactly 0 or 1 has no log odds; there the plain interval is cut at the ends.

    >>> [round(end, 3) for end in probability_interval(0.02, 0.01)]
    [0.007, 0.053]
    >>> probability_interval(0.3, 0.0)
    (0.3, 0.3)
    """
    if math.isnan(error):
        return math.nan, math.nan
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    if probability in (0.0, 1.0) or error == 0.0:
        return max(0.0, probability - reach), min(1.0, probability + reach)
    log_odds = math.log(probability) - math.log1p(-probability)
    reach /= probability * (1.0 - probability)
    return _probability_of(log_odds - reach), _probability_of(log_odds + reach)


def _probability_of(log_odds: float) -> float:
    odds = math.exp(min(log_odds, LARGEST_LOG_ODDS))
    return odds / (1.0 + odds)
