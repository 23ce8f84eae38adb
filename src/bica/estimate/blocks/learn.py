"""Learning a table of many sensors: blocks around each sensor, wide sources from rows, both in one pool."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit

from bica.data.observations import Observations, TableSums
from bica.diagnose.blocks import block_tests
from bica.diagnose.table import Watched
from bica.diagnose.verdicts import DOUBT
from bica.errors import LimitError, SettingError
from bica.estimate.blocks.learner import BlockLearner, Column, Estimate, Links, Plan, Pool
from bica.estimate.blocks.rounds import FlipRate, Round, first_flip_rate, learn_blocks, looked_through
from bica.estimate.lattice import HIGHEST, LATTICE_SENSORS, lowest_rate
from bica.estimate.rows.passes import over_all_rows
from bica.estimate.rows.pool import RowPool, RowTable, as_lists
from bica.estimate.rows.rounds import RowFit, RowSettings, row_rounds
from bica.estimate.score import cost_by_size
from bica.estimate.search import Start
from bica.estimate.settings import WORD, Settings, Varying, as_sets, columns_of, flip_rate_of
from bica.estimate.whole import PER_SENSOR, TWO_RATES
from bica.model.files import probability_interval
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.progress import n_threads


def wide_sources(learner: BlockLearner, now: Round, rng: np.random.Generator, n_jobs: int) -> Round:
    """What rounds on the rows make of the present pool; Ctrl-C keeps the best so far."""
    noise = now.noise if now.flip_rate is None else now.flip_rate.rate

    def forbidden(column: Column) -> bool:
        return any(together <= set(column) for together in learner.forbidden)

    settings = RowSettings(forbidden=forbidden if learner.forbidden else None, n_jobs=n_jobs)
    start, sample = row_pool(learner, now.pool), learner.data.rows_to_learn_from(rng)
    rows: Observations = sample  # that the numbers come from
    try:
        found = row_rounds(RowTable.of(sample), start, noise, rng, settings)
    except KeyboardInterrupt:  # before there was anything
        return replace(now, settled=False, interrupted=True)
    if isinstance(learner.data, TableSums) and sample.n_samples < learner.data.n_samples and not found.interrupted:
        try:
            known = now.noise if now.flip_rate is None else None
            found = over_all_rows(learner.data, sample, found, start, known, rng, settings)
            rows = learner.data
        except KeyboardInterrupt:  # what the sample says is still true
            found = replace(found, interrupted=True)
    return Round(_pool_of(found), *_noise_of(found, now, rows), settled=found.converged, interrupted=found.interrupted)


def row_pool(learner: BlockLearner, pool: Pool) -> RowPool:
    """The known sources, then the others, in the form that the rounds on rows need."""
    known = learner.known.sources
    sources = {column: pool.sources.get(column, given) for column, given in known.items()}
    sources |= pool.sources
    rate = np.array([estimate.rate for estimate in sources.values()], float)
    fixed = np.arange(rate.size) < len(known)
    held = np.array([column in learner.fixed for column in sources], dtype=bool)
    return RowPool(as_lists(sources), -np.expm1(-rate), fixed, held)


def _pool_of(found: RowFit) -> Pool:
    rates = -np.log1p(-found.probability)
    errors = found.probability_error / (1.0 - found.probability)
    numbers = zip(found.columns, rates.tolist(), errors.tolist(), strict=True)
    return Pool({column: Estimate(rate, error) for column, rate, error in sorted(numbers)})


def _noise_of(found: RowFit, now: Round, rows: Observations) -> tuple[Noise, FlipRate | None]:
    """The noise with the flip rate of the covered cells; its error is that of a share of all cells."""
    if now.flip_rate is None:
        return now.noise, None
    flip_rate = max(found.flip_rate, now.flip_rate.lowest)
    n_cells = rows.n_samples * rows.n_sensors
    error = float(np.sqrt(flip_rate * (1.0 - flip_rate) / n_cells))
    return Noise.flips(flip_rate), FlipRate(flip_rate, error, now.flip_rate.lowest)


MOSTLY = 0.3  # share of the sensors: with more of them in open sets, blocks are left out
FLIP_RATE_FOR_ROWS = 0.02  # where learning from rows alone starts
FIRST_SOURCE_RATE = 0.1  # of a known source whose probability is not known
HIGHEST_AT_FLOOR = 3  # standard errors above a flip rate at its lowest: as far as its interval goes


@dataclass(frozen=True, slots=True, eq=False)
class WideTask:
    """The table, what its blocks have in common, and the user's settings."""

    table: Varying
    learner: BlockLearner
    settings: Settings

    @classmethod
    def of(cls, table: Varying, settings: Settings) -> WideTask:
        """The task for this table: pairs are counted, and sensors that may share a source are linked."""
        _check_settings(settings, table.data.n_sensors)
        data = table.data
        place = {name: i for i, name in enumerate(data.sensors)}
        known, fixed = _known_pool(settings, place)
        links = Links.of(data.pair_counts()).joined(known.sources)
        forbidden = tuple(frozenset(place[name] for name in names) for names in table.forbidden)
        cost = cost_by_size(data.n_sensors, data.n_samples, data.n_sensors)
        return cls(table, BlockLearner(data, links, links.sets(), forbidden, known, fixed, cost), settings)

    def learn(self, rng: np.random.Generator) -> Round:
        """What blocks find and, where they leave sets open, rows, and then the blocks again beside the wide sources.

        Where many sensors are in open sets, blocks would decide little, so only the rows are used.
        """
        left_open = self._left_open()
        if len(left_open) > MOSTLY * self.table.data.n_sensors:
            return wide_sources(self.learner, self._start(FLIP_RATE_FOR_ROWS), rng, self.n_jobs)
        start = self._start(None)
        now = start if start.interrupted else self._blocks(start)
        if now.interrupted or not left_open:
            return now
        beside = wide_sources(self.learner, now, rng, self.n_jobs)
        if beside.interrupted or self.table.data.n_sensors <= LATTICE_SENSORS:  # the lattice has the last word
            return beside
        again = self._blocks(replace(beside, flip_rate=None))  # most rows are explained by now: their noise counts
        return replace(again, flip_rate=beside.flip_rate, settled=again.settled and beside.settled)

    def _left_open(self) -> list[int]:
        """The sensors of sets with too many common neighbours for a block."""
        return sorted({sensor for sensors in Plan.of(self.learner.links).open_sets for sensor in sensors})

    def looked_through(self, learned: Round, rng: np.random.Generator) -> Round:
        """What was learned, after a last look at the sensors that only the rows were asked about, if it is refuted."""
        left_open, n_sensors = self._left_open(), self.table.data.n_sensors
        if not left_open or not self._is_refuted(learned):
            return learned
        asked = range(n_sensors) if len(left_open) > MOSTLY * n_sensors else left_open
        return looked_through(self.learner, self.settings, learned, asked, rng)

    def _is_refuted(self, learned: Round) -> bool:
        """Whether the rows of some block are not as the model expects: a fiftieth of a second for eighty sensors."""
        data, model = self.table.data, self.result(learned).model.of_sensors(self.table.places)
        places, stretch = np.arange(data.n_sensors), np.ones(data.n_sensors)
        tests = block_tests(model, Watched(places, data, stretch, data.quiet_rows(), None, np.zeros(0), None))
        return tests is not None and tests.odd.p_value <= DOUBT

    def _blocks(self, start: Round) -> Round:
        return learn_blocks(self.learner, start, self.n_jobs, to_the_end=self.table.data.n_sensors > LATTICE_SENSORS)

    @property
    def n_jobs(self) -> int:
        """How many threads to use."""
        return n_threads(self.settings.n_jobs)

    def _start(self, flip_rate: float | None) -> Round:
        """No source yet, and the noise: as it is known, else this flip rate, else what a few blocks suggest.

        Where there is an earlier model, its sources, and its noise if that is not known.
        """
        lowest, pool = lowest_rate(self.table.data), self._earlier()
        if isinstance(self.settings.noise, Noise):
            self.settings.noise.rates(self.table.whole.n_sensors)  # an error unless there is one value per sensor
            return Round(pool, self.settings.noise.of_sensors(self.table.places).at_least(lowest), None)
        if pool.sources and self.settings.start is not None:
            rate = min(HIGHEST, max(lowest, flip_rate_of(self.settings.start)))
            return Round(pool, Noise.flips(rate), FlipRate(rate, np.inf, lowest))
        if flip_rate is not None:
            return Round(Pool({}), Noise.flips(flip_rate), FlipRate(flip_rate, np.inf, lowest))
        try:
            guess = first_flip_rate(self.learner, lowest)
        except KeyboardInterrupt:
            return Round(Pool({}), Noise.flips(lowest), FlipRate(lowest, np.inf, lowest), interrupted=True)
        return Round(Pool({}), Noise.flips(guess), FlipRate(guess, np.inf, lowest))

    def _earlier(self) -> Pool:
        """The sources of an earlier model that may still be there: all pairs of their sensors are linked."""
        near, found = self.learner.near, {}
        for column, rate in columns_of(self.settings.start, self.table.data.sensors).items():
            together = set(column)
            forbidden = any(names <= together for names in self.learner.forbidden)
            if not forbidden and all(together <= near[sensor] | {sensor} for sensor in column):
                found[column] = Estimate(rate, np.inf)
        return Pool(dict(sorted(found.items())))

    def start_at_once(self, learned: Round) -> Start:
        """The known sources, then what was found, as a start for a search over all sensors at once."""
        known, pool = self.learner.known.sources, learned.pool.sources
        sources = {column: pool.get(column, given) for column, given in known.items()} | dict(pool)
        rate = np.array([estimate.rate for estimate in sources.values()], float)
        free = np.array([column not in self.learner.fixed for column in sources], dtype=bool)
        noise = np.empty(0) if learned.flip_rate is None else np.array([learned.flip_rate.rate])
        return Start(as_sets(sources), rate, free, noise, len(known))

    def result(self, learned: Round) -> Fit:
        """The model of the whole table, with its errors."""
        sources = self._sources(learned.pool)
        mixing = np.zeros((self.table.data.n_sensors, len(sources)), dtype=bool)
        for number, column in enumerate(sources):
            mixing[list(column), number] = True
        rate = np.array([estimate.rate for estimate in sources.values()])
        error = np.array([estimate.error for estimate in sources.values()])
        given = self.settings.noise
        noise = given if isinstance(given, Noise) else learned.noise
        model, errors = self.table.model(mixing, -np.expm1(-rate), error * np.exp(-rate), noise)
        return Fit(
            model,
            method="likelihood",
            n_samples=self.table.data.n_samples,
            probability_error=errors,
            converged=learned.settled,
            diagnostics={"noise": _noise_report(learned.flip_rate)}
            | ({"interrupted": True} if learned.interrupted else {}),
        )

    def _sources(self, pool: Pool) -> dict[Column, Estimate]:
        """The known sources in their order, then those found that are not too rare."""
        known = {column: pool.sources.get(column, given) for column, given in self.learner.known.sources.items()}
        floor = -np.log1p(-(self.settings.min_probability or 0.0))
        found = {c: e for c, e in sorted(pool.sources.items()) if c not in known and e.rate >= floor}
        return known | found


