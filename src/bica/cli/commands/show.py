"""``bica show``, ``bica name`` and ``bica export``: a model on the screen, in the user's words, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
    waiting,
    words_options,
)
from bica.output import check_outputs

if TYPE_CHECKING:
    from bica.cli.screens.model import Sort
    from bica.model.files import ModelDocument


@click.command()
@click.argument("model")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show so many sources.  [default: 20]")
@click.option(
    "--sort",
    type=click.Choice(["probability", "size", "support"]),
    default="probability",
    show_default=True,
    help="By how often each is on, by the number of its sensors, or by how sure it is (see `support`).",
)
@click.option("--sensor", metavar="NAME", help="Only sources of this sensor.")
@click.option(
    "--min-size", type=click.IntRange(min=1), metavar="N", default=1, help="Only sources of N sensors or more."
)
@click.option("--search", metavar="TEXT", default="", help="Only sources with TEXT in their name or in a sensor's.")
@click.option("--full", is_flag=True, help="List every source and every sensor, however many there are.")
@click.option(
    "--picture", metavar="FILE", help='Draw the matrix: .html, .png, .svg or .pdf (needs "bica[report]" but for .html).'
)
@force_option
@json_option
def show(
    model: str,
    top: int | None,
    sort: Sort,
    sensor: str | None,
    min_size: int,
    search: str,
    full: bool,
    picture: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Show the sources of MODEL: their sensors and how often each is on.

    MODEL is a file written by `bica fit` or `bica simulate --truth`; a single dash reads standard input. A screenful is
    shown, the most probable sources first; the last lines say what was left out.
    """
    check_outputs(force, picture, read=[model], as_json=as_json)

    from bica.cli.screens.model import TOP, Choice, show_model
    from bica.model.files import document_text
    from bica.output import write_output

    choice = Choice(top or TOP, sort, sensor, min_size, search)
    if as_json and choice != Choice():
        raise click.UsageError("--json prints the whole model; leave out what chooses among its sources.")
    document = read_model(model)
    places = choice.places(document)
    if picture is not None:
        _draw(document, places[: len(places) if top is None else top], picture, force)
    if as_json:
        write_output("-", document_text(document), force=False)
    else:
        show_model(screen_for(picture), document, full=full, choice=choice)


def _draw(document: ModelDocument, places: list[int], picture: str, force: bool) -> None:
    """Write the picture of the chosen sources; a page of HTML is the report, which needs no package for drawing."""
    from pathlib import Path

    from bica.model.fit import Fit
    from bica.output import write_output
    from bica.report.pictures import check_picture, picture_bytes

    ending = Path(picture).suffix.lower()
    fit = Fit.of_document(document)
    with waiting("drawing"):
        if ending == ".html":
            content: str | bytes = fit.report(origin=Path(picture).stem).html
        else:
            check_picture(picture)
            from bica.report.figures import mixing_chart  # which needs the packages that were just checked

            named = fit.all_named().model  # whose sources keep their numbers when some are left out
            content = picture_bytes(mixing_chart(named.pick(places), fit.nouns), ending)
    write_output(picture, content, force)
    note(f"picture: {picture}")


SENSORS_LISTED = 8


def _names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str | None]:
    pairs = [text.partition("=") for text in given]
    if any(not source or not sign for source, sign, _ in pairs):
        raise click.BadParameter('give SOURCE=NAME, as in source3="printer on floor 2"; SOURCE= takes a name away.')
    return {source: name or None for source, _, name in pairs}


@click.command()
@click.argument("model")
@click.argument("names", nargs=-1, callback=_names, metavar="[SOURCE=NAME]...")
@output_option("Write the named model here.  [default: MODEL itself]")
@words_options
@json_option
def name(
    model: str,
    names: dict[str, str | None],
    output: str | None,
    sensors_are: str | None,
    sources_are: str | None,
    rows_are: str | None,
    as_json: bool,
) -> None:
    """Give sources of MODEL names, and say what sensors, sources and rows are.

    SOURCE is source3, the present name, or the id that `bica name MODEL` lists. The names are kept in MODEL, shown by
    every command, and kept by `bica fit` when it writes the same file again, as far as sensors are nearly the same.
    """
    from dataclasses import replace

    from bica.model.files import write_document
    from bica.model.names import renamed

    document = read_model(model)
    words = {"sensors": sensors_are, "sources": sources_are, "rows": rows_are}
    if names or any(words.values()):
        if model == "-" and output is None:
            raise click.UsageError("MODEL comes from standard input; say with -o where the named model goes.")
        target = output or model
        check_outputs(target == model, target)
        nouns = document.nouns.with_changes(words)
        own = [source.name for source in document.sources]
        new = renamed(own, _ids(document), names, document.nouns.source[0])
        sources = tuple(replace(source, name=name) for source, name in zip(document.sources, new, strict=True))
        document = replace(document, sources=sources, nouns=nouns)
        write_document(document, target, overwrite=target == model)
        note(f"model: {target}")
    if as_json:
        print_json({"sources": _listed(document)})
    else:
        _show(document)


def _ids(document: ModelDocument) -> list[str]:
    from bica.model.names import source_id

    return [source_id(document.sensors[i] for i in source.sensors) for source in document.sources]


def _listed(document: ModelDocument) -> list[dict[str, object]]:
    return [
        {
            "source": f"{document.nouns.source[0]}{place}",
            "id": identity,
            "name": source.name,
            "sensors": [document.sensors[i] for i in source.sensors],
        }
        for place, (source, identity) in enumerate(zip(document.sources, _ids(document), strict=True), 1)
    ]


def _show(document: ModelDocument) -> None:
    from rich.text import Text

    from bica.cli.screens.model import plain_table
    from bica.text import harmless, listed

    noun = document.nouns.source[0]
    table = plain_table(noun)
    for title in ("id", "name", document.nouns.sensor[1]):
        table.add_column(title, overflow="fold")
    for place, (source, identity) in enumerate(zip(document.sources, _ids(document), strict=True), 1):
        sensors = listed([document.sensors[i] for i in source.sensors], SENSORS_LISTED)
        table.add_row(Text(harmless(f"{noun}{place}")), identity, Text(harmless(source.name or "")), Text(sensors))
    screen_for().print(table)


ENDINGS = {".graphml": "graphml", ".dot": "dot", ".gv": "dot", ".csv": "csv", ".json": "json"}


@click.command()
@click.argument("model")
@click.option(
    "--format",
    "form",
    type=click.Choice(["graphml", "dot", "csv", "json"]),
    help="GraphML, DOT for Graphviz, a CSV list of edges, or the model file itself.  [default: by the ending of FILE]",
)
@output_option("Write here; standard output if left out.")
@force_option
def export(model: str, form: str | None, output: str | None, force: bool) -> None:
    """Write MODEL as a graph or a list for other programs."""
    form = form or ENDINGS.get(Path(output or "").suffix.lower())
    if form is None:
        raise click.UsageError(f"Say which --format to write, or give -o a FILE that ends in {', '.join(ENDINGS)}.")

    check_outputs(force, output, read=[model])

    from bica.model.export import export_text
    from bica.model.files import document_text
    from bica.output import write_output

    document = read_model(model)
    text = document_text(document) if form == "json" else export_text(named_model(document), form)
    write_output(output or "-", text, force)
