"""Edges that may fail: the most probable activity, posteriors and explanations against all activities."""

from importlib import import_module
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.rows import Rows
from bica.errors import InfeasibleError, LimitError, SettingError
from bica.invert import lossy as lossy_module
from bica.invert.decode import decode
from bica.invert.groups import groups_of, shown_cost
from bica.invert.lossy import lossy_sums, solve_lossy
from bica.invert.temporal import chains as chains_module
from bica.invert.temporal.chains import Chains, block_of
from bica.invert.temporal.decode import decode_in_time, learn_persistence
from bica.kernels.bits import packed
from bica.kernels.decoding import lossy_sums as kernel
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network, simulate, with_lossy_edges
from tests.reference.slow_lossy import SlowLossy
from tests.strategies import clear_probabilities, clear_rates, lossy_models

posterior_module = import_module("bica.invert.posterior")  # the package has a function of that name
TIE = 1e-9
CLOSE = 1e-9  # relative: sums of a hundred products of twenty factors
clear = lossy_models(min_sensors=1, max_sources=4, chances=clear_probabilities, rates=clear_rates)


def any_rows(model, data, n_rows=4):
    cell = st.sampled_from([False, True, None])
    cells = st.lists(cell, min_size=model.n_sensors, max_size=model.n_sensors)
    return data.draw(st.lists(cells, min_size=1, max_size=n_rows))


def as_table(rows):
    return np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=float)


def lossy_network(n_sensors, n_sources, seed, column_weight=(3, 5), noise=None):
    rng = np.random.default_rng(seed)
    noise = Noise(0.005) if noise is None else noise
    return with_lossy_edges(
        random_network(n_sensors, n_sources, column_weight=column_weight, noise=noise, rng=rng), rng=rng
    )


