"""Sources that no data can tell apart are one source."""

import numpy as np
from numpy.typing import NDArray

Names = tuple[str | None, ...]


def merged_twins(
    mixing: NDArray[np.bool_], probability: NDArray[np.float64], names: Names
) -> tuple[NDArray[np.bool_], NDArray[np.float64], Names]:
    """Drop empty columns and merge equal ones, keeping the place of the first and the first name.

    >>> merged_twins(np.array([[True, False, True]]), np.array([0.5, 0.3, 0.5]), (None, "b", "c"))
    (array([[ True]]), array([0.75]), ('c',))
    """
    twins: dict[bytes, list[int]] = {}
    for j, column in enumerate(mixing.T):
        if column.any():
            twins.setdefault(np.packbits(column).tobytes(), []).append(j)
    if len(twins) == mixing.shape[1]:
        return mixing, probability, names
    groups = list(twins.values())
    first_name = tuple(next((names[j] for j in group if names[j] is not None), None) for group in groups)
    merged = np.array([_either(probability[group]) for group in groups], dtype=np.float64)
    return mixing[:, [group[0] for group in groups]], merged, first_name


def _either(probability: NDArray[np.float64]) -> float:
    """The chance that at least one of these sources is on; their rates add up."""
    if probability.size == 1:
        return float(probability[0])
    with np.errstate(divide="ignore"):  # a source that is always on has an infinite rate
        return float(-np.expm1(np.log1p(-probability).sum())) + 0.0  # never -0.0
