"""``bica report``: a model as one file to send."""

from __future__ import annotations

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

    from bica.data.tables import open_table
    from bica.model.fit import Fit
    from bica.output import check_outputs, write_output
    from bica.report.content import report_of

    check_outputs(force, output, as_json=as_json)
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
        lines = [line.strip().strip('"') for line in Path(path).read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as times: {getattr(error, 'strerror', None) or error}") from None
    return lines[1:] if lines and lines[0][0].isalpha() else lines
