"""Hidden states of rows and what follows from them, against sums over all activities."""

from dataclasses import dataclass
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.estimate.rows.states import error_costs
from bica.kernels.rows.ratios import best_gains, ratios, wrong_cells
from bica.kernels.rows.states import Limits, StateRows, States, StateSources, hidden_states, n_bits
from tests.reference import slow_row_states

NO_LIMITS = Limits(0.0, 1.0, 1 << 12, 1 << 20)
error_rates = st.floats(0.01, 0.3)


@dataclass(frozen=True)
class Problem:
    rows: list
    weights: list
    sources: list
    false_alarm: list
    miss: list
    shift: int  # the sensors are bits from here on

    @property
    def rates(self):
        return self.false_alarm, self.miss

    def word(self, sensors):
        return sum(1 << (self.shift + i) for i in sensors)

    def kernel_rows(self):
        ones = [self.word(i for i, cell in enumerate(row) if cell) for row in self.rows]
        seen = [self.word(i for i, cell in enumerate(row) if cell is not None) for row in self.rows]
        return StateRows(np.array(ones, np.uint64), np.array(seen, np.uint64))

    def kernel_sources(self):
        probability = np.array([p for _, p in self.sources])
        sets = np.array([self.word(sensors) for sensors, _ in self.sources], np.uint64)
        return StateSources(sets, probability / (1 - probability), float(np.prod(1 - probability)))

    def errors(self):
        nothing = [0.1] * self.shift  # sensors below are never used
        return error_costs(np.array(nothing + self.false_alarm), np.array(nothing + self.miss))

    def states(self, limits=NO_LIMITS):
        return States(*hidden_states(self.kernel_rows(), self.kernel_sources(), self.errors(), limits))

    def without_errors(self, row):
        """The probability that a row shows what is there."""
        kept = zip(row, self.false_alarm, self.miss, strict=True)
        return prod(1 - (miss if cell else alarm) for cell, alarm, miss in kept if cell is not None)

    def set_of(self, word):
        return frozenset(i for i in range(len(self.false_alarm)) if int(word) >> (self.shift + i) & 1)


@st.composite
def problems(draw, max_sensors=5, max_sources=4):
    m = draw(st.integers(1, max_sensors))
    sensors = st.frozensets(st.integers(0, m - 1), min_size=1)
    row = st.tuples(*[st.sampled_from([0, 1, None])] * m)
    rows = draw(st.lists(row, min_size=1, max_size=5, unique=True))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    sets = draw(st.lists(sensors, max_size=max_sources, unique=True))
    sources = [(s, draw(st.floats(0.01, 0.45))) for s in sets]
    if draw(st.booleans()):
        false_alarm = miss = [draw(error_rates)] * m
    else:
        false_alarm, miss = (draw(st.lists(error_rates, min_size=m, max_size=m)) for _ in range(2))
    return Problem(rows, weights, sources, false_alarm, miss, draw(st.sampled_from([0, 64 - m])))


@given(problems())
def test_lists_hold_all_unions_with_their_weights(problem):
    states = problem.states()
    for number, row in enumerate(problem.rows):
        slow = slow_row_states.states(row, problem.sources, *problem.rates)
        part = slice(states.starts[number], states.starts[number + 1])
        fast = {problem.set_of(s): v for s, v in zip(states.sets[part], states.weights[part], strict=True)}
        assert fast == pytest.approx(slow)
        exact = slow_row_states.chance(row, problem.sources, *problem.rates)
        assert states.chance[number] * problem.without_errors(row) == pytest.approx(exact)
    assert not states.cut.any()


