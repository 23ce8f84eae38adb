"""The verdict: true OR mixtures are not refuted, what no OR mixture brings about is."""

import json
from itertools import combinations

import numpy as np
import pytest

from bica.compare import Setting
from bica.data.patterns import PatternCounts
from bica.diagnose.hints import hints
from bica.diagnose.table import TableCheck, stretch_of
from bica.diagnose.verdicts import Diagnosis
from bica.estimate.findbica import FindBICA
from bica.estimate.likelihood import Likelihood
from bica.methods import method_named
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import example, markov_activity, random_network


def judged(rows, method=None, **more):
    data = PatternCounts.of(rows, **more)
    return Diagnosis.of(data, (method or Likelihood()).fit(data, np.random.default_rng(0)))


def checked(rows, **more):
    return TableCheck.of(PatternCounts.of(rows, **more))


class TestTheTable:
    def test_quiet_rows_missing_cells_and_distinct_rows_are_counted(self):
        check = checked(np.ma.masked_invalid([[0, 0], [0, 0], [1, np.nan], [1, 1]]))
        assert (check.n_samples, check.n_distinct) == (4, 3)
        assert (check.quiet_share, check.missing_share) == (0.5, 0.125)

    def test_constant_and_duplicate_sensors_are_named(self):
        rows = [[1, 0, 0, 0, 1], [1, 0, 1, 1, 0], [1, 0, 1, 1, 0]]
        check = checked(rows, sensors=["on", "off", "a", "b", "c"])
        assert (check.always_on, check.always_off, check.duplicates) == (("on",), ("off",), (("a", "b"),))
        assert check.n_varying == 3

    def test_equal_columns_that_were_seen_in_different_rows_are_no_duplicates(self):
        assert not checked(np.ma.masked_invalid([[1, np.nan], [1, 1], [0, 0]])).duplicates

    def test_the_sensors_fall_into_groups(self):
        rng = np.random.default_rng(0)
        one, two = rng.random((2, 500)) < 0.3
        assert checked(np.column_stack([one, one, two, two, two])).groups == (3, 2)

    def test_negative_pairs_are_found_at_the_stated_level(self):
        """Independent sensors are the worst case: any OR mixture has fewer false alarms."""
        rng, n_tables = np.random.default_rng(1), 300
        refuted = sum(checked(rng.random((200, 6)) < 0.4).n_negative_pairs > 0 for _ in range(n_tables))
        assert refuted <= n_tables * 0.01 + 4 * np.sqrt(n_tables * 0.01 * 0.99)

    def test_a_pair_that_is_never_on_together_is_named_with_its_counts(self):
        rows = np.repeat([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 1]], 25, axis=0)
        check = checked(rows, sensors=["a", "b", "c"])
        assert [pair.sensors for pair in check.negative_pairs] == [("a", "b"), ("a", "c")]
        assert (check.negative_pairs[0].observed, check.negative_pairs[0].expected) == (0, 12.5)
        assert "a and b (0 rows with both, 12.5 expected)" in check.objections()[0]

    def test_a_slight_exclusion_in_a_long_table_raises_doubt_only(self):
        rows, weights = [[0, 0], [0, 1], [1, 0], [1, 1]], np.array([251, 249, 249, 251]) * 1000.0
        weights[[1, 2]], weights[[0, 3]] = 252_000, 248_000
        diagnosis = Diagnosis.of(PatternCounts.of(rows, sample_weight=weights))
        assert diagnosis.table.n_negative_pairs == 1
        assert diagnosis.verdict == "doubtful"

    def test_one_sensor_and_no_varying_sensor_are_fine(self):
        assert Diagnosis.of(PatternCounts.of([[0], [1]])).verdict == "open"
        assert Diagnosis.of(PatternCounts.of([[0], [0]])).verdict == "open"

    def test_too_many_sensors_are_said_to_be_unchecked(self):
        check = checked(np.eye(2050, dtype=bool))
        assert check.n_pairs == 0
        assert "not checked" in " ".join(check.sentences())


