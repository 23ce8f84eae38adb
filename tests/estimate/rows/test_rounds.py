"""Sources of any width, learned from rows."""

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.estimate.rows.pool import RowPool, RowTable, as_columns
from bica.estimate.rows.rounds import RowSettings, row_rounds
from bica.model.noise import Noise
from bica.progress import listening

N_SENSORS, N_SAMPLES = 40, 4000


def network(seed, n_sources=8, widths=(3, 12)):
    rng = np.random.default_rng(seed)
    columns = set()
    while len(columns) < n_sources:
        columns.add(tuple(sorted(rng.choice(N_SENSORS, rng.integers(*widths), replace=False).tolist())))
    return sorted(columns), rng.uniform(0.03, 0.12, n_sources)


def drawn(columns, probability, flip_rate, seed, n_samples=N_SAMPLES):
    rng = np.random.default_rng(seed)
    mixing = np.zeros((len(columns), N_SENSORS), bool)
    for source, column in enumerate(columns):
        mixing[source, list(column)] = True
    rows = (rng.random((n_samples, len(columns))) < probability) @ mixing
    return rows ^ (rng.random(rows.shape) < flip_rate)


def learned(rows, start=None, noise=0.02, seed=0, **settings):
    table = RowTable.of(rows if isinstance(rows, PatternCounts) else PatternCounts.of(rows))
    return row_rounds(table, start or RowPool.of(), noise, np.random.default_rng(seed), RowSettings(**settings))


COLUMNS, PROBABILITY = network(1)
ROWS = drawn(COLUMNS, PROBABILITY, 0.02, 2)


