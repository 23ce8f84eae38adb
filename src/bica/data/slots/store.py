"""Events in a database on disk of our own: order kept, memory bounded, gone afterwards.

Times of every kind become microseconds since 1970, in the engine's language; lengths of time are as people write them.
"""

# ruff: noqa: S608 - only our own names enter a query

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import duckdb
import numpy as np
from numpy.typing import NDArray

from bica.data.readers.engine import QUIET, Row, ctrl_c_passing, plain, text_literal
from bica.errors import DataError, OutputError, SettingError
from bica.output import temporary_folder
from bica.text import brief

MICROSECONDS = {"us": 1, "ms": 1000, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
LENGTH = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*(us|µs|ms|s|min|h|d|)", re.ASCII)
LONGEST = 2**62  # microseconds; the engine counts in 64 bits


def microseconds(text: str) -> int:
    """A length of time in microseconds; a bare number is seconds.

    >>> microseconds("500ms"), microseconds("1 min"), microseconds("0.5")
    (500000, 60000000, 500000)
    """
    found = LENGTH.fullmatch(text.strip())
    if found is None:
        raise SettingError(
            f"{brief(text)} is no length of time; write a number and one of us, ms, s, min, h, d, as in 500ms"
        )
    number, unit = found.groups()
    whole, _, fraction = number.partition(".")
    scale = MICROSECONDS[unit.replace("µ", "u") or "s"]
    length, rest = divmod(int(whole + fraction) * scale, int(10 ** len(fraction)))
    if rest or not length:
        raise SettingError(f"a slot of {text} cannot be; it lasts one microsecond or a whole number of them")
    if length > LONGEST:
        raise SettingError(f"a slot of {text} is longer than all of time; write it as in 1d")
    return length


def in_words(length: int) -> str:
    """Microseconds in the largest unit that divides them.

    >>> in_words(500000), in_words(60000000)
    ('500 ms', '1 min')
    """
    unit = max((unit for unit, scale in MICROSECONDS.items() if length % scale == 0), key=MICROSECONDS.__getitem__)
    return f"{length // MICROSECONDS[unit]} {unit}"


Unit = Literal["s", "ms", "us", "ns"]
UNITS: tuple[Unit, ...] = ("s", "ms", "us", "ns")
INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
FRACTION = re.compile(r"FLOAT|DOUBLE|DECIMAL\(\d+, ?\d+\)")
CALENDAR = re.compile(r"DATE|TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?")
A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6}


def set_zone(engine: duckdb.DuckDBPyConnection, zone: str) -> None:
    """From here on, times without a zone of their own are local times of this one."""
    try:
        engine.execute(f"SET TimeZone = {text_literal(zone)}")
    except duckdb.Error:
        raise SettingError(
            f"there is no time zone {brief(zone)}; name one as in Europe/Berlin, or UTC, which is the default"
        ) from None


def unit_of_size(largest: float) -> Unit:
    """The unit of a time that is a number: today is 10 digits of seconds, 13 of milliseconds, and so on.

    >>> unit_of_size(1.7e9), unit_of_size(1.7e12), unit_of_size(86400)
    ('s', 'ms', 's')
    """
    return next((unit for unit, limit in zip(UNITS, (1e11, 1e14, 1e17), strict=False) if largest < limit), "ns")


def microseconds_sql(column: str, kind: str, unit: Unit, zone: str = "", known: str | None = None) -> str:
    """SQL for the moment in a column of this type, null where there is none; ``known`` says how it is written."""
    if known is not None:
        return f"epoch_us(try_strptime(trim({column}::VARCHAR), {text_literal(known)})::TIMESTAMPTZ)"
    if kind.startswith("TIMESTAMP") and zone == "UTC":
        return f"epoch_us({column}::TIMESTAMP)"  # no calendar is needed, which is several times as fast
    if CALENDAR.fullmatch(kind):
        return f"epoch_us(TRY_CAST({column} AS TIMESTAMPTZ))"
    if INTEGER.fullmatch(kind):
        return _of_integer(column, unit)
    if FRACTION.fullmatch(kind):
        return _of_fraction(column, unit)
    if kind == "VARCHAR":
        number = _of_integer(f"TRY_CAST({column} AS HUGEINT)", unit) if unit == "ns" else _of_text(column, unit)
        return f"coalesce(epoch_us(TRY_CAST({column} AS TIMESTAMPTZ)), {number})"
    raise DataError(f"the times are of type {kind}; they must be timestamps, text or numbers since 1970")


