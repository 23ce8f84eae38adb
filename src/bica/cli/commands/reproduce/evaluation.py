"""``bica reproduce topologies`` and ``bica reproduce table``: the paper's evaluation, its figure and its times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from bica.cli.commands.reproduce import Function, experiment_options, run_in_folder, write_figure

if TYPE_CHECKING:
    from rich.table import Table

    from bica.compare.run import Record

_METHODS = click.option(
    "--methods", metavar="NAMES", help="Contenders, separated by commas.  [default: FindBICA, likelihood, mac, truth]"
)


def evaluation_options() -> Callable[[Function], Function]:
    """The options of an experiment, and which methods take part."""
    shared = experiment_options("bica-reproduce", 50, 1, "Three numbers of rows and one run: a first look.")
    return lambda function: shared(_METHODS(function))


def evaluated(output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None) -> list[Record]:
    """The records of the evaluation, FindBICA at its best setting."""
    from bica.experiments.evaluation import EVALUATED, QUICK_RUNS, evaluation_plan, with_best_findbica
    from bica.simulate import EVALUATION

    n_runs = runs or (QUICK_RUNS if quick else EVALUATION.n_runs)
    contenders = EVALUATED if methods is None else tuple(part.strip() for part in methods.split(","))
    plan = evaluation_plan(n_runs, contenders, quick=quick)
    return with_best_findbica(run_in_folder(plan, output, jobs))


@click.command()
@evaluation_options()
def topologies(
    output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None, as_json: bool
) -> None:
    """Draw the evaluation's figure: all error measures on four networks.

    Four topologies, five numbers of rows, with and without 10 % of the cells flipped; one row per measure, one
    line per method.
    """
    from bica.cli.screens import Screen, print_json
    from bica.compare import summarise
    from bica.experiments.evaluation import evaluation_chart, markdown_of_means
    from bica.simulate import TOPOLOGIES, topology

    means = summarise(evaluated(output, runs, quick, methods, jobs))
    networks = {f"topology {network}": topology(network) for network in TOPOLOGIES}
    write_figure(output, "topologies", evaluation_chart(means, networks), markdown_of_means(means))
    if as_json:
        print_json({"means": means})
        return
    largest = max(row["n_samples"] for row in means)
    shown = [row for row in means if row["measure"] == "hamming_distance" and row["n_samples"] == largest]
    screen = Screen()
    screen.print(f"share of wrong cells in the mixing of each topology, from {largest} rows:")
    screen.print(table_of(shown, "network"))


@click.command()
@evaluation_options()
def table(output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None, as_json: bool) -> None:
    """Show the evaluation's computation times: mean CPU seconds of a fit.

    The runs are those of `bica reproduce topologies`; in the same folder nothing is run twice.
    """
    from bica.cli.screens import Screen, print_json
    from bica.experiments.evaluation import markdown_of_times, mean_times, times_chart

    times = mean_times(evaluated(output, runs, quick, methods, jobs))
    write_figure(output, "table", times_chart(times), markdown_of_times(times))
    if as_json:
        print_json({"times": times})
        return
    screen = Screen()
    screen.print("mean CPU seconds of a fit on each topology, averaged over all else:")
    screen.print(table_of(times, "network"))


def table_of(rows: Sequence[Record], column: str) -> Table:
    """One line per method and noise level, one column per value that ``column`` has in the rows."""
    from rich import box
    from rich.table import Table

    titles = list(dict.fromkeys(row[column] for row in rows))
    table = Table("method", "flips", box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(str(title).removeprefix("topology "), justify="right", no_wrap=True)
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        flips = f"{100 * row['flip_rate']:g} %" if "flip_rate" in row else "all"
        lines.setdefault((row["contender"], flips), {})[row[column]] = row["mean"]
    for (method, flips), values in sorted(lines.items()):
        table.add_row(method, flips, *(f"{values[t]:.4f}" if t in values else "-" for t in titles))
    return table
