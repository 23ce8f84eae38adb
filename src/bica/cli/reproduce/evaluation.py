"""What the figure and the table of the evaluation share: the same runs, and a line a method on the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from bica.cli.reproduce.folder import run_in_folder
from bica.cli.reproduce.options import Function, experiment_options

if TYPE_CHECKING:
    from rich.table import Table

    from bica.compare.records import Record

_METHODS = click.option(
    "--methods", metavar="NAMES", help="Contenders, separated by commas.  [default: FindBICA, likelihood, mac, truth]"
)


def evaluation_options() -> Callable[[Function], Function]:
    """The options of an experiment, and who takes part."""
    shared = experiment_options("bica-reproduce", 50, 1, "Three numbers of rows and one run: a first look.")
    return lambda function: shared(_METHODS(function))


def evaluated(output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None) -> list[Record]:
    """The records of the evaluation, FindBICA at its best setting."""
    from bica.compare.evaluation import EVALUATED, QUICK_RUNS, evaluation_plan, with_best_findbica
    from bica.simulate import EVALUATION

    n_runs = runs or (QUICK_RUNS if quick else EVALUATION.n_runs)
    contenders = EVALUATED if methods is None else tuple(part.strip() for part in methods.split(","))
    plan = evaluation_plan(n_runs, contenders, quick=quick)
    return with_best_findbica(run_in_folder(plan, output, jobs))


def table_of(rows: Sequence[Record]) -> Table:
    """A line for every method and noise level, a column for every topology."""
    from rich import box
    from rich.table import Table

    networks = list(dict.fromkeys(row["network"] for row in rows))
    table = Table("method", "flips", box=box.SIMPLE_HEAD, pad_edge=False)
    for network in networks:
        table.add_column(network.removeprefix("topology "), justify="right", no_wrap=True)
    for (method, flips), values in sorted(_lines(rows).items()):
        table.add_row(method, flips, *(f"{values[n]:.4f}" if n in values else "-" for n in networks))
    return table


def _lines(rows: Sequence[Record]) -> dict[tuple[str, str], dict[str, float]]:
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        flips = f"{100 * row['flip_rate']:g} %" if "flip_rate" in row else "all"
        lines.setdefault((row["contender"], flips), {})[row["network"]] = row["mean"]
    return lines
