"""Tables of more sensors than a lattice has room for: the learner's promises hold there too, or are refused."""

from functools import cache

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, ModelError, SettingError
from bica.estimate.blocks.learn import WideTask
from bica.estimate.likelihood import Likelihood, fit_on_lattice
from bica.estimate.settings import Varying
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import listening
from tests.estimate.networks import by_column, columns_of, drawn, network, rows_of

TRUTH = network(7)
ROWS = rows_of(TRUTH)
DATA = PatternCounts.of(ROWS, sensors=TRUTH.sensors)
PAIR = min((column for column in columns_of(TRUTH) if len(column) == 2), key=sorted)
CHANCE = by_column(TRUTH, TRUTH.probability)
FLIPS = Noise.flips(0.02)


def learned(data, **settings):
    return Likelihood(n_jobs=1, **settings).fit(data, np.random.default_rng(0))


@cache
def usual():
    return learned(DATA)


def found_in(fit, column):
    """Probability and error of a source."""
    return by_column(fit.model, fit.model.probability)[column], by_column(fit.model, fit.probability_error)[column]


def assert_recovered(fit, truth):
    """The same sources, each probability within five of its errors: 20 of them, 1e-5 by chance."""
    assert columns_of(fit.model) == columns_of(truth)
    for column, chance in by_column(truth, truth.probability).items():
        probability, error = found_in(fit, column)
        assert abs(probability - chance) < 5 * error
        assert error < 0.02


class TestNoise:
    """Tables of 2000 to 3000 rows with little noise: errors of every kind multiply the states behind a row."""

    @pytest.mark.parametrize("flip_rate", [0.0, 0.02, 0.05])
    def test_one_unknown_flip_rate(self, flip_rate):
        truth = network(7, flip_rate=flip_rate)
        fit = learned(drawn(truth, 3000))
        assert_recovered(fit, truth)
        assert fit.converged
        noise = fit.diagnostics["noise"]
        assert abs(noise["flip_rate"] - flip_rate) < 5 * noise["error"] + 1e-6
        assert noise["interval"][0] <= noise["flip_rate"] <= noise["interval"][1]
        assert fit.model.noise == Noise.flips(noise["flip_rate"])

    @pytest.mark.parametrize(
        "noise",
        [Noise(), Noise.flips(0.02), Noise(0.005, 0.04), Noise(np.linspace(0, 0.02, 24), np.linspace(0.04, 0, 24))],
        ids=["none", "flips", "uneven", "own"],
    )
    def test_known_noise(self, noise):
        truth = OrMixture(TRUTH.mixing, TRUTH.probability, noise, sensors=TRUTH.sensors)
        fit = learned(drawn(truth, 2000), noise=noise)
        assert_recovered(fit, truth)
        assert fit.model.noise == noise
        assert fit.diagnostics["noise"] == {"estimated": False}

    def test_rates_of_single_sensors_follow_them_past_constant_ones(self):
        """Two sensors that never change stand in front."""
        rates = np.concatenate([[0.3, 0.3], np.linspace(0, 0.04, 24)])
        truth = OrMixture(TRUTH.mixing, TRUTH.probability, Noise(rates[2:], rates[2:]), sensors=TRUTH.sensors)
        rows = np.column_stack([np.zeros(2000), np.ones(2000), rows_of(truth, 2000)])
        fit = learned(PatternCounts.of(rows, sensors=["off", "on", *TRUTH.sensors]), noise=Noise(rates, rates))
        assert columns_of(fit.model) == columns_of(truth) | {frozenset(["on"])}
        assert fit.model.noise == Noise(rates, rates)

    def test_rates_for_other_sensors_are_refused(self):
        with pytest.raises(ModelError, match="noise gives 3 false_alarm rates for 24 sensors"):
            learned(DATA, noise=Noise([0.1, 0.1, 0.1], 0.0))


