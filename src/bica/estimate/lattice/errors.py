"""Standard errors from the curvature of the likelihood at its maximum, and the report on the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.estimate.lattice.refit import AT_BOUND, Refit
from bica.estimate.lattice.search import Search
from bica.estimate.lattice.surface import HIGHEST, Point, Surface
from bica.estimate.row_search import SourceSearch
from bica.model.files import LEVEL, probability_interval

FLAT = 1e-9  # a curvature this small, relative to those of single parameters, counts as none


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Standard errors: 0 where a value was given or lies on its bound, infinite where the rows say nothing about it."""

    probability: NDArray[np.float64]  # (n_sources,)
    noise: NDArray[np.float64]  # (n_unknown,), of the unknown noise rates
    mean_noise: float  # of their mean


def standard_errors(surface: Surface, fit: Refit) -> StandardErrors:
    """The standard errors, from the inverse of the information on all parameters that could move.

    The information adds up the outer products of the slopes of single rows, which ``fit`` has anyway. If the model is
    right, that is minus the matrix of second derivatives, apart from random error.
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


VAGUE = 0.1  # a standard error that leaves a flip rate open, since such rates lie below one half
SURE = 4.0  # nats: a fall of the log-likelihood that rules a flip rate out
RIDGE = 1e-10  # added to a correlation matrix: a singular direction becomes a very uncertain one
LEAST_INFORMATION = 1e-12  # so that a parameter without information divides nothing by 0


def vague_sensors(surface: Surface, point: Point) -> list[int]:
    """The sensors whose flip rate could be almost anything if every sensor may have a source of its own.

    The flips of a sensor that shares no source with another one look exactly like a source of that sensor alone.
    """
    n_sensors = surface.cells.n_sensors
    lone = np.setdiff1d(1 << np.arange(n_sensors), point.sources)
    wider = surface.at(np.append(point.sources, lone), np.append(point.rate, np.zeros(lone.size)), point.noise)
    derivatives = surface.derivatives(wider)
    information = (derivatives * surface.cells.weights) @ derivatives.T
    scale = np.sqrt(np.maximum(np.diag(information), LEAST_INFORMATION))
    correlation = information / np.outer(scale, scale) + RIDGE * np.eye(scale.size)
    error = np.sqrt(np.abs(np.diag(np.linalg.inv(correlation)))) / scale
    vague = (error[wider.rate.size :] > VAGUE) & ~_clearly_zero(surface, point)
    return np.flatnonzero(vague).tolist()


def _clearly_zero(surface: Surface, point: Point) -> NDArray[np.bool_]:
    """Which flip rates the slope holds at their bound: a higher one would make rows likely that were not observed."""
    fall = -VAGUE * surface.gradient(point)[point.rate.size :]
    return (point.noise <= surface.noise.lowest + AT_BOUND) & (fall > SURE)


WITHIN = math.log(1 / (1 - LEVEL))  # nats: sets of sources whose score falls this short are twenty times less credible


def noise_report(search: Search | SourceSearch, surface: Any, fit: Refit, errors: StandardErrors) -> dict[str, Any]:
    """The estimate as plain values; flip rates of several sensors are given by their mean and one by one.

    Which sources there are decides how much is left for the noise to explain. So the interval covers the flip rates of
    every set of sources visited by the search whose score is within log 20 = 3.0 of the best, each with the same
    margins below and above as the best.
    """
    noise = fit.point.noise
    if not noise.size:
        return {"estimated": False}
    rate, error = float(noise.mean()), errors.mean_noise
    low, high = _interval(surface, fit, rate, error)
    others = [rate, *_as_good(search)]
    report: dict[str, Any] = {"estimated": True, "flip_rate": rate, "error": error}
    report["interval"] = [max(0.0, low + min(others) - rate), min(1.0, high + max(others) - rate)]
    if noise.size > 1:
        each = [probability_interval(*pair) for pair in zip(noise.tolist(), errors.noise.tolist(), strict=True)]
        report["sensors"] = {"flip_rate": noise.tolist(), "error": errors.noise.tolist(), "interval": each}
    return report


def _as_good(search: Search | SourceSearch) -> list[float]:
    return [rate for score, rate in search.visited if score >= search.best.score - WITHIN]


def _interval(surface: Any, fit: Refit, rate: float, error: float) -> tuple[float, float]:
    """The interval of the flip rate with the best sources; at its floor, from 0 to what would hardly go unnoticed."""
    if (fit.point.noise > surface.noise.lowest + AT_BOUND).any():
        return probability_interval(rate, error)
    # the likelihood falls like exp(slope * flip rate) from here: with n sure cells that is the rule of three, 3 / n
    slope = float(surface.gradient(fit.point)[fit.point.rate.size :].sum())
    return 0.0, min(HIGHEST, rate + WITHIN / max(-slope, 1.0))