def _known_pool(settings: Settings, place: dict[str, int]) -> tuple[Pool, frozenset[Column]]:
    """The known sources, cut down to sensors that vary, and those of them whose rate is given."""
    sources, fixed = {}, set()
    for source in settings.known:
        column = tuple(sorted(place[name] for name in source.sensors if name in place))
        given = source.probability
        if column in sources:
            raise SettingError(
                f"two known sources reach {', '.join(source.sensors)} and otherwise only sensors that are always on; "
                "give one of them"
            )
        sources[column] = (
            Estimate(FIRST_SOURCE_RATE, np.inf) if given is None else Estimate(float(-np.log1p(-given)), 0.0)
        )
        if given is not None:
            fixed.add(column)
    return Pool(sources), frozenset(fixed)


def _check_settings(settings: Settings, n_sensors: int) -> None:
    many = f"{n_sensors} sensors vary, more than {LATTICE_SENSORS}"
    if settings.prior is not None:
        raise LimitError(f"{many}, so a Beta prior cannot be used; leave it out or watch fewer sensors")
    if settings.n_sources is not None and n_sensors > WORD:
        raise LimitError(
            f"{n_sensors} sensors vary, more than {WORD}, so the number of sources cannot be given; leave it out"
        )
    if settings.noise in (TWO_RATES.name, PER_SENSOR.name) and n_sensors > WORD:
        raise LimitError(
            f"{n_sensors} sensors vary, more than {WORD}, so misses and false alarms can be given, but not estimated; "
            "give the rates, or estimate one flip rate for all"
        )


