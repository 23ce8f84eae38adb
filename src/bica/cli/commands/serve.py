"""``bica serve``: the report, live, in a browser on this machine."""

from __future__ import annotations

import contextlib
import os
import sys

import click

from bica.cli.options import json_option, note, print_json


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
