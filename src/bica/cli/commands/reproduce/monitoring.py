"""``bica reproduce monitoring``: the paper's campus, on which sniffers choose their channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bica.cli.commands.reproduce import experiment_options, run_in_folder, write_figure

if TYPE_CHECKING:
    from rich.table import Table

    from bica.compare.run import Record

N_SNIFFERS = 21  # on the paper's campus


def _sizes(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Distinct numbers of sniffers, ascending."""
    if text is None:
        return None
    sizes = sorted({int(part) if part.strip().isdecimal() else 0 for part in text.split(",")})
    if not 1 <= sizes[0] <= sizes[-1] <= N_SNIFFERS:
        raise click.BadParameter(f"give numbers from 1 to {N_SNIFFERS} separated by commas, as in 5,13,21.")
    return tuple(sizes)


@click.command()
@experiment_options("bica-monitoring", 20, 3, "Three numbers of sniffers and three campuses: a first look.")
@click.option(
    "--sniffers",
    callback=_sizes,
    metavar="N,N,...",
    help="How many take part.  [default: 5,7,...,17,21; quick: 5,13,21]",
)
def monitoring(
    output: str, runs: int | None, quick: bool, jobs: int | None, as_json: bool, sniffers: tuple[int, ...] | None
) -> None:
    """Draw the figure of monitoring: active users watched on a campus.

    655 users on three channels, 5 to 21 sniffers that watch one channel each: with all users known, with users learned
    from six hours of zeros and ones, and with every sniffer on its busiest channel.
    """
    from bica.cli.screens import Screen, print_json
    from bica.experiments.campus import N_CAMPUSES, QUICK_CAMPUSES, QUICK_SIZES, SIZES, monitoring_plan
    from bica.experiments.campus_results import campus_chart, markdown_of_monitoring, monitoring_means

    n_campuses = runs or (QUICK_CAMPUSES if quick else N_CAMPUSES)
    plan = monitoring_plan(n_campuses, sniffers or (QUICK_SIZES if quick else SIZES))
    means = monitoring_means(run_in_folder(plan, output, jobs))
    write_figure(output, "monitoring", campus_chart(means), markdown_of_monitoring(means))
    if as_json:
        print_json({"means": means})
        return
    screen = Screen()
    screen.print("active users monitored on average, and as a share of those with users known:")
    screen.print(_table(means))


def _table(means: list[Record]) -> Table:
    """One column per number of sniffers; one line per contender, and one for its share of what known users give."""
    from rich import box
    from rich.table import Table

    table = Table("sniffers", box=box.SIMPLE_HEAD, pad_edge=False)
    for size in dict.fromkeys(row["n_sniffers"] for row in means):
        table.add_column(str(size), justify="right", no_wrap=True)
    for title in dict.fromkeys(row["contender"] for row in means):
        rows = [row for row in means if row["contender"] == title]
        table.add_row(title, *(f"{row['mean']:.3f}" for row in rows))
        table.add_row("", *(f"{row['share_mean']:.1%}" for row in rows), style="dim")
    return table
