"""Sensor noise as a value."""

import numpy as np
import pytest

from bica.errors import ModelError
from bica.model.noise import Noise


def test_one_rate_serves_all_sensors_and_a_list_serves_each():
    false_alarm, miss = Noise(0.25, [0.0, 0.125, 0.5]).rates(3)
    assert false_alarm.tolist() == [0.25, 0.25, 0.25]
    assert miss.tolist() == [0.0, 0.125, 0.5]


def test_equal_noise_is_equal_and_hashes_alike():
    assert Noise(np.array([0.0, 0.5]), 0) == Noise([-0.0, 0.5], 0.0)
    assert hash(Noise(0.25)) == hash(Noise(np.float64(0.25)))
    assert Noise(0.25) != Noise(0, 0.25)


def test_noise_cannot_be_changed():
    with pytest.raises(AttributeError):
        Noise().miss = 0.5


@pytest.mark.parametrize("rate", [-0.1, 1.5, np.nan, np.inf, [0.1, -1e-9]])
@pytest.mark.parametrize("name", ["false_alarm", "miss"])
def test_a_rate_outside_its_range_is_refused_by_name(name, rate):
    with pytest.raises(ModelError, match=rf"^{name} must lie in \[0, 1\]"):
        Noise(**{name: rate})


@pytest.mark.parametrize("rate", ["0.1", None, 1j, ["a"], [0.1, [0.2]], [None]])
def test_what_is_no_number_is_refused(rate):
    with pytest.raises(ModelError, match=r"^miss must hold numbers"):
        Noise(0.0, rate)


def test_a_table_of_rates_is_refused():
    with pytest.raises(ModelError, match="2 dimensions"):
        Noise([[0.1]])


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0, 1), (1, 0), ([0.1, 0.9], 0.1), (0.6, [0.1, 0.4])])
def test_a_sensor_that_tells_nothing_is_refused(rates):
    with pytest.raises(ModelError, match=r"says nothing: place \d has .* leave that sensor out"):
        Noise(*rates)


def test_lists_of_different_length_are_refused():
    with pytest.raises(ModelError, match="3 miss rates for 2 sensors"):
        Noise([0.1, 0.1], [0.1, 0.1, 0.1])


def test_the_wrong_number_of_sensors_is_refused():
    with pytest.raises(ModelError, match="2 false_alarm rates for 3 sensors"):
        Noise([0.1, 0.2]).rates(3)


def test_sensors_keep_their_own_rates_when_chosen():
    noise = Noise([0.1, 0.2, 0.3], 0.05)
    assert noise.of_sensors([2, 0]) == Noise([0.3, 0.1], 0.05)
    assert noise.of_sensors(np.array([1])) == Noise([0.2], 0.05)
    assert noise.of_sensors([]) == Noise([], 0.05)


@pytest.mark.parametrize("noise", [Noise(), Noise(0, [0, 0]), Noise([], 0)])
def test_no_rate_is_no_noise(noise):
    assert noise.is_absent


@pytest.mark.parametrize("noise", [Noise(1e-300), Noise(0, [0, 0.1])])
def test_any_rate_is_noise(noise):
    assert not noise.is_absent


def test_cells_are_flipped_at_the_rate_of_their_state_and_sensor():
    n_rows = 40_000
    rows = np.repeat([[False, True], [True, False]], n_rows // 2, axis=0)
    noise = Noise([0.1, 0.0], [0.3, 0.2])
    shown = noise.apply(rows, np.random.default_rng(3))
    for sensor, state, rate in [(0, False, 0.1), (0, True, 0.3), (1, False, 0.0), (1, True, 0.2)]:
        cells = shown[rows[:, sensor] == state, sensor]
        # five standard errors of a frequency: one false alarm in two million runs, were the seed not fixed
        assert abs((cells != state).mean() - rate) <= 5 * np.sqrt(rate * (1 - rate) / cells.size)


def test_without_noise_rows_come_back_as_they_are():
    rows = np.random.default_rng(0).random((50, 3)) < 0.5
    assert np.array_equal(Noise().apply(rows, np.random.default_rng(1)), rows)


@pytest.mark.parametrize(
    "noise", [Noise(), Noise.flips(0.3), Noise(0.0, 0.995), Noise([0.2, 0.0], 0.0), Noise(0.4, [0.001, 0.59])], ids=str
)
@pytest.mark.parametrize("rate", [0.0, 0.01, 0.4])
def test_noise_is_raised_but_every_sensor_still_tells_something(noise, rate):
    raised = noise.at_least(rate)
    n_sensors = noise.n_sensors or 1
    for before, after, other in zip(
        noise.rates(n_sensors), raised.rates(n_sensors), noise.rates(n_sensors)[::-1], strict=True
    ):
        assert (after >= before).all()
        assert ((after >= rate) | (after == (1 - other) / 2)).all()
        assert (after == before)[before >= rate].all()
