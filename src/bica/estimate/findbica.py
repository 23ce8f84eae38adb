"""The paper's method: Algorithm 1 with its three reductions, in the corrected form.

Beyond some twenty sensors its recursion runs on the few candidates that T1 and T3 leave. Sets of sensors are then plain
integers used as bit sets. Two graphs guide the search: a set may be a source only where every two of its sensors are
*linked*; and only the common *suspects* of a set need to be conditioned on, since no other sensor shares a source with
all of it (Lemmas 5 and 6). So each step works on a neighbourhood, however large the table. Suspects include all linked
sensors and some more: conditioning on one sensor too many loses rows, on one too few gives wrong sources.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, log, log1p
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse.csgraph import connected_components

from bica.data.pairs import dependent_pairs, pair_p_values
from bica.data.patterns import PatternCounts
from bica.errors import DataError, LimitError, SettingError
from bica.estimate.settings import check_size
from bica.kernels.lattice.subsets import (
    apply_channel,
    clique_table,
    off_probabilities,
    off_probabilities_of_allowed,
    quiet_weight,
    subset_sums,
)
from bica.model.fit import Fit
from bica.model.noise import Noise, pattern_table, tabled_groups
from bica.model.or_mixture import OrMixture
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


def probability_by_subset(frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of the source behind every set of sensors, from the frequency of every pattern.

    Inside a set, the rates ``-log(1 - probability)`` of its subsets add up to the log of "all else is silent" over
    "all is silent", so one Moebius inversion finds them all: time m 2^m, memory 2^m for m sensors. Sampling noise
    can make a value negative. If no row is all-quiet, the logarithm does not exist.

    >>> probability_by_subset(np.array([0.4, 0.1, 0.0, 0.5])).round(3)  # the paper's two sensors
    array([0. , 0.2, 0. , 0.5])
    """
    rate = np.array(frequencies, dtype=float)
    if not rate[0] > 0:
        raise DataError("no row is all-quiet, so the closed form does not exist; use the likelihood or FindBICA")
    subset_sums(rate, 1.0)  # probability that everything outside the set is silent
    np.log(rate, out=rate)
    subset_sums(rate, -1.0)
    rate[0] = 0.0
    probability: NDArray[np.float64] = -np.expm1(-rate)
    return probability


BLOCK_SENSORS = 12  # of an exact likelihood
LEAST_FLIPS = 0.5  # in the whole table: no observed flip leaves half a flip possible
HIGHEST_LEAST = 0.25  # the least flip rate is never higher, however small the weights
PRECISION = 1e-3  # of a fitted flip rate, as a share of it
FIRST_LOOK = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4)


def fitted_flip_rate(model: OrMixture, data: PatternCounts) -> float:
    """The flip rate under which ``model`` explains ``data`` best: exact for groups of up to 12 sensors, else composite.

    It is never exactly 0: even if no flip was observed, half a flip in all cells is possible. So decoding always has
    an answer.

    >>> rows = OrMixture([[1], [1]], [0.3]).sample(500, np.random.default_rng(0))
    >>> fitted_flip_rate(OrMixture([[1], [1]], [0.3]), PatternCounts.of(rows))
    0.0005
    """
    # the weights may add up to less than one row
    least = min(HIGHEST_LEAST, LEAST_FLIPS / (data.n_samples * data.n_sensors))
    blocks = [_block_likelihood(model, data, sensors) for sensors in _blocks(model)]

    def misfit(flip_rate: float) -> float:
        return -sum(block(flip_rate) for block in blocks)

    rates = [least, *(rate for rate in FIRST_LOOK if rate > least)]
    best = int(np.argmin([misfit(rate) for rate in rates]))
    bounds = rates[max(0, best - 1)], rates[min(best + 1, len(rates) - 1)]
    refined = minimize_scalar(misfit, bounds=bounds, method="bounded", options={"xatol": PRECISION * rates[best]})
    return float(refined.x) if refined.fun < misfit(rates[best]) else rates[best]


