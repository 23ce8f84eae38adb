"""Parities of sets of sensors: whether an odd number of them is on."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled


@compiled
def walsh_hadamard(values: NDArray[np.float64]) -> None:
    """Replace ``values[w]`` by the sum over x of ``values[x]``, with a minus where w and x share an odd number of bits.

    With counts of rows x this gives how many more rows have an even than an odd number of the sensors w on.
    """
    half = 1
    while half < values.size:
        for begin in range(0, values.size, 2 * half):
            for place in range(begin, begin + half):
                even, odd = values[place], values[place + half]
                values[place] = even + odd
                values[place + half] = even - odd
        half *= 2


@compiled
def first_independent(order: NDArray[np.int64], basis: NDArray[np.int64], chosen: NDArray[np.int64]) -> None:
    """Fill ``chosen`` with the first bit sets in ``order`` that are no XOR of those chosen before.

    ``basis`` is work space of the same size, zeros at first; it holds the chosen sets reduced against each other, the
    highest bit of each lowered by none of the others.
    """
    found = 0
    for k in range(order.size):
        rest = order[k]
        for b in range(found):
            rest = min(rest, rest ^ basis[b])
        if rest != 0:
            chosen[found] = order[k]
            place = found
            while place > 0 and basis[place - 1] < rest:  # falling, so that one pass reduces completely
                basis[place] = basis[place - 1]
                place -= 1
            basis[place] = rest
            found += 1
            if found == chosen.size:
                return
