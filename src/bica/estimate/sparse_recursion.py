"""The paper's recursion on the few candidates that T1 and T3 leave, for any number of sensors.

Sets of sensors are plain integers used as bit sets. Two graphs guide the search: a set may be a source only where every
two of its sensors are *linked*; and only the common *suspects* of a set need to be conditioned on, since no other
sensor shares a source with all of it (Lemmas 5 and 6). So each step works on a neighbourhood, however large the table.
Suspects include all linked sensors and some more: conditioning on one sensor too many loses rows, on one too few gives
wrong sources.
"""

from collections.abc import Sequence
from math import inf, log, log1p

import numpy as np

from bica.data.patterns import PatternCounts
from bica.errors import LimitError
from bica.kernels.lattice.recursion import quiet_weight
from bica.kernels.lattice.subsets import subset_sums
from bica.progress import tracked

STATE_LIMIT = 2_000_000  # sub-problems: some hundred megabytes
ALL_AT_ONCE = 10  # sensors up to which all silences are counted at once
SHARED_RATE_SENSORS = 10  # the rate shared by a set takes 2^size silences


class Silences:
    """How often each set of sensors was quiet: counted at once for few sensors, else when first asked for."""

    def __init__(self, data: PatternCounts) -> None:
        self.data = data
        self.n_samples = data.n_samples
        self._known: dict[int, float] = {}
        if data.n_sensors <= ALL_AT_ONCE:
            quiet = data.histogram()
            subset_sums(quiet, 1.0)  # rows whose ones all lie within a set, so that the other sensors are quiet
            self._known = dict(enumerate(quiet[::-1].tolist()))

    def of(self, sensors: int) -> float:
        """The weight of the rows in which all of ``sensors`` are quiet."""
        if sensors not in self._known:
            n_bytes = 8 * self.data.patterns.shape[1]
            words = np.frombuffer(sensors.to_bytes(n_bytes, "little"), np.uint64)
            self._known[sensors] = quiet_weight(self.data.patterns, self.data.weights, words)
        return self._known[sensors]

    def shared_rate(self, sensors: int) -> float:
        """The total rate of the sources that contain all of ``sensors``, by inclusion and exclusion."""
        rate, part = 0.0, sensors
        while part:
            quiet = self.of(part)
            if quiet == 0.0:
                return inf
            rate += (-1) ** part.bit_count() * log(quiet / self.n_samples)
            part = part - 1 & sensors
        return rate


class SparseRecursion:
    """Algorithm 1, evaluated only where the answer may be a source."""

    def __init__(
        self, silences: Silences, linked: Sequence[int], suspects: Sequence[int], min_probability: float
    ) -> None:
        self.silences = silences
        self.linked = linked
        self.suspects = suspects
        self.min_probability = min_probability
        self._off: dict[tuple[int, int], float] = {}

    def sources(self) -> dict[int, float]:
        """Sets of sensors with the probability of the source behind each, all at least ``min_probability``."""
        found: dict[int, float] = {}
        for sensor in tracked(range(len(self.linked)), "sensors", len(self.linked)):
            bit = 1 << sensor
            # T3: only what is alive grows
            grown = [known | bit for known in found if known & ~self.linked[sensor] == 0]
            new = [bit, *(candidate for candidate in grown if self._may_be_shared(candidate))]
            changed = [known for known in found if known & ~self.suspects[sensor] == 0]
            found |= {candidate: self._probability(candidate, sensor) for candidate in (*changed, *new)}
            found = {candidate: probability for candidate, probability in found.items() if probability > 0.0}
        return found

    def _may_be_shared(self, candidate: int) -> bool:
        """T3 once more: if the rate shared by a set is too small, no set that contains it is a source."""
        if candidate.bit_count() > SHARED_RATE_SENSORS:
            return True
        return self.silences.shared_rate(candidate) >= -log1p(-self.min_probability)

    def _probability(self, candidate: int, last: int) -> float:
        """The probability of the source on the sensors up to ``last``; later ones do not count yet."""
        later = self._common_suspects(candidate) & (2 << last) - 1 & -1 << candidate.bit_length()
        return 1.0 - self._off_probability(candidate, later)

    def _off_probability(self, candidate: int, quiet: int) -> float:
        """The probability that the source is off, given that the later sensors ``quiet`` are quiet."""
        key = candidate, quiet
        if key not in self._off:
            if len(self._off) >= STATE_LIMIT:
                raise LimitError(
                    f"FindBICA met more than {STATE_LIMIT} sub-problems; raise min_probability or watch fewer sensors"
                )
            off = self._merged_off_probability(candidate, quiet)
            self._off[key] = 1.0 if 1.0 - off < self.min_probability else off
        return self._off[key]

    def _merged_off_probability(self, candidate: int, quiet: int) -> float:
        top = 1 << candidate.bit_length() - 1
        rest = candidate ^ top
        if not rest:
            return self._lone_off_probability(top, quiet)
        given = self._common_suspects(rest) & (quiet | top - 1 & -1 << rest.bit_length())
        anything = self._off_probability(rest, given)
        if anything == 1.0 or self.silences.of(given | top) == 0.0:
            return 1.0
        conditioned = self._off_probability(rest, given | top)
        return anything / conditioned if conditioned > 0.0 else 1.0

    def _lone_off_probability(self, bit: int, quiet: int) -> float:
        given = self.suspects[bit.bit_length() - 1] & (bit - 1 | quiet)
        none_or_only = self.silences.of(given)
        return self.silences.of(given | bit) / none_or_only if none_or_only > 0.0 else 1.0

    def _common_suspects(self, sensors: int) -> int:
        common = -1
        while sensors:
            low = sensors & -sensors
            common &= self.suspects[low.bit_length() - 1]
            sensors ^= low
        return common
