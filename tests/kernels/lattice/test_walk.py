"""What the walk over sets of sources computes at every step, against the likelihood as it is defined."""

import math

import numpy as np
import pytest

from bica.kernels.lattice.likelihood import CellGroups
from bica.kernels.lattice.walk import CLEAR, NoisyRows, Place, _height, _room_for, _switch_on, _take_out
from tests.reference import slow_likelihood

N_SENSORS = 4
SOURCES = ((0b0011, 0.2), (0b0110, 0.4), (0b1001, 0.1))
ROWS = [(0, 0, 0, 0), (1, 1, 0, 0), (0, 1, 1, 0), (1, 0, 0, 1), (1, 1, 1, 1), (0, None, 1, 1), (1, None, 0, 0)]
WEIGHTS = [3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 5.0]  # four equal ones follow each other


def observed() -> NoisyRows:
    cells = np.array([sum(bool(cell) << i for i, cell in enumerate(row)) for row in ROWS])
    ones, nothing = np.ones((N_SENSORS, 1)), np.zeros(N_SENSORS)
    groups = CellGroups(np.array([0, 0b0010]), np.array([0, 5, 7]), cells)
    return NoisyRows(groups, np.array(WEIGHTS), nothing, nothing, ones, ones, 1e-9, np.array([0.45]))


def place_of(sources: tuple[tuple[int, float], ...], flip_rate: float) -> Place:
    place = Place(
        np.zeros(8, np.int64),
        np.zeros(8),
        np.ones(8, bool),
        np.array([flip_rate]),
        np.array([len(sources), 0]),
        np.zeros(1),
        np.zeros(1, np.int64),
    )
    for j, (source, probability) in enumerate(sources):
        place.sources[j], place.log_rate[j] = source, math.log(-math.log1p(-probability))
    return place


@pytest.mark.parametrize("flip_rate", [0.1, CLEAR, 0.5 * CLEAR, 1e-7])
@pytest.mark.parametrize("left_out", [-1, 0, 2])
def test_the_height_is_the_likelihood_with_any_source_taken_out_and_another_put_in(flip_rate, left_out):
    rows, place = observed(), place_of(SOURCES, flip_rate)
    cells, errors = _room_for(rows, 2**N_SENSORS), [flip_rate] * N_SENSORS
    _take_out(place, left_out, rows, cells)
    others = [source for j, source in enumerate(SOURCES) if j != left_out]
    for source, probability in ((0b0001, 0.3), (0b1110, 0.05), (0b1111, 0.8)):
        _switch_on(cells, source, rows.groups)
        height = _height(cells.off, cells.on, math.log(-math.log1p(-probability)), rows.weights)
        wanted = slow_likelihood.log_likelihood(ROWS, WEIGHTS, [*others, (source, probability)], errors, errors)
        assert height == pytest.approx(wanted, rel=1e-9)


def test_a_row_that_is_impossible_is_impossible_among_others_of_its_weight():
    off, weights = np.array([0.1, -0.1, -0.1, 0.1, 0.3]), np.ones(5)
    assert _height(off, off, -math.inf, weights) == -math.inf
    assert _height(np.full(5, 1e-100), np.full(5, 1e-100), 0.0, weights) == pytest.approx(5 * math.log(1e-100))
