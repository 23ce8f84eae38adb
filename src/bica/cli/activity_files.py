"""Activities as they are decoded, written piece by piece, rows without an answer left empty."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from bica.cli.cell_files import cell_file
from bica.data.chunks import MISSING

Write = Callable[[NDArray[np.bool_], NDArray[np.bool_]], None]  # activity, and which of its rows have an answer


@contextmanager
def activity_file(path: str, names: Sequence[str], *, overwrite: bool) -> Iterator[Write]:
    """A way to write some more rows; the file appears whole at the end, or not at all."""
    with cell_file(path, names, overwrite=overwrite) as write_cells:

        def write(activity: NDArray[np.bool_], answered: NDArray[np.bool_]) -> None:
            write_cells(np.where(answered[:, None], activity.view(np.uint8), np.uint8(MISSING)))

        yield write
