"""The picture of an assignment draws what the values say."""

import pytest

from bica.report.monitoring import MonitoringPicture, monitoring_chart
from bica.report.pictures import picture_bytes
from tests.report.test_figures import drawn, spec

PICTURE = MonitoringPicture(
    ["a", "b\x1b"], ["1", "6"], [[0.2, 0.5], [0.0, 0.1]], [1, -1], {"exact": 0.5, "max": 0.4}, 0.55
)


def test_cells_dots_and_bars_are_those_of_the_values():
    chart = spec(monitoring_chart(PICTURE))
    assert drawn(chart, "line", "column", "worth") == [("a", "1", 0.2), ("a", "6", 0.5), ("b\\x1b", "6", 0.1)]
    dots = chart["hconcat"][0]["layer"][-1]["data"]["values"]
    assert dots == [{"line": "a", "column": "6"}]
    assert drawn(chart, "line", "value") == [("exact", 0.5), ("max", 0.4), ("upper bound", 0.55)]


@pytest.mark.parametrize("picture", [PICTURE, MonitoringPicture([], [], [], [], {}, 0.0)])
def test_it_can_be_written(picture):
    assert picture_bytes(monitoring_chart(picture), ".png").startswith(b"\x89PNG")
