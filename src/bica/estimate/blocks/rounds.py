"""Learning a wide table from its blocks: learn all blocks, vote, move the flip rate, repeat until nothing changes.

Windows, which are larger, have the last word on crowded sensors.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.estimate.blocks.learner import (
    LARGEST,
    WHOLE,
    Block,
    BlockLearner,
    Column,
    Estimate,
    LearnedBlock,
    Links,
    Plan,
    Pool,
)
from bica.estimate.lattice import HIGHEST
from bica.estimate.rows.states import PartFit, fit_part
from bica.estimate.search import Start
from bica.estimate.settings import Settings, Varying
from bica.estimate.whole import FIRST_FLIP_RATE
from bica.model.noise import Noise
from bica.progress import in_threads, n_threads, tracked

N_BLOCKS = 4  # that suggest a first flip rate
SENSORS = 8  # in such a block; fewer reveal little about the noise
LEAST_PILOT_RATE = 0.002  # at which these blocks are learned: with less, every odd row becomes a source
FALL = 0.25  # of the rate before: farther down, a step is no longer to be trusted
NEAR = 0.05  # share of a rate to start from by which it may still move


def first_flip_rate(learner: BlockLearner, lowest: float) -> float:
    """The flip rate at which a few blocks settle, coming from a high one at which noise explains every row."""
    blocks = [Block(sensors, 0) for sensors in pilot_blocks(learner.links)]
    learner.data.fetch([block.sensors for block in blocks])
    n_sensors, pool, now = sum(block.sensors.size for block in blocks), Pool({}), FlipRate(FIRST_FLIP_RATE, 0.0, lowest)
    for _ in tracked(range(MOST_ROUNDS), "noise", MOST_ROUNDS):
        before = replace(now, rate=max(now.rate, LEAST_PILOT_RATE))
        learned = [learner.learn(block, Noise.flips(before.rate), pool) for block in blocks]
        pool = Pool({column: estimate for one in learned for column, estimate in one.sources.items()})
        now = shifted(before, learned, n_sensors)
        if before.rate > LEAST_PILOT_RATE:
            now = replace(now, rate=max(now.rate, FALL * before.rate))
        if abs(now.rate - before.rate) <= NEAR * before.rate or now.rate < before.rate == LEAST_PILOT_RATE:
            break
    return now.rate


def pilot_blocks(links: Links) -> list[NDArray[np.int64]]:
    """Disjoint blocks of sensors with many links; sensors with too many links for one block come last.

    >>> [block.tolist() for block in pilot_blocks(Links((np.array([1]), np.array([0]), np.array([], np.int64))))]
    [[0, 1, 2]]
    """
    degree = [near.size for near in links.neighbours]
    by_degree = sorted(range(len(degree)), key=lambda i: -degree[i] if degree[i] < WHOLE else 0)
    taken: set[int] = set()
    blocks: list[NDArray[np.int64]] = []
    block: list[int] = []
    for sensor in by_degree:
        more = [i for i in (sensor, *links.neighbours[sensor].tolist()) if i not in taken]
        block += more[: max(0, WHOLE - len(block))]
        taken.update(block)
        if len(block) >= SENSORS:
            blocks.append(np.array(block, np.int64))
            block = []
        if len(blocks) == N_BLOCKS:
            return blocks
    return blocks or [np.array(block, np.int64)]


MOST_ROUNDS = 10
WAVES = 4  # of blocks in a first round that only leads to a search over all sensors
LEAST_FIRST_FLIP_RATE = 0.01  # below it, every odd row would get a source of its own; later rounds may go lower
SETTLED = 0.1  # standard errors by which a settled flip rate may still move
NOTICED = 2.0  # standard deviations of one sensor's share of flips: a larger move may call for other sources
LONGEST_STEP = 4, 0.01  # a step of the flip rate ends at 4 times its value plus 0.01


@dataclass(frozen=True, slots=True)
class FlipRate:
    """The flip rate that all sensors share, where it is estimated."""

    rate: float
    error: float
    lowest: float


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """The sources and the noise after a round."""

    pool: Pool
    noise: Noise
    flip_rate: FlipRate | None  # None: the noise is known
    settled: bool = False
    unanimous: bool = False  # no two blocks contradicted each other
    steady: bool = False  # every block ended with the sources it began with: only rates remain to be fitted
    interrupted: bool = False


def learn_blocks(learner: BlockLearner, start: Round, n_jobs: int, *, to_the_end: bool = True) -> Round:
    """The last of several rounds, in which sources and flip rate settle; Ctrl-C keeps the last complete round.

    Unless it goes to the end, it stops as soon as blocks contradict each other: others will settle it.
    """
    now = start
    for _ in range(MOST_ROUNDS):
        try:
            first = not now.pool.sources
            now = next_round(learner, now, n_jobs, first=first, n_waves=1 if to_the_end or not first else WAVES)
        except KeyboardInterrupt:
            return replace(now, settled=False, interrupted=True)
        if now.settled or not (to_the_end or now.unanimous):
            break
    return now


def next_round(learner: BlockLearner, now: Round, n_jobs: int, *, first: bool, n_waves: int = 1) -> Round:
    """A new pool, elected by all blocks that were learned from the present one, and the flip rate moved.

    The sensors of every source found before are linked, so that the blocks of this round contain them. With several
    waves of blocks, those of later waves begin with what earlier ones elected, which is quicker than from nothing.
    """
    learner = learner.linked(now.pool)
    plan = Plan.of(learner.links)
    noise = now.noise.at_least(LEAST_FIRST_FLIP_RATE) if first else now.noise
    blocks = [*plan.blocks, *(() if first else lone_blocks(plan.crowded, now.pool))]
    learner.data.fetch([block.sensors for block in blocks])
    learn = partial(learner.learn, noise=noise, search=not now.steady)
    learned = list(tracked(_in_waves(learn, blocks, now.pool, n_waves, n_jobs), "blocks", len(blocks)))
    pool = Pool(dict(sorted(({**elected(learned).sources, **undecided(now.pool, blocks)}).items())))
    if first and pool.sources:
        return replace(now, pool=pool, unanimous=unanimous(learned))
    flip_rate = None if now.flip_rate is None else shifted(now.flip_rate, learned, len(learner.links.neighbours))
    settled = pool.sources.keys() == now.pool.sources.keys()
    agreed, steady = unanimous(learned), settled and all(one.settled for one in learned)
    if flip_rate is not None and now.flip_rate is not None:
        moved = abs(flip_rate.rate - now.flip_rate.rate)
        settled &= moved <= SETTLED * flip_rate.error
        steady &= moved <= NOTICED * math.sqrt(now.flip_rate.rate / learner.data.n_samples)
        return Round(pool, Noise.flips(flip_rate.rate), flip_rate, settled, agreed, steady)
    return Round(pool, now.noise, None, settled, agreed, steady)


def _in_waves(
    learn: Callable[..., LearnedBlock], blocks: Sequence[Block], pool: Pool, n_waves: int, n_jobs: int
) -> Iterator[LearnedBlock]:
    """The blocks as they are learned, every so many-th of them in one wave."""
    learned: list[LearnedBlock] = []
    for wave in range(n_waves):
        for one in in_threads(partial(learn, start=pool), blocks[wave::n_waves], n_jobs):
            learned.append(one)
            yield one
        pool = elected(learned)


def lone_blocks(sensors: Iterable[int], pool: Pool) -> list[Block]:
    """Blocks for sensors with many neighbours: the sensor and one sensor of each of its sources, to find lone ones."""
    blocks = []
    for sensor in sensors:
        company: list[int] = []
        columns = sorted(pool.reaching.get(sensor, ()), key=lambda column: -pool.sources[column].rate)
        for column in columns:
            if len(column) > 1 and not set(company) & set(column):
                company.append(_least_shared(sensor, column, columns))
        blocks.append(Block(np.array([sensor, *company[: LARGEST - 1]], np.int64), 1, lone=True))
    return blocks


def _least_shared(sensor: int, column: Column, columns: Sequence[Column]) -> int:
    others = [other for other in column if other != sensor]
    return min(others, key=lambda other: sum(other in column for column in columns))


def elected(learned: Sequence[LearnedBlock]) -> Pool:
    """The sources found by at least half of the blocks that decide on them, each with its most precise estimate."""
    return Pool(
        {
            column: min(estimates, key=lambda estimate: estimate.error)
            for column, estimates, n_voters in votes(learned)
            if 2 * len(estimates) >= n_voters
        }
    )


def unanimous(learned: Sequence[LearnedBlock]) -> bool:
    """Whether every source found by any block was found by all blocks that decide on it."""
    return all(len(estimates) == n_voters for _, estimates, n_voters in votes(learned))


def votes(learned: Sequence[LearnedBlock]) -> Iterator[tuple[Column, list[Estimate], int]]:
    """Every source found, with its estimates and the number of blocks that decide on it."""
    deciding: dict[int, list[LearnedBlock]] = defaultdict(list)
    found: dict[Column, list[Estimate]] = defaultdict(list)
    for one in learned:
        for sensor in one.block.sensors[: one.block.n_anchor].tolist():
            deciding[sensor].append(one)
        for column, estimate in one.sources.items():
            found[column].append(estimate)
    for column, estimates in sorted(found.items()):
        voters = {id(one) for sensor in column for one in deciding[sensor] if one.block.decides(column)}
        yield column, estimates, len(voters)


def undecided(pool: Pool, blocks: Sequence[Block]) -> dict[Column, Estimate]:
    """The sources that no block decides: they are wide, or among sensors with too many neighbours."""
    anchored: dict[int, list[Block]] = defaultdict(list)
    for block in blocks:
        anchored[int(block.sensors[0])].append(block)
    return {
        column: estimate
        for column, estimate in pool.sources.items()
        if not any(block.decides(column) for sensor in column for block in anchored[sensor])
    }


def shifted(now: FlipRate, learned: Sequence[LearnedBlock], n_sensors: int) -> FlipRate:
    """The flip rate after one scoring step on all blocks together.

    A cell is in several blocks, so their information counts it several times; the error corrects for that.
    """
    slope = sum(one.flips.slope for one in learned)
    information = sum(one.flips.information for one in learned)
    if information <= 0.0:
        return now
    n_columns = sum(one.block.sensors.size for one in learned)
    times, plus = LONGEST_STEP
    rate = float(np.clip(now.rate + slope / information, now.lowest, min(HIGHEST, times * now.rate + plus)))
    return FlipRate(rate, float(np.sqrt(n_columns / (n_sensors * information))), now.lowest)


# A last look at crowded sensors of wide tables, through windows of up to 40 sensors.
#
# Sets with too many common neighbours for a block are left to the rows, which were made for wide sources and miss
# narrow ones where many overlap, as the links of a network do. A window holds some inner sensors and all their
# neighbours, so every source of an inner sensor lies inside it. Cut down to a window the table is again one of an OR
# mixture, small enough for a search on the hidden states of its rows (``rows/states.py``); the windows then vote, as
# blocks do.

WINDOW_ROUNDS = 3  # a source that one window finds is new to its neighbours
ROOMY = 24  # sensors up to which a window takes in more of the sensors asked for
LARGEST_WINDOW = 40  # sensors of any window: hidden states of more of them take seconds
WINDOW_WORK = 1e9  # in a window, about a second
MOST_WINDOWS = 60  # so that a look takes a minute or two at most


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Up to 40 sensors, and the inner ones among them, whose neighbours are all inside."""

    sensors: NDArray[np.int64]  # ascending
    inner: frozenset[int]

    def decides(self, column: Column) -> bool:
        """Whether this window decides if there is a source of these sensors."""
        return not self.inner.isdisjoint(column)


