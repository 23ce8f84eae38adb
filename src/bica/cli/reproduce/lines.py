"""The means of an experiment on the screen: a line a method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from bica.compare.records import Record


def table_of(rows: Sequence[Record], column: str) -> Table:
    """A line for every method and noise level, a column for every value that ``column`` has in the rows."""
    from rich import box
    from rich.table import Table

    titles = list(dict.fromkeys(row[column] for row in rows))
    table = Table("method", "flips", box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(str(title).removeprefix("topology "), justify="right", no_wrap=True)
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        flips = f"{100 * row['flip_rate']:g} %" if "flip_rate" in row else "all"
        lines.setdefault((row["contender"], flips), {})[row[column]] = row["mean"]
    for (method, flips), values in sorted(lines.items()):
        table.add_row(method, flips, *(f"{values[t]:.4f}" if t in values else "-" for t in titles))
    return table
