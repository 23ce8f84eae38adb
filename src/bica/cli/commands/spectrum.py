"""``bica spectrum``: users of a radio spectrum, separated by what monitors report, and reports with a known answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from bica.cli.app import INTERRUPTED, LazyGroup
from bica.cli.options import (
    force_option,
    json_option,
    named_model,
    note,
    output_option,
    print_json,
    rate,
    read_model,
    screen_for,
    seed_option,
    waiting,
)
from bica.output import check_outputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from bica.applications.spectrum.field import PlacedUsers, Propagation
    from bica.applications.spectrum.survey import Survey
    from bica.model.files import ModelDocument


COMMANDS = {
    "simulate": (
        "bica.cli.commands.spectrum",
        "Make reports of monitors on a random field whose users are known.",
    ),
    "fit": ("bica.cli.commands.spectrum", "Learn the users behind TABLE, reports in consecutive slots."),
    "map": ("bica.cli.commands.spectrum:map_users", "Find where the users of MODEL are on FIELD, and draw the map."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def spectrum() -> None:
    """Separate the users of a radio spectrum by what monitors report.

    Who is there, roughly where, and when the spectrum is free. Monitors report in every slot whether they hear anybody.
    Start with `bica spectrum simulate`, or with your own table of reports.
    """


Function = TypeVar("Function", bound=Callable[..., Any])
above_zero = click.FloatRange(min=0, min_open=True)


def radio_options(function: Function) -> Function:
    """The options that decide how far a user is heard."""
    options = (
        click.option("--power", type=above_zero, metavar="MW", help="Of a user's transmitter.  [default: 20]"),
        click.option("--floor", type=float, metavar="DBM", help="Noise floor of the monitors.  [default: -95]"),
        click.option("--threshold", type=float, metavar="DB", help="Above the floor.  [default: 5]"),
        click.option("--exponent", type=above_zero, metavar="N", help="Of the path loss.  [default: 3]"),
        click.option("--loss", type=float, metavar="DB", help="Path loss at 1 m.  [default: 40]"),
        click.option("--fading", type=click.FloatRange(0), metavar="DB", help="Spread of signals.  [default: 0]"),
    )
    for option in reversed(options):
        function = option(function)
    return function


def propagation_of(settings: dict[str, float | None]) -> Propagation | None:
    """The radio that the options describe; None if none was given."""
    from bica.applications.spectrum.field import Propagation

    names = {
        "power": "power_mw",
        "floor": "noise_dbm",
        "threshold": "threshold_db",
        "exponent": "exponent",
        "loss": "reference_loss_db",
        "fading": "fading_db",
    }
    given = {names[name]: value for name, value in settings.items() if value is not None}
    return Propagation(**given) if given else None


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
    check_outputs(force, output, truth, activity, field_file, as_json=as_json)

    import numpy as np

    from bica.applications.spectrum import draw_survey, random_field, random_traffic
    from bica.applications.spectrum.survey import field_text
    from bica.data.writers import check_table_names, table_bytes
    from bica.model.files import document_text
    from bica.output import write_output

    check_table_names(output, activity)
    rng = np.random.default_rng(seed)
    with waiting("drawing slots"):
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
    from bica.text import harmless

    n_users, n_sources = survey.field.n_users, survey.problem.model.n_sources
    n_heard = sum(map(len, survey.members))
    radius = survey.field.propagation.radius
    if as_json:
        counts = {"n_users": n_users, "n_heard": n_heard, "n_sources": n_sources, "radius": radius}
        print_json({"n_samples": survey.problem.n_samples, **counts, **files})
        return
    screen = screen_for("-" if "-" in files.values() else None)
    screen.print(
        f"{survey.problem.n_samples} slots of {len(survey.field.monitors)} monitors; users reach {radius:.0f} m"
    )
    screen.print(f"{n_heard} of {n_users} users are heard, {n_sources} can be told apart")
    for what, path in files.items():
        if path not in (None, "-"):
            screen.print(harmless(f"{what}: {path}"), soft_wrap=True)


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
    check_outputs(force, output, read=[table], as_json=as_json)

    from bica.applications.spectrum import learn_users
    from bica.cli.commands.fit import give_model
    from bica.model.noise import Noise
    from bica.pipeline import read_in_order

    with waiting("learning the users"):
        found = learn_users(read_in_order(table), noise=None if noise is None else Noise.flips(noise), n_jobs=-1)
    give_model(found, output, as_json=as_json, force=force)
    if "interrupted" in found.diagnostics:
        raise click.exceptions.Exit(INTERRUPTED)
    if not found.converged:
        note("warning: the search stopped after its last round, though some changes still seemed to help")


STEPS = 50  # squares along a side of the map


@click.command("map")
@click.argument("model")
@click.argument("field")
@output_option('Draw the map here: .png, .svg or .html (needs "bica[report]").')
@click.option("--table", metavar="TABLE", help="Reports, to draw when each user was active.")
@click.option(
    "--first", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="Slot to begin with."
)
@click.option(
    "--slots", type=click.IntRange(min=1), metavar="N", default=400, show_default=True, help="How many slots."
)
@radio_options
@force_option
@json_option
def map_users(
    model: str,
    field: str,
    output: str | None,
    table: str | None,
    first: int,
    slots: int,
    force: bool,
    as_json: bool,
    **radio: float | None,
) -> None:
    """Find where the users of MODEL are on FIELD, and draw the map.

    MODEL is what `bica spectrum fit` wrote. FIELD has the places of the monitors in metres: CSV with the columns
    monitor, x and y, or the JSON of `bica spectrum simulate`. A user is near every monitor that hears it and away from
    the others; without a --loss that suits the place, 40 dB at 1 m, the distances mean little.
    """
    check_outputs(force, output, read=[model, field])

    from bica.applications.spectrum.field import PlacedUsers
    from bica.applications.spectrum.survey import read_field

    document = read_model(model)
    with waiting("locating the users"):
        placed = PlacedUsers.of(named_model(document), read_field(field, propagation_of(radio)))
        activity = None if table is None else _activity(placed, document, table)[first : first + slots]
        if output is not None:
            _draw(placed, activity, first, output, force)
    if as_json:
        print_json({"radius": placed.field.propagation.radius, "users": _records(placed)})
        return
    screen = screen_for()
    screen.print(f"users are heard within {placed.field.propagation.radius:.0f} m")
    screen.print(_table(placed))


def _activity(placed: PlacedUsers, document: ModelDocument, table: str) -> NDArray[np.bool_]:
    """Which users were active in each slot, decoded in time."""
    from bica.errors import DataError
    from bica.estimate.temporal import stays_in_time
    from bica.invert.temporal.decode import decode_in_time
    from bica.pipeline import read_in_order

    slots = read_in_order(table)
    if slots.sensors != placed.model.sensors:
        raise DataError(f"{table} has other columns than the model; give the table from which it was learned")
    stays = stays_in_time(placed.model, slots.words, slots.observed)
    return decode_in_time(placed.model, slots.words, slots.observed, persistence=stays).activity


def _draw(placed: PlacedUsers, activity: NDArray[np.bool_] | None, first: int, output: str, force: bool) -> None:
    from bica.errors import SettingError
    from bica.report.pictures import FORMATS, need_drawing, save_picture

    need_drawing()
    from bica.report.applications import FoundUser, SpectrumMap, spectrum_map_chart

    if Path(output).suffix not in FORMATS:
        raise SettingError(f"{output} should end in {', '.join(FORMATS)}, which says how to draw it")
    field, model = placed.field, placed.model
    users = [
        FoundUser(name, (float(region.centre[0]), float(region.centre[1])), region.spread, float(probability))
        for name, region, probability in zip(model.source_names(), placed.regions, model.probability, strict=True)
    ]
    drawn = SpectrumMap(
        side=field.side,
        radius=field.propagation.radius,
        monitors=[(name, x, y) for name, (x, y) in zip(field.monitor_names, field.monitors.tolist(), strict=True)],
        users=users,
        busy=placed.busy(STEPS).tolist(),
        true_users=[(x, y) for x, y in field.users.tolist()],
        quiet=placed.quiet().tolist(),
        activity=activity,
        first_slot=first,
        corner=field.corner,
    )
    save_picture(spectrum_map_chart(drawn), output, overwrite=force)


def _records(placed: PlacedUsers) -> list[dict[str, object]]:
    model = placed.model
    return [
        {
            "name": name,
            "monitors": [sensor for sensor, hears in zip(model.sensors, column, strict=True) if hears],
            "probability": float(probability),
            "x": float(region.centre[0]),
            "y": float(region.centre[1]),
            "spread": region.spread,
            "contradictions": region.n_contradictions,
        }
        for name, column, probability, region in zip(
            model.source_names(), model.mixing.T, model.probability, placed.regions, strict=True
        )
    ]


def _table(placed: PlacedUsers) -> Table:
    """One line per user; a question mark where no place on the field fits what was heard."""
    from rich.text import Text

    from bica.cli.screens.model import SENSORS_SHOWN, number, plain_table
    from bica.text import harmless, listed

    table = plain_table("user")
    for title in ("active", "x", "y", "give or take"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("heard by", overflow="fold")
    model = placed.model
    for name, column, probability, region in zip(
        model.source_names(), model.mixing.T, model.probability, placed.regions, strict=True
    ):
        doubt = " ?" if region.n_contradictions else ""
        place = [f"{value:.0f}" for value in region.centre]
        heard_by = [sensor for sensor, hears in zip(model.sensors, column, strict=True) if hears]
        spread = f"{region.spread:.0f} m{doubt}"
        table.add_row(
            Text(harmless(name)), number(float(probability)), *place, spread, Text(listed(heard_by, SENSORS_SHOWN))
        )
    return table