@pytest.mark.slow
@pytest.mark.parametrize("flip_rate", [0.0, 0.1])
def test_true_mixtures_are_rarely_called_a_misfit(flip_rate):
    """The level is 1 % of 24 fits, four standard deviations of a binomial count on top: 0.24 + 4 * 0.49 = 2.2."""
    verdicts = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        truth = random_network(6 + seed % 3, 6 + seed % 3, rng=rng).with_noise(Noise.flips(flip_rate))
        verdicts.append(judged(truth.sample(700, rng)).verdict)
    assert verdicts.count("misfit") <= 2
    assert verdicts.count("fits") >= 18


class TestWhatNoMixtureBringsAbout:
    """The sources drive two sensors each; they are not independent, so no OR mixture has these rows."""

    def rows(self, activity, flip_rate, rng):
        shown = np.repeat(activity, 2, axis=1)
        return shown ^ (rng.random(shown.shape) < flip_rate)

    @pytest.mark.parametrize("flip_rate", [0.0, 0.1])
    @pytest.mark.parametrize("seed", range(3))
    def test_sources_that_exclude_each_other_are_caught(self, seed, flip_rate):
        rng = np.random.default_rng(seed)
        activity = np.arange(3) == rng.integers(0, 4, 1000)[:, None]
        diagnosis = judged(self.rows(activity, flip_rate, rng))
        assert diagnosis.verdict == "misfit"
        assert diagnosis.table.n_negative_pairs >= 11  # of 12 across sources: 250 * 250 / 1000 expected, 0 seen

    @pytest.mark.parametrize("seed", range(3))
    def test_three_sources_of_which_an_even_number_is_on_are_caught(self, seed):
        """Each two are independent, so pairs show nothing; only the table of all patterns does."""
        rng = np.random.default_rng(seed)
        activity = rng.random((1000, 3)) < 0.5
        activity[:, 2] = activity[:, 0] ^ activity[:, 1]
        diagnosis = judged(self.rows(activity, 0.05, rng))
        assert diagnosis.table.n_negative_pairs == 0
        assert diagnosis.verdict == "misfit"
        assert diagnosis.fit.g2_p_value <= 0.01
        assert diagnosis.fit.n_odd_patterns > 0


