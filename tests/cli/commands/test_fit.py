"""``bica fit``."""

import gzip
import json

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.data.writers import csv_bytes
from bica.estimate.findbica import FindBICA
from bica.estimate.likelihood import Likelihood
from bica.methods import method_named
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.cli.conftest import shell

TRUTH = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.4], sensors=["hall", "door", "yard"])
ROWS = TRUTH.sample(2000, np.random.default_rng(7))


@pytest.fixture
def table(tmp_path):
    (tmp_path / "table.csv").write_bytes(csv_bytes(ROWS, TRUTH.sensors))
    return tmp_path / "table.csv"


def learned(method="likelihood", **settings):
    counts = PatternCounts.of(ROWS, sensors=TRUTH.sensors)
    return method_named(method, **settings).fit(counts, np.random.default_rng(0)).model


def test_the_model_is_shown_and_written(run, table, tmp_path):
    shown = run("fit", table, "-o", tmp_path / "m.json")
    assert shown.exit_code == 0
    assert "2 sources behind 3 sensors" in shown.stdout
    assert "learned by likelihood from 2000 rows" in shown.stdout
    assert OrMixture.load(tmp_path / "m.json") == learned()


def test_json_is_the_model_and_nothing_else(run, table, tmp_path):
    shown = run("fit", table, "--json", "-o", tmp_path / "m.json")
    assert shown.stdout == (tmp_path / "m.json").read_text()
    assert len(json.loads(shown.stdout)["sources"]) == 2


def test_a_dash_reads_the_table_and_writes_the_model(run, table, tmp_path):
    shown = run("fit", "-", "-o", "-", input=table.read_bytes())
    (tmp_path / "m.json").write_text(shown.stdout)
    assert OrMixture.load(tmp_path / "m.json") == learned()
    assert "2 sources behind 3 sensors" in shown.stderr


@pytest.mark.slow
def test_commands_join_in_a_pipe(tmp_path, table):
    made = shell("fit", table, "-o", "-")
    assert made.returncode == 0
    shown = shell("show", "-", input=made.stdout)
    assert "2 sources behind 3 sensors" in shown.stdout


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (["--min-probability", "0.3"], {"min_probability": 0.3}),
        (["--method", "findbica", "--significance", "0.001"], {"method": "findbica", "significance": 0.001}),
        (["--method", "findbica", "--significance", "none"], {"method": "findbica", "significance": None}),
        (["--noise", "0"], {"noise": Noise()}),
        (["--noise", "0.05"], {"noise": Noise.flips(0.05)}),
        (["--noise", "per-sensor"], {"noise": "per-sensor"}),
        (["--noise", "estimate", "--method", "findbica", "--seed", "4"], {"method": "findbica"}),
    ],
)
def test_settings_reach_the_method(run, table, tmp_path, words, settings):
    assert run("fit", table, "-o", tmp_path / "m.json", *words).exit_code == 0
    assert OrMixture.load(tmp_path / "m.json") == learned(**settings)


@pytest.mark.parametrize(
    "words", [["--binarize", "0.5"], ["--binarize", "hall=0.5", "--binarize", "door=0.5", "--binarize", "yard=0.5"]]
)
def test_measurements_are_cut_at_a_threshold(run, tmp_path, words):
    lines = [",".join(str(0.2 + 0.6 * cell) for cell in row) for row in ROWS.astype(int)]
    (tmp_path / "t.csv").write_text("\n".join(["hall,door,yard", *lines]))
    assert run("fit", tmp_path / "t.csv").exit_code == 3
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.json", *words).exit_code == 0
    assert OrMixture.load(tmp_path / "m.json") == learned()


def test_a_column_may_hold_weights(run, tmp_path):
    counts = PatternCounts.of(ROWS)
    weighted = np.column_stack([counts.rows(), counts.weights]).astype(int)
    lines = [",".join(map(str, row)) for row in weighted]
    (tmp_path / "t.csv").write_text("\n".join(["hall,door,yard,how often", *lines]))
    assert run("fit", tmp_path / "t.csv", "--weights", "how often", "-o", tmp_path / "m.json").exit_code == 0
    found = Fit.load(tmp_path / "m.json")
    assert found.model == learned()
    assert found.n_samples == 2000


