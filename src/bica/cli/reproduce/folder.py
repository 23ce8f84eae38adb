"""The folder of an experiment: its results as they become ready, then its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bica.compare.records import Record
    from bica.compare.run import Job

RESULTS = "results.jsonl"


def run_in_folder(plan: Sequence[Job], output: str, n_jobs: int | None) -> list[Record]:
    """Do what is left of the plan with a progress bar; the records, which are also a table in the folder."""
    from bica.cli.waiting import waiting
    from bica.compare import run_plan, write_table

    folder = _ready(Path(output))
    with waiting("evaluating"):
        records = run_plan(plan, folder / RESULTS, n_jobs=n_jobs)
    write_table(records, folder / "results.csv", overwrite=True)
    return records


def _ready(folder: Path) -> Path:
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


def write_figure(output: str, name: str, chart: Any, text: str) -> None:
    """The figure in every format of pictures, and its numbers as text."""
    from bica.cli.screen import note
    from bica.cli.waiting import waiting
    from bica.output import write_whole
    from bica.report.pictures import FORMATS, save_picture

    folder = Path(output)
    with waiting("drawing pictures", compiles=False):
        for ending in FORMATS:
            save_picture(chart, folder / f"{name}{ending}", overwrite=True)
        write_whole(folder / f"{name}.md", text + "\n", overwrite=True)
    note(f"the results and {name}{{{','.join(FORMATS)},.md}} are in {folder}")
