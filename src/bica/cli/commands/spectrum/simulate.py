"""``bica spectrum simulate``: reports with a known answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from bica.cli.commands.spectrum import above_zero, propagation_of, radio_options
from bica.cli.options import force_option, json_option, output_option, refuse_two_answers, seed_option

if TYPE_CHECKING:
    from bica.applications.spectrum.survey import Survey


@click.command()
@output_option("Write the reports here: .csv or .parquet, or - for CSV on standard output.", required=True)
@click.option("--field", "field_file", metavar="FILE", help="Write here where monitors and users are (JSON).")
@click.option("--truth", metavar="FILE", help="Write the true model here.")
@click.option("--activity", metavar="FILE", help="Write here who was active, slot by slot.")
@click.option("--users", type=click.IntRange(min=1), metavar="N", default=10, show_default=True, help="How many.")
@click.option("--monitors", type=click.IntRange(min=1), metavar="N", default=10, show_default=True, help="How many.")
@click.option("--side", type=above_zero, metavar="M", default=500.0, show_default=True, help="Of the square field.")
@click.option(
    "--samples", type=click.IntRange(min=1), metavar="N", default=10_000, show_default=True, help="How many slots."
)
@click.option(
    "--flip-rate",
    type=click.FloatRange(0, 0.5, max_open=True),
    metavar="RATE",
    default=0.0,
    show_default=True,
    help="How often a report is the opposite.",
)
@click.option(
    "--reading",
    type=click.Choice(["rare", "uniform"]),
    default="rare",
    show_default=True,
    help="Of the users' activity: 2 % on average, or probabilities of a change from U(0, 1).",
)
@radio_options
@seed_option
@force_option
@json_option
def simulate(
    output: str,
    field_file: str | None,
    truth: str | None,
    activity: str | None,
    users: int,
    monitors: int,
    side: float,
    samples: int,
    flip_rate: float,
    reading: Literal["rare", "uniform"],
    seed: int,
    force: bool,
    as_json: bool,
    **radio: float | None,
) -> None:
    """Make reports of monitors on a random field whose users are known.

    In the truth, users whom the same monitors hear are one source, and users whom nobody hears are left out.
    """
    refuse_two_answers(as_json, output, truth, activity, field_file)

    import numpy as np

    from bica.applications.spectrum import draw_survey, random_field, random_traffic
    from bica.applications.spectrum.field_files import field_text
    from bica.cli.screens import waiting
    from bica.data.writers import check_table_names, table_bytes
    from bica.model.files import document_text
    from bica.output import check_outputs, write_output

    check_table_names(output, activity)
    check_outputs(force, output, truth, activity, field_file)
    rng = np.random.default_rng(seed)
    with waiting("drawing slots", compiles=False):
        field = random_field(users, rng, n_monitors=monitors, side=side, propagation=propagation_of(radio))
        survey = draw_survey(field, random_traffic(users, rng, reading), samples, flip_rate, rng)
        problem = survey.problem
        files: dict[str, str | bytes] = {output: table_bytes(problem.rows, problem.model.sensors, output)}
        if activity is not None:
            files[activity] = table_bytes(problem.activity, problem.model.source_names(), activity)
        if truth is not None:
            files[truth] = document_text(problem.model.document())
        if field_file is not None:
            files[field_file] = field_text(field, survey.traffic)
    for path, content in files.items():
        write_output(path, content, force)
    _show(survey, {"table": output, "field": field_file, "truth": truth, "activity": activity}, as_json=as_json)


def _show(survey: Survey, files: dict[str, str | None], *, as_json: bool) -> None:
    """Print what was made, and where it is."""
    from bica.cli.screens import Screen, print_json
    from bica.text import harmless

    n_users, n_sources = survey.field.n_users, survey.problem.model.n_sources
    n_heard = sum(map(len, survey.members))
    radius = survey.field.propagation.radius
    if as_json:
        counts = {"n_users": n_users, "n_heard": n_heard, "n_sources": n_sources, "radius": radius}
        print_json({"n_samples": survey.problem.n_samples, **counts, **files})
        return
    screen = Screen("-" if "-" in files.values() else None)
    screen.print(
        f"{survey.problem.n_samples} slots of {len(survey.field.monitors)} monitors; users reach {radius:.0f} m"
    )
    screen.print(f"{n_heard} of {n_users} users are heard, {n_sources} can be told apart")
    for what, path in files.items():
        if path not in (None, "-"):
            screen.print(harmless(f"{what}: {path}"), soft_wrap=True)
