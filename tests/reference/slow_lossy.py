"""Rows of sources whose edges may fail, by going through all 2^n activities of n sources and all cells."""

from itertools import pairwise, product
from math import inf, log, prod

from tests.reference import slow_markov

Cells = list[bool | None]  # of one row; None is a cell that was not observed


class SlowLossy:
    """A model in plain lists: ``reach[i][j]`` is how often source j switches on sensor i while it is on."""

    def __init__(self, probability, reach, false_alarm, miss):
        self.probability, self.reach, self.false_alarm, self.miss = probability, reach, false_alarm, miss

    @classmethod
    def of(cls, model):
        false_alarm, miss = (rate.tolist() for rate in model.noise.rates(model.n_sensors))
        return cls(model.probability.tolist(), model.reach.tolist(), false_alarm, miss)

    def activities(self):
        return list(product((False, True), repeat=len(self.probability)))

    def prior(self, activity):
        return prod(p if on else 1 - p for p, on in zip(self.probability, activity, strict=True))

    def cell(self, sensor, value, activity):
        """The chance that a sensor shows this value, given which sources are on."""
        if value is None:
            return 1.0
        a, b = self.false_alarm[sensor], self.miss[sensor]
        quiet = b + (1 - a - b) * prod(1 - q for q, on in zip(self.reach[sensor], activity, strict=True) if on)
        return 1 - quiet if value else quiet

    def joint(self, cells, activity):
        return self.prior(activity) * prod(self.cell(i, value, activity) for i, value in enumerate(cells))

    def row(self, cells):
        return sum(self.joint(cells, activity) for activity in self.activities())

    def posterior(self, cells):
        """The chance that each source is on, given the row, which must be possible."""
        total = self.row(cells)
        return [
            sum(self.joint(cells, activity) for activity in self.activities() if activity[j]) / total
            for j in range(len(self.probability))
        ]

    def costs(self, cells):
        """-log of the joint chance of each activity and the row, in the order of ``activities``."""
        return [-log(chance) if (chance := self.joint(cells, activity)) > 0 else inf for activity in self.activities()]

    def course_cost(self, rows, course, stays):
        """-log of the chance of rows in order together with a course: one activity per row."""
        cells = [self.cell(i, value, a) for row, a in zip(rows, course, strict=True) for i, value in enumerate(row)]
        chances = cells
        for j, (p, stay) in enumerate(zip(self.probability, stays, strict=True)):
            moves = slow_markov.moves(p, stay)
            chances = chances + [p if activity[j] else 1 - p for activity in course[:1]]
            chances = chances + [moves[before[j]][after[j]] for before, after in pairwise(course)]
        return sum(-log(chance) if chance > 0 else inf for chance in chances)

    def table(self):
        """The chance of every row, indexed by bit set."""
        n_sensors = len(self.miss)
        return [self.row([bool(s >> i & 1) for i in range(n_sensors)]) for s in range(2**n_sensors)]
