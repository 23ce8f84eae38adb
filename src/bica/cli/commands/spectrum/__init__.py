"""``bica spectrum``: the users of a radio spectrum, from what monitors report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bica.cli.app import LazyGroup

if TYPE_CHECKING:
    from bica.applications.spectrum.field import Propagation

COMMANDS = {
    "simulate": (
        "bica.cli.commands.spectrum.simulate",
        "Make reports of monitors on a random field whose users are known.",
    ),
    "fit": ("bica.cli.commands.spectrum.fit", "Learn the users behind TABLE, reports in consecutive slots."),
    "map": ("bica.cli.commands.spectrum.map", "Find where the users of MODEL are on FIELD, and draw the map."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def spectrum() -> None:
    """Separate the users of a radio spectrum by what monitors report.

    Who is there, roughly where, and when the spectrum is free. Monitors report in every slot whether they hear anybody.
    Start with `bica spectrum simulate`, or with your own table of reports.
    """


Function = TypeVar("Function", bound=Callable[..., Any])
above_zero = click.FloatRange(min=0, min_open=True)


def radio_options(function: Function) -> Function:
    """The options that decide how far a user is heard."""
    options = (
        click.option("--power", type=above_zero, metavar="MW", help="Of a user's transmitter.  [default: 20]"),
        click.option("--floor", type=float, metavar="DBM", help="Noise floor of the monitors.  [default: -95]"),
        click.option("--threshold", type=float, metavar="DB", help="Above the floor.  [default: 5]"),
        click.option("--exponent", type=above_zero, metavar="N", help="Of the path loss.  [default: 3]"),
        click.option("--loss", type=float, metavar="DB", help="Path loss at 1 m.  [default: 40]"),
    )
    for option in reversed(options):
        function = option(function)
    return function


def propagation_of(settings: dict[str, float | None]) -> Propagation | None:
    """The radio that the options describe; None if none was given."""
    from bica.applications.spectrum.field import Propagation

    names = {
        "power": "power_mw",
        "floor": "noise_dbm",
        "threshold": "threshold_db",
        "exponent": "exponent",
        "loss": "reference_loss_db",
    }
    given = {names[name]: value for name, value in settings.items() if value is not None}
    return Propagation(**given) if given else None
