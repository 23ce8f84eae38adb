"""What decoding finds, row by row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import unpacked
from bica.kernels.bits import Words
from bica.kernels.decoding import TIE


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The most probable activity behind each row, and how sure it is that there is none better.

    A row that no set of sources can produce is not feasible: its cost is infinite, and ``n_wrong`` is the least number
    of its cells that must be wrong. Its activity is all off, unless the nearest explanation was asked for.
    """

    active: Words  # (n_rows, n_words), bit j is source j
    cost: NDArray[np.float64]  # (n_rows,), -log of the chance of that activity and the row together
    gap: NDArray[np.float64]  # (n_rows,), how much lower the cost of an unknown activity could be; 0: it is the least
    n_wrong: NDArray[np.int32]  # (n_rows,), cells that the model cannot produce together with the others
    n_sources: int

    @property
    def activity(self) -> NDArray[np.bool_]:
        """Which sources were on: (n_rows, n_sources)."""
        return unpacked(self.active, self.n_sources)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows the model can produce at all; without noise that need not be every one."""
        return np.isfinite(self.cost)

    @property
    def proven(self) -> NDArray[np.bool_]:
        """For which rows no better activity exists."""
        return self.gap <= TIE
