"""Assignments keep what they promise."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.applications import SOLVERS, MonitoringProblem, assign, relax
from bica.applications.monitoring.assignment import draw, expected_value
from bica.errors import ModelError, SettingError
from bica.model.or_mixture import OrMixture
from tests.applications.monitoring.problems import best_value, problems

KEPT = 1 - 1 / np.e


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.booleans().flatmap(lambda lossy: problems(lossy=lossy)))
def test_every_solver_keeps_its_promise(problem):
    best, relaxation = best_value(problem), relax(problem)
    found = {solver: assign(problem, solver, relaxation=relaxation, n_draws=20) for solver in SOLVERS}
    assert best <= relaxation.bound + 1e-6
    assert found["exact"].value == pytest.approx(best, abs=1e-6)
    assert found["exact"].proven
    assert found["greedy"].value >= best / 2 - 1e-9
    assert found["derandomised"].value >= KEPT * relaxation.bound - 1e-6
    for assignment in found.values():
        assert assignment.value <= best + 1e-9
        assert not assignment.proven or assignment.value == pytest.approx(best, abs=1e-6)
        assert 0 <= assignment.share_of_bound <= 1


@settings(max_examples=60, deadline=None)
@given(st.booleans().flatmap(lambda lossy: problems(lossy=lossy)))
def test_one_rounding_by_lot_keeps_its_promise_on_average(problem):
    relaxation = relax(problem)
    average = expected_value(problem, relaxation.shares)
    assert average >= KEPT * relaxation.bound - 1e-6
    # the average itself, from the definition: every outcome with its chance
    slow = 0.0
    for choice in itertools.product(range(problem.n_channels), repeat=problem.n_sniffers):
        chance = np.prod([relaxation.shares[s, k] for s, k in enumerate(choice)])
        idle = relaxation.shares.sum(axis=1) == 0
        if idle.any():
            chance = np.prod([1.0 if idle[s] and k == 0 else relaxation.shares[s, k] for s, k in enumerate(choice)])
        slow += chance * problem.value(np.where(idle, -1, choice))
    assert average == pytest.approx(slow, abs=1e-9)


def test_draws_follow_the_shares():
    shares = np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    rng, n_draws = np.random.default_rng(3), 4000
    drawn = np.array([draw(shares, rng) for _ in range(n_draws)])
    assert (drawn[:, 1] == 1).all()
    assert (drawn[:, 2] == -1).all()
    seen = (drawn[:, :1] == np.arange(3)).mean(axis=0)
    assert np.abs(seen - shares[0]).max() < 4 * np.sqrt(0.25 / n_draws)  # four standard errors


def test_many_draws_are_never_worse_than_few_and_the_seed_decides():
    rng = np.random.default_rng(5)
    problem = MonitoringProblem(rng.random((8, 40)) < 0.3, rng.integers(0, 3, 40), rng.random(40) * 0.1)
    few, many = (assign(problem, "rounding", n_draws=n, rng=np.random.default_rng(1)) for n in (1, 50))
    again = assign(problem, "rounding", n_draws=50, rng=np.random.default_rng(1))
    assert many.value >= few.value
    assert many.channel.tolist() == again.channel.tolist()


def test_max_follows_what_was_measured_where_it_was():
    reach, busy = [[1, 1]], [[0.1, 0.9]]
    assert assign(MonitoringProblem(reach, [0, 1], [0.5, 0.2]), "max").channel.tolist() == [0]
    assert assign(MonitoringProblem(reach, [0, 1], [0.5, 0.2], busy=busy), "max").channel.tolist() == [1]


def test_two_sniffers_that_hear_half_are_worth_less_than_one_that_hears_all():
    """What the linear program adds up, .5 + .5, is not what both hear together: .75 of the user."""
    problem = MonitoringProblem([[0.5, 0.9], [0.5, 0.0]], [0, 1], [0.4, 0.2])
    best = assign(problem)
    assert best.watched() == {"sniffer1": "channel2", "sniffer2": "channel1"}
    assert best.value == pytest.approx(0.2 * 0.9 + 0.4 * 0.5)
    assert best.proven
    assert best.bound >= best.value


def test_the_users_of_a_lossy_model_are_heard_at_times():
    model = OrMixture([[1], [1]], [0.4], reach=[[0.5], [0.25]])
    problem = MonitoringProblem.of({"1": model})
    assert problem.value([0, 0]) == pytest.approx(0.4 * (1 - 0.5 * 0.75))
    assert problem.busy[:, 0] == pytest.approx([0.2, 0.1])


class TestEdges:
    @pytest.mark.parametrize("solver", SOLVERS)
    def test_a_sniffer_that_hears_nothing_watches_nothing(self, solver):
        found = assign(MonitoringProblem([[1, 1], [0, 0]], [0, 1], [0.5, 0.2]), solver)
        assert found.watched() == {"sniffer1": "channel1", "sniffer2": None}
        assert found.unseen() == ["user2"]

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_one_channel_only_is_watched_by_all_that_matter(self, solver):
        found = assign(MonitoringProblem([[1, 0], [0, 1]], [0, 0], [0.5, 0.2]), solver)
        assert found.channel.tolist() == [0, 0]
        assert found.value == pytest.approx(0.7)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_with_more_channels_than_sniffers_the_best_channel_is_watched(self, solver):
        found = assign(MonitoringProblem([[1, 1, 1]], [0, 1, 2], [0.1, 0.6, 0.3]), solver)
        assert found.channel.tolist() == [1]
        assert found.unseen() == ["user3", "user1"]

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_an_empty_channel_is_never_chosen(self, solver):
        problem = MonitoringProblem.of({"1": OrMixture(np.zeros((2, 0)), []), "6": OrMixture([[1], [1]], [0.3])})
        found = assign(problem, solver)
        assert "1" not in found.watched().values()
        assert found.value == pytest.approx(0.3)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_without_any_user_there_is_nothing_to_watch(self, solver):
        found = assign(MonitoringProblem(np.zeros((3, 0)), [], [], channels=["1", "6"]), solver)
        assert found.channel.tolist() == [-1, -1, -1]
        assert (found.value, found.bound, found.share_of_bound, found.proven) == (0, 0, 1, True)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_a_user_who_is_always_active_and_one_out_of_reach(self, solver):
        found = assign(MonitoringProblem([[1, 0]], [0, 0], [1.0, 0.4]), solver)
        assert found.value == 1
        assert found.unseen() == ["user2"]

    def test_tiny_probabilities_are_still_told_apart(self):
        problem = MonitoringProblem([[1, 1]], [0, 1], [1.0e-7, 1.1e-7])
        assert assign(problem).channel.tolist() == [1]


class TestDoor:
    def test_models_are_joined_by_the_names_of_their_sensors(self):
        one = OrMixture([[1, 0], [1, 1]], [0.3, 0.2], sensors=["a", "b"])
        six = OrMixture([[1], [1]], [0.4], sensors=["c", "a"], names=["phone"])
        problem = MonitoringProblem.of({"1": one, "6": six})
        assert problem.sniffers == ("a", "b", "c")
        assert problem.users == ("1: source1", "1: source2", "6: phone")
        assert problem.reach.astype(int).tolist() == [[1, 0, 1], [1, 1, 0], [0, 0, 1]]
        assert problem.busy[0].round(3).tolist() == [0.3, 0.4]
        only = MonitoringProblem.of({"1": one, "6": six}, ["c"])
        assert only.reach.astype(int).tolist() == [[0, 0, 1]]

    def test_strange_input_is_refused(self):
        with pytest.raises(ModelError, match="reach has 2 columns"):
            MonitoringProblem([[1, 0]], [0], [0.5, 0.5])
        with pytest.raises(ModelError, match="a number from 0 to 0"):
            MonitoringProblem([[1]], [3], [0.5], channels=["1"])
        with pytest.raises(ModelError, match="3 sniffers, but the assignment"):
            MonitoringProblem(np.zeros((3, 0)), [], []).value([0])
        with pytest.raises(SettingError, match="there is no solver 'fast'"):
            assign(MonitoringProblem([[1]], [0], [0.5]), "fast")
        with pytest.raises(ValueError, match="no channel knows a sniffer 'z'; there are x0"):
            MonitoringProblem.of({"1": OrMixture([[1]], [0.3])}, ["z"])
