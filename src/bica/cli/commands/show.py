"""``bica show``: a model on the screen, or as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bica.cli.options import force_option, json_option

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
    help="By how often each is on, by the number of its sensors, or by how often it returned in the bootstrap.",
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
    from bica.cli.options import read_model
    from bica.cli.screens import Screen
    from bica.cli.screens.model import TOP, Choice, show_model
    from bica.model.files import document_text
    from bica.output import check_outputs, write_output

    check_outputs(force, picture, as_json=as_json)
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
        show_model(Screen(picture), document, full=full, choice=choice)


def _draw(document: ModelDocument, places: list[int], picture: str, force: bool) -> None:
    """Write the picture of the chosen sources; a page of HTML is the report, which needs no package for drawing."""
    from pathlib import Path

    from bica.cli.screens import note, waiting
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
            named = fit.model.with_names(fit.model.source_names())  # which keep their numbers when some are left out
            content = picture_bytes(named.pick(places).plot_matrix(), ending)
    write_output(picture, content, force)
    note(f"picture: {picture}")
