"""``bica spectrum map``: the places of users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bica.cli.commands.spectrum import propagation_of, radio_options
from bica.cli.options import force_option, json_option, output_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from bica.applications.spectrum.placing import PlacedUsers
    from bica.model.files import ModelDocument

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
def map(  # noqa: A001 (the command's name)
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
    from bica.applications.spectrum.field_files import read_field
    from bica.applications.spectrum.placing import PlacedUsers
    from bica.cli.options import read_model
    from bica.cli.screens import Screen, print_json, waiting
    from bica.model.or_mixture import OrMixture
    from bica.output import check_outputs

    check_outputs(force, output)
    document = read_model(model)
    with waiting("locating the users", compiles=table is not None):
        placed = PlacedUsers.of(OrMixture.of_document(document), read_field(field, propagation_of(radio)))
        activity = None if table is None else _activity(placed, document, table)[first : first + slots]
        if output is not None:
            _draw(placed, activity, first, output, force)
    if as_json:
        print_json({"radius": placed.field.propagation.radius, "users": _records(placed)})
        return
    screen = Screen()
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
    from bica.report.spectrum_map import FoundUser, SpectrumMap, spectrum_map_chart

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

    from bica.cli.screens.model import number, plain_table, sensor_list
    from bica.text import harmless

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
        table.add_row(Text(harmless(name)), number(float(probability)), *place, spread, sensor_list(heard_by))
    return table
