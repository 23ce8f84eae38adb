"""The unknown noise rate with its interval: sampling error, and the other sets of sources that explain the rows."""

from __future__ import annotations

import math
from typing import Any

from bica.estimate.noise_shape import HIGHEST
from bica.estimate.refit import AT_BOUND, Refit
from bica.estimate.search import Search
from bica.estimate.standard_errors import StandardErrors
from bica.model.intervals import LEVEL, chance_interval

WITHIN = math.log(1 / (1 - LEVEL))  # sets of sources whose score falls this short are twenty times less credible


def noise_report(search: Search, fit: Refit, errors: StandardErrors) -> dict[str, Any]:
    """The estimate as plain values; rates of several sensors are told by their mean, and one by one.

    Which sources there are decides how much is left for the noise to explain. So the interval covers the rates of
    every set of sources visited by the search whose score is within log 20 = 3.0 of the best, each with as much below
    and above as the best has.
    """
    noise = fit.point.noise
    if not noise.size:
        return {"estimated": False}
    rate, error = float(noise.mean()), errors.mean_noise
    low, high = _interval(search, fit, rate, error)
    others = [rate, *_as_good(search)]
    told: dict[str, Any] = {"estimated": True, "flip_rate": rate, "error": error}
    told["interval"] = [max(0.0, low + min(others) - rate), min(1.0, high + max(others) - rate)]
    if noise.size > 1:
        each = [chance_interval(*pair) for pair in zip(noise.tolist(), errors.noise.tolist(), strict=True)]
        told["sensors"] = {"flip_rate": noise.tolist(), "error": errors.noise.tolist(), "interval": each}
    return told


def _as_good(search: Search) -> list[float]:
    return [rate for score, rate in search.visited if score >= search.best.score - WITHIN]


def _interval(search: Search, fit: Refit, rate: float, error: float) -> tuple[float, float]:
    """Of the rate for the best sources; at its floor it may be 0, or as large as would hardly have gone unnoticed."""
    surface = search.surface
    if (fit.point.noise > surface.noise.lowest + AT_BOUND).any():
        return chance_interval(rate, error)
    # the likelihood falls like exp(slope * rate) from here: with n sure cells that is the rule of three, 3 / n
    slope = float(surface.gradient(fit.point)[fit.point.rate.size :].sum())
    return 0.0, min(HIGHEST, rate + WITHIN / max(-slope, 1.0))
