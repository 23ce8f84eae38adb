"""The learner: every kind of noise, floors, limits, constant sensors, the same answer every time."""

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, DataError, LimitError, SettingError
from bica.estimate import likelihood
from bica.estimate.likelihood import Likelihood
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network

CHAIN = np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]])
CHANCES = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
SENSORS = tuple("abcdef")


def chain(noise=None):
    """Five sources in a row, each shared by two neighbours of six sensors."""
    return OrMixture(CHAIN, CHANCES, noise, sensors=SENSORS)


def drawn(truth, n_samples, seed=0):
    return PatternCounts.of(truth.sample(n_samples, np.random.default_rng(seed)), sensors=truth.sensors)


def learned(data, **settings):
    return Likelihood(**settings).fit(data, np.random.default_rng(0))


def columns(model):
    return {tuple(column) for column in model.mixing.T.tolist()}


def assert_recovered(fit, truth):
    """The same sources, every probability within four of its own standard errors."""
    assert columns(fit.model) == columns(truth)
    assert (np.abs(fit.model.probability - truth.probability) < 4 * fit.probability_error).all()
    assert (fit.probability_error < 0.03).all()


class TestNoise:
    UNEVEN = Noise([0.02, 0.05, 0.1, 0.01, 0.05, 0.02], [0.1, 0.02, 0.05, 0.15, 0.05, 0.1])

    TANGLE = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 1, 1]])

    @pytest.mark.parametrize("rate", [0.0, 0.03, 0.097])
    @pytest.mark.parametrize("seed", range(3))
    def test_one_unknown_flip_rate(self, rate, seed):
        truth = chain(Noise.flips(rate))
        fit = learned(drawn(truth, 4000, seed))
        assert_recovered(fit, truth)
        noise = fit.diagnostics["noise"]
        assert abs(noise["flip_rate"] - rate) < 4 * noise["error"] + 1e-4
        assert noise["interval"][0] <= noise["flip_rate"] <= noise["interval"][1]
        assert fit.model.noise == Noise.flips(noise["flip_rate"])

    @pytest.mark.parametrize("noise", [Noise(), Noise.flips(0.05), Noise(0.02, 0.1), UNEVEN], ids=str)
    @pytest.mark.parametrize("seed", range(2))
    def test_known_noise(self, noise, seed):
        fit = learned(drawn(chain(noise), 4000, seed), noise=noise)
        assert_recovered(fit, chain(noise))
        assert fit.model.noise == noise
        assert fit.diagnostics["noise"] == {"estimated": False}
        assert fit.log_likelihood == pytest.approx(fit.model.log_likelihood(drawn(chain(noise), 4000, seed)))

    def test_known_noise_explains_what_looks_like_sources(self):
        """False alarms of one sensor look like a source of its own, unless they are known."""
        noise = Noise([0.2, 0, 0, 0, 0, 0], 0.0)
        data = drawn(chain(noise), 4000)
        assert (True, False, False, False, False, False) in columns(learned(data).model)
        assert_recovered(learned(data, noise=noise), chain(noise))

    def test_a_rate_for_every_sensor(self):
        rates = np.array([0.02, 0.1, 0.04, 0.12, 0.03, 0.08])
        truth = OrMixture(self.TANGLE, [0.3, 0.25, 0.2, 0.15], Noise(rates, rates))
        fit = learned(drawn(truth, 20_000), noise="per-sensor")
        assert_recovered(fit, truth)
        # a false alarm shows where no source of a sensor is on, in half of the rows and more
        np.testing.assert_allclose(fit.model.noise.false_alarm, rates, atol=4 * np.sqrt(0.12 / 10_000))
        # a miss shows where a source of three sensors is on, one row in seven: 4 sqrt(0.1 / (20000 / 7)) = 0.024
        np.testing.assert_allclose(fit.model.noise.miss, rates, atol=0.024)

    def test_a_sensor_that_shares_no_source_hides_its_noise(self):
        mixing = np.pad(self.TANGLE, [(0, 1), (0, 1)])
        mixing[6, 4] = True
        truth = OrMixture(mixing, [0.3, 0.25, 0.2, 0.15, 0.2], Noise.flips(0.05), sensors=[*SENSORS, "alone"])
        with pytest.warns(BicaWarning, match="leave the error rates of 'alone' open, since"):
            learned(drawn(truth, 20_000), noise="per-sensor")

    def test_one_sensor_hides_its_noise(self):
        data = PatternCounts.of([[0], [1], [1]], sensors=["only"])
        with pytest.warns(BicaWarning, match="'only'"):
            assert learned(data, noise="per-sensor").model.n_sources == 1

    def test_noisy_rows_are_not_all_explained_by_sources(self):
        """A start near no noise gets stuck: every odd row becomes a source of its own, dozens of them."""
        for seed in range(3):
            truth = chain(Noise.flips(0.1))
            fit = learned(drawn(truth, 1000, seed))
            assert fit.model.n_sources <= 7
            assert 0.07 < fit.model.noise.miss < 0.13  # 4 sqrt(0.1 / 6000) = 0.016, and some slack for a wrong source


