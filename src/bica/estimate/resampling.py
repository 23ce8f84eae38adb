"""Learning again from resampled rows, in threads, and stopping well when somebody presses Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from bica.data.patterns import PatternCounts
from bica.model.fit import Fit, Method
from bica.progress import listening, tracked
from bica.threads import in_threads


def resampled(data: PatternCounts, rng: np.random.Generator) -> PatternCounts:
    """As many rows as ``data`` has, drawn from them with replacement: one multinomial draw, whatever their number.

    Weights are taken as counts; the number of rows drawn is their sum, rounded.

    >>> data = PatternCounts.of([[0, 1]] * 70 + [[1, 1]] * 30)
    >>> resampled(data, np.random.default_rng(0)).weights
    array([68., 32.])
    """
    n_rows = max(1, round(data.n_samples))
    weights = rng.multinomial(n_rows, data.weights / data.weights.sum())
    kept = weights > 0
    observed = None if data.observed is None else data.observed[kept]
    return PatternCounts(data.patterns[kept], weights[kept].astype(float), data.sensors, observed)


def fits_to_resamples(
    method: Method, data: PatternCounts, n_resamples: int, rng: np.random.Generator, n_jobs: int
) -> list[Fit]:
    """One fit a resample, each with a stream of chance of its own, so that threads change nothing; fewer after Ctrl-C.

    Ctrl-C before the first is done is raised.
    """

    def learn(stream: np.random.Generator) -> Fit:
        with listening(lambda *_: None):  # the resamples are counted, not the steps inside each
            return method.fit(resampled(data, stream), stream)

    fits: list[Fit] = []
    with interrupts_noted() as interrupted:
        try:
            for fit in tracked(in_threads(learn, rng.spawn(n_resamples), n_jobs), "resamples", n_resamples):
                if interrupted():  # the method caught Ctrl-C and gave what it had
                    raise KeyboardInterrupt
                fits.append(fit)
        except KeyboardInterrupt:
            if not fits:
                raise
    return fits


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Remember that Ctrl-C was pressed, even if whatever runs inside catches it; only the main thread hears it."""
    pressed, before = threading.Event(), signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    raise_it = before

    def note(number: int, frame: FrameType | None) -> Any:
        pressed.set()
        return raise_it(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
