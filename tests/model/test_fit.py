"""What a method found, as a value and as a file."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.errors import ModelError, SettingError
from bica.model.files import document_text, parse_document
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture
from tests.strategies import models

MODEL = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])


def through_a_file(fit):
    return Fit.of_document(parse_document(document_text(fit.document()), "file"))


@given(
    models(),
    st.one_of(st.none(), st.floats(0, 1e15)),
    st.one_of(st.none(), st.just(-np.inf), st.floats(-1e300, 0)),
    st.integers(0, 10**6),
    st.booleans(),
    st.data(),
)
def test_a_fit_comes_back_as_it_was(model, n_samples, log_likelihood, n_iter, converged, data):
    errors = data.draw(st.one_of(st.none(), st.lists(st.floats(0), min_size=model.n_sources, max_size=model.n_sources)))
    fit = Fit(model, "some", n_samples, log_likelihood, errors, n_iter, converged, {"steps": [1, "two", None]})
    again = through_a_file(fit)
    assert again.document() == fit.document()
    assert again.model == model
    told = (again.method, again.n_samples, again.log_likelihood, again.n_iter, again.converged, again.diagnostics)
    assert told == ("some", n_samples, log_likelihood, n_iter, converged, {"steps": [1, "two", None]})


def test_errors_come_back_with_their_gaps():
    fit = through_a_file(Fit(MODEL, "some", probability_error=[0.01, np.nan]))
    np.testing.assert_array_equal(fit.probability_error, [0.01, np.nan])


def test_no_error_at_all_comes_back_as_none():
    assert through_a_file(Fit(MODEL, "some", probability_error=[np.nan, np.inf])).probability_error is None
    assert through_a_file(Fit(MODEL, "some")).probability_error is None


def test_an_impossible_table_has_a_likelihood_that_a_file_can_hold():
    text = document_text(Fit(MODEL, "some", log_likelihood=-np.inf).document())
    assert '"log_likelihood": "-inf"' in text
    assert Fit.of_document(parse_document(text, "file")).log_likelihood == -np.inf


def test_numpy_values_are_written_as_plain_ones():
    fit = Fit(
        MODEL,
        "some",
        np.float32(10),
        np.float64(-2),
        n_iter=np.int64(3),
        converged=np.bool_(False),
        diagnostics={"p": np.array([0.5, np.nan]), "n": np.int32(4)},
    )
    again = through_a_file(fit)
    assert (again.n_samples, again.log_likelihood, again.n_iter, again.converged) == (10, -2, 3, False)
    assert again.diagnostics == {"p": [0.5, "nan"], "n": 4}


def test_a_model_that_was_given_does_not_claim_to_be_learned():
    assert Fit(MODEL).document() == MODEL.document()
    assert through_a_file(Fit(MODEL)).method == "given"
    assert '"fitted": {}' in document_text(MODEL.document())


def test_files_of_models_and_fits_can_be_read_as_either(tmp_path):
    MODEL.save(tmp_path / "model.json")
    Fit(MODEL, "some", 10.0).save(tmp_path / "fit.json")
    assert Fit.load(tmp_path / "model.json").model == OrMixture.load(tmp_path / "fit.json") == MODEL
    assert Fit.load(tmp_path / "fit.json").n_samples == 10


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        ({"log_likelihood": np.nan}, "log-likelihood cannot be nan"),
        ({"log_likelihood": np.inf}, "log-likelihood cannot be inf"),
        ({"n_samples": -1}, "n_samples cannot be -1"),
        ({"n_samples": np.nan}, "n_samples cannot be nan"),
        ({"n_samples": np.inf}, "n_samples cannot be inf"),
        ({"method": ""}, "name of its method"),
    ],
)
def test_what_cannot_be_is_refused(part, complaint):
    with pytest.raises(ModelError, match=complaint):
        Fit(MODEL, **part)


@pytest.mark.parametrize(
    ("errors", "complaint"),
    [([0.1], "has shape"), ([[0.1, 0.1]], "has shape"), ([0.1, -0.1], "cannot be -0.1"), (["a", "b"], "numbers")],
)
def test_errors_that_cannot_be_are_refused(errors, complaint):
    with pytest.raises(ModelError, match=complaint):
        Fit(MODEL, probability_error=errors)


def test_errors_cannot_be_changed_afterwards():
    given = np.array([0.1, 0.2])
    fit = Fit(MODEL, probability_error=given)
    given[0] = 9
    assert fit.probability_error.tolist() == [0.1, 0.2]
    with pytest.raises(ValueError, match="read-only"):
        fit.probability_error[0] = 9


def test_intervals_have_two_ends_a_source_and_gaps_where_there_is_no_error():
    fit = Fit(MODEL, probability_error=[0.01, np.nan])
    np.testing.assert_allclose(fit.interval(0.6826895)[0], [0.2 - 0.01, 0.2 + 0.01], atol=3e-4)
    assert np.isnan(fit.interval()[1]).all()
    assert np.isnan(Fit(MODEL).interval()).all()
    assert Fit(MODEL).interval().shape == (2, 2)
    assert Fit(MODEL.pick([])).interval().shape == (0, 2)


@pytest.mark.parametrize("level", [0, 1, 95, np.nan])
def test_a_level_that_means_nothing_is_refused(level):
    with pytest.raises(SettingError, match="between 0 and 1"):
        Fit(MODEL).interval(level)


class TestPersistence:
    MODEL = OrMixture([[1, 0], [0, 1]], [1.0, 0.2])

    def test_a_fit_without_order_has_none(self):
        assert Fit(self.MODEL).persistence() is None

    def test_it_survives_the_file(self, tmp_path):
        Fit(self.MODEL, diagnostics={"persistence": [None, 4.5]}).save(tmp_path / "model.json")
        assert Fit.load(tmp_path / "model.json").persistence().tolist() == [np.inf, 4.5]

    @pytest.mark.parametrize(
        "strange", ["ab", [1], [1, 2, 3], [1, "2"], [1, 0.5], 3, {"a": 1, "b": 2}, [1, float("nan")]]
    )
    def test_anything_else_in_the_file_is_refused_when_it_is_needed(self, strange):
        with pytest.raises(ModelError, match="not one number of slots from 1 up, or null, per source"):
            Fit(self.MODEL, diagnostics={"persistence": strange}).persistence()
