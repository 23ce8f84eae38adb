"""Options that all experiments share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from bica.cli.options import json_option

Function = TypeVar("Function", bound=Callable[..., Any])


def experiment_options(folder: str, n_runs: int, quick_runs: int, quick: str) -> Callable[[Function], Function]:
    """``-o``, ``--runs``, ``--quick``, ``--jobs`` and ``--json``, with this experiment's folder and sizes."""
    runs = f"Seeds for every cell.  [default: {n_runs}; quick: {quick_runs}]"
    options = (
        click.option("-o", "--output", metavar="FOLDER", default=folder, show_default=True, help="Where results go."),
        click.option("--runs", type=click.IntRange(min=1), metavar="N", help=runs),
        click.option("--quick", is_flag=True, help=quick),
        click.option(
            "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes at a time.  [default: one a core]"
        ),
        json_option,
    )

    def decorated(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated
