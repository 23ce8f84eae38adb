"""Small linear systems: NumPy's own solvers, and its ways to pick parts of arrays, take seconds to compile."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Sets = NDArray[np.int64]
Flags = NDArray[np.bool_]


@compiled
def factored(matrix: Matrix) -> Sets:
    """Replace a square matrix by its triangular factors L and U, rows exchanged; return the order of the rows.

    Gauss's elimination; in every column the largest entry left is the pivot.
    """
    n = matrix.shape[0]
    order = np.empty(n, np.int64)
    for k in range(n):
        order[k] = k
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        order[k], order[pivot] = order[pivot], order[k]
        for j in range(n):
            matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        for i in range(k + 1, n):
            matrix[i, k] /= matrix[k, k]
            for j in range(k + 1, n):
                matrix[i, j] -= matrix[i, k] * matrix[k, j]
    return order


@compiled
def solve_factored(matrix: Matrix, order: Sets, right: Vector, solution: Vector) -> None:
    """Solve the linear system whose matrix was ``factored``."""
    n = order.size
    for i in range(n):
        solution[i] = right[order[i]]
        for j in range(i):
            solution[i] -= matrix[i, j] * solution[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            solution[i] -= matrix[i, j] * solution[j]
        solution[i] /= matrix[i, i]


@compiled
def add_ridge(matrix: Matrix, relative: float, absolute: float) -> None:
    """Add to the diagonal this share of the trace, and a little more."""
    ridge = absolute
    for j in range(matrix.shape[0]):
        ridge += relative * matrix[j, j]
    for j in range(matrix.shape[0]):
        matrix[j, j] += ridge


@compiled
def square_part(matrix: Matrix, places: Sets) -> Matrix:
    """The rows and columns at these places."""
    part = np.empty((places.size, places.size))
    for a in range(places.size):
        for b in range(places.size):
            part[a, b] = matrix[places[a], places[b]]
    return part


@compiled
def places_of(flags: Flags) -> Sets:
    """Where the flags are set."""
    places, n = np.empty(flags.size, np.int64), 0
    for k in range(flags.size):
        if flags[k]:
            places[n] = k
            n += 1
    return places[:n]