class TestKnownSources:
    def test_a_given_probability_stays(self):
        fit = learned(DATA, known=[(PAIR, CHANCE[PAIR], "pair")])
        assert_recovered_but(fit, PAIR)
        assert found_in(fit, PAIR) == (pytest.approx(CHANCE[PAIR], rel=1e-12), 0.0)
        assert [name for name in fit.model.names if name] == ["pair"]

    @pytest.mark.parametrize("wrong", [0.01, 0.3])
    def test_also_where_the_rows_speak_against_it(self, wrong):
        """And no second source of the same sensors makes up for it, though others may."""
        fit = learned(PatternCounts.of(ROWS[:1500], sensors=TRUTH.sensors), known=[(PAIR, wrong)])
        assert found_in(fit, PAIR) == (pytest.approx(wrong, rel=1e-12), 0.0)
        assert len(columns_of(fit.model)) == fit.model.n_sources

    def test_an_unknown_probability_is_estimated(self):
        wide = max(columns_of(TRUTH), key=len)
        fit = learned(DATA, known=[(wide, None, "wide"), (PAIR,)])
        assert_recovered(fit, TRUTH)
        for column in (wide, PAIR):  # they are found anyway, so knowing them changes little
            probability, error = found_in(usual(), column)
            assert abs(probability - found_in(fit, column)[0]) < 0.2 * error

    def test_a_source_that_is_not_there_stays_and_is_rare(self):
        absent = frozenset(["s0", "s5", "s11", "s13"])
        assert absent not in columns_of(TRUTH)
        fit = learned(DATA, known=[(absent,)])
        assert columns_of(fit.model) == columns_of(TRUTH) | {absent}
        probability, error = found_in(fit, absent)
        assert probability < 4 * max(error, 1 / 8000)

    def test_one_that_no_block_holds_is_estimated_or_has_no_error(self):
        """An error of 0 would say that its probability was given."""
        wide = frozenset(TRUTH.sensors[:16])
        probability, error = found_in(learned(DATA, known=[(wide,)]), wide)
        assert np.isnan(error) or probability < 4 * max(error, 1 / 8000)

    def test_two_that_differ_in_a_constant_sensor_only_are_refused(self):
        data = PatternCounts.of(np.column_stack([ROWS, np.ones(len(ROWS))]), sensors=[*TRUTH.sensors, "on"])
        with pytest.raises(SettingError, match=r"^two known sources reach s0, on and .*; give one of them$"):
            learned(data, known=[(["s0"], 0.1), (["s0", "on"], 0.1)])


def assert_recovered_but(fit, column):
    assert columns_of(fit.model) == columns_of(TRUTH)
    assert all(abs(found_in(fit, c)[0] - CHANCE[c]) < 5 * found_in(fit, c)[1] for c in CHANCE if c != column)


def test_forbidden_sets_are_in_no_source():
    sensor = min(set.union(*map(set, columns_of(TRUTH))) - PAIR)
    fit = learned(DATA, forbidden=[tuple(PAIR), sensor])
    assert not any(column >= PAIR or sensor in column for column in columns_of(fit.model))
    assert all(any(column >= set(some) for column in columns_of(usual().model)) for some in (PAIR, [sensor]))


@pytest.mark.parametrize("floor", [0.06, 0.1])
def test_min_probability_is_a_floor(floor):
    fit = learned(DATA, min_probability=floor)
    assert (fit.model.probability >= floor).all()
    assert columns_of(fit.model) == {c for c in CHANCE if found_in(usual(), c)[0] >= floor}


class TestMissingCells:
    """A fifth of the cells is removed, each on its own."""

    def gaps(self, seed):
        rows = rows_of(TRUTH, 1000, seed)
        return np.where(np.random.default_rng([seed, 1]).random(rows.shape) < 0.2, np.nan, rows)

    def strayed(self, fit):
        """How far the probabilities are from the truth, in standard errors, where the sources are found."""
        found, errors = by_column(fit.model, fit.model.probability), by_column(fit.model, fit.probability_error)
        return [(found[c] - CHANCE[c]) / errors[c] for c in CHANCE if c in found]

    def test_they_bias_nothing(self):
        fits = [learned(PatternCounts.of(self.gaps(seed), sensors=TRUTH.sensors), noise=FLIPS) for seed in range(3)]
        distances = np.array([distance for fit in fits for distance in self.strayed(fit)])
        assert distances.size > 0.95 * 3 * TRUTH.n_sources
        assert abs(distances.mean()) < 4 / np.sqrt(distances.size)

    def test_zeros_in_their_place_would(self):
        """By the blocks alone: a search on all sensors takes a minute to make sources of all those zeros."""
        data = PatternCounts.of(np.nan_to_num(self.gaps(0)), sensors=TRUTH.sensors)
        task = WideTask.of(Varying.of(data, (), ()), Likelihood(noise=FLIPS, n_jobs=1))
        assert np.mean(self.strayed(task.result(task.learn(np.random.default_rng(0))))) < -1

    def test_a_row_of_gaps_tells_nothing(self):
        rows = ROWS[:2000].astype(float)
        one, other = (learned(PatternCounts.of(table)) for table in (rows, np.vstack([rows, np.full((1, 24), np.nan)])))
        assert columns_of(one.model) == columns_of(other.model)
        np.testing.assert_allclose(one.model.probability, other.model.probability, atol=1e-4)


