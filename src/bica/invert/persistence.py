"""How long sources stay on, from rows that are consecutive slots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bica.invert.chains import Chains
from bica.invert.courses import Course
from bica.progress import report

START = 3.0  # times the stay of independent slots, which expectation would be slow to leave
ROUNDS = 40
SETTLED = 0.01  # relative change of the mean stay
AT_LEAST = 1e-6  # of the chance to stop after a slot: stays of a million slots look endless
NEVER_CERTAIN = 0.999  # the chances of moves are kept below 1, so that no course becomes impossible


def estimated_persistence(courses: list[Course], probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean number of slots that each source stays on, by expectation and maximisation: (n_sources,).

    Probabilities are taken as given. Where rows tell nothing of a source, it stays as long as it would if slots were
    independent. Courses of groups that are too large to be solved at once are improved on the way.
    """
    stay = 1 / np.maximum(1 - probability, AT_LEAST)
    told = [course for course in courses if course.group.mixing.any()]
    for course in told:
        stay[course.group.sources] *= START
    for turn in range(ROUNDS):
        report("estimating how long sources stay on", turn, ROUNDS)
        chains, before = Chains.of(probability, stay), stay.copy()
        for course in told:
            own = chains.pick(course.group.sources)
            if not course.exact and turn % 4 == 0:
                course.improve(own)
            stay[course.group.sources] = likeliest_stay(course.moves(own), probability[course.group.sources])
        if (np.abs(stay - before) <= SETTLED * before).all():
            break
    return stay


def likeliest_stay(moves: NDArray[np.float64], probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean stay under which these moves are likeliest, for chains that are on with ``probability``.

    With s = 1 / stay a source stops with chance s and starts with c s, where c = p / (1 - p). The derivative of the
    log-likelihood vanishes at a root of a quadratic.

    >>> likeliest_stay(np.array([[[0, 10], [10, 90]]]), np.array([0.5]))  # never seen off twice in a row
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
    return np.asarray(1 / np.clip(np.where(line > 0, root, 1 - probability), AT_LEAST, most))
