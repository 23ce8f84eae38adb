"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print plain JSON for programs, not a table.")
force_option = click.option("--force", is_flag=True, help="Overwrite files that exist.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="Where chance starts from."
)


def output_option(help_text: str, *, required: bool = False) -> Callable[[Function], Function]:
    """``-o FILE``; a single dash is standard output."""
    return click.option("-o", "--output", metavar="FILE", required=required, help=help_text)


def refuse_two_answers(as_json: bool, *outputs: str | None) -> None:
    """Standard output can carry one thing only, and a file can be written once."""
    wanted = [output for output in outputs if output is not None]
    if as_json and "-" in wanted:
        raise click.UsageError("--json and a file written to `-` both want standard output; choose one.")
    if len(set(wanted)) < len(wanted):
        raise click.UsageError("two outputs go to the same place; name them differently.")


def rate(text: str) -> float:
    """A number in [0, 1), as an option gives it."""
    try:
        value = float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number.") from None
    if not 0 <= value < 1:
        raise click.BadParameter(f"{text} does not lie in [0, 1).")
    return value
