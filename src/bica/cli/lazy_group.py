"""A group of commands that loads a command when it is asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from bica.cli.failures import plain_errors


class LazyGroup(click.Group):
    """Knows its commands by name: the module of each, whose function has the same name, and a summary."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of a first walk through the program."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, from the module of the same name."""
        if cmd_name not in self.table:
            return None
        command: click.Command = getattr(import_module(self.table[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the summaries without loading a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.table.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every error that may come out of it is told in one sentence."""
        with plain_errors():
            return super().invoke(ctx)
