"""Something to look at while work goes on: a bar or a spinner, once the work has taken two seconds."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from bica.cli.screen import note, notes
from bica.kernels.compiled import compiled_before
from bica.progress import listening

PATIENCE = 2.0  # seconds; shorter work stays quiet


@contextmanager
def waiting(what: str, *, compiles: bool = True) -> Iterator[None]:
    """Tell the person at the terminal that ``what`` is going on, and how far loops that report have come."""
    if compiles and not compiled_before():
        note("compiling, once: the first run after an install takes some seconds more")
    if notes().is_terminal:
        with _shown(what):
            yield
    else:
        yield


@contextmanager
def _shown(what: str) -> Iterator[None]:
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=notes(),
        transient=True,
    )
    task = bar.add_task(what, total=None)
    timer = Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()

    def move(part: str, done: int, total: int | None) -> None:
        bar.update(task, description=f"{what}: {part}", completed=done, total=total)

    try:
        with listening(move):
            yield
    finally:
        timer.cancel()
        timer.join()  # a bar that starts in this very moment must not outlive the work
        bar.stop()
