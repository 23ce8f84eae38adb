from itertools import pairwise

import numpy as np
import pytest

from bica import Noise, OrMixture
from bica.errors import DataError, SettingError
from bica.invert import DriftDetector, Watcher, decode, log_probability
from bica.kernels.bits import packed
from bica.simulate import random_network

MODEL = random_network(8, 6, noise=Noise.flips(0.02), rng=np.random.default_rng(3))
WIDE = random_network(40, 20, noise=Noise.flips(0.02), rng=np.random.default_rng(4))


def first_alarm(model, rows, limit, seed):
    """The number of the first row with an alarm, and the alarm; None if there is none."""
    watcher = Watcher(model, rows_per_false_alarm=limit, seed=seed)
    for row in rows.astype(np.uint8):
        seen = watcher.see(row)
        if seen.alarm:
            return seen.row, seen.alarm
    return None


def test_answers_are_those_of_decoding_and_changes_add_up():
    rows = MODEL.sample(200, np.random.default_rng(0))
    watcher, on = Watcher(MODEL), set()
    found = decode(MODEL, packed(rows)).activity
    chance = log_probability(MODEL, packed(rows)).value
    for row, active, log_chance in zip(rows.astype(np.uint8), found, chance, strict=True):
        seen = watcher.see(row)
        assert seen.active == tuple(np.flatnonzero(active).tolist())
        assert seen.log_probability == pytest.approx(log_chance)
        on = (on | set(seen.switched_on)) - set(seen.switched_off)
        assert on == set(seen.active)
        assert not set(seen.switched_on) & set(seen.switched_off)


@pytest.mark.parametrize("every", [1, 3])
def test_rows_that_arrive_together_get_the_answers_of_single_rows(every):
    rng = np.random.default_rng(5)
    rows = [[None if hidden else int(cell) for cell, hidden in zip(row, rng.random(8) < 0.02, strict=True)]
            for row in MODEL.sample(300, rng)]  # fmt: skip
    settings = {"rows_per_false_alarm": 20, "every": every}
    one_by_one, together = Watcher(MODEL, **settings), Watcher(MODEL, **settings)
    alone = [one_by_one.see(row) for row in rows]
    cuts = [0, 1, 8, 8, 150, 299, 300]
    assert [seen for i, k in pairwise(cuts) for seen in together.see_many(rows[i:k])] == alone
    assert together.n_alarms == one_by_one.n_alarms > 0
    assert together.n_strange == one_by_one.n_strange


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL, OrMixture([[1, 0], [1, 1]], [0.3, 0.2])], ids=["noisy", "without noise"])
def test_false_alarms_are_no_more_frequent_than_promised(model):
    """R minus the number of rows is a martingale: an alarm within n rows has at most the probability n / limit."""
    n_rows, limit, n_runs = 150, 1500, 150
    alarms = sum(
        first_alarm(model, model.sample(n_rows, np.random.default_rng(seed)), limit, seed) is not None
        for seed in range(n_runs)
    )
    bound = n_rows / limit
    assert alarms <= n_runs * bound + 4 * np.sqrt(n_runs * bound * (1 - bound))


def test_every_bet_has_mean_one_under_the_model():
    """The detector is fair for any model: exact over all patterns, and over the random numbers that break ties."""
    shares = MODEL.pattern_probability()
    patterns = (np.arange(shares.size)[:, None] >> np.arange(8)) & 1
    mean, everything = np.zeros(3 + 4 * 8), np.ones(8, dtype=bool)
    halves = DriftDetector(MODEL, 1e9)
    halves._rng = Half()
    for share, cells, chance in zip(shares, patterns.astype(np.uint8), np.log(shares), strict=True):
        halves._statistic[:] = 0.0
        halves.see(cells, everything, chance)
        mean += share * halves._statistic
    assert mean == pytest.approx(np.ones(3 + 4 * 8))


class Half:
    """The mean of all random numbers: bets are linear in them."""

    def random(self, size):
        return np.full(size, 0.5)


