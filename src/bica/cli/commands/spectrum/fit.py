"""``bica spectrum fit``: from reports to users."""

from __future__ import annotations

import click

from bica.cli.app import INTERRUPTED
from bica.cli.options import force_option, json_option, output_option, rate, refuse_two_answers


def _noise(_: click.Context, __: click.Parameter, text: str) -> float | None:
    return None if text == "estimate" else rate(text)


@click.command()
@click.argument("table")
@output_option("Write the model here; - is standard output.")
@click.option(
    "--noise",
    default="estimate",
    show_default=True,
    callback=_noise,
    metavar="estimate|RATE",
    help="How often monitors report the opposite: estimated, or given.",
)
@force_option
@json_option
def fit(table: str, output: str | None, noise: float | None, force: bool, as_json: bool) -> None:
    """Learn the users behind TABLE, reports in consecutive slots.

    TABLE has one line per slot, in order, and one column per monitor. Unlike `bica fit`, this uses the order: users
    transmit for several slots, while errors of the monitors come and go.
    """
    refuse_two_answers(as_json, output)

    from bica.applications.spectrum import learn_users
    from bica.cli.screens import note, waiting
    from bica.cli.screens.model import give_model
    from bica.model.noise import Noise
    from bica.output import check_outputs
    from bica.pipeline import read_in_order

    check_outputs(force, output)
    with waiting("learning the users"):
        found = learn_users(read_in_order(table), noise=None if noise is None else Noise.flips(noise), n_jobs=-1)
    give_model(found.document(), output, as_json=as_json, force=force)
    if "interrupted" in found.diagnostics:
        raise click.exceptions.Exit(INTERRUPTED)
    if not found.converged:
        note("warning: the search stopped after its last round, though some changes still seemed to help")
