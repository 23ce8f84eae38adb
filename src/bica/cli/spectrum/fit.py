"""``bica spectrum fit``: from reports to users."""

from __future__ import annotations

import click

from bica.cli.failures import INTERRUPTED
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
    help="How often monitors report the opposite: found, or known.",
)
@force_option
@json_option
def fit(table: str, output: str | None, noise: float | None, force: bool, as_json: bool) -> None:
    """Learn the users behind TABLE, reports in consecutive slots.

    TABLE has a line a slot, in order, and a column a monitor. Unlike `bica fit`, this makes use of the order: users
    transmit for several slots, while errors of the monitors come and go.
    """
    refuse_two_answers(as_json, output)

    from bica.applications.spectrum import Slots, learn_users
    from bica.cli.files import check_outputs, write_file
    from bica.cli.model_table import show_model
    from bica.cli.screen import note, screen_for
    from bica.cli.waiting import waiting
    from bica.model.files import document_text
    from bica.model.noise import Noise

    check_outputs(force, output)
    with waiting("learning the users"):
        found = learn_users(Slots.of(table), noise=None if noise is None else Noise.flips(noise))
    document = found.document()
    if output is not None:
        write_file(output, document_text(document), force)
    if as_json:
        write_file("-", document_text(document), force)
    else:
        show_model(screen_for(output), document)
    if "interrupted" in found.diagnostics:
        raise click.exceptions.Exit(INTERRUPTED)
    if not found.converged:
        note("warning: the search was ended after its last round, though some changes still seemed to help")
