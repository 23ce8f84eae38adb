"""``bica monitor``."""

import csv
import json

import numpy as np
import pytest

from bica.model.or_mixture import OrMixture

ONE = OrMixture([[1, 0], [1, 1], [0, 0]], [0.3, 0.2], sensors=["a", "b", "c"])
SIX = OrMixture([[1, 0], [0, 1], [0, 0]], [0.4, 0.1], sensors=["a", "b", "c"], names=["phone", "lamp"])


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ONE.save("one.json")
    SIX.save("six.json")
    OrMixture(np.zeros((3, 0)), [], sensors=["a", "b", "c"]).save("empty.json")


def answer(shown):
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def test_the_best_assignment_is_told_with_the_bound_and_the_unseen(run, tmp_path):
    told = answer(run("monitor", "1=one.json", "6=six.json", "-o", "plan.csv", "--json"))
    assert told["assignment"] == {"a": "6", "b": "1", "c": None}
    assert told["value"] == pytest.approx(0.9)
    assert told["unseen"] == ["6: lamp"]
    assert told["n_active"] == pytest.approx(1.0)
    assert set(told["solvers"]) == {"exact", "rounding", "derandomised", "greedy", "max"}
    assert max(told["solvers"].values()) == told["value"] <= told["bound"] + 1e-9
    with open(tmp_path / "plan.csv", newline="") as file:
        assert list(csv.reader(file)) == [["sniffer", "channel"], ["a", "6"], ["b", "1"], ["c", ""]]


def test_people_see_a_line_a_sniffer_and_a_line_a_solver(run):
    shown = run("monitor", "one.json", "six.json", "empty.json").output
    for words in (
        "4 users on 3 channels, 3 sniffers",
        "derandomised",
        "upper bound",
        "0.9000 active users are monitored on average and cannot be more, of 1.0000 that are active",
        "unseen: six: lamp; no user is on channel empty",
    ):
        assert words in shown


def test_tables_are_learned_first_and_may_stand_beside_models(run):
    rows = ONE.sample(3000, np.random.default_rng(1)).astype(int)
    np.savetxt("one.csv", rows, "%d", ",", header="a,b,c", comments="")
    for method in ("likelihood", "findbica"):
        told = answer(run("monitor", "1=one.csv", "6=six.json", "--method", method, "--json"))
        assert told["assignment"] == {"a": "6", "b": "1", "c": None}
        assert told["n_users_on_channel"] == {"1": 2, "6": 2}
        assert told["value"] == pytest.approx(0.9, abs=4 * np.sqrt(0.5 / 3000))


def test_a_table_in_which_nothing_was_heard_is_an_empty_channel(run, tmp_path):
    (tmp_path / "quiet.csv").write_text("a,b,c\n" + "0,0,0\n" * 20)
    told = answer(run("monitor", "1=quiet.csv", "--json"))
    assert told["assignment"] == {"a": None, "b": None, "c": None}
    assert (told["value"], told["n_users"]) == (0, 0)
    assert "there are no users" in run("monitor", "1=quiet.csv").output


def test_fewer_sniffers_than_channels_and_one_solver_alone(run):
    told = answer(run("monitor", "one.json", "six.json", "--sniffers", "b", "--solver", "greedy", "--json"))
    assert told["assignment"] == {"b": "one"}
    assert list(told["solvers"]) == ["greedy"]
    assert told["out_of_reach"] == ["six: phone"]


def test_the_picture_is_written_whole_or_refused_first(run, tmp_path):
    pytest.importorskip("altair")
    assert run("monitor", "one.json", "six.json", "--picture", "plan.svg").exit_code == 0
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    assert run("monitor", "one.json", "--picture", "plan.svg").exit_code == 3
    strange = run("monitor", "one.json", "--picture", "plan.doc", "-o", "plan.csv")
    assert strange.exit_code == 2
    assert not (tmp_path / "plan.csv").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("1=one.json 1=six.json", 2, "a name of its own"),
        ("=one.json", 2, "a name of its own"),
        ("1=no.json", 3, "no.json"),
        ("1=no.csv", 3, "there is no file no.csv"),
        ("one.json --sniffers z", 3, "no channel knows a sniffer 'z'"),
        ("one.json --method magic", 2, "there is no method 'magic'"),
        ("a=- b=-", 2, "once only"),
        ("one.json -o - --json", 2, "both want standard output"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(run, words, code, message):
    shown = run("monitor", *words.split())
    assert shown.exit_code == code, shown.output
    assert message in shown.stderr
