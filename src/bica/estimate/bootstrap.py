"""The bootstrap: how the answer would vary if the rows had been drawn again."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from bica.data.patterns import PatternCounts
from bica.errors import LimitError, SettingError
from bica.model.files import LEVEL
from bica.model.fit import Fit, Method
from bica.model.or_mixture import OrMixture
from bica.progress import TimeUp, checked_n_jobs, is_time_up, listening, report, spread, time_limited


def resampled(data: PatternCounts, rng: np.random.Generator) -> PatternCounts:
    """As many rows as ``data`` has, drawn from them with replacement; one multinomial draw, however many they are.

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
    method: Method, data: PatternCounts, n_resamples: int, rng: np.random.Generator, n_jobs: int | None = None
) -> list[Fit]:
    """One fit per resample, each with its own random stream, so that threads change nothing; fewer after Ctrl-C.

    Ctrl-C before the first fit is done is raised. A method with a time limit has that for all resamples together.
    """
    learn = partial(_fit_to_resample, method, data)
    fits: list[Fit] = []
    with interrupts_noted() as interrupted, time_limited(getattr(method, "time_limit", None)):
        try:
            _report(0, n_resamples)
            for done, fit in enumerate(spread(learn, rng.spawn(n_resamples), n_jobs), start=1):
                if interrupted():  # the method caught Ctrl-C and returned what it had
                    raise KeyboardInterrupt
                if fit is not None:
                    fits.append(fit)
                _report(done, n_resamples)
        except KeyboardInterrupt:
            if not fits:
                raise
    if not fits:
        raise LimitError("not one resample was learned within the time limit; allow more time")
    return fits


def _report(done: int, n_resamples: int) -> None:
    with suppress(TimeUp):  # threads may be ahead, and what they did in time counts
        report("resamples", done, n_resamples)


def _fit_to_resample(method: Method, data: PatternCounts, stream: np.random.Generator) -> Fit | None:
    """A fit to rows drawn again; None if the time limit is over before it is done."""
    if is_time_up():
        return None
    with listening(lambda *_: None):  # progress is reported by resamples, not by the steps inside each
        fit = method.fit(resampled(data, stream), stream)
    return None if is_time_up() else fit


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed, even if the code inside caught it; in the main thread only."""
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


OTHERS_LISTED = 20  # in a model file


@dataclass(frozen=True, slots=True)
class OtherSource:
    """A source that the fit does not have, with the share of the resamples in which it appeared."""

    sensors: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """What came back when the sources were learned again from resampled rows."""

    model: OrMixture  # the fit in question
    probability: NDArray[np.float64]  # (n_resamples, n_sources), NaN where exactly this source did not return
    flip_rate: NDArray[np.float64]  # (n_resamples,), the mean over false alarms and misses of all sensors
    edge_support: NDArray[np.float64]  # (n_sensors, n_sources), how often the nearest source reached the sensor
    others: tuple[OtherSource, ...]  # the most frequent first

    @classmethod
    def of(cls, model: OrMixture, found: Sequence[OrMixture]) -> Bootstrap:
        """The comparison of models learned from resamples with the model in question."""
        probability = np.array([_returned(again, model) for again in found]).reshape(len(found), model.n_sources)
        flip_rate = np.array([np.mean(again.noise.rates(again.n_sensors)) for again in found])
        reached = sum((_nearest(again.mixing, model.mixing) for again in found), np.zeros(model.mixing.shape))
        return cls(model, probability, flip_rate, reached / max(1, len(found)), _others(found, model))

    @property
    def n_resamples(self) -> int:
        """How many resamples were done."""
        return len(self.probability)

    @property
    def support(self) -> NDArray[np.float64]:
        """The share of resamples in which exactly this source returned: (n_sources,)."""
        share: NDArray[np.float64] = np.mean(~np.isnan(self.probability), axis=0)
        return share

    @property
    def error(self) -> NDArray[np.float64]:
        """The standard error of each probability, over the resamples that have the source; NaN if fewer than two do."""
        return np.array([np.std(values, ddof=1) if values.size > 1 else np.nan for values in self._values()])

    @property
    def flip_rate_error(self) -> float:
        """The standard error of the mean flip rate."""
        return float(np.std(self.flip_rate, ddof=1)) if self.flip_rate.size > 1 else float("nan")

    def interval(self, level: float = LEVEL) -> NDArray[np.float64]:
        """Percentile intervals of the probabilities: (n_sources, 2); NaN where a source did not return twice."""
        ends = [_percentiles(values, level) for values in self._values()]
        return np.array(ends).reshape(-1, 2)

    def flip_rate_interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The percentile interval of the mean flip rate."""
        return _percentiles(self.flip_rate, level)

    def added_to(self, fit: Fit) -> Fit:
        """The fit with this summary among its diagnostics, and with these errors if it had none."""
        error = self.error if fit.probability_error is None else fit.probability_error
        return replace(fit, probability_error=error, diagnostics={**fit.diagnostics, "bootstrap": self.summary()})

    def summary(self) -> dict[str, Any]:
        """The results as plain values, as a model file holds them; sources in the order of the model."""
        edges = zip(self.edge_support.T, self.model.mixing.T, strict=True)
        return {
            "n_resamples": self.n_resamples,
            "support": self.support.tolist(),
            "edge_support": [support[reached].tolist() for support, reached in edges],  # for the sensors of each source
            "error": _known(self.error),
            "interval": [_known(ends) for ends in self.interval()],
            "flip_rate": {"error": _known([self.flip_rate_error])[0], "interval": _known(self.flip_rate_interval())},
            "others": [{"sensors": list(o.sensors), "share": o.share} for o in self.others[:OTHERS_LISTED]],
        }

    def __repr__(self) -> str:
        least = f", support from {self.support.min():.0%}" if self.model.n_sources else ""
        return f"<Bootstrap: {self.n_resamples} resamples of {self.model.n_sources} sources{least}>"

    def _repr_html_(self) -> str:
        from bica.report import bootstrap_table

        return bootstrap_table(self)

    def _values(self) -> list[NDArray[np.float64]]:
        return [column[~np.isnan(column)] for column in self.probability.T]


