"""Standard errors from the curvature of the likelihood at its maximum, and the report on the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.estimate.lattice.surface import HIGHEST, Surface
from bica.estimate.noise import FLIPS, NoiseKind
from bica.estimate.score import AT_BOUND, Refit
from bica.estimate.search import SourceSearch
from bica.model.files import LEVEL, probability_interval

FLAT = 1e-9  # a curvature this small, relative to those of single parameters, counts as none


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Standard errors: 0 where a value was given or lies on its bound, infinite where the rows say nothing about it."""

    probability: NDArray[np.float64]  # (n_sources,)
    noise: NDArray[np.float64]  # (n_unknown,), of the unknown noise rates


def standard_errors(surface: Surface, fit: Refit) -> StandardErrors:
    """The standard errors, from the inverse of the information on all parameters that could move.

    The information adds up the outer products of the slopes of single rows, which ``fit`` has anyway. If the model is
    right, that is minus the matrix of second derivatives, apart from random error.
    """
    n_sources, noise = fit.point.rate.size, fit.point.noise
    inside = (noise > surface.noise.lowest + AT_BOUND) & (noise < surface.noise.highest - AT_BOUND)
    moving = np.concatenate([fit.free, inside])
    covariance = np.zeros((moving.size, moving.size))
    covariance[np.ix_(moving, moving)] = covariance_of(fit.information[np.ix_(moving, moving)])
    error = np.sqrt(np.diag(covariance))
    # a probability 1 - exp(-rate) moves by (1 - probability) where its rate moves by 1
    return StandardErrors(error[:n_sources] * np.exp(-fit.point.rate), error[n_sources:])


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


VAGUE = 0.1  # a standard error that leaves a rate open
SURE = 4.0  # nats: a fall of the log-likelihood that rules a rate out
WITHIN = math.log(1 / (1 - LEVEL))  # nats: sets of sources whose score falls this short are twenty times less credible


def noise_report(
    search: SourceSearch, surface: Any, fit: Refit, errors: StandardErrors, kind: NoiseKind
) -> dict[str, Any]:
    """The estimate as plain values: one flip rate, or false alarms and misses, shared or one per sensor.

    Which sources there are decides how much is left for the noise to explain. So the interval of a flip rate covers
    those of every set of sources visited by the search whose score is within log 20 = 3.0 of the best, each with the
    same margins below and above as the best.
    """
    noise = fit.point.noise
    if not noise.size:
        return {"estimated": False}
    if kind is not FLIPS:
        return _report_of_two(surface, fit, errors, kind)
    rate, error = float(noise[0]), float(errors.noise[0])
    low, high = _interval(surface, fit, rate, error)
    others = [rate, *(rate for score, rate in search.visited if score >= search.best.score - WITHIN)]
    interval = [max(0.0, low + min(others) - rate), min(1.0, high + max(others) - rate)]
    return {"estimated": True, "flip_rate": rate, "error": error, "interval": interval}


def _report_of_two(surface: Any, fit: Refit, errors: StandardErrors, kind: NoiseKind) -> dict[str, Any]:
    noise = fit.point.noise
    half = noise.size // 2
    report: dict[str, Any] = {"estimated": True, "kind": kind.name, "n_unknown": noise.size}
    for name, part in (("false_alarm", slice(half)), ("miss", slice(half, None))):
        rates, error = noise[part].tolist(), errors.noise[part].tolist()
        intervals = [probability_interval(*pair) for pair in zip(rates, error, strict=True)]
        report[name] = {"rate": rates, "error": error, "interval": intervals}
    if half > 1:
        slope = surface.gradient(fit.point)[fit.point.rate.size :]
        at_bound = noise <= surface.noise.lowest + AT_BOUND
        is_open = np.where(at_bound, -VAGUE * slope < SURE, errors.noise > VAGUE)
        report["vague"] = np.flatnonzero(is_open.reshape(2, half).any(axis=0)).tolist()
    return report


def _interval(surface: Any, fit: Refit, rate: float, error: float) -> tuple[float, float]:
    """The interval of the flip rate with the best sources; at its floor, from 0 to what would hardly go unnoticed."""
    if rate > surface.noise.lowest + AT_BOUND:
        return probability_interval(rate, error)
    # the likelihood falls like exp(slope * flip rate) from here: with n sure cells that is the rule of three, 3 / n
    slope = float(surface.gradient(fit.point)[fit.point.rate.size :].sum())
    return 0.0, min(HIGHEST, rate + WITHIN / max(-slope, 1.0))