class TestNoNoise:
    @pytest.mark.parametrize("seed", range(5))
    def test_every_row_is_explained(self, seed):
        """Also rows that no OR mixture of few sources would show."""
        rows = np.random.default_rng(seed).random((60, 6)) < 0.3
        fit = learned(PatternCounts.of(rows), noise=Noise())
        assert np.isfinite(fit.log_likelihood)
        assert fit.log_likelihood == pytest.approx(fit.model.log_likelihood(rows))

    def test_a_rule_that_forbids_a_row_is_told(self):
        data = PatternCounts.of([[0, 0], [1, 0], [1, 1]], sensors=["a", "b"])
        with pytest.raises(DataError, match="without noise, the sources that are allowed cannot explain every row"):
            learned(data, noise=Noise(), forbidden=["a"])

    def test_the_floor_counts_more_than_rare_rows(self):
        rows = np.array([[0, 0]] * 60 + [[1, 1]] * 39 + [[1, 0]])
        fit = learned(PatternCounts.of(rows), noise=Noise(), min_probability=0.1)
        assert fit.model.mixing.tolist() == [[True], [True]]
        assert fit.log_likelihood == -np.inf


@pytest.mark.parametrize("floor", [0.12, 0.18, 0.9])
def test_min_probability_is_a_floor(floor):
    fit = learned(drawn(chain(), 4000), min_probability=floor)
    assert (fit.model.probability >= floor).all()
    assert columns(fit.model) <= columns(chain())
    assert fit.model.n_sources >= np.sum(floor + 0.02 < CHANCES)
    assert np.isfinite(fit.log_likelihood)


class TestTheSameAnswer:
    ROWS = chain(Noise.flips(0.08)).sample(800, np.random.default_rng(3))

    @pytest.mark.parametrize("noise", ["estimate", Noise(), Noise.flips(0.1)], ids=str)
    def test_row_order_and_repetition_change_no_byte(self, noise):
        documents = []
        for seed in range(3):
            shuffled = self.ROWS[np.random.default_rng(seed).permutation(len(self.ROWS))]
            documents.append(learned(PatternCounts.of(shuffled), noise=noise).document())
        assert documents[0] == documents[1] == documents[2]

    def test_chance_plays_no_part(self):
        data = PatternCounts.of(self.ROWS)
        first, second = (Likelihood().fit(data, np.random.default_rng(seed)) for seed in (1, 2))
        assert first.document() == second.document()