def _noise_report(flip_rate: FlipRate | None) -> dict[str, object]:
    if flip_rate is None:
        return {"estimated": False}
    low, high = probability_interval(flip_rate.rate, flip_rate.error)
    if flip_rate.rate <= flip_rate.lowest:
        low, high = 0.0, min(1.0, flip_rate.rate + HIGHEST_AT_FLOOR * flip_rate.error)
    return {"estimated": True, "flip_rate": flip_rate.rate, "error": flip_rate.error, "interval": [low, high]}


LEAST_LOG_ODDS = -20.0  # of a flip rate: far below what any table can show
CURVATURE_STEP = 1e-3  # in the log odds, for a second difference


def rate_of_noise_alone(ones: NDArray[np.float64], observed: NDArray[np.float64]) -> tuple[float, float]:
    """The flip rate of sensors that show noise and nothing else, given that each of them varies; and its error.

    Sensors that never change are left out of a table. Of few rows, the others are then a selection: a sensor shows both
    values in T rows with probability 1 - (1 - q)^T - q^T only, by which its likelihood is divided. With ten rows and
    q = 0.1, the plain share of ones in the sensors that vary is half as much again.

    >>> rows = np.random.default_rng(0).random((10, 5000)) < 0.1
    >>> ones = rows.sum(axis=0)[rows.any(axis=0)].astype(float)
    >>> rate, error = rate_of_noise_alone(ones, np.full(ones.size, 10.0))
    >>> round(float(ones.mean() / 10), 3), abs(rate - 0.1) < 3 * error
    (0.154, True)
    """

    def cost(log_odds: float) -> float:
        q = expit(log_odds)
        varies = -np.expm1(observed * np.log1p(-q)) - q**observed
        shown = ones.sum() * np.log(q) + (observed - ones).sum() * np.log1p(-q)
        return float(np.log(varies).sum() - shown)

    best = float(minimize_scalar(cost, bounds=(LEAST_LOG_ODDS, 0.0), method="bounded").x)
    above, below = cost(best + CURVATURE_STEP), cost(best - CURVATURE_STEP)
    curvature = (above - 2 * cost(best) + below) / CURVATURE_STEP**2
    rate = float(expit(best))
    return rate, rate * (1 - rate) / math.sqrt(curvature) if curvature > 0 else math.nan


def with_noise_alone(fit: Fit, table: Varying) -> Fit:
    """The fit with the flip rate of sensors that show noise only, where no source was found in those that vary."""
    if fit.model.mixing[table.places].any() or "flip_rate" not in fit.diagnostics["noise"]:
        return fit
    rate, error = rate_of_noise_alone(table.data.ones(), table.data.times_observed())
    noise = fit.diagnostics["noise"] | {"flip_rate": rate, "error": error}
    noise["interval"] = list(probability_interval(rate, error))
    return replace(fit, model=fit.model.with_noise(Noise.flips(rate)), diagnostics={**fit.diagnostics, "noise": noise})
