"""What it costs that sensors show what they show."""

import numpy as np
from numpy.typing import NDArray


def shown_cost(
    penalty: NDArray[np.float64], mixing: NDArray[np.bool_], activity: NDArray[np.bool_], cells: NDArray[np.uint8]
) -> NDArray[np.float64]:
    """``-log`` of the chance of each row of cells, given the same row of ``activity``; infinite where impossible.

    ``penalty`` is (n_sensors, n_kinds, 2), by the cell shown and the sensor's true state.

    >>> penalty = np.array([[[0.0, 3.0], [2.0, 0.0]]])
    >>> shown_cost(penalty, np.array([[True]]), np.array([[False], [True]]), np.array([[1], [1]], dtype=np.uint8))
    array([2., 0.])
    """
    state = activity @ mixing.T  # on booleans, @ is exactly OR over ANDs
    cost: NDArray[np.float64] = penalty[np.arange(len(mixing)), cells, state.astype(np.intp)].sum(axis=1)
    return cost
