import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.rivals.factors import first_independent, walsh_hadamard
from tests.reference import slow_parity


@given(st.integers(0, 5).flatmap(lambda m: st.lists(st.integers(0, 99), min_size=2**m, max_size=2**m)))
def test_balances_match_the_definition_and_undo(counts):
    values = np.array(counts, dtype=float)
    walsh_hadamard(values)
    assert values.tolist() == slow_parity.balances(counts)
    walsh_hadamard(values)
    assert (values / len(counts)).tolist() == counts


@given(st.integers(1, 5).flatmap(lambda m: st.permutations(range(2**m))))
def test_chosen_sets_are_the_first_independent_ones(order):
    size = len(order).bit_length() - 1
    chosen = np.zeros(size, np.int64)
    first_independent(np.array(order), np.zeros(size, np.int64), chosen)
    assert chosen.tolist() == slow_parity.first_independent(order, size)
