"""From blocks to one pool: votes, lone sources of crowded sensors, the shared flip rate, threads."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.estimate.blocks.learn import WideTask
from bica.estimate.blocks.learner import LARGEST, WHOLE, Block, Estimate, FlipSlope, LearnedBlock, Links, Pool
from bica.estimate.blocks.rounds import (
    N_BLOCKS,
    SENSORS,
    FlipRate,
    Round,
    elected,
    first_flip_rate,
    learn_blocks,
    lone_blocks,
    next_round,
    pilot_blocks,
    shifted,
)
from bica.estimate.lattice import HIGHEST, Cells
from bica.estimate.likelihood import Likelihood
from bica.estimate.score import LARGEST_DISCOUNT, Scale, cost_by_size
from bica.estimate.settings import Varying
from bica.model.noise import Noise
from tests.estimate.networks import drawn, network, rows_of


def said(sensors, sources, n_anchor=1, lone=False, flips=None):
    """What a block says."""
    return LearnedBlock(Block(np.array(sensors), n_anchor, lone), sources, flips or FlipSlope(), settled=True)


def task_of(data, **options):
    settings = Likelihood(**options)
    return WideTask.of(Varying.of(data, settings.known, settings.forbidden), settings)


class TestVotes:
    FIRM, VAGUE = Estimate(0.2, 0.01), Estimate(0.3, 0.05)

    def test_all_blocks_that_decide_are_asked_and_the_firmest_estimate_counts(self):
        learned = [said([0, 1, 2], {(0, 1): self.VAGUE}), said([1, 0], {(0, 1): self.FIRM}), said([2, 0], {})]
        assert elected(learned).sources == {(0, 1): self.FIRM}

    def test_half_of_the_votes_are_enough_and_less_are_not(self):
        one_of_two = [said([0, 1], {(0, 1): self.FIRM}), said([1, 0], {})]
        one_of_three = [said([0, 1, 2], {(0, 1, 2): self.FIRM}), said([1, 0, 2], {}), said([2, 0, 1], {})]
        assert elected(one_of_two).sources == {(0, 1): self.FIRM}
        assert elected(one_of_three).sources == {}

    def test_a_block_that_does_not_hold_all_of_a_source_has_no_vote(self):
        learned = [said([0, 1, 2], {(0, 1, 2): self.FIRM}), said([1, 0], {}), said([2, 0, 3], {})]
        assert elected(learned).sources == {(0, 1, 2): self.FIRM}

    def test_a_block_around_a_pair_has_one_vote_and_none_on_its_single_sensors(self):
        pair = said([0, 1, 2], {}, n_anchor=2)
        assert elected([pair, said([2, 0, 1], {(0, 1, 2): self.FIRM})]).sources == {(0, 1, 2): self.FIRM}
        other = said([1, 2, 0], {}, n_anchor=2)
        assert elected([pair, other, said([2, 0, 1], {(0, 1, 2): self.FIRM})]).sources == {}
        assert elected([pair, said([0], {(0,): self.FIRM}, lone=True)]).sources == {(0,): self.FIRM}

    def test_the_order_of_the_blocks_does_not_matter(self):
        learned = [
            said([0, 1, 2], {(0, 1): self.FIRM, (0,): self.VAGUE}),
            said([1, 0, 2], {(0, 1): self.VAGUE, (1, 2): self.FIRM}),
            said([2, 1], {(2,): self.FIRM}),
        ]
        there, back = elected(learned).sources, elected(learned[::-1]).sources
        assert list(there.items()) == list(back.items())
        assert set(there) == {(0, 1), (0,), (1, 2), (2,)}


class TestLoneBlocks:
    def test_one_sensor_of_every_other_source_joins(self):
        pool = Pool(
            {(0, 1, 2): Estimate(0.3, 0), (0, 2, 3): Estimate(0.2, 0), (0, 4): Estimate(0.1, 0), (0,): Estimate(9, 0)}
        )
        (block,) = lone_blocks([0], pool)
        assert block.lone
        assert block.sensors.tolist() == [0, 1, 3, 4]  # not 2, which two sources share
        assert block.decides((0,))

    def test_one_sensor_that_two_sources_cannot_avoid_serves_both(self):
        (block,) = lone_blocks([0], Pool({(0, 1): Estimate(0.3, 0), (0, 1, 2): Estimate(0.2, 0)}))
        assert block.sensors.tolist() == [0, 1]

    def test_the_block_stays_small(self):
        pool = Pool({(0, i): Estimate(i / 100, 0) for i in range(1, 31)})
        (block,) = lone_blocks([0], pool)
        assert block.sensors.tolist() == [0, *range(30, 30 - LARGEST + 1, -1)]  # the most frequent ones

    def test_nothing_else_there(self):
        assert [block.sensors.tolist() for block in lone_blocks([3, 5], Pool({}))] == [[3], [5]]


class TestFlipRate:
    NOW = FlipRate(0.02, 0.5, 1e-6)

    def test_one_scoring_step_on_all_blocks_together(self):
        learned = [said([0, 1], {}, flips=FlipSlope(3.0, 1000.0)), said([1, 0], {}, flips=FlipSlope(5.0, 3000.0))]
        after = shifted(self.NOW, learned, 2)
        assert after.rate == pytest.approx(0.02 + 8 / 4000)
        # every cell was counted twice: half of the information is there
        assert after.error == pytest.approx(np.sqrt(1 / 2000))
        assert after.lowest == self.NOW.lowest

    @pytest.mark.parametrize(("slope", "rate"), [(-1e9, 1e-6), (1e9, 4 * 0.02 + 0.01)])
    def test_it_stays_in_bounds(self, slope, rate):
        assert shifted(self.NOW, [said([0], {}, flips=FlipSlope(slope, 1.0))], 1).rate == pytest.approx(rate)
        high = FlipRate(0.4, 0.0, 1e-6)
        assert shifted(high, [said([0], {}, flips=FlipSlope(1e9, 1.0))], 1).rate == HIGHEST

    def test_without_information_it_stays(self):
        assert shifted(self.NOW, [said([0], {})], 1) is self.NOW

    @pytest.mark.parametrize("flip_rate", [0.0, 0.02, 0.08])
    def test_the_first_guess_is_near(self, flip_rate):
        """Some 40 of 60 sensors are in the five blocks; a guess is to start from, so a third is near enough."""
        truth = network(1, 60, 50, flip_rate)
        task = task_of(drawn(truth, 4000))
        rate = first_flip_rate(task.learner, 1e-7)
        assert abs(rate - flip_rate) < flip_rate / 3 + 1e-3


@given(st.integers(1, 60), st.sampled_from([0.0, 0.05, 0.3]), st.integers(0, 99))
@settings(max_examples=40)
def test_pilot_blocks_are_few_small_and_apart(n_sensors, share, seed):
    rng = np.random.default_rng(seed)
    linked = np.triu(rng.random((n_sensors, n_sensors)) < share, 1)
    linked |= linked.T
    blocks = pilot_blocks(Links(tuple(np.flatnonzero(line) for line in linked)))
    sensors = np.concatenate(blocks).tolist()
    assert len(set(sensors)) == len(sensors)
    assert 1 <= len(blocks) <= N_BLOCKS
    assert all(block.size <= WHOLE for block in blocks)
    assert all(block.size >= SENSORS for block in blocks) or len(blocks) == 1


class TestWhatBlocksShare:
    TRUTH = network(3)
    DATA = drawn(TRUTH, 2000)
    KNOWN, FORBIDDEN = ((["s0", "s1"], 0.1), (["s2"],)), (("s3", "s4"), ("s5",))

    def test_allowed_sets(self):
        """Linked one with all, or all with the anchor; nothing forbidden inside; not known already."""
        learner = task_of(self.DATA, known=self.KNOWN, forbidden=self.FORBIDDEN).learner
        near = learner.near
        for block in (
            Block(np.array([0, 1, *near[0] - {1}][:8]), 1),
            Block(np.array([3, 4, 5, 8]), 2),
            Block(np.array([2, 5]), 1),
        ):
            sensors, allowed = block.sensors.tolist(), learner.allowed(block)
            for s in range(allowed.size):
                column = {sensor for bit, sensor in enumerate(sensors) if s >> bit & 1}
                pairs = [k in near[i] for i, k in combinations(sorted(column), 2)]
                anchor = set(sensors[: block.n_anchor])
                from_anchor = anchor <= column and all(k in near[i] for i in anchor for k in column - {i})
                fits = bool(column) and (all(pairs) or from_anchor)
                fits &= not {3, 4} <= column and 5 not in column
                fits &= not (column in ({0, 1}, {2}) and block.decides(tuple(sorted(column))))
                assert allowed[s] == fits, column

    def test_cells_by_columns_are_those_by_rows(self):
        learner = task_of(self.DATA).learner
        for sensors in ([4], [9, 2, 20], [23, 0, 5, 11, 7]):
            by_columns, by_rows = learner._cells(Block(np.array(sensors), 1)), Cells.of(self.DATA.project(sensors))
            for name in ("unobserved", "starts", "cells", "weights", "n_sensors"):
                assert np.array_equal(getattr(by_columns, name), getattr(by_rows, name)), name

    def test_fitting_without_a_search_keeps_the_sources(self):
        learner, noise = task_of(self.DATA).learner, Noise.flips(0.02)
        block = Block(np.append(0, learner.links.neighbours[0]), 1)
        found = learner.learn(block, noise, Pool({}))
        start = Pool({(0,): Estimate(0.3, 0.0)} | found.sources)
        fitted = learner.learn(block, noise, start, search=False)
        assert fitted.sources.keys() == start.sources.keys()
        assert fitted.settled


def test_the_price_of_a_source():
    cost = cost_by_size(10, 1000, 10)
    for size, share in [(0, 0.3), (1, 0.3), (2, 0.3), (3, 0.3), (4, 0.6), (5, 0.9), (6, 1.0), (10, 1.0)]:
        choices = np.log(comb(10, min(size, 5)))
        assert cost[size] == pytest.approx(0.5 * np.log(1000) + share * choices)
    alone = Scale(None, 0, of_larger_table=cost).cost_of(np.array([0b1, 0b1010, 1 << 9]), np.empty(0, np.int64))
    assert alone.tolist() == [cost[1], cost[2], cost[1]]


def test_among_many_sensors_the_discount_of_narrow_sources_ends():
    cost = cost_by_size(1000, 1000, 1000)
    assert cost[3] == pytest.approx(0.5 * np.log(1000) + np.log(comb(1000, 3)) - LARGEST_DISCOUNT)
    assert (np.diff(cost) >= 0).all()


@pytest.mark.parametrize("known", [False, True])
def test_the_number_of_threads_changes_nothing(known):
    options = {"known": [(["s0", "s1"], 0.1)], "noise": Noise.flips(0.02)} if known else {}
    data = drawn(network(5), 2000)
    counts = (None, 1, 2, 3, -1)
    first, *others = (Likelihood(n_jobs=n, **options).fit(data, np.random.default_rng(0)).document() for n in counts)
    assert all(other == first for other in others)


def test_a_round_after_the_last_changes_no_source():
    task = task_of(PatternCounts.of(rows_of(network(2))))
    last = learn_blocks(task.learner, Round(Pool({}), Noise.flips(0.02), None), 1)
    again = next_round(task.learner, last, 1, first=False)
    assert last.settled
    assert again.settled
    assert again.pool.sources.keys() == last.pool.sources.keys()
    for column, estimate in last.pool.sources.items():  # a climb ends within sqrt(0.001) of an error of the top
        assert abs(again.pool.sources[column].rate - estimate.rate) < 0.1 * estimate.error


def test_blocks_in_waves_find_the_same_sources_as_all_at_once():
    truth = network(2)
    task = task_of(PatternCounts.of(rows_of(truth)))
    start = Round(Pool({}), Noise.flips(0.02), None)
    at_once, in_waves = (next_round(task.learner, start, 1, first=True, n_waves=n) for n in (1, 3))
    assert at_once.pool.sources.keys() == in_waves.pool.sources.keys()
    assert len(in_waves.pool.sources) >= truth.n_sources - 1
