"""Learning a wide table from its blocks: learn all blocks, vote, move the flip rate, repeat until nothing changes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

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
from bica.estimate.whole import FIRST_FLIP_RATE
from bica.model.noise import Noise
from bica.progress import in_threads, tracked

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
