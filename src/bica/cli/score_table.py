"""All measures of a found model, with what each means."""

from rich.console import Console

from bica.cli.model_table import number, plain_table
from bica.metrics import Comparison

MEANING = {
    "n_found": "sources in MODEL",
    "n_true": "sources in TRUTH",
    "n_exact": "found with exactly the true sensors",
    "precision": "share of the found sources that are true",
    "recall": "share of the true sources that were found",
    "f1": "both in one number; 1 is best",
    "mean_probability_error": "mean difference of probability over the exact ones",
    "max_probability_error": "largest such difference",
    "hamming_distance": "share of wrong cells after matching; 0 is best",
    "in_degree_error": "difference of the number of edges into sensors; 0 is best",
    "structure_error": "wrong entries of the sensor graph; 0 is best",
    "transmission_probability_error": "divergence of the matched probabilities; 0 is best",
    "n_missing": "true sources without a match",
}


def show_score(screen: Console, comparison: Comparison) -> None:
    """One line a measure."""
    table = plain_table("measure")
    table.columns[0].max_width = None
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning", overflow="fold")
    for name, value in comparison.as_dict().items():
        table.add_row(name, _value(value), MEANING[name])
    screen.print(table)


def _value(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else number(value)
