"""Random walks through Boolean factors, one bit after another.

``says[t, j]`` are the log odds that cell (t, j) is truly on, given what it shows; 0 where it was not observed.
``cover[t, j]`` is the number of sources k that explain the cell: ``activity[t, k]`` and ``mixing[k, j]`` are both on.
A bit is flipped with probability min(1, p(flipped) / p(as it is)), which leaves the posterior unchanged and moves more
often than drawing the bit anew ("Metropolised" Gibbs sampling). ``draws`` are uniform numbers, one per bit.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells
from bica.kernels.compiled import compiled

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]


@compiled
def flip_activity(
    says: Floats, mixing: Cells, prior_odds: float, draws: Floats, activity: Cells, cover: Counts
) -> None:
    """One sweep over the activity bits; ``prior_odds`` are the log odds that such a bit is on."""
    n_rows, n_sensors = says.shape
    for t in range(n_rows):
        for k in range(mixing.shape[0]):
            odds = prior_odds
            for j in range(n_sensors):
                if mixing[k, j] and cover[t, j] == activity[t, k]:  # no other source explains the cell
                    odds += says[t, j]
            if draws[t, k] < np.exp(-odds if activity[t, k] else odds):
                change = 1 - 2 * np.int32(activity[t, k])
                activity[t, k] = 1 - activity[t, k]
                for j in range(n_sensors):
                    cover[t, j] += change * mixing[k, j]


@compiled
def flip_mixing(says: Floats, activity: Cells, prior_odds: float, draws: Floats, mixing: Cells, cover: Counts) -> None:
    """One sweep over the mixing bits, those of one source at once: given the activity they are independent."""
    n_rows, n_sensors = says.shape
    odds, change = np.empty(n_sensors), np.empty(n_sensors, np.int32)
    for k in range(mixing.shape[0]):
        for j in range(n_sensors):
            odds[j] = prior_odds
        for t in range(n_rows):
            if activity[t, k]:
                for j in range(n_sensors):
                    odds[j] += says[t, j] if cover[t, j] == mixing[k, j] else 0.0
        for j in range(n_sensors):
            flipped = draws[k, j] < np.exp(-odds[j] if mixing[k, j] else odds[j])
            change[j] = (1 - 2 * np.int32(mixing[k, j])) * flipped
            mixing[k, j] += change[j]
        for t in range(n_rows):
            if activity[t, k]:
                for j in range(n_sensors):
                    cover[t, j] += change[j]


@compiled
def explained_wrongly(cells: Cells, cover: Counts) -> int:
    """How many cells show 0 although they are covered, or 1 although they are not; other cells do not count."""
    wrong = 0
    for t in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            wrong += (cells[t, j] == 0 and cover[t, j] > 0) or (cells[t, j] == 1 and cover[t, j] == 0)
    return wrong
