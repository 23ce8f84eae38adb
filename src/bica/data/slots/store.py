"""Events in a database on disk of our own: order kept, memory bounded, gone afterwards."""

# ruff: noqa: S608 - only our own names enter a query

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from bica.data.readers.engine import QUIET, Row, ctrl_c_passing, plain
from bica.data.slots.moments import set_zone
from bica.errors import DataError
from bica.output import temporary_folder

MEMORY = "1GB"  # what the engine may hold; the rest waits on disk


@dataclass(frozen=True, slots=True)
class EventStore:
    """All events of some files: ``events(file, moment, sensor, channel)``, in the order in which they were read.

    ``moment`` is in microseconds since 1970, null where an event cannot be used; ``channel`` is null where there is
    none.
    """

    engine: duckdb.DuckDBPyConnection
    zone: str

    def add_query(self, file: int, query: str) -> None:
        """Append the rows of a query of moment, sensor and channel."""
        self.ask(f"INSERT INTO events SELECT {file}, moment, sensor, channel FROM ({query})")

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
        self.ask(
            f"INSERT INTO events SELECT {file}, moment, sensor, channel FROM ({query})",
            [[*sensors[0], ""], [*channels[0], ""]],
        )

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
        with duckdb.connect(str(folder / "events.db"), config=settings) as engine:
            engine.execute(QUIET)
            set_zone(engine, zone)
            engine.execute("CREATE TABLE events (file INTEGER, moment BIGINT, sensor VARCHAR, channel VARCHAR)")
            yield EventStore(engine, zone)