@given(problems(), st.data())
def test_ratios_of_any_set(problem, data):
    sensors = st.frozensets(st.integers(0, len(problem.false_alarm) - 1), min_size=1)
    new = data.draw(st.lists(sensors, min_size=1, max_size=4))
    out = np.empty((len(new), len(problem.rows)))
    words = np.array([problem.word(s) for s in new], np.uint64)
    ratios(words, problem.kernel_rows(), problem.states(), problem.errors(), out)
    for j, source in enumerate(new):
        for number, row in enumerate(problem.rows):
            with_it = slow_row_states.chance_with(row, source, problem.sources, *problem.rates)
            exact = with_it / slow_row_states.chance(row, problem.sources, *problem.rates)
            assert out[j, number] == pytest.approx(exact, abs=1e-3)  # what cannot exceed this is 0
            assert out[j, number] == 0 or out[j, number] == pytest.approx(exact)


@given(problems(), st.data())
def test_gain_is_that_of_the_best_probability(problem, data):
    new = data.draw(st.frozensets(st.integers(0, len(problem.false_alarm) - 1), min_size=1))
    ratio, gain, probability = np.empty((1, len(problem.rows))), np.empty(1), np.empty(1)
    states = problem.states()
    ratios(np.array([problem.word(new)], np.uint64), problem.kernel_rows(), states, problem.errors(), ratio)
    best_gains(ratio, np.array(problem.weights, float), gain, probability)

    def slow(q):
        return slow_row_states.gain(problem.rows, problem.weights, (new, q), problem.sources, *problem.rates)

    others = [slow(q) for q in (0.003, 0.03, 0.1, 0.3, 0.6, 0.9)]
    assert gain[0] >= max(0.0, *others) - 0.01 * sum(problem.weights)
    assert gain[0] == pytest.approx(slow(probability[0]) if probability[0] else 0.0, abs=2e-3 * sum(problem.weights))


@given(problems())
def test_wrong_cells(problem):
    m = len(problem.false_alarm)
    out = np.empty((len(problem.rows), problem.shift + m))
    wrong_cells(problem.kernel_rows(), problem.states(), problem.errors(), out)
    for number, row in enumerate(problem.rows):
        for sensor in range(m):
            exact = (
                slow_row_states.wrong(row, sensor, problem.sources, *problem.rates) if row[sensor] is not None else 0
            )
            assert out[number, problem.shift + sensor] == pytest.approx(exact)


@given(problems(), st.sampled_from([1e-4, 1e-2, 0.2]))
def test_what_the_limits_drop_is_no_more_than_they_say(problem, share):
    exact, limited = problem.states(), problem.states(Limits(share, 1.0, 1 << 12, 1 << 20))
    n_paths, growth = 2 ** len(problem.sources), prod(1 / (1 - p) for _, p in problem.sources)
    assert (limited.chance <= exact.chance * (1 + 1e-12)).all()
    assert (limited.chance >= exact.chance * (1 - share * n_paths * growth)).all()
    assert limited.sets.size <= exact.sets.size


def crowded():
    """Ten lone sources: a row has up to 1024 states."""
    sources = [(frozenset([i]), 0.3) for i in range(10)]
    return Problem([(1,) * 10, (0,) * 10], [1, 1], sources, [0.2] * 10, [0.2] * 10, 0)


def test_a_row_with_too_many_states_is_cut():
    exact, states = crowded().states(), crowded().states(Limits(1e-9, 1.0, 256, 1 << 20))
    assert states.cut.all()
    assert (np.diff(states.starts) <= 256).all()
    assert (states.chance > 0).all()
    assert (states.chance < exact.chance).all()


def test_a_row_that_was_cut_keeps_its_likeliest_state():
    states = crowded().states(Limits(0.2, 1.0, 16, 1 << 20))
    assert states.cut.any()
    assert ((np.diff(states.starts) > 0) == (states.chance > 0)).all()


def test_rows_beyond_the_limit_of_all_states_have_no_chance():
    states = crowded().states(Limits(0.0, 1.0, 1 << 12, 1000))
    assert states.chance[0] > 0
    assert states.chance[1] == 0
    assert np.diff(states.starts)[1] == 0


@given(st.integers(0, 2**64 - 1))
def test_bits_are_counted(word):
    assert n_bits(np.uint64(word)) == word.bit_count()
