"""What any correct method satisfies, with tolerances derived, not remembered."""

import json

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.invert.temporal.decode import decode_in_time
from bica.methods import COUNTED, METHODS, REFERENCES, WIDE_ONLY, method_named, needs_n_sources
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import simulate

TRUTH = OrMixture([[1, 1, 0], [0, 1, 0], [0, 0, 1]], [0.2, 0.5, 0.3], sensors=["north", "east", "south"])
ROWS = TRUTH.sample(4000, np.random.default_rng(7))

# For methods that need several sensors per source, and rows of which less than half is on.
SENSOR = np.arange(30)
WIDE_COLUMNS = [SENSOR < 10, (SENSOR >= 8) & (SENSOR < 18), (SENSOR >= 18) & (SENSOR < 28)]  # the last two are silent
WIDE_TRUTH = OrMixture(np.transpose(WIDE_COLUMNS), [0.2, 0.3, 0.25])
WIDE_ROWS = WIDE_TRUTH.sample(400, np.random.default_rng(7))


def problem(name):
    """What the method of this name has to solve: the true model and its rows."""
    return (WIDE_TRUTH, WIDE_ROWS) if name in WIDE_ONLY else (TRUTH, ROWS)


def fit(name, rows, sensors=TRUTH.sensors, n_sources=TRUTH.n_sources):
    """By the method of this name with its defaults, told the number of sources if it needs that."""
    method = method_named(name, n_sources=n_sources) if needs_n_sources(name) else method_named(name)
    return method.fit(PatternCounts.of(rows, sensors=sensors), np.random.default_rng(0))


def columns(model):
    return {tuple(column) for column in model.mixing.T.tolist()}


@pytest.mark.parametrize("name", [name for name in METHODS if name not in REFERENCES])
class TestEveryMethodForOrMixtures:
    def test_it_finds_the_sources(self, name):
        truth, rows = problem(name)
        assert columns(fit(name, rows, truth.sensors).model) == columns(truth)

    def test_swapping_sensors_swaps_rows_of_the_mixing(self, name):
        truth, rows = problem(name)
        straight, swapped = (
            fit(name, rows, truth.sensors).model,
            fit(name, rows[:, ::-1], truth.sensors[::-1]).model,
        )
        assert {column[::-1] for column in columns(swapped)} == columns(straight)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in (*COUNTED, *REFERENCES, *WIDE_ONLY)])
class TestEveryMethodThatEstimates:
    def test_probability_is_within_four_standard_errors(self, name):
        found = fit(name, ROWS).model.probability
        quiet = np.sum(ROWS[:, 1] == 0)  # source 0 is seen alone only where sensor 1 is quiet
        assert np.abs(found - np.sort(TRUTH.probability)[::-1]).max() < 4 * np.sqrt(0.25 / quiet)


@pytest.mark.parametrize("name", METHODS)
class TestEveryMethod:
    def test_row_order_changes_nothing(self, name):
        truth, rows = problem(name)
        shuffled = rows[np.random.default_rng(1).permutation(len(rows))]
        assert fit(name, shuffled, truth.sensors).model == fit(name, rows, truth.sensors).model

    def test_sources_come_by_falling_probability_and_sensors_keep_their_names(self, name):
        truth, rows = problem(name)
        model = fit(name, rows, truth.sensors).model
        assert model.probability.tolist() == sorted(model.probability, reverse=True)
        assert model.sensors == truth.sensors

    def test_fitting_twice_gives_the_same_bytes(self, name, tmp_path):
        truth, rows = problem(name)
        for file in ("first", "second"):
            fit(name, rows, truth.sensors).save(tmp_path / file)
        assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()

    def test_the_fit_survives_its_file(self, name, tmp_path):
        truth, rows = problem(name)
        found = fit(name, rows, truth.sensors)
        found.save(tmp_path / "model.json")
        again = Fit.load(tmp_path / "model.json")
        assert again.model == found.model
        assert (again.method, again.n_samples, again.converged) == (found.method, found.n_samples, found.converged)
        json.dumps(dict(found.diagnostics))

    def test_silent_rows_have_no_sources(self, name):
        assert fit(name, np.zeros((20, 3))).model.n_sources == 0


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WIDE_ONLY])
def test_one_sensor(name):
    rows = np.random.default_rng(2).random((400, 1)) < 0.3
    model = fit(name, rows, ["alone"], n_sources=1).model
    assert model.mixing.tolist() == [[True]]
    assert abs(model.probability[0] - rows.mean()) < 1 / len(rows)  # less than one row


