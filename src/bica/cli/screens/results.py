"""Found sources beside the true ones, and all measures with their meanings; sniffers assigned to channels."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bica.applications.monitoring.assignment import Assignment
from bica.cli.options import print_json, screen_for
from bica.cli.screens.model import SENSORS_SHOWN, number, plain_table
from bica.metrics.matching import aligned, paired_sources
from bica.model.or_mixture import OrMixture
from bica.text import counted, folded, harmless, listed, percent


def comparison_values(found: OrMixture, truth: OrMixture) -> list[dict[str, Any]]:
    """One entry per true source, then one per found source that matches none; None where there is no counterpart."""
    true, ours = _sources(truth, truth.sensors), _sources(aligned(found, truth), truth.sensors)
    return [
        {
            "true": None if pair.true is None else true[pair.true],
            "found": None if pair.found is None else ours[pair.found],
            "exact": pair.exact,
        }
        for pair in paired_sources(found, truth)
    ]


def _sources(model: OrMixture, sensors: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "sensors": [sensors[i] for i in np.flatnonzero(column).tolist()], "probability": probability}
        for name, column, probability in zip(
            model.source_names(), model.mixing.T, model.probability.tolist(), strict=True
        )
    ]


def show_comparison(screen: Console, found: OrMixture, truth: OrMixture) -> None:
    """Print the sources side by side, ticked where the sensors agree exactly."""
    pairs = comparison_values(found, truth)
    screen.print(comparison_table(pairs, tick="yes" if screen.options.ascii_only else "✓"))
    exact = sum(pair["exact"] for pair in pairs)
    others = found.n_sources - exact
    screen.print(f"{exact} of {truth.n_sources} true sources found exactly, and {others or 'no'} others")


def comparison_table(pairs: list[dict[str, Any]], tick: str) -> Table:
    """One line per pair; a found source with other sensors than the true one gets a line of its own below."""
    table = plain_table("source")
    table.add_column("sensors", overflow="fold")
    table.add_column("true", justify="right", no_wrap=True)
    table.add_column("found", justify="right", no_wrap=True)
    table.add_column("exact", justify="center", no_wrap=True)
    for pair in pairs:
        true, found = pair["true"], pair["found"]
        if true is not None:
            ours = number(found["probability"]) if found else "-"
            name, sensors = Text(harmless(true["name"])), Text(listed(true["sensors"], SENSORS_SHOWN))
            table.add_row(name, sensors, number(true["probability"]), ours, tick if pair["exact"] else "no")
        if found is not None and not pair["exact"]:
            below = "  found as" if true else f"{harmless(found['name'])} (spurious)"
            ours = "" if true else number(found["probability"])
            table.add_row(
                Text(below),
                Text(listed(found["sensors"], SENSORS_SHOWN)),
                "" if true else "-",
                ours,
                "" if true else "no",
            )
    return table


MEANING = {
    "n_found": "sources in MODEL",
    "n_true": "sources in TRUTH",
    "n_exact": "found with exactly their sensors",
    "precision": "exact among the found",
    "recall": "exact among the true",
    "f1": "both in one; 1 is perfect",
    "mean_probability_error": "over the exact ones",
    "max_probability_error": "over the exact ones",
    "hamming_distance": "share of wrong cells in the mixing",
    "in_degree_error": "sources of a sensor, off in total",
    "structure_error": "sources of a pair, off in total",
    "transmission_probability_error": "divergence of the probabilities",
    "n_missing": "true sources without a match",
    "edge_f1": "edges of matched sources; 1 is perfect",
    "mean_reach_error": "over right edges that rows can tell",
    "max_reach_error": "over right edges that rows can tell",
    "activity_error_ratio": "share of wrong cells in the activity",
}


def show_score(screen: Console, measures: Mapping[str, float | None]) -> None:
    """Print one line per measure."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name, value in measures.items():
        table.add_row(name, _value(value), MEANING[name])
    screen.print(table)