@pytest.mark.parametrize(
    "words",
    [
        ["--method", "magic"],
        ["--noise", "lots"],
        ["--noise", "1"],
        ["--noise", "nan"],
        ["--binarize", "half"],
        ["--binarize", "hall=half"],
        ["--binarize", "0.5", "--binarize", "hall=0.5"],
        ["--min-probability", "2"],
        ["--significance", "0"],
        ["--bootstrap", "0"],
        ["--bootstrap", "many"],
        ["--json", "-o", "-"],
    ],
    ids=" ".join,
)
def test_settings_that_mean_nothing_are_usage_errors(run, table, words):
    shown = run("fit", table, *words)
    assert shown.exit_code == 2
    assert shown.stdout == ""


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", ""),
        ("a,b\n", ""),
        ("a,b\n0,1\n1,2\n", "2"),
        ("a,b\n0,1\n1,x\n", "x"),
        ("a,b\n0,1\n1,0,1\n", ""),
        ("a,a\n0,1\n1,0\n", "'a'"),
        ("a,b\n0,1\n\x1b[31m,0\n", ""),
    ],
    ids=["empty", "no rows", "a two", "a word", "ragged", "same name", "escape"],
)
def test_a_table_that_cannot_be_read_is_refused_in_one_sentence(run, tmp_path, content, complaint):
    (tmp_path / "t.csv").write_text(content)
    shown = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.json")
    assert shown.exit_code == 3
    assert shown.stdout == ""
    (sentence,) = [line for line in shown.stderr.splitlines() if not line.startswith("compiling, once")]
    assert complaint in sentence
    assert sentence.isprintable()
    assert not (tmp_path / "m.json").exists()