def _of_integer(column: str, unit: Unit) -> str:
    if unit == "ns":
        return f"TRY_CAST({column} // 1000 AS BIGINT)"
    return f"TRY_CAST({column}::HUGEINT * {10**6 // A_SECOND[unit]} AS BIGINT)"


def _of_fraction(column: str, unit: Unit) -> str:
    factor = 1e-3 if unit == "ns" else 1e6 / A_SECOND[unit]
    return f"TRY_CAST(round({column}::DOUBLE * {factor!r}) AS BIGINT)"


def _of_text(column: str, unit: Unit) -> str:
    return _of_fraction(f"TRY_CAST({column} AS DOUBLE)", unit)


def moment_given(engine: duckdb.DuckDBPyConnection, text: str, what: str) -> int:
    """A moment as a person writes it: a date and time, or seconds since 1970."""
    [(moment,)] = engine.execute(
        f"SELECT {microseconds_sql('t', 'VARCHAR', 's')} FROM (SELECT $1 AS t)",
        [text],
    ).fetchall()
    if moment is None:
        raise SettingError(
            f"{what} {brief(text)} is no time; write it as in 2024-05-01T12:00:00 or 2024-05-01T12:00:00Z"
        )
    return int(moment)


def written(engine: duckdb.DuckDBPyConnection, moment: int) -> str:
    """A moment for people and programs: ISO 8601 with the offset of the time zone."""
    [(local, offset)] = engine.execute(
        "SELECT strftime(t::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%f'), extract('timezone' FROM t) "
        "FROM (SELECT make_timestamptz($1) AS t)",
        [moment],
    ).fetchall()
    return str(local).rstrip("0").rstrip(".") + offset_words(int(offset))


def offset_words(seconds: int) -> str:
    """How far a clock is ahead of UTC, as ISO 8601 writes it.

    >>> offset_words(7200), offset_words(-12600)
    ('+02:00', '-03:30')
    """
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def offset_at(engine: duckdb.DuckDBPyConnection, moment: int) -> int:
    """How far the local clock is ahead of UTC at this moment, in microseconds."""
    [(seconds,)] = engine.execute("SELECT extract('timezone' FROM make_timestamptz($1))", [moment]).fetchall()
    return int(seconds) * 10**6


CLOCK_PARTS = r"(\d{1,2}:\d{2})(:\d{2})?([.]\d{1,6})?( ?[AaPp][Mm])?"
DATE_FIRST = rf"^\s*(\d{{1,2}})([./-])(\d{{1,2}})[./-](\d{{4}}|\d{{2}})(?:[ T]{CLOCK_PARTS})?\s*$"
MONTHS = 12


def date_format(example: str, largest: tuple[int, int]) -> str | None:
    """How a date is written that does not begin with its year, as ``strptime`` names it; None if it is not so.

    ``largest`` are the largest first and second numbers of all dates: a number above 12 is no month. Dots mean that the
    day comes first. What is left open is refused.

    >>> date_format("01/05/2024 12:00", (31, 12)), date_format("1/5/24 9:30 PM", (12, 31))
    ('%d/%m/%Y %H:%M', '%m/%d/%y %I:%M %p')
    """
    found = re.match(DATE_FIRST, example)
    if found is None:
        return None
    _, sign, _, year, clock, seconds, fraction, half = found.groups()
    if sign != "." and max(largest) <= MONTHS:
        raise DataError(
            f"in {brief(example)} the day or the month may come first; say which with --time-format, as in "
            f"%d{sign}%m{sign}%Y or %m{sign}%d{sign}%Y"
        )
    day, month = ("%d", "%m") if sign == "." or largest[0] > MONTHS else ("%m", "%d")
    date = sign.join((day, month, "%Y" if len(year) > 2 else "%y"))
    if clock is None:
        return date
    hours = f"{'%I' if half else '%H'}:%M{':%S' if seconds else ''}{'.%f' if fraction else ''}"
    return f"{date}{'T' if 'T' in example else ' '}{hours}{'' if half is None else half[:-2] + '%p'}"


