import json

import numpy as np
import pytest

from bica import Noise, OrMixture, PatternCounts
from bica.compare import Match, OwnTable, Setting, SimulatedRows, matches, run_plan, standings
from bica.compare.contest import OTHER_MIXTURES, SCORES, WITHOUT_TRUTH, held_out_likelihood
from bica.compare.run import read_plan
from bica.compare.summary import paired_difference
from bica.compare.task import network_named
from bica.data.writers import csv_bytes
from bica.errors import DataError, SettingError
from bica.rivals.xor import inverse_modulo_2

TRUTH = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.4], Noise.flips(0.02), sensors=["a", "b", "c"])


@pytest.fixture
def table(tmp_path):
    rows = TRUTH.sample(301, np.random.default_rng(3))
    path = tmp_path / "mine.csv"
    path.write_bytes(csv_bytes(rows, TRUTH.sensors))
    return path


def own(table, **settings):
    return OwnTable(path=str(table), **settings)


def simulated(network="topology two", n_samples=200, flip_rate=0.0):
    return SimulatedRows(setting=Setting(network=network, n_samples=n_samples, flip_rate=flip_rate))


class TestOwnTables:
    def test_every_row_is_learned_from_or_held_out(self, table):
        whole, drawn = PatternCounts.of(table), own(table).draw(0)
        assert drawn.training + drawn.held_out == whole
        assert drawn.held_out.n_samples == 100

    def test_seeds_split_differently_and_are_the_same_for_all(self, table):
        first, again, other = own(table).draw(0), own(table).draw(0), own(table).draw(1)
        assert first.training == again.training
        assert first.training != other.training

    def test_rows_that_are_judged_were_not_learned_from(self, tmp_path):
        path = tmp_path / "distinct.csv"
        path.write_bytes(csv_bytes((np.arange(64)[:, None] >> np.arange(6)) & 1 == 1, list("abcdef")))
        drawn = own(path).draw(5)
        assert not set(drawn.training.patterns[:, 0]) & set(drawn.held_out.patterns[:, 0])

    def test_without_a_truth_there_are_scores_all_the_same(self, table):
        record = Match(contender="likelihood", problem=own(table), seed=0).perform()
        assert all(record[name] is not None for name in WITHOUT_TRUTH)
        assert record["f1"] is None
        assert json.loads(record["sources"])

    def test_with_a_truth_whose_sensors_are_in_another_order(self, table, tmp_path):
        TRUTH.of_sensors([2, 0, 1]).save(tmp_path / "truth.json")
        record = Match(contender="likelihood", problem=own(table, truth=str(tmp_path / "truth.json")), seed=0).perform()
        assert record["f1"] == record["similarity"] == 1.0

    def test_a_changed_table_is_another_problem(self, table):
        before = own(table).fingerprint
        table.write_bytes(csv_bytes(TRUTH.sample(301, np.random.default_rng(4)), TRUTH.sensors))
        assert own(table).fingerprint != before

    def test_a_table_of_two_rows_is_refused(self, tmp_path):
        path = tmp_path / "short.csv"
        path.write_text("a,b\n0,1\n1,1\n")
        with pytest.raises(DataError, match="at least three rows"):
            own(path).draw(0)

    def test_a_truth_of_other_sensors_is_refused(self, table, tmp_path):
        OrMixture([[1]], [0.5], sensors=["z"]).save(tmp_path / "truth.json")
        with pytest.raises(DataError, match="are not the columns"):
            own(table, truth=str(tmp_path / "truth.json")).draw(0)


class TestNetworks:
    def test_xor_networks_can_be_inverted_and_their_rows_are_parities(self):
        problem = Setting(network="xor 5", n_samples=300, flip_rate=0.0).draw(1)
        assert np.array_equal(
            (problem.activity.astype(int) @ problem.model.mixing.T.astype(int)) % 2 == 1, problem.rows
        )
        unmixed = problem.rows.astype(int) @ inverse_modulo_2(problem.model.mixing).T.astype(int) % 2
        assert np.array_equal(unmixed == 1, problem.activity)

    def test_edges_of_lossy_networks_fail(self):
        problem = Setting(network="lossy 10 x 6", n_samples=2000, flip_rate=0.0).draw(0)
        sure = problem.model.observe(problem.activity)
        assert not (problem.rows & ~sure).any()
        missing = (sure & ~problem.rows).sum() / sure.sum()
        assert 0.1 < missing < 0.3  # a quarter of the edges of active sources fail, fewer where two reach a sensor

    @pytest.mark.parametrize("name", ["nowhere", "random 20", "bars 4 x 4", "xor 0", "bars 101", "random 99999 x 3"])
    def test_unknown_networks_are_refused_with_a_choice(self, name):
        with pytest.raises(SettingError, match="network"):
            network_named(name)(np.random.default_rng(0))


