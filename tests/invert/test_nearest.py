import numpy as np
import pytest

from bica.data.columns import MISSING
from bica.invert.decode import decode
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.invert.test_decode import PROBLEMS, words_of
from tests.reference import slow_decoding

SOME = PROBLEMS[:150]


def slow_nearest(model, cells):
    rates = model.noise.rates(model.n_sensors)
    rows = [[None if cell == MISSING else bool(cell) for cell in row] for row in cells.tolist()]
    return [slow_decoding.nearest(model.mixing, model.probability, *rates, row) for row in rows]


@pytest.mark.parametrize("solver", ["table", "search"])
def test_the_nearest_explanation_has_the_fewest_wrong_cells_and_is_the_likeliest_of_those(solver):
    n_impossible = 0
    for model, cells in SOME:
        found = decode(model, *words_of(cells), solver=solver, nearest=True)
        expected = slow_nearest(model, cells)
        assert found.n_wrong.tolist() == [n_wrong for n_wrong, _ in expected]
        assert found.activity.tolist() == [list(activity) for _, activity in expected]
        n_impossible += (~found.feasible).sum()
    assert n_impossible > 50


def test_the_integer_program_counts_the_same_wrong_cells():
    for model, cells in SOME[:60]:
        found = decode(model, *words_of(cells), solver="program", nearest=True)
        assert found.n_wrong.tolist() == [n_wrong for n_wrong, _ in slow_nearest(model, cells)]


def test_without_being_asked_nothing_is_guessed():
    model = OrMixture([[1, 0], [1, 0], [0, 1]], [0.2, 0.3])
    row = packed(np.array([[True, False, True]]))
    found, near = decode(model, row), decode(model, row, nearest=True)
    assert not found.activity.any()
    assert near.activity.tolist() == [[False, True]]
    for answer in (found, near):
        assert (answer.feasible[0], answer.cost[0], answer.n_wrong[0]) == (False, np.inf, 1)


def test_zero_error_takes_the_sensors_at_their_word_whatever_the_noise():
    rng = np.random.default_rng(3)
    model = OrMixture(rng.random((8, 6)) < 0.4, rng.uniform(0.1, 0.6, 6), Noise.flips(0.2))
    rows = packed(model.sample(100, rng))
    found, plain = decode(model, rows, solver="zero-error"), decode(model.with_noise(Noise()), rows, solver="program")
    assert 0 < found.feasible.sum() < 100
    np.testing.assert_allclose(found.cost, plain.cost, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(found.n_wrong, plain.n_wrong)
