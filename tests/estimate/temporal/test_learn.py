import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.errors import SettingError
from bica.estimate.likelihood import Likelihood
from bica.estimate.temporal import learn_in_time, stays_in_time
from bica.estimate.temporal.state import TemporalState
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import markov_activity, simulate

NOBODY = OrMixture(np.zeros((4, 0), bool), [])


def columns(model):
    return {tuple(np.flatnonzero(column).tolist()) for column in model.mixing.T}


def slots_of(truth, stay, n_slots, seed):
    return simulate(truth, n_slots, np.random.default_rng(seed), persistence=stay).rows


def test_a_coincidence_that_lasts_makes_no_source():
    """Two users who overlap once, for a long while, look like a third one when slots count one by one."""
    first, second = np.zeros((2, 6000), bool)
    for begin in range(100, 6000, 1000):
        first[begin : begin + 20] = True
        second[begin + 500 : begin + 520] = True
    second[105:125] = True  # overlaps with the first stay of the other
    rows = np.stack([first, first, second, second], axis=1)
    without_order = Likelihood().fit(PatternCounts.of(rows), np.random.default_rng(0)).model
    assert (0, 1, 2, 3) in columns(without_order)
    found = learn_in_time(without_order, packed(rows))
    assert columns(found.model) == {(0, 1), (2, 3)}
    assert found.converged


def test_a_lone_source_is_told_from_flips():
    truth = OrMixture([[1, 0], [0, 1], [0, 1], [0, 0]], [0.01, 0.05], Noise.flips(0.05))
    rows = slots_of(truth, 5.0, 8000, 1000)
    without_order = Likelihood().fit(PatternCounts.of(rows), np.random.default_rng(0)).model
    assert (0,) not in columns(without_order)
    found = learn_in_time(without_order, packed(rows))
    assert columns(found.model) == {(0,), (1, 2)}
    # four standard errors of the share of flipped cells, of which 1 or 2 % are explained by a source
    assert abs(found.model.noise.false_alarm - 0.05) < 4 * np.sqrt(0.05 * 0.95 / rows.size) + 0.02 * 0.05


def test_no_rows_ask_for_no_source():
    found = learn_in_time(NOBODY, packed(np.zeros((200, 4), bool)))
    assert found.model.n_sources == 0


def test_a_source_that_is_always_on_stays():
    rows = np.zeros((400, 4), bool)
    rows[:, 0] = True
    rows[100:110, 1:3] = True
    rows[300:320, 1:3] = True
    start = OrMixture([[1], [0], [0], [0]], [1.0])
    found = learn_in_time(start, packed(rows))
    assert columns(found.model) == {(0,), (1, 2)}
    assert found.persistence[found.model.probability == 1] == np.inf


def test_missing_cells_tell_nothing():
    truth = OrMixture([[1, 0], [1, 0], [0, 1], [0, 1]], [0.05, 0.05])
    rows = slots_of(truth, 5.0, 4000, 1001)
    seen = np.random.default_rng(1002).random(rows.shape) < 0.8
    found = learn_in_time(NOBODY, packed(rows & seen), packed(seen))
    assert columns(found.model) == {(0, 1), (2, 3)}


def test_threads_change_nothing():
    truth = OrMixture([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]], [0.05, 0.05, 0.03], Noise.flips(0.02))
    words = packed(slots_of(truth, 5.0, 2000, 1003))
    alone, together = (learn_in_time(NOBODY, words, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert alone.model == together.model


@pytest.mark.parametrize("stay", [2.0, 8.0])
def test_stays_are_found(stay):
    truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.1, 0.2], Noise.flips(0.02))
    rows = slots_of(truth, stay, 4096, 1004)
    found = stays_in_time(truth, packed(rows))
    n_stays = 4096 * 0.1 / stay
    # a mean of n geometric stays has a relative error of at most 1 / sqrt(n); flips hide some of the shortest
    assert (np.abs(found / stay - 1) < 4 / np.sqrt(n_stays) + 0.1).all()


def test_ctrl_c_keeps_what_was_found(monkeypatch):
    truth = OrMixture([[1, 0], [1, 0], [0, 1], [0, 1]], [0.05, 0.05])
    words = packed(slots_of(truth, 5.0, 2000, 1005))
    add = TemporalState.add

    def add_then_interrupt(state, source, near):
        add(state, source, near)
        raise KeyboardInterrupt

    monkeypatch.setattr(TemporalState, "add", add_then_interrupt)
    found = learn_in_time(NOBODY, words)
    assert found.interrupted
    assert found.model.n_sources == 1


def in_order(**settings):
    truth = OrMixture([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], [0.05, 0.08, 0.06], sensors=list("abcd"))
    activity = markov_activity(truth.probability, 5, 3000, np.random.default_rng(3))
    rows = Rows.of(truth.observe(activity), sensors=truth.sensors)
    return truth, Likelihood(**settings).fit_in_order(rows, np.random.default_rng(0)).model


def columns_of(model):
    return {tuple(np.array(model.sensors)[column]) for column in model.mixing.T}


def test_without_knowledge_the_true_sources_are_found():
    truth, found = in_order()
    assert columns_of(found) == columns_of(truth)


def test_no_source_contains_a_forbidden_set():
    _, found = in_order(forbidden=[("b", "c")])
    assert columns_of(found)
    assert not any({"b", "c"} <= set(column) for column in columns_of(found))


def test_a_known_source_stays_with_its_name_though_it_does_not_pay():
    _, found = in_order(known=[(["a", "d"], None, "ghost")], min_probability=0.02)
    assert ("a", "d") in columns_of(found)
    assert "ghost" in found.names


def test_a_known_probability_is_refused_in_time():
    with pytest.raises(SettingError, match="not with its probability"):
        in_order(known=[(["a"], 0.1)])
