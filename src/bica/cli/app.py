"""The command ``bica``: a table of commands, each loaded when it is called."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import click

from bica.cli.failures import plain_errors
from bica.version import __version__

LIKE = 0.55  # how much of a word must agree with the one that was meant


def nearest(typed: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant; None if none is near.

    >>> nearest("fti", ["fit", "show"]), nearest("xyz", ["fit", "show"])
    ('fit', None)
    """
    from difflib import get_close_matches

    found = get_close_matches(typed.lower(), list(names), n=1, cutoff=LIKE)
    return found[0] if found else None


class LazyGroup(click.Group):
    """A group that loads a command when it is called; ``table`` has the module and the summary of each by name."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which a new user needs them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, a function of the same name in its module."""
        if cmd_name not in self.table:
            return None
        command: click.Command = getattr(import_module(self.table[cmd_name][0]), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was typed; where there is none of that name, the one that was probably meant is named."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            meant = nearest(args[0], self.table)
            if meant is None:
                raise
            raise click.UsageError(f"No such command {args[0]!r}; did you mean {meant}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the summaries without loading a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.table.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every error it raises is reported in one sentence."""
        with plain_errors():
            return super().invoke(ctx)


COMMANDS = {
    "demo": (
        "bica.cli.commands.demo",
        "Find the hidden links behind a small bundled table, and compare with the truth.",
    ),
    "check": (
        "bica.cli.commands.check",
        "Check TABLE before any fit: whether hidden sources can explain it, and at what cost.",
    ),
    "slots": (
        "bica.cli.commands.slots",
        "Turn EVENTS, logs or captures, into a table of zeros and ones: one row per slot.",
    ),
    "fit": ("bica.cli.commands.fit", "Learn the sources behind TABLE, a file of zeros and ones."),
    "show": ("bica.cli.commands.show", "Show the sources of MODEL: their sensors and how often each is on."),
    "name": ("bica.cli.commands.name", "Give sources of MODEL names, and say what sensors, sources and rows are."),
    "report": ("bica.cli.commands.report", "Write a report to send: MODEL as one HTML file that needs no network."),
    "decode": ("bica.cli.commands.decode", "Find which sources of MODEL were on in each row of TABLE."),
    "explain": (
        "bica.cli.commands.explain",
        "Explain one observation: the likeliest sets of active sources of MODEL behind it.",
    ),
    "simulate": ("bica.cli.commands.simulate", "Make a table of zeros and ones whose sources are known."),
    "score": ("bica.cli.commands.score", "Measure how far MODEL is from TRUTH, another model file."),
    "reproduce": ("bica.cli.commands.reproduce", "Run the paper's experiments again: results, figures and tables."),
    "export": ("bica.cli.commands.export", "Write MODEL as a graph or a list for other programs."),
    "monitor": ("bica.cli.commands.monitor", "Choose the channel that each sniffer should watch."),
    "spectrum": ("bica.cli.commands.spectrum", "Separate the users of a radio spectrum by what monitors report."),
}


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="bica %(version)s")
def app() -> None:
    """Find the independent hidden causes behind on/off data.

    Start with `bica demo`, then `bica fit TABLE -o MODEL`. Every command explains itself with --help.
    """


def main() -> None:
    """Run the command line: the script ``bica`` and ``python -m bica`` call this."""
    app(prog_name="bica")
