"""What became of the events, on the screen and as plain values."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from bica.cli.options import print_json, screen_for
from bica.cli.screens.model import plain_table
from bica.data.slots.store import EventStore, in_words, written
from bica.data.slots.tables import ONE_TABLE, USED, ClockStep, SlotPlan, TableCounts
from bica.errors import SettingError
from bica.text import counted, folded, harmless, told_apart

SHOWN = 8  # names in a sentence


@dataclass(frozen=True, slots=True)
class SlotsSummary:
    """What is worth reporting about the tables, and about events that are not in them."""

    plan: SlotPlan
    start: str
    end: str
    time_zone: str
    tables: Mapping[str, TableCounts]  # by path
    events: Mapping[str, int]  # used, and left out for each reason
    clocks: Sequence[ClockStep]
    captures: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(
        cls,
        store: EventStore,
        plan: SlotPlan,
        tables: Mapping[str, TableCounts],
        events: Mapping[str, int],
        clocks: Sequence[ClockStep],
        captures: Mapping[str, Mapping[str, int]],
    ) -> "SlotsSummary":
        """The summary, with times written in the store's time zone."""
        start, end = (written(store.engine, moment) for moment in (plan.grid.start, plan.grid.end))
        return cls(plan, start, end, store.zone, tables, events, clocks, captures)

    @property
    def n_repeats(self) -> int:
        """How many events fell into a slot in which their sensor had reported before."""
        cells = sum(int(counts.on.sum()) + counts.heard_while_down for counts in self.tables.values())
        return self.events[USED] - cells

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain values."""
        return {
            "slot_seconds": self.plan.grid.length / 1e6,
            "n_slots": self.plan.grid.n_slots,
            "start": self.start,
            "end": self.end,
            "time_zone": self.time_zone,
            "sensors": list(self.plan.sensors),
            "tables": [
                self._table(channel, *item)
                for channel, item in zip(self.plan.channels, self.tables.items(), strict=True)
            ],
            "n_events": sum(self.events.values()),
            "n_used": self.events[USED],
            "left_out": {why: n for why, n in self.events.items() if why != USED},
            "n_repeats": self.n_repeats,
            "clocks_that_went_back": [
                {"sensor": step.sensor, "n_steps": step.n_steps, "largest_seconds": step.largest / 1e6}
                for step in self.clocks
            ],
            "captures": {path: dict(counts) for path, counts in self.captures.items()},
        }

    def _table(self, channel: str | None, path: str, counts: TableCounts) -> dict[str, Any]:
        return {
            "channel": channel,
            "path": path,
            "n_on": int(counts.on.sum()),
            "n_missing": int(counts.missing.sum()),
            "n_heard_while_down": counts.heard_while_down,
            "silent_sensors": list(counts.silent()),
        }

    def sentences(self) -> Iterator[str]:
        """What a person should know beyond the tables."""
        yield f"{counted(self.events[USED], 'event')} used, {self.n_repeats} of them in a slot that was on already"
        for why, n_events in self.events.items():
            if why != USED:
                yield f"{counted(n_events, 'event')} left out: {why}"
        for channel, counts in zip(self.plan.channels, self.tables.values(), strict=True):
            yield from _table_sentences(channel, counts)
        for step in self.clocks:
            yield (
                f"the clock of {step.sensor} went back {counted(step.n_steps, 'time')}, by up to "
                f"{_about(step.largest)}; each event counts in the slot of its own time"
            )
        for path, skipped in self.captures.items():
            yield from _capture_sentences(path, skipped)


def _about(microseconds: float) -> str:
    """A time in the largest unit of which there are two or more."""
    for unit, length in (("days", 86_400e6), ("hours", 3_600e6), ("minutes", 60e6)):
        if microseconds >= 2 * length:
            return f"{microseconds / length:.3g} {unit}"
    return f"{microseconds / 1e6:g} s"


def _table_sentences(channel: str | None, counts: TableCounts) -> Iterator[str]:
    where = "" if channel is ONE_TABLE else f" on channel {channel}"
    silent = counts.silent()
    if len(silent) == len(counts.sensors):
        yield f"nothing was heard{where}: its table has no 1"
    elif silent:
        yield f"{folded(list(silent), SHOWN)} heard nothing{where}"
    if counts.heard_while_down:
        yield f"{counted(counts.heard_while_down, 'cell')} left empty{where} although something was heard while down"


def _capture_sentences(path: str, skipped: Mapping[str, int]) -> Iterator[str]:
    words = {
        "damaged_places": f"{counted(skipped['damaged_places'], 'damaged place')}",
        "cut_off": "the end is cut off",
        "packets_without_time": f"{counted(skipped['packets_without_time'], 'packet')} without a time",
        "packets_without_radiotap": f"{counted(skipped['packets_without_radiotap'], 'packet')} without radiotap header",
    }
    found = [words[what] for what in words if skipped[what]]
    if found:
        yield f"{path}: {', '.join(found)}; {counted(skipped['skipped_bytes'], 'byte')} skipped"


def table_paths(output: str, channels: Sequence[str | None]) -> list[str]:
    """The file of each table; the name of its channel is added to that of the file.

    >>> table_paths("log.csv", ["1", "5 GHz"])
    ['log-1.csv', 'log-5_GHz.csv']
    """
    if list(channels) == [ONE_TABLE] or (output == "-" and len(channels) == 1):
        return [output]
    if output == "-":
        raise SettingError(
            f"there are {len(channels)} channels, so {len(channels)} tables, but one standard output; "
            "name a file, choose one with --channels, or join them with --one-table"
        )
    base = Path(output)
    names = told_apart(re.sub(r"[^\w.-]", "_", str(channel)) for channel in channels)
    return [str(base.with_name(f"{base.stem}-{name}{base.suffix}")) for name in names]


def show_slots(summary: SlotsSummary, output: str, *, as_json: bool) -> None:
    """Print the summary."""
    if as_json:
        print_json(summary.as_dict())
        return
    screen, grid = screen_for(output), summary.plan.grid
    slots = f"{counted(grid.n_slots, 'slot')} of {in_words(grid.length)}"
    screen.print(f"{slots} from {summary.start} to {summary.end} ({summary.time_zone})", soft_wrap=True)
    screen.print(_table_of_tables(summary))
    for sentence in summary.sentences():
        screen.print(Text(harmless(sentence)), soft_wrap=True)


def _table_of_tables(summary: SlotsSummary) -> Any:
    table = plain_table("table")
    for title in ("channel", "sensors", "on", "missing"):
        table.add_column(title, justify="right", no_wrap=True)
    n_cells = summary.plan.grid.n_slots * len(summary.plan.sensors)
    for channel, (path, counts) in zip(summary.plan.channels, summary.tables.items(), strict=True):
        shares = (f"{part.sum() / n_cells:.2%}" for part in (counts.on, counts.missing))
        name = "-" if channel is ONE_TABLE else harmless(channel)
        table.add_row(Text(harmless(path)), Text(name), str(len(summary.plan.sensors)), *shares)
    return table
