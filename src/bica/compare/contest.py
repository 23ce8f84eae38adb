"""Methods against each other on any problem: simulated rows or a user's own table, with or without a known truth.

Every method learns from the same training rows. It is judged by rows it has not met, by the cells it rebuilds and,
where the truth is known, by the sources themselves. A seed draws other rows, or splits the user's table in another way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bica.compare.task import Record, Setting, contender, cpu_limit, network_named, timed
from bica.data.patterns import PatternCounts
from bica.diagnose.verdicts import OTHER_MIXTURES, Diagnosis
from bica.errors import DataError, LimitError, SettingError
from bica.invert.decode import decode
from bica.invert.posterior import log_probability
from bica.kernels.bits import unpacked
from bica.methods import needs_n_sources
from bica.metrics import compare_models, information_gain
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture, load
from bica.version import __version__

WITH_TRUTH = ("f1", "precision", "recall", "similarity", "hamming_distance")
WITHOUT_TRUTH = ("held_out", "wrong_cells", "gain")
SCORES = ("n_found", *WITH_TRUTH, *WITHOUT_TRUTH, "cpu_seconds")
HELD_OUT_SHARE = 1 / 3  # of the rows of a user's table
MOST_HELD_OUT = 2000  # rows: enough to compare, few enough for exact sums over wide models


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One draw of a problem: rows to learn from, rows to be judged by, and the truth where it is known."""

    training: PatternCounts
    held_out: PatternCounts
    truth: OrMixture | None
    n_sources: int | None  # what methods are told that cannot find it


class ContestProblem(Protocol):
    """Something to learn: it draws rows, the same for every method."""

    @property
    def title(self) -> str:
        """What a reader calls it."""

    @property
    def fingerprint(self) -> int:
        """What changes with its content, so that results of another table are not taken for its own."""

    @property
    def tells_n_sources(self) -> bool:
        """Whether methods can be told the number of sources."""

    def check(self) -> None:
        """Refuse a problem that cannot be drawn, before any work begins."""

    def draw(self, seed: int) -> Drawn:
        """The rows of this seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRows:
    """Rows drawn from a named network."""

    setting: Setting

    @property
    def title(self) -> str:
        """Network, number of rows and share of flipped cells.

        >>> SimulatedRows(setting=Setting(network="bars 3", n_samples=500, flip_rate=0.1)).title
        'bars 3, 500 rows, 10 % flipped'
        """
        setting = self.setting
        kind = "false alarms" if setting.network.startswith("lossy ") else "flipped"
        flips = f", {100 * setting.flip_rate:g} % {kind}" if setting.flip_rate else ""
        return f"{setting.network}, {setting.n_samples} rows{flips}"

    @property
    def fingerprint(self) -> int:
        """Nothing but the title matters."""
        return 0

    @property
    def tells_n_sources(self) -> bool:
        """The truth is known."""
        return True

    def check(self) -> None:
        """Refuse a network that there is not."""
        network_named(self.setting.network)

    def draw(self, seed: int) -> Drawn:
        """The rows that other comparisons draw for this seed, and as many others to be judged by."""
        problem = self.setting.draw(seed)
        again = np.random.default_rng([seed, crc32(self.title.encode())])
        fresh = self.setting.draw_from(problem.model, min(self.setting.n_samples, MOST_HELD_OUT), again)
        sensors = problem.model.sensors
        return Drawn(
            PatternCounts.of(problem.rows, sensors=sensors),
            PatternCounts.of(fresh.rows, sensors=sensors),
            problem.model,
            problem.model.n_sources,
        )


@dataclass(frozen=True, kw_only=True)
class OwnTable:
    """A table of the user, split at random into rows to learn from and rows to be judged by."""

    path: str
    truth: str | None = None  # a model file
    n_sources: int | None = None

    @property
    def title(self) -> str:
        """The name of the file."""
        return Path(self.path).name

    @cached_property
    def fingerprint(self) -> int:
        """Of the distinct rows, their weights and the truth."""
        counts, truth = self._counts, self._truth
        content = counts.patterns.tobytes() + counts.weights.tobytes() + repr(counts.sensors).encode()
        return crc32(content + (b"" if truth is None else truth.mixing.tobytes() + truth.probability.tobytes()))

    @property
    def tells_n_sources(self) -> bool:
        """Whether the user or the truth says it."""
        return self.n_sources is not None or self.truth is not None

    def check(self) -> None:
        """Read the files."""
        _ = self.fingerprint

    def draw(self, seed: int) -> Drawn:
        """Two thirds of the rows to learn from; of the others as many as needed."""
        counts, truth = self._counts, self._truth
        n_told = self.n_sources if truth is None or self.n_sources is not None else truth.n_sources
        rng = np.random.default_rng([seed, self.fingerprint])
        n_held = int(counts.n_samples * HELD_OUT_SHARE)
        held = _some_of(counts.weights, n_held, rng)
        judged = _some_of(held, min(n_held, MOST_HELD_OUT), rng)
        return Drawn(_weighted(counts, counts.weights - held), _weighted(counts, judged), truth, n_told)

    @cached_property
    def _counts(self) -> PatternCounts:
        counts = PatternCounts.of(self.path)
        if (counts.weights % 1).any() or counts.n_samples < 3:
            raise DataError(f"{self.path} has to be split, which takes at least three rows that count once each")
        return counts

    @cached_property
    def _truth(self) -> OrMixture | None:
        if self.truth is None:
            return None
        model = load(self.truth)
        if set(model.sensors) != set(self._counts.sensors):
            raise DataError(f"the sensors of {self.truth} are not the columns of {self.path}")
        return model.of_sensors([model.sensors.index(name) for name in self._counts.sensors])


def _some_of(weights: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How often each distinct row is among ``count`` rows drawn without replacement."""
    drawn = rng.multivariate_hypergeometric(weights.astype(np.int64), count, method="marginals")
    return drawn.astype(np.float64)


