"""All measures of a found model, with what each means."""

from collections.abc import Mapping

from rich import box
from rich.console import Console
from rich.table import Table

from bica.cli.model_table import number

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
    "n_missing": "true sources that none stands for",
    "activity_error_ratio": "share of wrong cells in the activity",
}


def show_score(screen: Console, measures: Mapping[str, float | None]) -> None:
    """One line a measure."""
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
