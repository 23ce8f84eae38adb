"""The learner people use: penalised likelihood, unknown noise, the number of sources found by itself."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from bica.data.observations import Observations
from bica.data.pairs import own_order
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.errors import BicaWarning, DataError, LimitError
from bica.estimate.averaging import averaged
from bica.estimate.blocks.learn import WideTask, with_noise_alone
from bica.estimate.blocks.rounds import Round
from bica.estimate.edges import (
    LEAST_SENSORS,
    LossyRival,
    RivalOfMany,
    cut_short,
    lossy_as_fit,
    refutes_sure_edges,
    start_of_misses,
)
from bica.estimate.lattice import HIGHEST, LATTICE_SENSORS, Cells, NoiseShape, Surface, lowest_rate
from bica.estimate.lossy.families import with_families
from bica.estimate.lossy.learn import learn_lossy
from bica.estimate.rows.lossy import learn_lossy_rows
from bica.estimate.rows.states import fit_on_rows, fit_with_own_rates, from_rows
from bica.estimate.search import (
    ALL_SETS,
    BETTER,
    BY_GAIN,
    BY_SLOPE,
    SourceSearch,
    Start,
    add,
    add_several,
    drop,
    drowns_in_splinters,
    has_splinters,
    look_closer,
    single,
)
from bica.estimate.settings import WORD, Settings, Varying, as_sets, columns_of, flip_rate_of
from bica.estimate.temporal.learn import IN_TIME, check_in_time, revised_in_time
from bica.estimate.whole import FIRST_PROBABILITY, FLIPS, IN_DOUBT, PER_SENSOR, Rival, Route, WholeTask, noise_in_order
from bica.kernels.bits import all_observed
from bica.kernels.compiled import A_WIDE_FIT, expect
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import TimeUp, is_time_up, time_limited

AT_ONCE = 16  # sensors whose exact likelihood is a matter of seconds
INTERRUPTED = "interrupted: this is the best model so far, not the final one"
TIME_UP = "the time limit is over: this is the best model so far, not the final one"


@dataclass(frozen=True, kw_only=True)
class Likelihood(Settings):
    """Learn sources and noise by the penalised likelihood: exact for few sensors, from blocks and rows for many.

    >>> from bica import Noise, OrMixture
    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], Noise.flips(0.05))
    >>> data = PatternCounts.of(truth.sample(4000, np.random.default_rng(1)))
    >>> found = Likelihood().fit(data, np.random.default_rng(0)).model
    >>> found.mixing.astype(int).tolist(), found.probability.round(1).tolist()
    ([[1, 1], [1, 0]], [0.5, 0.2])
    """

    learns_from_sums: ClassVar[bool] = True  # of partitions: rows in memory are needed up to 64 sensors only
    noise: Noise | Literal["auto", "estimate", "two-rates", "per-sensor"] = "auto"  # the rows choose
    edges: Literal["auto", "sure", "lossy"] = "auto"  # the rows choose where the noise is left to them, too

    def fit(self, data: Observations, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; Ctrl-C keeps the best so far. Chance is used for tables of many sensors only."""
        with nullcontext() if self.time_limit is None else time_limited(self.time_limit):
            fit = self._fit(data, rng)
            if "interrupted" in fit.diagnostics:
                fit = self._marked(fit)
        if "interrupted" in fit.diagnostics:
            _warn_of_its_end(fit)
        return fit

    def _fit(self, data: Observations, rng: np.random.Generator) -> Fit:
        data = data.counts() if data.varying().size <= WORD else data  # where few sensors vary, rows are needed
        table = Varying.of(data, self.known, self.forbidden)
        largest = AT_ONCE if self.prior is None else LATTICE_SENSORS  # a prior is for the lattice alone
        try:
            if table.places.size > largest:
                return self._fit_in_own_order(data, rng)
            fit = self._fit_at_once(table, self.edges_to_learn())
            in_doubt = fit.diagnostics.get("lead", np.inf) <= IN_DOUBT and "interrupted" not in fit.diagnostics
            return averaged(table, self, fit, lattice_task) if in_doubt else fit
        except TimeUp:
            return nothing_found(table, self.noise)

    def _marked(self, fit: Fit) -> Fit:
        """The fit that was interrupted, with the time limit among its diagnostics if that ended it."""
        return replace(fit, diagnostics={**fit.diagnostics, "time_limit": self.time_limit}) if is_time_up() else fit

    def _fit_at_once(self, table: Varying, edges: str) -> Fit:
        """From the exact likelihood of all sensors: with sure edges, with lossy ones, or with whichever is better."""
        n_fillings = _n_fillings(table.whole.counts(), table.data.n_sensors)
        rival = LossyRival(table, partial(learn_lossy, table, self), partial(with_families, table))
        if edges == "lossy":
            if n_fillings > LOSSY_CELLS:
                raise LimitError(_too_many_fillings(n_fillings, LOSSY_CELLS))
            return rival.fit()
        alone = self.noise == FLIPS.name or isinstance(self.noise, Noise)
        if alone or table.data.n_sensors < LEAST_SENSORS or n_fillings > LOSSY_CELLS:
            return fit_on_lattice(table, self)
        rival.may_win = edges == "auto"
        sure = fit_on_lattice(table, self, rival=rival)
        if rival.may_win:
            return rival.chosen(sure) if rival.was_asked else sure
        asked = self.edges == "sure" and replace(self, edges="auto").edges_to_learn() == "auto"
        return rival.compared_with(sure) if asked and rival.was_asked else sure

    def fit_in_order(self, rows: Rows, rng: np.random.Generator) -> Fit:
        """Learn from rows that are consecutive slots: without their order first, then with it.

        ``diagnostics["persistence"]`` says for how many slots on average each source stays on (None: always), and
        ``diagnostics["in_time"]`` what the order changed. Ctrl-C keeps the best so far, marked as interrupted.
        """
        check_in_time(self)
        with time_limited(self.time_limit):
            fit = replace(self, noise="estimate" if self.noise == "auto" else self.noise).fit(rows.counts(), rng)
            if "interrupted" not in fit.diagnostics:
                fit = revised_in_time(fit, rows, self)
            if "interrupted" in fit.diagnostics:
                fit = self._marked(fit)
        has_warned = fit.method != IN_TIME and "time_limit" not in fit.diagnostics  # the fit without order
        if "interrupted" in fit.diagnostics and not has_warned:
            _warn_of_its_end(fit)
        return fit

    def _fit_in_own_order(self, data: Observations, rng: np.random.Generator) -> Fit:
        """From blocks of the columns in an order that the rows give them, so that the order of the table is no matter.

        Which neighbours make a block where there are too many, which of equal steps comes first and what chance does
        all go by the numbers of the columns.
        """
        order = own_order(data)
        ordered = self
        if isinstance(self.noise, Noise):
            self.noise.rates(data.n_sensors)  # which refuses rates of other sensors
            ordered = replace(self, noise=self.noise.of_sensors(order))
        table = Varying.of(data.project(order.tolist()), self.known, self.forbidden)
        fit = with_noise_alone(ordered._fit_from_blocks(table, rng), table)
        back = np.argsort(order)
        reach_error = None if fit.reach_error is None else fit.reach_error[back]
        leak_error = None if fit.leak_error is None else fit.leak_error[back]
        noise = noise_in_order(fit.diagnostics["noise"], np.argsort(order[table.places]))
        return replace(
            fit,
            model=fit.model.of_sensors(back),
            reach_error=reach_error,
            leak_error=leak_error,
            diagnostics={**fit.diagnostics, "noise": noise},
        )

    def _fit_from_blocks(self, table: Varying, rng: np.random.Generator) -> Fit:
        """Blocks and rows find sure edges; where these are refuted, lossy ones are learned, and the rows choose."""
        edges = self.edges_to_learn()
        if edges == "lossy":
            return lossy_as_fit(table, learn_lossy_rows(table, self, rng))
        expect(A_WIDE_FIT)
        task = WideTask.of(table, self)
        learned = task.learn(rng)
        if edges == "sure" or self.known:
            return self._all_at_once(table, task, learned)
        rival: RivalOfMany | None = None
        quick = table.data.n_sensors <= LATTICE_SENSORS  # then blocks, which stop early, are only a start
        for at_once in (True,) if quick else (False, True):
            fit = self._all_at_once(table, task, learned, rival) if at_once else task.result(learned)
            if "interrupted" in fit.diagnostics:
                return fit
            complete = not self.min_probability  # sensors whose rare sources were left out refute any edges
            try:
                if rival is None and complete and refutes_sure_edges(table, fit):
                    misses = partial(fit_with_own_rates, table, self)
                    rival = RivalOfMany(table, learn_lossy_rows(table, self, rng), misses)
                if rival is not None and (at_once or rival.found.interrupted or rival.is_unlike_sure):
                    fit = rival.chosen(fit)
            except KeyboardInterrupt:
                return cut_short(fit)
            if fit.model.has_lossy_edges or "interrupted" in fit.diagnostics:
                break
        return fit

    def _all_at_once(self, table: Varying, task: WideTask, learned: Round, rival: RivalOfMany | None = None) -> Fit:
        """All sensors at once have the last word where that is possible; where blocks agree, only if it is quick."""
        if learned.interrupted:
            return task.result(learned)
        if table.data.n_sensors > WORD:
            return task.result(task.looked_through(learned, np.random.default_rng(0)))
        start, asked = task.start_at_once(learned), self.noise in ("two-rates", "per-sensor")
        decided = learned.unanimous and not asked and self.n_sources is None
        small = table.data.n_sensors <= LATTICE_SENSORS and table.data.counts().observed is None
        n_cells = 2.0**table.data.n_sensors if small else np.inf
        if decided and len(table.data.counts().weights) > MANY_ROWS * n_cells:
            return fit_on_lattice(table, replace(self, noise="estimate" if self.noise == "auto" else self.noise), start)
        most_states = np.inf if decided else CELLS_PER_STATE * n_cells
        fit = fit_on_rows(
            table, self, start, briefly=decided, most_states=most_states, until=None if rival is None else rival.stops
        )
        if fit is None and table.data.n_sensors <= LATTICE_SENSORS and not decided:
            return fit_on_lattice(table, self, start)
        if fit is None and self.noise == PER_SENSOR.name:
            fit = self._from_lossy(table, task.result(learned))
        if fit is None and asked:
            raise LimitError(
                "these rows have too many hidden states to estimate misses and false alarms apart; give the rates, or "
                "estimate one flip rate for all"
            )
        if fit is None and self.n_sources is not None:
            raise LimitError("these rows have too many hidden states to look for so many sources; leave the number out")
        return task.result(learned) if fit is None else fit

    def _from_lossy(self, table: Varying, so_far: Fit) -> Fit | None:
        """With rates of every sensor, from lossy sources on: these have far fewer hidden states than splinters."""
        if self.known or self.forbidden or self.n_sources is not None:
            return None
        try:
            lossy = learn_lossy_rows(table, self, np.random.default_rng(0))
            return cut_short(so_far) if lossy.interrupted else fit_with_own_rates(table, self, start_of_misses(lossy))
        except KeyboardInterrupt:
            return cut_short(so_far)


