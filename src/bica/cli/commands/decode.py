"""``bica decode`` and ``bica explain``: which sources were on in each row, and the likeliest causes of one row."""

from __future__ import annotations

import csv
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from bica.cli.options import (
    force_option,
    json_option,
    named_model,
    note,
    output_option,
    print_json,
    read_model,
    screen_for,
    table_options,
    waiting,
)
from bica.output import check_outputs

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bica.cli.screens.decoding import Summary
    from bica.data.columns import Columns, Table
    from bica.data.rows import Rows
    from bica.invert.decode import Decoded
    from bica.invert.solvers import Solver
    from bica.model.or_mixture import OrMixture
    from bica.text import Nouns


ALWAYS = 1e6  # slots; in effect an endless stay
SOLVERS = ("auto", "table", "search", "program", "zero-error")


@click.command()
@click.argument("model")
@click.argument("table")
@output_option(
    "Write the activity here: .csv or .parquet, or - for CSV on standard output; or, in a folder NAME/, one file for "
    "each file of TABLE.",
    required=True,
)
@click.option(
    "--solver",
    type=click.Choice(SOLVERS),
    default="auto",
    show_default=True,
    help="How to find the most probable activity; zero-error assumes that sensors never err, whatever MODEL says.",
)
@click.option("--nearest", is_flag=True, help="Give rows that no set of sources can produce the nearest explanation.")
@click.option("--temporal", is_flag=True, help="Rows are consecutive slots; decode them together, all in memory.")
@click.option(
    "--stay",
    type=click.FloatRange(min=1),
    metavar="SLOTS",
    help="With --temporal: for how many slots on average a source stays on, if MODEL does not know.",
)
@click.option("--picture", metavar="FILE", help='Draw the activity: .html, .png, .svg or .pdf (needs "bica[report]").')
@table_options(weights=False)
@force_option
@json_option
def decode(
    model: str,
    table: str,
    output: str,
    solver: Solver,
    nearest: bool,
    temporal: bool,
    stay: float | None,
    picture: str | None,
    reading: dict[str, Any],
    force: bool,
    as_json: bool,
) -> None:
    """Find which sources of MODEL were on in each row of TABLE.

    One line per row, in the order of TABLE, and one column per source: the most probable activity. A row that no set
    of sources can produce is left empty and reported. TABLE may be larger than memory; its columns have the names of
    the model's sensors, in any order. A single dash is standard input; with -o - its rows are answered as they arrive.
    """
    if temporal and (nearest or solver != "auto"):
        raise click.UsageError("--temporal decodes in its own way; leave out --solver and --nearest.")
    if stay is not None and not temporal:
        raise click.UsageError("--stay says how long sources stay on in consecutive slots; give --temporal, too.")
    if (model, table) == ("-", "-"):
        raise click.UsageError("MODEL and TABLE cannot both come from standard input; put one in a file.")

    how = {"solver": solver, "nearest": nearest, "reading": reading}
    if not _is_folder(output):
        _decode_table(model, table, output, how, stay if temporal else False, picture, force=force, as_json=as_json)
    elif temporal or picture is not None:
        raise click.UsageError("a folder takes files one by one; leave out --temporal and --picture.")
    else:
        _decode_files(model, table, output, how, force=force, as_json=as_json)


