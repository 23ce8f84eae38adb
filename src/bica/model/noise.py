"""What sensors show of the sources: the noise that they add on top, and how probable each row then is.

Whatever a model is made of is checked at its door, here. Probabilities of rows are exact, by transforms on the
subset lattice of every group of connected sensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bica.errors import LimitError, ModelError
from bica.kernels.bits import Words, packed, unpacked
from bica.kernels.lattice.subsets import apply_channel, mix_lossy_source, mix_source

Rate = float | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Noise:
    """Each sensor shows 1 in place of 0 at rate ``false_alarm`` and 0 in place of 1 at rate ``miss``.

    Either rate is one number for all sensors or one number per sensor.

    >>> Noise.flips(0.1)
    Noise(false_alarm=0.1, miss=0.1)
    >>> Noise([0.0, 0.1], 0.2).rates(2)
    (array([0. , 0.1]), array([0.2, 0.2]))
    """

    false_alarm: Rate
    miss: Rate

    def __init__(self, false_alarm: ArrayLike = 0.0, miss: ArrayLike = 0.0) -> None:
        object.__setattr__(self, "false_alarm", _checked_rate("false_alarm", false_alarm))
        object.__setattr__(self, "miss", _checked_rate("miss", miss))
        false_alarms, misses = self.rates(self.n_sensors if self.n_sensors is not None else 1)
        useless = np.flatnonzero(false_alarms + misses >= 1)
        if useless.size:
            raise ModelError(
                f"a sensor's false_alarm and miss rates add up to 1 or more, so it says nothing: place {useless[0]} "
                f"has {false_alarms[useless[0]]:g} and {misses[useless[0]]:g}; leave that sensor out"
            )

    @classmethod
    def flips(cls, rate: float) -> Noise:
        """The paper's noise: every cell is flipped with the same probability."""
        return cls(rate, rate)

    @property
    def n_sensors(self) -> int | None:
        """The number of sensors, if rates are given one by one; None if both rates hold for all sensors."""
        return next((len(rate) for rate in (self.false_alarm, self.miss) if isinstance(rate, tuple)), None)

    @property
    def is_absent(self) -> bool:
        """Whether the sensors never err."""
        return not np.any(self.false_alarm) and not np.any(self.miss)

    def at_least(self, rate: float) -> Noise:
        """The same noise with no rate below this one, unless a sensor would then say nothing.

        >>> Noise(0.0, 0.1).at_least(0.01)
        Noise(false_alarm=0.01, miss=0.1)
        """
        false_alarm, miss = np.asarray(self.false_alarm), np.asarray(self.miss)
        return Noise(
            np.maximum(false_alarm, np.minimum(rate, (1 - miss) / 2)),
            np.maximum(miss, np.minimum(rate, (1 - false_alarm) / 2)),
        )

    def rates(self, n_sensors: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """False-alarm and miss rates, one value per sensor."""
        for name, rate in (("false_alarm", self.false_alarm), ("miss", self.miss)):
            if isinstance(rate, tuple) and len(rate) != n_sensors:
                raise ModelError(f"noise gives {len(rate)} {name} rates for {n_sensors} sensors")
        return np.array(np.broadcast_to(self.false_alarm, n_sensors)), np.array(np.broadcast_to(self.miss, n_sensors))

    def of_sensors(self, sensors: Sequence[int] | NDArray[np.int64]) -> Noise:
        """The noise of these sensors only."""
        if self.n_sensors is None:
            return self
        return Noise(*(_of_sensors(rate, sensors) for rate in (self.false_alarm, self.miss)))

    def apply(self, rows: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """What noisy sensors show of ``rows``."""
        if self.is_absent:
            return rows
        false_alarm, miss = self.rates(rows.shape[1])
        return rows ^ (rng.random(rows.shape) < np.where(rows, miss, false_alarm))


def _of_sensors(rate: Rate, sensors: Sequence[int] | NDArray[np.int64]) -> Rate:
    return tuple(rate[i] for i in sensors) if isinstance(rate, tuple) else rate


def _checked_rate(name: str, rate: ArrayLike) -> Rate:
    values = as_probabilities(rate, name)
    if values.ndim > 1:
        raise ModelError(f"{name} is one number or one number per sensor, not an array of {values.ndim} dimensions")
    return float(values) if values.ndim == 0 else tuple(values.tolist())


def as_numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """A fresh array of float64.

    >>> as_numbers([0, "1"], "a list")
    Traceback (most recent call last):
    bica.errors.ModelError: a list must hold numbers
    """
    try:
        numbers = np.array(values)
    except ValueError:  # rows of different length
        raise ModelError(f"{what} must hold numbers in an even grid") from None
    if numbers.size and numbers.dtype.kind not in "biuf":
        raise ModelError(f"{what} must hold numbers")
    return numbers.astype(np.float64) + 0.0  # makes -0.0 an ordinary zero, so that equal models have equal bytes


def as_probabilities(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """A fresh array of numbers in [0, 1]."""
    numbers = as_numbers(values, what)
    outside = numbers[~((numbers >= 0) & (numbers <= 1))]
    if outside.size:
        raise ModelError(f"{what} must lie in [0, 1], but {outside.flat[0]:g} was given")
    return numbers


TABLE_LIMIT = 24  # connected sensors: a table takes 128 MB
TOGETHER = 10  # sensors up to which small groups share one table
GAP_LIMIT = 1 << 33  # cells of all tables in which missing cells are summed out: about a minute of work
Rates = tuple[NDArray[np.float64], NDArray[np.float64]]


def pattern_table(
    mixing: NDArray[np.bool_],
    probability: NDArray[np.float64],
    false_alarm: NDArray[np.float64],
    miss: NDArray[np.float64],
    *,
    lossy_reach: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The probability of every pattern, indexed by bit set: time (n + m) 2^m for n sources and m sensors.

    Edges are sure without ``lossy_reach``; a source with lossy edges takes time 2^m for each edge.
    """
    n_sensors = mixing.shape[0]
    if n_sensors > TABLE_LIMIT:
        raise LimitError(
            f"a table of all patterns of {n_sensors} sensors needs 2^{n_sensors} cells, but exact probabilities are "
            f"limited to {TABLE_LIMIT} connected sensors; choose fewer with `of_sensors`"
        )
    table = np.zeros(2**n_sensors)
    table[0] = 1.0
    bits = 1 << np.arange(n_sensors)
    for j, (column, of_source) in enumerate(zip(mixing.T, probability, strict=True)):
        if lossy_reach is None or np.array_equal(lossy_reach[:, j], column):
            mix_source(table, int(bits @ column), float(of_source))
        else:
            mix_lossy_source(table, np.flatnonzero(column), lossy_reach[column, j], float(of_source))
    if false_alarm.any() or miss.any():
        apply_channel(table, false_alarm, miss)
    return table


def connected_groups(mixing: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The sensors and the sources of each group of sensors that shares no source with the others.

    >>> [(a.tolist(), b.tolist()) for a, b in connected_groups(np.array([[1, 0], [0, 1], [1, 0]], dtype=bool))]
    [([0, 2], [0]), ([1], [1])]
    """
    n_sensors, n_sources = mixing.shape
    sensor, source = np.nonzero(mixing)
    edges = coo_array((np.ones(sensor.size), (sensor, n_sensors + source)), shape=(n_sensors + n_sources,) * 2)
    _, group = connected_components(edges, directed=False)
    for number in np.unique(group[:n_sensors]):
        sensors = np.flatnonzero(group[:n_sensors] == number)
        yield sensors, np.flatnonzero(mixing[sensors].any(axis=0))


def tabled_groups(mixing: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Connected groups, small ones joined: one table of a few sensors takes less time than to find out how to split it.

    >>> [a.tolist() for a, _ in tabled_groups(np.array([[1, 0], [0, 1], [1, 0]], dtype=bool))]
    [[0, 1, 2]]
    """
    n_sensors, n_sources = mixing.shape
    if n_sensors <= TOGETHER:
        yield np.arange(n_sensors), np.arange(n_sources)
        return
    small: list[NDArray[np.int64]] = []
    for sensors, sources in connected_groups(mixing):
        if sensors.size > TOGETHER:
            yield sensors, sources
        elif sum(map(len, small)) + sensors.size <= TOGETHER:
            small.append(sensors)
        else:
            yield _joined(mixing, small)
            small = [sensors]
    if small:
        yield _joined(mixing, small)


def _joined(mixing: NDArray[np.bool_], groups: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sensors = np.concatenate(groups)
    return sensors, np.flatnonzero(mixing[sensors].any(axis=0))


def log_probability(
    mixing: NDArray[np.bool_],
    probability: NDArray[np.float64],
    rates: Rates,
    patterns: Words,
    observed: Words,
    *,
    lossy_reach: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The log probability of each pattern, missing cells summed out; independent groups of sensors add up."""
    on, known = unpacked(patterns, mixing.shape[0]), unpacked(observed, mixing.shape[0])
    total = np.zeros(len(patterns))
    for sensors, sources in tabled_groups(mixing):
        part = np.ix_(sensors, sources)
        table = pattern_table(
            mixing[part],
            probability[sources],
            rates[0][sensors],
            rates[1][sensors],
            lossy_reach=None if lossy_reach is None else lossy_reach[part],
        )
        of_group = _row_probability(table, on[:, sensors], known[:, sensors])
        with np.errstate(divide="ignore"):
            total += np.log(of_group)
    return total


def _row_probability(
    table: NDArray[np.float64], on: NDArray[np.bool_], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The probability of each row, from a table in which its missing cells are summed out."""
    if known.all():
        return table[packed(np.ascontiguousarray(on))[:, 0]]
    sets, set_of_row = np.unique(packed(np.ascontiguousarray(known))[:, 0], return_inverse=True)
    if sets.size * table.size > GAP_LIMIT:
        raise LimitError(
            f"missing cells leave {sets.size} different sets of {on.shape[1]} connected sensors, too many to sum out "
            "exactly; drop the sensors with the most gaps"
        )
    probability = np.empty(len(on))
    for number in range(sets.size):
        rows = np.flatnonzero(set_of_row == number)
        observed = np.flatnonzero(known[rows[0]])
        cells = packed(np.ascontiguousarray(on[np.ix_(rows, observed)]))[:, 0]
        probability[rows] = _of_observed(table, observed)[cells]
    return probability


def _of_observed(table: NDArray[np.float64], observed: NDArray[np.int64]) -> NDArray[np.float64]:
    """The table of the observed sensors alone; summing out each of the others, last first, halves it."""
    n_sensors = table.size.bit_length() - 1
    for sensor in sorted(set(range(n_sensors)) - set(observed.tolist()), reverse=True):
        pairs = table.reshape(-1, 2, 1 << sensor)
        table = (pairs[:, 0] + pairs[:, 1]).reshape(-1)
    return table