def bootstrap(
    method: Method,
    data: PatternCounts,
    fit: Fit,
    n_resamples: int,
    rng: np.random.Generator,
    *,
    n_jobs: int | None = None,
) -> Bootstrap:
    """Compare ``fit``, which was learned from ``data``, with fits to ``n_resamples`` resamples of its rows.

    Time is that of ``n_resamples`` fits, however many rows there are; ``n_jobs`` threads, counted as scikit-learn does,
    share the work and change nothing else. Ctrl-C keeps the resamples done so far.

    >>> from bica.estimate.findbica import FindBICA
    >>> data = PatternCounts.of([[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50)
    >>> fit = FindBICA().fit(data, np.random.default_rng(0))
    >>> found = bootstrap(FindBICA(), data, fit, 50, np.random.default_rng(0))
    >>> found.support, found.error.round(2)
    (array([1., 1.]), array([0.06, 0.05]))
    """
    if n_resamples < 1:
        raise SettingError(f"a bootstrap of {n_resamples} resamples is none; give a count from 1 up")
    checked_n_jobs(n_jobs)
    fits = fits_to_resamples(method, data, n_resamples, rng, n_jobs)
    return Bootstrap.of(fit.model, [again.model for again in fits])


def _returned(found: OrMixture, model: OrMixture) -> list[float]:
    """The probability of each source of ``model`` in ``found``; NaN where ``found`` lacks its column."""
    known = dict(zip(_columns(found), found.probability.tolist(), strict=True))
    return [known.get(column, np.nan) for column in _columns(model)]


def _columns(model: OrMixture) -> list[tuple[int, ...]]:
    return [tuple(np.flatnonzero(column).tolist()) for column in model.mixing.T]


def _nearest(found: NDArray[np.bool_], mixing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """For each column of ``mixing`` its counterpart in ``found``, each used once: equal ones first, then most alike."""
    shared = mixing.T.astype(float) @ found
    either = mixing.sum(axis=0)[:, None] + found.sum(axis=0) - shared
    likeness = shared / np.maximum(either, 1)
    likeness[likeness == 1] += len(likeness)
    ours, theirs = linear_sum_assignment(likeness, maximize=True)
    related = likeness[ours, theirs] > 0
    columns = np.zeros(mixing.shape)
    columns[:, ours[related]] = found[:, theirs[related]]
    return columns


def _others(found: Sequence[OrMixture], model: OrMixture) -> tuple[OtherSource, ...]:
    """The sources that are not in ``model``, by falling share, then by their sensors."""
    counts = Counter(column for again in found for column in _columns(again))
    for column in _columns(model):
        counts.pop(column, None)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    names = model.sensors
    return tuple(OtherSource(tuple(names[i] for i in column), count / len(found)) for column, count in ranked)


def _percentiles(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise SettingError(f"the level of an interval lies between 0 and 1, but {level:g} was given")
    if values.size < 2:
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _known(values: Iterable[float]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
