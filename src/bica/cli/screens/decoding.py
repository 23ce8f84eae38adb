"""Rows seen through a model: what is worth reporting of all that were decoded, and the explanations of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bica.cli.screens.model import SENSORS_SHOWN, number, plain_table
from bica.invert.decode import Decoded
from bica.invert.explain import Explanations
from bica.model.or_mixture import OrMixture
from bica.text import USUAL_NOUNS, Nouns, harmless, listed

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

    def join(self, other: Summary) -> None:
        """Count what was counted elsewhere, in the rows that follow."""
        room = LISTED_ROWS - len(self.infeasible)
        self.infeasible += [(self.n_rows + row, n_wrong) for row, n_wrong in other.infeasible[:room]]
        self.n_rows += other.n_rows
        self.n_infeasible += other.n_infeasible
        self.n_unproven += other.n_unproven
        self.largest_gap = max(self.largest_gap, other.largest_gap)

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


LIKELY = 0.01  # probability below which a source is not listed on the screen
STATES = ("off", "on", "unknown")


def show_explanations(
    screen: Console, model: OrMixture, cells: NDArray[np.uint8], found: Explanations, nouns: Nouns = USUAL_NOUNS
) -> None:
    """Print what was observed, its explanations from the likeliest down, and the sources that are likely on."""
    screen.print(Text(_observed_words(model, cells), style="bold"))
    screen.print(_explanations(model, found, nouns))
    if found.more_ties:
        screen.print(Text("further explanations are as likely as the last one; a larger -k shows them"))
    if not found.proven:
        screen.print(Text("too many sources are connected to try everything: a likelier explanation may be missing"))
    if not found.exact:
        screen.print(Text("too many sensors are connected to sum over everything: these are upper bounds, and"))
        screen.print(Text("probabilities of single sources are approximate"))
    if (found.source_probability >= LIKELY).any():
        screen.print(_likely_sources(model, found, nouns))
    else:
        screen.print(Text(f"no {nouns.source[0]} is on with a probability of 0.01 or more"))


def explanation_values(model: OrMixture, cells: NDArray[np.uint8], found: Explanations) -> dict[str, Any]:
    """The explanations as plain values."""
    names = model.source_names()
    return {
        "observed": {state: _named(model.sensors, cells == code) for code, state in enumerate(STATES)},
        "explanations": [
            {
                "rank": int(found.rank[k]),
                "probability": float(found.probability[k]),
                "sources": _named(names, found.activity[k]),
                "missed": _named(model.sensors, found.missed[k]),
                "false_alarm": _named(model.sensors, found.false_alarm[k]),
            }
            for k in range(len(found.rank))
        ],
        "exact": found.exact,
        "proven": found.proven,
        "more_ties": found.more_ties,
        "sources": [
            {"source": name, "probability": float(probability)}
            for name, probability in zip(names, found.source_probability, strict=True)
        ],
    }


def _named(names: tuple[str, ...], chosen: NDArray[np.bool_]) -> list[str]:
    return [names[i] for i in np.flatnonzero(chosen)]


def _observed_words(model: OrMixture, cells: NDArray[np.uint8]) -> str:
    parts = []
    for code, state in ((1, "on"), (0, "off"), (2, "unknown")):
        if (cells == code).any():
            parts.append(f"{state}: {listed(_named(model.sensors, cells == code), SENSORS_SHOWN)}")
    return "\n".join(parts)


def _explanations(model: OrMixture, found: Explanations, nouns: Nouns) -> Table:
    table = plain_table("rank")
    table.add_column("probability", justify="right", no_wrap=True)
    table.add_column(f"active {nouns.source[1]}", overflow="fold")
    erred = bool(found.missed.any() or found.false_alarm.any())
    if erred:
        table.add_column(f"{nouns.sensor[1]} {'that differ' if model.has_lossy_edges else 'in error'}", overflow="fold")
    names = model.source_names()
    for k, rank in enumerate(found.rank.tolist()):
        tied = (found.rank == rank).sum() > 1 or (found.more_ties and rank == found.rank[-1])
        active = (
            Text(listed(_named(names, found.activity[k]), SENSORS_SHOWN)) if found.activity[k].any() else Text("none")
        )
        errors = [Text(_error_words(model, found, k))] if erred else []
        table.add_row(f"{rank}=" if tied else f"{rank}", number(float(found.probability[k])), active, *errors)
    return table


def _error_words(model: OrMixture, found: Explanations, k: int) -> str:
    words = []
    verbs = ("not reached", "on by itself") if model.has_lossy_edges else ("missed", "false alarm")
    for verb, chosen in zip(verbs, (found.missed[k], found.false_alarm[k]), strict=True):
        if chosen.any():
            words.append(f"{verb}: {listed(_named(model.sensors, chosen), SENSORS_SHOWN)}")
    return "; ".join(words)


def _likely_sources(model: OrMixture, found: Explanations, nouns: Nouns) -> Table:
    """The sources that are likely on, likeliest first."""
    table = plain_table(nouns.source[0])
    table.add_column("on with probability", justify="right", no_wrap=True)
    table.add_column(nouns.sensor[1], overflow="fold")
    names = model.source_names()
    for source in np.argsort(-found.source_probability, kind="stable"):
        if found.source_probability[source] >= LIKELY:
            probability = number(float(found.source_probability[source]))
            sensors = Text(listed(_named(model.sensors, model.mixing[:, source]), SENSORS_SHOWN))
            table.add_row(Text(harmless(names[source])), probability, sensors)
    return table
