"""How the networks differ, whatever the order and the number of their sources."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, triu

from bica.metrics.pairs import mixing_pair


def in_degree_error(found: ArrayLike, truth: ArrayLike) -> int:
    """Over all sensors, by how much the number of sources that reach them differs (the paper's E_d).

    All found sources count, without matching: |diag(G G') - diag(F F')| for the mixings G and F, summed.

    >>> in_degree_error([[1, 0, 1], [0, 1, 1]], [[1, 1], [0, 1]])  # the paper's two sensors, before pruning
    1
    """
    left, right = mixing_pair(found, truth)
    return int(np.abs(left.sum(axis=1) - right.sum(axis=1)).sum())


def structure_error(found: ArrayLike, truth: ArrayLike, *, diagonal: bool = False) -> int:
    """Over all pairs of sensors, by how much the number of sources that they share differs (the paper's E_s).

    All found sources count, without matching: |triu(G G') - triu(F F')| summed. ``diagonal`` adds the pairs of a
    sensor with itself, which is the in-degree error. Time grows with the pairs of sensors that share a source.

    >>> structure_error([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    1
    >>> structure_error([[1, 0], [0, 1]], [[1, 1], [0, 1]], diagonal=True)
    2
    """
    left, right = mixing_pair(found, truth)
    difference = _shared_sources(left) - _shared_sources(right)
    return int(abs(triu(difference, k=0 if diagonal else 1)).sum())


def _shared_sources(mixing: NDArray[np.bool_]) -> csr_array:
    links = csr_array(mixing.astype(np.int64))
    return links @ links.T