def _warn_of_its_end(fit: Fit) -> None:
    """Warn that Ctrl-C or its own time limit ended a fit; a limit around several fits is not the matter of one."""
    if not is_time_up():
        warnings.warn(INTERRUPTED if "time_limit" not in fit.diagnostics else TIME_UP, BicaWarning, stacklevel=3)


def nothing_found(table: Varying, noise: Noise | str) -> Fit:
    """The answer where the time was too short for any other: the known sources, and noise that explains all rows."""
    data, known = table.data, table.known
    mixing = np.array([[name in source.sensors for source in known] for name in data.sensors], dtype=bool)
    probability = np.array([source.probability or FIRST_PROBABILITY for source in known], dtype=float)
    share = float(np.mean(data.ones() / np.maximum(data.times_observed(), 1.0))) if data.n_sensors else 0.0
    given = noise if isinstance(noise, Noise) else Noise.flips(min(HIGHEST, max(lowest_rate(data), share)))
    model, _ = table.model(
        mixing.reshape(data.n_sensors, len(known)), probability, np.full(probability.size, np.nan), given
    )
    return Fit(
        model,
        method="likelihood",
        n_samples=table.whole.n_samples,
        converged=False,
        diagnostics={"noise": {"estimated": False}, "interrupted": True},
    )


