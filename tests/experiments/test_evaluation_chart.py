import json

import altair as alt

from bica.experiments.evaluation import evaluation_chart, times_chart
from bica.model.or_mixture import OrMixture
from bica.report.figures import matching_chart
from bica.report.look import BAND_RUNS

NETWORKS = {name: OrMixture([[1, 1], [0, 1]], [0.2, 0.5]) for name in ("topology one", "topology two")}


def mean(contender, measure, network="topology one", n_runs=BAND_RUNS, value=0.2):
    place = {"contender": contender, "network": network, "n_samples": 50, "flip_rate": 0.1, "measure": measure}
    return place | {"mean": value, "low": value - 0.3, "high": value + 0.3, "n_runs": n_runs}


def plain(chart):
    """The chart as a document, with the data where they are drawn."""
    with alt.data_transformers.enable(consolidate_datasets=False):
        return chart.to_dict()


def drawn(chart):
    """All values of the chart, wherever they stand."""
    values = []

    def walk(node):
        if isinstance(node, dict):
            if isinstance(node.get("values"), list):
                values.extend(value for value in node["values"] if isinstance(value, dict))
            for part in node.values():
                walk(part)
        elif isinstance(node, list):
            for part in node:
                walk(part)

    walk(plain(chart))
    return values


def test_there_is_a_row_for_the_networks_and_for_every_measure_that_was_taken():
    chart = evaluation_chart([mean("MAC", "hamming_distance"), mean("MAC", "cpu_seconds")], NETWORKS).to_dict()
    assert len(chart["vconcat"]) == 3
    assert all(len(row["hconcat"]) == 2 for row in chart["vconcat"])


def test_means_and_bands_are_drawn_and_bands_end_at_zero():
    chart = evaluation_chart([mean("MAC", "hamming_distance")], NETWORKS)
    lines = [value for value in drawn(chart) if value.get("contender") == "MAC"]
    assert len(lines) == 2  # the line and its band
    assert all((value["mean"], value["low"], value["high"]) == (0.2, 0.0, 0.5) for value in lines)


def test_few_runs_have_no_band():
    chart = evaluation_chart([mean("MAC", "hamming_distance", n_runs=BAND_RUNS - 1)], NETWORKS)
    assert len([value for value in drawn(chart) if value.get("contender") == "MAC"]) == 1


def test_the_axis_reaches_as_far_as_the_means_in_all_columns():
    means = [mean("MAC", "f", value=0.1) | {"measure": "hamming_distance"}]
    means.append(mean("Likelihood", "hamming_distance", "topology two", value=1.0))
    text = json.dumps(evaluation_chart(means, NETWORKS).to_dict())
    assert text.count('"domain": [0, 1.15]') == 4  # a line and a band in both columns


def test_times_of_every_method_and_network_are_drawn():
    times = [{"contender": "MAC", "network": network, "mean": 0.5} for network in NETWORKS]
    assert [value["network"] for value in drawn(times_chart(times))] == list(NETWORKS)


def test_the_matching_picture_shows_where_found_and_true_differ():
    truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    found = OrMixture([[1, 0, 1], [1, 1, 0]], [0.4, 0.1, 0.3])
    panels = plain(matching_chart(found, truth))["hconcat"]
    titles = [panel["title"]["text"] for panel in panels]
    assert titles == ["Inferred", "Matched", "True", "Difference"]
    assert panels[1]["title"]["subtitle"] == "1 left over"
    assert panels[3]["title"]["subtitle"] == "0 of 4 cells"
    filled = [panel["layer"][1]["data"]["values"] for panel in panels]
    assert [len(cells) for cells in filled] == [4, 3, 3, 0]
