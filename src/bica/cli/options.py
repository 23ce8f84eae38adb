"""What commands share: options and what their texts mean, reading models, the screen with its notes and its bar.

A single dash is standard input. Answers go to standard output, the rest to standard error.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from threading import Event, Thread, Timer
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from bica.progress import COMPILING, WAIT, listening

if TYPE_CHECKING:
    from rich.console import Console

    from bica.model.files import ModelDocument
    from bica.model.noise import Noise
    from bica.model.or_mixture import OrMixture


def read_model(path: str) -> ModelDocument:
    """The model in this file, in plain values."""
    from bica.model.files import parse_document, read_document

    if path == "-":
        return parse_document(sys.stdin.buffer.read(), "standard input")
    return read_document(path)


def named_model(document: ModelDocument) -> OrMixture:
    """The model to answer with: sources without a name have the user's noun and a number, as on every screen."""
    from bica.model.or_mixture import OrMixture as Model

    mixture = Model.of_document(document)
    return mixture.with_names(mixture.source_names(document.nouns.source[0]))


Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs instead of a table.")
force_option = click.option("--force", is_flag=True, help="Overwrite files that exist.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="Seed of the random numbers."
)


def _thresholds(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> float | dict[str, float] | None:
    """Thresholds: one number for all columns, or ``column=number`` as often as needed."""
    pairs = [text.rpartition("=") for text in given]
    if any(not column for column, _, _ in pairs) and len(given) > 1:
        raise click.BadParameter("give one number for all columns, or COLUMN=NUMBER for each.")
    try:
        thresholds = {column: float(value) for column, _, value in pairs}
    except ValueError:
        raise click.BadParameter("a threshold is a number, alone or after COLUMN=.") from None
    return thresholds.get("", thresholds) if thresholds else None


binarize_option = click.option(
    "--binarize",
    multiple=True,
    callback=_thresholds,
    metavar="[COLUMN=]NUMBER",
    help="Cells above this number are on; once for all columns, or once per column.",
)
weights_option = click.option("--weights", metavar="COLUMN", help="The column that says how often each row counts.")


def between_commas(text: str) -> tuple[str, ...]:
    """Distinct names separated by commas; a name with a comma in it is put in double quotes, as in CSV.

    >>> between_commas('a, "b,c"')
    ('a', 'b,c')
    """
    [names] = csv.reader([text], skipinitialspace=True) if text else [[]]
    names = [name.strip() for name in names]
    if not names or not all(names) or len(set(names)) < len(names):
        raise click.BadParameter("give different names separated by commas, as in a,b,c.")
    return tuple(names)


def names_between_commas(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """The distinct names that an option was given."""
    return None if text is None else between_commas(text)


def _all_names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """The names in every use of an option, separated by commas."""
    return tuple(name for text in given for name in between_commas(text))


READING = (
    click.option(
        "--drop", multiple=True, callback=_all_names, metavar="COLUMNS", help="Columns that are no sensors: left out."
    ),
    click.option(
        "--columns", multiple=True, callback=_all_names, metavar="COLUMNS", help="The only columns that are sensors."
    ),
    click.option("--id", metavar="COLUMN", help="Says what a row is about; it goes beside the answers."),
    click.option(
        "--time", metavar="COLUMN", help="Says when a row was; it goes beside the answers.  [default: recognised]"
    ),
    click.option("--baskets", is_flag=True, help="Each line of TABLE holds the items that are on, in any number."),
    click.option(
        "--long",
        callback=names_between_commas,
        metavar="ROW,COLUMN",
        help="Each line of TABLE is one cell that is on: the columns that name its row and its sensor.",
    ),
    click.option("--names", metavar="FILE", help="The names of the columns, one per line, for tables without."),
    binarize_option,
)


def table_options(*, weights: bool = True) -> Callable[[Function], Function]:
    """The options that say how TABLE is read; the command gets them as one mapping, the settings of ``open_table``."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def command(**given: Any) -> Any:
            return function(reading=_reading(given, weights), **given)

        for option in reversed((*READING, weights_option) if weights else READING):
            command = option(command)
        return cast(Function, command)

    return decorate


def _reading(given: dict[str, Any], weights: bool) -> dict[str, Any]:
    """Take what says how TABLE is read out of all that was given; what was not given is left to its default."""
    names = given.pop("names")
    found = {
        setting: given.pop(setting) for setting in ("drop", "columns", "id", "time", "baskets", "long", "binarize")
    }
    found["sample_weight"] = given.pop("weights") if weights else None
    if names is not None:
        from bica.data.readers.arrays import names_in

        found["sensors"] = names_in(Path(names))
    return {setting: value for setting, value in found.items() if value not in (None, (), False)}


def output_option(help_text: str, *, required: bool = False) -> Callable[[Function], Function]:
    """The option ``-o FILE``; a single dash is standard output."""
    return click.option("-o", "--output", metavar="FILE", required=required, help=help_text)


def words_options(function: Function) -> Function:
    """The options that say what sensors, sources and rows are for the user."""
    for thing, example in (("rows", "patients"), ("sources", "diseases"), ("sensors", "symptoms")):
        help_text = f"Your word for {thing}, as in {example}; or both forms, as in mouse/mice."
        function = click.option(f"--{thing}-are", metavar="WORD", help=help_text)(function)
    return function


def rate(text: str) -> float:
    """The number in [0, 1) that an option was given."""
    try:
        value = float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number.") from None
    if not 0 <= value < 1:
        raise click.BadParameter(f"{text} does not lie in [0, 1).")
    return value


Known = list[tuple[tuple[str, ...], float | None]]


def flip_rates(_: click.Context, __: click.Parameter, text: str) -> str | Noise:
    """How often sensors err: a word, one flip rate, or the rates of false alarms and misses."""
    if text in ("auto", "estimate", "two-rates", "per-sensor"):
        return text
    rates = text.split(",")
    if len(rates) > 2:
        raise click.BadParameter("give one flip rate, or the rates of false alarms and misses as in 0.01,0.1.")
    false_alarm, miss = rate(rates[0]), rate(rates[-1])

    from bica.model.noise import Noise

    return Noise(false_alarm, miss)


def level_or_none(_: click.Context, __: click.Parameter, text: str | None) -> float | str | None:
    """The level of a test, or the word none."""
    return text if text in (None, "none") else rate(text)


UNITS = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def n_bytes(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Bytes from ``2GB`` or ``500 MB``."""
    if text is None:
        return None
    number = text.rstrip("BKMGTbkmgt ")
    unit = text[len(number) :].strip().upper()
    try:
        found = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        found = 0.0
    if not 0 < found < float("inf"):
        raise click.BadParameter(f"{text!r} is no amount of memory; give one as in 500MB or 2GB.")
    return found


def known_columns(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> Known:
    """Sources from ``a,b`` or ``a,b=0.1``; an equals sign that no number follows is part of a name."""
    known: Known = []
    for text in given:
        names, sign, number = text.rpartition("=")
        try:
            known.append((between_commas(names), float(number)) if sign else (between_commas(text), None))
        except ValueError:
            known.append((between_commas(text), None))
    return known


def sets_of_names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The distinct names that each use of an option was given."""
    return [between_commas(text) for text in given]


def beta_prior(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    """The numbers of a Beta prior."""
    try:
        return None if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter("give the two numbers of a Beta prior, as in 1.5,20.") from None


def screen_for(output: str | None = None) -> Console:
    """Standard output, or standard error where a file goes to standard output (``-``), as a screen.

    It shows text as it is: names from files are data, not markup, emoji codes or highlights.
    """
    from rich.console import Console

    stream = sys.stderr if output == "-" else sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a terminal limited to ASCII shows the rest as escapes
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    console.on_broken_pipe = _reraise  # type: ignore[method-assign]
    return console


def _reraise() -> None:
    """Let the caller deal with a reader that has gone."""
    raise


def notes() -> Console:
    """The screen for progress and notes."""
    return screen_for("-")


def note(sentence: str) -> None:
    """Print one line for the person at the terminal."""
    from rich.text import Text

    from bica.text import harmless

    notes().print(Text(harmless(sentence)), soft_wrap=True)


def print_json(content: Mapping[str, Any]) -> None:
    """Print the answer for programs, and nothing else, on standard output."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    sys.stdout.buffer.write(f"{text}\n".encode())  # JSON is UTF-8, whatever the terminal is


PATIENCE = 2.0  # seconds; shorter work shows no bar
PAUSE = 10.0  # seconds between two lines where there is no terminal
STOPPING = "stopping"
SAID = {"on Ctrl-C": STOPPING}  # at once, while the work inside comes to its end


@contextmanager
def waiting(what: str, on_ctrl_c: str = STOPPING) -> Iterator[None]:
    """Show that ``what`` is going on, and how far the loops inside have come: a bar, or a line every ten seconds."""
    before, SAID["on Ctrl-C"] = SAID["on Ctrl-C"], on_ctrl_c
    try:
        with _shown(what) if notes().is_terminal else _reported(what):
            yield
    finally:
        SAID["on Ctrl-C"] = before


def _words(what: str, part: str, done: int, total: int | None) -> str:
    """How far the work has come, as one line.

    >>> _words("learning", "blocks", 3, 9), _words("learning", "score -12.5, sources", 4, None)
    ('learning: blocks, 3 of 9', 'learning: score -12.5, sources: 4')
    """
    if total is None:
        return f"{what}: {part}: {done}" if done else f"{what}: {part}"
    return f"{what}: {part}, {done} of {'about ' if part == COMPILING else ''}{total}"


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Lines from a thread of its own, so that they also come while a compiled loop runs; one at once on compiling."""
    latest, over, began, compiles = what, Event(), monotonic(), False

    def listen(part: str, done: int, total: int | None) -> None:
        nonlocal latest, compiles
        if part == COMPILING and not compiles:
            compiles = True
            note(WAIT)
        latest = _words(what, part, done, total)

    def tell() -> None:
        while not over.wait(PAUSE):
            note(f"{latest} ({monotonic() - began:.0f} s)")

    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        with listening(listen):
            yield
    finally:
        over.set()
        thread.join()  # no line comes after the answer


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
        whole = None if done == total else total  # what comes next has not begun to count: no bar stands at 100 %
        bar.tasks[0].total = whole  # which `update` would leave as it was if it is None
        bar.update(task, description=_words(what, part, done, total), completed=done)

    try:
        with listening(move):
            yield
    finally:
        timer.cancel()
        timer.join()  # a bar that starts in this very moment must not outlive the work
        bar.stop()