LOSSY_CELLS = 2**20  # the same for lossy edges, where each is read once per edge and step


def earlier_start(task: WholeTask, model: OrMixture) -> Start | None:
    """The known sources and those of an earlier model, to search from; None where it has no others."""
    table = task.table
    rates = columns_of(model, table.data.sensors)
    sets, rate = as_sets(rates), np.array(list(rates.values()))
    fresh = ~np.isin(sets, table.known_sets) & ~(table.forbidden_sets & ~sets[:, None] == 0).any(axis=1)
    if not fresh.any():
        return None
    first = task.start()
    return Start(
        np.concatenate([first.sources, sets[fresh]]),
        np.concatenate([first.rate, rate[fresh]]),
        np.concatenate([first.free, np.ones(fresh.sum(), dtype=bool)]),
        np.clip([flip_rate_of(model)], lowest_rate(table.data), HIGHEST),
        first.n_known,
    )


LATTICE_CELLS = 2**26  # patterns that rows with missing cells may stand for, all together
WORK_AT_ONCE = 2e11  # half a minute at most: crowded tables of 20 sensors were left half done with a twentieth of it
CELLS_PER_STATE = 0.03  # of a lattice: with fewer hidden states of all rows than that, lists of them are quicker
MANY_ROWS = 0.01  # distinct rows in a cell: from here on lists take more time and memory, even of a brief search
NOTED = 1e-3  # nats: a smaller rise of the score is none on the way from a good start
CLOSER_LOOK = 16  # sensors up to which the gain of thousands of sets is a matter of seconds
CLEAR_NOISE = 1e-3  # a flip rate below which known noise explains too little to start a search from


