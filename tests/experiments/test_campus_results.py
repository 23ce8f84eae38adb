"""Means over campuses compare contenders on the same campus."""

import pytest

from bica.experiments.campus import BOUND, TITLES, markdown_of_monitoring, monitoring_means


def records(values, n_sniffers=5):
    """Of every contender on every campus, the bound always 1."""
    return [
        {"contender": name, "seed": seed, "n_sniffers": n_sniffers, "value": value, "bound": 1.0}
        for name, column in values.items()
        for seed, value in enumerate(column)
    ]


VALUES = {"users": [0.8, 0.4], "likelihood": [0.8, 0.2], "findbica": [0.4, 0.4], "max": [0.3, 0.1]}


def test_shares_and_differences_are_taken_campus_by_campus():
    rows = {row["contender"]: row for row in monitoring_means(records(VALUES))}
    likelihood = rows[TITLES["likelihood"]]
    assert likelihood["mean"] == pytest.approx(0.5)
    assert likelihood["share_mean"] == pytest.approx((1 + 0.5) / 2)  # and not 0.5 / 0.6
    assert likelihood["above_max_mean"] == pytest.approx((0.5 + 0.1) / 2)
    # half of the 99 % interval of two values is Student's t, 63.657, times half their distance
    assert likelihood["above_max_high"] - likelihood["above_max_mean"] == pytest.approx(63.657 * 0.2, rel=1e-4)
    assert rows[TITLES["users"]]["share_low"] == rows[TITLES["users"]]["share_high"] == 1
    assert rows[BOUND]["mean"] == 1


def test_campuses_that_are_not_finished_do_not_count():
    unfinished = [record for record in records(VALUES) if (record["contender"], record["seed"]) != ("max", 1)]
    rows = {row["contender"]: row for row in monitoring_means(unfinished)}
    assert rows[TITLES["users"]]["n_runs"] == 1
    assert rows[TITLES["users"]]["mean"] == rows[TITLES["users"]]["low"] == 0.8
    nothing = [record for record in records(VALUES) if record["contender"] != "max"]
    assert monitoring_means(nothing) == []


def test_the_text_has_a_line_for_every_number_of_sniffers():
    means = monitoring_means(records(VALUES, 7) + records(VALUES, 5))
    lines = markdown_of_monitoring(means).splitlines()
    assert [line.split("|")[1].strip() for line in lines] == ["sniffers", "---:", "5", "7"]
    assert len({line.count("|") for line in lines}) == 1
    assert "75.0 ± " in lines[2]
