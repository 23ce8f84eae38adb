"""Tests on blocks of a few sensors, which have power at any size: would one more source, or one fewer, fit better.

Of a block, the model is exact: each source is cut down to its sensors. Let P be its table of patterns, and P_S the same
table if a further source that reaches the set S were surely on. The derivative of the log-likelihood by the rate of
that source is

    score(S) = sum over rows x of d_S(x),     d_S(x) = (P_S(x) - P(x)) / P(x)

for every set S of the block, whether or not the model has such a source. A high score calls for a further source: one
that was missed, or what is left of a wider one whose edges fail (S is then the wider set less a sensor). A low score
speaks against independence: if two sources exclude each other, it is that of their union. A sensor that misses has a
score of its own, and so has the failure of all edges together.

The model's numbers were fitted, perhaps to these very rows. So the part of d_S that its own sources and the flip rate
(with lossy edges also every reach and every leak) could produce is projected out, in the inner product of P (Neyman's
C(alpha) test): to first order, what remains does not depend on how the numbers were estimated. Its tail is bounded by
Chernoff's inequality for independent rows of the model, which holds for few rows, too; patterns that are expected less
than once are first taken together. What all these scores leave out is seen by Pearson's X² of the projected residuals.
All p-values are corrected (Bonferroni) for all sets of all blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtr, ndtri

from bica.data.observations import Observations
from bica.diagnose.table import LISTED, Watched
from bica.kernels.lattice.subsets import mix_lossy_source
from bica.model.noise import pattern_table
from bica.model.or_mixture import OrMixture
from bica.text import folded

Vector = NDArray[np.float64]
Tables = NDArray[np.float64]  # (n_patterns, n_tables), one table per column
Places = NDArray[np.int64]

WIDTH, MANY_SENSORS = 8, 64  # of a block; one less where there are many, at a quarter of the time
MOST_BLOCKS = 128
LEAST_EXPECTED = 1.0  # rows of a pattern; rarer ones are taken together
CERTAIN = 3.0  # standard deviations below which the normal tail is good enough
NEWTON_STEPS, LONGEST_STEP, STEEPEST = 30, 1.0, 50.0  # towards the exponent of Chernoff's bound
EXPONENTS = -600, 600  # beyond, exp is 0 or infinite
PARALLEL = 1e-3  # share of a direction that must be left after the projection
SINGULAR = 1e-6
LEAST_FREE = 0.5  # patterns: a block with fewer to spare cannot contradict its model
LEVEL, MISSED_ALTERNATIVES = 0.005, 0.1  # of the tests that refute a fit, and how often they may miss a wrong one
OVERLOOKED = 0.2  # the alternative that a table must be able to show: a further source of two sensors, on so often
FEWEST_ROWS = 5.0  # that such a source must change
FEW, IMPOSSIBLE = 1e-300, 1e-12


@dataclass(frozen=True, slots=True)
class OddSet:
    """The sensors for which one more source, or one fewer, would change most; all of a block if no set stands out."""

    sensors: tuple[str, ...]
    z: float | None  # how far from the model, in standard deviations; positive: more rows; None: all patterns together
    p_value: float  # corrected for everything that was tested

    def words(self) -> str:
        """What the rows say about these sensors."""
        names = folded(self.sensors, LISTED)
        if self.z is None:
            return f"the rows do not look as the model expects in {names}"
        if self.z > 0:
            return (
                f"{names}: more rows than the model expects, as if a source were missing or reached them only at times"
            )
        return f"{names}: on together less often than the model expects, as if sources were not independent"


@dataclass(frozen=True, slots=True)
class BlockTests:
    """What the blocks of a table say about a model."""

    n_blocks: int
    n_tests: int
    n_impossible: float  # rows that are impossible under the model, in the worst block
    misplaced: float  # a bound on the share of the rows that would have to change, in the worst block
    odd: OddSet  # the clearest difference, which need not be significant
    rows_needed: float | None  # to notice an overlooked source; None: no number of rows contradicts such a model


def block_tests(model: OrMixture, watched: Watched) -> BlockTests | None:
    """Test the model on blocks that hold each of its sources; None if there is none. Time goes with blocks and rows."""
    blocks = blocks_of(model.mixing[:, model.probability > 0])
    all_at_once = watched.complete is not None and len(blocks) == 1 and blocks[0].size == watched.places.size
    if not all_at_once:
        watched.counts.fetch(blocks)
    found = []
    for sensors in blocks:
        histogram = watched.histogram if all_at_once else watched.counts.histogram_of(sensors)
        histogram = histogram / watched.stretch[sensors].max()
        if histogram.sum() > 0:
            found.append(_Scores.of(_Block.of(model, sensors), histogram))
    return None if not found else _together(found, watched.counts)


def blocks_of(mixing: NDArray[np.bool_]) -> list[Places]:
    """Blocks of sensors, each around a source that no block before it holds, widest first, with what overlaps most.

    Sources wider than a block have the sensors in it that are in the fewest blocks before.

    >>> [block.tolist() for block in blocks_of(np.repeat(np.eye(4, dtype=bool), 3, axis=0))]
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    """
    size, used = mixing.sum(axis=0), np.zeros(len(mixing), np.int64)
    width = WIDTH if len(mixing) <= MANY_SENSORS else WIDTH - 1
    blocks: list[NDArray[np.bool_]] = []
    for source in np.argsort(-size, kind="stable"):
        column = mixing[:, source]
        own = np.flatnonzero(column)
        if any(np.count_nonzero(block[own]) >= min(own.size, width) for block in blocks):
            continue
        block = np.zeros(len(mixing), dtype=bool)
        block[own[np.argsort(used[own], kind="stable")][:width]] = True
        shared = mixing[block].sum(axis=0)
        for other in np.lexsort((size, -shared))[: np.count_nonzero(shared)]:
            wider = block | mixing[:, other]
            block = wider if wider.sum() <= width else block
        used += block
        blocks.append(block)
        if len(blocks) == MOST_BLOCKS:
            break
    return [np.flatnonzero(block) for block in blocks]


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """The model of a block, and the directions in which it may be wrong."""

    sensors: Places
    probability: Vector  # P: (n_patterns,)
    further: Tables  # P_S - P, one column for every set S but the empty one
    misses: Tables  # what changes if a sensor misses, one column per sensor
    sources: Places  # the sets of the model's sources; with lossy edges, every sensor alone: its leak
    loss: Vector  # what changes if all edges fail
    lossy: (
        Tables  # what changes with the numbers of lossy sources, their probability and reach; no column if all are sure
    )

    @classmethod
    def of(cls, model: OrMixture, sensors: Places) -> _Block:
        mixing, bits = model.mixing[sensors], 1 << np.arange(sensors.size)
        part = np.flatnonzero(mixing.any(axis=0) & (model.probability > 0))
        reach = None if model.lossy_reach is None else model.lossy_reach[np.ix_(sensors, part)]
        silent = np.zeros((2, sensors.size))
        hidden = pattern_table(mixing[:, part], model.probability[part], *silent, lossy_reach=reach)
        false_alarm, miss = (rates[sensors] for rates in model.noise.rates(len(model.sensors)))
        with_source = np.bincount(_unions(sensors.size), np.repeat(hidden, hidden.size)).reshape(hidden.size, -1)
        own = list(_lossy_directions(mixing[:, part], model.probability[part], reach))
        tables = np.hstack([with_source, np.stack([*_missed(hidden), *own], axis=1)])
        _apply_noise(tables, false_alarm, miss)
        probability = tables[:, 0].copy()  # with a further source that reaches no sensor, nothing changes
        further = tables[:, 1 : hidden.size] - probability[:, None]
        sets = bits @ mixing[:, part]
        loss = _loss(further, sets, np.minimum(model.probability[part], 1 - SINGULAR), bits)
        misses, lossy = np.split(tables[:, hidden.size :], [sensors.size], axis=1)
        return cls(sensors, probability, further, misses, np.unique(sets if reach is None else bits), loss, lossy)


def _lossy_directions(
    mixing: NDArray[np.bool_], probability: Vector, reach: NDArray[np.float64] | None
) -> Iterator[Vector]:
    """How the hidden table changes with the probability and each reach of every source of two sensors or more.

    What a source of one sensor changes is what the leak of that sensor changes.
    """
    if reach is None:
        return
    silent = np.zeros((2, len(mixing)))
    for j in np.flatnonzero(mixing.sum(axis=0) > 1):
        others = np.arange(mixing.shape[1]) != j
        without = pattern_table(mixing[:, others], probability[others], *silent, lossy_reach=reach[:, others])
        sensors = np.flatnonzero(mixing[:, j])
        yield _through(without, sensors, reach[sensors, j]) - without
        for edge in range(sensors.size):
            works, fails = reach[sensors, j], reach[sensors, j]
            works[edge], fails[edge] = 1.0, 0.0
            yield _through(without, sensors, works) - _through(without, sensors, fails)


def _through(table: Vector, sensors: Places, reach: Vector) -> Vector:
    """The table under an active source."""
    shown = table.copy()
    mix_lossy_source(shown, sensors, reach, 1.0)
    return shown


@cache
def _unions(n_sensors: int) -> Places:
    """Where each pattern (first) goes when a set (second) is switched on, in a table of all patterns by all sets."""
    sets = np.arange(1 << n_sensors)
    return np.asarray(((sets[:, None] | sets) << n_sensors) + sets).ravel()


def _missed(hidden: Vector) -> Iterator[Vector]:
    """How the table changes as each sensor in turn begins to miss."""
    for sensor in range(hidden.size.bit_length() - 1):
        change = np.zeros_like(hidden).reshape(-1, 2, 1 << sensor)
        on = hidden.reshape(change.shape)[:, 1]
        change[:, 0], change[:, 1] = on, -on
        yield change.ravel()


def _apply_noise(tables: Tables, false_alarm: Vector, miss: Vector) -> None:
    """What the sensors show of every table, in place."""
    for sensor in range(false_alarm.size):
        states = tables.reshape(-1, 2, 1 << sensor, tables.shape[1])
        moved = false_alarm[sensor] * states[:, 0] - miss[sensor] * states[:, 1]
        states[:, 0] -= moved
        states[:, 1] += moved


def _loss(further: Tables, sets: Places, probability: Vector, bits: Places) -> Vector:
    """How the table changes as all edges begin to fail: a source that is on then reaches all sensors but one."""
    odds, loss = probability / (1 - probability), np.zeros(len(further))
    for bit in bits:
        reaching = (sets & bit) > 0
        left = sets[reaching] & ~bit
        loss -= further[:, sets[reaching] - 1] @ odds[reaching]
        loss += further[:, left[left > 0] - 1] @ odds[reaching][left > 0]
    return loss


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """The tests of one block."""

    sensors: Places
    sets: Places  # of the tests: a set of sensors of the block; 0 for all edges together
    z: Vector
    p_value: Vector  # of each alone
    x2_p_value: float
    n_impossible: float
    misplaced: float
    shift: Vector  # of the tests for two sensors, in standard deviations per root of a row, if a source was overlooked
    moved: Vector  # share of the rows that it changes

    @classmethod
    def of(cls, block: _Block, histogram: Vector) -> _Scores:
        n_samples, n_further = histogram.sum(), block.further.shape[1]
        flips = block.misses.sum(axis=1) + block.further[:, (1 << np.arange(block.sensors.size)) - 1].sum(axis=1)
        tables = np.column_stack(
            [block.probability, histogram, block.loss, flips, block.further, block.misses, block.lossy]
        )
        n_tested = tables.shape[1] - block.lossy.shape[1]
        frequent = n_samples * block.probability >= LEAST_EXPECTED
        tables, n_frequent = _merged(tables, frequent), np.count_nonzero(frequent)
        probability, observed, root = tables[:, 0], tables[:, 1], np.sqrt(tables[:, 0])
        whitened = tables / root[:, None]
        own = _basis(whitened[:, [0, 3, *(block.sources + 3), *range(n_tested, tables.shape[1])]])
        residual = (observed - n_samples * probability) / (root * np.sqrt(n_samples))
        residual -= own @ (own.T @ residual)
        tested = whitened[:, [2, *range(4, n_tested)]]
        length = np.linalg.norm(tested, axis=0)
        tested = tested - own @ (own.T @ tested)
        left = np.linalg.norm(tested, axis=0)
        kept = np.flatnonzero(left > PARALLEL * length)
        tested = tested[:, kept] / left[kept]
        z = tested.T @ residual
        sets = np.array([0, *range(1, n_further + 1), *(1 << np.arange(block.sensors.size))])[kept]
        pairs = np.bitwise_count(sets) == 2
        x2 = float(residual[:n_frequent] @ residual[:n_frequent])
        free = (
            np.eye(int(n_frequent)) - own[:n_frequent] @ own[:n_frequent].T
        )  # what the projection leaves of each pattern
        n_free = float(np.trace(free))
        return cls(
            block.sensors,
            sets,
            z,
            _tails(probability, tested / root[:, None], z, n_samples),
            _x2_tail(x2, n_samples * probability[:n_frequent], free),
            float(histogram[block.probability <= 0].sum()),
            float(min(1.0, np.sqrt(max(0.0, x2 - n_free) / (4 * n_samples)))),
            OVERLOOKED * left[kept[pairs]],
            OVERLOOKED * np.maximum(tables[:, kept[pairs] + 3], 0.0).sum(axis=0),
        )


def _merged(tables: Tables, frequent: NDArray[np.bool_]) -> Tables:
    """The tables with the frequent patterns first, and then the others, those with as many sensors on taken together.

    Not all others together: their sum says nothing but how often sensors flip, which is projected out.
    """
    sizes = np.bitwise_count(np.arange(len(tables)))[~frequent]
    rest = np.zeros((int(sizes.max(initial=0)) + 1, tables.shape[1]))
    np.add.at(rest, sizes, tables[~frequent])
    rest = rest[rest[:, :2].sum(axis=1) > IMPOSSIBLE]
    rest[:, 0] = np.maximum(rest[:, 0], IMPOSSIBLE)
    return np.vstack([tables[frequent], rest])


def _basis(directions: Tables) -> Tables:
    """Orthonormal columns that span the directions."""
    scaled = directions / np.maximum(np.linalg.norm(directions, axis=0), FEW)
    basis, strength, _ = np.linalg.svd(scaled, full_matrices=False)
    return np.asarray(basis[:, strength > SINGULAR * strength[0]])


def _tails(probability: Vector, value: Tables, z: Vector, n_samples: float) -> Vector:
    """Two-sided p-values of sums over independent rows; ``value`` has mean 0 and variance 1 under ``probability``."""
    p_values = 2 * ndtr(-np.abs(z))
    far = np.flatnonzero(np.abs(z) > CERTAIN)
    if far.size:
        means = np.abs(z[far]) / np.sqrt(n_samples)
        p_values[far] = _chernoff(probability, value[:, far] * np.sign(z[far]), means, n_samples)
    return np.asarray(p_values, np.float64)


def _chernoff(probability: Vector, value: Tables, mean: Vector, n_samples: float) -> Vector:
    """Twice Chernoff's bound of each mean over the rows: exp(n min over t of log E exp(t (value - mean))).

    >>> fair, steps = np.array([0.5, 0.5]), np.array([[-1.0], [1.0]])
    >>> bool(_chernoff(fair, steps, np.array([1.0]), 10)[0] >= 2 * 0.5**10)  # all ten up: the bound is sharp here
    True
    """
    slope = mean.copy()
    for _ in range(NEWTON_STEPS):
        weight = probability[:, None] * np.exp(np.clip(slope * value, *EXPONENTS))
        weight /= weight.sum(axis=0)
        tilted = (weight * value).sum(axis=0)
        spread = np.maximum((weight * value**2).sum(axis=0) - tilted**2, IMPOSSIBLE)
        slope = np.clip(slope + np.clip((mean - tilted) / spread, -LONGEST_STEP, LONGEST_STEP), 0.0, STEEPEST)
    exponent = np.log((probability[:, None] * np.exp(np.clip(slope * value, *EXPONENTS))).sum(axis=0)) - slope * mean
    return np.asarray(np.minimum(1.0, 2 * np.exp(n_samples * np.minimum(exponent, 0.0))))


def _x2_tail(x2: float, expected: Vector, free: Tables) -> float:
    """The p-value of X², the square of residuals times ``free``: a gamma distribution with its mean and variance.

    Normal residuals have the mean tr(free) and the variance 2 tr(free²); rare patterns add to that. Where hardly a
    pattern is free, the fitted numbers explain all of them, and what is left over is not of first order.
    """
    mean = float(np.trace(free))
    if mean < LEAST_FREE:
        return 1.0
    variance = 2 * float((free**2).sum()) + float((np.diag(free) ** 2 / expected).sum())
    return float(gammaincc(mean**2 / variance, x2 / (variance / mean)))


def _together(found: list[_Scores], data: Observations) -> BlockTests:
    n_tests = max(1, sum(scores.z.size for scores in found))
    clearest = min(found, key=lambda scores: scores.p_value.min(initial=1.0))
    oddest = min(found, key=lambda scores: scores.x2_p_value)
    by_set, by_block = n_tests * clearest.p_value.min(initial=1.0), len(found) * oddest.x2_p_value
    names, z = [data.sensors[i] for i in oddest.sensors], None
    if clearest.z.size and by_set <= by_block:
        place = int(clearest.p_value.argmin())
        members, z = int(clearest.sets[place]), float(clearest.z[place])
        inside = members >> np.arange(clearest.sensors.size) & 1 if members else np.ones(clearest.sensors.size)
        names = [data.sensors[i] for i in clearest.sensors[inside > 0]]
    return BlockTests(
        len(found),
        n_tests,
        max(scores.n_impossible for scores in found),
        max(scores.misplaced for scores in found),
        OddSet(tuple(names), z, float(min(1.0, 2 * min(by_set, by_block)))),
        _rows_needed(found, n_tests),
    )


def _rows_needed(found: list[_Scores], n_tests: int) -> float | None:
    """The rows that show a further source behind two sensors, for half of all pairs of sensors in a block."""
    beyond = -ndtri(LEVEL / (4 * max(1, n_tests))) - ndtri(MISSED_ALTERNATIVES)
    shift, moved = (np.concatenate(values) for values in zip(*((s.shift, s.moved) for s in found), strict=True))
    if not shift.size:
        return None
    return float(np.ceil(np.median(np.maximum((beyond / shift) ** 2, FEWEST_ROWS / np.maximum(moved, FEW)))))