class TestConstantSensors:
    def test_they_have_their_own_source_or_none(self):
        rows = chain().sample(3000, np.random.default_rng(1))
        wide = np.column_stack([np.ones(3000), rows, np.zeros(3000)])
        fit = learned(PatternCounts.of(wide, sensors=["on", *SENSORS, "off"]))
        always = fit.model.mixing[0]
        assert fit.model.probability[always].tolist() == [1.0]
        assert fit.model.mixing[:, always].sum() == 1
        assert not fit.model.mixing[-1].any()
        assert columns(fit.model.pick(np.flatnonzero(~always)).of_sensors(range(1, 7))) == columns(chain())

    @pytest.mark.parametrize("noise", ["estimate", Noise.flips(0.1), Noise()], ids=str)
    def test_nothing_varies(self, noise):
        fit = learned(PatternCounts.of([[0, 1]] * 5), noise=noise)
        assert fit.model.mixing.tolist() == [[False], [True]]
        assert fit.model.probability.tolist() == [1.0]


class TestLimits:
    @pytest.mark.parametrize(
        ("n_sensors", "settings", "way"),
        [
            (1, {}, "lattice"),
            (16, {"edges": "sure"}, "lattice"),
            (17, {}, "blocks"),
            (21, {}, "blocks"),
            (17, {"prior": (2, 5)}, "lattice"),
        ],
    )
    def test_more_sensors_than_are_learned_at_once_are_learned_from_blocks(self, n_sensors, settings, way, monkeypatch):
        """A prior is for the lattice alone."""
        monkeypatch.setattr(likelihood, "fit_on_lattice", lambda *_, **__: Fit(chain(), method="lattice"))
        rows = np.column_stack([np.eye(n_sensors + 1, n_sensors), np.ones((n_sensors + 1, 2))])  # two do not vary
        found = learned(PatternCounts.of(rows), **settings)
        assert found.method == ("lattice" if way == "lattice" else "likelihood")

    def test_seventeen_crowded_sensors_are_found(self):
        """Blocks contradict each other, and the rows have too many hidden states for lists of them."""
        rng = np.random.default_rng(3)
        truth = random_network(17, 12, column_weight=(2, 5), probability=(0.1, 0.4), noise=Noise.flips(0.05), rng=rng)
        fit = learned(PatternCounts.of(truth.sample(4000, rng)))
        assert columns(fit.model) == columns(truth)
        assert fit.converged

    @pytest.mark.parametrize(
        ("n_sensors", "limit", "settings"), [(21, 20, {"prior": (2, 5)}), (65, 64, {"noise": "per-sensor"})], ids=str
    )
    def test_beyond_their_sizes_some_settings_are_refused(self, n_sensors, limit, settings):
        with pytest.raises(LimitError, match=rf"^{n_sensors} sensors vary, more than {limit}, so [^.]*; [^.]*$"):
            learned(PatternCounts.of(np.eye(n_sensors + 1, n_sensors)), **settings)

    def test_twenty_one_sensors_of_which_twenty_vary_are_not_too_many(self):
        rows = np.zeros((21, 21))
        rows[np.arange(20), np.arange(20)] = 1
        assert learned(PatternCounts.of(rows), noise=Noise.flips(0.1)).model.n_sensors == 21

    def test_more_sensors_than_bits_of_a_word_are_learned_from_blocks(self):
        truth = OrMixture(np.repeat(np.eye(35), 2, axis=0), np.full(35, 0.2))  # 70 sensors, also beyond the 64th
        assert_recovered(learned(drawn(truth, 1000)), truth)

    def test_gaps_that_can_be_filled_in_too_many_ways(self):
        rng = np.random.default_rng(0)
        rows = (rng.random((2000, 20)) < 0.5).astype(float)
        rows[rng.permuted(np.tile(np.arange(20) < 18, (2000, 1)), axis=1)] = np.nan
        with pytest.raises(
            LimitError, match=r"^the missing cells .* ways, more than the limit of 6\.7e\+07; drop [^.]*$"
        ):
            learned(PatternCounts.of(rows), prior=(1, 1))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"min_probability": 1.0}, "min_probability must lie in"),
        ({"prior": (0.5, 2)}, "a Beta prior is two numbers of at least 1"),
        ({"prior": (2,)}, "a Beta prior is two numbers"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, complaint):
    with pytest.raises(SettingError, match=complaint):
        Likelihood(**settings)