# Consecutive rows, in which sources stay on for five slots on average.
IN_TIME = simulate(TRUTH.with_noise(Noise.flips(0.02)), 3000, np.random.default_rng(3), persistence=5)
WITH_ORDER = [name for name in METHODS if hasattr(method_named(name), "fit_in_order")]


def fit_in_order(name, rows, sensors=TRUTH.sensors):
    return method_named(name).fit_in_order(Rows.of(rows, sensors=sensors), np.random.default_rng(0))


def test_there_are_methods_that_use_the_order():
    assert "likelihood" in WITH_ORDER


@pytest.mark.parametrize("name", WITH_ORDER)
class TestEveryMethodThatUsesTheOrder:
    def test_it_finds_the_sources_and_their_stays(self, name):
        found = fit_in_order(name, IN_TIME.rows)
        assert columns(found.model) == columns(TRUTH)
        assert found.model.probability.tolist() == sorted(found.model.probability, reverse=True)
        # sources start at least 3000 x 0.2 / 5 = 120 times; stays are geometric, with a deviation of about their mean
        np.testing.assert_allclose(found.persistence(), 5, atol=4 * 5 / np.sqrt(120))

    def test_time_may_run_backwards(self, name):
        """Chains of two states are as likely in either direction."""
        forwards, backwards = (fit_in_order(name, rows).model for rows in (IN_TIME.rows, IN_TIME.rows[::-1]))
        assert columns(backwards) == columns(forwards)
        # the rarest source, on for 5 slots, repeats itself with 0.75 from slot to slot: a row counts as 1/7 of one
        error = np.sqrt(0.2 * 0.8 * 7 / len(IN_TIME.rows))
        np.testing.assert_allclose(backwards.probability, forwards.probability, atol=error / 4)

    def test_swapping_sensors_swaps_rows_of_the_mixing(self, name):
        straight = fit_in_order(name, IN_TIME.rows).model
        swapped = fit_in_order(name, IN_TIME.rows[:, ::-1], TRUTH.sensors[::-1]).model
        assert {column[::-1] for column in columns(swapped)} == columns(straight)

    def test_what_the_order_changed_is_in_the_model_or_out_of_it(self, name):
        found = fit_in_order(name, IN_TIME.rows)
        sources = [[s for s, on in zip(TRUTH.sensors, column, strict=True) if on] for column in found.model.mixing.T]
        changed = found.diagnostics["in_time"]
        assert all(source in sources for source in changed["added"])
        assert not any(source in sources for source in changed["dropped"])

    def test_what_it_notes_is_enough_to_decode_in_time(self, name):
        rows = np.hstack([IN_TIME.rows, np.ones((3000, 1), dtype=bool)])  # the last source is always on
        found = fit_in_order(name, rows, [*TRUTH.sensors, "stuck"])
        stays = found.persistence()
        assert np.isinf(stays).tolist() == (found.model.probability == 1).tolist()
        given = Rows.of(rows)
        course = decode_in_time(found.model, given.words, given.observed, persistence=stays)
        np.testing.assert_array_equal(course.persistence, stays)
        assert course.activity[:, found.model.probability == 1].all()

    def test_learning_twice_gives_the_same_bytes_which_survive_their_file(self, name, tmp_path):
        for file in ("first", "second"):
            fit_in_order(name, IN_TIME.rows).save(tmp_path / file)
        assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
        again = Fit.load(tmp_path / "first")
        np.testing.assert_array_equal(again.persistence(), fit_in_order(name, IN_TIME.rows).persistence())

    def test_silent_rows_have_no_sources(self, name):
        found = fit_in_order(name, np.zeros((20, 3)))
        assert found.model.n_sources == 0
        assert found.persistence().size == 0
