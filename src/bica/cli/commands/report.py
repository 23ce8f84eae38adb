"""``bica report``: a model as one file to send; ``bica serve``: the same live, in a browser on this machine."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from bica.cli.options import (
    force_option,
    json_option,
    note,
    output_option,
    print_json,
    read_model,
    table_options,
    waiting,
    words_options,
)
from bica.output import check_outputs


@click.command()
@click.argument("model")
@click.argument("table", required=False)
@output_option("Write the page here, an .html file; - is standard output.", required=True)
@click.option(
    "--with-rows", is_flag=True, help="Also list rows; otherwise counts only, and no pattern of fewer than five."
)
@click.option("--anonymise", is_flag=True, help="Put numbers in place of the names of sensors and sources.")
@click.option("--times", metavar="FILE", help="The times of the rows of TABLE, one per line, for activity over time.")
@words_options
@click.option("--title", metavar="TEXT", help="The title.  [default: what was found, in a few words]")
@table_options()
@force_option
@json_option
def report(
    model: str,
    table: str | None,
    output: str,
    with_rows: bool,
    anonymise: bool,
    times: str | None,
    sensors_are: str | None,
    sources_are: str | None,
    rows_are: str | None,
    title: str | None,
    force: bool,
    as_json: bool,
    reading: dict[str, Any],
) -> None:
    """Write a report to send: MODEL as one HTML file that needs no network.

    With TABLE, it also says how well the model describes these rows. The page tells the verdict, the sources as a list
    to search and sort, the matrix, the network, patterns and pairs as observed and expected, and the noise. It holds
    counts only, never rows, unless --with-rows is given.
    """
    if (model, table) == ("-", "-"):
        raise click.UsageError("MODEL and TABLE cannot both come from standard input; put one in a file.")
    if table is None and (with_rows or times is not None):
        raise click.UsageError("--with-rows and --times are about the rows of TABLE; give it, too.")

    check_outputs(force, output, read=[model, table], as_json=as_json)

    from bica.data.tables import open_table
    from bica.model.fit import Fit
    from bica.output import write_output
    from bica.report.content import report_of

    fit = Fit.of_document(read_model(model))
    with waiting("writing the report"):
        page = report_of(
            fit,
            None if table is None else open_table(table, **reading),
            with_rows=with_rows,
            anonymise=anonymise,
            times=None if times is None else read_times(times),
            sensors_are=sensors_are,
            sources_are=sources_are,
            rows_are=rows_are,
            title=title,
            origin=", ".join(Path(path).name for path in (model, table) if path not in (None, "-")),
        )
    write_output(output, page.html, force)
    if as_json:
        print_json({"report": output, "n_bytes": len(page.html.encode())})
    elif output != "-":
        note(f"report: {output}; open it in any browser")


def read_times(path: str) -> list[str]:
    """The lines of a file, one time each; a heading, which begins with a letter, is left out."""
    from bica.errors import DataError

    try:
        lines = [line.strip().strip('"') for line in Path(path).read_text("utf-8").splitlines() if line.strip(' "\t')]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as times: {getattr(error, 'strerror', None) or error}") from None
    return lines[1:] if lines and lines[0][:1].isalpha() else lines


@click.command()
@click.argument("file", metavar="[TABLE|MODEL]", required=False)
@click.option(
    "--folder", metavar="FOLDER", default="bica-serve", show_default=True, help="Where tables and fits are kept."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port.  [default: a free one]")
@click.option(
    "--largest",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    metavar="MEGABYTES",
    help="Largest file that can be dropped on the page; larger ones are opened by their path.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser of this machine.")
@json_option
def serve(file: str | None, folder: str, port: int, largest: int, open_browser: bool, as_json: bool) -> None:
    """Open a page on this machine to learn, see and question a model.

    The page reads a table, learns its sources with a stop button, and shows the report, live: sources can be named,
    kept or merged, observations explained, models compared and downloaded. It answers this machine alone, and only
    with the token in the address that is printed. Ctrl-C ends it; fits are kept in the folder.
    """
    import secrets

    from bica.errors import MissingExtraError, OutputError

    try:
        from bica.web.server import listening_socket
        from bica.web.server import serve as serve_page
        from bica.web.store import FitEntry, Store, bring
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise MissingExtraError('the page needs two more packages: pip install "bica[web]"') from None
    try:
        store = Store(folder)
    except OSError as error:
        raise OutputError(f"{folder} cannot be used as a folder: {error.strerror}") from None
    place = "/"
    if file is not None:
        entry = bring(store, file)
        place = f"/fit/{entry.id}" if isinstance(entry, FitEntry) else f"/table/{entry.id}"
    listener, token = listening_socket(port), secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}{place}?token={token}"
    if as_json:
        print_json({"address": address, "folder": str(store.folder)})
        sys.stdout.flush()
    else:
        note(f"open {address}")
        note(f"fits are kept in {os.path.relpath(store.folder)}; Ctrl-C ends the page")
    if open_browser:
        import webbrowser

        webbrowser.open(address)
    with contextlib.suppress(KeyboardInterrupt):
        serve_page(store, listener, token=token, largest=largest * 1_000_000)