class TestDecoding:
    @settings(max_examples=200)
    @given(clear, st.data())
    def test_no_activity_is_more_probable(self, model, data):
        rows, slow = any_rows(model, data), SlowLossy.of(model)
        found = model.decode(as_table(rows))
        for row, activity, cost, gap in zip(rows, found.activity, found.cost, found.gap, strict=True):
            costs = slow.costs(row)
            assert gap == 0
            if min(costs) == np.inf:
                assert cost == np.inf
                continue
            assert cost == pytest.approx(min(costs), abs=TIE)
            assert slow.costs(row)[slow.activities().index(tuple(activity.tolist()))] == pytest.approx(cost, abs=TIE)

    @given(clear, st.data())
    def test_ties_go_to_the_fewest_active_sources_then_to_the_smallest_number(self, model, data):
        rows, slow = any_rows(model, data, 2), SlowLossy.of(model)
        found = model.decode(as_table(rows))
        for row, activity in zip(rows, found.activity.tolist(), strict=True):
            costs = slow.costs(row)
            if min(costs) < np.inf:
                best = [a for a, cost in zip(slow.activities(), costs, strict=True) if cost <= min(costs) + TIE / 10]
                near = [a for a, cost in zip(slow.activities(), costs, strict=True) if cost <= min(costs) + 10 * TIE]
                preferred = min(best, key=lambda a: (sum(a), a[::-1]))
                assert tuple(activity) == preferred or len(near) > len(best)

    @given(lossy_models(min_sensors=1, max_sources=4, chances=clear_probabilities, rates=st.just(0.0)), st.data())
    def test_an_impossible_row_has_the_fewest_wrong_cells(self, model, data):
        row, slow = any_rows(model, data, 1)[0], SlowLossy.of(model)
        found = decode(model, *rows_of(model, [row]), nearest=True)
        possible = [a for a in slow.activities() if slow.prior(a) > 0]
        wrong = min(sum(slow.cell(i, v, a) <= 0 for i, v in enumerate(row)) for a in possible)
        assert found.n_wrong[0] == wrong
        assert found.feasible[0] == (wrong == 0)

    @pytest.mark.parametrize("noise", [Noise(0.005), Noise(0.0), Noise(0.01, 0.05)])
    @pytest.mark.parametrize("seed", range(3))
    def test_twelve_connected_sources(self, seed, noise):
        """Against all 4096 activities."""
        model = lossy_network(10, 12, seed, noise=noise)
        rows = model.sample(60, np.random.default_rng(seed))
        found = model.decode(rows)
        activity = (np.arange(4096)[:, None] >> np.arange(12) & 1).astype(bool)
        for row, cost in zip(rows, found.cost, strict=True):
            assert cost == pytest.approx(all_costs(model, activity, row).min(), abs=TIE)
        assert found.proven.all()

    def test_a_search_that_is_cut_short_says_how_far_off_it_may_be(self):
        model = lossy_network(12, 14, 1, (4, 8), Noise(0.02, 0.02))
        rows = model.sample(200, np.random.default_rng(2))
        for group in lossy_groups(model):
            cells = Rows.of(rows).of_sensors(group.sensors).cells(group.sensors.size)
            short, whole = solve_lossy(group, cells, n_nodes=1), solve_lossy(group, cells)
            assert (whole.gap == 0).all()
            assert (short.gap > 0).any()
            assert (short.cost <= whole.cost + short.gap + TIE).all()
            assert (short.cost >= whole.cost - TIE).all()

    def test_a_wide_model_is_decoded_and_sources_that_are_clear_are_found(self):
        model = lossy_network(60, 40, 4, (6, 10))
        model = OrMixture(model.mixing, np.full(40, 0.03), model.noise, model.reach)
        rng = np.random.default_rng(5)
        activity = model.draw_activity(300, rng)
        found = model.decode(model.draw_rows(activity, rng))
        assert found.proven.mean() > 0.99
        assert (found.activity == activity).mean() > 0.99

    def test_only_the_solvers_that_can_are_offered(self):
        model = OrMixture([[1], [1]], [0.2], reach=[[0.9], [0.5]])
        for solver in ("table", "program"):
            with pytest.raises(SettingError, match="where edges may fail"):
                model.decode([[1, 1]], solver=solver)
        assert model.decode([[1, 0]], solver="zero-error").activity.tolist() == [[True]]

    def test_equal_rows_and_sure_parts_are_as_ever(self):
        sure = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], Noise.flips(0.1))
        both = OrMixture(
            np.kron(np.eye(2), sure.mixing),
            [0.2, 0.5, 0.2, 0.5],
            Noise.flips(0.1),
            np.kron(np.diag([1, 0.7]), sure.mixing),
        )
        rows = np.array([[a, b, c, d] for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)])
        assert np.array_equal(both.decode(rows).activity[:, :2], sure.decode(rows[:, :2]).activity)


def all_costs(model, activity, row):
    reach, (false_alarm, miss) = model.reach, model.noise.rates(model.n_sensors)
    z = np.prod(1 - reach[None] * activity[:, None, :], axis=2)
    quiet = miss + (1 - false_alarm - miss) * z
    with np.errstate(divide="ignore"):
        cells = -np.log(np.where(row, 1 - quiet, quiet)).sum(axis=1)
    return cells - np.log(np.where(activity, model.probability, 1 - model.probability)).sum(axis=1)


def lossy_groups(model):
    return [group for group in groups_of(model) if group.reach is not None]


def rows_of(model, rows):
    given = Rows.of(as_table(rows), sensors=model.sensors)
    return given.words, given.observed


