"""The picture of the campus experiment draws the means, and bands only where they say something."""

import pytest

from bica.experiments.campus import LINES, campus_chart
from bica.report.look import BAND_RUNS
from bica.report.pictures import picture_bytes
from tests.report.test_figures import spec


def means(n_runs=BAND_RUNS):
    return [
        {"contender": name, "n_sniffers": size, "n_runs": n_runs}
        | {f"{part}{end}": 0.5 + shift for part in ("", "above_max_") for end, shift in ENDS.items()}
        for name in (*LINES, "upper bound")
        for size in (5, 7)
    ]


ENDS = {"mean": 0.0, "low": -0.1, "high": 0.1}


def drawn(chart):
    """Per panel and kind of mark, the contenders drawn, in their order."""
    panels = []
    for panel in chart["hconcat"]:
        marks = {}
        for layer in panel["layer"]:
            names = [row["contender"] for row in layer["data"]["values"]]
            marks.setdefault(layer["mark"]["type"], []).extend(dict.fromkeys(names))
        panels.append(marks)
    return panels


def test_the_lines_of_the_paper_stand_beside_what_is_more_than_by_max():
    values, above = drawn(spec(campus_chart(means())))
    assert values == {"area": list(LINES), "line": list(LINES)}
    assert above == {"area": list(LINES)[:3], "line": list(LINES)[:3]}


def test_few_campuses_have_no_bands():
    values, _ = drawn(spec(campus_chart(means(BAND_RUNS - 1))))
    assert values == {"area": [], "line": list(LINES)}


def test_the_axes_reach_as_far_as_the_bands():
    above = spec(campus_chart(means()))["hconcat"][1]
    assert above["layer"][-1]["encoding"]["y"]["scale"]["domain"] == [0, 0.6]


@pytest.mark.slow
def test_it_can_be_written():
    assert picture_bytes(campus_chart(means()), ".png").startswith(b"\x89PNG")
    assert picture_bytes(campus_chart([]), ".png").startswith(b"\x89PNG")
