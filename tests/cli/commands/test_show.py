"""``bica show``."""

import json

import numpy as np
import pytest

from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.cli.conftest import MODEL, shell, write_model

LOSSY = OrMixture(
    [[1, 0], [1, 0], [1, 1], [1, 1]],
    [0.2, 0.05],
    Noise([0.004, 0.01, 0.0, 0.0]),
    [[0.87, 0], [0.41, 0], [0.95, 0.5], [1, 0.4]],
    sensors=["gw_01", "gw_02", "gw_03", "gw_04"],
)
LOSSY_FIT = Fit(
    LOSSY,
    "some",
    probability_error=[0.01, np.nan],
    reach_error=[[0.015, np.nan], [0.02, np.nan], [0.01, np.nan], [np.nan, np.nan]],
    leak_error=[0.0005, 0.001, np.nan, np.nan],
)

HOSTILE = ["[red]alert[/red]", "bell\x07\x1b[31m", ":smile:", "two\nlines", "back\u202ewards", "日本", ""]


def test_sources_sensors_and_how_it_was_found_are_shown(run, model_file):
    shown = run("show", model_file)
    assert shown.exit_code == 0
    assert shown.stderr == ""
    told = ["2 sources behind 3 sensors", "source1", "0.2500", "0.2291 to 0.2722", "hall, door"]
    for part in [*told, "cat", "2e-05", "7.51e-06 to 5.33e-05", "yard"]:
        assert part in shown.stdout
    assert "noise: none" in shown.stdout
    assert "learned by findbica from 5000 rows, log-likelihood -1234.5" in shown.stdout


def test_json_is_the_model_and_nothing_else(run, model_file):
    assert json.loads(run("show", model_file, "--json").stdout) == MODEL


def test_a_dash_reads_standard_input(run):
    assert "2 sources behind 3 sensors" in run("show", "-", input=json.dumps(MODEL)).stdout


def test_a_model_without_sources_is_shown(run, tmp_path):
    shown = run("show", write_model(tmp_path / "m.json", sources=[]))
    assert shown.exit_code == 0
    assert "0 sources behind 3 sensors" in shown.stdout


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ({"false_alarm": 0.1, "miss": 0.1}, "cells flipped at rate 0.1000"),
        ({"false_alarm": 0, "miss": 0.1}, "false alarms at rate 0, misses at rate 0.1000"),
        ({"false_alarm": [0, 0, 0], "miss": [0, 0, 0]}, "none"),
        ({"false_alarm": 0, "miss": [0, 0.1, 0.2]}, "misses at rates from 0 to 0.2000"),
    ],
)
def test_noise_is_told_in_words(run, tmp_path, noise, words):
    assert words in run("show", write_model(tmp_path / "m.json", noise=noise)).stdout


def test_a_given_model_was_not_learned(run, tmp_path):
    assert "not learned from data" in run("show", write_model(tmp_path / "m.json", fitted={})).stdout


def test_impossible_data_are_told(run, tmp_path):
    shown = run("show", write_model(tmp_path / "m.json", fitted={"method": "findbica", "log_likelihood": "-inf"}))
    assert "log-likelihood -inf" in shown.stdout


def test_a_search_that_did_not_settle_says_so(run, tmp_path):
    shown = run("show", write_model(tmp_path / "m.json", fitted={"method": "findbica", "converged": False}))
    assert "it had not settled" in shown.stdout


def test_the_interval_of_the_noise_is_told(run, tmp_path):
    fitted = {"method": "likelihood", "diagnostics": {"noise": {"interval": [0.0964, 0.1032]}}}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted))
    assert "noise: none (95 % interval 0.0964 to 0.1032)" in shown.stdout


def test_the_support_of_a_bootstrap_is_shown(run, tmp_path):
    fitted = {"method": "likelihood", "diagnostics": {"bootstrap": {"support": [1.0, 0.37]}}}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted)).stdout
    assert all(part in shown for part in ("support", "100%", "37%", "returned when the rows were drawn again"))
    assert "support" not in run("show", write_model(tmp_path / "m.json")).stdout


@pytest.mark.parametrize("width", [20, 40, 59])
def test_on_a_narrow_terminal_sources_stand_below_each_other(run, tmp_path, width):
    fitted = {"method": "likelihood", "diagnostics": {"bootstrap": {"support": [1.0, 0.37]}}}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted), env={"COLUMNS": str(width)}).stdout
    assert max(map(len, shown.splitlines())) <= width
    words = " ".join(shown.split())
    assert "source1 0.2500 (0.2291 to 0.2722) support 100% hall, door cat 2e-05 " in words
    assert words.count("yard") == 1


@pytest.mark.parametrize("width", [50, 80])
def test_all_columns_together_fit_the_terminal(run, tmp_path, width):
    fitted = {"method": "likelihood", "diagnostics": {"bootstrap": {"support": [1.0, 0.37]}}}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted), env={"COLUMNS": str(width)}).stdout
    assert max(len(line) for line in shown.splitlines() if "source" in line) <= width