class TestSearch:
    """Traps that were met, each with the data that showed it."""

    PAIRS = OrMixture(np.kron(np.eye(3), [[1], [1]]), [0.3, 0.3, 0.3], Noise.flips(0.1))

    @pytest.mark.parametrize("seed", [2, 5, 11])
    def test_it_goes_on_where_one_source_alone_does_not_pay(self, seed):
        """With few rows, high noise explains all of them until most sources are there."""
        assert columns(learned(drawn(self.PAIRS, 60, seed)).model) >= columns(self.PAIRS)

    def test_a_source_that_only_its_prior_holds_is_dropped(self):
        truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.4, 0.4], Noise.flips(0.05))
        assert columns(learned(drawn(truth, 200), prior=(40, 60)).model) == columns(truth)


def tangled(n_sensors, n_sources, probability, seed):
    """A random network whose first two sources have the given probability."""
    rng = np.random.default_rng(seed)
    mixing = np.zeros((n_sensors, n_sources), bool)
    for source in range(n_sources):
        mixing[rng.choice(n_sensors, rng.integers(1, 5), replace=False), source] = True
    chances = rng.uniform(0.05, 0.3, n_sources)
    chances[:2] = probability
    return OrMixture(mixing, chances, Noise.flips(0.01))


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.97, 0.99, 0.999])
@pytest.mark.parametrize("seed", [201, 202])
def test_sources_that_are_nearly_always_on_do_not_mislead(probability, seed):
    """The true sources score at most as much more as they cost: half a log of the rows, and their choice."""
    truth = tangled(10, 10, probability, seed)
    data = drawn(truth, 4000, seed)
    most = sum(0.5 * np.log(4000) + np.log(252) for _ in range(10))
    assert learned(data, noise="estimate").log_likelihood > truth.log_likelihood(data) - most


@pytest.mark.slow
@pytest.mark.parametrize(("n_sensors", "n_sources"), [(9, 9), (20, 15), (26, 18)])
def test_the_order_of_the_columns_changes_nothing_but_rounding(n_sensors, n_sources):
    truth = tangled(n_sensors, n_sources, 0.2, 7)
    rows = truth.sample(600, np.random.default_rng(7))
    order = np.random.default_rng(8).permutation(n_sensors)
    straight = learned(PatternCounts.of(rows)).model
    shuffled = learned(PatternCounts.of(rows[:, order])).model
    found = {tuple(column): p for column, p in zip(straight.mixing.T.tolist(), straight.probability, strict=True)}
    back = np.empty_like(shuffled.mixing)
    back[order] = shuffled.mixing
    assert {
        tuple(column): pytest.approx(p, abs=1e-9)
        for column, p in zip(back.T.tolist(), shuffled.probability, strict=True)
    } == found


def test_many_distinct_rows_of_agreeing_blocks_go_to_the_lattice(monkeypatch):
    rng = np.random.default_rng(0)
    truth = random_network(17, 12, probability=(0.02, 0.1), noise=Noise.flips(0.01), rng=rng)
    data = PatternCounts.of(truth.sample(20_000, rng))
    listed = Likelihood(n_jobs=1).fit(data, np.random.default_rng(0)).model
    monkeypatch.setattr("bica.estimate.likelihood.MANY_ROWS", 0.0)
    monkeypatch.setattr("bica.estimate.likelihood.fit_on_rows", lambda *_, **__: pytest.fail("lists were made"))
    found = Likelihood(n_jobs=1).fit(data, np.random.default_rng(0)).model
    assert np.array_equal(found.mixing, listed.mixing)
    assert np.allclose(found.probability, listed.probability, atol=1e-4)