class TestTheFit:
    TRUTH = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.4], sensors=["hall", "door", "yard"])
    DATA = PatternCounts.of(TRUTH.sample(2000, np.random.default_rng(7)), sensors=TRUTH.sensors)

    def test_a_wrong_model_is_a_misfit_with_its_worst_patterns(self):
        wrong = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.1], Noise.flips(0.01), sensors=self.TRUTH.sensors)
        check = Diagnosis.of(self.DATA, Fit(wrong)).fit
        assert check.odd_patterns[0].sensors == ("door", "yard")
        assert check.odd_patterns[0].observed > 2 * check.odd_patterns[0].expected
        assert check.odd_patterns[0].z > 10
        assert Diagnosis.of(self.DATA, Fit(wrong)).verdict == "misfit"

    def test_impossible_rows_are_a_misfit(self):
        alone = OrMixture([[1], [1], [0]], [0.2], sensors=self.TRUTH.sensors)
        diagnosis = Diagnosis.of(self.DATA, Fit(alone))
        assert diagnosis.verdict == "misfit"
        assert "as impossible" in diagnosis.reasons[0]
        json.dumps(diagnosis.as_dict(), allow_nan=False)

    def test_few_rows_cannot_vouch_for_a_model(self):
        data = PatternCounts.of(self.TRUTH.sample(12, np.random.default_rng(1)))
        fit = Fit(OrMixture(np.eye(3), [0.3] * 3), probability_error=[0.1] * 3)
        diagnosis = Diagnosis.of(data, fit)
        assert diagnosis.fit.has_too_few_rows
        assert "12 rows would hardly show" in diagnosis.reasons[-1]

    def test_too_few_rows_are_a_verdict_of_their_own(self):
        few = judged(self.TRUTH.with_noise(Noise.flips(0.05)).sample(25, np.random.default_rng(3)))
        assert few.verdict == "too few rows"
        assert few.sentences()[0] == "too few rows: so few could not contradict a wrong model either"
        (reason,) = few.reasons
        assert reason.startswith(
            "25 rows would hardly show that a source which is on in 20 % of the rows was overlooked"
        )
        assert few.fit.rows_needed > 25
        enough = judged(self.TRUTH.with_noise(Noise.flips(0.05)).sample(4000, np.random.default_rng(2)))
        assert (enough.verdict, enough.reasons) == ("fits", ())

    @pytest.mark.parametrize("diagnostics", [{}, {"interrupted": True}], ids=["unsettled", "interrupted"])
    def test_an_unfinished_fit_never_fits(self, diagnostics):
        fit = Fit(self.TRUTH, converged=False, diagnostics=diagnostics)
        diagnosis = Diagnosis.of(self.DATA, fit)
        assert diagnosis.verdict == "doubtful"
        assert ("interrupted" if diagnostics else "not settled") in diagnosis.reasons[0]

    @pytest.mark.parametrize("seed", range(4))
    def test_independent_columns_teach_nothing(self, seed):
        diagnosis = judged(np.random.default_rng(seed).random((2000, 5)) < 0.5)
        assert diagnosis.verdict in ("doubtful", "too few rows")
        if not diagnosis.fit.is_related:
            assert "nothing was learned" in diagnosis.reasons[0]

    def test_a_table_of_missing_cells_teaches_nothing(self):
        data = PatternCounts.of(np.ma.masked_all((50, 3)))
        assert Diagnosis.of(data, Fit(OrMixture.without_sources(data.sensors))).verdict == "doubtful"

    def test_no_source_at_all_points_to_the_threshold(self):
        rare = PatternCounts.of(OrMixture([[1], [1]], [0.01]).sample(5000, np.random.default_rng(5)))
        assert "no source was found" in judged(rare, FindBICA()).reasons[-1]
        assert judged(rare, FindBICA(min_probability=0.005)).fit.n_sources == 1
        noise_alone = np.random.default_rng(6).random((500, 3)) < 0.1
        assert "nothing was learned" in judged(noise_alone).reasons[0]

    def test_sources_that_are_mostly_parts_of_others_raise_doubt(self):
        """With one flip rate, a source that reaches each of six sensors in 70 % of cases leaves one for every set."""
        rng = np.random.default_rng(3)
        heard = (rng.random((5000, 1)) < 0.2) & (rng.random((5000, 6)) < 0.7)
        diagnosis = judged(heard, Likelihood(noise="estimate"))
        assert diagnosis.verdict in ("doubtful", "misfit")
        assert "parts of others, as if a few sources reached their sensors only at times" in " ".join(diagnosis.reasons)

    def test_more_sources_than_sensors_alone_raise_no_doubt(self):
        """All pairs of six sensors: 15 sources, none within another."""
        pairs = [[i in pair for pair in combinations(range(6), 2)] for i in range(6)]
        truth = OrMixture(pairs, [0.05] * 15)
        assert judged(truth.sample(5000, np.random.default_rng(4))).verdict == "fits"

    def test_missing_cells_leave_the_complete_rows(self):
        cells = np.ma.array(self.TRUTH.sample(2000, np.random.default_rng(7)).astype(float), mask=False)
        cells[:500, 0] = np.ma.masked
        diagnosis = judged(cells)
        assert diagnosis.fit.patterns_checked
        assert diagnosis.verdict == "fits"

    def test_constant_sensors_do_not_count_against_the_noise(self):
        rows = self.TRUTH.with_noise(Noise.flips(0.1)).sample(1000, np.random.default_rng(2))
        with_constants = np.column_stack([rows, np.zeros(1000, bool), np.ones(1000, bool)])
        assert judged(with_constants).verdict == "fits"

    def test_the_same_table_gives_the_same_diagnosis(self):
        assert judged(self.DATA) == judged(self.DATA)

    def test_it_is_plain_json_and_plain_english(self):
        diagnosis = judged(self.DATA)
        told = diagnosis.as_dict()
        assert json.loads(json.dumps(told, allow_nan=False)) == told
        assert diagnosis.sentences()[0] == "fits: the rows look as the model expects"
        assert "2000 rows of 3 sensors, 4 distinct" in diagnosis.sentences()