@pytest.mark.parametrize(
    "diagnostics",
    [
        {"noise": {"interval": "wide"}, "bootstrap": 7},
        {"noise": {"interval": [0.1]}, "bootstrap": {"support": [1.0]}},
        {"noise": {"interval": ["a", "b"]}, "bootstrap": {"support": ["a", None]}},
        {"noise": {"interval": [-1, 5]}, "bootstrap": {"support": [-1, 5]}},
        {"noise": 3, "bootstrap": {"support": "ab"}},
    ],
)
def test_strange_diagnostics_are_left_out(run, tmp_path, diagnostics):
    fitted = {"method": "likelihood", "diagnostics": diagnostics}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted))
    assert shown.exit_code == 0
    assert "noise: none\n" in shown.stdout
    assert "support" not in shown.stdout


@pytest.mark.parametrize("width", [40, 80, 120])
def test_long_lists_fold_to_the_terminal_and_end_in_a_count(run, tmp_path, width):
    sensors = [f"sensor_{i:03}" for i in range(100)]
    model = write_model(tmp_path / "m.json", sensors=sensors, sources=[{"sensors": sensors, "probability": 0.5}])
    shown = run("show", model, env={"COLUMNS": str(width)})
    assert max(map(len, shown.stdout.splitlines())) <= width
    assert "sensor_023" in shown.stdout
    assert "sensor_024" not in shown.stdout
    assert "and 76 more" in " ".join(shown.stdout.split())
    full = run("show", model, "--full", env={"COLUMNS": str(width)}).stdout
    assert all(name in full for name in sensors)


def test_hostile_names_are_harmless(run, tmp_path):
    sources = [{"sensors": HOSTILE, "probability": 0.5, "name": "\x1b]0;owned\x07[link=x]y[/link]"}]
    shown = run("show", write_model(tmp_path / "m.json", sensors=HOSTILE, sources=sources), env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert all(line.isprintable() for line in shown.stdout.splitlines())
    for part in ("[red]alert[/red]", r"bell\x07\x1b[31m", ":smile:", r"two\nlines", r"back\u202ewards", "日本"):
        assert part in shown.stdout
    assert r"\x1b]0;owned\x07[link=x]" in shown.stdout


def test_a_terminal_of_plain_letters_is_enough(model_file):
    shown = shell("show", model_file, env={"PYTHONIOENCODING": "ascii"})
    assert shown.returncode == 0
    assert "hall, door" in shown.stdout
    assert shown.stdout.isascii()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "cut short"),
        (json.dumps(MODEL).encode()[:-40], "cut short"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a,b\n0,1\n", "not a model file"),
        (json.dumps(MODEL | {"fitted": {"n_samples": "many"}}).encode(), "'many'"),
        (json.dumps(MODEL | {"version": 99}).encode(), "version 99"),
        (json.dumps(MODEL | {"sources": [{"sensors": ["roof"], "probability": 0.5}]}).encode(), "'roof'"),
    ],
)
def test_a_file_that_is_no_model_is_refused(run, tmp_path, content, complaint):
    (tmp_path / "m.json").write_bytes(content)
    shown = run("show", tmp_path / "m.json")
    assert shown.exit_code == 3
    assert shown.stdout == ""
    assert shown.stderr.count("\n") == 1
    assert complaint in shown.stderr


def test_a_missing_file_and_a_folder_are_refused(run, tmp_path):
    assert run("show", tmp_path / "none.json").exit_code == 3
    assert run("show", tmp_path).exit_code == 3


def large(n: int, **changes: object) -> dict:
    """A model of n sources; source k has k % 4 + 1 sensors."""
    sensors = [f"s{i}" for i in range(n + 4)]
    sources = [{"sensors": sensors[k : k + 1 + k % 4], "probability": (n - k) / (2 * n)} for k in range(n)]
    support = [(k * 7 % n) / n for k in range(n)]
    fitted = {"method": "likelihood", "diagnostics": {"bootstrap": {"support": support}}}
    return {"sensors": sensors, "sources": sources, "fitted": fitted} | changes


def shown_sources(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line.startswith(" source") and "probability" not in line]


