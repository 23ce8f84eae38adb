"""``bica spectrum``: who uses a radio spectrum, from what monitors report."""

import click

from bica.cli.app import LazyGroup

COMMANDS = {
    "simulate": (
        "bica.cli.commands.spectrum.simulate",
        "Make reports of monitors on a random field whose users are known.",
    ),
    "fit": ("bica.cli.commands.spectrum.fit", "Learn the users behind TABLE, reports in consecutive slots."),
    "map": ("bica.cli.commands.spectrum.map", "Tell where the users of MODEL are on FIELD, and draw the map."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def spectrum() -> None:
    """Separate the users of a radio spectrum by what monitors report.

    Who is there, roughly where, and when the spectrum is free. Monitors report in every slot whether they hear anybody.
    Start with `bica spectrum simulate`, or with your own table of reports.
    """
