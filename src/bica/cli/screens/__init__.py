"""What the commands print: answers on standard output, the rest on standard error, and a bar during long work."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from threading import Timer
from typing import Any

from rich.console import Console
from rich.text import Text

from bica.progress import COMPILING, WAIT, Listener, listening
from bica.text import harmless


class Screen(Console):
    """Standard output, or standard error where a file goes to standard output (``-``).

    It shows text as it is: names from files are data, not markup, emoji codes or highlights.
    """

    def __init__(self, output: str | None = None) -> None:
        stream = sys.stderr if output == "-" else sys.stdout
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal limited to ASCII shows the rest as escapes
        super().__init__(file=stream, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Let the caller deal with a reader that has gone."""
        raise


def notes() -> Screen:
    """The screen for progress and notes."""
    return Screen("-")


def note(sentence: str) -> None:
    """Print one line for the person at the terminal."""
    notes().print(Text(harmless(sentence)), soft_wrap=True)


def print_json(content: Mapping[str, Any]) -> None:
    """Print the answer for programs, and nothing else, on standard output."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    sys.stdout.buffer.write(f"{text}\n".encode())  # JSON is UTF-8, whatever the terminal is


PATIENCE = 2.0  # seconds; shorter work shows no bar


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that ``what`` is going on, and how far the loops inside have come."""
    if notes().is_terminal:
        with _shown(what):
            yield
    else:
        with listening(_said_once()):
            yield


def _said_once() -> Listener:
    """A listener for where there is no terminal: one line if something is compiled."""
    said = False

    def listener(part: str, _: int, __: int | None) -> None:
        nonlocal said
        if part == COMPILING and not said:
            said = True
            note(WAIT)

    return listener


@contextmanager
def _shown(what: str) -> Iterator[None]:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

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
        text = f"{what}: {part}" if part != COMPILING else f"{what}: {part}, {done} of about {total}"
        bar.update(task, description=text, completed=done, total=total)

    try:
        with listening(move):
            yield
    finally:
        timer.cancel()
        timer.join()  # a bar that starts in this very moment must not outlive the work
        bar.stop()
