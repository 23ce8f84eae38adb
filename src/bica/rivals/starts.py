"""Many random starts, of which the best by the method's own objective is kept; never by the truth."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, SettingError
from bica.model.fit import Fit
from bica.progress import report
from bica.rivals.counted import NoiseSetting, counted_fit


@dataclass(frozen=True, slots=True)
class Attempt:
    """Where one start ended."""

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    activity: NDArray[np.bool_]  # (n_patterns, n_sources)
    noise: NoiseSetting  # what the method found, or "estimate" if it looks at none
    score: float  # what the method lowers, comparable between starts
    trace: Mapping[str, list[float]]  # "objective" step by step, and what it depended on
    converged: bool


def fit_best_start(
    method: str,
    data: PatternCounts,
    start: Callable[[int, np.random.Generator], Attempt],
    n_init: int,
    rng: np.random.Generator,
) -> Fit:
    """Run ``n_init`` starts, each with chance of its own, and keep the lowest score, on ties the earlier start.

    Ctrl-C keeps the starts that are done; before the first one is, it passes.
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
