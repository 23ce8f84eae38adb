"""Averaging over sets of sources: the walk visits each as often as it is probable, and what is made of the visits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica import BICA, FindBICA, Fit, Likelihood, Noise, OrMixture, PatternCounts
from bica.estimate import averaging
from bica.estimate.averaging import Visits, beliefs_of, distance, edge_support, nearest_to_all, walked
from bica.estimate.likelihood import lattice_task
from bica.estimate.score import RatePrior
from bica.estimate.settings import KnownSource, Varying
from bica.estimate.whole import IN_DOUBT
from bica.simulate import random_network
from tests.reference.slow_averaging import posterior_of_sets

RNG = np.random.default_rng
NONE = np.empty(0, np.int64)
source_sets = st.sets(st.integers(1, 31), max_size=5).map(lambda found: np.array(sorted(found), dtype=np.int64))


def few_rows(seed: int = 3, n_samples: int = 150) -> tuple[OrMixture, PatternCounts]:
    rng = RNG(seed)
    truth = random_network(6, 5, noise=Noise.flips(0.08), rng=rng)
    return truth, PatternCounts.of(truth.sample(n_samples, rng), sensors=truth.sensors)


def visits_of(*sets: list[int]) -> Visits:
    sources = np.zeros((len(sets), 6), np.int64)
    for row, found in zip(sources, sets, strict=True):
        row[: len(found)] = found
    return Visits(sources, np.zeros(sources.shape), np.full((len(sets), 1), 0.1))


def test_the_walk_is_at_every_set_as_often_as_it_is_probable(monkeypatch):
    counts, flip_rate, grid = np.array([21.0, 5.0, 4.0, 6.0]), 0.1, np.linspace(-8.0, 2.0, 31)
    data = PatternCounts(np.arange(4, dtype=np.uint64)[:, None], counts, ("a", "b"))
    search = lattice_task(Varying.of(data, (), ()), Likelihood(noise=Noise.flips(flip_rate))).search()
    search.run()
    beliefs = beliefs_of(search)

    def log_prior_of_set(sources):
        sizes = [bin(source).count("1") for source in sources]
        return sum(beliefs.by_size[size, sizes.count(size)] for size in (1, 2))

    def log_density(log_rate):
        return RatePrior(log_rate.size).log_density(log_rate)

    wanted = posterior_of_sets(counts, flip_rate, log_prior_of_set, log_density, grid)
    monkeypatch.setattr(averaging, "STEPS", 120_000)
    visits = walked(search)
    batches = np.array_split(visits.sources, 20)
    for sources, probability in wanted.items():
        shares = [np.mean([frozenset(row[row > 0].tolist()) == sources for row in batch]) for batch in batches]
        spread = np.std(shares, ddof=1) / np.sqrt(20)  # batches are long against the memory of the walk
        assert np.mean(shares) == pytest.approx(probability, abs=4.5 * spread + 0.003)


@given(source_sets, source_sets)
def test_distance_is_that_of_a_matching(one, other):
    assert distance(one, other) == distance(other, one)
    assert (distance(one, other) == 0) == (one.tolist() == other.tolist())
    added = np.append(one, 32)
    assert distance(one, added) == 1.0 + averaging.INEXACT


def test_the_answer_has_what_most_visits_have_and_the_middle_of_what_differs():
    visits = visits_of([3, 12], [3, 12], [3, 28], [3, 20], [3, 12, 1])
    assert sorted(nearest_to_all(visits, NONE).tolist()) == [3, 12]
    apart = visits_of(*([[3, 12]] * 2 + [[3, 28]] * 2 + [[3, 20]] * 2))  # none is in half of them; one is near all
    assert sorted(nearest_to_all(apart, NONE).tolist()) == [3, 28]
    assert nearest_to_all(visits, np.array([5])).tolist()[0] == 5  # a known source stays whatever the visits say
    assert nearest_to_all(visits, NONE, wanted=3).size == 3


def test_support_and_edges_are_shares_of_the_visits():
    visits = visits_of([3, 12], [12, 7], [3, 12], [3])
    assert visits.support() == {3: 0.75, 12: 0.75, 7: 0.25}
    mixing = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    assert edge_support(mixing, visits)[[0, 1], 0].tolist() == [1.0, 1.0]
    assert edge_support(mixing, visits)[[2, 3], 1].tolist() == [0.75, 0.75]
    assert visits.with_bits(np.array([1, 0, 2, 3])).support() == visits.support()  # of sets that hold both sensors
    assert visits.numbers(1) == {2: 0.25, 3: 0.75}


def test_few_rows_are_averaged_and_the_order_of_the_columns_does_not_matter():
    _, data = few_rows(n_samples=60)
    fit = Likelihood().fit(data, RNG(0))
    assert fit.diagnostics["lead"] < IN_DOUBT
    assert fit.support is not None
    assert ((fit.support >= 0) & (fit.support <= 1)).all()
    assert fit.support.min() < 0.99
    assert (fit.edge_support >= fit.support - 0.25)[fit.model.mixing].all()  # an exact source has all its edges
    assert sum(fit.diagnostics["averaging"]["n_sources"].values()) == pytest.approx(1.0)
    low, high = fit.diagnostics["noise"]["interval"]
    assert low <= fit.model.noise.false_alarm <= high
    other = Likelihood().fit(data.project([4, 2, 0, 5, 1, 3]), RNG(0))
    back = {name: place for place, name in enumerate(other.model.sensors)}
    there = other.model.of_sensors([back[name] for name in data.sensors])
    assert set(map(bytes, there.mixing.T.copy())) == set(map(bytes, fit.model.mixing.T.copy()))
    np.testing.assert_allclose(np.sort(other.support), np.sort(fit.support))


def test_many_rows_leave_no_doubt_and_take_no_walk(monkeypatch):
    truth = OrMixture([[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1]], [0.1, 0.3, 0.2], Noise.flips(0.02))
    monkeypatch.setattr(averaging, "walked", lambda *_: pytest.fail("there is nothing to average over"))
    fit = Likelihood().fit(PatternCounts.of(truth.sample(20_000, RNG(1))), RNG(0))
    assert fit.diagnostics["lead"] > IN_DOUBT
    assert fit.support.min() > 0.95
    assert fit.edge_support[fit.model.mixing].min() > 0.95


def test_known_forbidden_and_counted_sources_hold_on_the_walk():
    truth, data = few_rows()
    names = [tuple(name for name, on in zip(truth.sensors, column, strict=True) if on) for column in truth.mixing.T]
    known = KnownSource(names[0], 0.2, name="sure")
    fit = Likelihood(known=[known], forbidden=[names[1][:2]]).fit(data, RNG(0))
    assert "averaging" in fit.diagnostics
    place = fit.model.source_names().index("sure")
    assert fit.support[place] == 1.0
    assert fit.model.probability[place] == pytest.approx(0.2)
    both = np.isin(truth.sensors, names[1][:2])
    assert not any(column[both].all() for j, column in enumerate(fit.model.mixing.T) if j != place)
    for number in (4, 6):
        assert Likelihood(n_sources=number).fit(data, RNG(0)).model.n_sources == number


def test_support_is_unknown_where_nothing_was_averaged():
    _, data = few_rows()
    assert FindBICA().fit(data, RNG(0)).support is None
    assert Likelihood(prior=(2.0, 9.0)).fit(data, RNG(0)).support is None
    assert Fit(OrMixture([[1]], [0.5])).edge_support is None


def test_support_of_other_noise_and_missing_cells():
    truth, _ = few_rows()
    rows = truth.sample(150, RNG(8)).astype(float)
    rows[RNG(9).random(rows.shape) < 0.1] = np.nan
    for noise in ("two-rates", Noise.flips(0.08)):
        fit = Likelihood(noise=noise).fit(PatternCounts.of(rows), RNG(0))
        assert fit.support is not None
        assert fit.support.max() <= 1.0


def test_support_travels_with_the_model(tmp_path):
    truth, _data = few_rows()
    learner = BICA(random_state=0).fit(truth.sample(150, RNG(3)))
    assert learner.support_.shape == (learner.n_sources_,)
    assert learner.edge_support_.shape == learner.components_.shape
    assert (learner.edge_support_[~learner.components_] == 0).all()
    learner.fit_.save(tmp_path / "model.json")
    again = Fit.load(tmp_path / "model.json")
    np.testing.assert_allclose(again.support, learner.support_)
    turned = Fit(
        again.model.pick(np.arange(again.model.n_sources)[::-1]),
        diagnostics={
            "averaging": {name: again.diagnostics["averaging"][name][::-1] for name in ("support", "edge_support")}
        },
    ).in_order()
    np.testing.assert_allclose(turned.support, learner.support_)
    np.testing.assert_allclose(turned.edge_support, again.edge_support)


def test_ctrl_c_on_the_walk_keeps_what_the_search_found(monkeypatch):
    _, data = few_rows()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(averaging, "walked", interrupt)
    with pytest.warns(UserWarning, match="interrupted"):
        fit = Likelihood().fit(data, RNG(0))
    assert not fit.converged
    assert fit.model.n_sources > 0
    assert fit.support is None
