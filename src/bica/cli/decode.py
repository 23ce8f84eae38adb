"""``bica decode``: which sources were on, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bica.cli.options import binarize_option, force_option, json_option, output_option, refuse_two_answers

if TYPE_CHECKING:
    from bica.cli.decode_summary import Summary
    from bica.invert.solvers import Solver

SOLVERS = ("auto", "table", "search", "program", "zero-error")


@click.command()
@click.argument("model")
@click.argument("table")
@output_option("Write the activity here: .csv or .parquet, or - for CSV on standard output.", required=True)
@click.option(
    "--solver",
    type=click.Choice(SOLVERS),
    default="auto",
    show_default=True,
    help="How to find the most probable activity; zero-error takes the sensors at their word, whatever MODEL says.",
)
@click.option("--nearest", is_flag=True, help="Answer rows that no set of sources produces with what comes nearest.")
@binarize_option
@force_option
@json_option
def decode(
    model: str,
    table: str,
    output: str,
    solver: Solver,
    nearest: bool,
    binarize: float | dict[str, float] | None,
    force: bool,
    as_json: bool,
) -> None:
    """Tell which sources of MODEL were on in each row of TABLE.

    One line a row, in the order of TABLE, and one column a source: the most probable activity. A row that no set of
    sources can produce is left empty and told. TABLE may be larger than memory; its columns have the names of the
    model's sensors, in any order.
    """
    refuse_two_answers(as_json, output)
    if (model, table) == ("-", "-"):
        raise click.UsageError("MODEL and TABLE cannot both come from standard input; put one in a file.")

    from bica.cli.activity_files import activity_file
    from bica.cli.decode_summary import Summary
    from bica.cli.files import check_outputs, read_model
    from bica.cli.table_files import check_table_names
    from bica.cli.waiting import waiting
    from bica.data.tables import open_table
    from bica.invert.stream import decode_table
    from bica.model.or_mixture import OrMixture

    check_table_names(output)
    check_outputs(force, output)
    mixture = OrMixture.of_document(read_model(model))
    summary = Summary()
    try:
        with waiting("decoding"):
            chunks = decode_table(mixture, open_table(table, binarize=binarize), solver=solver, nearest=nearest)
            with activity_file(output, mixture.source_names(), overwrite=force) as write:
                for found in chunks:
                    write(found.activity, found.feasible | nearest)
                    summary.add(found)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"after {summary.n_rows} rows") from None
    _tell(summary, mixture.n_sources, output, nearest=nearest, as_json=as_json)


def _tell(summary: Summary, n_sources: int, output: str, *, nearest: bool, as_json: bool) -> None:
    from bica.cli.screen import print_json, screen_for
    from bica.report.names import harmless

    if as_json:
        print_json(summary.as_dict() | {"n_sources": n_sources, "activity": output})
        return
    screen = screen_for(output)
    screen.print(f"{summary.n_rows} rows decoded, {n_sources} sources behind them")
    for sentence in summary.sentences(nearest=nearest):
        screen.print(sentence, soft_wrap=True)
    if output != "-":
        screen.print(harmless(f"activity: {output}"), soft_wrap=True)