def _value(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else number(value)


UNSEEN_SHOWN = 8  # users in a sentence


def assignment_csv(assignment: Assignment) -> str:
    """CSV with one line per sniffer; the channel is empty where a sniffer adds nothing."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sniffer", "channel"])
    writer.writerows([sniffer, channel or ""] for sniffer, channel in assignment.watched().items())
    return text.getvalue()


def show_assignment(found: list[Assignment], best: Assignment, output: str | None, *, as_json: bool) -> None:
    """Print the best assignment, the users that it leaves unseen, and the values of the other solvers."""
    if as_json:
        print_json(summary(found, best))
        return
    screen, problem = screen_for(output), best.problem
    parts = (counted(problem.n_users, "user"), counted(problem.n_channels, "channel"))
    screen.print(Text(f"{' on '.join(parts)}, {counted(problem.n_sniffers, 'sniffer')}", style="bold"))
    screen.print(_sniffer_table(best))
    screen.print(_solver_table(found))
    best_word = " and cannot be more" if best.proven else ""
    screen.print(
        f"{number(best.value)} active users are monitored on average{best_word}, of {number(_active(best))} that are "
        "active",
        soft_wrap=True,
    )
    screen.print(Text(harmless(_unseen_words(best))), soft_wrap=True)


def summary(found: list[Assignment], best: Assignment) -> dict[str, Any]:
    """The best assignment and the values of all solvers as plain values."""
    problem = best.problem
    return best.as_dict() | {
        "n_users": problem.n_users,
        "n_active": _active(best),
        "n_users_on_channel": dict(zip(problem.channels, _users_per_channel(best), strict=True)),
        "out_of_reach": _out_of_reach(best),
        "solvers": {other.solver: other.value for other in found},
    }


def _active(assignment: Assignment) -> float:
    return float(assignment.problem.probability.sum())


def _users_per_channel(assignment: Assignment) -> list[int]:
    problem = assignment.problem
    return [int((problem.channel == k).sum()) for k in range(problem.n_channels)]


def _out_of_reach(assignment: Assignment) -> list[str]:
    problem = assignment.problem
    return [problem.users[u] for u in np.flatnonzero(~problem.reach.any(axis=0)).tolist()]


def _sniffer_table(assignment: Assignment) -> Table:
    table = plain_table("sniffer")
    table.add_column("channel", overflow="fold")
    table.add_column("users in reach there", justify="right", no_wrap=True)
    problem = assignment.problem
    for s, (sniffer, channel) in enumerate(assignment.watched().items()):
        reached = int(((problem.reach[s] > 0) & (problem.channel == assignment.channel[s])).sum())
        shown = "-" if channel is None else harmless(channel)
        table.add_row(Text(harmless(sniffer)), Text(shown), str(reached) if channel is not None else "")
    return table


def _solver_table(found: list[Assignment]) -> Table:
    table = plain_table("solver")
    table.add_column("active users", justify="right", no_wrap=True)
    table.add_column("of the upper bound", justify="right", no_wrap=True)
    for assignment in found:
        table.add_row(assignment.solver, number(assignment.value), percent(assignment.share_of_bound))
    table.add_row("upper bound", number(found[0].bound), "")
    return table


def _unseen_words(assignment: Assignment) -> str:
    unseen, beyond = assignment.unseen(), _out_of_reach(assignment)
    if not assignment.problem.n_users:
        return "there are no users, so there is nothing to watch"
    words = "every user is seen" if not unseen else f"unseen: {folded(unseen, UNSEEN_SHOWN)}"
    empty = [c for c, n in zip(assignment.problem.channels, _users_per_channel(assignment), strict=True) if not n]
    if beyond:
        words += f"; out of reach of every sniffer: {counted(len(beyond), 'user')}"
    return words + (f"; no user is on channel {', '.join(empty)}" if empty else "")