class TestPosterior:
    @settings(max_examples=100)
    @given(clear, st.data(), st.sampled_from([0, 30]))
    @pytest.mark.filterwarnings("ignore:the model cannot produce")
    def test_it_is_the_share_of_all_activities(self, model, data, row_by_row):
        """By one table of all sets, and row by row."""
        rows, slow = any_rows(model, data), SlowLossy.of(model)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(posterior_module, "ROW_BY_ROW", row_by_row)
            found = model.posterior(as_table(rows))
            logs = posterior_module.log_probability(model, *rows_of(model, rows))
        assert found.exact.all()
        for row, shares, log in zip(rows, found.probability, logs.value, strict=True):
            total = slow.row(row)
            if total > 0:
                assert shares == pytest.approx(slow.posterior(row), rel=CLOSE, abs=1e-12)
                assert log == pytest.approx(np.log(total), rel=CLOSE, abs=1e-12)
            else:
                assert np.isnan(shares).all()
                assert log == -np.inf

    @pytest.mark.parametrize("noise", [Noise(0.005), Noise(0.01, 0.03)])
    def test_both_ways_agree_where_many_sources_are_connected(self, noise):
        model = lossy_network(14, 17, 3, noise=noise)
        rows = model.sample(30, np.random.default_rng(0))
        for group in lossy_groups(model):
            cells = Rows.of(rows).of_sensors(group.sensors).cells(group.sensors.size)
            table, one_by_one = posterior_module._by_lattice(group, cells, shares=True), lossy_sums(group, cells)
            assert one_by_one.exact.all()
            assert one_by_one.probability == pytest.approx(table.probability, rel=CLOSE, abs=1e-12)
            assert one_by_one.log_probability == pytest.approx(table.log_probability, rel=CLOSE)

    def test_wide_models_are_exact_where_few_ones_are_connected(self):
        model = lossy_network(60, 40, 4, (6, 10))
        model = OrMixture(model.mixing, np.full(40, 0.03), model.noise, model.reach)
        found = model.posterior(model.sample(50, np.random.default_rng(1)))
        assert found.exact.mean() > 0.9

    def test_sampled_posteriors_are_as_far_off_as_they_say(self, monkeypatch):
        """Two standard errors hold 95 % of independent estimates; at least 80 % here, of 8 rows of 12 sources."""
        model = lossy_network(12, 12, 5, noise=Noise(0.01, 0.02))
        (group,) = lossy_groups(model)
        cells = Rows.of(model.sample(8, np.random.default_rng(6))).of_sensors(group.sensors).cells(12)
        exact = lossy_sums(group, cells)
        monkeypatch.setattr(lossy_module, "LARGEST_WORK", 0)
        sampled = lossy_sums(group, cells)
        assert exact.exact.all()
        assert not sampled.exact.any()
        off = np.abs(sampled.probability - exact.probability)
        assert (off <= sampled.error + 1e-3).mean() > 0.8
        assert off.max() < 0.1
        assert (sampled.log_probability <= exact.log_probability + TIE).all()
        assert (sampled.log_probability > exact.log_probability - 0.5).all()

    def test_too_large_a_table_is_left_to_the_sampler(self):
        assert kernel.MOST_FOLLOWED == 22
        model = OrMixture(
            np.ones((24, 30)), np.full(30, 0.1), Noise(0.01, 0.01), np.linspace(0.1, 0.9, 720).reshape(24, 30)
        )
        (group,) = lossy_groups(model)
        found = lossy_sums(group, np.ones((1, 24), np.uint8))
        assert not found.exact.any()
        assert (found.error > 0).any()
        assert np.isfinite(found.log_probability).all()


class TestExplanations:
    @settings(max_examples=60)
    @given(clear, st.data())
    def test_they_are_the_likeliest_activities_in_order(self, model, data):
        row, slow = any_rows(model, data, 1)[0], SlowLossy.of(model)
        total = slow.row(row)
        if total == 0:
            with pytest.raises(InfeasibleError):
                model.explain(as_table([row]))
            return
        found = model.explain(as_table([row]), k=3)
        joint = sorted((slow.joint(row, activity) / total for activity in slow.activities()), reverse=True)
        positive = [share for share in joint if share > 0][:3]
        assert found.probability.tolist() == pytest.approx(positive, rel=1e-7, abs=1e-12)
        for activity, share in zip(found.activity.tolist(), found.probability, strict=True):
            assert slow.joint(row, activity) / total == pytest.approx(share, rel=1e-7, abs=1e-12)

    def test_what_cannot_be_proven_is_refused(self, monkeypatch):
        monkeypatch.setattr(lossy_module.solve_lossy, "__defaults__", (1,))
        model = lossy_network(12, 14, 1, (4, 8), Noise(0.02, 0.02))
        rows = model.sample(200, np.random.default_rng(2))
        unclear = rows[np.flatnonzero(~model.decode(rows).proven)[0]]
        with pytest.raises(LimitError, match="too many sources"):
            model.explain(unclear)


