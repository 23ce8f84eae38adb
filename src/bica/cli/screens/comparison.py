"""Found sources beside the true ones, and all measures with their meanings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bica.cli.screens.model import number, plain_table, sensor_list
from bica.metrics.matching import aligned
from bica.model.or_mixture import OrMixture
from bica.report.pairing import paired_sources
from bica.text import harmless


def comparison_values(found: OrMixture, truth: OrMixture) -> list[dict[str, Any]]:
    """One entry per true source, then one per found source that matches none; None where there is no counterpart."""
    true, ours = _sources(truth, truth.sensors), _sources(aligned(found, truth), truth.sensors)
    return [
        {
            "true": None if pair.true is None else true[pair.true],
            "found": None if pair.found is None else ours[pair.found],
            "exact": pair.exact,
        }
        for pair in paired_sources(found, truth)
    ]


def _sources(model: OrMixture, sensors: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "sensors": [sensors[i] for i in np.flatnonzero(column).tolist()], "probability": probability}
        for name, column, probability in zip(
            model.source_names(), model.mixing.T, model.probability.tolist(), strict=True
        )
    ]


def show_comparison(screen: Console, found: OrMixture, truth: OrMixture) -> None:
    """Print the sources side by side, ticked where the sensors agree exactly."""
    pairs = comparison_values(found, truth)
    screen.print(comparison_table(pairs, tick="yes" if screen.options.ascii_only else "✓"))
    exact = sum(pair["exact"] for pair in pairs)
    others = found.n_sources - exact
    screen.print(f"{exact} of {truth.n_sources} true sources found exactly, and {others or 'no'} others")


def comparison_table(pairs: list[dict[str, Any]], tick: str) -> Table:
    """One line per pair; a found source with other sensors than the true one gets a line of its own below."""
    table = plain_table("source")
    table.add_column("sensors", overflow="fold")
    table.add_column("true", justify="right", no_wrap=True)
    table.add_column("found", justify="right", no_wrap=True)
    table.add_column("exact", justify="center", no_wrap=True)
    for pair in pairs:
        true, found = pair["true"], pair["found"]
        if true is not None:
            ours = number(found["probability"]) if found else "-"
            name, sensors = Text(harmless(true["name"])), sensor_list(true["sensors"])
            table.add_row(name, sensors, number(true["probability"]), ours, tick if pair["exact"] else "no")
        if found is not None and not pair["exact"]:
            below = "  found as" if true else f"{harmless(found['name'])} (spurious)"
            ours = "" if true else number(found["probability"])
            table.add_row(Text(below), sensor_list(found["sensors"]), "" if true else "-", ours, "" if true else "no")
    return table


MEANING = {
    "n_found": "sources in MODEL",
    "n_true": "sources in TRUTH",
    "n_exact": "found with exactly their sensors",
    "precision": "exact among the found",
    "recall": "exact among the true",
    "f1": "both in one; 1 is perfect",
    "mean_probability_error": "over the exact ones",
    "max_probability_error": "over the exact ones",
    "hamming_distance": "share of wrong cells in the mixing",
    "in_degree_error": "sources of a sensor, off in total",
    "structure_error": "sources of a pair, off in total",
    "transmission_probability_error": "divergence of the probabilities",
    "n_missing": "true sources without a match",
    "edge_f1": "edges of matched sources; 1 is perfect",
    "mean_reach_error": "over right edges that rows can tell",
    "max_reach_error": "over right edges that rows can tell",
    "activity_error_ratio": "share of wrong cells in the activity",
}


def show_score(screen: Console, measures: Mapping[str, float | None]) -> None:
    """Print one line per measure."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name, value in measures.items():
        table.add_row(name, _value(value), MEANING[name])
    screen.print(table)


def _value(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else number(value)
