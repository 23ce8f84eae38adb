"""An assignment of sniffers to channels, for people and for programs."""

import csv
import io
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from bica.applications.monitoring.assignment import Assignment
from bica.cli.screens import Screen, print_json
from bica.cli.screens.model import number, plain_table
from bica.text import counted, folded, harmless, percent

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
    screen, problem = Screen(output), best.problem
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
        reached = int((problem.reach[s] & (problem.channel == assignment.channel[s])).sum())
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
