"""``bica reproduce``: the paper's experiments, one command each."""

import click

from bica.cli.app import LazyGroup

COMMANDS = {
    "topologies": (
        "bica.cli.commands.reproduce.evaluation",
        "The evaluation's figure: all error measures on four networks.",
    ),
    "table": ("bica.cli.commands.reproduce.evaluation", "The evaluation's computation times."),
    "monitoring": (
        "bica.cli.commands.reproduce.monitoring",
        "Active users watched on a campus, against the number of sniffers.",
    ),
    "spectrum": ("bica.cli.commands.reproduce.spectrum", "Primary users separated by what ten monitors report."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def reproduce() -> None:
    """Run the paper's experiments again: results, figures and tables.

    Each writes a folder. To continue a run that was killed, give the same command again. Start with --quick. Pictures
    need "bica[report]".
    """
