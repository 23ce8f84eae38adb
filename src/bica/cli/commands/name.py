"""``bica name``: names for sources, and words for what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bica.cli.options import json_option, output_option, words_options

if TYPE_CHECKING:
    from bica.model.files import ModelDocument

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

    from bica.cli.options import read_model
    from bica.cli.screens import note, print_json
    from bica.model.files import write_document
    from bica.model.names import renamed
    from bica.output import check_outputs

    document = read_model(model)
    words = {"sensors": sensors_are, "sources": sources_are, "rows": rows_are}
    if names or any(words.values()):
        if model == "-" and output is None:
            raise click.UsageError("MODEL comes from standard input; say with -o where the named model goes.")
        target = output or model
        check_outputs(target == model, target)
        new = renamed([source.name for source in document.sources], _ids(document), names)
        sources = tuple(replace(source, name=name) for source, name in zip(document.sources, new, strict=True))
        document = replace(document, sources=sources, nouns=document.nouns.with_changes(words))
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
            "source": f"source{place}",
            "id": identity,
            "name": source.name,
            "sensors": [document.sensors[i] for i in source.sensors],
        }
        for place, (source, identity) in enumerate(zip(document.sources, _ids(document), strict=True), 1)
    ]


def _show(document: ModelDocument) -> None:
    from rich.text import Text

    from bica.cli.screens import Screen
    from bica.cli.screens.model import plain_table
    from bica.text import folded, harmless

    table = plain_table("source")
    for title in ("id", "name", document.nouns.sensor[1]):
        table.add_column(title, overflow="fold")
    for place, (source, identity) in enumerate(zip(document.sources, _ids(document), strict=True), 1):
        sensors = folded([harmless(document.sensors[i]) for i in source.sensors], SENSORS_LISTED)
        table.add_row(f"source{place}", identity, Text(harmless(source.name or "")), Text(sensors))
    Screen().print(table)
