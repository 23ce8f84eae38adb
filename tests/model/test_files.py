"""The model file: the same bytes for the same model, and one plain sentence for whatever is wrong with it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bica
from bica.errors import ModelError, ModelFileError, OutputError
from bica.model import files
from bica.model.files import as_json, document_text, parse_document
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.strategies import models

MODEL = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], Noise([0.01, 0.02], 0.03), sensors=["a", "b"], names=["p", None])
FIT = Fit(
    MODEL,
    method="findbica",
    n_samples=100.0,
    log_likelihood=-12.5,
    probability_error=np.array([0.01, 0.02]),
    n_iter=3,
    converged=False,
    diagnostics={"note": "naïve", "numbers": [1, 2.5, None]},
)
CONTENT = json.loads(document_text(FIT.document()))
DELETED = object()


def read(content):
    """What comes of a file with this content, text or JSON."""
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return Fit.of_document(parse_document(text, "file"))


def changed(*path_and_value):
    """The good content with one entry changed, or taken away."""
    *path, last, value = path_and_value
    content = json.loads(json.dumps(CONTENT))
    place = content
    for key in path:
        place = place[key]
    if value is DELETED:
        del place[last]
    else:
        place[last] = value
    return content


class TestWriting:
    def test_the_file_is_plain_to_read(self):
        assert CONTENT["schema"] == "bica-model"
        assert CONTENT["version"] == 1
        assert CONTENT["sensors"] == ["a", "b"]
        first, second = CONTENT["sources"]
        np.testing.assert_allclose(first.pop("interval"), FIT.interval()[0], rtol=0, atol=0)
        assert first == {"sensors": ["a"], "probability": 0.2, "error": 0.01, "name": "p"}
        np.testing.assert_allclose(second.pop("interval"), FIT.interval()[1], rtol=0, atol=0)
        assert second == {"sensors": ["a", "b"], "probability": 0.5, "error": 0.02}
        assert CONTENT["noise"] == {"false_alarm": [0.01, 0.02], "miss": 0.03}
        assert CONTENT["fitted"]["method"] == "findbica"

    @given(models())
    def test_a_model_comes_back_as_it_was(self, model):
        text = document_text(model.document())
        again = OrMixture.of_document(parse_document(text.encode(), "file"))
        assert again == model
        assert document_text(again.document()) == text

    @given(models())
    def test_equal_models_have_equal_bytes(self, model):
        probability = [-0.0 if chance == 0 else chance for chance in model.probability.tolist()]
        twin = OrMixture(
            model.mixing.tolist() or model.mixing, probability, model.noise, sensors=model.sensors, names=model.names
        )
        assert twin == model
        assert document_text(twin.document()) == document_text(model.document())

    def test_the_order_of_diagnostics_does_not_matter(self):
        first, second = (
            Fit(MODEL, "m", diagnostics=dict(pairs)) for pairs in ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)])
        )
        assert document_text(first.document()) == document_text(second.document())

    def test_saving_and_loading(self, tmp_path):
        MODEL.save(tmp_path / "model.json")
        assert bica.load(tmp_path / "model.json") == OrMixture.load(str(tmp_path / "model.json")) == MODEL
        assert (tmp_path / "model.json").read_bytes() == document_text(MODEL.document()).encode()

    def test_nothing_is_overwritten_unless_asked(self, tmp_path):
        path = tmp_path / "model.json"
        MODEL.save(path)
        other = MODEL.pick([1])
        with pytest.raises(OutputError, match="exists already"):
            other.save(path)
        assert bica.load(path) == MODEL
        other.save(path, overwrite=True)
        assert bica.load(path) == other

    def test_a_full_disk_leaves_the_old_model(self, tmp_path, monkeypatch):
        path = tmp_path / "model.json"
        MODEL.save(path)
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OutputError, match="No space left"):
            MODEL.pick([1]).save(path, overwrite=True)
        assert os.listdir(tmp_path) == ["model.json"]
        assert bica.load(path) == MODEL

    @pytest.mark.parametrize("value", [{1, 2}, object(), {1: 2}, b"bytes", [{"deep": {3j}}]])
    def test_what_json_cannot_hold_is_refused(self, value):
        with pytest.raises(ModelError, match="a model file cannot hold"):
            as_json({"value": value})


class TestReading:
    def test_the_good_content_is_read(self):
        assert read(CONTENT).model == MODEL

    def test_a_file_cut_short_anywhere_is_refused(self):
        content = document_text(FIT.document()).encode()
        for length in range(len(content) - 1):  # the last byte is a line feed
            with pytest.raises(ModelFileError, match="file is not a model file"):
                parse_document(content[:length], "file")

    @pytest.mark.slow
    @given(models(), st.data())
    def test_any_file_cut_short_is_refused(self, model, data):
        content = document_text(model.document()).encode()
        length = data.draw(st.integers(0, len(content) - 2))
        with pytest.raises(ModelFileError):
            parse_document(content[:length], "file")

    @given(st.data())
    def test_a_changed_byte_gives_a_model_or_one_sentence(self, data):
        content = bytearray(document_text(FIT.document()).encode())
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        self.reads_or_refuses(bytes(content))

    @pytest.mark.slow
    @given(st.data())
    def test_a_changed_entry_gives_a_model_or_one_sentence(self, data):
        """Anything may stand anywhere: no error but ours may come out."""
        numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
        leaves = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=3), st.sampled_from(["a", "b", "-inf"]))
        values = st.recursive(
            leaves, lambda v: st.one_of(st.lists(v, max_size=3), st.dictionaries(st.text(max_size=3), v, max_size=3))
        )
        path = data.draw(st.sampled_from(list(all_places(CONTENT))))
        self.reads_or_refuses(json.dumps(changed(*path, data.draw(values))))

    @given(st.data())
    def test_a_lost_entry_gives_a_model_or_one_sentence(self, data):
        path = data.draw(st.sampled_from(list(all_places(CONTENT))))
        self.reads_or_refuses(json.dumps(changed(*path, DELETED)))

    def reads_or_refuses(self, content):
        try:
            fit = read(content)
        except ModelFileError as refused:
            error = str(refused)
        else:
            text = document_text(fit.document())
            assert document_text(read(text).document()) == text
            return
        assert error.startswith("file is not a ")
        assert "\n" not in error

    @pytest.mark.parametrize("version", [0, 3, 1.0, True, "1", None, [1], 10**4000])
    def test_another_version_is_refused(self, version):
        with pytest.raises(ModelFileError, match=r"it has version .{1,60}, but only 1 and 2 can be read here"):
            read(changed("version", version))

    @pytest.mark.parametrize("content", [[], 3, "text", None, {}, {"schema": "other"}, {"schema": None}])
    def test_other_json_is_refused(self, content):
        with pytest.raises(ModelFileError, match='no "schema": "bica-model" in it'):
            read(json.dumps(content))

    @pytest.mark.parametrize(
        ("path", "value", "complaint"),
        [
            (["sensors"], "ab", '"sensors" is not a list of names'),
            (["sensors"], ["a", 1], "must be text, but 1"),
            (["sensors"], ["a", "b", "a"], "'a' comes twice"),
            (["sensors"], ["a", "b", "\ud800"], "half a character"),
            (["sources"], {}, '"sources" is not a list'),
            (["sources", 0], 7, "source 1 is not an object"),
            (["sources", 0, "sensors"], [], "source 1 lists no sensors"),
            (["sources", 0, "sensors"], "a", "source 1 lists no sensors"),
            (["sources", 0, "sensors"], ["z"], "source 1 names an unknown sensor 'z'"),
            (["sources", 0, "sensors"], [0], "source 1 names an unknown sensor 0"),
            (["sources", 0, "sensors"], ["a", "a"], "source 1 lists a sensor twice"),
            (["sources", 0, "sensors"], ["b", "a"], "two sources have the same sensors"),
            (["sources", 0, "probability"], 1.5, r"probability of source 1 is 1.5, but must be a number in \[0, 1\]"),
            (["sources", 1, "probability"], -1e-9, "probability of source 2"),
            (["sources", 0, "probability"], None, "probability of source 1 is None"),
            (["sources", 0, "probability"], True, "probability of source 1 is True"),
            (["sources", 0, "probability"], "0.5", "probability of source 1 is '0.5'"),
            (["sources", 0, "probability"], DELETED, 'source 1 has no "probability"'),
            (["sources", 0, "probabilty"], 0.5, "source 1 has an unknown entry 'probabilty'"),
            (["sources", 0, "interval"], 0.1, "must be two numbers"),
            (["sources", 0, "interval"], [0.1, 0.2, 0.3], "must be two numbers"),
            (["sources", 0, "interval"], [0.1, 1.2], "interval of source 1"),
            (["sources", 0, "interval"], [0.2, 0.1], "ends before it begins"),
            (["sources", 0, "error"], -0.1, "error of source 1"),
            (["sources", 0, "error"], 10**400, "error of source 1"),
            (["sources", 0, "name"], 3, "name of source 1 must be text, but 3"),
            (["sources", 0, "name"], "\ud800", "name of source 1 .* half a character"),
            (["noise"], 0.1, '"noise" is not an object'),
            (["noise"], {"miss": 0.1}, '"noise" has no "false_alarm"'),
            (["noise", "flips"], 0.1, "unknown entry 'flips'"),
            (["noise", "miss"], 2, r"the miss rate is 2, but must be a number in \[0, 1\]"),
            (["noise", "miss"], 1, "add up to 1 or more"),
            (["noise", "miss"], [0.1, 0.99], "add up to 1 or more"),
            (["noise", "miss"], [0.1], "1 miss rates for 2 sensors"),
            (["noise", "false_alarm"], [0.1, "0.1"], "a false_alarm rate is '0.1'"),
            (["fitted"], [], '"fitted" is not an object'),
            (["fitted", "by"], ["x"], r"by must be text, but \['x'\]"),
            (["fitted", "method"], 3, "method must be text, but 3"),
            (["fitted", "method"], "", "method is empty"),
            (["fitted", "seed"], 3, "unknown entry 'seed'"),
            (["fitted", "n_samples"], -1, "n_samples is -1"),
            (["fitted", "n_samples"], "many", "n_samples is 'many'"),
            (["fitted", "n_samples"], 10**400, "n_samples is 1000.*000, but must be a number"),
            (["fitted", "log_likelihood"], "inf", "log_likelihood is 'inf'"),
            (["fitted", "log_likelihood"], [], "log_likelihood is "),
            (["fitted", "n_iter"], 1.5, "n_iter is 1.5, but must be a count"),
            (["fitted", "n_iter"], True, "n_iter is True, but must be a count"),
            (["fitted", "n_iter"], -1, "n_iter is -1, but must be a count"),
            (["fitted", "converged"], 1, "converged is 1, but must be true or false"),
            (["fitted", "diagnostics"], [], "diagnostics is .*, but must be an object"),
            (["extra"], 1, "the file has an unknown entry 'extra'"),
            (["sensors"], DELETED, 'the file has no "sensors"'),
        ],
    )
    def test_what_is_wrong_is_named(self, path, value, complaint):
        with pytest.raises(ModelFileError, match=f"^file is not a valid model file: .*{complaint}"):
            read(changed(*path, value))

    @pytest.mark.parametrize("fitted", [{}, {"method": "m"}, {"method": "m", "n_samples": None, "n_iter": None}])
    def test_how_it_was_fitted_may_be_told_in_part(self, fitted):
        assert read(changed("fitted", fitted)).method == fitted.get("method", "given")

    def test_noise_without_sensors_is_checked_too(self):
        content = changed("sensors", []) | {"sources": [], "noise": {"false_alarm": 0.5, "miss": 0.5}}
        with pytest.raises(ModelFileError, match="add up to 1 or more"):
            read(content)

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
    def test_numbers_that_are_not_finite_are_refused(self, number):
        text = json.dumps(changed("sources", 0, "probability", 0.125)).replace("0.125", number)
        with pytest.raises(ModelFileError, match=f"{number} is not a finite number"):
            read(text)

    def test_two_entries_of_the_same_name_are_refused(self):
        text = json.dumps(CONTENT).replace('"version": 1', '"version": 1, "version": 1')
        with pytest.raises(ModelFileError, match="two entries of the same name"):
            read(text)

    @pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000])
    def test_deep_nesting_is_refused(self, text):
        with pytest.raises(ModelFileError, match="nested too deeply"):
            read(text)

    @pytest.mark.parametrize("depth", [100, 700])
    def test_what_can_be_read_can_be_written_again(self, depth):
        text = json.dumps(changed("fitted", "diagnostics", {"deep": "here"}))
        self.reads_or_refuses(text.replace('"here"', "[" * depth + "]" * depth))

    def test_a_number_of_many_digits_is_refused(self):
        with pytest.raises(ModelFileError):
            read(json.dumps(changed("version", 123)).replace("123", "9" * 100_000))

    def test_a_message_stays_short_whatever_the_file_holds(self):
        with pytest.raises(ModelFileError) as caught:
            read(changed("sources", 0, "probability", ["x" * 10_000] * 1000))
        assert len(str(caught.value)) < 500

    def test_a_small_file_cannot_ask_for_all_memory(self):
        content = changed("sensors", [str(i) for i in range(40_000)])
        content |= {"sources": [0] * 40_000, "noise": {"false_alarm": 0, "miss": 0}}
        with pytest.raises(ModelFileError, match="40000 sources times 40000 sensors"):
            read(content)

    def test_a_file_beyond_the_limit_is_not_even_parsed(self, tmp_path, monkeypatch):
        monkeypatch.setattr(files, "BYTES_LIMIT", 10)
        (tmp_path / "model.json").write_text("[" * 11)
        with pytest.raises(ModelFileError, match="longer than"):
            bica.load(tmp_path / "model.json")

    @pytest.mark.parametrize(
        "content", [b"\xff\xfe", b"PAR1", "naïve".encode("latin-1"), b"\x00" * 9, b"", b"\x80\x04."]
    )
    def test_other_files_are_refused(self, tmp_path, content):
        (tmp_path / "model.json").write_bytes(content)
        with pytest.raises(ModelFileError, match=r"model.json is not a model file"):
            bica.load(tmp_path / "model.json")

    def test_text_that_is_not_utf_8_is_called_so(self):
        with pytest.raises(ModelFileError, match="not UTF-8 text"):
            read(document_text(FIT.document()).encode("utf-16"))

    def test_a_missing_file_a_folder_and_an_impossible_path_are_named(self, tmp_path):
        for path, complaint in [
            (tmp_path / "absent.json", "there is no file"),
            (tmp_path, "Is a directory"),
            ("a\0b", "cannot be read"),
        ]:
            with pytest.raises(ModelFileError, match=complaint):
                bica.load(path)

    def test_a_file_is_read_without_numpy(self, tmp_path):
        MODEL.save(tmp_path / "model.json")
        look = "import sys; from bica.model.files import read_document; print(read_document(sys.argv[1]).sensors); "
        command = [sys.executable, "-c", look + "print('numpy' in sys.modules)", tmp_path / "model.json"]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "('a', 'b')\nFalse\n"

    def test_the_error_can_be_caught_as_a_value_error(self):
        assert issubclass(ModelFileError, ModelError)
        assert issubclass(ModelFileError, ValueError)


def all_places(value, path=()):
    """Every entry of a JSON value, as the keys that lead to it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        yield (*path, key)
        yield from all_places(part, (*path, key))