def fit_on_lattice(
    table: Varying,
    settings: Settings,
    start: Start | None = None,
    rival: Rival | None = None,
) -> Fit:
    """The fit of a search that starts from no source or as told; Ctrl-C keeps the best so far."""
    task = lattice_task(table, settings, well_begun=start is not None)
    if start is None and settings.start is not None:
        start = earlier_start(task, settings.start)
    search = task.search(start)
    if isinstance(settings.noise, Noise):
        return task.learned(search) if _is_clear(settings.noise) else _after_one_flip_rate(task, search)
    try:
        if start is None and (table.data.ones() / table.data.times_observed() >= BUSY).any():
            search = _with_busy_sensors(task, search)
        if start is None:  # a search that meets a rival stops at splinters
            search.run(task.route.first_moves, until=None if rival is None else drowns_in_splinters)
            noise = search.best.fit.point.noise
            leaves_much = noise.size and noise.min() >= MUCH_NOISE
            if leaves_much and not (rival is not None and has_splinters(search)):
                search = _from_less_noise(task, search)
    except KeyboardInterrupt:
        return task.result(search, FLIPS, interrupted=True)
    return task.learned(search, rival)


def _after_one_flip_rate(task: WholeTask, search: SourceSearch) -> Fit:
    """The fit with given noise that explains too little to start from: one flip rate finds the sources first."""
    try:
        search.run()
    except KeyboardInterrupt:
        return task.result(_with_known_noise(task, search), FLIPS, interrupted=True)
    return task.learned(_with_known_noise(task, search))


