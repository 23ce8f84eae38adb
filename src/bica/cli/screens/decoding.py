"""What is worth reporting about the decoded rows of a table, collected chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bica.invert.decode import Decoded

LISTED_ROWS = 1000  # impossible rows listed in JSON
SHOWN_ROWS = 5  # impossible rows listed on the screen


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
        """The summary as plain values."""
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
