"""Algorithm 1 of the paper as a recursion, with the corrections of its misprints."""

import numpy as np


def find_bica(histogram, min_probability):
    """Probability of the source behind every set of sensors; the empty set's entry is a placeholder, 0."""
    if len(histogram) == 2:  # one sensor
        probability = np.array([0.0, histogram[1] / histogram.sum()])
    else:
        probability = _joined(histogram, min_probability)
    probability[probability < min_probability] = 0.0
    probability[probability < 0.0] = 0.0
    return probability


def _joined(histogram, min_probability):
    half = len(histogram) // 2
    quiet, anything = histogram[:half], histogram[:half] + histogram[half:]
    if quiet.sum() == 0:  # the last sensor is always on
        constant = np.zeros(half)
        constant[0] = 1.0
        return np.concatenate([find_bica(anything, min_probability), constant])
    lower, merged = find_bica(quiet, min_probability), find_bica(anything, min_probability)
    upper = np.zeros(half)
    certain = lower == 1.0
    upper[~certain] = 1 - (1 - merged[~certain]) / (1 - lower[~certain])
    only, none = histogram[half], histogram[0]
    upper[0] = only / (only + none) if only + none > 0 else 0.0
    return np.concatenate([lower, upper])
