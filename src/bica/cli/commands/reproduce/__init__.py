"""``bica reproduce``: the paper's experiments, one command each, and what they share: options, folder, pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bica.cli.app import LazyGroup
from bica.cli.options import json_option

if TYPE_CHECKING:
    from bica.compare.run import Job, Record

COMMANDS = {
    "topologies": (
        "bica.cli.commands.reproduce.evaluation",
        "The evaluation's figure: all error measures on four networks.",
    ),
    "table": ("bica.cli.commands.reproduce.evaluation", "The evaluation's computation times."),
    "monitoring": (
        "bica.cli.commands.reproduce.monitoring",
        "Active users watched on a campus, against the number of sniffers.",
    ),
    "spectrum": ("bica.cli.commands.reproduce.spectrum", "Primary users separated by what ten monitors report."),
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
    from bica.cli.screens import waiting
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
    from bica.cli.screens import note, waiting
    from bica.output import write_whole
    from bica.report.pictures import FORMATS, save_picture

    folder = Path(output)
    with waiting("drawing pictures", compiles=False):
        for ending in FORMATS:
            save_picture(chart, folder / f"{name}{ending}", overwrite=True)
        write_whole(folder / f"{name}.md", text + "\n", overwrite=True)
    note(f"the results and {name}{{{','.join(FORMATS)},.md}} are in {folder}")
