"""The command ``bica``: a table of commands, each loaded when it is asked for."""

import click

from bica.cli.lazy_group import LazyGroup
from bica.version import __version__

COMMANDS = {
    "demo": ("bica.cli.demo", "Find the hidden links behind a small bundled table, and compare with the truth."),
    "check": ("bica.cli.check", "Look at TABLE before any fit: whether hidden sources can explain it, and the cost."),
    "slots": ("bica.cli.slots", "Turn EVENTS, logs or captures, into a table of zeros and ones: one row a slot."),
    "fit": ("bica.cli.fit", "Learn the sources behind TABLE, a file of zeros and ones."),
    "show": ("bica.cli.show", "Show the sources of MODEL: their sensors and how often each is on."),
    "decode": ("bica.cli.decode", "Tell which sources of MODEL were on in each row of TABLE."),
    "explain": (
        "bica.cli.explain",
        "Explain one observation: the likeliest sets of active sources of MODEL behind it.",
    ),
    "simulate": ("bica.cli.simulate", "Make a table of zeros and ones whose sources are known."),
    "score": ("bica.cli.score", "Measure how far MODEL is from TRUTH, another model file."),
    "reproduce": ("bica.cli.reproduce", "Run the paper's experiments again: results, figures and tables."),
    "export": ("bica.cli.export", "Write MODEL as a graph or a list for other programs."),
    "monitor": ("bica.cli.monitor", "Choose the channel that each sniffer should watch."),
    "spectrum": ("bica.cli.spectrum", "Separate the users of a radio spectrum by what monitors report."),
}


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="bica %(version)s")
def app() -> None:
    """Find the independent hidden causes behind on/off data.

    Start with `bica demo`, then `bica fit TABLE -o MODEL`. Every command explains itself with --help.
    """


def main() -> None:
    """Run the command line; what the script ``bica`` and ``python -m bica`` call."""
    app(prog_name="bica")
