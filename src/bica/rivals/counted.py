"""What rivals share: models counted from the rows they cover, and the best of many random starts.

The probability of a source is the share of the rows in which the method switched it on. That describes the fit; it
does not estimate it: whether a source hidden behind others counts as on depends on the method. Every fit so counted has
``diagnostics["wrong_cells"]``, how many cells it rebuilds wrongly, and ``"reach"`` where the method says how likely
each source reaches each sensor.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING
from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, DataError, SettingError
from bica.kernels.bits import Cells, unpacked
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import report

NoiseSetting = Noise | Literal["estimate"]
Shares = NDArray[np.bool_] | NDArray[np.float64]  # how often a source was on in rows that are equal
LEAST_FLIPS = 0.5  # cells
MOST_FLIPS = 0.49  # share of the cells; at one half a sensor says nothing
LEAST_RATE = 1e-6  # of false alarms and of misses: keeps log odds finite


def counted_fit(
    method: str,
    data: PatternCounts,
    mixing: NDArray[np.bool_],
    activity: Shares,
    noise: NoiseSetting,
    *,
    reach: NDArray[np.float64] | None = None,
    diagnostics: Mapping[str, Any] | None = None,
    **details: Any,
) -> Fit:
    """The fit whose sources were on as ``activity`` says, (n_patterns, n_sources).

    Sources that are never on are left out, and those with equal columns are merged by ``OrMixture``. The noise, where
    it is not given, is one flip rate: the share of the cells that the sources explain wrongly.
    """
    probability = np.minimum(data.weights @ activity / data.n_samples, 1.0)
    wrong = wrong_cells(data, mixing, activity)
    if noise == "estimate":
        share = max(wrong, LEAST_FLIPS) / data.times_observed().sum()  # where no cell is wrong, half a flip is assumed
        noise = Noise.flips(float(min(share, MOST_FLIPS)))
    told = {**(diagnostics or {}), "wrong_cells": wrong}
    return finished_fit(method, data, mixing, probability, noise, reach=reach, diagnostics=told, **details)


def finished_fit(
    method: str,
    data: PatternCounts,
    mixing: NDArray[np.bool_],
    probability: NDArray[np.float64],
    noise: Noise,
    *,
    reach: NDArray[np.float64] | None = None,
    diagnostics: Mapping[str, Any],
    **details: Any,
) -> Fit:
    """The fit with these sources, by falling probability; ``reach`` (n_sensors, n_sources) follows their order."""
    used = probability > 0
    model = OrMixture(mixing[:, used], probability[used], noise, sensors=data.sensors).in_order()
    told = dict(diagnostics)
    if reach is not None:
        places = [int((mixing[:, used] == column[:, None]).all(axis=0).argmax()) for column in model.mixing.T]
        told["reach"] = reach[:, used][:, places].tolist()
    if "log_likelihood" not in details:
        details["log_likelihood"] = model.log_likelihood_if_exact(data)
    return Fit(model, method=method, n_samples=data.n_samples, diagnostics=told, **details)


def nothing_found(method: str, data: PatternCounts, noise: NoiseSetting) -> Fit:
    """The fit to rows in which every cell is 0: no source."""
    mixing, activity = np.zeros((data.n_sensors, 0), bool), np.zeros((len(data.weights), 0), bool)
    return counted_fit(method, data, mixing, activity, noise, diagnostics={"scores": [], "objective": []})


def wrong_cells(data: PatternCounts, mixing: NDArray[np.bool_], activity: Shares) -> float:
    """How many observed cells differ from what the sources show; a source is on where it is so in most equal rows."""
    wrong = ((activity > 0.5) @ mixing.T) != data.rows()
    if data.observed is not None:
        wrong &= unpacked(data.observed, data.n_sensors)
    return float(data.weights @ wrong.sum(axis=1))


def as_cells(data: PatternCounts) -> Cells:
    """The distinct rows as 0, 1 and ``MISSING``: (n_patterns, n_sensors).

    >>> as_cells(PatternCounts.of([[1, None], [1, 0]]))
    array([[1, 2],
           [1, 0]], dtype=uint8)
    """
    cells = data.rows().astype(np.uint8)
    if data.observed is not None:
        cells[~unpacked(data.observed, data.n_sensors)] = MISSING
    return cells


def repeated(data: PatternCounts, method: str) -> NDArray[np.int64]:
    """For every row of the table the number of the distinct row that it equals, for methods that cannot weigh rows.

    >>> repeated(PatternCounts.of([[0, 1], [1, 1], [0, 1]]), "MAC")
    array([0, 0, 1])
    """
    if (data.weights % 1 != 0).any():
        raise DataError(f"{method} cannot weigh rows; give whole numbers as sample weights")
    return np.repeat(np.arange(len(data.weights)), data.weights.astype(np.int64))


def log_chances(noise: Noise, n_sensors: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The log of the probability that a sensor shows 0, 1 or nothing, if it is truly on and if not: (3, n_sensors)."""
    false_alarm, miss = (np.clip(rate, LEAST_RATE, 1 - LEAST_RATE) for rate in noise.rates(n_sensors))
    unseen = np.ones(n_sensors)
    return np.log([miss, 1 - miss, unseen]), np.log([1 - false_alarm, false_alarm, unseen])


