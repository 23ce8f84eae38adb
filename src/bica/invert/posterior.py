"""How likely each source was on in each row, and how likely each row is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import all_observed, n_words
from bica.errors import BicaWarning, DataError
from bica.invert.group_sums import GroupSums, group_sums
from bica.invert.groups import Group, groups_of
from bica.invert.rows import Rows
from bica.kernels.bits import Words
from bica.model.or_mixture import OrMixture
from bica.model.words import counted


@dataclass(frozen=True, slots=True)
class Posterior:
    """The chance of each source to be on in each row, given what the sensors showed."""

    probability: NDArray[np.float64]  # (n_rows, n_sources); NaN where the model cannot produce the row
    error: NDArray[np.float64]  # (n_rows, n_sources), how far off it may be, by estimate; 0 where exact
    exact: NDArray[np.bool_]  # (n_rows, n_sources)


@dataclass(frozen=True, slots=True)
class LogChance:
    """The log of the chance of each row."""

    value: NDArray[np.float64]  # (n_rows,), minus infinity where the model cannot produce the row
    exact: NDArray[np.bool_]  # (n_rows,), False where the value is a lower bound


def posterior(model: OrMixture, words: Words, observed: Words | None = None) -> Posterior:
    """Tell how likely each source was on, given the row; cells that were not observed may be anything.

    Exact for every part of the model of up to 20 connected sensors, and for wider ones as long as few of their sets
    have to be told apart (2^21, which twenty sources never need). Beyond, only the likeliest activities are summed up;
    ``exact`` tells where, and ``error`` how far off that may be. Equal rows are looked at once. A row that the model
    cannot produce has no posterior: it is NaN, and a warning counts such rows.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> posterior(model, np.array([[1], [3]], dtype=np.uint64)).probability
    array([[1. , 0. ],
           [0.2, 1. ]])
    """
    rows = checked_rows(model, words, observed)
    first, number = rows.distinct()
    found, possible = _of_distinct(model, rows.pick(first))
    n_impossible = int((~possible[number]).sum())
    if n_impossible:
        warnings.warn(
            f"the model cannot produce {counted(n_impossible, 'row')} of {len(number)}, so that the posterior there "
            "is NaN; fit with noise to give every row a chance",
            BicaWarning,
            stacklevel=2,
        )
    return Posterior(found.probability[number], found.error[number], found.exact[number])


def log_chance(model: OrMixture, words: Words, observed: Words | None = None) -> LogChance:
    """The log of the chance of each row, exact or a lower bound under the same conditions as ``posterior``.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> np.exp(log_chance(model, np.arange(4, dtype=np.uint64)[:, None]).value).round(6)
    array([0.4, 0.1, 0. , 0.5])
    """
    rows = checked_rows(model, words, observed)
    first, number = rows.distinct()
    value, exact = np.zeros(len(first)), np.ones(len(first), dtype=bool)
    for _, sums, pattern in _groups(model, rows.pick(first), shares=False):
        value += sums.log_chance[pattern]
        exact &= sums.exact[pattern]
    return LogChance(value[number], exact[number] | np.isinf(value[number]))


def checked_rows(model: OrMixture, words: Words, observed: Words | None) -> Rows:
    """The rows with the cells that were seen in them; refuses bit sets that are no rows of this model."""
    everything = np.broadcast_to(all_observed(model.n_sensors), (len(words), n_words(model.n_sensors)))
    seen = everything if observed is None else observed
    if words.shape != everything.shape or seen.shape != words.shape:
        raise DataError(
            f"a row of {model.n_sensors} sensors takes {n_words(model.n_sensors)} words, "
            f"but words has shape {words.shape} and observed {seen.shape}"
        )
    return Rows(words & seen, seen)


def _of_distinct(model: OrMixture, rows: Rows) -> tuple[Posterior, NDArray[np.bool_]]:
    """The posterior of each row, and whether the model can produce it."""
    probability = np.repeat(model.probability[None], len(rows.words), axis=0)  # what never changes stays so
    error, exact = np.zeros_like(probability), np.ones(probability.shape, dtype=bool)
    possible = np.ones(len(rows.words), dtype=bool)
    for group, sums, pattern in _groups(model, rows, shares=True):
        probability[:, group.sources] = sums.probability[pattern]
        error[:, group.sources] = sums.error[pattern]
        exact[:, group.sources] = sums.exact[pattern][:, None]
        possible &= np.isfinite(sums.log_chance[pattern])
    probability[~possible], error[~possible], exact[~possible] = np.nan, 0.0, True
    return Posterior(probability, error, exact), possible


def _groups(model: OrMixture, rows: Rows, *, shares: bool) -> Iterator[tuple[Group, GroupSums, NDArray[np.int64]]]:
    """Each group of connected sensors with its sums over distinct rows, and the number of every row among those."""
    for group in groups_of(model):
        part = rows.of_sensors(group.sensors)
        first, pattern = part.distinct()
        yield group, group_sums(group, part.pick(first).cells(group.sensors.size), shares=shares), pattern
