"""Which sources were on in consecutive slots, and for how long they stay on, if each stays on for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.data.rows import Rows
from bica.errors import InfeasibleError, SettingError
from bica.invert.decode import decode
from bica.invert.groups import Group, groups_of, shown_cost
from bica.invert.temporal.chains import STRETCH, ChainBlock, Chains, block_of, checked_persistence
from bica.kernels.bits import Words
from bica.kernels.decoding.table import TIE
from bica.model.or_mixture import OrMixture
from bica.progress import report, tracked

EXACT_SOURCES = 12  # all their 4096 states in every slot
BLOCK_SOURCES = 4  # of larger groups at a time
MOST_COSTS = 1 << 25  # numbers in the table of a group with lossy edges: 256 MiB
MOST_SWEEPS = 20  # over the blocks of a group
COUNTED_SLOTS = 16 * STRETCH  # enough to estimate how long sources stay on


class Course:
    """A group, what its sensors showed in every slot, and which of its sources were on, to be improved."""

    def __init__(
        self, group: Group, cells: NDArray[np.uint8], activity: NDArray[np.bool_], at_once: int | None = None
    ) -> None:
        self.group, self.cells = group, cells
        self.activity = activity.copy()
        at_once = _at_once(group, cells) if at_once is None else at_once
        self.blocks = _blocks(group, at_once)
        self.exact = group.sources.size <= at_once or not group.mixing.any()

    def improve(self, chains: Chains) -> None:
        """Make the course likelier, block by block, until no block can; an exact group has only one.

        ``chains`` are those of the group's sources. No step makes the course less likely.
        """
        for _ in range(1 if self.exact else MOST_SWEEPS):
            improved = [self._improve_block(block, chains.pick(block.sources)) for block in self.blocks]
            if not any(improved):
                return

    def _improve_block(self, block: ChainBlock, chains: Chains) -> bool:
        cells = block.cells(self.cells, self.activity)
        before, after = self.activity[:, block.sources], block.cheapest(cells, chains)
        if (after == before).all() or not block.cost(cells, after, chains) < block.cost(cells, before, chains) - TIE:
            return False
        self.activity[:, block.sources] = after
        return True

    def moves(self, chains: Chains) -> NDArray[np.float64]:
        """How often each source is expected to make each move, given the rows: (n_sources, 2, 2).

        In an exact group that is the expectation over all courses. In others it is that over the courses of a source
        and its neighbours while the rest keeps its present course. At most some 16,000 slots are used.
        """
        counts = np.zeros(chains.move.shape)
        slots = _stretches(len(self.cells))
        for block in self.blocks:
            cells = block.cells(self.cells, self.activity)
            found = block.moves(cells, chains.pick(block.sources), slots)
            if self.exact:
                counts[block.sources] = found
            else:
                counts[block.sources[0]] = found[0]
        return counts

    def cost(self, chains: Chains) -> float:
        """``-log`` of the joint probability of the course and the rows, up to what no course changes."""
        shown = shown_cost(self.group.penalty, self.group.mixing, self.activity, self.cells, self.group.reach)
        return chains.cost(self.activity) + float(shown.sum())


def _at_once(group: Group, cells: NDArray[np.uint8]) -> int:
    """How many sources are solved at once; lossy edges need a table of all states for every distinct row."""
    if group.reach is None or len(cells) << group.sources.size <= MOST_COSTS:
        return EXACT_SOURCES
    fits = len(np.unique(cells, axis=0)) << group.sources.size <= MOST_COSTS
    return EXACT_SOURCES if fits else BLOCK_SOURCES


def _blocks(group: Group, at_once: int) -> list[ChainBlock]:
    """One block of all sources if they are few; otherwise one per source, with the sources that share most sensors."""
    each = np.arange(group.sources.size)
    if not group.mixing.any():
        return [block_of(group, each[[j]]) for j in each]
    if group.sources.size <= at_once:
        return [block_of(group, each)]
    shared = group.mixing.T.astype(np.int64) @ group.mixing
    nearest = np.argsort(-shared - len(shared) * group.sensors.size * np.eye(len(shared), dtype=int), kind="stable")
    return [block_of(group, near[:BLOCK_SOURCES]) for near in nearest]


def _stretches(n_slots: int) -> list[slice]:
    """Stretches of slots, evenly spread where there are more than enough."""
    starts = range(0, n_slots, STRETCH)
    n_kept = min(len(starts), COUNTED_SLOTS // STRETCH)
    chosen = [starts[number * len(starts) // n_kept] for number in range(n_kept)]
    return [slice(first, min(n_slots, first + STRETCH)) for first in chosen]


FIRST_STAY = 3.0  # times the stay of independent slots, a start that would be slow to leave
MOST_ROUNDS = 40
SETTLED = 0.01  # relative change of the mean stay that ends the rounds
IMPROVE_EVERY = 4  # rounds between improvements of the course of a large group
LEAST_STOP = 1e-6  # probability of stopping after a slot: stays of a million slots look endless
NEVER_CERTAIN = 0.999  # the probabilities of moves are kept below 1, so that no course becomes impossible


def estimated_persistence(courses: list[Course], probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean number of slots that each source stays on, by expectation and maximisation: (n_sources,).

    Probabilities are taken as given. Where the rows say nothing about a source, it stays as long as it would if slots
    were independent. Courses of groups that are too large to be solved at once are improved on the way.
    """
    stay = 1 / np.maximum(1 - probability, LEAST_STOP)
    informed = [course for course in courses if course.group.mixing.any()]
    for course in informed:
        stay[course.group.sources] *= FIRST_STAY
    for turn in range(MOST_ROUNDS):
        report("estimating how long sources stay on", turn, MOST_ROUNDS)
        chains, before = Chains.of(probability, stay), stay.copy()
        for course in informed:
            own = chains.pick(course.group.sources)
            if not course.exact and turn % IMPROVE_EVERY == 0:
                course.improve(own)
            stay[course.group.sources] = likeliest_stay(course.moves(own), probability[course.group.sources])
        if (np.abs(stay - before) <= SETTLED * before).all():
            break
    return stay


