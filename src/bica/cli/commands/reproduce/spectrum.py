"""``bica reproduce spectrum``: the paper's separation of primary users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from bica.cli.commands.reproduce import experiment_options, run_in_folder, write_figure

if TYPE_CHECKING:
    from rich.table import Table

    from bica.compare.run import Record


@click.command()
@experiment_options("bica-spectrum", 50, 2, "5, 10 and 15 users, 2 runs: a first look.")
@click.option(
    "--methods", metavar="NAMES", help="Contenders, separated by commas.  [default: FindBICA, likelihood, truth]"
)
@click.option(
    "--reading",
    type=click.Choice(["rare", "uniform"]),
    default="rare",
    show_default=True,
    help="Of the users' activity: 2 % on average, or probabilities of a change from U(0, 1).",
)
def spectrum(
    output: str,
    runs: int | None,
    quick: bool,
    methods: str | None,
    jobs: int | None,
    as_json: bool,
    reading: Literal["rare", "uniform"],
) -> None:
    """Separate 5 to 20 primary users by what 10 monitors report.

    Fields of 500 m x 500 m, 10,000 slots, 0, 2 and 5 % of the reports flipped: errors of the mixing and of the
    activity, against the number of users and of those that can be told apart.
    """
    from bica.cli.screens import Screen, print_json
    from bica.experiments import spectrum as experiment
    from bica.experiments.spectrum_results import (
        ROWS,
        markdown_of_users,
        means_by,
        spectrum_errors_chart,
        with_best_findbica,
    )

    plan = experiment.spectrum_plan(
        experiment.CONTENDERS if methods is None else [part.strip() for part in methods.split(",")],
        n_users=experiment.QUICK_USERS if quick else experiment.N_USERS,
        n_runs=runs or (experiment.QUICK_RUNS if quick else experiment.N_RUNS),
        reading=reading,
    )
    records = with_best_findbica(run_in_folder(plan, output, jobs))
    by_users, by_distinct = means_by(records, "n_users"), means_by(records, "n_true")
    tables = [f"{title}, by the number of users:\n\n{markdown_of_users(by_users, m)}" for m, title in ROWS.items()]
    write_figure(output, "spectrum", spectrum_errors_chart(by_users, by_distinct), "\n\n".join(tables))
    if as_json:
        print_json({"by_users": by_users, "by_distinct": by_distinct})
        return
    screen = Screen()
    screen.print("share of wrong cells in the mixing, by the number of users:")
    screen.print(_table([row for row in by_users if row["measure"] == "hamming_distance"]))


def _table(rows: Sequence[Record]) -> Table:
    """One line per noise level and number of users, one column per method: tall rather than too wide."""
    from rich import box
    from rich.table import Table

    found = {(row["flip_rate"], row["number"], row["contender"]): row["mean"] for row in rows}
    methods = list(dict.fromkeys(row["contender"] for row in rows))
    table = Table("flips", "users", box=box.SIMPLE_HEAD, pad_edge=False)
    for method in methods:
        table.add_column(method, justify="right", no_wrap=True)
    for rate in sorted({row["flip_rate"] for row in rows}):
        for number in sorted({row["number"] for row in rows}):
            cells = (found.get((rate, number, method)) for method in methods)
            table.add_row(f"{100 * rate:g} %", str(number), *("-" if cell is None else f"{cell:.4f}" for cell in cells))
        table.add_section()
    return table