def _blocks(model: OrMixture) -> list[NDArray[np.int64]]:
    """Groups of sensors that share sources, cut where they are too large."""
    groups = [sensors for sensors, _ in tabled_groups(model.mixing)]
    return [sensors[i : i + BLOCK_SENSORS] for sensors in groups for i in range(0, len(sensors), BLOCK_SENSORS)]


def _block_likelihood(model: OrMixture, data: PatternCounts, sensors: NDArray[np.int64]) -> Callable[[float], float]:
    histogram, none = data.project(sensors.tolist()).histogram(), np.zeros(len(sensors))
    mixing = model.mixing[sensors]
    heard = mixing.any(axis=0)
    clean = pattern_table(mixing[:, heard], model.probability[heard], none, none)
    observed = np.flatnonzero(histogram)

    def log_likelihood(flip_rate: float) -> float:
        shown = clean.copy()
        apply_channel(shown, none + flip_rate, none + flip_rate)
        return float(histogram[observed] @ np.log(shown[observed]))

    return log_likelihood


KEPT_ROWS = 0.25  # share of the rows that extra conditioning must leave


@dataclass(frozen=True, kw_only=True)
class FindBICA:
    """Learn the sources by conditioning on quiet sensors (the paper's FindBICA).

    The method models no noise: with ``noise="estimate"`` one flip rate is fitted afterwards, for decoding only.

    >>> rows = OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).sample(2000, np.random.default_rng(1))
    >>> found = FindBICA().fit(PatternCounts.of(rows), np.random.default_rng(0)).model
    >>> found.mixing.astype(int).tolist(), found.probability.round(1).tolist()
    ([[1, 1], [1, 0]], [0.5, 0.2])
    """

    min_probability: float = 0.02  # the paper's epsilon: rarer sources are dropped at every step
    significance: float | None = 0.05  # T1: pairs that may be independent share no source; None leaves T1 out
    corrected: bool = True  # T1 holds its level over all pairs together
    split: bool = True  # T2: groups of sensors that share no source are solved separately
    prune: bool = True  # T3: only sources on the first sensors grow further; without it, all 2^m candidates are kept
    noise: Noise | Literal["estimate"] = "estimate"

    def __post_init__(self) -> None:
        if not 0 <= self.min_probability < 1:
            raise SettingError(f"min_probability must lie in [0, 1), but {self.min_probability:g} was given")
        if self.significance is not None and not 0 < self.significance < 1:
            raise SettingError(f"significance must lie in (0, 1) or be None, but {self.significance:g} was given")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; nothing here is random, so ``rng`` is not used."""
        data = data.complete("FindBICA")
        sets = [(np.array([sensor]), 1.0) for sensor in np.flatnonzero(data.ones() >= data.n_samples)]
        varying = data.varying()
        sets += self._sources(data.project(varying.tolist()), varying)
        model = _model_of(sets, data.sensors)
        noise = Noise.flips(fitted_flip_rate(model, data)) if self.noise == "estimate" else self.noise
        model = model.in_order().with_noise(noise)
        return Fit(
            model, method="findbica", n_samples=data.n_samples, log_likelihood=model.log_likelihood_if_exact(data)
        )

    def _sources(self, data: PatternCounts, places: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], float]]:
        """Sets of sensors, by their ``places`` in the whole table, with the probability of the source behind each."""
        p_values, share = pair_p_values(data), data.ones() / data.n_samples
        groups = self._groups(self._linked(p_values))
        lone = [int(group[0]) for group in groups if group.size == 1]
        found = [(places[[i]], float(share[i])) for i in lone if share[i] >= self.min_probability]
        for group in (group for group in groups if group.size > 1):
            group = group[
                np.argsort(-share[group], kind="stable")
            ]  # so that the answer hardly depends on the order of the columns
            part, part_p_values = data.project(group.tolist()), p_values[np.ix_(group, group)]
            solve = sources_by_pruning if self.prune else sources_by_lattice
            solved = solve(part, part_p_values, self._linked(part_p_values), self.min_probability)
            found += [(places[group[_members(sensors)]], probability) for sensors, probability in solved.items()]
        return found

    def _linked(self, p_values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """T1: which pairs of sensors may share a source."""
        if self.significance is None:
            return ~np.eye(len(p_values), dtype=bool)
        return dependent_pairs(p_values, self.significance, corrected=self.corrected)

    def _groups(self, linked: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
        """T2: groups of sensors that are linked, directly or through others."""
        if not self.split:
            return [np.arange(len(linked))] if len(linked) else []
        n_groups, group = connected_components(linked.astype(np.int8), directed=False)
        return [np.flatnonzero(group == number) for number in range(n_groups)]


def sources_by_pruning(
    data: PatternCounts, p_values: NDArray[np.float64], linked: NDArray[np.bool_], min_probability: float
) -> dict[int, float]:
    """The sources by following only candidates that are alive on the first sensors; for any number of sensors."""
    silences = Silences(data)
    suspects = _suspects(silences, p_values, linked)
    return SparseRecursion(silences, _bit_sets(linked), _bit_sets(suspects), min_probability).sources()


def _suspects(silences: Silences, p_values: NDArray[np.float64], linked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Linked sensors and the next likeliest, as long as enough rows remain in which the linked ones are quiet."""
    suspects = linked.copy()
    for sensor, bit_set in enumerate(_bit_sets(linked)):
        enough = KEPT_ROWS * silences.of(bit_set)
        for other in np.argsort(p_values[sensor], kind="stable"):
            if other != sensor and not linked[sensor, other]:
                bit_set |= 1 << int(other)
                if silences.of(bit_set) < enough:
                    break
                suspects[sensor, other] = True
    return suspects | suspects.T