def windows_of(links: Links, sensors: Iterable[int]) -> list[Window]:
    """Windows such that each of these sensors is an inner one, but for those with 40 neighbours or more.

    >>> links = Links((np.array([1]), np.array([0, 2]), np.array([1])))
    >>> [(window.sensors.tolist(), sorted(window.inner)) for window in windows_of(links, [0, 1])]
    [([0, 1, 2], [0, 1])]
    """
    near = links.sets()
    hoods = {sensor: near[sensor] | {sensor} for sensor in sensors if len(near[sensor]) < LARGEST_WINDOW}
    waiting, windows = set(hoods), []
    while waiting:
        inside = set(hoods[max(waiting, key=lambda sensor: (len(hoods[sensor]), -sensor))])
        while (sensor := _next(hoods, waiting, inside)) is not None:
            inside |= hoods[sensor]
        inner = frozenset(sensor for sensor, hood in hoods.items() if hood <= inside)
        windows.append(Window(np.array(sorted(inside), np.int64), inner))
        waiting -= inner
    return windows


def _next(hoods: dict[int, frozenset[int]], waiting: set[int], inside: set[int]) -> int | None:
    """The sensor whose neighbours add least to a window, if there is room for them."""
    more = {sensor: len(hoods[sensor] - inside) for sensor in waiting if not hoods[sensor] <= inside}
    best = min(more, key=lambda sensor: (more[sensor], sensor), default=None)
    return best if best is not None and len(inside) + more[best] <= ROOMY else None


