"""Rows in order, as bit sets, of which equal ones need to be looked at only once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING, n_words, unpacked
from bica.kernels.bits import Words, choose_bits, group_equal, group_small

SMALL = 8  # words below so many times the number of rows are counted in a table, not looked for


@dataclass(frozen=True, slots=True)
class Rows:
    """What the sensors showed, row by row."""

    words: Words  # (n_rows, n_words), bit 0 where a cell was not observed
    seen: Words  # same shape, bit set where it was

    def distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each distinct row stands first, and the number of its distinct row for every row.

        >>> words = np.array([[5], [7], [5]], dtype=np.uint64)
        >>> Rows(words, words).distinct()
        (array([0, 1]), array([0, 1, 0]))
        """
        if len(self.words) and (self.seen == self.seen[0]).all():
            keys = self.words
            top = int(keys.max())
            if keys.shape[1] == 1 and top < SMALL * len(keys):
                return _numbered(keys[:, 0], top)
        else:
            keys = np.hstack([self.words, self.seen])
        first, number = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        return first[: group_equal(keys, first, number)], number

    def pick(self, rows: NDArray[np.int64]) -> Rows:
        """These rows only."""
        return Rows(self.words[rows], self.seen[rows])

    def of_sensors(self, sensors: NDArray[np.int64]) -> Rows:
        """What these sensors showed."""
        taken = np.zeros((2, len(self.words), n_words(sensors.size)), np.uint64)
        choose_bits(self.words, sensors, taken[0])
        choose_bits(self.seen, sensors, taken[1])
        return Rows(taken[0], taken[1])

    def cells(self, n_sensors: int) -> NDArray[np.uint8]:
        """The rows unpacked: (n_rows, n_sensors) of 0, 1 and ``MISSING``."""
        on, seen = unpacked(self.words, n_sensors), unpacked(self.seen, n_sensors)
        return np.where(seen, on.view(np.uint8), np.uint8(MISSING))


def _numbered(words: NDArray[np.uint64], top: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct words by size, which are at most ``top``."""
    place, number = np.full(top + 1, -1, np.int64), np.empty(len(words), np.int64)
    first = np.empty(min(top + 1, len(words)), np.int64)
    return first[: group_small(words, place, first, number)], number