class TestHubs:
    """One sensor that shares a source with each of 16 pairs: more sources than a block has room for."""

    PAIRS = np.vstack([np.ones((1, 16)), np.kron(np.eye(16), np.ones((2, 1)))])

    @pytest.mark.parametrize("lone", [0.0, 0.06])
    def test_its_own_source_is_told_from_the_others(self, lone):
        mixing = np.column_stack([self.PAIRS, np.eye(33)[0]])
        truth = OrMixture(mixing, [0.03] * 16 + [lone], Noise.flips(0.02)).pick(range(16 + (lone > 0)))
        fit = learned(drawn(truth, 20_000))
        assert columns_of(fit.model) == columns_of(truth)
        # the hub is quiet six times in ten: its own source shows there, and the flips and the others with it
        assert lone == 0 or abs(found_in(fit, frozenset([truth.sensors[0]]))[0] - lone) < 5 * np.sqrt(
            0.4 / 0.6 / 20_000
        )

    def test_also_beside_known_sources(self):
        truth = OrMixture(self.PAIRS, [0.03] * 16, Noise.flips(0.02))
        names = truth.sensors
        known = [([names[0], names[1], names[2]],), ([names[0], names[31], names[32]], 0.03)]
        fit = learned(drawn(truth, 20_000), known=known)
        assert columns_of(fit.model) == columns_of(truth)
        assert found_in(fit, frozenset(known[1][0])) == (pytest.approx(0.03, rel=1e-12), 0.0)


class TestOddTables:
    def test_constant_sensors_have_their_own_source_or_none(self):
        rows = np.column_stack([np.ones(8000), ROWS, np.zeros(8000)])
        fit = learned(PatternCounts.of(rows, sensors=["on", *TRUTH.sensors, "off"]))
        assert columns_of(fit.model) == columns_of(TRUTH) | {frozenset(["on"])}
        probability, error = found_in(fit, frozenset(["on"]))
        assert probability == 1.0
        assert np.isnan(error)  # rows in which it never changed tell none

    def test_sensors_that_show_the_same_share_all_sources(self):
        """Without noise: a copy of a sensor joins every source of it."""
        truth = network(7, flip_rate=0.0)
        rows = rows_of(truth)
        copies = [3, 8, 15]
        fit = learned(PatternCounts.of(np.column_stack([rows, rows[:, copies]])))
        joined = np.vstack([truth.mixing, truth.mixing[copies]])
        assert set(map(tuple, fit.model.mixing.T.tolist())) == set(map(tuple, joined.T.tolist()))

    def test_unrelated_sensors_keep_their_frequencies(self):
        """No links at all. What a lone source must gain leaves sqrt(2 x 5.3) = 3.3 deviations to the noise."""
        rng = np.random.default_rng(0)
        rows = rng.random((2000, 30)) < np.linspace(0.02, 0.4, 30)
        model = learned(PatternCounts.of(rows)).model
        assert (model.mixing.sum(axis=0) == 1).all()
        quiet = np.prod(np.where(model.mixing, 1 - model.probability, 1.0), axis=1)
        flips = model.noise.miss
        shown, frequency = flips + (1 - 2 * flips) * (1 - quiet), rows.mean(axis=0)
        assert (np.abs(shown - frequency) < (3.3 + 1) * np.sqrt(frequency * (1 - frequency) / 2000)).all()

    @pytest.mark.parametrize(("n_samples", "chance"), [(2, 0.5), (3, 0.4), (60, 0.1), (60, 0.5)])
    def test_rows_of_pure_chance_have_hardly_a_source_of_two(self, n_samples, chance):
        """Of all pairs the level leaves one false link in twenty tables."""
        for seed in range(3):
            rows = np.random.default_rng(seed).random((n_samples, 70)) < chance
            assert (rows.any(axis=0) & ~rows.all(axis=0)).sum() > 20
            fit = learned(PatternCounts.of(rows))
            assert fit.model.n_sensors == 70
            assert (fit.model.mixing.sum(axis=0) >= 2).sum() <= 1

    def test_one_row(self):
        fit = learned(PatternCounts.of(np.arange(30)[None] % 2))
        assert fit.model.probability.tolist() == [1.0] * 15