def looked_through(
    learner: BlockLearner, settings: Settings, now: Round, asked: Iterable[int], rng: np.random.Generator
) -> Round:
    """The round after windows around the sensors asked for have voted; Ctrl-C keeps what was there."""
    learner = learner.linked(now.pool)
    windows = windows_of(learner.links, asked)
    if not windows or len(windows) > MOST_WINDOWS:
        return now
    rows = learner.data.rows_to_learn_from(rng)
    if rows.n_samples < learner.data.n_samples:  # of a sample: passes over all rows had the last word already
        return now
    looks: dict[int, _Look] = {}
    try:
        for _ in range(WINDOW_ROUNDS):
            starts = [_start(learner, window, now) for window in windows]
            new = [k for k, start in enumerate(starts) if k not in looks or not looks[k].is_of(start)]
            look = partial(_look, rows, learner, settings)
            tasks = [(windows[k], starts[k]) for k in new]
            found = tracked(in_threads(look, tasks, n_threads(settings.n_jobs)), "windows", len(new))
            looks |= dict(zip(new, found, strict=True))
            after = replace(now, pool=_elected(looks.values(), now.pool))
            same = after.pool.sources.keys() == now.pool.sources.keys()
            now = _with_flip_rate(after, list(looks.values()))
            if same:
                break
    except KeyboardInterrupt:
        return replace(now, settled=False, interrupted=True)
    return replace(now, settled=now.settled and same)


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """What was found through a window; None if its rows have too many hidden states."""

    window: Window
    start: Start
    fit: PartFit | None

    def is_of(self, start: Start) -> bool:
        """Whether it began with these sources."""
        return np.array_equal(self.start.sources, start.sources)

    def sources(self) -> dict[Column, Estimate]:
        """The sources that the window decides."""
        if self.fit is None:
            return {}
        found: dict[Column, Estimate] = {}
        for inside, rate, error in zip(self.fit.sources, self.fit.rate.tolist(), self.fit.error.tolist(), strict=True):
            column = tuple(self.window.sensors[inside >> np.arange(self.window.sensors.size) & 1 == 1].tolist())
            if self.window.decides(column):
                found[column] = Estimate(rate, error)
        return found


