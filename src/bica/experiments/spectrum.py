"""The paper's spectrum experiment: 10 monitors, 5 to 20 users, flipped reports; which method separates users best."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.applications.spectrum.field import random_field
from bica.applications.spectrum.survey import READINGS, Reading, Survey, draw_survey, learn_users, random_traffic
from bica.compare.run import Record
from bica.compare.task import Contender
from bica.data.rows import Rows
from bica.errors import SettingError
from bica.estimate.likelihood import IN_TIME
from bica.estimate.temporal import stays_in_time
from bica.invert.decode import decode
from bica.invert.temporal.decode import decode_in_time
from bica.metrics import Match, activity_error_ratio, compare_models
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture
from bica.version import __version__

N_SLOTS, FLIP_RATES, N_RUNS = 10_000, (0.0, 0.02, 0.05), 50
N_USERS = (5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20)
QUICK_USERS, QUICK_RUNS = (5, 10, 15), 2
ENDLESS = 1e6  # slots, for a user who never stops
FINDBICA = {f"findbica {e:g}": Contender("findbica", {"min_probability": e}) for e in (0.002, 0.005, 0.01, 0.02)}
CONTENDERS: Mapping[str, Contender] = {
    **FINDBICA,
    "likelihood": Contender("likelihood", {"edges": "sure"}),  # as in the paper, a user in reach is always heard
    IN_TIME: Contender("likelihood", {"edges": "sure"}),  # revised with the order of the slots
    "truth": Contender(None),
}
NOT_IN_TIME = FINDBICA.keys() - {"findbica 0.005"}  # decoding their many sources in time would take most of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectrumJob:
    """One contender on the reports of one random field."""

    contender: str
    n_users: int
    flip_rate: float
    seed: int
    reading: Reading = "rare"
    n_samples: int = N_SLOTS

    def __post_init__(self) -> None:
        if self.contender not in CONTENDERS:
            raise SettingError(f"there is no contender {self.contender!r}; choose from {', '.join(CONTENDERS)}")

    def key(self) -> Record:
        """What distinguishes this job from all others."""
        settings = json.dumps(dict(CONTENDERS[self.contender].settings), sort_keys=True)
        return asdict(self) | {"settings": settings}

    def survey(self) -> Survey:
        """The survey of this job; field, traffic and activity depend on seed, number of users and reading alone."""
        rng = np.random.default_rng([self.seed, self.n_users, READINGS.index(self.reading)])
        field = random_field(self.n_users, rng)
        return draw_survey(field, random_traffic(self.n_users, rng, self.reading), self.n_samples, self.flip_rate, rng)

    def perform(self) -> Record:
        """Draw the field, learn, decode and measure; CPU seconds are those of learning alone.

        >>> SpectrumJob(contender="truth", n_users=5, flip_rate=0.0, seed=0, n_samples=500).perform()["exact"]
        1.0
        """
        problem = self.survey().problem
        slots = Rows.of(np.ascontiguousarray(problem.rows), sensors=problem.model.sensors)
        begin = process_time()
        fit = _fit(self.contender, slots, problem.model)
        seconds = process_time() - begin
        compared = compare_models(fit.model, problem.model, problem.n_samples)
        row_wise = decode(fit.model, slots.words).activity
        return self.key() | {
            "version": __version__,
            **compared.as_dict(),
            "exact": float(compared.columns.f1 == 1),
            "activity_error": activity_error_ratio(row_wise, problem.activity, compared.match),
            "activity_error_in_time": self._error_in_time(fit, slots, problem.activity, compared.match),
            "found_flip_rate": float(np.mean(fit.model.noise.rates(fit.model.n_sensors))),
            "cpu_seconds": seconds,
        }

    def _error_in_time(self, fit: Fit, slots: Rows, activity: NDArray[np.bool_], match: Match) -> float | None:
        if self.contender in NOT_IN_TIME:
            return None
        found = decode_in_time(fit.model, slots.words, persistence=_stays(fit, slots)).activity
        return activity_error_ratio(found, activity, match)


def _fit(name: str, slots: Rows, truth: OrMixture) -> Fit:
    if name == IN_TIME:
        return learn_users(slots, n_jobs=1)
    method = CONTENDERS[name].prepared(truth.n_sources)
    if method is None or not slots.words.any():
        return Fit(truth if method is None else truth.pick([]))
    return method.fit(slots.counts(), np.random.default_rng(0))


def _stays(fit: Fit, slots: Rows) -> Any:
    """For how many slots each user stays active, as learned with the users or, otherwise, estimated afterwards."""
    known = fit.diagnostics.get("persistence")
    return stays_in_time(fit.model, slots.words) if known is None else [stay or ENDLESS for stay in known]


def spectrum_plan(
    contenders: Iterable[str] = CONTENDERS,
    *,
    n_users: Sequence[int] = N_USERS,
    flip_rates: Sequence[float] = FLIP_RATES,
    n_runs: int = N_RUNS,
    reading: Reading = "rare",
) -> list[SpectrumJob]:
    """Every contender on every field and noise level; the seed changes last, so that an early end stays balanced.

    >>> len(spectrum_plan(["likelihood"]))
    1650
    """
    names = list(contenders)
    return [
        SpectrumJob(contender=name, n_users=users, flip_rate=rate, seed=seed, reading=reading)
        for seed in range(n_runs)
        for users in n_users
        for rate in flip_rates
        for name in names
    ]
