"""Decoding a table that may be larger than memory, chunk by chunk."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import Table, all_observed
from bica.errors import DataError
from bica.invert.decode import Decoder
from bica.invert.decoded import Decoded
from bica.invert.rows import Rows
from bica.invert.solvers import Solver
from bica.model.or_mixture import OrMixture, default_sensors
from bica.progress import listening, report


def decode_table(
    model: OrMixture, table: Table, *, solver: Solver = "auto", nearest: bool = False
) -> Iterator[Decoded]:
    """Decode all rows of a table in order, a chunk at a time; its columns are matched with the sensors by name.

    >>> from bica.data.tables import open_table
    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["door", "yard"])
    >>> table = open_table([[1, 1], [0, 1]], sensors=["yard", "door"])
    >>> [found.activity.astype(int).tolist() for found in decode_table(model, table)]
    [[[0, 1], [1, 0]]]
    """
    places = _places(model.sensors, table.sensors)
    return _decoded_chunks(Decoder(model, solver), table, places, nearest)


def _decoded_chunks(decoder: Decoder, table: Table, places: NDArray[np.int64], nearest: bool) -> Iterator[Decoded]:
    everything = all_observed(places.size)
    chunks, n_rows = table.chunks(), 0
    while True:
        with listening(lambda *_: None):  # the rows are counted, not the chunks
            chunk = next(chunks, None)
        if chunk is None:
            return
        seen = np.broadcast_to(everything, chunk.words.shape) if chunk.observed is None else chunk.observed
        rows = Rows(chunk.words, seen).of_sensors(places)
        yield decoder.decode(rows.words, rows.seen, nearest=nearest)
        n_rows += len(rows.words)
        report("rows decoded", n_rows, None)


def _places(sensors: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.int64]:
    """The column of each sensor; columns without names are in the order of the sensors."""
    if len(columns) == len(sensors) and columns == default_sensors(len(columns)):
        return np.arange(len(sensors))
    place = {name: i for i, name in enumerate(columns)}
    for name in sensors:
        if name not in place:
            raise DataError(f"the table has no column {name!r}, which the model watches; give a table with all sensors")
    for name in columns:
        if name not in sensors:
            raise DataError(f"the table has a column {name!r} that the model does not know; leave it out")
    return np.array([place[name] for name in sensors], dtype=np.int64)
