"""The campus has the numbers of the paper, and its experiment measures with the truth."""

import itertools

import numpy as np
import pytest

from bica.errors import SettingError
from bica.experiments.campus import (
    BUILDING,
    CONTENDERS,
    HEARING_RANGE,
    LEARNERS,
    MEAN_ACTIVITY,
    N_SNIFFERS,
    N_USERS,
    ROOMS,
    USERS_ON,
    MonitoringRun,
    draw_campus,
    monitoring_plan,
)

SEEDS = range(3)
SHORT = {"n_sniffers": 5, "n_slots": 3000}


def campus_of(seed):
    return draw_campus(np.random.default_rng(seed))


@pytest.mark.parametrize("seed", SEEDS)
class TestCampus:
    def test_users_channels_and_activity_are_those_of_the_paper(self, seed):
        campus = campus_of(seed)
        assert campus.reach.shape == (N_SNIFFERS, N_USERS) == (21, 655)
        assert np.bincount(campus.channel).tolist() == list(USERS_ON.values()) == [382, 118, 155]
        assert campus.probability.mean() == pytest.approx(MEAN_ACTIVITY)
        heavy = campus.probability > 0.01
        assert 1 < heavy.sum() < 0.05 * N_USERS
        assert campus.probability[heavy].sum() > 0.3 * campus.probability.sum()

    def test_everybody_is_heard_and_users_of_a_room_by_the_same_sniffers(self, seed):
        campus = campus_of(seed)
        assert campus.reach.any(axis=0).all()
        for room in np.unique(campus.room):
            assert len(np.unique(campus.reach[:, campus.room == room], axis=1).T) == 1

    def test_everything_is_inside_the_building_and_near_is_heard_more_often_than_far(self, seed):
        campus = campus_of(seed)
        for places in (campus.sniffer_places, campus.room_places):
            assert ((places > 0) & (places < BUILDING)).all()
        distance = np.linalg.norm(campus.sniffer_places[:, None] - campus.room_places[campus.room], axis=2)
        assert campus.reach[distance < 0.5 * HEARING_RANGE].mean() > 0.95
        assert campus.reach[distance > 2 * HEARING_RANGE].mean() < 0.05

    def test_the_seed_decides(self, seed):
        one, same, other = campus_of(seed), campus_of(seed), campus_of(seed + 100)
        assert (one.reach == same.reach).all()
        assert (one.probability == same.probability).all()
        assert (one.reach != other.reach).any()

    def test_a_sniffer_shows_on_when_anybody_in_reach_is_active(self, seed):
        campus = campus_of(seed)
        n_slots = 4000
        rows = campus.observe(n_slots, np.random.default_rng(seed))
        for k, name in enumerate(USERS_ON):
            silent = np.where(campus.reach & (campus.channel == k), 1 - campus.probability, 1).prod(axis=1)
            assert rows[name].shape == (n_slots, N_SNIFFERS)
            # five standard errors, since 63 shares are compared in each campus
            assert np.abs(rows[name].mean(axis=0) - (1 - silent)).max() < 5 * np.sqrt(0.25 / n_slots)


def test_there_are_as_many_rooms_as_asked_for():
    assert draw_campus(np.random.default_rng(0)).room.max() < ROOMS[0] * ROOMS[1]
    finer = draw_campus(np.random.default_rng(0), (48, 16))
    assert len(finer.room_places) == 48 * 16
    assert len(np.unique(finer.reach, axis=1).T) > 3 * ROOMS[0] * ROOMS[1]
    with pytest.raises(SettingError, match="at least one room"):
        draw_campus(np.random.default_rng(0), (0, 3))


@pytest.fixture(scope="module")
def records():
    return {name: MonitoringRun(contender=name, seed=1000, **SHORT).perform() for name in CONTENDERS}


class TestRuns:
    def test_nobody_monitors_more_than_the_bound_of_the_truth(self, records):
        assert len({record["bound"] for record in records.values()}) == 1
        assert all(0 < record["value"] <= record["bound"] + 1e-9 for record in records.values())
        assert records["users"]["value"] >= max(record["value"] for record in records.values()) - 1e-3
        assert records["users"]["expected"] == records["users"]["value"]

    def test_the_value_is_that_of_true_users_who_are_seen(self, records):
        campus = draw_campus(np.random.default_rng([1000, 0]))
        order = np.random.default_rng([1000, 3]).permutation(N_SNIFFERS)
        chosen = order[: SHORT["n_sniffers"]]
        possible = set()
        for watched in itertools.product(range(3), repeat=len(chosen)):
            seen = (campus.reach[chosen] & (campus.channel == np.array(watched)[:, None])).any(axis=0)
            possible.add(round(campus.probability[seen].sum(), 9))
        assert all(round(record["value"], 9) in possible for record in records.values())
        assert max(possible) <= records["users"]["bound"] + 1e-9

    def test_learners_tell_what_they_expected_and_found(self, records):
        heard = records["users"]["n_heard"]
        for name in CONTENDERS:
            learned = name in LEARNERS
            assert (records[name]["n_found"] is not None) == learned
            assert not learned or 0 < records[name]["n_found"] <= heard
        assert records["max"]["expected"] is None

    def test_a_run_is_told_from_all_others_and_gives_the_same_again(self, records):
        run = MonitoringRun(contender="findbica", seed=1000, **SHORT)
        again = run.perform()
        assert {k: v for k, v in again.items() if k != "cpu_seconds"} == {
            k: v for k, v in records["findbica"].items() if k != "cpu_seconds"
        }
        assert run.key().items() <= again.items()
        keys = {tuple(job.key().values()) for job in monitoring_plan(2, (5, 7))}
        assert len(keys) == 2 * 2 * len(CONTENDERS)

    def test_strange_runs_are_refused(self):
        with pytest.raises(SettingError, match="no contender 'magic'"):
            MonitoringRun(contender="magic", seed=0, n_sniffers=5)
        with pytest.raises(SettingError, match="22 of them"):
            MonitoringRun(contender="max", seed=0, n_sniffers=22)