@pytest.mark.parametrize("flip_rate", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("seed", [3, 4])
def test_every_source_is_found_and_no_other(seed, flip_rate):
    columns, probability = network(seed)
    fit = learned(drawn(columns, probability, flip_rate, seed))
    assert sorted(fit.columns) == columns
    assert fit.converged
    assert not fit.interrupted
    n_cells = N_SAMPLES * N_SENSORS
    assert abs(fit.flip_rate - flip_rate) < 5 * np.sqrt(max(flip_rate, 1e-5) / n_cells) + 1e-5
    order = [fit.columns.index(column) for column in columns]
    error = (fit.probability[order] - probability) / fit.probability_error[order]
    assert np.abs(error).max() < 4.5
    # nothing hidden: not below the error of activity that is seen; all but hidden: not far above it
    floor = np.sqrt(probability * (1 - probability) / N_SAMPLES)
    assert (fit.probability_error[order] > 0.7 * floor).all()
    assert (fit.probability_error[order] < 3 * floor).all()
    assert fit.n_on[order] == pytest.approx(fit.probability[order] * N_SAMPLES, rel=0.02)


def test_neither_threads_nor_a_second_run_change_anything():
    one, two, again = (learned(ROWS, n_jobs=n) for n in (1, 2, 2))
    for other in (two, again):
        assert other.columns == one.columns
        assert other.probability.tolist() == one.probability.tolist()
        assert other.probability_error.tolist() == one.probability_error.tolist()
        assert (other.flip_rate, other.objective) == (one.flip_rate, one.objective)


def test_equal_rows_are_decoded_once_and_weighted():
    rows = drawn(COLUMNS, PROBABILITY, 0.0, 5, 1000)
    table = RowTable.of(PatternCounts.of(np.repeat(rows, 3, axis=0)))
    assert table.n_rows == len(np.unique(rows, axis=0))
    assert table.n_samples == 3000
    assert sorted(learned(np.repeat(rows, 3, axis=0)).columns) == COLUMNS


def test_many_rows_are_learned_from_some_of_them_first():
    fit = learned(ROWS, first_rows=1500)
    assert sorted(fit.columns) == COLUMNS


def test_a_start_is_verified():
    wrong = [(0, 1, 2), (5, 30)]
    fit = learned(ROWS, RowPool.of([*COLUMNS, *wrong], [*PROBABILITY, 0.03, 0.03]))
    assert sorted(fit.columns) == COLUMNS


def test_a_start_beyond_the_sensors_is_refused():
    with pytest.raises(SettingError, match="reaches sensor 40 of 40"):
        learned(ROWS, RowPool.of([(0, 40)], [0.1]))


def test_nothing_to_learn_from_noise_alone():
    rows = np.random.default_rng(6).random((2000, 30)) < 0.03
    assert learned(rows).columns == ()
    assert learned(np.zeros((50, 4), bool)).columns == ()


class TestKnowledge:
    def test_known_sources_stay_as_they_are(self):
        known = [COLUMNS[0], (0, 39), tuple(COLUMNS[1][:-1])]
        fit = learned(ROWS, RowPool.of(known, [0.05] * 3, fixed=True))
        assert set(known) | set(COLUMNS[2:]) <= set(fit.columns)

    def test_known_probabilities_too(self):
        pool = RowPool.of([COLUMNS[0]], [0.2], fixed=True)
        pool.held[:] = True
        fit = learned(ROWS, pool)
        assert fit.probability[fit.columns.index(COLUMNS[0])] == 0.2

    def test_forbidden_columns_are_not_found(self):
        pair = set(COLUMNS[0][:2])
        fit = learned(ROWS, forbidden=lambda column: pair <= set(column))
        assert fit.columns
        assert not any(pair <= set(column) for column in fit.columns)
        assert len(set(COLUMNS) & set(fit.columns)) >= len(COLUMNS) - 2

    def test_known_noise_of_each_sensor_is_kept(self):
        miss = np.where(np.arange(N_SENSORS) < 20, 0.1, 0.01)
        noise = Noise(0.005, miss)
        clean = drawn(COLUMNS, PROBABILITY, 0.0, 7)
        fit = learned(noise.apply(clean, np.random.default_rng(8)), noise=noise)
        assert sorted(fit.columns) == COLUMNS
        assert fit.flip_rate == pytest.approx((0.005 + miss.mean()) / 2)


def test_cells_that_were_not_observed_say_nothing():
    rows = ROWS.astype(float)
    rows[np.random.default_rng(9).random(rows.shape) < 0.1] = np.nan
    fit = learned(rows)
    assert sorted(fit.columns) == COLUMNS
    order = [fit.columns.index(column) for column in COLUMNS]
    assert (np.abs(fit.probability[order] - PROBABILITY) < 4.5 * fit.probability_error[order]).all()


def test_lone_sources_rarer_than_the_noise_come_from_counts():
    columns = [*COLUMNS, (7,)]
    rows = drawn(columns, [*PROBABILITY, 0.04], 0.03, 10, 20_000)
    fit = learned(rows)
    assert sorted(fit.columns) == sorted(columns)
    place = fit.columns.index((7,))
    assert abs(fit.probability[place] - 0.04) < 4.5 * np.sqrt(0.07 / 20_000)


class TestInterruption:
    def interrupted(self, what, after, first_rows):
        heard = []

        def listener(told, *_):
            heard.append(told)
            if heard.count(what) >= after:
                raise KeyboardInterrupt

        with listening(listener):
            return learned(ROWS, first_rows=first_rows)

    @pytest.mark.parametrize(("what", "after", "n_found"), [("sources", 2, 1), ("sweeps", 1, 8), ("sweeps", 8, 8)])
    @pytest.mark.parametrize("first_rows", [12_000, 1500])
    def test_the_best_so_far_is_kept(self, what, after, n_found, first_rows):
        fit = self.interrupted(what, after, first_rows)
        assert fit.interrupted
        assert not fit.converged
        assert len(set(fit.columns) & set(COLUMNS)) >= n_found
        assert fit.probability.shape == fit.probability_error.shape == fit.n_on.shape == (len(fit.columns),)
        assert np.isfinite(fit.objective)


class TestPool:
    def test_equal_columns_merge_and_empty_ones_go(self):
        pool = RowPool.of([(0, 1), (), (1, 0), (2,)], [0.1, 0.5, 0.2, 0.3]).merged()
        assert as_columns(pool.columns) == [(0, 1), (2,)]
        assert pool.probability == pytest.approx([1 - 0.9 * 0.8, 0.3])

    def test_a_known_source_outlives_its_equal(self):
        pool = RowPool.of([(0, 1)], [0.1]).plus(RowPool.of([(0, 1)], [0.2], fixed=True)).merged()
        assert pool.fixed.tolist() == [True]
