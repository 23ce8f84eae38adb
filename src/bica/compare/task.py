"""One task: one contender on one problem, and what came of it as one flat record."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from time import process_time
from typing import Any

import numpy as np

from bica.compare.contenders import Contender, contender
from bica.compare.problems import Setting
from bica.data.chunks import packed
from bica.data.patterns import PatternCounts
from bica.errors import BicaError
from bica.invert.decode import decode
from bica.metrics import Comparison, activity_error_ratio, compare_models
from bica.model.files import as_json
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture
from bica.simulate import Problem
from bica.version import __version__

Record = dict[str, Any]  # plain values that JSON can hold
MEASURES = (
    "hamming_distance",
    "transmission_probability_error",
    "in_degree_error",
    "structure_error",
    "activity_error",
    "activity_error_true_noise",
    "n_found",
    "precision",
    "recall",
    "f1",
    "cpu_seconds",
)
WARM_ROWS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A contender, a setting and a seed."""

    contender: str
    setting: Setting
    seed: int

    def key(self) -> Record:
        """What tells this task from all others: also the settings, so that changed ones are run anew."""
        settings = json.dumps(as_json(dict(contender(self.contender).settings)), sort_keys=True)
        return {"contender": self.contender, "settings": settings, **asdict(self.setting), "seed": self.seed}

    def perform(self) -> Record:
        """Draw the problem, fit, decode and measure; CPU seconds are those of the fit alone.

        A contender that refuses the problem leaves its reason under ``failure`` and no measures.

        >>> setting = Setting(network="topology two", n_samples=200, flip_rate=0.0)
        >>> Task(contender="truth", setting=setting, seed=0).perform()["hamming_distance"]
        0.0
        """
        problem = self.setting.draw(self.seed)
        rival = contender(self.contender)
        record = self.key() | {"version": __version__, "failure": None, **dict.fromkeys(MEASURES)}
        try:
            _warm(self.contender)
            begin = process_time()
            fit = _fit(rival, problem, self.seed)
            record["cpu_seconds"] = process_time() - begin
        except BicaError as error:
            return record | {"failure": str(error)}
        return record | _measured(rival, fit, problem)


def tasks(contenders: Iterable[str], settings: Iterable[Setting], seeds: Iterable[int]) -> list[Task]:
    """Every contender on every setting with every seed; seeds go last, so that an early end leaves all balanced."""
    names, wanted = list(contenders), list(settings)
    return [Task(contender=name, setting=s, seed=seed) for seed in seeds for s in wanted for name in names]


def _fit(rival: Contender, problem: Problem, seed: int) -> Fit:
    method = rival.prepared(problem.model.n_sources)
    if method is None:
        return Fit(problem.model)
    data = PatternCounts.of(problem.rows, sensors=problem.model.sensors)
    return method.fit(data, np.random.default_rng([seed, 1]))


@cache
def _warm(name: str) -> None:
    """Load compiled kernels before the clock runs, once a process."""
    small = Setting(network="topology two", n_samples=WARM_ROWS, flip_rate=0.0).draw(0)
    _fit(contender(name), small, 0)


def _measured(rival: Contender, fit: Fit, problem: Problem) -> Record:
    compared = compare_models(fit.model, problem.model, problem.n_samples)
    measures: Record = compared.as_dict()
    if not rival.estimates_probability:
        measures["transmission_probability_error"] = None
    told = fit.model.with_noise(problem.model.noise)
    known = {name: measures[name] for name in (*MEASURES, "n_true", "n_exact", "n_missing") if name in measures}
    return known | {
        "activity_error": _activity_error(fit.model, problem, compared),
        "activity_error_true_noise": _activity_error(told, problem, compared),
        "found_flip_rate": float(np.mean(fit.model.noise.rates(fit.model.n_sensors))),
        "n_iter": fit.n_iter,
        "converged": fit.converged,
    }


def _activity_error(model: OrMixture, problem: Problem, compared: Comparison) -> float:
    """Decoded with the noise of ``model``; a row that it holds for impossible counts as silent."""
    found = decode(model, packed(np.ascontiguousarray(problem.rows))).activity
    return activity_error_ratio(found, problem.activity, compared.match)
