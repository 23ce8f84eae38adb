"""What became of the events: used, left out and why, and whether clocks ran backwards."""

from dataclasses import dataclass

from bica.data.slots.store import EventStore
from bica.data.slots.tables import ONE_TABLE, SlotPlan

USED, UNREADABLE, BEFORE, AFTER = "used", "unreadable", "before the start", "after the end"


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A sensor whose events were written with falling times: how often, and by how many microseconds at most."""

    sensor: str
    n_steps: int
    largest: int


def tally(store: EventStore, plan: SlotPlan) -> dict[str, int]:
    """How many events were used, and how many left out for each reason; every event counts once."""
    late = f"WHEN moment < $1 THEN '{BEFORE}' WHEN moment >= $2 THEN '{AFTER}'"
    where = f"CASE WHEN moment IS NULL THEN '{UNREADABLE}' {late} END"
    sql = f"SELECT {where} AS why, sensor, channel, count(*) FROM events GROUP BY ALL"  # noqa: S608 - our own words
    counts = {USED: 0}
    for why, sensor, channel, n_events in store.ask(sql, [plan.grid.start, plan.grid.end]):
        reason = why or _no_place(plan, sensor, channel) or USED
        counts[reason] = counts.get(reason, 0) + n_events
    return counts


def _no_place(plan: SlotPlan, sensor: str, channel: str | None) -> str | None:
    if sensor not in plan.sensors:
        return "other sensors"
    if plan.channels == (ONE_TABLE,) or channel in plan.channels:
        return None
    return "no channel" if channel is None else "other channels"


def clocks_that_went_back(store: EventStore) -> list[ClockStep]:
    """Sensors whose times fall somewhere along a file; a log that is in order as a whole takes one quick look."""
    quick = "SELECT moment < lag(moment) OVER () AND file = lag(file) OVER () AS back FROM events"
    [(n_back,)] = store.ask(f"SELECT count(*) FROM ({quick}) WHERE back")  # noqa: S608 - our own words
    if not n_back:
        return []
    back = "lag(moment) OVER (PARTITION BY file, sensor ORDER BY rowid) - moment AS back"
    rows = store.ask(
        f"SELECT sensor, count(*), max(back) FROM (SELECT sensor, {back} FROM events WHERE moment IS NOT NULL) "  # noqa: S608 - our own words
        "WHERE back > 0 GROUP BY sensor ORDER BY sensor"
    )
    return [ClockStep(*row) for row in rows]
