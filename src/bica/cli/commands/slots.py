"""``bica slots``: from events to tables of zeros and ones; ``bica check`` and ``bica count``: tables before any fit."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import click

from bica.cli.options import (
    force_option,
    json_option,
    names_between_commas,
    output_option,
    print_json,
    screen_for,
    table_options,
    waiting,
)
from bica.errors import SettingError
from bica.output import check_target

if TYPE_CHECKING:
    from bica.cli.screens.slots import SlotsSummary
    from bica.data.observations import TableSums
    from bica.data.slots.store import EventStore
    from bica.data.slots.tables import SlotPlan
    from bica.diagnose.hints import Hint


@click.command()
@click.argument("events", nargs=-1, required=True)
@output_option(
    "Write the table here: .csv or .parquet, or - for CSV on standard output. With channels, one file each: "
    "-o log.csv writes log-1.csv, log-6.csv and so on.",
    required=True,
)
@click.option("--slot", "length", required=True, metavar="LENGTH", help="How long a slot is, as in 1s, 500ms or 5min.")
@click.option("--timezone", default="UTC", show_default=True, metavar="ZONE", help="Of times that name none.")
@click.option("--start", metavar="TIME", help="When the first slot begins.  [default: at the first event]")
@click.option("--end", metavar="TIME", help="When the last slot ends.  [default: after the last event]")
@click.option("--time", "time_column", default="time", show_default=True, metavar="COLUMN", help="Holds the times.")
@click.option("--sensor", "sensor_column", default="sensor", show_default=True, metavar="COLUMN", help="The sensors.")
@click.option(
    "--channel", "channel_column", metavar="COLUMN", help="The channels.  [default: channel, if there is one]"
)
@click.option(
    "--time-unit",
    type=click.Choice(("s", "ms", "us", "ns")),
    help="Of times that are numbers, counted since 1970.  [default: by their size]",
)
@click.option(
    "--time-format",
    metavar="FORMAT",
    help="How times are written, as in %d/%m/%Y %H:%M:%S.  [default: by their look]",
)
@click.option(
    "--sensors",
    callback=names_between_commas,
    metavar="A,B,...",
    help="The columns of the table.  [default: all that occur]",
)
@click.option(
    "--channels",
    callback=names_between_commas,
    metavar="1,6,...",
    help="One table for each.  [default: all that occur]",
)
@click.option("--one-table", is_flag=True, help="Put all channels into one table.")
@click.option(
    "--down", metavar="FILE", help="When sensors were down: a table with sensor, start, end, perhaps channel."
)
@click.option(
    "--sniffer",
    type=click.Choice(("file", "interface", "antenna")),
    default="file",
    show_default=True,
    help="What names the sensor of a captured packet.",
)
@click.option("--no-time", is_flag=True, help="Leave out the first column, the time at which each slot begins.")
@click.option("--skip-bad", is_flag=True, help="Leave out events that cannot be read, and count them.")
@force_option
@json_option
def slots(events: tuple[str, ...], output: str, force: bool, as_json: bool, **settings: Any) -> None:
    """Turn EVENTS, logs or captures, into a table of zeros and ones: one row per slot.

    A cell is 1 where a sensor reported something in that slot of time; the first column says when the slot begins.
    EVENTS are logs with a time and a sensor per line (CSV, JSON lines, Parquet), or captures (pcap, pcapng), one file
    per sniffer. They may be larger than memory and in any order. Cells of sensors that were down are left empty.
    """
    if settings["one_table"] and settings["channels"]:
        raise click.UsageError("--one-table and --channels exclude each other.")
    if events.count("-") > 1:
        raise click.UsageError("standard input can be read once only.")

    from bica.cli.screens.slots import show_slots
    from bica.data.slots.store import event_store, microseconds
    from bica.data.writers import check_table_names
    from bica.output import check_outputs

    check_table_names(output)
    length = microseconds(settings["length"])
    check_outputs(
        True, output, read=events, as_json=as_json
    )  # whether the tables exist is checked once the channels are known
    with waiting("making slots"), event_store(settings["timezone"]) as store:
        summary = _made(store, events, output, length, force, settings)
    show_slots(summary, output, as_json=as_json)


def _made(
    store: EventStore, events: tuple[str, ...], output: str, length: int, force: bool, settings: dict[str, Any]
) -> SlotsSummary:
    from pathlib import Path

    from bica.cli.screens.slots import SlotsSummary, table_paths
    from bica.data.slots.event_files import EventColumns, add_files
    from bica.data.slots.tables import clocks_that_went_back, plan_tables, read_outages, slot_grid, tally
    from bica.output import check_outputs
    from bica.text import told_apart

    if settings["channels"] is not None:
        check_outputs(force, *table_paths(output, settings["channels"]))
    columns = EventColumns(
        time=settings["time_column"],
        sensor=settings["sensor_column"],
        channel=settings["channel_column"],
        unit=settings["time_unit"],
        written=settings["time_format"],
    )
    outages = None if settings["down"] is None else read_outages(store, Path(settings["down"]), columns.unit)
    captures = add_files(store, events, columns, sniffer=settings["sniffer"], skip_bad=settings["skip_bad"])
    plan = plan_tables(
        store,
        slot_grid(store, length, settings["start"], settings["end"]),
        sensors=settings["sensors"],
        channels=settings["channels"],
        outages=outages,
        one_table=settings["one_table"],
    )
    paths = table_paths(output, plan.channels)
    check_outputs(force, *paths)
    counts = tally(store, plan)
    clocks = clocks_that_went_back(store)
    times = None if settings["no_time"] else told_apart([*plan.sensors, "time"])[-1]  # a sensor may have that name
    pairs = zip(plan.channels, paths, strict=True)
    tables = [_write(store, plan, channel, path, times, force) for channel, path in pairs]
    return SlotsSummary.of(store, plan, dict(zip(paths, tables, strict=True)), counts, clocks, captures)


def _write(store: EventStore, plan: SlotPlan, channel: str | None, path: str, times: str | None, force: bool) -> Any:
    """Write one table, piece by piece, with the start of each slot; return what was counted on the way."""
    from bica.data.slots.tables import TableCounts, slot_cells, slot_starts
    from bica.data.writers import cell_file

    counts, labels, n_rows = TableCounts.none_yet(plan.sensors), () if times is None else (times,), 0
    with cell_file(path, plan.sensors, overwrite=force, labels=labels, are_moments=True) as write:
        for cells in slot_cells(store, plan, channel, counts):
            write(cells, [slot_starts(store, plan.grid, n_rows, len(cells)) for _ in labels])
            n_rows += len(cells)
    return counts


@click.command()
@click.argument("table")
@click.option("--fit", "with_fit", is_flag=True, help="Learn the sources, too, and judge how well they explain TABLE.")
@table_options()
@json_option
def check(table: str, with_fit: bool, as_json: bool, reading: dict[str, Any]) -> None:
    """Check TABLE before any fit: whether hidden sources can explain it or another tool suits it, and the cost.

    TABLE is a file as for `bica fit`; a single dash reads CSV from standard input.
    """
    import numpy as np

    from bica.cli.screens.model import show_findings, show_verdict
    from bica.data.patterns import PatternCounts
    from bica.diagnose.hints import hints
    from bica.diagnose.verdicts import Diagnosis
    from bica.estimate.forecast import forecast
    from bica.methods import method_named
    from bica.pipeline import learn, observe

    with waiting("checking the table"):
        observed = observe(table, **reading)
        counts, order = cast("PatternCounts | TableSums", observed.data), observed.order  # not asked for in order
        diagnosis = Diagnosis.of(counts, trend=order.trend)
        some = counts if isinstance(counts, PatternCounts) else counts.sample(ENOUGH_ROWS, np.random.default_rng(0))
        signs = hints(some)
    with waiting("trying a fit, to see how long it takes"):
        ahead = forecast(counts, diagnosis.table)
    if with_fit:
        with waiting("learning the sources"):
            learner = method_named(ahead.method, n_jobs=-1)
            diagnosis = learn(observed, learner, np.random.default_rng(0)).diagnosis
    if as_json:
        noted = {} if order.persistence is None else {"order": asdict(order.persistence)}
        found = {"hints": [asdict(sign) for sign in signs], "forecast": asdict(ahead)}
        print_json(diagnosis.as_dict() | found | noted)
        return
    is_other = bool(signs) and diagnosis.verdict == "open"
    show_verdict(screen_for(), diagnosis.as_dict() | ({"verdict": OTHER_KIND} if is_other else {}))
    show_findings(screen_for(), [sign.sentence + _command(table, sign) for sign in signs])
    screen_for().print()
    alike = order.persistence
    in_order = [] if alike is None else [f"{alike.words()}; try `bica fit {table} --temporal` if they are slots"]
    show_findings(screen_for(), [*diagnosis.findings(), *in_order, ahead.sentence])


ENOUGH_ROWS = 50_000  # of a large table, to see whether it is of another kind
OTHER_KIND = "another kind: ORs of independent sources hardly ever make such a table"


def _command(table: str, sign: Hint) -> str:
    """What to type for such a table, if a method suits it."""
    if sign.method is None:
        return ""
    told = "" if sign.n_sources is None else f" --sources {sign.n_sources}"
    return f"; try `bica fit {table} --method {sign.method}{told}`"


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@output_option("Write the counts here, as Parquet.", required=True)
@table_options()
@force_option
@json_option
def count(tables: tuple[str, ...], output: str, force: bool, as_json: bool, reading: dict[str, Any]) -> None:
    """Count the distinct rows of each TABLE into one file, from which models are learned.

    Tables have the same columns. A TABLE may itself be a file of counts, so batches can be counted anywhere and merged
    anywhere: the counts are the same as those of all rows at once.
    """
    if not output.lower().endswith(".parquet"):
        raise SettingError(f"{output} should end in .parquet, which is how counts are kept")
    check_target(output, overwrite=force)

    from functools import reduce
    from operator import add

    from bica.data.patterns import PatternCounts
    from bica.text import counted

    with waiting("counting"):
        counts = reduce(add, (PatternCounts.of(table, **reading) for table in tables))
        counts.save(output, overwrite=force)
    if as_json:
        print_json({"rows": counts.n_samples, "distinct": len(counts.weights), "sensors": list(counts.sensors)})
        return
    rows, distinct = counted(int(counts.n_samples), "row"), counted(len(counts.weights), "distinct one")
    screen_for().print(f"{rows} of {counted(counts.n_sensors, 'sensor')}, {distinct}: {output}")