class TestNextSteps:
    """Every kind of trouble comes with what to do about it, and with what is most wrong."""

    def test_a_model_that_fits_needs_none(self):
        fine = judged(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).sample(2000, np.random.default_rng(0)))
        assert (fine.verdict, fine.worst(), fine.next_steps()) == ("fits", None, [])

    def test_columns_that_exclude_each_other_are_named(self):
        found = judged([[1, 0, 0], [0, 1, 0], [0, 1, 1]] * 40, sensors=["day", "night", "owl"])
        [step] = [step for step in found.next_steps() if "day and night exclude each other" in step]
        assert "--drop" in step
        assert found.as_dict()["next"] == found.next_steps()

    def test_rows_that_were_left_out_are_asked_for(self):
        rows = OrMixture(np.eye(5), np.full(5, 0.3)).sample(4000, np.random.default_rng(1))
        model = OrMixture(np.eye(5), np.full(5, 0.3))
        busy = PatternCounts.of(rows[rows.any(axis=1)])
        steps = Diagnosis.of(busy, Fit(model)).next_steps()
        assert "add the rows in which nothing was on" in steps[0]  # before columns that only seem to exclude each other
        assert "rows in which nothing was on were left out" in Diagnosis.of(busy).next_steps()[0]

    def test_edges_that_fail_are_to_be_learned_as_such(self):
        subsets = np.array([[s >> i & 1 for s in range(1, 16)] for i in range(4)])
        model = OrMixture(subsets, np.full(15, 0.1))
        steps = Diagnosis.of(PatternCounts.of(model.sample(3000, np.random.default_rng(2))), Fit(model)).next_steps()
        assert any("--edges lossy" in step for step in steps)

    def test_too_few_rows_say_how_many_would_do(self):
        found = judged(OrMixture([[1, 1], [1, 1], [0, 1]], [0.2, 0.3]).sample(25, np.random.default_rng(3)))
        assert found.verdict == "too few rows"
        assert found.next_steps()[0].startswith("watch for longer: some ")

    def test_the_worst_pattern_is_named_with_its_counts(self):
        rng = np.random.default_rng(4)
        model = OrMixture(np.eye(3), [0.2, 0.3, 0.4], sensors=["a", "b", "c"])
        rows = np.vstack([model.sample(1000, rng), np.tile([1, 1, 1], (300, 1))])
        found = Diagnosis.of(PatternCounts.of(rows, sensors=["a", "b", "c"]), Fit(model))
        assert found.verdict == "misfit"
        assert found.worst().startswith("a, b, c alone (3")


class TestNothingToLearn:
    """Degenerate tables get honest answers: never "fits"."""

    def test_independent_columns_hardly_ever_fit(self):
        """That a pair depends on each other is tested at 0.3 % for all pairs; four standard errors above that.

        In 21 tables that allows one, where chance alone brings two in 0.2 % of cases.
        """
        tables = [np.random.default_rng([seed, 5]).random((400, 5)) < (0.05, 0.5, 0.7)[seed % 3] for seed in range(21)]
        n_fits = sum(judged(rows).verdict == "fits" for rows in tables)
        assert n_fits <= 0.003 * len(tables) + 4 * np.sqrt(0.003 * len(tables))

    @pytest.mark.parametrize(
        "rows",
        [np.ones((50, 4)), np.zeros((50, 4)), [[1, 0, 1]], [[0, 0, 0]], np.full((30, 4), np.nan), [[1]], [[0], [1]]],
        ids=["ones", "zeros", "one row", "one quiet row", "missing", "one cell", "one column"],
    )
    def test_a_degenerate_table_never_fits(self, rows):
        assert judged(rows).verdict in ("doubtful", "too few rows")