def check_noise(noise: NoiseSetting, method: str) -> None:
    """Refuse a noise setting that the method does not support."""
    if noise != "estimate" and not isinstance(noise, Noise):
        raise SettingError(f"{method} knows noise='estimate' or given rates, but not {noise!r}")


def required_n_sources(n_sources: int | None, method: str) -> int:
    """The number of sources, which the user must give since this method cannot find it."""
    if n_sources is None:
        raise SettingError(f"{method} has to be told how many sources there are; give n_sources")
    if n_sources < 1:
        raise SettingError(f"{method} cannot look for {n_sources} sources; give n_sources from 1 up")
    return n_sources


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one start."""

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    activity: Shares  # (n_patterns, n_sources)
    noise: NoiseSetting  # what the method found, or "estimate" if it models none
    score: float  # what the method lowers, comparable between starts
    trace: Mapping[str, Any]  # "objective" step by step, and what else changed with it
    converged: bool
    reach: NDArray[np.float64] | None = None  # (n_sensors, n_sources), how likely each source reaches each sensor


def fit_best_start(
    method: str,
    data: PatternCounts,
    start: Callable[[int, np.random.Generator], Attempt],
    n_init: int,
    rng: np.random.Generator,
) -> Fit:
    """The fit of the best of ``n_init`` starts: the one with the lowest score, in a tie the earlier one.

    Each start has its own random stream. Ctrl-C keeps the starts that are finished; before the first one is, it
    interrupts as usual.
    """
    if n_init < 1:
        raise SettingError(f"{method} needs at least one start, but n_init is {n_init}")
    attempts: list[Attempt] = []
    report(f"starts of {method}", 0, n_init)
    for number, stream in enumerate(rng.spawn(n_init)):
        try:
            attempts.append(start(number, stream))
        except KeyboardInterrupt:
            if not attempts:
                raise
            warnings.warn("interrupted: this is the best of the starts so far", BicaWarning, stacklevel=3)
            break
        report(f"starts of {method}", number + 1, n_init)
    best = min(attempts, key=lambda attempt: attempt.score)
    interrupted = len(attempts) < n_init
    return counted_fit(
        method,
        data,
        best.mixing,
        best.activity,
        best.noise,
        reach=best.reach,
        n_iter=len(best.trace["objective"]),
        converged=best.converged and not interrupted,
        diagnostics={"scores": [attempt.score for attempt in attempts], **best.trace}
        | ({"interrupted": True} if interrupted else {}),
    )
