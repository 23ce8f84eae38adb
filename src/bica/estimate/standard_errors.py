"""How sure the estimates are, from the curvature of the likelihood at its top."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.estimate.lattice import Surface
from bica.estimate.refit import AT_BOUND, Refit


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Standard errors of probabilities and unknown noise rates; 0 where a value was given or lies on its bound."""

    probability: NDArray[np.float64]  # (n_sources,)
    noise: NDArray[np.float64]  # (n_unknown,)


def standard_errors(surface: Surface, fit: Refit) -> StandardErrors:
    """From the inverse of the information of all parameters that could move."""
    n_sources = fit.point.rate.size
    moving = np.concatenate([fit.free, fit.point.noise > surface.noise.lowest + AT_BOUND])
    error = np.zeros(moving.size)
    if moving.any():
        error[moving] = np.sqrt(np.clip(np.diag(np.linalg.pinv(fit.information[np.ix_(moving, moving)])), 0, None))
    # a probability 1 - exp(-rate) moves by (1 - probability) where its rate moves by 1
    return StandardErrors(error[:n_sources] * np.exp(-fit.point.rate), error[n_sources:])
