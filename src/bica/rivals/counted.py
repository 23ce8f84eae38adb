"""What rivals share: models counted from the rows they cover, and the best of many random starts.

The probability of a source is the share of the rows in which the method switched it on. That describes the fit; it
does not estimate it: whether a source hidden behind others counts as on depends on the method.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, SettingError
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import report

NoiseSetting = Noise | Literal["estimate"]
LEAST_FLIPS = 0.5  # cells
MOST_FLIPS = 0.49  # share of the cells; at one half a sensor says nothing


def counted_fit(
    method: str,
    data: PatternCounts,
    mixing: NDArray[np.bool_],
    activity: NDArray[np.bool_],
    noise: NoiseSetting,
    **details: Any,
) -> Fit:
    """The fit whose sources were on as ``activity`` says, (n_patterns, n_sources).

    Sources that are never on are left out, and those with equal columns are merged by ``OrMixture``. The noise, where
    it is not given, is one flip rate: the share of the cells that the sources explain wrongly.
    """
    probability = data.weights @ activity / data.n_samples
    used = (probability > 0) & mixing.any(axis=0)
    if noise == "estimate":
        noise = Noise.flips(flip_share(data, mixing, activity))
    model = OrMixture(mixing[:, used], np.minimum(probability[used], 1.0), noise, sensors=data.sensors)
    model = model.in_order()
    return Fit(
        model, method=method, n_samples=data.n_samples, log_likelihood=model.log_likelihood_if_exact(data), **details
    )


def nothing_found(method: str, data: PatternCounts, noise: NoiseSetting) -> Fit:
    """The fit to rows in which every cell is 0: no source."""
    mixing, activity = np.zeros((data.n_sensors, 0), bool), np.zeros((len(data.weights), 0), bool)
    return counted_fit(method, data, mixing, activity, noise, diagnostics={"scores": [], "objective": []})


def flip_share(data: PatternCounts, mixing: NDArray[np.bool_], activity: NDArray[np.bool_]) -> float:
    """The share of wrong cells, never 0: where no cell is wrong, half a flip is assumed."""
    wrong = data.weights @ (activity @ mixing.T != data.rows()).sum(axis=1)
    return float(min(max(wrong, LEAST_FLIPS) / (data.n_samples * data.n_sensors), MOST_FLIPS))


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
    activity: NDArray[np.bool_]  # (n_patterns, n_sources)
    noise: NoiseSetting  # what the method found, or "estimate" if it models none
    score: float  # what the method lowers, comparable between starts
    trace: Mapping[str, list[float]]  # "objective" step by step, and what else changed with it
    converged: bool


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
        n_iter=len(best.trace["objective"]),
        converged=best.converged and not interrupted,
        diagnostics={"scores": [attempt.score for attempt in attempts], **best.trace}
        | ({"interrupted": True} if interrupted else {}),
    )
