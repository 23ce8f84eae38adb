"""Figures draw what the values say."""

import altair as alt
import numpy as np
import pytest

from bica.errors import SettingError
from bica.model.or_mixture import OrMixture
from bica.report.figures import activity_chart, found_and_true_chart, mixing_chart, network_chart, overview_chart
from bica.text import Nouns

MODEL = OrMixture([[1, 1], [0, 1], [0, 0]], [0.2, 0.5], sensors=["hall", "door", "yard"], names=["cat", None])
HOSTILE = OrMixture(
    [[1, 1], [1, 0], [0, 1]],
    [0.2, 0.5],
    sensors=["</script>", "bell\x1b\x00", "bell\\x1b\\x00"],
    names=["twin", "twin"],
)
EMPTY = OrMixture(np.zeros((2, 0)), [])


def drawn(chart, *keys):
    """All values inside the chart that have these keys, as tuples."""
    found = []

    def walk(part):
        if isinstance(part, dict):
            if part.keys() >= set(keys):
                found.append(tuple(part[key] for key in keys))
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk(chart)
    return found


def spec(chart):
    """The chart as Vega-Lite reads it, with the values inside the marks that draw them."""
    with alt.data_transformers.enable(consolidate_datasets=False):
        return chart.to_dict(validate=True)


def panels(chart):
    return spec(chart)["hconcat"]


def layer_values(panel, layer):
    marks = panel["layer"][layer]
    return marks["data"]["values"]


class TestMixing:
    def test_a_cell_is_filled_where_a_source_reaches_a_sensor(self):
        cells, _ = panels(mixing_chart(MODEL))
        filled = {(cell["line"], cell["column"]) for cell in layer_values(cells, 1)}
        assert filled == {("cat", "hall"), ("source2", "hall"), ("source2", "door")}

    def test_every_source_and_sensor_has_its_place(self):
        cells, _ = panels(mixing_chart(MODEL))
        assert len(layer_values(cells, 0)) == 6
        assert cells["layer"][0]["encoding"]["x"]["scale"]["domain"] == ["hall", "door", "yard"]
        assert cells["layer"][0]["encoding"]["y"]["scale"]["domain"] == ["cat", "source2"]

    def test_the_title_has_the_words_of_the_user(self):
        cells, _ = panels(mixing_chart(MODEL, Nouns(sensors="symptoms", sources="diseases")))
        assert (cells["title"]["text"], cells["title"]["subtitle"]) == ("Diseases", "and the symptoms they reach")

    def test_bars_are_the_probabilities(self):
        _, bars = panels(mixing_chart(MODEL))
        assert drawn(bars, "line", "probability", "label") == [
            ("cat", 0.2, "0.200"),
            ("source2", 0.5, "0.500"),
        ]


class TestOverview:
    def test_the_table_is_dark_where_a_sensor_is_on(self):
        rows = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=bool)
        table = panels(overview_chart(rows, MODEL, 5000))[0]
        on = {(cell["line"], cell["column"]) for cell in layer_values(table, 1)}
        assert on == {("1", "hall"), ("3", "hall"), ("3", "door")}
        assert table["title"]["subtitle"].startswith("3 of 5000 rows")

    def test_sources_stand_beside_it(self):
        *_, cells, bars = panels(overview_chart(np.zeros((4, 3), bool), MODEL))
        assert len(layer_values(cells, 1)) == 3
        assert [value for _, value in drawn(bars, "line", "probability")] == [0.2, 0.5]


class TestFoundAndTrue:
    FOUND = OrMixture([[0, 1], [1, 0], [0, 1]], [0.4, 0.01], sensors=["yard", "hall", "door"])

    def test_cells_are_found_missed_or_wrong(self):
        cells, _ = panels(found_and_true_chart(self.FOUND, MODEL))
        assert sorted(drawn(cells, "line", "column", "kind")) == [
            ("cat", "hall", "found"),
            ("source2", "door", "found"),
            ("source2", "hall", "missed"),
            ("source2", "yard", "wrong"),
        ]
        assert cells["title"]["subtitle"] == "1 of 2 sources found exactly, 2 found in all"

    def test_both_probabilities_are_there(self):
        _, dots = panels(found_and_true_chart(self.FOUND, MODEL))
        assert sorted(drawn(dots, "line", "which", "probability")) == [
            ("cat", "found", 0.4),
            ("cat", "true", 0.2),
            ("source2", "found", 0.01),
            ("source2", "true", 0.5),
        ]

    def test_missing_and_spurious_sources_have_lines_of_their_own(self):
        found = OrMixture([[0], [0], [1]], [0.1], sensors=MODEL.sensors)
        cells, _ = panels(found_and_true_chart(found, MODEL))
        kinds = {(line, kind) for line, _, kind in drawn(cells, "line", "column", "kind")}
        assert kinds == {("cat", "missed"), ("source2", "missed"), ("source1 (found)", "wrong")}


