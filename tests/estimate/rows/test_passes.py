"""Wide sources of a table that is sampled: numbers from all rows, and none missed for being rare."""

import numpy as np
import pytest

from bica import Noise, OrMixture
from bica.data.observations import TableSums
from bica.data.partitions import Partition, Shelf
from bica.estimate.likelihood import Likelihood
from bica.pipeline import learn

pytestmark = pytest.mark.slow
N_SENSORS, N_ROWS, FLIPS = 100, 60_000, 0.01
N_OF_THE_RARE_ONE = 20  # rows of 60 000, so 2 of a sample of 6000


def network(rng):
    mixing = np.zeros((N_SENSORS, 11), dtype=bool)
    for source in range(11):
        mixing[rng.choice(N_SENSORS, rng.integers(12, 20), replace=False), source] = True
    return OrMixture(mixing, np.full(11, 0.03), Noise.flips(FLIPS))


def partitions(truth, rng, n_parts, *, gaps):
    """Rows in which the last source is on a few times only, in so many partitions, and how often each source was on."""
    activity = rng.random((N_ROWS, 11)) < truth.probability
    activity[:, -1] = np.isin(np.arange(N_ROWS), rng.choice(N_ROWS, N_OF_THE_RARE_ONE, replace=False))
    rows = truth.observe(activity) ^ (rng.random((N_ROWS, N_SENSORS)) < FLIPS)
    cells = np.where(rng.random(rows.shape) < 0.02, 2, rows).astype(np.uint8) if gaps else rows.astype(np.uint8)
    pieces = [Partition.of_cells(np.ascontiguousarray(part.T)) for part in np.array_split(cells, n_parts)]
    return Shelf.of(pieces, truth.sensors), activity.sum(axis=0)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "missing cells"])
def test_numbers_come_from_all_rows_and_a_rare_source_is_not_missed(monkeypatch, gaps):
    monkeypatch.setattr("bica.data.observations.CELLS_IN_MEMORY", 6000 * N_SENSORS)  # a tenth of the table
    rng = np.random.default_rng(20)
    truth = network(rng)
    shelf, n_on = partitions(truth, rng, 4, gaps=gaps)
    fit = learn(TableSums.of(shelf), Likelihood(n_jobs=1), np.random.default_rng(0)).fit
    found = {tuple(column): j for j, column in enumerate(fit.model.mixing.T)}
    assert set(found) == {tuple(column) for column in truth.mixing.T}
    order = [found[tuple(column)] for column in truth.mixing.T]
    # rows of 12 sensors and more hardly hide whether a source is on: all but one in some thousands are seen
    assert np.abs(fit.model.probability[order] * N_ROWS - n_on).max() < 3  # a sample of a tenth is off by some 130
    error = fit.probability_error[order][:-1]
    assert error == pytest.approx(np.sqrt(0.03 * 0.97 / N_ROWS), rel=0.1)
    cells = N_ROWS * N_SENSORS * (0.98 if gaps else 1.0)
    wrong = np.mean(fit.model.noise.rates(N_SENSORS)[0])
    assert wrong == pytest.approx(FLIPS, abs=4 * np.sqrt(FLIPS / cells))
