"""What the figure and the table of the evaluation share: the same runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from bica.cli.reproduce.folder import run_in_folder
from bica.cli.reproduce.options import Function, experiment_options

if TYPE_CHECKING:
    from bica.compare.records import Record

_METHODS = click.option(
    "--methods", metavar="NAMES", help="Contenders, separated by commas.  [default: FindBICA, likelihood, mac, truth]"
)


def evaluation_options() -> Callable[[Function], Function]:
    """The options of an experiment, and who takes part."""
    shared = experiment_options("bica-reproduce", 50, 1, "Three numbers of rows and one run: a first look.")
    return lambda function: shared(_METHODS(function))


def evaluated(output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None) -> list[Record]:
    """The records of the evaluation, FindBICA at its best setting."""
    from bica.compare.evaluation import EVALUATED, QUICK_RUNS, evaluation_plan, with_best_findbica
    from bica.simulate import EVALUATION

    n_runs = runs or (QUICK_RUNS if quick else EVALUATION.n_runs)
    contenders = EVALUATED if methods is None else tuple(part.strip() for part in methods.split(","))
    plan = evaluation_plan(n_runs, contenders, quick=quick)
    return with_best_findbica(run_in_folder(plan, output, jobs))