def test_a_cell_that_is_no_bit_is_named_with_the_remedy(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n0,1\n1,2\n")
    told = run("fit", tmp_path / "t.csv").stderr
    assert all(part in told for part in ("'b'", "2", "binarize"))


def test_a_missing_table_and_a_folder_are_refused(run, tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        shown = run("fit", path)
        assert shown.exit_code == 3
        assert shown.stdout == ""


def test_an_unknown_weight_column_is_refused(run, table):
    shown = run("fit", table, "--weights", "none")
    assert shown.exit_code in (2, 3)
    assert "'none'" in shown.stderr


@pytest.mark.parametrize("place", ["folder", "taken.json", "absent/m.json", "table.csv/m.json"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(run, table, tmp_path, place, monkeypatch):
    monkeypatch.setattr(Likelihood, "fit", lambda *_: pytest.fail("the work was done first"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken.json").write_text("mine")
    shown = run("fit", table, "-o", tmp_path / place)
    assert shown.exit_code == 3
    assert shown.stdout == ""
    assert shown.stderr.count("\n") == 1
    assert (tmp_path / "taken.json").read_text() == "mine"


def test_force_overwrites(run, table, tmp_path):
    (tmp_path / "m.json").write_text("mine")
    assert run("fit", table, "-o", tmp_path / "m.json", "--force").exit_code == 0
    assert OrMixture.load(tmp_path / "m.json").n_sources == 2


BOOTSTRAP = ["--method", "findbica", "--bootstrap", "20"]  # a method without errors of its own


def test_a_bootstrap_adds_support_and_errors(run, table, tmp_path):
    shown = run("fit", table, *BOOTSTRAP, "-o", tmp_path / "m.json")
    assert shown.exit_code == 0
    assert all(part in shown.stdout for part in ("support", "100%", "95 % interval"))
    found = Fit.load(tmp_path / "m.json")
    assert found.model == learned("findbica")
    assert found.diagnostics["bootstrap"]["support"] == [1.0, 1.0]
    assert found.diagnostics["bootstrap"]["n_resamples"] == 20
    assert found.probability_error.tolist() == found.diagnostics["bootstrap"]["error"]
    again = run("fit", table, *BOOTSTRAP, "--json")
    assert again.stdout == (tmp_path / "m.json").read_text()
    other = run("fit", table, *BOOTSTRAP, "--json", "--seed", "1")
    assert other.stdout != again.stdout


def test_ctrl_c_in_the_bootstrap_keeps_the_fit_and_what_was_done(run, table, monkeypatch):
    calls, fit = [], FindBICA.fit

    def until_the_fifth(self, data, rng):
        calls.append(data)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return fit(self, data, rng)

    monkeypatch.setattr(FindBICA, "fit", until_the_fifth)
    shown = run("fit", table, *BOOTSTRAP, "--jobs", "1", "--json")
    assert shown.exit_code == 0
    assert "interrupted: 3 of 20 resamples were done" in shown.stderr
    assert json.loads(shown.stdout)["fitted"]["diagnostics"]["bootstrap"]["n_resamples"] == 3


def test_same_table_same_bytes(run, table):
    assert run("fit", table, "--json").stdout == run("fit", table, "--json").stdout


def test_hostile_columns_are_harmless(run, tmp_path):
    names = ["[red]hall[/red]", "do\x1b[31mor", ":yard:"]
    (tmp_path / "t.csv").write_bytes(csv_bytes(ROWS, names))
    shown = run("fit", tmp_path / "t.csv")
    assert shown.exit_code == 0
    assert all(line.isprintable() for line in shown.stdout.splitlines())
    assert "[red]hall[/red]" in shown.stdout
    assert json.loads(run("fit", tmp_path / "t.csv", "--json").stdout)["sensors"] == names


def test_the_command_line_names_the_limit(run, tmp_path):
    rows = np.random.default_rng(0).random((50, 65)) < 0.5
    (tmp_path / "t.csv").write_bytes(csv_bytes(rows, [f"s{i}" for i in range(65)]))
    shown = run("fit", tmp_path / "t.csv", "--noise", "per-sensor", "-o", tmp_path / "m.json")
    assert shown.exit_code == 4
    assert "65 sensors vary, more than 64, so misses and false alarms can be given" in " ".join(shown.stderr.split())
    assert not (tmp_path / "m.json").exists()


def test_a_rival_is_told_the_number_of_sources(run, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b,c\n" + "1,1,0\n" * 20 + "0,1,1\n" * 10 + "1,1,1\n" * 5 + "0,0,0\n" * 30)
    result = run("fit", table, "--method", "mac", "--sources", 2, "--json")
    assert result.exit_code == 0, result.output
    assert [source["sensors"] for source in json.loads(result.stdout)["sources"]] == [["a", "b"], ["b", "c"]]
    refused = run("fit", table, "--method", "mac")
    assert refused.exit_code == 2
    assert "give n_sources" in refused.stderr


def test_a_time_limit_gives_the_best_so_far(run, table, tmp_path):
    (tmp_path / "m.json").write_text("an earlier model")
    shown = run("fit", table, "-o", tmp_path / "m.json", "--force", "--time-limit", "1e-9")
    assert shown.exit_code == 0
    assert "bica: warning: the time limit is over: this is the best model so far, not the final one" in shown.stderr
    noted = Fit.load(tmp_path / "m.json").diagnostics
    assert (noted["interrupted"], noted["time_limit"]) == (True, 1e-9)
    assert noted["diagnosis"]["verdict"] != "fits"
    enough = run("fit", table, "-o", tmp_path / "n.json", "--time-limit", "600")
    assert enough.exit_code == 0
    assert OrMixture.load(tmp_path / "n.json") == learned()
    refused = run("fit", table, "--time-limit", "0")
    assert refused.exit_code == 2
    assert "--time-limit" in refused.stderr


def test_the_command_starts_from_a_model_file(run, tmp_path):
    model = OrMixture([[1, 0], [1, 0], [0, 1], [0, 1]], [0.2, 0.3], sensors=["a", "b", "c", "d"], names=["pump", None])
    model.save(tmp_path / "old.json")
    rows = model.sample(2000, np.random.default_rng(0)).astype(int)
    np.savetxt(tmp_path / "t.csv", rows, fmt="%d", delimiter=",", header="a,b,c,d", comments="")
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "new.json", "--start", tmp_path / "old.json")
    assert done.exit_code == 0
    assert "pump" in Fit.load(tmp_path / "new.json").model.names
    refused = run("fit", tmp_path / "t.csv", "--method", "findbica", "--start", tmp_path / "old.json")
    assert refused.exit_code != 0
    assert "--start" in refused.stderr


METER = "time,power\n" + "".join(f"{t},{3 * (t % 2) + 1.1 * (t // 2 % 2) + 0.5:.2f}\n" for t in range(40))


def test_measurements_are_unmixed(run, tmp_path):
    table, states = tmp_path / "meter.csv", tmp_path / "on.csv"
    table.write_text(METER)
    shown = run("unmix", str(table), "--sources", "2", "--columns", "power", "-o", str(states))
    assert shown.exit_code == 0, shown.stderr
    assert "power 3" in shown.stdout
    assert "power 1.1" in shown.stdout
    assert "without any source: power 0.5" in shown.stdout
    expected = [f"{t % 2},{t // 2 % 2}" for t in range(40)]
    assert states.read_text().splitlines() == ["source1,source2", *expected]
    options = ("--sources", "2", "--columns", "power", "--json")
    found = json.loads(run("unmix", str(table), *options).stdout)
    packed = tmp_path / "meter.tsv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + METER.replace(",", "\t").encode()))
    assert json.loads(run("unmix", str(packed), *options).stdout) == found
    assert json.loads(run("unmix", "-", *options, input=METER).stdout) == found
    assert [source["probability"] for source in found["sources"]] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("text", "words", "options"),
    [
        ("a,b\n1.5,\n", "line 2, column 'b' holds ''", []),
        ("a,b\n1.5,2\n\n2,nan\n", "line 4, column 'b' holds 'nan'", []),
        ("a,b\n1.5,2\n1e400,2\n", "line 3, column 'a' holds '1e400'", []),
        ("a,b\n1.5,2\n1\n", "line 3 has 1 cell", []),
        ("a,a\n1.5,2\n", "2 columns 'a'", []),
        ("a,b\n1.5,2\n", "0 columns 'c'", ["--columns", "c"]),
        ("a\n", "no rows", []),
        ("", "is empty", []),
        (None, "there is no file", []),
    ],
)
def test_what_is_no_table_of_measurements_is_refused(run, tmp_path, text, words, options):
    table = tmp_path / "m.csv"
    if text is not None:
        table.write_text(text)
    shown = run("unmix", str(table), "--sources", "2", *options)
    assert (shown.exit_code, shown.stdout) == (3, "")
    assert words in shown.stderr
