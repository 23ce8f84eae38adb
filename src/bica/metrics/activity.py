"""How well the hidden activity was decoded."""

import numpy as np
from numpy.typing import ArrayLike

from bica.errors import DataError
from bica.metrics.matching import NONE, Match
from bica.metrics.pairs import binary_table


def activity_error_ratio(found: ArrayLike, truth: ArrayLike, match: Match) -> float:
    """Share of wrong cells in the decoded activity (the paper's activity error ratio).

    ``found`` is (n_samples, number of found sources), ``truth`` (n_samples, n_sources); ``match`` says which found
    source stands for which true one, and a true source without one counts as decoded silent throughout.

    >>> from bica.metrics import match_columns
    >>> match = match_columns([[1], [1]], [[1, 1], [0, 1]], [0.5])  # the source of the first sensor alone is missing
    >>> activity_error_ratio([[1], [0]], [[0, 1], [1, 0]], match)
    0.25
    """
    left = binary_table(found, "the found activity", DataError)
    right = binary_table(truth, "the true activity", DataError)
    if len(left) != len(right):
        raise DataError(f"the found activity has {len(left)} rows and the true one {len(right)}; give the same samples")
    if right.shape[1] != match.order.size or left.shape[1] <= match.order.max(initial=NONE):
        raise DataError("the activity has other sources than the match; give the activity of the models matched")
    matched = np.pad(left, ((0, 0), (0, 1)))[:, match.order]  # the extra column stands for sources without a match
    return float((matched != right).mean()) if right.size else 0.0