def sources_by_lattice(
    data: PatternCounts, p_values: NDArray[np.float64], linked: NDArray[np.bool_], min_probability: float
) -> dict[int, float]:
    """The sources by keeping all 2^m candidates: Algorithm 1 to the letter, for up to 24 sensors."""
    histogram = data.histogram()
    allowed = np.zeros(histogram.size, dtype=bool)
    clique_table(np.array(_bit_sets(linked), np.int64), allowed)
    probability = probability_by_recursion(histogram, min_probability, allowed)
    return {int(sensors): float(probability[sensors]) for sensors in np.flatnonzero(probability)}


def probability_by_recursion(
    histogram: NDArray[np.float64], min_probability: float, allowed: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """What Algorithm 1 finds for every set of sensors, from the weight of every pattern: time m 2^m, memory 2^m.

    >>> probability_by_recursion(np.array([4.0, 1.0, 0.0, 5.0]), 0.02).round(3)
    array([0. , 0.2, 0. , 0.5])
    """
    off = np.array(histogram, dtype=float)
    subset_sums(off, 1.0)
    if off[0] > 0 and (allowed is None or allowed.all()):
        off_probabilities(off, min_probability)
    else:
        allowed = np.ones(off.size, dtype=bool) if allowed is None else allowed
        off_probabilities_of_allowed(off, off.copy(), allowed, min_probability)
    off[0] = 1.0
    np.subtract(1.0, off, out=off)
    return off


def _model_of(sets: list[tuple[NDArray[np.int64], float]], sensors: tuple[str, ...]) -> OrMixture:
    check_size(len(sensors), len(sets))
    mixing = np.zeros((len(sensors), len(sets)), dtype=bool)
    for source, (members, _) in enumerate(sets):
        mixing[members, source] = True
    return OrMixture(mixing, [probability for _, probability in sets], sensors=sensors)


def _bit_sets(neighbours: NDArray[np.bool_]) -> list[int]:
    """Each row of a matrix as an integer whose bit i is column i."""
    return [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in neighbours]


def _members(bit_set: int) -> list[int]:
    return [place for place in range(bit_set.bit_length()) if bit_set >> place & 1]
