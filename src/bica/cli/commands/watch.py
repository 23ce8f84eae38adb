"""``bica watch``: rows as they arrive, and when the world has changed."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from bica.cli.options import note, read_model

if TYPE_CHECKING:
    from bica.invert.watch import Sight, Watcher

Cells = list[int | None]
CELLS: dict[str, int | None] = {"0": 0, "1": 1, "": None, "false": 0, "true": 1, "null": None, "nan": None}
MOST_CHARACTERS = 1 << 20  # of a line
MOST_ROWS = 256  # that are answered together; whatever more has come waits


@click.command()
@click.argument("model")
@click.argument("rows", default="-")
@click.option(
    "--false-alarms",
    type=click.FloatRange(min=1),
    metavar="ROWS",
    default=100_000,
    show_default=True,
    help="Raise at most one false alarm in so many rows, on average.",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    metavar="ROWS",
    help="Take every so many-th row for the alarm, which supposes independent rows.  [default: as MODEL knows]",
)
@click.option("--all", "all_rows", is_flag=True, help="Print every row, not only changes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines for programs instead of sentences.")
def watch(model: str, rows: str, false_alarms: float, every: int | None, all_rows: bool, as_json: bool) -> None:
    """Watch ROWS as they arrive: which sources of MODEL switch on and off, and when the world has changed.

    ROWS is CSV with a header, or JSON lines; a single dash, the default, is standard input. Each row is answered at
    once, while the input stays open. Lines that are no rows are noted and passed over.
    """
    if model == "-":
        raise click.UsageError("rows come from standard input; put MODEL in a file.")

    from bica.invert.watch import Watcher
    from bica.model.fit import Fit
    from bica.text import harmless

    fit = Fit.of_document(read_model(model))
    watcher = Watcher(fit.model, rows_per_false_alarm=false_alarms, every=every or _stay(fit.persistence()))
    names = [harmless(name) for name in fit.source_names()]
    printed = _as_json if as_json else _as_sentence
    try:
        for arrived in _rows(rows, fit.model.sensors):
            for number, cells in arrived:
                if isinstance(cells, str):
                    note(f"line {number} is passed over: {cells}")
            sights = watcher.see_many([cells for _, cells in arrived if not isinstance(cells, str)])
            lines = [printed(seen, names) for seen in sights if all_rows or seen.is_news]
            if lines:
                click.echo("\n".join(lines))
                sys.stdout.flush()
    except KeyboardInterrupt:
        pass  # the usual way to end watching
    note(_ending(watcher))


def _stay(persistence: Any) -> int:
    """For how many rows the most persistent source stays on, if the model knows; rows so far apart are independent."""
    known = [] if persistence is None else [stay for stay in persistence.tolist() if stay < 1e6]
    return max(1, round(max(known, default=1.0)))


def _ending(watcher: Watcher) -> str:
    from bica.text import counted

    strange = f"{watcher.n_strange:.15g} that the model hardly ever shows"
    return ", ".join([counted(watcher.n_rows, "row"), strange, counted(watcher.n_alarms, "alarm")])


def _as_sentence(seen: Sight, names: Sequence[str]) -> str:
    changes = [f"+ {names[j]}" for j in seen.switched_on] + [f"- {names[j]}" for j in seen.switched_off]
    on = ", ".join(names[j] for j in seen.active) or "nothing"
    line = f"row {seen.row}: {', '.join(changes)} (on: {on})" if changes else f"row {seen.row}: on: {on}"
    return line if seen.alarm is None else f"{line}\nrow {seen.row}: ALARM, {seen.alarm.sentence()}"


def _as_json(seen: Sight, names: Sequence[str]) -> str:
    content: dict[str, Any] = {
        "row": seen.row,
        "on": [names[j] for j in seen.active],
        "switched_on": [names[j] for j in seen.switched_on],
        "switched_off": [names[j] for j in seen.switched_off],
        "log_probability": seen.log_probability if seen.log_probability > float("-inf") else None,
    }
    if seen.alarm is not None:
        content["alarm"] = {"sentence": seen.alarm.sentence(), "sensors": dict(seen.alarm.sensors)}
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


Arrived = list[tuple[int, Cells | str]]  # the number of each line with its cells, or with what is wrong with it


def _rows(path: str, sensors: tuple[str, ...]) -> Iterator[Arrived]:
    """The lines that have arrived since the last time."""
    from bica.errors import DataError

    if path == "-":
        yield from _parsed(sys.stdin.buffer, "standard input", sensors)
        return
    try:
        with open(path, "rb") as file:
            yield from _parsed(file, path, sensors)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def _parsed(file: BinaryIO, name: str, sensors: tuple[str, ...]) -> Iterator[Arrived]:
    from bica.data.readers.text import arriving_lines

    places: list[int] | None = None
    number = 0
    for lines in arriving_lines(file, MOST_CHARACTERS):
        arrived: Arrived = []
        for line in lines:
            number += 1
            text = line.strip().removeprefix("\ufeff")
            if text.startswith("{"):
                arrived.append((number, _from_json(text, sensors)))
            elif text and places is None:
                places = _header(text, name, sensors)
            elif text and places is not None:
                arrived.append((number, _from_csv(text, places)))
            if len(arrived) == MOST_ROWS:
                yield arrived
                arrived = []
        yield arrived


def _header(text: str, name: str, sensors: tuple[str, ...]) -> list[int]:
    """Where each sensor is in a line of cells."""
    from bica.errors import DataError
    from bica.text import brief

    columns = _split(text)
    missing = [sensor for sensor in sensors if sensor not in columns]
    if missing:
        raise DataError(f"the first line of {name} has no column {brief(missing[0])}, which is a sensor of the model")
    return [columns.index(sensor) for sensor in sensors]


def _split(text: str) -> list[str]:
    """The cells of a line; none if one is longer than Python reads, which no cell of 0 and 1 is."""
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return []


def _from_csv(text: str, places: list[int]) -> Cells | str:
    cells = _split(text)
    if len(cells) <= max(places, default=-1):
        return f"it has {len(cells)} cells, fewer than the header"
    return _cells(cells[place] for place in places)


def _from_json(text: str, sensors: tuple[str, ...]) -> Cells | str:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return "it is no JSON object"
    return _cells("" if content.get(name) is None else str(content[name]) for name in sensors)


def _cells(texts: Iterator[str]) -> Cells | str:
    from bica.text import brief

    cells: Cells = []
    for text in texts:
        shown = text.strip().lower()
        if shown not in CELLS:
            return f"a cell holds {brief(text)}, which is neither 0 nor 1"
        cells.append(CELLS[shown])
    return cells