@pytest.mark.parametrize("model", [MODEL, WIDE], ids=["8 sensors", "40 sensors"])
def test_a_sensor_that_changes_is_noticed_and_named(model):
    rows = model.sample(1500, np.random.default_rng(1))
    busiest = int(rows.mean(axis=0).argmax())
    rows[500:, busiest] = False  # it has broken
    row, alarm = first_alarm(model, rows, 1e5, 0)
    assert 500 < row < 1000
    assert alarm.sensors[0] == (model.sensors[busiest], "less often")


def test_other_rows_with_the_same_rates_of_all_sensors_are_noticed():
    """Sensors are shuffled independently of each other: their rates stay, and what they share is gone."""
    rng = np.random.default_rng(2)
    rows = MODEL.sample(3000, rng)
    for column in range(rows.shape[1]):
        rows[:, column] = rng.permutation(rows[:, column])
    _, alarm = first_alarm(MODEL, rows, 1e5, 0)
    assert "rows are less likely" in alarm.sentence() or not alarm.sensors


def test_missing_cells_are_no_evidence():
    watcher = Watcher(MODEL, rows_per_false_alarm=2)
    for _ in range(50):
        seen = watcher.see([None] * 8)
    assert seen.active == ()
    assert watcher.n_strange == 0
    assert seen.log_probability == pytest.approx(0.0)


def test_rows_that_the_model_cannot_show_keep_the_last_answer_and_are_counted():
    watcher = Watcher(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
    watcher.see([1, 0])
    seen = watcher.see([0, 1])
    assert (seen.active, seen.is_news, watcher.n_strange) == ((0,), False, 1)


@pytest.mark.parametrize(("row", "sentence"), [([0, 1], "a row of 2 cells"), ([0] * 7 + [3], "holds 3")])
def test_what_is_no_row_is_refused(row, sentence):
    with pytest.raises(DataError, match=sentence):
        Watcher(MODEL).see(row)


@pytest.mark.parametrize("settings", [{"rows_per_false_alarm": 0.5}, {"rows_per_false_alarm": np.inf}, {"every": 0}])
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(SettingError):
        Watcher(MODEL, **settings)


CROWDED = random_network(40, 40, noise=Noise.flips(0.01), rng=np.random.default_rng(19))


def test_rows_of_crowded_models_are_as_likely_as_with_their_most_probable_activity():
    rows = CROWDED.sample(300, np.random.default_rng(1))
    watcher, found = Watcher(CROWDED), decode(CROWDED, packed(rows))
    sights = watcher.see_many(list(rows.astype(np.uint8)))
    assert [seen.log_probability for seen in sights] == pytest.approx((-found.cost).tolist())
    exact = log_probability(CROWDED, packed(rows[:2])).value
    assert all(seen.log_probability <= value + 1e-9 for seen, value in zip(sights, exact, strict=False))


def test_the_share_of_less_likely_rows_is_uniform_in_crowded_models_too():
    n_rows, n_drawn = 3000, 4000
    detector = Watcher(CROWDED, seed=3)._detector
    chances = -decode(CROWDED, packed(CROWDED.sample(n_rows, np.random.default_rng(2)))).cost
    shares = detector._shares_below(chances, np.ones(n_rows, dtype=bool))
    spread = np.sqrt((1 / n_rows + 1 / n_drawn) / 12)  # of the mean: of these rows, and of those that were drawn
    assert abs(shares.mean() - 0.5) < 4 * spread
    quarter = np.sqrt((1 / n_rows + 1 / n_drawn) * 3 / 16)
    assert abs((shares < 0.25).mean() - 0.25) < 4 * quarter


@pytest.mark.parametrize("row", [[1, 0, None], [True, False, True], [1.0, 0.0, 1.0]])
def test_cells_may_be_numbers_of_any_kind(row):
    model = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.5], Noise.flips(0.01))
    expected = Watcher(model).see_many([row])  # and together with others
    assert Watcher(model).see_many([row, [0, 1, 1]])[:1] == expected
