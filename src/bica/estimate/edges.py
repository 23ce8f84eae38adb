"""Edges that fail at times: what a learner of lossy edges returns.

A source that is on switches each of its sensors on with a probability of its own, the reach; a sensor is also on by
itself at times, the leak.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class LossyFit:
    """Sources with lossy edges and their numbers, over the sensors that vary; known sources come first.

    Errors are standard errors: 0 where a number was given, NaN where the rows do not determine it.
    """

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,)
    reach: NDArray[np.float64]  # (n_sensors, n_sources), 0 where there is no edge
    leak: NDArray[np.float64]  # (n_sensors,)
    log_likelihood: float | None  # None where it cannot be computed
    score: float | None  # the log-likelihood minus what the sources and edges cost
    probability_error: NDArray[np.float64]  # (n_sources,)
    reach_error: NDArray[np.float64]  # (n_sensors, n_sources), NaN where there is no edge
    leak_error: NDArray[np.float64]  # (n_sensors,)
    interrupted: bool = False  # whether Ctrl-C ended the search early
