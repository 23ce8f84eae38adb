"""Whether rows change along a table, and what check, fit and report make of it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from bica import BICA, Noise
from bica.cli.app import app
from bica.data.rows import Order, Rows, order_in, trend_of
from bica.data.tables import open_table
from bica.errors import MisfitWarning
from bica.simulate import markov_activity, random_network

RNG = np.random.default_rng
NAMES = [f"s{i}" for i in range(8)]


def trend_in(rows):
    given = Rows.of(rows)
    return trend_of(given.words, given.observed, given.sensors)


def rising(n_rows: int, first: float = 0.1, last: float = 0.4, seed: int = 0):
    """One sensor whose probability grows along the rows, and one that stays as it is."""
    share = np.column_stack([np.linspace(first, last, n_rows), np.full(n_rows, 0.3)])
    return RNG(seed).random((n_rows, 2)) < share


def trending(seed: int = 1, n_rows: int = 5000):
    """Six sources that come on more and more often, from a fifth of their probability to nine fifths."""
    rng = RNG(seed)
    model = random_network(8, 6, noise=Noise.flips(0.01), rng=rng)
    activity = rng.random((n_rows, 6)) < model.probability * np.linspace(0.2, 1.8, n_rows)[:, None]
    return model.observe(activity) ^ (rng.random((n_rows, 8)) < 0.01)


def written(tmp_path, rows):
    table = tmp_path / "table.csv"
    lines = [",".join(map(str, row)) for row in np.asarray(rows, int)]
    table.write_text("\n".join([",".join(NAMES[: rows.shape[1]]), *lines]) + "\n")
    return str(table)


def run(*words):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_rows_that_do_not_change_hardly_ever_show_a_trend():
    # at a level of 0.001 per table, more than 3 of 400 have odds of 0.0008
    seen = [trend_in(RNG(s).random((300, 8)) < RNG(s + 9999).uniform(0.01, 0.6, 8)) for s in range(400)]
    assert sum(trend is not None for trend in seen) <= 3


@pytest.mark.parametrize("stay", [5.0, 20.0, 50.0])
def test_rows_that_persist_are_no_trend(stay):
    seen = [trend_in(markov_activity([0.3, 0.1, 0.2], stay, 2000, RNG(s))) for s in range(100)]
    assert sum(trend is not None for trend in seen) <= 3


def test_a_sensor_that_rises_is_named_with_its_shares():
    found = trend_in(rising(4000))
    assert (found.sensor, found.n_sensors) == ("x0", 1)
    # of the first and last quarter: 0.1375 and 0.3625, with standard errors of 0.011 and 0.015
    assert found.first == pytest.approx(0.1375, abs=0.05)
    assert found.last == pytest.approx(0.3625, abs=0.06)
    assert "x0 is on in" in found.words()
    assert trend_in(rising(4000)[::-1]).first == pytest.approx(found.last)


def test_missing_cells_do_not_look_like_a_trend():
    rows = (RNG(3).random((4000, 3)) < 0.3).astype(float)
    rows[RNG(4).random(rows.shape) < np.linspace(0.0, 0.8, 4000)[:, None]] = np.nan  # more and more are missing
    assert trend_in(rows) is None
    gaps = rising(4000).astype(float)
    gaps[RNG(4).random(gaps.shape) < 0.3] = np.nan
    assert trend_in(gaps).sensor == "x0"


def test_small_changes_of_many_rows_and_sorted_tables_are_no_trend():
    assert trend_in(rising(200_000, 0.30, 0.32)) is None
    rows = RNG(5).random((2000, 6)) < 0.3
    assert trend_in(rows[np.lexsort(rows.T)]) is None
    assert trend_in(rows[np.argsort(rows.sum(axis=1), kind="stable")]) is None  # by how many are on
    grouped = np.repeat(rows[[5, 3, 9, 7, 2]], [40, 200, 100, 300, 80], axis=0)
    assert trend_in(grouped) is None
    assert trend_in(rows[:50]) is None
    assert order_in(open_table(np.zeros((0, 3)))) == Order()


@pytest.mark.slow
def test_a_fit_to_rows_that_change_is_doubtful_and_says_why():
    with pytest.warns(MisfitWarning, match="the rows change along the table"):
        found = BICA(random_state=0).fit(trending(3))
    diagnosis = found.diagnostics_["diagnosis"]
    assert found.n_sources_ > 6  # the trend makes sources look dependent, so more than the true ones are found
    assert diagnosis["verdict"] == "doubtful"  # though no test of fit refutes these
    assert any("the rows change along the table" in reason for reason in diagnosis["reasons"])
    assert any("earlier and the later" in step for step in diagnosis["next"])
    shuffled = BICA(random_state=0).fit(trending(3)[RNG(0).permutation(5000)])
    assert shuffled.diagnostics_["diagnosis"]["trend"] is None


@pytest.mark.slow
def test_in_time_it_is_noticed_too():
    rows = rising(3000, 0.05, 0.5)
    with pytest.warns(MisfitWarning, match="change along"):
        BICA(random_state=0).fit(rows)
    assert BICA(random_state=0, temporal=True).fit(rows).diagnostics_["diagnosis"]["trend"] is not None


@pytest.mark.slow
def test_check_fit_show_and_report_name_the_trend_and_the_next_step(tmp_path):
    table, model, page = written(tmp_path, trending()), str(tmp_path / "m.json"), tmp_path / "r.html"
    for words in (["check", table], ["fit", table, "-o", model], ["show", model]):
        screen = run(*words)
        assert "the rows change along the table: s" in screen
        assert "next: if the rows are in order of time" in screen
    run("report", model, table, "-o", str(page))
    content = json.loads(page.read_text().split('id="bica-data">')[1].split("</script>")[0])
    assert any("The rows change along the table" in reason for reason in content["verdict"]["reasons"])
    assert any("in order of time" in step for step, _ in content["verdict"]["next"])
    assert content["activity"]["labels"][0] == "row 1"  # drawn along the rows, though they have no times
    run("report", model, table, "--anonymise", "-o", str(page), "--force")
    html = page.read_text()
    assert "he rows change along the table: sensor" in html
    assert not any(f'"{name}"' in html or f" {name} " in html for name in NAMES)
