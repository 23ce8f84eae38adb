"""One door for tables of every kind."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bica.data.arrays import ArrayTable
from bica.data.chunks import Table
from bica.errors import DataError

Binarize = float | Mapping[str, float] | None


def open_table(
    x: Any,
    *,
    sensors: Sequence[str] | None = None,
    sample_weight: Any = None,
    binarize: Binarize = None,
) -> Table:
    """Look at ``x`` just enough to know its columns; the rows are read later, chunk by chunk."""
    array = np.asanyarray(x)
    if array.ndim != 2:
        raise DataError(f"a table has rows and columns, but this array has {array.ndim} dimensions")
    names = tuple(sensors) if sensors is not None else tuple(f"x{i}" for i in range(array.shape[1]))
    return ArrayTable(array, names)