BUSY = 0.9  # share of the rows from which on a sensor is nearly always on
BUSY_FLIP_RATE = 0.05  # at which a search with lone sources for such sensors starts; 0.2 takes ten times as long
MUCH_NOISE = 0.25  # a flip rate at which noise may only stand for sources that were not found


def _with_busy_sensors(task: WholeTask, search: SourceSearch) -> SourceSearch:
    """The search or, if that leads further, one that starts with a source for each sensor that is nearly always on.

    Noise alone explains a sensor that is on in 99 % of the rows so badly that the first sources must serve that sensor,
    whatever else they reach, and few of them are ever mended.
    """
    data, start = task.table.data, task.start()
    share = data.ones() / data.times_observed()
    sets = np.setdiff1d(single(data.n_sensors)[share >= BUSY], [*start.sources, *task.table.forbidden_sets])
    if not sets.size:
        return search
    rate = -np.log1p(-np.minimum(share[np.log2(sets).astype(np.int64)], HIGHEST_SHARE))
    sources, rates = np.append(start.sources, sets), np.append(start.rate, rate)
    free = np.append(start.free, np.ones(sets.size, bool))
    other = task.search(Start(sources, rates, free, np.array([BUSY_FLIP_RATE]), start.n_known))
    for each in (other, search):
        each.run(task.route.first_moves)
        if not has_splinters(each):  # which tell of other noise or lossy edges, and make each move slow
            each.run()
    return other if other.best.score > search.best.score else search


def _from_less_noise(task: WholeTask, search: SourceSearch) -> SourceSearch:
    """A search that left much to noise or, if that leads further, one that starts from frequent rows.

    A source that is always on, with sensors that err in a third of the rows, can be a trap: its rate has no slope.
    """
    other = task.search(_from_frequent_rows(task))
    for each in (other, search):
        each.run()
    return other if other.best.score > search.best.score else search


def _from_frequent_rows(task: WholeTask) -> Start:
    """The known sources, the most frequent rows as sources that are on as often, and little noise."""
    start, data = task.start(), task.table.data.counts()
    rows = data.patterns[:, 0].view(np.int64)
    allowed = ~np.isin(rows, start.sources) & (rows != 0)
    for together in task.table.forbidden_sets:
        allowed &= rows & together != together
    if data.observed is not None:
        allowed &= (data.observed == all_observed(data.n_sensors)).all(axis=1)
    places = np.flatnonzero(allowed)
    places = places[np.argsort(-data.weights[places], kind="stable")][: 2 * data.n_sensors]
    rate = -np.log1p(-np.minimum(data.weights[places] / data.n_samples, HIGHEST_SHARE))
    return Start(
        np.append(start.sources, rows[places]),
        np.append(start.rate, rate),
        np.append(start.free, np.ones(places.size, bool)),
        np.array([BUSY_FLIP_RATE]),
        start.n_known,
    )


HIGHEST_SHARE = 1 - 1e-6  # of a source to start with: a rate must be finite


def lattice_task(table: Varying, settings: Settings, *, well_begun: bool = False) -> WholeTask:
    """The task on the lattice: a search by slope and, up to 16 sensors, a closer look at what slope may have missed.

    Beyond, a search that is ``well_begun`` with the answer of blocks compares gains at once.
    """
    _check_size(table.whole.counts(), table.data.n_sensors)
    shape, cells = _first_shape(table, settings), Cells.of(table.data.counts())
    pool = np.arange(1, 2**cells.n_sensors)
    if cells.n_sensors > ALL_SETS:
        pool = from_rows(cells.cells, cells.weights, cells.n_sensors)
    surface = partial(Surface, cells, forbidden=table.forbidden_sets)
    first = surface(shape)
    if well_begun and cells.n_sensors > CLOSER_LOOK:
        route = Route(first, surface, BY_GAIN, (add_several, drop), pool, NOTED, exact=False, most_work=WORK_AT_ONCE)
        return WholeTask(table, settings, route)
    moves = (*BY_SLOPE, look_closer) if cells.n_sensors <= CLOSER_LOOK else BY_SLOPE
    return WholeTask(table, settings, Route(first, surface, moves, (add, drop), pool, BETTER, exact=True))


