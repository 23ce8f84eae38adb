"""``bica reproduce``: the paper's experiments, one command each, and what they share: options, folder, pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from bica.cli.app import LazyGroup
from bica.cli.options import json_option, note, print_json, screen_for, waiting

if TYPE_CHECKING:
    from rich.table import Table

    from bica.compare.run import Job, Record


COMMANDS = {
    "topologies": (
        "bica.cli.commands.reproduce",
        "The evaluation's figure: all error measures on four networks.",
    ),
    "table": ("bica.cli.commands.reproduce", "The evaluation's computation times."),
    "monitoring": (
        "bica.cli.commands.reproduce",
        "Active users watched on a campus, against the number of sniffers.",
    ),
    "spectrum": ("bica.cli.commands.reproduce", "Primary users separated by what ten monitors report."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def reproduce() -> None:
    """Run the paper's experiments again: results, figures and tables.

    Each writes a folder. To continue a run that was killed, give the same command again. Start with --quick. Pictures
    need "bica[report]".
    """


Function = TypeVar("Function", bound=Callable[..., Any])


def experiment_options(folder: str, n_runs: int, quick_runs: int, quick: str) -> Callable[[Function], Function]:
    """``-o``, ``--runs``, ``--quick``, ``--jobs`` and ``--json``, with this experiment's folder and sizes."""
    runs = f"Seeds for every cell.  [default: {n_runs}; quick: {quick_runs}]"
    options = (
        click.option("-o", "--output", metavar="FOLDER", default=folder, show_default=True, help="Where results go."),
        click.option("--runs", type=click.IntRange(min=1), metavar="N", help=runs),
        click.option("--quick", is_flag=True, help=quick),
        click.option(
            "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes at a time.  [default: one per core]"
        ),
        json_option,
    )

    def decorated(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


RESULTS = "results.jsonl"


def run_in_folder(plan: Sequence[Job], output: str, n_jobs: int | None) -> list[Record]:
    """The records of the plan, of which only what is missing is run; they are also written as a table in the folder."""
    from bica.compare import run_plan, write_table

    folder = _ready(Path(output))
    with waiting("evaluating"):
        records = run_plan(plan, folder / RESULTS, n_jobs=-1 if n_jobs is None else n_jobs)
    write_table(records, folder / "results.csv", overwrite=True)
    return records


def _ready(folder: Path) -> Path:
    """The folder, new or with the results of an earlier run; any other files in it are an error."""
    from bica.errors import OutputError
    from bica.report.pictures import need_drawing

    need_drawing()
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RESULTS).exists():
        raise OutputError(f"{folder} holds other files; name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror or error}") from error
    return folder


def write_figure(output: str, name: str, chart: Any, text: str) -> None:
    """Write the figure in every format of pictures, and its numbers as text."""
    from bica.output import write_whole
    from bica.report.pictures import FORMATS, save_picture

    folder = Path(output)
    with waiting("drawing pictures"):
        for ending in FORMATS:
            save_picture(chart, folder / f"{name}{ending}", overwrite=True)
        write_whole(folder / f"{name}.md", text + "\n", overwrite=True)
    note(f"the results and {name}{{{','.join(FORMATS)},.md}} are in {folder}")


_METHODS = click.option(
    "--methods",
    metavar="NAMES",
    help="Contenders, separated by commas.  [default: FindBICA, likelihood sure, mac, truth]",
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
    screen = screen_for()
    screen.print(f"share of wrong cells in the mixing of each topology, from {largest} rows:")
    screen.print(table_of(shown, "network"))


@click.command()
@evaluation_options()
def table(output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None, as_json: bool) -> None:
    """Show the evaluation's computation times: mean CPU seconds of a fit.

    The runs are those of `bica reproduce topologies`; in the same folder nothing is run twice.
    """
    from bica.experiments.evaluation import markdown_of_times, mean_times, times_chart

    times = mean_times(evaluated(output, runs, quick, methods, jobs))
    write_figure(output, "table", times_chart(times), markdown_of_times(times))
    if as_json:
        print_json({"times": times})
        return
    screen = screen_for()
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
    from bica.experiments.campus import (
        N_CAMPUSES,
        QUICK_CAMPUSES,
        QUICK_SIZES,
        SIZES,
        campus_chart,
        markdown_of_monitoring,
        monitoring_means,
        monitoring_plan,
    )

    n_campuses = runs or (QUICK_CAMPUSES if quick else N_CAMPUSES)
    plan = monitoring_plan(n_campuses, sniffers or (QUICK_SIZES if quick else SIZES))
    means = monitoring_means(run_in_folder(plan, output, jobs))
    write_figure(output, "monitoring", campus_chart(means), markdown_of_monitoring(means))
    if as_json:
        print_json({"means": means})
        return
    screen = screen_for()
    screen.print("active users monitored on average, and as a share of those with users known:")
    screen.print(_sniffer_table(means))


def _sniffer_table(means: list[Record]) -> Table:
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
    from bica.experiments import spectrum as experiment

    plan = experiment.spectrum_plan(
        experiment.CONTENDERS if methods is None else [part.strip() for part in methods.split(",")],
        n_users=experiment.QUICK_USERS if quick else experiment.N_USERS,
        n_runs=runs or (experiment.QUICK_RUNS if quick else experiment.N_RUNS),
        reading=reading,
    )
    records = experiment.with_best_findbica(run_in_folder(plan, output, jobs))
    by_users, by_distinct = experiment.means_by(records, "n_users"), experiment.means_by(records, "n_true")
    tables = [
        f"{title}, by the number of users:\n\n{experiment.markdown_of_users(by_users, m)}"
        for m, title in experiment.ROWS.items()
    ]
    write_figure(output, "spectrum", experiment.spectrum_errors_chart(by_users, by_distinct), "\n\n".join(tables))
    if as_json:
        print_json({"by_users": by_users, "by_distinct": by_distinct})
        return
    screen = screen_for()
    screen.print("share of wrong cells in the mixing, by the number of users:")
    screen.print(_user_table([row for row in by_users if row["measure"] == "hamming_distance"]))


def _user_table(rows: Sequence[Record]) -> Table:
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