def test_the_likelihood_of_held_out_rows_is_the_models():
    rows = TRUTH.sample(500, np.random.default_rng(0))
    counts = PatternCounts.of(rows, sensors=TRUTH.sensors)
    assert held_out_likelihood(TRUTH, counts) == pytest.approx(TRUTH.log_likelihood(counts) / 500)
    assert held_out_likelihood(OrMixture([[0], [0], [1]], [0.1], sensors=TRUTH.sensors), counts) is None


@pytest.mark.filterwarnings("ignore::bica.errors.BicaWarning")  # of sources that are on in half of the rows
def test_wrong_cells_and_gain_are_none_for_methods_of_other_mixtures():
    for name in OTHER_MIXTURES:
        record = Match(contender=name, problem=simulated(), seed=0).perform()
        assert record["wrong_cells"] is record["gain"] is record["held_out"] is None
        assert record["f1"] is not None


def test_who_must_be_told_the_number_needs_it(table):
    with pytest.raises(SettingError, match=r"mac needs the number of sources of mine\.csv"):
        matches(["mac"], [own(table)], range(2))
    record = matches(["mac"], [own(table, n_sources=2)], [0])[0].perform()
    assert record["told"] == 2


def test_standings_keep_order_and_stability_compares_seeds(tmp_path):
    plan = matches(["findbica", "grecond"], [simulated(), simulated("bars 3")], range(3))
    found = standings(run_plan(plan, tmp_path / "results.jsonl"))
    assert [(s.problem, s.contender) for s in found] == [
        ("topology two, 200 rows", "findbica"),
        ("topology two, 200 rows", "grecond"),
        ("bars 3, 200 rows", "findbica"),
        ("bars 3, 200 rows", "grecond"),
    ]
    assert found[0].means["stability"].n_runs == 3  # pairs of seeds
    assert set(found[0].runs) == set(SCORES)
    difference = paired_difference(found[0], found[1], "f1")
    assert difference.mean == pytest.approx(found[0].means["f1"].mean - found[1].means["f1"].mean)


class TestPlanFiles:
    def test_a_plan_names_tables_beside_it(self, table):
        plan = table.parent / "plan.toml"
        plan.write_text('methods = ["findbica"]\nruns = 4\n[[table]]\npath = "mine.csv"\nsources = 2\n')
        read = read_plan(plan)
        assert read.problems == [own(table, n_sources=2)]
        assert (read.methods, read.runs) == (("findbica",), 4)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("methods = [", "cannot be read as a plan"),
            ("methods = ['findbica']", "names nothing to compare"),
            ("speed = 3", "'speed', which means nothing"),
            ("[[table]]\nsources = 2", "needs a path"),
            ("[[table]]\npath = 3", "give a text in quotes"),
            ("[[table]]\npath = 'x'\nsources = true", "a whole number from 1 up"),
            ("[[simulated]]\nrows = [5]", "needs a network"),
            ("[[simulated]]\nnetwork = 'bars 3'\nrows = [0]", "rows are whole numbers from 1 up"),
            ("[[simulated]]\nnetwork = 'bars 3'\nflips = ['a']", "flips holds"),
            ("a = " + "[" * 5000, "cannot be read as a plan"),
        ],
    )
    def test_what_makes_no_sense_is_refused_in_one_sentence(self, tmp_path, text, sentence):
        path = tmp_path / "plan.toml"
        path.write_text(text)
        with pytest.raises(DataError, match=sentence):
            read_plan(path)


def test_a_method_that_takes_too_long_is_given_up(table):
    record = Match(contender="buffet", problem=own(table), seed=0, time_limit=0.01).perform()
    assert record["failure"] == "it took more than 0.01 s of CPU time"
    assert record["f1"] is None


def test_a_score_that_takes_too_long_stays_open_and_the_others_are_kept(table, monkeypatch):
    def endless(*_):
        while True:
            pass

    monkeypatch.setattr("bica.compare.contest.held_out_likelihood", endless)
    record = Match(contender="grecond", problem=own(table), seed=0, time_limit=0.5).perform()
    assert record["failure"] is None
    assert record["held_out"] is None
    assert record["wrong_cells"] == 0.0
    assert record["verdict"] != "not judged"
