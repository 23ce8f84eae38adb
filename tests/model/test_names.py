"""Names of sources: ids, names that the user gives, names that live through refits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica import BICA, OrMixture
from bica.errors import SettingError
from bica.model.fit import Fit
from bica.model.names import kept_names, renamed, source_id
from bica.text import Nouns

sets = st.lists(st.frozensets(st.sampled_from("abcdef"), min_size=1), max_size=6, unique=True)


class TestIds:
    @given(st.sets(st.text(max_size=5), min_size=1, max_size=6), st.randoms())
    def test_the_order_of_the_sensors_does_not_matter(self, sensors, random):
        shuffled = list(sensors)
        random.shuffle(shuffled)
        assert source_id(shuffled) == source_id(sorted(sensors))

    def test_other_sensors_have_another_id(self):
        assert len({source_id(sensors) for sensors in (["a"], ["b"], ["a", "b"], ["ab"], ["a", "b", "c"])}) == 5

    def test_an_id_does_not_depend_on_the_rest_of_the_model(self):
        large = OrMixture([[1, 1, 0], [0, 1, 1]], [0.2, 0.3, 0.4], sensors=["x", "y"])
        assert large.pick([2, 0]).source_ids() == (large.source_ids()[2], large.source_ids()[0])


class TestNaming:
    MODEL = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["x", "y"], names=[None, "lift"])

    @pytest.mark.parametrize("key", ["source2", "lift", "2", None])
    def test_a_source_is_found_by_number_name_or_id(self, key):
        key = key or self.MODEL.source_ids()[1]
        assert self.MODEL.named({key: "printer"}).source_names() == ("source1", "printer")

    @pytest.mark.parametrize("nothing", [None, "", "  "])
    def test_a_name_is_taken_away(self, nothing):
        assert self.MODEL.named({"lift": nothing}).names == (None, None)

    def test_names_can_be_exchanged(self):
        named = self.MODEL.named({"source1": "door"})
        assert named.named({"door": "lift", "lift": "door"}).names == ("lift", "door")

    def test_an_unknown_source_and_a_second_of_the_same_name_are_refused(self):
        with pytest.raises(SettingError, match="no source 'source9'; there are source1, lift"):
            self.MODEL.named({"source9": "x"})
        with pytest.raises(SettingError, match="two sources would be called 'lift'"):
            self.MODEL.named({"source1": "lift"})

    def test_nothing_else_changes(self):
        named = self.MODEL.named({"lift": None, "source1": "a"})
        assert named.with_names(self.MODEL.names) == self.MODEL

    def test_what_is_shown_is_what_is_meant(self):
        assert renamed([None, "source1"], ["i", "k"], {"source1 (2)": "x"}) == (None, "x")
        assert renamed([None, "source1"], ["i", "k"], {"source1": "x"}) == ("x", "source1")


class TestRefits:
    @given(sets)
    def test_the_same_sensors_keep_their_names(self, sources):
        names = [f"n{j}" for j in range(len(sources))]
        order = list(reversed(range(len(sources))))
        assert kept_names([sources[j] for j in order], sources, names) == tuple(names[j] for j in order)

    @given(sets, sets)
    def test_no_name_is_given_twice_and_only_to_sources_that_are_alike(self, new, old):
        names = [f"n{k}" if k % 3 else None for k in range(len(old))]
        kept = kept_names(new, old, names)
        given = [name for name in kept if name]
        assert len(given) == len(set(given))
        for sensors, name in zip(new, kept, strict=True):
            if name is not None:
                before = old[names.index(name)]
                assert len(sensors & before) * 3 >= 2 * len(sensors | before)
                assert sensors == before or name not in [names[k] for k, o in enumerate(old) if o in new]

    def test_python_keeps_names_when_it_learns_again(self):
        rng = np.random.default_rng(0)
        truth = OrMixture([[1, 0], [1, 0], [0, 1], [0, 1]], [0.2, 0.3])
        bica = BICA().fit(truth.sample(1000, rng)).name_sources({"source1": "printer"})
        before = bica.components_[0].tolist()
        again = bica.fit(truth.sample(1000, rng))
        assert again.components_[list(again.get_feature_names_out()).index("printer")].tolist() == before
        assert "printer" in again.partial_fit(truth.sample(100, rng)).get_feature_names_out()

    def test_names_of_the_new_model_win(self):
        old = OrMixture([[1]], [0.5], names=["old"])
        assert OrMixture([[1]], [0.4], names=["new"]).with_names_of(old).names == ("new",)
        assert Fit(old, nouns=Nouns(rows="days")).model.named({"old": "x"}).names == ("x",)

    def test_words_live_through_refits_too(self):
        old = Fit(OrMixture([[1]], [0.5]), nouns=Nouns(rows="days"))
        assert Fit(OrMixture([[1]], [0.4])).with_names_of(old).nouns.rows == "days"


class TestWords:
    @pytest.mark.parametrize(
        ("word", "forms"),
        [
            ("symptoms", ("symptom", "symptoms")),
            ("allergies", ("allergy", "allergies")),
            ("boxes", ("box", "boxes")),
            ("batches", ("batch", "batches")),
            ("mouse/mice", ("mouse", "mice")),
            ("sheep", ("sheep", "sheep")),
            ("losses", ("loss", "losses")),
            ("diseases", ("disease", "diseases")),
        ],
    )
    def test_one_and_several(self, word, forms):
        assert Nouns(sources=word).source == forms

    def test_words_are_kept_in_the_model_file(self, tmp_path):
        fit = Fit(OrMixture([[1]], [0.5]), nouns=Nouns("symptoms", "diseases", "patients"))
        fit.save(tmp_path / "m.json")
        assert Fit.load(tmp_path / "m.json").nouns == fit.nouns
        Fit(OrMixture([[1]], [0.5])).save(tmp_path / "plain.json")
        assert "words" not in (tmp_path / "plain.json").read_text()
