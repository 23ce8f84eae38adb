"""Edges that may fail, as part of the model's value: the door, order, files, sampling and exact probabilities."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica import BICA
from bica.data.patterns import PatternCounts
from bica.errors import ModelError, ModelFileError
from bica.model.files import document_text, parse_document
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.model.test_files import all_places
from tests.reference.slow_lossy import SlowLossy
from tests.strategies import clear_probabilities, clear_rates, lossy_models

ROUNDING = 1e-13  # 2^4 activities, each a product of some twenty factors below 1
REACH = [[0.9, 0], [0.4, 1], [0, 0.7]]
MIXING = np.array(REACH) > 0
MODEL = OrMixture(MIXING, [0.2, 0.5], Noise([0.01, 0.02, 0.0]), REACH, sensors=["a", "b", "c"], names=["p", None])


class TestTheDoor:
    def test_it_keeps_what_was_given(self):
        assert MODEL.has_lossy_edges
        assert MODEL.reach.tolist() == REACH
        assert not MODEL.reach.flags.writeable

    def test_sure_edges_are_no_news(self):
        sure = OrMixture(MIXING, [0.2, 0.5], reach=MIXING.astype(float))
        assert not sure.has_lossy_edges
        assert sure == OrMixture(MIXING, [0.2, 0.5])
        assert sure.reach.tolist() == MIXING.tolist()

    @pytest.mark.parametrize(
        ("reach", "complaint"),
        [
            ([[0.5, 0.5, 0.5]], "reach has shape"),
            ([[1.5, 0], [1, 1], [0, 1]], "reach must lie in"),
            ([[0.5, 0.1], [1, 1], [0, 1]], "source 1 and sensor 0 have an edge in only one of mixing and reach"),
            ([[0, 0], [1, 1], [0, 1]], "source 0 and sensor 0 have an edge in only one of mixing and reach"),
            ([[np.nan, 0], [1, 1], [0, 1]], "reach must lie in"),
        ],
    )
    def test_a_wrong_reach_is_refused(self, reach, complaint):
        with pytest.raises(ModelError, match=complaint):
            OrMixture(MIXING, [0.2, 0.5], reach=reach)

    def test_lossy_twins_stay_apart_and_sure_ones_are_merged(self):
        model = OrMixture(np.ones((2, 4)), [0.5, 0.1, 0.5, 0.2], reach=[[1, 0.5, 1, 1], [1, 1, 1, 0.9]])
        assert model.probability.tolist() == [0.75, 0.1, 0.2]
        assert len(set(model.source_ids())) == 3

    @given(lossy_models(), st.data())
    def test_fewer_sensors_are_the_same_rows_with_cells_left_out(self, model, data):
        kept = data.draw(
            st.lists(st.sampled_from(range(model.n_sensors)), unique=True) if model.n_sensors else st.just([])
        )
        part, slow = model.of_sensors(kept), SlowLossy.of(model)
        rows = [
            [bool(s >> kept.index(i) & 1) if i in kept else None for i in range(model.n_sensors)]
            for s in range(2 ** len(kept))
        ]
        np.testing.assert_allclose(part.pattern_probability(), [slow.row(row) for row in rows], rtol=0, atol=ROUNDING)

    @given(lossy_models())
    def test_order_names_noise_and_copies_keep_the_reach(self, model):
        ordered = model.in_order()
        assert sorted(map(tuple, ordered.reach.T)) == sorted(map(tuple, model.reach.T))
        assert (np.diff(ordered.probability) <= 0).all()
        for same in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.with_names(model.names)):
            assert same == model
        assert np.array_equal(model.with_noise(Noise()).reach, model.reach)

    def test_models_of_other_reach_differ(self):
        assert OrMixture(MIXING, [0.2, 0.5], MODEL.noise, sensors=MODEL.sensors, names=MODEL.names) != MODEL
        assert (
            OrMixture(MIXING, [0.2, 0.5], MODEL.noise, np.array(REACH) / 2, sensors="abc", names=["p", None]) != MODEL
        )

    def test_equal_probabilities_are_ordered_by_reach_whatever_the_order_given(self):
        reach = np.array([[0.3, 0.9, 0.3], [0.5, 0.5, 0.6]])
        models = [OrMixture(np.ones((2, 3)), [0.2] * 3, reach=reach[:, order]) for order in ([0, 1, 2], [2, 0, 1])]
        assert models[0].in_order() == models[1].in_order()
        assert models[0].in_order().reach[0].tolist() == [0.9, 0.3, 0.3]

    def test_the_estimator_shows_the_reach(self):
        assert np.array_equal(BICA.from_model(MODEL).reach_, MODEL.reach.T)


class TestTheFile:
    FIT = Fit(
        MODEL,
        "some",
        probability_error=[0.01, 0.02],
        reach_error=[[0.1, np.nan], [np.nan, 0.0], [np.nan, 0.3]],
        leak_error=[0.001, np.nan, 0.002],
    )

    def again(self, fit):
        return Fit.of_document(parse_document(document_text(fit.document()), "file"))

    @given(lossy_models())
    def test_a_model_comes_back_as_it_was(self, model):
        assert self.again(Fit(model)).model == model

    def test_errors_come_back_with_their_gaps(self):
        found = self.again(self.FIT)
        np.testing.assert_array_equal(found.reach_error, self.FIT.reach_error)
        np.testing.assert_array_equal(found.leak_error, self.FIT.leak_error)
        assert self.again(Fit(MODEL)).reach_error is None

    def test_sources_in_another_order_keep_their_errors(self):
        ordered = self.FIT.in_order()
        np.testing.assert_array_equal(ordered.reach_error, np.array(self.FIT.reach_error)[:, ::-1])
        np.testing.assert_array_equal(ordered.reach_interval(), self.FIT.reach_interval()[:, ::-1])

    def test_only_lossy_edges_need_the_new_version(self):
        lossy, sure = (json.loads(document_text(model.document())) for model in (MODEL, OrMixture(MIXING, [0.2, 0.5])))
        assert (lossy["version"], sure["version"]) == (2, 1)
        assert lossy["sources"][0]["reach"] == [0.9, 0.4]
        assert all("reach" not in source for source in sure["sources"])

    def test_sensors_may_be_listed_in_any_order(self):
        content = json.loads(document_text(self.FIT.document()))
        for name in ("sensors", "reach", "reach_error"):
            content["sources"][0][name].reverse()
        assert parse_document(json.dumps(content), "file") == self.FIT.document()

    @pytest.mark.parametrize("reach", [[0.5], [0.5, 0.0], [0.5, 1.5], 0.5, [0.5, None], [0.5, "1"]])
    def test_a_wrong_reach_is_one_sentence(self, reach):
        content = json.loads(document_text(MODEL.document()))
        content["sources"][0]["reach"] = reach
        with pytest.raises(ModelFileError, match="source 1"):
            parse_document(json.dumps(content), "file")

    def test_the_old_version_knows_no_reach(self):
        content = json.loads(document_text(MODEL.document()))
        content["version"] = 1
        with pytest.raises(ModelFileError, match="unknown entry 'reach'"):
            parse_document(json.dumps(content), "file")

    @given(st.data())
    def test_a_changed_entry_gives_a_fit_or_one_sentence(self, data):
        """Anything may stand anywhere: no error but ours may come out."""
        leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(-2, 2), st.text(max_size=3))
        content = json.loads(document_text(self.FIT.document()))
        *path, last = data.draw(st.sampled_from(list(all_places(content))))
        place = content
        for key in path:
            place = place[key]
        place[last] = data.draw(st.one_of(leaves, st.lists(leaves, max_size=3), st.just({})))
        try:
            found = Fit.of_document(parse_document(json.dumps(content), "file"))
        except ModelFileError:
            return
        assert ((found.model.reach > 0) == found.model.mixing).all()

    @pytest.mark.parametrize("name", ["reach_error", "leak_error"])
    def test_errors_of_another_shape_are_refused(self, name):
        with pytest.raises(ModelError, match=name):
            Fit(MODEL, **{name: [[0.1]]})


@given(lossy_models())
def test_pattern_probability_matches_every_activity(model):
    np.testing.assert_allclose(model.pattern_probability(), SlowLossy.of(model).table(), rtol=0, atol=ROUNDING)


@given(lossy_models(min_sensors=1, max_sources=3, chances=clear_probabilities, rates=clear_rates), st.data())
def test_missing_cells_are_summed_out(model, data):
    cell = st.sampled_from([False, True, None])
    rows = data.draw(
        st.lists(st.lists(cell, min_size=model.n_sensors, max_size=model.n_sensors), min_size=1, max_size=4)
    )
    table = np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=float)
    found = model.log_likelihood(PatternCounts.of(table, sensors=model.sensors))
    slow = [SlowLossy.of(model).row(row) for row in rows]
    expected = sum(np.log(chance) if chance > 0 else -np.inf for chance in slow)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_sampled_rows_have_the_exact_frequencies():
    model, n_rows = MODEL, 200_000
    rows = model.sample(n_rows, np.random.default_rng(3))
    share = np.bincount(rows @ [1, 2, 4], minlength=8) / n_rows
    expected = model.pattern_probability()
    assert (np.abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / n_rows) + 1e-12).all()


def test_sure_edges_draw_the_same_rows_as_before():
    model = OrMixture(MIXING, [0.2, 0.5], Noise.flips(0.1))
    rng = np.random.default_rng(5)
    expected = model.noise.apply(model.observe(model.draw_activity(50, rng)), rng)
    assert np.array_equal(model.sample(50, np.random.default_rng(5)), expected)