class TestKnownTables:
    @pytest.mark.parametrize("name", ["abilene", "geant2009"])
    def test_bundled_networks_fit(self, name):
        assert judged(example(name).table_path).verdict == "fits"

    def test_nothing_speaks_against_the_widest_network(self):
        data = PatternCounts.of(example("btnorthamerica").table_path)
        assert Diagnosis.of(data).verdict == "open"
        found = FindBICA(min_probability=0.005).fit(data, np.random.default_rng(0))
        diagnosis = Diagnosis.of(data, found)
        assert diagnosis.verdict != "misfit"
        assert not diagnosis.fit.patterns_checked

    def test_the_zoo_is_a_misfit(self, shared_data):
        data = PatternCounts.of(shared_data / "zoo" / "X.csv")
        assert Diagnosis.of(data).verdict == "misfit"
        assert judged(data, FindBICA()).verdict == "misfit"
        assert ("eggs", "milk") in [pair.sensors for pair in Diagnosis.of(data).table.negative_pairs]


class TestRowsInTime:
    """Rows that depend on each other count for fewer; how many fewer follows from how long sources stay on."""

    TRUTH = OrMixture([[1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0]], [0.2, 0.15, 0.25])

    def fitted(self, activity, **diagnostics):
        model = self.TRUTH.pick([0, 1, 2])
        counts = PatternCounts.of(model.observe(activity))
        return Diagnosis.of(counts, Fit(model.with_noise(Noise.flips(1e-6)), method="given", diagnostics=diagnostics))

    def test_a_true_model_of_persistent_sources_fits(self):
        stays = {"persistence": [20.0] * 3}
        verdicts = [
            self.fitted(markov_activity(self.TRUTH.probability, 20, 4000, np.random.default_rng(seed)), **stays).verdict
            for seed in range(10)
        ]
        assert verdicts == ["fits"] * 10

    def test_without_the_stays_the_same_rows_refute_it(self):
        verdicts = {
            self.fitted(markov_activity(self.TRUTH.probability, 20, 4000, np.random.default_rng(seed))).verdict
            for seed in range(10)
        }
        assert "misfit" in verdicts

    def test_sources_that_depend_on_each_other_are_refuted_in_time_too(self):
        activity = markov_activity(self.TRUTH.probability, 5, 20_000, np.random.default_rng(0))
        activity[:, 2] &= ~activity[:, 0]  # never on together
        assert self.fitted(activity, persistence=[5.0] * 3).verdict == "misfit"

    def test_independent_rows_count_as_they_are(self):
        probability = self.TRUTH.probability
        fit = Fit(self.TRUTH, diagnostics={"persistence": (1 / (1 - probability)).tolist()})
        np.testing.assert_allclose(stretch_of(fit), 1.0)

    def test_the_bound_holds_for_what_sensors_show(self):
        """The variance of a sensor's share of ones, over many tables, is at most its stretch times that of new rows."""
        stay, n_slots = 8, 400
        fit = Fit(self.TRUTH, diagnostics={"persistence": [float(stay)] * 3})
        rng = np.random.default_rng(1)
        shares = [
            self.TRUTH.observe(markov_activity(self.TRUTH.probability, stay, n_slots, rng)).mean(axis=0)
            for _ in range(600)
        ]
        on = np.mean(shares, axis=0)
        ratio = np.var(shares, axis=0) / (on * (1 - on) / n_slots)
        assert (ratio > 2).all()  # the rows do depend on each other
        assert (ratio < stretch_of(fit) * (1 + 4 * np.sqrt(2 / 600))).all()  # four standard errors of a variance