def _weighted(counts: PatternCounts, weights: NDArray[np.float64]) -> PatternCounts:
    kept = weights > 0
    observed = None if counts.observed is None else counts.observed[kept]
    return replace(counts, patterns=counts.patterns[kept], observed=observed, weights=weights[kept])


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A contender, a problem and a seed; a job for ``run_plan``."""

    contender: str
    problem: ContestProblem
    seed: int
    time_limit: float | None = None  # CPU seconds of the fit, and of each score; a slower method has a ``failure``

    def key(self) -> Record:
        """What distinguishes this job, with the settings of the contender and the content of the problem."""
        settings = contender(self.contender).settings_text()
        problem = {"problem": self.problem.title, "fingerprint": self.problem.fingerprint}
        return {"contender": self.contender, "settings": settings, **problem, "seed": self.seed}

    def perform(self) -> Record:
        """Draw, fit, and score; CPU seconds are those of the fit alone. Who refuses the problem has a ``failure``.

        >>> setting = Setting(network="topology two", n_samples=1000, flip_rate=0.0)
        >>> Match(contender="findbica", problem=SimulatedRows(setting=setting), seed=0).perform()["f1"]
        1.0
        """
        drawn, rival = self.problem.draw(self.seed), contender(self.contender)
        record = self.key() | {"version": __version__, "failure": None, "told": None, **dict.fromkeys(SCORES)}
        fit = timed(self.contender, lambda: _fitted(self.contender, drawn, self.seed), record, self.time_limit)
        if fit is None:
            return record
        told = drawn.n_sources if rival.method is not None and needs_n_sources(rival.method) else None
        record |= {"told": told, **_named_scores(fit, drawn)}
        return record if rival.method in OTHER_MIXTURES else record | _or_scores(fit, drawn, self.time_limit)


def matches(
    contenders: Iterable[str],
    problems: Sequence[ContestProblem],
    seeds: Iterable[int],
    time_limit: float | None = None,
) -> list[Match]:
    """Every contender on every problem with every seed; the seed changes last, so that an early end stays balanced.

    >>> problem = SimulatedRows(setting=Setting(network="bars 3", n_samples=50, flip_rate=0.0))
    >>> len(matches(["findbica", "mac"], [problem], range(3)))
    6
    """
    names = list(contenders)
    for problem in problems:
        problem.check()
    untold = [problem.title for problem in problems if not problem.tells_n_sources]
    for name in names:
        method = contender(name).method
        if method is None:
            raise SettingError(f"{name!r} is the true model, which learns nothing; leave it out")
        if needs_n_sources(method) and untold:
            tables = ", ".join(untold)
            raise SettingError(
                f"{name} needs the number of sources of {tables}; give it with `sources`, or leave {name} out"
            )
    return [
        Match(contender=name, problem=problem, seed=seed, time_limit=time_limit)
        for seed in seeds
        for problem in problems
        for name in names
    ]


def _fitted(name: str, drawn: Drawn, seed: int) -> Fit:
    method = contender(name).prepared(drawn.n_sources or 0)
    assert method is not None
    return method.fit(drawn.training, np.random.default_rng([seed, 1])).in_order()


def _named_scores(fit: Fit, drawn: Drawn) -> Record:
    """What can be said of the sources of any model."""
    model = fit.model
    scores: Record = {
        "n_found": model.n_sources,
        "verdict": "no OR model",
        "converged": fit.converged,
        "sources": json.dumps([np.flatnonzero(column).tolist() for column in model.mixing.T]),
    }
    if drawn.truth is not None:
        compared: Mapping[str, Any] = compare_models(model, drawn.truth, drawn.training.n_samples).as_dict()
        scores |= {name: compared[name] for name in WITH_TRUTH if name in compared}
        scores["similarity"] = similarity(columns_of(drawn.truth), columns_of(model))
    return scores


def _or_scores(fit: Fit, drawn: Drawn, time_limit: float | None) -> Record:
    """What can be said of an OR mixture; a score that takes longer than the limit stays open."""
    parts: list[Callable[[], Record]] = [
        lambda: {"verdict": Diagnosis.of(drawn.training, fit).verdict},
        lambda: {"held_out": held_out_likelihood(fit.model, drawn.held_out)},
        lambda: _rebuilt(fit.model, drawn.training),
    ]
    scores: Record = {"verdict": "not judged"}
    for part in parts:
        with suppress(LimitError), cpu_limit(time_limit):
            scores |= part()
    return scores


def held_out_likelihood(model: OrMixture, rows: PatternCounts) -> float | None:
    """The mean log-likelihood of a row, in nats; None if some row is impossible under the model.

    >>> held_out_likelihood(OrMixture([[1]], [0.5]), PatternCounts.of([[0], [1]]))
    -0.6931471805599453
    """
    if not rows.weights.size:
        return None
    value = float(rows.weights @ log_probability(model, rows.patterns, rows.observed).value / rows.n_samples)
    return value if np.isfinite(value) else None


def _rebuilt(model: OrMixture, data: PatternCounts) -> Record:
    """The share of the observed cells that decoded activities rebuild wrongly, and the information gain."""
    activity = decode(model, data.patterns, data.observed, nearest=True).activity
    rows, observed = data.rows(), unpacked(data.observed_cells(), data.n_sensors)
    wrong = data.weights @ ((model.observe(activity) != rows) & observed).sum(axis=1)
    gain = None
    if data.observed is None:
        gain = information_gain(rows, model.mixing, activity, sample_weight=data.weights)
    return {"wrong_cells": float(wrong / data.times_observed().sum()), "gain": gain}


Columns = Collection[frozenset[int]]  # the sensors of every source


def columns_of(model: OrMixture) -> Columns:
    """The sensors of every source."""
    return [frozenset(np.flatnonzero(column).tolist()) for column in model.mixing.T]


def similarity(sought: Columns, found: Columns) -> float:
    """How much of the sought sources is there: the best Jaccard index of each among the found ones, on average.

    >>> similarity([frozenset({0, 1}), frozenset({2})], [frozenset({0, 1, 2}), frozenset({2})])
    0.8333333333333333
    """
    best = (max((len(one & other) / len(one | other) for other in found), default=0.0) for one in sought)
    return float(np.mean(list(best))) if sought else 1.0
