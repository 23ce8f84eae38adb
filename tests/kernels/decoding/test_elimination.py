import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.decoding.table import add_probabilities, comes_first, fold_rows

logs = st.one_of(st.just(-math.inf), st.floats(-800, 50))


@given(st.lists(st.tuples(logs, st.integers(-1, 3)), max_size=12))
def test_chances_add_up_in_logarithms(entries):
    values, target = np.array([v for v, _ in entries]), np.array([t for _, t in entries], dtype=np.int64)
    total = np.empty(4)
    add_probabilities(values, target, total)
    for place in range(4):
        chosen = [value for value, where in entries if where == place and value > -math.inf]
        peak = max(chosen, default=-math.inf)
        expected = peak + math.log(math.fsum(math.exp(v - peak) for v in chosen)) if chosen else -math.inf
        assert math.isclose(total[place], expected, rel_tol=1e-12, abs_tol=1e-12)


@given(st.integers(1, 4), st.integers(0, 2**32))
def test_folding_is_a_weighted_sum_over_all_sets(n_sensors, seed):
    rng = np.random.default_rng(seed)
    values, weight = rng.random(2**n_sensors), rng.random((n_sensors, 3, 2))
    cells = rng.integers(0, 3, (6, n_sensors)).astype(np.uint8)
    cells = cells[np.lexsort(cells.T)]
    total = np.empty(6)
    fold_rows(np.concatenate([np.empty(2**n_sensors), values]), weight, cells, total)
    for row, found in zip(cells, total, strict=True):
        expected = math.fsum(
            value * math.prod(weight[i, row[i], s >> i & 1] for i in range(n_sensors)) for s, value in enumerate(values)
        )
        assert math.isclose(found, expected, rel_tol=1e-12)


def test_cheaper_comes_first_then_fewer_then_the_smaller_number():
    def first(cost, active, other_cost, other):
        words = [np.array(pair, np.uint64) for pair in (active, other)]
        return comes_first(cost, words[0], other_cost, words[1])

    assert first(1.0, [7, 0], 1.1, [1, 0])
    assert first(1.0 + 1e-12, [1, 0], 1.0, [3, 0])
    assert first(1.0, [1, 1], 1.0, [2, 1])
    assert first(1.0, [2, 0], 1.0, [1 << 63, 0])
    assert not first(1.0, [0, 1], 1.0, [2, 0])  # the second word counts for more
    assert not first(1.0, [1, 0], 1.0, [1, 0])
    assert first(5.0, [3, 3], math.inf, [0, 0])