class TestHints:
    """Tables for which OR is the wrong tool: each kind is named in nine of ten tables at least, and no true mixture."""

    def kinds(self, rows):
        return [hint.kind for hint in hints(PatternCounts.of(rows))]

    def named(self, drawn, kind):
        return sum(self.kinds(drawn(np.random.default_rng(seed))) == [kind] for seed in range(10))

    def test_roles_that_are_given_out_together(self):
        def drawn(rng):
            roles = random_network(30, 12, column_weight=(3, 8), rng=rng)
            jobs = np.array([np.isin(np.arange(12), rng.choice(12, 2, replace=False)) for _ in range(8)])
            return roles.observe(jobs[rng.integers(0, 8, 300)])

        assert self.named(drawn, "roles") >= 9
        (hint,) = hints(PatternCounts.of(drawn(np.random.default_rng(0))))
        assert hint.method == "grecond"

    def test_one_ability_and_questions_of_rising_difficulty(self):
        def drawn(rng):
            beyond = rng.normal(size=(1000, 1)) - np.linspace(-1.5, 1.5, 10)
            return rng.random(beyond.shape) < 1 / (1 + np.exp(-1.8 * beyond))

        assert self.named(drawn, "graded") >= 9

    @pytest.mark.parametrize("often", [0.2, 0.5])
    def test_sources_that_cancel(self, often):
        def drawn(rng):
            mixing = random_network(12, 7, rng=rng).mixing
            return (rng.random((2000, 7)) < often) @ mixing.T.astype(int) % 2 == 1

        assert self.named(drawn, "xor") >= 9

    @pytest.mark.parametrize("n_sensors", [6, 8, 12])
    def test_as_many_cancelling_sources_as_sensors(self, n_sensors):
        def drawn(rng):
            setting = Setting(network=f"xor {n_sensors}", n_samples=2000, flip_rate=0.0)
            return setting.draw(int(rng.integers(1 << 30))).rows

        assert self.named(drawn, "xor") >= 9

    def test_ors_that_merely_exclude_each_other_are_no_parities(self):
        """Jobs of few roles contradict ORs of independent sources, but no independent parities make them either."""

        def drawn(rng):
            jobs = random_network(10, 8, column_weight=(2, 4), rng=rng).mixing.T
            extra = rng.random((600, 10)) < 0.05
            return jobs[rng.integers(0, 8, 600)] | extra

        assert self.named(drawn, "xor") == 0

    def test_values_of_one_variable(self):
        def drawn(rng):
            others = random_network(6, 5, rng=rng).sample(500, rng)
            return np.column_stack([rng.integers(0, 5, (500, 1)) == np.arange(4), others])

        assert self.named(drawn, "exclusive") >= 9

    def test_steps_of_a_count(self):
        def drawn(rng):
            return np.column_stack([rng.poisson(3, (500, 1)) >= np.arange(1, 6) for _ in range(2)])

        assert self.named(drawn, "counts") >= 9

    @pytest.mark.parametrize("flip_rate", [0.0, 0.05])
    def test_true_mixtures_get_none(self, flip_rate):
        """At 1 %, a hundred tables get one; four standard deviations of a binomial count on top."""
        n_false = 0
        for seed in range(100):
            rng = np.random.default_rng(seed)
            truth = random_network(5 + seed % 16, 4 + seed % 9, noise=Noise.flips(flip_rate), rng=rng)
            n_false += len(self.kinds(truth.sample(int(rng.choice([100, 1000])), rng)))
        assert n_false <= 4

    def test_models_that_mix_otherwise_are_not_judged_as_ors(self):
        rows = Setting(network="xor 6", n_samples=500, flip_rate=0.0).draw(0).rows
        data = PatternCounts.of(rows)
        diagnosis = Diagnosis.of(data, method_named("xor").fit(data, np.random.default_rng(0)))
        assert diagnosis.verdict == "doubtful"
        assert diagnosis.reasons == ("sources are mixed by XOR; tests of fit are for ORs only",)
        assert diagnosis.as_dict()["next"] == []

    def test_short_and_wide_tables_get_none(self):
        assert self.kinds(np.eye(10)) == []
        assert self.kinds(np.zeros((100, 3))) == []
        assert self.kinds(np.random.default_rng(0).random((60, 300)) < 0.5) == []