def _first_shape(table: Varying, settings: Settings) -> NoiseShape:
    """The known noise if it is high enough to explain odd rows, else one unknown flip rate."""
    n_sensors, lowest = table.data.n_sensors, lowest_rate(table.data)
    if isinstance(settings.noise, Noise) and _is_clear(settings.noise):
        return _known_shape(table, settings.noise)
    if n_sensors < 2:  # with a single sensor, noise looks like a source
        return NoiseShape.known(Noise.flips(lowest), n_sensors)
    return NoiseShape.shared_flips(n_sensors, lowest)


def _known_shape(table: Varying, noise: Noise) -> NoiseShape:
    """The noise that the user gave, of the sensors that vary."""
    noise.rates(table.whole.n_sensors)  # an error unless there is one value per sensor
    return NoiseShape.known(noise.of_sensors(table.places), table.data.n_sensors)


def _is_clear(noise: Noise) -> bool:
    return bool(min(np.min(noise.false_alarm), np.min(noise.miss)) >= CLEAR_NOISE)


def _with_known_noise(task: WholeTask, first: SourceSearch) -> SourceSearch:
    """A search from there on with the noise that the user gave, which may be none."""
    assert isinstance(task.settings.noise, Noise)
    fit, shape = first.best.fit, _known_shape(task.table, task.settings.noise)
    start = Start(fit.point.sources, fit.point.rate, fit.free, np.empty(0), first.n_known)
    return task.search(explaining(task.route.surface(shape), start), shape)


def explaining(surface: Surface, start: Start) -> Start:
    """The start with sources added until every observed row is possible, as each must be without noise."""
    while True:
        probability = surface.at(start.sources, start.rate, start.noise).cell_probability
        impossible = np.flatnonzero(probability <= 0)
        if not impossible.size:
            return start
        row = int(surface.cells.cells[impossible[np.argmax(surface.cells.weights[impossible])]])
        inside = start.sources[start.sources & ~row == 0]
        rest = row & ~int(np.bitwise_or.reduce(inside, initial=0))
        source = rest if surface.allows(rest) else row
        if not surface.allows(source):
            raise DataError("without noise, the sources that are allowed cannot explain every row; allow some noise")
        start = replace(
            start,
            sources=np.append(start.sources, source),
            rate=np.append(start.rate, 1.0 / surface.cells.n_samples),
            free=np.append(start.free, True),
        )


def _check_size(data: PatternCounts, n_varying: int) -> None:
    if n_varying > LATTICE_SENSORS:
        raise LimitError(
            f"{n_varying} sensors vary, but the exact likelihood is limited to {LATTICE_SENSORS}; "
            'watch fewer sensors, or use method "findbica"'
        )
    n_fillings = _n_fillings(data, n_varying)
    if n_fillings > LATTICE_CELLS:
        raise LimitError(_too_many_fillings(n_fillings, LATTICE_CELLS))


def _too_many_fillings(n_fillings: float, limit: int) -> str:
    return (
        f"the missing cells of the distinct rows can be filled in {n_fillings:.2g} ways, more than the limit of "
        f"{limit:.2g}; drop the sensors or the rows with the most gaps"
    )


def _n_fillings(data: PatternCounts, n_varying: int) -> float:
    """How many patterns the rows stand for: 2^k for each distinct row with k missing cells."""
    if data.observed is None:
        return 2.0**n_varying
    n_missing = data.n_sensors - np.bitwise_count(data.observed).sum(axis=1)
    return float(np.exp2(np.minimum(n_missing, n_varying)).sum())