class TestTheSameAnswer:
    def test_row_order_and_chunks_change_no_byte(self):
        whole = usual().document()
        shuffled = ROWS[np.random.default_rng(1).permutation(len(ROWS))]
        assert learned(PatternCounts.of(shuffled, sensors=TRUTH.sensors)).document() == whole
        parts = [PatternCounts.of(part, sensors=TRUTH.sensors) for part in np.array_split(ROWS, 3)]
        assert learned(parts[0] + parts[1] + parts[2]).document() == whole

    def test_column_order_changes_only_roundings_and_starts(self):
        """The flip rate settles within a tenth of its error, and a climb within sqrt(0.001) of an error of the top."""
        order = np.random.default_rng(2).permutation(24)
        moved = PatternCounts.of(ROWS[:, order], sensors=[TRUTH.sensors[i] for i in order])
        one, other = usual(), learned(moved)
        assert columns_of(one.model) == columns_of(other.model)
        for column in columns_of(one.model):
            (here, error), (there, _) = found_in(one, column), found_in(other, column)
            assert abs(here - there) < (0.1 + 2 * np.sqrt(0.001)) * error

    def test_weights_that_are_not_whole(self):
        """All rows count a quarter more: that moves no top of the likelihood, but prices, links and so the blocks.

        A source is then read from another block, whose estimate is as firm but not the same.
        """
        fit = learned(PatternCounts.of(ROWS, sensors=TRUTH.sensors, sample_weight=np.full(len(ROWS), 1.25)))
        assert columns_of(fit.model) == columns_of(usual().model)
        for column in columns_of(fit.model):
            (here, error), (there, _) = found_in(usual(), column), found_in(fit, column)
            assert abs(here - there) < error


class TestInterruption:
    @pytest.mark.parametrize(
        ("what", "after"), [("noise", 1), ("noise", 3), ("sources", 5), ("blocks", 1), ("blocks", 30)]
    )
    def test_the_last_whole_round_is_kept(self, what, after, tmp_path):
        """Also before there is one: then the model has no source."""
        heard = []

        def listener(*told):
            heard.append(told[0].endswith(what))  # a search says before it what it tries
            if sum(heard) >= after:
                raise KeyboardInterrupt

        with listening(listener), pytest.warns(BicaWarning, match="interrupted: this is the best model so far"):
            fit = learned(DATA)
        assert not fit.converged
        assert fit.diagnostics["interrupted"] is True
        fit.save(tmp_path / "m.json")
        assert Fit.load(tmp_path / "m.json").converged is False
        low, high = fit.diagnostics["noise"]["interval"]
        assert 0 <= low <= fit.diagnostics["noise"]["flip_rate"] <= high <= 1

    def test_later_it_holds_the_sources_of_the_round_before(self):
        rounds = []

        def listener(what, done, total):
            if what == "blocks" and done == 0:
                rounds.append(total)
                if len(rounds) == 3:
                    raise KeyboardInterrupt

        with listening(listener), pytest.warns(BicaWarning, match="interrupted"):
            fit = learned(DATA)
        assert not fit.converged
        assert columns_of(fit.model) >= columns_of(TRUTH)


def both_ways(seed, n_samples=10_000):
    """A table of up to 12 sensors, learned from blocks and on the lattice."""
    rng = np.random.default_rng(seed)
    n_sensors = int(rng.integers(4, 13))
    truth = network(seed, n_sensors, int(rng.integers(2, n_sensors + 1)), float(rng.uniform(0, 0.05)), (0.05, 0.3))
    table = Varying.of(drawn(truth, n_samples, seed), (), ())
    settings = Likelihood(n_jobs=1)
    task = WideTask.of(table, settings)
    return task.result(task.learn(np.random.default_rng(0))), fit_on_lattice(table, settings)


@pytest.mark.slow
def test_blocks_find_what_the_lattice_finds():
    """Seeds 1000 to 1059: the same sources in 57, else one more or less, and probabilities within 0.7 of an error."""
    n_same, seeds = 0, range(30)
    for seed in seeds:
        blocks, lattice = both_ways(seed)
        differing = columns_of(blocks.model) ^ columns_of(lattice.model)
        assert len(differing) <= 2
        if not differing:
            n_same += 1
            for column in columns_of(lattice.model):
                (here, error), (there, firm) = found_in(blocks, column), found_in(lattice, column)
                assert abs(here - there) < error
                assert 0.9 < error / firm < 1.5
    # 95 % of 30, less four binomial deviations: 28.5 - 4 x 1.2
    assert n_same >= 24
