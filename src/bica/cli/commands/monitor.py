"""``bica monitor``: which channel each sniffer should watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bica.cli.commands.fit import method_names
from bica.cli.options import (
    force_option,
    json_option,
    named_model,
    names_between_commas,
    output_option,
    read_model,
    seed_option,
    waiting,
)
from bica.output import check_outputs

if TYPE_CHECKING:
    from bica.applications.monitoring.assignment import Assignment
    from bica.applications.monitoring.problem import MonitoringProblem

SOLVERS = ("best", "exact", "rounding", "derandomised", "greedy", "max")


def _channels(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The files by channel, from ``NAME=FILE`` or from a file named after its channel."""
    files = {}
    for text in given:
        name, equals, path = text.partition("=")
        name, path = (name, path) if equals and not Path(text).exists() else (Path(text).name.split(".")[0], text)
        if not name or name in files:
            raise click.BadParameter(f"{text!r}: give every channel a name of its own, as in 6=FILE.")
        files[name] = path
    if list(files.values()).count("-") > 1:
        raise click.BadParameter("standard input can be read once only.")
    return files


@click.command()
@click.argument("channels", nargs=-1, required=True, callback=_channels, metavar="[NAME=]FILE...")
@output_option("Write the assignment here: CSV with sniffer and channel; - is standard output.")
@click.option("--picture", metavar="FILE", help='Draw it: .png, .svg or .html (needs "bica[report]").')
@click.option(
    "--solver",
    type=click.Choice(SOLVERS),
    default="best",
    show_default=True,
    help="How to choose; best tries all and keeps the best.",
)
@click.option("--sniffers", callback=names_between_commas, metavar="A,B,...", help="Only these.  [default: all]")
@click.option(
    "--method",
    metavar="NAME",
    default="likelihood",
    show_default=True,
    shell_complete=method_names,
    help="How to learn from tables.",
)
@click.option(
    "--draws", type=click.IntRange(min=1), metavar="N", default=200, show_default=True, help="Random roundings."
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="For the exact solution; then the best found so far counts.",
)
@seed_option
@force_option
@json_option
def monitor(
    channels: dict[str, str],
    output: str | None,
    picture: str | None,
    solver: str,
    sniffers: tuple[str, ...] | None,
    method: str,
    draws: int,
    time_limit: float,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Choose the channel that each sniffer should watch.

    As many active users as possible are to be monitored. There is one FILE per channel: a model (.json), whose sources
    are the users and whose sensors are the sniffers; or a table of slots, as `bica slots` writes it, from which the
    users are learned first.
    """
    check_outputs(force, output, picture, as_json=as_json)

    import numpy as np

    from bica.applications.monitoring.assignment import SOLVERS, assign, relax
    from bica.cli.screens.results import assignment_csv, show_assignment
    from bica.output import write_output

    if picture is not None:
        _check_picture(picture)
    with waiting("monitoring"):
        problem = _problem(channels, sniffers, method, seed)
    with waiting("monitoring"):
        relaxation = relax(problem)
        found = [
            assign(
                problem,
                name,
                relaxation=relaxation,
                n_draws=draws,
                rng=np.random.default_rng(seed),
                time_limit=time_limit,
            )
            for name in SOLVERS
            if solver in ("best", name)
        ]
    # the first of equals: the exact one, if it is among them
    best = max(found, key=lambda assignment: assignment.value)
    if output is not None:
        write_output(output, assignment_csv(best), force)
    if picture is not None:
        _draw(found, best, picture, force)
    show_assignment(found, best, output, as_json=as_json)


def _problem(channels: dict[str, str], sniffers: tuple[str, ...] | None, method: str, seed: int) -> MonitoringProblem:
    """The problem of all channels in the order given: models as they are, tables learned."""
    import numpy as np

    from bica.applications.monitoring.problem import MonitoringProblem, heard_share, learn_channels
    from bica.methods import method_named

    models = {
        name: named_model(read_model(path)) for name, path in channels.items() if Path(path).suffix.lower() == ".json"
    }
    tables = {name: path for name, path in channels.items() if name not in models}
    learned = learn_channels(tables, method_named(method), np.random.default_rng(seed))
    busy = dict(learned.busy)
    for name, model in models.items():
        share = heard_share(model.reach, np.zeros(model.n_sources, np.int64), model.probability, 1)[:, 0]
        busy[name] = dict(zip(model.sensors, share.tolist(), strict=True))
    models |= {name: fit.model for name, fit in learned.fits.items()}
    return MonitoringProblem.of({name: models[name] for name in channels}, sniffers, busy)


def _check_picture(picture: str) -> None:
    from bica.errors import SettingError
    from bica.report.pictures import FORMATS, need_drawing

    need_drawing()
    if Path(picture).suffix not in FORMATS:
        raise SettingError(f"{picture} should end in {', '.join(FORMATS)}, which says how to draw it")


def _draw(found: list[Assignment], best: Assignment, picture: str, force: bool) -> None:
    from bica.applications.monitoring.assignment import gains
    from bica.report.applications import MonitoringPicture, monitoring_chart
    from bica.report.pictures import save_picture

    problem = best.problem
    worth = [gains(problem, sniffer, problem.probability).tolist() for sniffer in range(problem.n_sniffers)]
    drawn = MonitoringPicture(
        problem.sniffers,
        problem.channels,
        worth,
        best.channel.tolist(),
        {assignment.solver: assignment.value for assignment in found},
        best.bound,
    )
    save_picture(monitoring_chart(drawn), picture, overwrite=force)
