"""``bica decode``: which sources were on, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from bica.cli.options import binarize_option, force_option, json_option, output_option, refuse_two_answers
from bica.invert.decode import Decoded

if TYPE_CHECKING:
    from bica.invert.solvers import Solver

LISTED_ROWS = 1000  # for programs; people see fewer
SHOWN_ROWS = 5


@dataclass
class Summary:
    """How many rows there were, which of them are impossible, and which were not solved to the end."""

    n_rows: int = 0
    n_infeasible: int = 0
    infeasible: list[tuple[int, int]] = field(default_factory=list)  # the first rows, and how many cells are wrong
    n_unproven: int = 0
    largest_gap: float = 0.0

    def add(self, found: Decoded) -> None:
        """Count the next rows of the table."""
        impossible = np.flatnonzero(~found.feasible)
        for row in impossible[: LISTED_ROWS - len(self.infeasible)].tolist():
            self.infeasible.append((self.n_rows + row, int(found.n_wrong[row])))
        self.n_infeasible += len(impossible)
        self.n_unproven += int((~found.proven).sum())
        self.largest_gap = max(self.largest_gap, float(found.gap[~found.proven].max(initial=0.0)))
        self.n_rows += len(found.cost)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "n_rows": self.n_rows,
            "n_infeasible": self.n_infeasible,
            "infeasible": [{"row": row, "n_wrong": n_wrong} for row, n_wrong in self.infeasible],
            "n_unproven": self.n_unproven,
            "largest_gap": self.largest_gap,
        }

    def sentences(self, *, nearest: bool) -> Iterator[str]:
        """What a person should know beyond the number of rows."""
        if self.n_infeasible:
            shown = ", ".join(f"{row} ({n_wrong} wrong)" for row, n_wrong in self.infeasible[:SHOWN_ROWS])
            more = ", ..." if self.n_infeasible > SHOWN_ROWS else ""
            done = "got the nearest explanation" if nearest else "are left empty (--nearest explains them)"
            yield (
                f"{self.n_infeasible} rows that no set of sources produces {done}; by number, with the least number of "
                f"wrong cells: {shown}{more}"
            )
        if self.n_unproven:
            yield (
                f"{self.n_unproven} rows were not solved to the end: a better activity may exist, by at most "
                f"{self.largest_gap:.3g} in its log probability"
            )


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

    from bica.cli.options import check_outputs, read_model
    from bica.cli.screen import waiting
    from bica.data.tables import open_table
    from bica.data.writers import activity_file, check_table_names
    from bica.invert.decode import decode_table
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
    from bica.text import harmless

    if as_json:
        print_json(summary.as_dict() | {"n_sources": n_sources, "activity": output})
        return
    screen = screen_for(output)
    screen.print(f"{summary.n_rows} rows decoded, {n_sources} sources behind them")
    for sentence in summary.sentences(nearest=nearest):
        screen.print(sentence, soft_wrap=True)
    if output != "-":
        screen.print(harmless(f"activity: {output}"), soft_wrap=True)