def _start(learner: BlockLearner, window: Window, now: Round) -> Start:
    """The sources that reach into the window, cut down to it, known ones first."""
    known = learner.known
    own = Pool({column: estimate for column, estimate in now.pool.sources.items() if column not in known.sources})
    fixed = Pool({column: known.sources[column] for column in known.sources if column in learner.fixed})
    free = Pool({c: now.pool.sources.get(c, given) for c, given in known.sources.items() if c not in learner.fixed})
    parts = [pool.restricted_to(window.sensors) for pool in (fixed, free, own)]
    n_fixed, n_known = parts[0][0].size, parts[0][0].size + parts[1][0].size
    sets, rate = (np.concatenate(halves) for halves in zip(*parts, strict=True))
    first = np.sort(np.unique(sets, return_index=True)[1])
    noise = np.empty(0) if now.flip_rate is None else np.array([now.flip_rate.rate])
    return Start(sets[first], rate[first], first >= n_fixed, noise, int((first < n_known).sum()))


def _look(rows: PatternCounts, learner: BlockLearner, settings: Settings, task: tuple[Window, Start]) -> _Look:
    window, start = task
    inside = frozenset(window.sensors.tolist())
    forbidden = [[rows.sensors[i] for i in sorted(names)] for names in learner.forbidden if names <= inside]
    table = Varying.of(rows.counts_of(window.sensors), (), forbidden)
    noise = settings.noise.of_sensors(window.sensors) if isinstance(settings.noise, Noise) else settings.noise
    alone = replace(settings, known=(), noise=noise, n_sources=None, min_probability=None, time_limit=None)
    return _Look(window, start, fit_part(table, alone, start, learner.cost, WINDOW_WORK))


def _elected(looks: Iterable[_Look], pool: Pool) -> Pool:
    """The sources found by at least half of the windows that decide on them, and those that no window decides."""
    seen = [(look.window, look.sources()) for look in looks if look.fit is not None]
    found: dict[Column, list[Estimate]] = defaultdict(list)
    for _, sources in seen:
        for column, estimate in sources.items():
            found[column].append(estimate)
    elected = {c: e for c, e in pool.sources.items() if not any(window.decides(c) for window, _ in seen)}
    for column, estimates in found.items():
        if 2 * len(estimates) >= sum(window.decides(column) for window, _ in seen):
            elected[column] = min(estimates, key=lambda estimate: estimate.error)
    return Pool(dict(sorted(elected.items())))


def _with_flip_rate(now: Round, looks: Sequence[_Look]) -> Round:
    """The flip rate of the windows together, each with the weight of its cells."""
    seen = [look for look in looks if look.fit is not None]
    if now.flip_rate is None or not seen:
        return now
    cells = np.array([look.window.sensors.size for look in seen], float)
    rates = np.array([look.fit.noise[0] for look in seen if look.fit is not None])
    rate = max(float(cells @ rates / cells.sum()), now.flip_rate.lowest)
    return replace(now, noise=Noise.flips(rate), flip_rate=FlipRate(rate, now.flip_rate.error, now.flip_rate.lowest))
