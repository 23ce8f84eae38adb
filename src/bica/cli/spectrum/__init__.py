"""``bica spectrum``: who uses a radio spectrum, from what monitors report."""

import click

from bica.cli.lazy_group import LazyGroup

COMMANDS = {
    "simulate": ("bica.cli.spectrum.simulate", "Make reports of monitors on a random field whose users are known."),
    "fit": ("bica.cli.spectrum.fit", "Learn the users behind TABLE, reports in consecutive slots."),
    "map": ("bica.cli.spectrum.map", "Tell where the users of MODEL are on FIELD, and draw the map."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def spectrum() -> None:
    """Separate the users of a radio spectrum: who is there, roughly where, and when the spectrum is free.

    Monitors report in every slot whether they hear anybody. Start with `bica spectrum simulate`, or with your own table
    of reports.
    """
