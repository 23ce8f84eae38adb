"""``bica reproduce``: the paper's evaluation, with one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bica.cli.options import json_option

if TYPE_CHECKING:
    from bica.cli.screen import Screen
    from bica.compare.task import Record

RESULTS = "results.jsonl"


@click.command()
@click.argument("name", type=click.Choice(["topologies", "table"]))
@click.option("-o", "--output", metavar="FOLDER", default="bica-reproduce", show_default=True, help="Where results go.")
@click.option("--runs", type=click.IntRange(min=1), metavar="N", help="Seeds for every cell.  [default: 50; quick: 2]")
@click.option("--quick", is_flag=True, help="Three numbers of rows and two runs: a first look in two minutes.")
@click.option(
    "--methods", metavar="NAMES", help="Contenders, separated by commas.  [default: FindBICA, likelihood, mac]"
)
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes at a time.  [default: one a core]")
@json_option
def reproduce(
    name: str, output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None, as_json: bool
) -> None:
    """Run the paper's evaluation: its figure of errors, or its table of times.

    Four topologies, five numbers of rows, with and without noise. NAME is `topologies` for the figure of all error
    measures, or `table` for the computation times. A run that was killed continues where it was: give the same command
    again. Pictures need "bica[report]".
    """
    from bica.cli.screen import note, print_json, screen_for
    from bica.cli.waiting import waiting
    from bica.compare import run_plan, summarise, write_table
    from bica.compare.evaluation import EVALUATED, QUICK_RUNS, evaluation_plan, mean_times, with_best_findbica
    from bica.simulate import EVALUATION

    folder = _ready_folder(Path(output))
    n_runs = runs or (QUICK_RUNS if quick else EVALUATION.n_runs)
    contenders = EVALUATED if methods is None else tuple(part.strip() for part in methods.split(","))
    plan = evaluation_plan(n_runs, contenders, quick=quick)
    with waiting("evaluating"):
        records = run_plan(plan, folder / RESULTS, n_jobs=jobs)
    write_table(records, folder / "results.csv", overwrite=True)
    lines = with_best_findbica(records)
    means, times = summarise(lines), mean_times(lines)
    with waiting("drawing pictures", compiles=False):
        written = _write_figures(name, folder, means, times)
    note(f"the results and {written} are in {folder}")
    if as_json:
        print_json({"means": means} if name == "topologies" else {"times": times})
    else:
        _show(screen_for(), name, means, times)


def _ready_folder(folder: Path) -> Path:
    """A new folder, or one that holds the results of an earlier run and nothing that would be lost."""
    from bica.errors import OutputError
    from bica.report.extra import need_drawing

    need_drawing()
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RESULTS).exists():
        raise OutputError(f"{folder} holds other files; name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror or error}") from error
    return folder


def _write_figures(name: str, folder: Path, means: list[Record], times: list[Record]) -> str:
    from bica.compare.evaluation import markdown_of_means, markdown_of_times
    from bica.output import write_whole
    from bica.report.evaluation import evaluation_chart, times_chart
    from bica.report.pictures import FORMATS, save_picture
    from bica.simulate import TOPOLOGIES, topology

    chart: Any
    if name == "topologies":
        networks = {f"topology {network}": topology(network) for network in TOPOLOGIES}
        chart, text = evaluation_chart(means, networks), markdown_of_means(means)
    else:
        chart, text = times_chart(times), markdown_of_times(times)
    for ending in FORMATS:
        save_picture(chart, folder / f"{name}{ending}", overwrite=True)
    write_whole(folder / f"{name}.md", text + "\n", overwrite=True)
    return f"{name}{{{','.join(FORMATS)},.md}}"


def _show(screen: Screen, name: str, means: list[Record], times: list[Record]) -> None:
    """The distance of the mixing at the largest number of rows, or the times."""
    from rich import box
    from rich.table import Table

    rows = times
    if name == "topologies":
        largest = max(row["n_samples"] for row in means)
        screen.print(f"share of wrong cells in the mixing of each topology, from {largest} rows:")
        rows = [row for row in means if row["measure"] == "hamming_distance" and row["n_samples"] == largest]
    else:
        screen.print("mean CPU seconds of a fit on each topology, over all else:")
    networks = list(dict.fromkeys(row["network"] for row in rows))
    table = Table("method", "flips", box=box.SIMPLE_HEAD, pad_edge=False)
    for network in networks:
        table.add_column(network.removeprefix("topology "), justify="right", no_wrap=True)
    for (method, flips), values in sorted(_lines(rows).items()):
        table.add_row(method, flips, *(f"{values[n]:.4f}" if n in values else "-" for n in networks))
    screen.print(table)


def _lines(rows: list[Record]) -> dict[tuple[str, str], dict[str, float]]:
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        flips = f"{100 * row['flip_rate']:g} %" if "flip_rate" in row else "all"
        lines.setdefault((row["contender"], flips), {})[row["network"]] = row["mean"]
    return lines
