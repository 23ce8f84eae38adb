"""What rows can tell about lossy edges: which numbers are determined, what a pair leaves open, where ones come from.

Leaks take up whatever a sensor shows alone, so a source of sensors g is known only by how the sets of two or more of
its sensors depend on each other. Let kappa(S) be that dependence: the alternating sum of -log P(all of R quiet) over
the subsets R of S. A source enters kappa(S) only where S lies in g. So its 1 + |g| unknowns (probability and reach)
have to be matched with distinct sets S of at least two of its sensors: as many unknowns as a maximum matching leaves
over are free, and so is every unknown that an alternating path connects with one of these (Dulmage and Mendelsohn). A
pair has three unknowns and one set; three sensors have four and four.

Everything here is plain Python, so that a model can be shown without loading NumPy.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from bica.model.files import ModelDocument, Rate, SourceEntry, rate_interval
from bica.text import folded

ALL_SUBSETS = 9  # sensors up to which all sets of a source are listed; of wider ones, pairs and triples are far enough
Set = frozenset[int]


@dataclass(frozen=True, slots=True)
class Identified:
    """Which sources the rows determine, and how many numbers they leave free in all."""

    sources: tuple[bool, ...]  # whether probability and reach of each source are determined
    n_free: int  # flat directions of the likelihood


def identified(sources: Sequence[Sequence[int]]) -> Identified:
    """What rows determine about sources with these sensors, if every edge may fail and every sensor has a leak.

    >>> identified([(0, 1, 2), (0, 1)])
    Identified(sources=(False, False), n_free=3)
    >>> identified([(0, 1, 2), (2, 3, 4)]).sources
    (True, True)
    """
    crowded = [j for j, is_alone in enumerate(_have_pairs_of_their_own(sources)) if not is_alone]
    matching = _Matching([sources[j] for j in crowded])
    free = {crowded[j] for j in matching.free_sources()}
    return Identified(tuple(j not in free for j in range(len(sources))), matching.n_free)


def _have_pairs_of_their_own(sources: Sequence[Sequence[int]]) -> list[bool]:
    """Which sources have as many pairs of sensors that no other source has as unknowns; they need none of the rest."""
    owners: dict[tuple[int, ...], int] = {}
    for sensors in sources:
        for pair in combinations(sorted(sensors), 2):
            owners[pair] = owners.get(pair, 0) + 1
    return [sum(owners[pair] == 1 for pair in combinations(sorted(sensors), 2)) > len(sensors) for sensors in sources]


def _sets(sensors: Sequence[int]) -> Iterator[Set]:
    largest = len(sensors) if len(sensors) <= ALL_SUBSETS else 3
    sizes = range(2, largest + 1)
    return map(frozenset, chain.from_iterable(combinations(sensors, size) for size in sizes))


class _Matching:
    """A maximum matching of sets of sensors with the unknowns of the sources, several to each source."""

    def __init__(self, sources: Sequence[Sequence[int]]) -> None:
        self.sets = [list(_sets(sensors)) for sensors in sources]
        self.owner: dict[Set, int] = {}
        self.lacks = [1 + len(sensors) for sensors in sources]
        for j in range(len(sources)):
            while self.lacks[j] and self._find_set(j):
                self.lacks[j] -= 1

    @property
    def n_free(self) -> int:
        return sum(self.lacks)

    def _find_set(self, source: int) -> bool:
        """Give the source one more set, along an alternating path if need be."""
        passed: dict[int, tuple[Set, int]] = {}  # the set that each source on the way would pass on, and to whom
        waiting = [source]
        while waiting:
            j = waiting.pop()
            for members in self.sets[j]:
                owner = self.owner.get(members)
                if owner is None:
                    self._take(members, j, passed, source)
                    return True
                if owner != source and owner not in passed:
                    passed[owner] = (members, j)
                    waiting.append(owner)
        return False

    def _take(self, members: Set, taker: int, passed: dict[int, tuple[Set, int]], source: int) -> None:
        """Hand the free set to the end of the path; every source on it passes on one that it had."""
        self.owner[members] = taker
        while taker != source:
            members, receiver = passed[taker]
            self.owner[members] = receiver
            taker = receiver

    def free_sources(self) -> set[int]:
        """The sources with unknowns that are left over, and all to which alternating paths lead from these."""
        found = {j for j, lacking in enumerate(self.lacks) if lacking}
        waiting = list(found)
        while waiting:
            for members in self.sets[waiting.pop()]:
                other = self.owner[members]  # a set without an owner would have been taken
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return found


@dataclass(frozen=True, slots=True)
class PairIdentity:
    """What rows tell about a source of two sensors."""

    together: float  # the share of rows in which it is the reason that both are on: beyond chance
    least: float  # of the probability of the source, where both edges are sure
    most: float  # where no sensor is ever on by itself


def pair_of(probability: float, reach: tuple[float, float], leak: tuple[float, float]) -> PairIdentity:
    """The range of the probability of a pair whose likelihood is the same, with reach and leaks to go with it.

    >>> found = pair_of(0.2, (0.5, 0.5), (0.0, 0.0))
    >>> round(found.together, 4), round(found.least, 4), round(found.most, 4)
    (0.04, 0.0471, 0.2)
    """
    (q, r), (a, b) = reach, leak
    both_quiet = 1 - probability + probability * (1 - q) * (1 - r)
    kappa = math.log(both_quiet / ((1 - probability * q) * (1 - probability * r)))
    # without leaks: p q = 1 - P(first quiet), p r = 1 - P(second quiet), p q r as their sum less P(either on)
    first, second = (1 - (1 - a) * (1 - probability * q)), (1 - (1 - b) * (1 - probability * r))
    overlap = first + second - 1 + (1 - a) * (1 - b) * both_quiet
    beyond_chance = overlap - first * second
    return PairIdentity(beyond_chance, -math.expm1(-kappa), min(1.0, first * second / overlap) if overlap > 0 else 1.0)


@dataclass(frozen=True, slots=True)
class Shares:
    """Where the ones of a sensor come from; causes can coincide, so that the shares may add up to more than 1."""

    on: float  # in which share of the rows the sensor is on
    by_source: tuple[tuple[int, float], ...]  # the share of its ones in which each source reached it, largest first
    by_itself: float  # the share in which it was on by itself


def shares_of(document: ModelDocument) -> list[Shares]:
    """Where the ones of every sensor come from.

    >>> source = SourceEntry((0, 1), 0.2, reach=(0.5, 1.0))
    >>> first, _ = shares_of(ModelDocument(("a", "b"), (source,), 0.1, 0.0))
    >>> round(first.on, 2), [(j, round(share, 2)) for j, share in first.by_source], round(first.by_itself, 2)
    (0.19, [(0, 0.53)], 0.53)
    """
    reached: list[dict[int, float]] = [{} for _ in document.sensors]
    for j, source in enumerate(document.sources):
        for sensor, reach in zip(source.sensors, source.reach or (1.0,) * len(source.sensors), strict=True):
            reached[sensor][j] = source.probability * reach
    leaks, misses = rates_of(document.false_alarm, document.sensors), rates_of(document.miss, document.sensors)
    return [_shares(*each) for each in zip(reached, leaks, misses, strict=True)]


def _shares(reached: dict[int, float], leak: float, miss: float) -> Shares:
    by_any = 0.0  # sums of positive numbers: the rarest causes keep their digits
    for share in reached.values():
        by_any += share * (1 - by_any)
    on = leak * (1 - by_any) + (1 - miss) * by_any
    if on <= 0:
        return Shares(0.0, tuple((j, 0.0) for j in reached), 0.0)
    each = sorted(((j, share * (1 - miss) / on) for j, share in reached.items()), key=lambda pair: (-pair[1], pair[0]))
    return Shares(on, tuple(each), leak / on)


def rates_of(rate: Rate, sensors: Sequence[str]) -> tuple[float, ...]:
    """The rate of every sensor."""
    return rate if isinstance(rate, tuple) else (rate,) * len(sensors)


@dataclass(frozen=True, slots=True)
class Determined:
    """How far each source of a model with lossy edges is determined by the rows."""

    is_identified: tuple[bool, ...]
    pairs: tuple[PairIdentity | None, ...]  # of sources of two sensors, where nothing is missed


def determined_by(document: ModelDocument) -> Determined:
    """Which sources are identified, and what is known about the pairs.

    >>> source = SourceEntry((0, 1), 0.2, reach=(0.5, 1.0))
    >>> determined_by(ModelDocument(("a", "b"), (source,), 0.1, 0.0)).is_identified
    (False,)
    """
    leaks, misses = rates_of(document.false_alarm, document.sensors), rates_of(document.miss, document.sensors)
    pairs = [_pair(source, leaks) if not any(misses) else None for source in document.sources]
    return Determined(identified([source.sensors for source in document.sources]).sources, tuple(pairs))


def _pair(source: SourceEntry, leaks: tuple[float, ...]) -> PairIdentity | None:
    if len(source.sensors) != 2 or source.probability in (0.0, 1.0):
        return None
    q, r = source.reach or (1.0, 1.0)
    first, second = source.sensors
    return pair_of(source.probability, (q, r), (leaks[first], leaks[second]))


CERTAIN, RARE = 0.99, 0.1  # shares beyond which whole per cents say too little
LEAKS_NAMED = 8  # sensors whose leaks are listed one by one


def _per_cent(share: float) -> str:
    """A share in per cent, without the sign."""
    if share > CERTAIN:
        return f"{100 * share:.3g}"
    return f"{100 * share:.2g}" if share < RARE else f"{100 * share:.0f}"


def _with_interval(share: float, ends: tuple[float, float] | None) -> str:
    """A share in words, with its interval if there is one.

    >>> _with_interval(0.87, (0.84, 0.9)), _with_interval(0.004, None)
    ('87 % (84–90)', '0.4 %')
    """
    between = "" if ends is None or ends[0] == ends[1] else f" ({_per_cent(ends[0])}–{_per_cent(ends[1])})"
    return f"{_per_cent(share)} %{between}"


def reach_words(source: SourceEntry, *, is_identified: bool) -> list[str]:
    """How often the source reaches each of its sensors while it is on, with its interval; empty if rows cannot tell.

    >>> reach_words(SourceEntry((0, 3), 0.2, reach=(0.87, 1.0), reach_error=(0.015, None)), is_identified=True)
    ['87 % (84–90)', '100 %']
    """
    if not is_identified:
        return [""] * len(source.sensors)
    reach = source.reach or (1.0,) * len(source.sensors)
    ends = [source.reach_interval(edge) for edge in range(len(reach))]
    return [_with_interval(*edge) for edge in zip(reach, ends, strict=True)]


def source_note(document: ModelDocument, place: int, determined: Determined) -> str:
    """What rows cannot tell about a source with lossy edges; empty where they tell all.

    >>> document = ModelDocument(("a", "b"), (SourceEntry((0, 1), 0.2, reach=(0.5, 0.5)),), 0.0, 0.0)
    >>> source_note(document, 0, determined_by(document))[:58]
    'a and b: on together in 4 % of the rows beyond chance; how'
    """
    source, pair, nouns = document.sources[place], determined.pairs[place], document.nouns
    if determined.is_identified[place]:
        return ""
    if len(source.sensors) == 1:
        one = nouns.sensor[0]
        return f"a {nouns.source[0]} of one {one} cannot be told from a {one} that is on by itself"
    if pair is None:
        return f"how often it is on cannot be told from how often it reaches its {nouns.sensor[1]}"
    names = " and ".join(document.sensors[i] for i in source.sensors)
    between = f"between {_per_cent(pair.least)} % and {_per_cent(pair.most)} %"
    return (
        f"{names}: on together in {_per_cent(pair.together)} % of the {nouns.row[1]} beyond chance; how often the "
        f"{nouns.source[0]} is on, {between}, cannot be told from two {nouns.sensor[1]}"
    )


def leak_words(document: ModelDocument, at_most: int = LEAKS_NAMED) -> str:
    """How often sensors are on by themselves: each, or the range and the most frequent ones of many.

    >>> leak_words(ModelDocument(("gw_01", "gw_02"), (), (0.004, 0.01), 0.0))
    'also on by itself: gw_02 in 1 % of the rows, gw_01 in 0.4 %'
    """
    leaks = rates_of(document.false_alarm, document.sensors)
    errors = document.leak_error or (None,) * len(leaks)
    order = sorted(range(len(leaks)), key=lambda i: (-leaks[i], i))
    rows = document.nouns.row[1]
    shown: list[str] = []
    for i in order[:at_most]:
        error = errors[i]
        ends = None if error is None else rate_interval(leaks[i], error)
        shown.append(f"{document.sensors[i]} in {_with_interval(leaks[i], ends)}{'' if shown else f' of the {rows}'}")
    if not leaks or not any(leaks):
        return f"no {document.nouns.sensor[0]} is ever on by itself"
    rest = [leaks[i] for i in order[at_most:]]
    if rest:
        shown.append(f"{len(rest)} more in {_per_cent(min(rest))} to {_per_cent(max(rest))} %")
    return f"also on by itself: {', '.join(shown)}"


def share_words(document: ModelDocument, shares: Shares, at_most: int = LEAKS_NAMED) -> str:
    """Where the ones of a sensor come from, in words.

    >>> document = ModelDocument(("a", "b"), (SourceEntry((0, 1), 0.2, reach=(0.5, 1.0)),), 0.1, 0.0)
    >>> share_words(document, shares_of(document)[0])
    'source1 53 %, by itself 53 %'
    """
    names = document.source_names()
    parts = [f"{names[j]} {_per_cent(share)} %" for j, share in shares.by_source]
    by_itself = [f"by itself {_per_cent(shares.by_itself)} %"] if shares.by_itself > 0 else []
    return folded(parts, at_most) + (", " if parts and by_itself else "") + "".join(by_itself)
