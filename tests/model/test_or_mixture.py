"""The model as a value: what it accepts, how it merges, orders, chooses and samples."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from bica.data.columns import numbered
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.errors import BicaError, DataError, ModelError, SettingError
from bica.invert import decode, explain, posterior
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture, load
from tests.reference import slow_mixture
from tests.strategies import models, sources_of

MODEL = OrMixture(
    [[1, 0, 1], [0, 1, 1]], [0.1, 0.2, 0.3], Noise([0.01, 0.02], 0.03), sensors=["a", "b"], names=["p", None, "r"]
)


class TestTheDoor:
    def test_twins_are_merged_by_adding_rates(self):
        merged = OrMixture([[1, 0, 1], [1, 1, 1]], [0.2, 0.3, 0.5])
        assert merged.mixing.tolist() == [[True, False], [True, True]]
        assert merged.rate == pytest.approx([-np.log(0.8) - np.log(0.5), -np.log(0.7)], rel=1e-15)
        assert merged.probability == pytest.approx([0.6, 0.3], rel=1e-15)

    @given(st.lists(st.floats(0, 1), min_size=2, max_size=6))
    def test_merged_probability_is_that_of_any_twin_being_on(self, probability):
        merged = OrMixture(np.ones((1, len(probability))), probability).probability[0]
        assert merged == pytest.approx(1 - np.prod(1 - np.array(probability)), rel=0, abs=1e-14)

    def test_merging_keeps_the_digits_of_rare_sources(self):
        assert OrMixture([[1, 1]], [1e-20, 3e-20]).probability == pytest.approx([4e-20], rel=1e-14)

    @pytest.mark.filterwarnings("error")
    def test_a_twin_that_is_always_on_wins(self):
        assert OrMixture([[1, 1]], [1.0, 0.25]).probability.tolist() == [1.0]

    def test_a_twin_that_is_never_on_changes_nothing(self):
        zero = OrMixture([[1, 1]], [0.0, 0.0]).probability
        assert zero.tolist() == [0.0]
        assert not np.signbit(zero[0])

    def test_a_merged_source_has_the_first_name_given(self):
        assert OrMixture([[1, 1, 1]], [0.1, 0.1, 0.1], names=[None, "b", "c"]).names == ("b",)

    def test_sources_that_reach_nothing_are_left_out(self):
        model = OrMixture([[0, 1], [0, 1]], [0.4, 0.5], names=["lost", "kept"])
        assert (model.mixing.tolist(), model.probability.tolist(), model.names) == ([[True], [True]], [0.5], ("kept",))

    @given(models())
    def test_columns_are_distinct_and_not_empty(self, model):
        columns = [tuple(column) for column in model.mixing.T]
        assert len(set(columns)) == len(columns)
        assert all(any(column) for column in columns)

    @pytest.mark.parametrize("mixing", [[1], 1, [[[1]]], []])
    def test_mixing_has_two_dimensions(self, mixing):
        with pytest.raises(ModelError, match="mixing needs two dimensions"):
            OrMixture(mixing, [0.5])

    @pytest.mark.parametrize("cell", [2, -1, 0.5, np.nan])
    def test_mixing_holds_zeros_and_ones_only(self, cell):
        with pytest.raises(ModelError, match="mixing may hold 0 and 1 only"):
            OrMixture([[1, cell]], [0.5, 0.5])

    @pytest.mark.parametrize("mixing", [[["1"]], [[None]], [[1, 0], [1]], [[1j]]])
    def test_mixing_holds_numbers(self, mixing):
        with pytest.raises(ModelError, match="mixing must hold numbers"):
            OrMixture(mixing, [0.5])

    @pytest.mark.parametrize("chance", [-1e-9, 1.0000001, np.nan, np.inf])
    def test_a_probability_outside_its_range_is_refused(self, chance):
        with pytest.raises(ModelError, match=r"probability must lie in \[0, 1\]"):
            OrMixture([[1]], [chance])

    @pytest.mark.parametrize("probability", [0.5, [0.5, 0.5], [[0.5]], []])
    def test_there_is_one_probability_a_source(self, probability):
        with pytest.raises(ModelError, match="mixing has 1 columns, but probability has shape"):
            OrMixture([[1]], probability)

    def test_noise_is_a_noise(self):
        with pytest.raises(ModelError, match=r"noise is 0\.1; give `Noise\.flips"):
            OrMixture([[1]], [0.5], 0.1)

    def test_noise_must_fit_the_sensors(self):
        with pytest.raises(ModelError, match="2 miss rates for 1 sensors"):
            OrMixture([[1]], [0.5], Noise(0, [0.1, 0.1]))

    @pytest.mark.parametrize(
        ("names", "complaint"),
        [
            ({"sensors": ["a"]}, "1 sensor names"),
            ({"sensors": ["a", "a"]}, "'a' comes twice"),
            ({"sensors": ["a", 3]}, "must be text, but 3"),
            ({"sensors": ["a", "\ud800"]}, "half a character"),
            ({"names": ["a"]}, "1 source names"),
            ({"names": ["a", 3]}, "must be text, but 3"),
            ({"names": ["a", "\ud800"]}, "half a character"),
        ],
    )
    def test_names_are_text_and_those_of_sensors_differ(self, names, complaint):
        with pytest.raises(ModelError, match=complaint):
            OrMixture(np.eye(2), [0.5, 0.5], **names)

    def test_every_refusal_is_ours_and_a_value_error(self):
        assert issubclass(ModelError, BicaError)
        assert issubclass(ModelError, ValueError)

    def test_numpy_text_becomes_plain_text(self):
        model = OrMixture(np.eye(2), [0.5, 0.5], sensors=np.array(["a", "b"]), names=np.array(["p", "q"]))
        assert {type(name) for name in (*model.sensors, *model.names)} == {str}


class TestTheValue:
    @pytest.mark.parametrize("field", ["mixing", "probability"])
    @pytest.mark.parametrize("remake", [lambda m: m, copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    def test_arrays_cannot_be_changed_nor_those_of_copies(self, field, remake):
        remade = remake(MODEL)
        assert remade == MODEL
        with pytest.raises(ValueError, match="read-only"):
            getattr(remade, field)[0] = 0

    def test_fields_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            MODEL.probability = np.array([0.5])

    def test_what_it_was_built_from_stays_apart(self):
        mixing, probability = np.eye(2, dtype=bool), np.array([0.5, 0.25])
        model = OrMixture(mixing, probability)
        mixing[0, 0], probability[0] = False, 0.75
        assert model == OrMixture(np.eye(2), [0.5, 0.25])

    def test_equality_looks_at_every_part(self):
        def variant(**changes):
            parts = {name: getattr(MODEL, name) for name in ("mixing", "probability", "noise", "sensors", "names")}
            parts |= changes
            return OrMixture(parts.pop("mixing"), parts.pop("probability"), parts.pop("noise"), **parts)

        assert variant() == MODEL
        assert variant(mixing=[[1, 0, 1], [1, 1, 0]]) != MODEL
        assert variant(probability=[0.1, 0.2, 0.31]) != MODEL
        assert variant(noise=Noise([0.01, 0.02], 0.04)) != MODEL
        assert variant(sensors=["a", "c"]) != MODEL
        assert variant(names=["p", "q", "r"]) != MODEL
        assert MODEL != "a model"

    def test_it_has_no_hash(self):
        with pytest.raises(TypeError):
            hash(MODEL)

    def test_sizes_rates_and_columns(self):
        model = OrMixture([[1, 0], [1, 1]], [0.5, 1.0])
        assert (model.n_sensors, model.n_sources) == (2, 2)
        assert model.rate.tolist() == [np.log(2), np.inf]
        assert model.columns.tolist() == [[0b11], [0b10]]

    def test_columns_take_several_words_beyond_64_sensors(self):
        mixing = np.zeros((70, 1))
        mixing[[0, 69]] = 1
        assert OrMixture(mixing, [0.5]).columns.tolist() == [[1, 1 << 5]]

    def test_edges_name_the_sensors(self):
        assert list(MODEL.edges()) == [(0, "a"), (1, "b"), (2, "a"), (2, "b")]

    def test_sources_without_a_name_are_numbered(self):
        assert MODEL.source_names() == ("p", "source2", "r")
        assert OrMixture([[1]], [0.5], names=[""]).source_names() == ("source1",)

    def test_sources_of_the_same_name_are_told_apart(self):
        model = OrMixture(np.eye(4), [0.5] * 4, names=["twin", "twin", "source4", None])
        assert model.source_names() == ("twin", "twin (2)", "source4", "source4 (2)")

    @given(models())
    def test_no_two_sources_have_the_same_name(self, model):
        names = model.source_names()
        assert len(set(names)) == len(names)
        assert all(name.startswith(given or "source") for name, given in zip(names, model.names, strict=True))


class TestOrder:
    def test_falling_probability_comes_first(self):
        assert MODEL.in_order() == MODEL.pick([2, 1, 0])

    def test_equal_probabilities_are_ordered_by_their_sensors(self):
        mixing = np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
        model = OrMixture(mixing, [0.5] * 4)
        assert model.in_order() == model.pick([2, 1, 0, 3])

    @given(models(), st.randoms(use_true_random=False))
    def test_the_order_does_not_depend_on_the_order_given(self, model, random):
        shuffled = model.pick(random.sample(range(model.n_sources), model.n_sources))
        assert shuffled.in_order() == model.in_order()

    def test_a_model_of_nothing_has_an_order(self):
        assert OrMixture(np.zeros((0, 0)), []).in_order().n_sources == 0
        assert OrMixture(np.zeros((3, 0)), []).in_order().n_sensors == 3


class TestChoosing:
    def test_picking_sources_keeps_all_else(self):
        picked = MODEL.pick([2, 0])
        assert picked == OrMixture([[1, 1], [1, 0]], [0.3, 0.1], MODEL.noise, sensors=MODEL.sensors, names=["r", "p"])

    def test_picking_none_leaves_the_sensors(self):
        assert MODEL.pick([]).mixing.shape == (2, 0)

    def test_watching_fewer_sensors_merges_what_they_cannot_tell_apart(self):
        left = OrMixture([[1, 0, 1], [0, 1, 1]], [0.1, 0.5, 0.5], Noise([0.01, 0.02], 0.03), names=["p", None, "r"])
        expected = OrMixture([[1]], [0.75], Noise([0.02], 0.03), sensors=["x1"], names=["r"])
        assert left.of_sensors([1]) == expected

    @given(models(min_sensors=1), st.data())
    def test_watching_fewer_sensors_is_a_marginal(self, model, data):
        order = data.draw(st.permutations(range(model.n_sensors)))
        chosen = order[: data.draw(st.integers(0, model.n_sensors))]
        cube = model.pattern_probability().reshape((2,) * model.n_sensors).transpose()  # now axis i is sensor i
        left_out = tuple(sorted(set(range(model.n_sensors)) - set(chosen)))
        marginal = cube.sum(axis=left_out).transpose([sorted(chosen).index(i) for i in chosen])
        table = model.of_sensors(chosen).pattern_probability()
        np.testing.assert_allclose(table, marginal.transpose().reshape(-1), rtol=0, atol=1e-14)

    @pytest.mark.parametrize("chosen", [[True, False, True], [0.5], ["p"], [[0]]])
    @pytest.mark.parametrize("verb", ["pick", "of_sensors"])
    def test_what_is_no_number_is_refused(self, verb, chosen):
        with pytest.raises(ModelError, match="by its number"):
            getattr(MODEL, verb)(chosen)

    @pytest.mark.parametrize("verb", ["pick", "of_sensors"])
    @pytest.mark.parametrize(("chosen", "complaint"), [([-1], "there is no"), ([3], "there is no"), ([1, 1], "twice")])
    def test_wrong_numbers_are_refused(self, verb, chosen, complaint):
        with pytest.raises(ModelError, match=complaint):
            getattr(MODEL, verb)(chosen)

    def test_other_noise_changes_nothing_else(self):
        changed = MODEL.with_noise(Noise(0.1))
        assert changed.noise == Noise(0.1)
        assert changed.with_noise(MODEL.noise) == MODEL


class TestSampling:
    def test_sensors_show_the_or_of_their_sources(self):
        activity = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]]
        assert MODEL.observe(activity).tolist() == [[False, False], [True, False], [True, True], [True, True]]

    @given(models(), st.integers(0, 2**32))
    def test_observing_matches_any_and_all(self, model, seed):
        activity = np.random.default_rng(seed).random((5, model.n_sources)) < 0.5
        expected = [[any(m and y for m, y in zip(row, on, strict=True)) for row in model.mixing] for on in activity]
        assert model.observe(activity).tolist() == expected

    @pytest.mark.parametrize(
        ("activity", "complaint"),
        [([[1, 0]], "3 sources, but activity has 2"), ([1, 0, 1], "two dimensions"), ([[2, 0, 0]], "0 and 1 only")],
    )
    def test_strange_activity_is_refused(self, activity, complaint):
        with pytest.raises(ModelError, match=complaint):
            MODEL.observe(activity)

    def test_patterns_come_up_as_often_as_they_should(self):
        model = OrMixture([[1, 0, 1], [1, 1, 0], [0, 1, 0]], [0.3, 0.6, 0.1], Noise([0.05, 0, 0.1], 0.2))
        n_samples = 20_000
        rows = model.sample(n_samples, np.random.default_rng(11))
        seen = np.bincount(rows @ [1, 2, 4], minlength=8) / n_samples
        expected = np.array(slow_mixture.shown_probability(sources_of(model), [0.05, 0, 0.1], [0.2] * 3))
        # five standard errors a pattern: with eight patterns less than five in a million, were the seed not fixed
        assert (np.abs(seen - expected) <= 5 * np.sqrt(expected * (1 - expected) / n_samples)).all()

    def test_sources_are_drawn_at_their_rates_and_apart(self):
        n_samples = 20_000
        activity = OrMixture(np.eye(3), [0.0, 0.3, 1.0]).draw_activity(n_samples, np.random.default_rng(5))
        assert activity.shape == (n_samples, 3)
        assert not activity[:, 0].any()
        assert activity[:, 2].all()
        assert abs(activity[:, 1].mean() - 0.3) <= 5 * np.sqrt(0.3 * 0.7 / n_samples)

    def test_the_same_seed_gives_the_same_rows(self):
        first, again = (MODEL.sample(100, np.random.default_rng(2)) for _ in range(2))
        assert np.array_equal(first, again)
        assert first.shape == (100, 2)
        assert first.dtype == bool

    def test_no_rows_and_no_sources_are_fine(self):
        assert MODEL.sample(0, np.random.default_rng(0)).shape == (0, 2)
        assert not OrMixture(np.zeros((3, 0)), []).sample(4, np.random.default_rng(0)).any()


def test_sensors_without_names_are_numbered_from_0():
    assert numbered(3) == ("x0", "x1", "x2") == OrMixture(np.zeros((3, 0)), []).sensors


class TestDecoding:
    """A model says of rows what ``bica.invert`` does, whatever they are kept in."""

    NAMED = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.4], Noise.flips(0.05), sensors=["a", "b", "c"])
    ROWS = NAMED.sample(40, np.random.default_rng(0))
    WORDS = packed(ROWS)

    def tables(self, folder):
        frame = pd.DataFrame(self.ROWS.astype(int), columns=["a", "b", "c"])
        frame[["c", "a", "b"]].to_csv(folder / "rows.csv", index=False)
        yield from (self.ROWS, self.ROWS.astype(int).tolist(), csr_array(self.ROWS), Rows.of(self.ROWS))
        yield from (frame, frame[["b", "c", "a"]], pl.DataFrame(frame[["c", "b", "a"]]), pd.DataFrame(self.ROWS))
        yield from (folder / "rows.csv", str(folder / "rows.csv"))

    def test_every_table_gives_the_answers_of_its_rows(self, tmp_path):
        decoded, weighed = decode(self.NAMED, self.WORDS), posterior(self.NAMED, self.WORDS)
        for table in self.tables(tmp_path):
            np.testing.assert_array_equal(self.NAMED.decode(table).activity, decoded.activity)
            np.testing.assert_array_equal(self.NAMED.posterior(table).probability, weighed.probability)
            assert self.NAMED.log_likelihood(table) == pytest.approx(self.NAMED.log_likelihood(self.ROWS), rel=1e-12)

    def test_a_loaded_model_decodes(self, tmp_path):
        self.NAMED.save(tmp_path / "model.json")
        found = load(tmp_path / "model.json").decode(self.ROWS)
        np.testing.assert_array_equal(found.activity, decode(self.NAMED, self.WORDS).activity)

    def test_missing_cells_may_be_anything(self):
        gaps = np.where(np.random.default_rng(1).random(self.ROWS.shape) < 0.3, np.nan, self.ROWS)
        observed = packed(~np.isnan(gaps))
        found = decode(self.NAMED, self.WORDS & observed, observed)
        np.testing.assert_array_equal(self.NAMED.decode(gaps).activity, found.activity)
        shuffled = pd.DataFrame(gaps, columns=["a", "b", "c"])[["c", "a", "b"]]
        np.testing.assert_array_equal(self.NAMED.decode(shuffled).activity, found.activity)

    def test_solver_and_nearest_are_passed_on(self):
        silent = self.NAMED.with_noise(Noise())
        impossible = [[1, 0, 0]]
        assert not silent.decode(impossible).activity.any()
        assert silent.decode(impossible, nearest=True).n_wrong.tolist() == [1]
        assert not self.NAMED.decode(impossible, solver="zero-error").feasible[0]
        with pytest.raises(SettingError, match="solver is 'magic'"):
            silent.decode(impossible, solver="magic")

    def test_one_row_is_explained_however_it_is_written(self):
        expected = explain(self.NAMED, packed(np.array([[True, True, False]])), k=3)
        by_name = {"c": 0, "b": 1, "a": 1}
        rows = [[1, 1, 0], (1, 1, 0), np.array([1, 1, 0]), [[1, 1, 0]], by_name, pd.Series(by_name)]
        for row in (*rows, pd.DataFrame([by_name]), pd.Series([1, 1, 0]), pl.Series([1, 1, 0])):
            found = self.NAMED.explain(row, k=3)
            np.testing.assert_array_equal(found.activity, expected.activity)
            np.testing.assert_array_equal(found.probability, expected.probability)
        with pytest.raises(SettingError, match="one row is explained at a time, but 40 were given"):
            self.NAMED.explain(self.ROWS)

    def test_a_masked_row_keeps_its_gaps(self):
        gap = np.ma.masked_array([1, 1, 0], mask=[False, False, True])
        left, right = self.NAMED.explain(gap), self.NAMED.explain([1, 1, None])
        np.testing.assert_array_equal(left.probability, right.probability)
        assert left.probability[0] < self.NAMED.explain([1, 1, 0]).probability[0]

    def test_counts_have_no_order(self):
        counts = PatternCounts.of(self.ROWS)
        for use in (self.NAMED.decode, self.NAMED.posterior, self.NAMED.explain):
            with pytest.raises(DataError, match="order of their rows"):
                use(counts)

    @pytest.mark.parametrize(
        ("names", "sentence"),
        [("abd", "no column 'c', which the model watches"), ("abcd", "a column 'd' that the model does not know")],
    )
    def test_other_columns_are_refused(self, names, sentence):
        table = pd.DataFrame(np.zeros((2, len(names)), int), columns=list(names))
        for use in (self.NAMED.decode, self.NAMED.posterior, self.NAMED.log_likelihood):
            with pytest.raises(DataError, match=sentence):
                use(table)
        with pytest.raises(DataError, match="has 3 sensors, but the table has 2 columns"):
            self.NAMED.decode([[0, 1]])

    def test_numbers_are_names_where_both_sides_have_the_same_ones(self):
        numbered = OrMixture(self.NAMED.mixing, self.NAMED.probability, sensors=["0", "1", "2"])
        swapped = pd.DataFrame([[0, 1, 1]], columns=["2", "1", "0"])
        assert numbered.decode(swapped).activity.tolist() == [[True, False]]
        assert numbered.decode(pd.DataFrame([[1, 1, 0]], columns=["p", "q", "r"])).activity.tolist() == [[True, False]]
