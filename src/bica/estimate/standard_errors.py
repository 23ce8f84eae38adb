"""How sure the estimates are, from the curvature of the likelihood at its top."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.estimate.lattice import Surface
from bica.estimate.noise_shape import HIGHEST
from bica.estimate.refit import AT_BOUND, Refit

FLAT = 1e-9  # a curvature this small, against those of the single parameters, is none


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Standard errors: 0 where a value was given or lies on its bound, infinite where the data say nothing."""

    probability: NDArray[np.float64]  # (n_sources,)
    noise: NDArray[np.float64]  # (n_unknown,), of the unknown noise rates
    mean_noise: float  # of their mean


def standard_errors(surface: Surface, fit: Refit) -> StandardErrors:
    """From the inverse of the information of all parameters that could move.

    The information adds up the outer products of the slopes of single rows, which ``fit`` has anyway. Where the model
    holds that is minus the matrix of second derivatives, up to chance.
    """
    n_sources, noise = fit.point.rate.size, fit.point.noise
    inside = (noise > surface.noise.lowest + AT_BOUND) & (noise < HIGHEST - AT_BOUND)
    moving = np.concatenate([fit.free, inside])
    covariance = np.zeros((moving.size, moving.size))
    covariance[np.ix_(moving, moving)] = covariance_of(fit.information[np.ix_(moving, moving)])
    error, of_noise = np.sqrt(np.diag(covariance)), covariance[n_sources:, n_sources:]
    mean_noise = float(np.sqrt(max(0.0, of_noise.sum()))) / max(1, noise.size)
    # a probability 1 - exp(-rate) moves by (1 - probability) where its rate moves by 1
    return StandardErrors(error[:n_sources] * np.exp(-fit.point.rate), error[n_sources:], mean_noise)


def covariance_of(information: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of an information matrix; infinite for parameters that lie in a direction without information.

    >>> covariance_of(np.array([[4.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    array([[0.25, 0.  , 0.  ],
           [0.  ,  inf,  inf],
           [0.  ,  inf,  inf]])
    """
    scale = np.sqrt(np.diag(information))
    scale[scale == 0] = 1.0
    curvature, directions = np.linalg.eigh(information / np.outer(scale, scale))
    flat = curvature <= FLAT
    spread = directions[:, ~flat] / np.sqrt(curvature[~flat])
    covariance: NDArray[np.float64] = spread @ spread.T / np.outer(scale, scale)
    lost = np.flatnonzero((directions[:, flat] ** 2).sum(axis=1) > FLAT)
    covariance[np.ix_(lost, lost)] = np.inf
    return covariance
