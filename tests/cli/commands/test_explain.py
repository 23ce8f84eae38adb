"""``bica explain``."""

import json

import pytest

from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.cli.conftest import MODEL, write_model

NOISY = {"false_alarm": 0.05, "miss": 0.1}


@pytest.fixture
def noisy(tmp_path):
    return write_model(tmp_path / "noisy.json", noise=NOISY)


def test_the_likeliest_sources_come_first(run, noisy):
    shown = run("explain", noisy, "--on", "hall,door")
    assert shown.exit_code == 0
    assert "error" not in shown.stderr.lower()  # the first run may say that it compiles
    for part in ("on: hall, door", "off: yard", "source1", "on with probability"):
        assert part in shown.stdout
    assert shown.stdout.index("source1") < shown.stdout.index("none")


def test_sensors_in_error_are_named(run, noisy):
    shown = run("explain", noisy, "--on", "hall,yard", "-k", "2").stdout
    assert "false alarm: hall, yard" in shown
    assert "missed: door; false alarm: yard" in shown


def test_json_holds_all_of_it(run, noisy):
    answer = json.loads(run("explain", noisy, "--on", "hall", "--unknown", "yard", "-k", "100", "--json").stdout)
    assert answer["observed"] == {"on": ["hall"], "off": ["door"], "unknown": ["yard"]}
    assert len(answer["explanations"]) == 4
    assert sum(entry["probability"] for entry in answer["explanations"]) == pytest.approx(1)
    assert answer["exact"]
    assert not answer["more_ties"]
    cat = sum(entry["probability"] for entry in answer["explanations"] if "cat" in entry["sources"])
    assert {entry["source"]: entry["probability"] for entry in answer["sources"]}["cat"] == pytest.approx(cat)


def test_sensors_that_are_not_named_are_off_or_unknown(run, noisy):
    def observed(*words):
        return json.loads(run("explain", noisy, *words, "--json").stdout)["observed"]

    assert observed("--on", "hall") == {"on": ["hall"], "off": ["door", "yard"], "unknown": []}
    assert observed("--on", "hall", "--rest", "unknown") == {"on": ["hall"], "off": [], "unknown": ["door", "yard"]}
    assert observed("--on", "hall", "--rest", "unknown", "--off", "yard")["off"] == ["yard"]
    assert observed()["off"] == ["hall", "door", "yard"]


def test_options_may_be_repeated_and_names_may_hold_commas(run, tmp_path):
    sources = [{"sensors": ["a,b"], "probability": 0.3}]
    model = write_model(tmp_path / "m.json", sensors=["a,b", "c", "d"], sources=sources, noise=NOISY)
    answer = json.loads(run("explain", model, "--on", "a,b", "--on", "c, d", "--json").stdout)
    assert answer["observed"]["on"] == ["a,b", "c", "d"]


def test_ties_are_marked(run, tmp_path):
    sources = [{"sensors": [name], "probability": 0.3} for name in MODEL["sensors"]]
    model = write_model(tmp_path / "m.json", sources=sources)
    shown = run("explain", model, "--rest", "unknown", "-k", "3").stdout
    assert shown.count("2=") == 2
    assert "as likely as the last one" in shown


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("--on", "roof"), 2, "--on names 'roof', which is not a sensor"),
        (("--on", "hall", "--off", "hall"), 2, "'hall' is given in --on and in --off"),
        (("--on", "hall", "-k", "0"), 2, "-k"),
    ],
)
def test_strange_observations_are_refused(run, noisy, words, code, complaint):
    shown = run("explain", noisy, *words)
    assert shown.exit_code == code
    assert shown.stdout == ""
    assert complaint in shown.stderr


def test_an_impossible_observation_is_refused_in_a_sentence(run, model_file):
    shown = run("explain", model_file, "--on", "hall")
    assert shown.exit_code == 3
    assert "no set of sources produces this row" in shown.stderr


def test_a_dash_reads_the_model_from_standard_input(run):
    shown = run("explain", "-", "--on", "hall,door", input=json.dumps(MODEL))
    assert "source1" in shown.stdout


def test_hostile_names_are_harmless(run, tmp_path):
    name = "\x1b]0;owned\x07[link=x]y[/link]"
    sources = [{"sensors": ["hall"], "probability": 0.5, "name": name}]
    shown = run("explain", write_model(tmp_path / "m.json", sources=sources), "--on", "hall")
    assert all(line.isprintable() for line in shown.stdout.splitlines())
    assert r"\x1b]0;owned" in shown.stdout


def test_edges_that_fail_are_not_called_errors_of_sensors(run, tmp_path):
    OrMixture([[1], [1], [1]], [0.2], Noise(0.01), [[0.9], [0.5], [0.8]], sensors=["a", "b", "c"]).save(tmp_path / "m")
    done = run("explain", tmp_path / "m", "--on", "a", "--on", "c")
    assert done.exit_code == 0
    assert "not reached: b" in done.stdout
    assert "on by itself: a, c" in done.stdout
    assert "missed" not in done.stdout