def _decode_table(
    model: str,
    table: str,
    output: str,
    how: dict[str, Any],
    stay: float | Literal[False] | None,  # False: row by row
    picture: str | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Decode one table into one file."""
    check_outputs(force, output, picture, read=[model, table], as_json=as_json)

    from bica.cli.screens.decoding import Summary
    from bica.data.rows import Rows
    from bica.data.writers import activity_file, check_table_names
    from bica.invert.decode import decode_table

    check_table_names(output)
    if picture is not None:
        from bica.report.pictures import check_picture

        check_picture(picture)
    document = read_model(model)
    mixture = named_model(document)
    summary, drawn = Summary(), []
    try:
        with waiting("decoding"):
            live = output == "-" and stay is False and picture is None
            opened = _opened(table, how["reading"], mixture.sensors, live=live)
            if stay is False:
                chunks = decode_table(mixture, opened, solver=how["solver"], nearest=how["nearest"])
            else:
                chunks = _in_time(mixture, Rows.of_table(opened), stay or document.fitted)
            labels = opened.columns.labels
            with activity_file(output, mixture.source_names(), overwrite=force, labels=labels) as write:
                for found in chunks:
                    write(found.activity, found.feasible | how["nearest"], found.labels)
                    summary.add(found)
                    if picture is not None:
                        drawn.append(found)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"after {summary.n_rows} rows") from None
    if picture is not None:
        _draw(mixture.source_names(), drawn, opened.columns, document.nouns, picture, force)
    _show(summary, mixture.n_sources, output, document.nouns, nearest=how["nearest"], as_json=as_json)


MARK = "_bica.json"  # says what the answers in a folder were made with


def _is_folder(output: str) -> bool:
    from pathlib import Path

    return output != "-" and (output.endswith("/") or Path(output).is_dir())


def _decode_files(model: str, table: str, output: str, how: dict[str, Any], *, force: bool, as_json: bool) -> None:
    """Decode every file of a folder or a pattern into a file of its own; what is there already is kept."""
    from functools import partial
    from hashlib import sha256
    from pathlib import Path

    from bica.cli.screens.decoding import Summary
    from bica.data.tables import files_of
    from bica.errors import SettingError
    from bica.model.files import document_text
    from bica.progress import ALL_CORES, spread, tracked

    files = files_of(Path(table))
    if not files:
        raise SettingError(
            f"{output} is a folder, but {table} has no tables in it; name a folder or a pattern of files"
        )
    document = read_model(model)
    _mark(Path(output), {"model": sha256(document_text(document).encode()).hexdigest(), "how": how}, force=force)
    pairs = [(file, Path(output) / (name if name.suffix == ".parquet" else f"{name}.parquet")) for file, name in files]
    todo = [pair for pair in pairs if force or not _is_done(*pair)]
    mixture, summary = named_model(document), Summary()
    task = partial(_decode_file, mixture, how)
    try:
        with waiting("decoding"):
            for done in tracked(spread(task, todo, ALL_CORES), "files decoded", len(todo)):
                summary.join(done)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"after {summary.n_rows} rows; the same command goes on from there") from None
    n_kept = len(pairs) - len(todo)
    if as_json:
        files_told = {"n_files": len(pairs), "n_kept": n_kept}
        print_json(summary.as_dict() | files_told | {"n_sources": mixture.n_sources, "activity": output})
        return
    _show(summary, mixture.n_sources, output, document.nouns, nearest=how["nearest"], as_json=False)
    if n_kept:
        screen_for(output).print(f"{n_kept} of {len(pairs)} files were there already")


def _decode_file(mixture: OrMixture, how: dict[str, Any], pair: tuple[Path, Path]) -> Summary:
    """One file into another, which appears whole; in any process."""
    from bica.cli.screens.decoding import Summary
    from bica.data.tables import open_table
    from bica.invert.decode import decode_into

    source, target = pair
    target.parent.mkdir(parents=True, exist_ok=True)
    summary = Summary()
    table = open_table(source, **how["reading"])
    for found in decode_into(mixture, table, target, solver=how["solver"], nearest=how["nearest"]):
        summary.add(found)
    return summary


def _is_done(source: Path, target: Path) -> bool:
    return target.exists() and target.stat().st_mtime >= source.stat().st_mtime


def _mark(folder: Path, content: dict[str, Any], *, force: bool) -> None:
    """Note in a new folder what its answers are made with; refuse one with other answers, or other files."""
    import json

    from bica.errors import OutputError
    from bica.output import write_whole

    text = json.dumps(content, sort_keys=True, default=str)
    mark = folder / MARK
    folder.mkdir(parents=True, exist_ok=True)
    told = mark.read_text() if mark.exists() else None
    if told is None and any(folder.iterdir()) and not force:
        raise OutputError(f"{folder} holds other files; choose an empty folder, or --force")
    if told not in (None, text) and not force:
        raise OutputError(f"{folder} holds the answers of another model or other settings; choose another, or --force")
    for draft in folder.rglob(".bica-*"):  # of a command that was killed
        draft.unlink(missing_ok=True)
    write_whole(mark, text, overwrite=True)


def _opened(path: str, reading: dict[str, Any], sensors: tuple[str, ...], *, live: bool) -> Table:
    """The table; where answers can go out at once (``live``), standard input as it arrives."""
    from bica.data.tables import open_stream, open_table

    stream = open_stream(sensors, **reading) if live and path == "-" and "sensors" not in reading else None
    return open_table(path, **reading) if stream is None else stream


def _draw(
    names: tuple[str, ...], found: list[Decoded], columns: Columns, nouns: Nouns, picture: str, force: bool
) -> None:
    """Write the picture of the activity of all rows, over time if the table says when they were."""
    from pathlib import Path

    import numpy as np

    from bica.errors import DataError
    from bica.kernels.bits import unpacked
    from bica.output import write_output
    from bica.report.figures import activity_chart
    from bica.report.pictures import picture_bytes

    active = [part.active for part in found]
    if not sum(map(len, active)) or not names:
        raise DataError("there is no activity to draw: the table has no rows, or the model no sources")
    with waiting("drawing"):
        place = None if columns.time is None else columns.labels.index(columns.time)
        times = None if place is None else [time for part in found for time in part.labels[place]]
        chart = activity_chart(names, unpacked(np.vstack(active), len(names)), times, nouns)
        write_output(picture, picture_bytes(chart, Path(picture).suffix.lower()), force)
    note(f"picture: {picture}")


def _in_time(model: OrMixture, rows: Rows, stay: float | Mapping[str, Any]) -> Iterator[Decoded]:
    """All rows decoded together, with the mean stay that was given, learned with MODEL, or else found in the rows."""
    import numpy as np

    from bica.invert.decode import Decoded
    from bica.invert.temporal.decode import decode_in_time
    from bica.kernels.bits import packed

    persistence: Any = stay
    if isinstance(stay, Mapping):
        learned = stay.get("diagnostics", {}).get("persistence")
        known = isinstance(learned, list) and len(learned) == model.n_sources
        persistence = [number or ALWAYS for number in learned] if known else "estimate"
    ordered = rows.matched(model.sensors)
    found = decode_in_time(model, ordered.words, ordered.observed, persistence=persistence)
    nothing = np.zeros(len(found.activity))
    cost = np.where(found.feasible, nothing, np.inf)
    wrong, labels = (~found.feasible).astype(np.int32), tuple(rows.labels.values())
    yield Decoded(packed(found.activity), cost, nothing, wrong, model.n_sources, labels)


def _show(summary: Summary, n_sources: int, output: str, nouns: Nouns, *, nearest: bool, as_json: bool) -> None:
    from bica.text import counted_as, harmless

    if as_json:
        print_json(summary.as_dict() | {"n_sources": n_sources, "activity": output})
        return
    screen = screen_for(output)
    rows, sources = counted_as(summary.n_rows, nouns.row), counted_as(n_sources, nouns.source)
    screen.print(f"{rows} decoded, {sources} behind them")
    for sentence in summary.sentences(nearest=nearest):
        screen.print(sentence, soft_wrap=True)
    if output != "-":
        screen.print(harmless(f"activity: {output}"), soft_wrap=True)


OFF, ON, UNKNOWN = 0, 1, 2


@click.command()
@click.argument("model")
@click.option("--on", multiple=True, metavar="SENSORS", help="Sensors that are on, separated by commas.")
@click.option("--off", multiple=True, metavar="SENSORS", help="Sensors that are off.")
@click.option("--unknown", multiple=True, metavar="SENSORS", help="Sensors that were not observed.")
@click.option(
    "--rest",
    type=click.Choice(["off", "unknown"]),
    default="off",
    show_default=True,
    help="State of the sensors that are not named.",
)
@click.option("-k", "k", type=click.IntRange(1, 10_000), default=5, show_default=True, help="How many explanations.")
@json_option
def explain(
    model: str,
    on: Sequence[str],
    off: Sequence[str],
    unknown: Sequence[str],
    rest: str,
    k: int,
    as_json: bool,
) -> None:
    """Explain one observation: the likeliest sets of active sources of MODEL behind it.

    SENSORS are names separated by commas; each option may be given more than once. MODEL is a model file; a single dash
    reads standard input.
    """
    from bica.cli.screens.decoding import explanation_values, show_explanations
    from bica.invert.explain import explain as explain_row
    from bica.kernels.bits import packed

    document = read_model(model)
    mixture = named_model(document)
    cells = _cells(mixture, {"--on": (on, ON), "--off": (off, OFF), "--unknown": (unknown, UNKNOWN)}, rest)
    with waiting("explaining"):
        found = explain_row(mixture, packed(cells == ON), packed(cells != UNKNOWN), k=k)
    if as_json:
        print_json(explanation_values(mixture, cells[0], found))
    else:
        show_explanations(screen_for(), mixture, cells[0], found, document.nouns)


def _cells(mixture: OrMixture, named: dict[str, tuple[Sequence[str], int]], rest: str) -> NDArray[np.uint8]:
    import numpy as np

    from bica.errors import SettingError

    place = {name: i for i, name in enumerate(mixture.sensors)}
    cells = np.full((1, len(place)), UNKNOWN if rest == "unknown" else OFF, np.uint8)
    named_by: dict[str, str] = {}
    for option, (texts, cell) in named.items():
        for name in _names(texts, place.keys()):
            if name not in place:
                raise SettingError(f"{option} names {name!r}, which is not a sensor of MODEL; `bica show` lists them")
            if named_by.setdefault(name, option) != option:
                raise SettingError(f"{name!r} is given in {named_by[name]} and in {option}; name it once")
            cells[0, place[name]] = cell
    return cells


def _names(texts: Sequence[str], known: Container[str]) -> list[str]:
    """The names in texts separated by commas; one with a comma in it is in double quotes, or is the whole text."""
    names = []
    for text in texts:
        [parts] = [[text]] if text in known else csv.reader([text], skipinitialspace=True)
        names += [part if part in known else part.strip() for part in parts if part.strip()]
    return names