def likeliest_stay(moves: NDArray[np.float64], probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean stay under which these moves are likeliest, for chains that are on with ``probability``.

    With s = 1 / stay a source stops with probability s and starts with probability c s, where c = p / (1 - p). The
    derivative of the log-likelihood vanishes at a root of a quadratic.

    >>> likeliest_stay(np.array([[[0, 10], [10, 90]]]), np.array([0.5]))  # never off twice in a row
    array([5.5])
    """
    odds = probability / (1 - probability)
    n_changes = moves[:, 0, 1] + moves[:, 1, 0]
    stays_off, stays_on = moves[:, 0, 0], moves[:, 1, 1]
    # changes (1 - s)(1 - c s) = stays_on s (1 - c s) + stays_off c s (1 - s)
    square = odds * (n_changes + stays_on + stays_off)
    line = n_changes * (1 + odds) + stays_on + stays_off * odds
    root = 2 * n_changes / np.maximum(line + np.sqrt(np.maximum(line**2 - 4 * square * n_changes, 0.0)), 1e-300)
    most = NEVER_CERTAIN * np.minimum(1.0, 1 / np.maximum(odds, 1e-300))
    return np.asarray(1 / np.clip(np.where(line > 0, root, 1 - probability), LEAST_STOP, most))


Persistence = ArrayLike | Literal["estimate"]


@dataclass(frozen=True, slots=True)
class DecodedInTime:
    """The most probable course of all sources through consecutive rows."""

    activity: NDArray[np.bool_]  # (n_rows, n_sources)
    cost: float  # -log of the joint probability of that course and the rows; impossible rows do not count
    exact: NDArray[np.bool_]  # (n_sources,), whether no course of the source's part of the model is likelier
    feasible: NDArray[np.bool_]  # (n_rows,), which rows the model can produce; the others are ignored
    persistence: NDArray[np.float64]  # (n_sources,), the mean number of slots that each source stays on


def decode_in_time(
    model: OrMixture, words: Words, observed: Words | None = None, *, persistence: Persistence = "estimate"
) -> DecodedInTime:
    """Find the most probable course of the sources through rows that are consecutive slots, in order.

    Each source is a chain of its own: on with its probability, for ``persistence`` slots on average at a time (one
    number, one per source, or estimated from the rows). Parts of the model of up to 12 sources are solved exactly, in
    time (m + n) 2^n for each row (with lossy edges as long as the distinct rows times 2^n are at most 2^25). In larger
    parts the row-wise answer is improved, a few neighbouring sources at a time, until no such change makes it likelier;
    so it is never less likely than the row-wise answer.

    >>> from bica import Noise
    >>> model = OrMixture([[1]], [0.3], Noise.flips(0.2))
    >>> rows = np.array([[0], [0], [1], [0], [0], [1], [1], [0], [1], [1]], dtype=np.uint64)
    >>> decode_in_time(model, rows, persistence=5).activity[:, 0].astype(int)
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    courses, feasible = _row_wise(model, Rows.of_words(words, observed, model.n_sensors))
    stay = _persistence(model, courses, persistence)
    chains = Chains.of(model.probability, stay)
    cost, exact = 0.0, np.ones(model.n_sources, dtype=bool)
    activity = np.repeat(model.probability[None] == 1, len(words), axis=0)
    for course in tracked(courses, "decoding parts of the model", len(courses)):
        sources = course.group.sources
        course.improve(chains.pick(sources))
        activity[:, sources], exact[sources] = course.activity, course.exact
        cost += course.cost(chains.pick(sources))
    if np.isinf(cost):
        raise InfeasibleError("with this persistence no course of the sources produces the rows; let it be estimated")
    return DecodedInTime(activity, cost, exact, feasible, stay)


def learn_persistence(model: OrMixture, words: Words, observed: Words | None = None) -> NDArray[np.float64]:
    """Estimate from consecutive rows for how many slots on average each source stays on: (n_sources,).

    >>> rows = np.repeat([0, 1, 0, 1, 0, 1, 0], [20, 4, 30, 2, 10, 3, 20]).astype(np.uint64)[:, None]
    >>> learn_persistence(OrMixture([[1]], [0.1]), rows).round(1)
    array([3.])
    """
    courses, _ = _row_wise(model, Rows.of_words(words, observed, model.n_sensors))
    return _persistence(model, courses, "estimate")


def _row_wise(model: OrMixture, rows: Rows) -> tuple[list[Course], NDArray[np.bool_]]:
    """The course of each group to start from, every row decoded by itself, and which rows the model can produce.

    Rows that it cannot produce are treated as not observed.
    """
    alone = decode(model, rows.words, rows.observed)
    rows = Rows(rows.words, np.where(alone.feasible[:, None], rows.observed, np.uint64(0)))
    courses = [
        Course(group, rows.of_sensors(group.sensors).cells(group.sensors.size), alone.activity[:, group.sources])
        for group in groups_of(model)
    ]
    return courses, alone.feasible


def _persistence(model: OrMixture, courses: list[Course], persistence: Persistence) -> NDArray[np.float64]:
    if not isinstance(persistence, str):
        return checked_persistence(persistence, model.probability)
    if persistence != "estimate":
        raise SettingError(
            f"persistence is {persistence!r}; it can be 'estimate', a number of slots, or one per source"
        )
    return estimated_persistence(courses, model.probability)
