"""The pictures of both applications draw what the values say."""

import numpy as np
import pytest

pytest.importorskip("altair")

from bica.experiments.spectrum import spectrum_errors_chart
from bica.report.applications import FoundUser, MonitoringPicture, SpectrumMap, monitoring_chart, spectrum_map_chart
from bica.report.pictures import picture_bytes
from tests.report.test_figures import drawn as drawn_in
from tests.report.test_figures import spec

PICTURE = MonitoringPicture(
    ["a", "b\x1b"], ["1", "6"], [[0.2, 0.5], [0.0, 0.1]], [1, -1], {"exact": 0.5, "max": 0.4}, 0.55
)


def test_cells_dots_and_bars_are_those_of_the_values():
    chart = spec(monitoring_chart(PICTURE))
    assert drawn_in(chart, "line", "column", "worth") == [("a", "1", 0.2), ("a", "6", 0.5), ("b\\x1b", "6", 0.1)]
    dots = chart["hconcat"][0]["layer"][-1]["data"]["values"]
    assert dots == [{"line": "a", "column": "6"}]
    assert drawn_in(chart, "line", "value") == [("exact", 0.5), ("max", 0.4), ("upper bound", 0.55)]


@pytest.mark.parametrize("picture", [PICTURE, MonitoringPicture([], [], [], [], {}, 0.0)])
def test_it_can_be_written(picture):
    assert picture_bytes(monitoring_chart(picture), ".png").startswith(b"\x89PNG")


USERS = [FoundUser("a", (100.0, 100.0), 30.0, 0.02), FoundUser("b\x1b", (300.0, 200.0), 60.0, 0.1)]


def drawn(**settings):
    monitors = [("m1", 90.0, 90.0), ("m2", 310.0, 220.0)]
    return SpectrumMap(500.0, 126.0, monitors, USERS, [[0.0, 0.1], [0.02, 0.1]], quiet=[0.98, 0.9], **settings)


def values_in(chart):
    """All rows of data that a chart draws."""
    return [row for values in chart.to_dict()["datasets"].values() for row in values]


def test_the_map_tells_when_users_transmit_and_when_nobody_does():
    activity = np.array([[1, 0], [1, 0], [0, 0], [0, 1]], bool)
    chart = spectrum_map_chart(drawn(activity=activity, first_slot=10))
    spans = {(row["line"], row["from"], row["to"]) for row in values_in(chart) if "to" in row}
    assert spans == {("a", 10, 12), ("b\\x1b", 13, 14), ("nobody", 12, 13)}
    assert picture_bytes(spectrum_map_chart(drawn(activity=activity)), ".svg").startswith(b"<svg")


def test_circles_have_the_radius_of_the_radio():
    rows = values_in(spectrum_map_chart(drawn()))
    points = [row for row in rows if "angle" in row and row["name"] == "a"]
    distance = {round(float(np.hypot(row["x"] - 100, row["y"] - 100))) for row in points}
    assert distance == {30, 126}


def test_a_map_without_users_can_be_drawn():
    empty = SpectrumMap(500.0, 126.0, [("m1", 1.0, 1.0)], [], [[0.0]], quiet=[1.0])
    assert picture_bytes(spectrum_map_chart(empty), ".svg").startswith(b"<svg")


@pytest.mark.slow
def test_the_errors_are_drawn_by_users_and_by_those_told_apart():
    rows = [
        {"contender": "A", "flip_rate": rate, "number": number, "measure": measure, "mean": 0.1, "low": 0.0,
         "high": 0.2, "n_runs": 9}
        for rate in (0.0, 0.05) for number in (5, 10)
        for measure in ("hamming_distance", "exact", "activity_error", "activity_error_in_time")
    ]  # fmt: skip
    chart = spectrum_errors_chart(rows, rows).to_dict()
    by_users, by_distinct = chart["vconcat"]
    assert (len(by_users["vconcat"]), len(by_distinct["vconcat"])) == (4, 2)
    assert len(by_users["vconcat"][0]["hconcat"]) == 2