class TestNetwork:
    def test_a_line_joins_each_source_with_its_sensors(self):
        chart = spec(network_chart(MODEL))
        heights = dict(drawn(chart, "name", "y"))
        joined = {(y, y2) for y, y2 in drawn(chart, "y", "y2") if isinstance(y, float)}
        cat, other = heights["cat · 0.200"], heights["source2 · 0.500"]
        assert joined == {(cat, heights["hall"]), (other, heights["hall"]), (other, heights["door"])}
        assert 0 < heights["hall"] < heights["door"] < heights["yard"] < 1

    def test_of_many_sources_the_likeliest_are_drawn(self):
        chain = np.eye(80, dtype=bool) | np.eye(80, k=1, dtype=bool)
        model = OrMixture(chain, np.linspace(0.1, 0.4, 80))
        names = {name for (name,) in drawn(spec(network_chart(model)), "name") if "source" in str(name)}
        assert len(names) == 30
        assert {name.partition(" ")[0] for name in names} == {f"source{j}" for j in range(51, 81)}

    @pytest.mark.parametrize(
        ("near", "drawn_names"), [("x4", {"source5", "source6"}), ("source6", {"source5", "source6", "source7"})]
    )
    def test_a_name_is_drawn_with_its_neighbours(self, near, drawn_names):
        model = OrMixture(np.eye(80, dtype=bool) | np.eye(80, k=1, dtype=bool), np.full(80, 0.1))
        names = {name for (name,) in drawn(spec(network_chart(model, near)), "name") if name is not None}
        assert {name.partition(" ")[0] for name in names if "source" in name} == drawn_names
        with pytest.raises(SettingError, match="no sensor or source 'garden'"):
            network_chart(model, "garden")

    def test_numbers_that_would_lie_on_each_other_are_left_out(self):
        layers = [
            len(spec(mixing_chart(OrMixture(np.eye(n, dtype=bool), np.full(n, 0.1))))["hconcat"][1]["layer"])
            for n in (20, 200)
        ]
        assert layers == [2, 1]


@pytest.mark.parametrize("model", [MODEL, HOSTILE, EMPTY], ids=["plain", "hostile", "empty"])
def test_every_chart_is_valid_and_its_names_can_be_drawn(model):
    charts = [mixing_chart(model), network_chart(model), found_and_true_chart(model, model)]
    charts.append(overview_chart(np.zeros((0, model.n_sensors), bool), model))
    for chart in charts:
        names = [name for name, *_ in drawn(spec(chart), "column")]
        assert all(name.isprintable() for name in names if isinstance(name, str))


def test_names_that_look_the_same_stay_apart():
    cells, _ = panels(mixing_chart(HOSTILE))
    assert cells["layer"][0]["encoding"]["x"]["scale"]["domain"][1:] == [r"bell\x1b\x00", r"bell\x1b\x00 (2)"]
    assert cells["layer"][0]["encoding"]["y"]["scale"]["domain"] == ["twin", "twin (2)"]


def test_cells_of_lossy_edges_are_paler():
    chart = mixing_chart(OrMixture([[1, 0], [1, 1]], [0.2, 0.5], reach=[[0.5, 0], [1, 0.9]])).to_dict()
    cells = next(layer for layer in chart["hconcat"][0]["layer"] if "opacity" in layer["encoding"])
    values = cells["data"]["values"] if "values" in cells["data"] else chart["datasets"][cells["data"]["name"]]
    assert [value["reach"] for value in values] == [0.5, 1.0, 0.9]
    assert "opacity" not in str(mixing_chart(OrMixture([[1]], [0.5])).to_dict()["hconcat"][0]["layer"][1]["encoding"])


class TestActivity:
    def marks(self, times=None):
        chart = spec(activity_chart(["lift"], np.array([[True], [False]] * 40), times, Nouns(rows="days")))
        encoding = chart["layer"][0]["encoding"]
        assert encoding["color"]["legend"]["title"] == "share of days"
        return encoding["x"]["axis"]

    def test_some_bins_say_where_they_begin(self):
        axis = self.marks()
        assert len(axis["values"]) == 5
        assert '"0": "row 1"' in axis["labelExpr"]

    def test_days_are_enough_where_they_differ(self):
        days = np.datetime64("2026-03-01T00:30") + np.arange(80) * np.timedelta64(12, "h")
        assert '"0": "2026-03-01"' in self.marks(days)["labelExpr"]
        minutes = np.datetime64("2026-03-01T00:30") + np.arange(80) * np.timedelta64(1, "m")
        assert '"0": "2026-03-01 00:30:00"' in self.marks(minutes)["labelExpr"]
