"""Where a new lossy source may be: pairs of sensors that come on together by themselves, and what comes on with them.

What a one leaves to the leak of its sensor, given the active sources of its row, is

    left_i = P(the sensor came on by itself | it is on) = leak_i / (1 - quiet_i)        (0 where it was not observed),

1 where no active source reaches it. Leaks are independent of each other, so sum over the rows of left_i left_k is about
left_i-total times left_k-total over T; a pair far above that has a cause that the model lacks.
"""

import numpy as np

from bica.kernels.compiled import compiled
from bica.kernels.rows.lists import Lists
from bica.kernels.rows.lossy import TRIAL_FAIL, LossyCells, Numbers, Places
from bica.kernels.rows.lossy_local import NEGLIGIBLE, Local

LITTLE = 0.02  # left to the leak: less cannot make a pair


@compiled
def left_together(sensors: Places, rows_of: Lists, place_of: Places, cells: LossyCells, left: Numbers) -> Numbers:
    """Sums of ``left_i left_k`` over all rows, for each of these sensors and every sensor: (n, n_sensors)."""
    (cell_starts, ones), both = cells.ones, np.zeros((sensors.size, rows_of.start.size - 1))
    for s in range(sensors.size):
        for k in range(rows_of.start[sensors[s]], rows_of.start[sensors[s] + 1]):
            mine = left[place_of[k]]
            if mine < LITTLE:
                continue
            row = rows_of.items[k]
            mine *= cells.weights[row]
            for at in range(cell_starts[row], cell_starts[row + 1]):
                both[s, ones[at]] += mine * left[at]
        both[s, sensors[s]] = 0.0
    return both


@compiled
def profile_of(
    first: int, second: int, rows_of: Lists, place_of: Places, cells: LossyCells, quiet: Numbers, leak: Numbers,
    usual: Numbers, profile: Numbers,
) -> float:  # fmt: skip
    """The weight of the rows in which both sensors are left to their leaks.

    ``profile`` becomes the weight of each sensor's ones among these rows. A cell that was not observed counts as
    ``usual``, the share of the sensor's ones in the whole table.
    """
    (cell_starts, ones), total = cells.ones, 0.0
    for i in range(profile.size):
        profile[i] = 0.0
    a, b = rows_of.start[first], rows_of.start[second]
    while a < rows_of.start[first + 1] and b < rows_of.start[second + 1]:
        row, other = rows_of.items[a], rows_of.items[b]
        if row == other:
            x, y = place_of[a], place_of[b]
            weight = cells.weights[row] * cells.heard[x] * cells.heard[y]
            weight *= leak[first] / (1.0 - quiet[x]) * leak[second] / (1.0 - quiet[y])
            total += weight
            for at in range(cell_starts[row], cell_starts[row + 1]):
                profile[ones[at]] += weight if cells.heard[at] > 0.0 else weight * usual[ones[at]]
        a += row <= other
        b += other <= row
    return total


@compiled
def count_absent(
    local: Local, posterior: Numbers, cells: LossyCells, quiet: Numbers, n_ones: Numbers, worth: Numbers
) -> None:
    """Add up, over the rows in which a source is on, the ones of every sensor and what a weak edge there would gain."""
    (cell_starts, ones) = cells.ones
    for k in range(local.rows.size):
        weight = local.weights[k] * posterior[k]
        if posterior[k] > NEGLIGIBLE:
            for at in range(cell_starts[local.rows[k]], cell_starts[local.rows[k] + 1]):
                n_ones[ones[at]] += weight
                worth[ones[at]] += weight * np.log((1.0 - TRIAL_FAIL * quiet[at]) / (1.0 - quiet[at]))