class TestInTime:
    @settings(max_examples=40)
    @given(
        lossy_models(min_sensors=1, max_sensors=3, max_sources=2, chances=st.floats(0.05, 0.6), rates=clear_rates),
        st.data(),
        st.booleans(),
    )
    def test_the_course_is_the_best_of_all(self, model, data, in_stretches):
        rows, slow = any_rows(model, data), SlowLossy.of(model)
        stays = data.draw(st.lists(st.floats(2, 20), min_size=model.n_sources, max_size=model.n_sources))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chains_module, "STRETCH", 2 if in_stretches else 1024)
            found = decode_in_time(model, *rows_of(model, rows), persistence=np.array(stays))
        if not found.feasible.all():
            return
        courses = product(slow.activities(), repeat=len(rows))
        assert found.cost == pytest.approx(min(slow.course_cost(rows, c, stays) for c in courses), abs=1e-9)
        course = [tuple(activity) for activity in found.activity.tolist()]
        assert slow.course_cost(rows, course, stays) == pytest.approx(found.cost, abs=1e-9)
        assert found.exact.all()

    @settings(max_examples=20)
    @given(
        lossy_models(min_sensors=1, max_sensors=3, max_sources=2, chances=st.floats(0.05, 0.6), rates=clear_rates),
        st.data(),
    )
    def test_expected_moves_are_those_of_all_courses(self, model, data):
        rows, slow, n_sources = any_rows(model, data), SlowLossy.of(model), model.n_sources
        stays = data.draw(st.lists(st.floats(2, 20), min_size=n_sources, max_size=n_sources))
        chances = {c: np.exp(-slow.course_cost(rows, c, stays)) for c in product(slow.activities(), repeat=len(rows))}
        if sum(chances.values()) == 0:
            return
        expected = np.zeros((n_sources, 2, 2))
        for course, chance in chances.items():
            for before, after in pairwise(course):
                for j in range(n_sources):
                    expected[j, int(before[j]), int(after[j])] += chance / sum(chances.values())
        given_rows = Rows.of(as_table(rows), sensors=model.sensors)
        chains = Chains.of(model.probability, np.array(stays))
        for group in lossy_groups(model):
            cells = given_rows.of_sensors(group.sensors).cells(group.sensors.size)
            block = block_of(group, np.arange(group.sources.size))
            shown = block.cells(cells, np.zeros((len(rows), group.sources.size), dtype=bool))
            assert block.moves(shown, chains.pick(group.sources)) == pytest.approx(expected[group.sources], abs=1e-9)

    def test_large_parts_are_never_less_likely_than_the_row_wise_answer(self):
        model = lossy_network(18, 18, 7)
        model = OrMixture(model.mixing, np.full(18, 0.1), model.noise, model.reach)
        problem = simulate(model, 300, np.random.default_rng(8), persistence=10)
        words = packed(problem.rows)
        found = decode_in_time(model, words, persistence=10)
        assert not found.exact.all()
        alone = decode(model, words).activity
        chains, cost = Chains.of(model.probability, found.persistence), 0.0
        for group in groups_of(model):
            own, cells = alone[:, group.sources], problem.rows[:, group.sensors].astype(np.uint8)
            cost += chains.pick(group.sources).cost(own)
            cost += shown_cost(group.penalty, group.mixing, own, cells, group.reach).sum()
        assert found.cost < cost
        assert (found.activity != problem.activity).mean() < (alone != problem.activity).mean()

    def test_how_long_sources_stay_on_is_found_again(self):
        model = lossy_network(8, 4, 9)
        problem = simulate(model, 6000, np.random.default_rng(10), persistence=12)
        stays = learn_persistence(model, packed(problem.rows))
        assert (np.abs(stays / 12 - 1) < 0.35).all()  # some 100 stays of each source: 10 % and the doubt of each slot