OFFSET = re.compile(r"\s*(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)$")


def as_dates(texts: Sequence[str]) -> NDArray[np.datetime64] | None:
    """The moments as the local clock showed them, offsets left out; None unless all can be read.

    >>> as_dates(["2024-05-01T12:00:00+02:00", "2024-05-01 13:00"])
    array(['2024-05-01T12:00:00.000000', '2024-05-01T13:00:00.000000'],
          dtype='datetime64[us]')
    """
    local = [OFFSET.sub("", text.strip()) if ":" in text else text.strip() for text in texts]
    parts = [found.groups() for text in local if (found := re.match(DATE_FIRST, text))]
    try:
        largest = max(int(part[0]) for part in parts), max(int(part[2]) for part in parts)
        known = date_format(local[0], largest)
        local = local if known is None else [datetime.strptime(text, known).isoformat() for text in local]
    except (ValueError, DataError):  # not one such date, other ones, or nobody knows which is the day
        pass
    try:
        dates = np.array([text.replace("/", "-") for text in local], "datetime64[us]")
    except ValueError:
        return None
    return None if np.isnat(dates).any() else dates


CALENDAR_ENDS = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # microseconds: the years 1 to 9999 of ISO 8601
MEMORY = "1GB"  # what the engine may hold; the rest waits on disk


@dataclass(frozen=True, slots=True)
class EventStore:
    """All events of some files: ``events(file, moment, sensor, channel)``, in the order in which they were read.

    ``moment`` is in microseconds since 1970, null where an event cannot be used; ``channel`` is null where there is
    none.
    """

    engine: duckdb.DuckDBPyConnection
    zone: str

    def add_query(self, file: int, query: str, values: Sequence[Any] = ()) -> None:
        """Append the rows of a query of moment, sensor and channel; a moment outside the calendar is none."""
        first, last = CALENDAR_ENDS
        dated = f"CASE WHEN moment BETWEEN {first} AND {last} THEN moment END"
        self.ask(f"INSERT INTO events SELECT {file}, {dated}, sensor, channel FROM ({query})", values)

    def add_arrays(
        self,
        file: int,
        moments: NDArray[np.int64],
        sensors: tuple[Sequence[str], NDArray[np.int32]],
        channels: tuple[Sequence[str], NDArray[np.int32]],
    ) -> None:
        """Append events whose sensors and channels are places in a list of names, -1 for none."""
        self.engine.register("piece", {"moment": moments, "sensor": sensors[1], "channel": channels[1]})
        query = "SELECT moment, ($1)[sensor + 1] AS sensor, ($2)[channel + 1] AS channel FROM piece"
        self.add_query(file, query, [[*sensors[0], ""], [*channels[0], ""]])

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The whole result of a query whose result is small."""
        with self._plainly():
            rows: list[Row] = self.engine.execute(sql, list(values)).fetchall()
            return rows

    def columns(self, sql: str, values: Sequence[Any] = ()) -> list[NDArray[np.int64]]:
        """The columns of a query of whole numbers, as arrays."""
        with self._plainly():
            found = self.engine.execute(sql, list(values)).fetchnumpy()
        return [np.asarray(column, np.int64) for column in found.values()]

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            with ctrl_c_passing():
                yield
        except duckdb.Error as error:
            raise DataError(f"the events cannot be read: {plain(error)}") from None


@contextmanager
def event_store(zone: str = "UTC") -> Iterator[EventStore]:
    """An empty store, in which times without a zone are local times of ``zone``.

    >>> with event_store("Europe/Berlin") as store:
    ...     store.ask("SELECT count(*) FROM events")
    [(0,)]
    """
    with temporary_folder() as folder:
        settings: dict[str, Any] = {
            "temp_directory": str(folder),
            "memory_limit": MEMORY,
            "autoinstall_known_extensions": False,
        }
        try:
            engine = duckdb.connect(str(folder / "events.db"), config=settings)
        except duckdb.Error as error:
            raise OutputError(f"{folder.parent} cannot hold the events for a while: {plain(error)}") from None
        with engine:
            engine.execute(QUIET)
            set_zone(engine, zone)
            engine.execute("CREATE TABLE events (file INTEGER, moment BIGINT, sensor VARCHAR, channel VARCHAR)")
            yield EventStore(engine, zone)