class TestChoosing:
    @pytest.fixture
    def model(self, tmp_path):
        return write_model(tmp_path / "m.json", **large(133))

    def test_a_screenful_is_shown_with_what_was_left_out(self, run, model):
        shown = run("show", model).stdout
        assert shown_sources(shown) == [f"source{k + 1}" for k in range(20)]
        assert "20 of 133 sources shown; --top 133 shows all" in shown
        assert len(shown.splitlines()) < 50

    def test_full_lists_everything(self, run, model):
        assert len(shown_sources(run("show", model, "--full").stdout)) == 133

    def test_sorting(self, run, model):
        by_size = shown_sources(run("show", model, "--sort", "size", "--top", "3").stdout)
        assert by_size == ["source4", "source8", "source12"]
        support = large(133)["fitted"]["diagnostics"]["bootstrap"]["support"]
        best = sorted(range(133), key=lambda k: -support[k])[:3]
        by_support = shown_sources(run("show", model, "--sort", "support", "--top", "3").stdout)
        assert by_support == [f"source{k + 1}" for k in best]

    def test_sorting_by_a_support_that_is_not_there_is_refused(self, run, tmp_path):
        done = run("show", write_model(tmp_path / "n.json"), "--sort", "support")
        assert done.exit_code == 2
        assert "bootstrap" in done.stderr

    def test_filters_count_what_they_leave(self, run, model):
        shown = run("show", model, "--sensor", "s10").stdout
        assert set(shown_sources(shown)) == {"source8", "source10", "source11"}
        assert "3 of 133 sources chosen" in shown
        assert len(shown_sources(run("show", model, "--min-size", "4", "--top", "999").stdout)) == 33
        assert shown_sources(run("show", model, "--search", "SOURCE13").stdout)[:2] == ["source13", "source130"]
        assert "0 of 133 sources chosen" in run("show", model, "--search", "nothing").stdout

    def test_an_unknown_sensor_is_one_sentence(self, run, model):
        done = run("show", model, "--sensor", "s999")
        assert done.exit_code == 2
        assert "there is no sensor 's999' in the model" in done.stderr

    def test_json_is_always_whole(self, run, model):
        assert len(json.loads(run("show", model, "--json").stdout)["sources"]) == 133
        assert run("show", model, "--json", "--top", "5").exit_code == 2


class TestPictures:
    @pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")])
    def test_a_picture_of_the_kind_that_its_name_asks_for(self, run, model_file, tmp_path, ending, start):
        done = run("show", model_file, "--picture", tmp_path / f"p.{ending}")
        assert done.exit_code == 0
        assert (tmp_path / f"p.{ending}").read_bytes().startswith(start)
        assert "2 sources behind 3 sensors" in done.stdout

    def test_a_page_is_the_report_of_the_model(self, run, model_file, tmp_path):
        assert run("show", model_file, "--picture", tmp_path / "p.html").exit_code == 0
        assert "bica-data" in (tmp_path / "p.html").read_text()

    def test_chosen_sources_keep_their_numbers(self, run, tmp_path):
        model = write_model(tmp_path / "m.json", **large(40))
        run("show", model, "--search", "source40", "--picture", tmp_path / "p.svg")
        assert "source40" in (tmp_path / "p.svg").read_text()
        assert "source1<" not in (tmp_path / "p.svg").read_text()

    def test_a_large_model_is_drawn_in_a_moment(self, run, tmp_path):
        model = write_model(tmp_path / "m.json", **large(300))
        assert run("show", model, "--picture", tmp_path / "p.png").exit_code == 0

    def test_another_ending_and_an_existing_file_are_refused(self, run, model_file, tmp_path):
        assert run("show", model_file, "--picture", tmp_path / "p.bmp").exit_code == 2
        (tmp_path / "p.png").write_text("mine")
        assert run("show", model_file, "--picture", tmp_path / "p.png").exit_code == 3
        assert (tmp_path / "p.png").read_text() == "mine"


class TestLossyEdges:
    @pytest.fixture
    def words(self, run, tmp_path):
        """What is shown of the model above, in one line."""
        LOSSY_FIT.save(tmp_path / "lossy.json")
        done = run("show", tmp_path / "lossy.json")
        assert done.exit_code == 0
        return " ".join(done.stdout.split())

    def test_every_edge_has_its_reach_with_an_interval(self, words):
        for part in ("gw_01 87 % (84–90)", "gw_02 41 % (37–45)", "gw_03 95 %"):
            assert part in words

    def test_a_pair_has_a_range_and_no_reach(self, words):
        assert "gw_03 50 %" not in words
        assert "between 0.98 % and 5 %, cannot be told from two sensors" in words

    def test_leaks_and_shares_are_shown(self, words):
        assert "also on by itself: gw_02 in 1 % (0.82–1.2) of the rows, gw_01 in 0.4 %" in words
        assert "gw_01 17.7 % source1 98 %, by itself 2.3 %" in words

    def test_hostile_names_are_harmless(self, run, tmp_path):
        names = ["\x1b[31m", "b\nc", "[bold]", "d"]
        LOSSY_FIT.model.with_labels(names, ["\x1b[0m", None]).save(tmp_path / "m.json")
        done = run("show", tmp_path / "m.json")
        assert done.exit_code == 0
        assert "\x1b" not in done.stdout

    def test_many_sensors_are_left_to_full(self, run, tmp_path):
        wide = OrMixture(np.ones((40, 1)), [0.1], Noise(0.01), np.full((40, 1), 0.5))
        wide.save(tmp_path / "m.json")
        assert "by itself:" in run("show", tmp_path / "m.json").stdout
        assert "of these rows" not in run("show", tmp_path / "m.json").stdout
        assert "of these rows" in run("show", tmp_path / "m.json", "--full").stdout

    def test_misses_are_not_forgotten(self, run, tmp_path):
        LOSSY.with_noise(Noise(0.01, 0.02)).save(tmp_path / "m.json")
        assert "misses at rate 0.0200" in run("show", tmp_path / "m.json").stdout
