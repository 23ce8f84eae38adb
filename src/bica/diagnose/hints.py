"""Signs that a table is of another kind than OR mixtures are for, and which method suits it better."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import bdtr, bdtrc, entr

from bica.data.pairs import dependent_pairs
from bica.data.patterns import PatternCounts
from bica.diagnose.table import LEVEL, LISTED, PairTests, Watched, complete_rows
from bica.kernels.columns import fisher_tails
from bica.text import folded, percent

HINT_ROWS, HINT_SENSORS = 50, 256  # fewer rows and more sensors give no hint
FREQUENT_ROWS = 12  # distinct rows that are compared
LEAST_CHAIN = 4  # columns in one order
COINCIDENCES = 10.0  # rows with both of the rarest columns on, if they were unrelated
WORDS_PER_DIMENSION = 4  # distinct rows of a code
PARITY_SENSORS = 32  # unrelated sensors of which all triples are looked at
MOST_PARITIES, LARGEST_PARITY = 14, 5  # sensors of a table, and of a parity, that are looked at
N_REDRAWN, STANDARD_ERRORS = 20, 4.0  # tables drawn from independent parities, and how far from them still is like them
LEAST_BIAS, MUCH_MORE = 0.1, 4.0  # of the parity of three, and how many times that of two of them
GRADED_SENSORS, LEAST_GRADED, LINKED_PAIRS = 16, 5, 0.85
BETWEEN = 0.3  # share of the rows with a quarter to three quarters of the sensors on
GRADED_FACTORS = 2  # the common one, and one for what is off or on by itself
EVEN_LOG_ODDS = 0.5  # standard deviation over pairs: 0.2 to 0.4 for one factor, 0.9 and more for separate sources


@dataclass(frozen=True, slots=True)
class Hint:
    """A sign that a table is of another kind than OR mixtures are for."""

    kind: Literal["roles", "graded", "xor", "exclusive", "counts"]
    sentence: str
    method: str | None = None  # of `bica fit` that suits such tables, if there is one
    n_sources: int | None = None  # to begin with, where that method has to be told


def hints(data: PatternCounts) -> list[Hint]:
    """Signs that another tool suits the table better; each is given for less than 1 % of true OR mixtures.

    Where a hint rests on a test, that is exact for every OR mixture: sources that are independent make sensors, and all
    that grows with them, positively dependent (the inequality of Harris, which noise of single sensors leaves intact).

    >>> steps = np.tri(6, 5, k=-1, dtype=bool)[np.random.default_rng(0).integers(0, 6, 200)]
    >>> [hint.kind for hint in hints(PatternCounts.of(steps))]
    ['counts']
    """
    watched = Watched.of(data, data.varying(), np.ones(data.n_sensors))
    rows = complete_rows(watched.counts.counts())
    if watched.pairs is None or rows.weights.sum() < HINT_ROWS or not 2 <= rows.n_sensors <= HINT_SENSORS:
        return []
    cells = rows.rows()
    given, apart = (cells, rows.weights, watched.pairs), _never_together(watched.pairs)
    found: Hint | None
    if apart.size:  # what is left without these columns may be of another kind
        others = np.delete(np.arange(rows.n_sensors), apart)
        found = _roles(*given, others) or _exclusive([rows.sensors[i] for i in apart])
    else:
        found = _counts(*given) or _xor(*given) or _roles(*given, np.arange(rows.n_sensors)) or _graded(*given)
    return [] if found is None else [found]


def _never_together(pairs: PairTests) -> NDArray[np.int64]:
    """The first three or more columns that are significantly apart and never on together; none: an empty array."""
    never = pairs.is_apart & (pairs.counted.both == 0)
    n_groups, group = connected_components(never, directed=False)
    for number in range(n_groups):
        members = np.flatnonzero(group == number)
        if members.size > 2 and never[np.ix_(members, members)].sum() == members.size * (members.size - 1):
            return members
    return np.zeros(0, np.int64)


def _exclusive(names: list[str]) -> Hint:
    return Hint(
        "exclusive",
        f"{folded(names, LISTED)} are never on together: they look like the values of one variable, which no "
        "independent sources bring about; learn from the other columns",
    )


MANY_APART = 0.01  # share of the pairs: roles exclude each other all over the table


def _roles(
    cells: NDArray[np.bool_], weights: NDArray[np.float64], pairs: PairTests, columns: NDArray[np.int64]
) -> Hint | None:
    """Few distinct rows, of which columns, or frequent rows as a whole, exclude each other (Fisher's test)."""
    if len(cells) > weights.sum() / 2:
        return None
    apart = pairs.is_apart[np.ix_(columns, columns)].mean() > MANY_APART
    if not apart and not _rows_apart(cells[:, columns], weights):
        return None
    return Hint(
        "roles",
        f"{percent(1 - len(cells) / weights.sum())} of the rows repeat others, and what they show excludes each other: "
        "roles that are given out together rather than independent sources",
        method="grecond",
    )


def _rows_apart(cells: NDArray[np.bool_], weights: NDArray[np.float64]) -> bool:
    """Whether two frequent rows are contained in the same row too seldom."""
    size = cells.sum(axis=1)
    order = np.argsort(-weights * (size > 1), kind="stable")[:FREQUENT_ROWS]
    frequent = cells[order[size[order] > 1]].astype(np.float32)
    contains = cells.astype(np.float32) @ frequent.T == frequent.sum(axis=1)
    both = (contains * weights[:, None]).T @ contains
    on, total = np.repeat(np.diag(both)[:, None], len(both), axis=1), np.full_like(both, weights.sum())
    apart = fisher_tails(np.rint(on - both), np.rint(on), np.rint(total - on.T), np.rint(total))
    return bool(dependent_pairs(apart, LEVEL).any())


def _counts(cells: NDArray[np.bool_], _weights: NDArray[np.float64], pairs: PairTests) -> Hint | None:
    """Connected columns of which each row has the first few on, in one order."""
    group = connected_components(pairs.is_linked, directed=False)[1]
    longest = 0
    for number in np.unique(group):
        columns = np.unique(cells[:, group == number], axis=1)
        ordered = columns[:, np.argsort(-columns.sum(axis=0), kind="stable")]
        if (ordered[:, 1:] & ~ordered[:, :-1]).any():
            return None
        longest = max(longest, columns.shape[1])
    if longest < LEAST_CHAIN:
        return None
    return Hint(
        "counts",
        f"in every row, the columns are on in one fixed order, up to {longest} of them: they look like the steps of a "
        "count, which is one number and not several sources",
    )


def _xor(cells: NDArray[np.bool_], weights: NDArray[np.float64], pairs: PairTests) -> Hint | None:
    """Rows that form a linear code, three sensors that depend although no two do, or independent parities."""
    if not (_is_code(cells, weights) or _odd_triple(cells, weights, pairs) or _are_parities(cells, weights, pairs)):
        return None
    return Hint(
        "xor",
        "sensors depend on each other by whether an odd number of sources is on (XOR), which no OR brings about",
        method="xor",
    )


def _is_code(cells: NDArray[np.bool_], weights: NDArray[np.float64]) -> bool:
    """Whether three or more columns have an even number of ones in every row, though two of them should coincide.

    An OR mixture breaks such a rule as soon as the two rarest of these columns are on together. Few distinct rows, as
    of roles, keep many such rules by chance.
    """
    ones = weights @ cells
    pivots: dict[int, tuple[int, set[int]]] = {}
    has_check = False
    for place, column in enumerate(np.packbits(cells.T, axis=1)):
        left, members = int.from_bytes(column.tobytes(), "big"), {place}
        while left and left.bit_length() in pivots:
            pivot, others = pivots[left.bit_length()]
            left, members = left ^ pivot, members ^ others
        if left:
            pivots[left.bit_length()] = left, members
        elif len(members) > 2:
            rarest = np.sort(ones[list(members)])[:2]
            has_check |= bool(rarest.prod() >= COINCIDENCES * weights.sum())
    return has_check and len(cells) >= WORDS_PER_DIMENSION * len(pivots)


def _odd_triple(cells: NDArray[np.bool_], weights: NDArray[np.float64], pairs: PairTests) -> bool:
    """Whether the parity of three sensors is far from chance, no two of which depend on each other."""
    loose = np.flatnonzero(~(pairs.is_linked | pairs.is_apart).any(axis=0))[:PARITY_SENSORS]
    if loose.size < 3:
        return False
    signs, total = 1.0 - 2.0 * cells[:, loose], float(weights.sum())
    mean = weights @ signs / total
    places = np.array([(i, k, j) for j in range(loose.size) for k in range(j) for i in range(k)])
    parity = weights @ (signs[:, places[:, 0]] * signs[:, places[:, 1]] * signs[:, places[:, 2]]) / total
    expected = mean[places].prod(axis=1)
    of_pairs = np.abs((signs.T * weights) @ signs / total - np.outer(mean, mean))
    by_pairs = np.max([of_pairs[places[:, a], places[:, b]] for a, b in ((0, 1), (0, 2), (1, 2))], axis=0)
    biased = np.flatnonzero(np.abs(parity - expected) > np.maximum(LEAST_BIAS, MUCH_MORE * by_pairs))
    n_odd, odd = total * (1 - parity[biased]) / 2, (1 - expected[biased]) / 2
    tails = np.minimum(bdtr(np.floor(n_odd), round(total), odd), bdtrc(np.floor(n_odd) - 1, round(total), odd))
    return bool((tails <= LEVEL / (2 * len(places))).any())


def _are_parities(cells: NDArray[np.bool_], weights: NDArray[np.float64], pairs: PairTests) -> bool:
    """Whether no OR mixture makes such rows, but as many independent parities as there are sensors do.

    Take the least even parities of sensors, one after another, none the XOR of others: they determine the rows. If they
    are independent, rows are as various as those drawn from them.
    """
    n_sensors, total = cells.shape[1], float(weights.sum())
    if not 3 <= n_sensors <= MOST_PARITIES or len(cells) < WORDS_PER_DIMENSION * n_sensors:
        return False
    shares = np.bincount(cells @ (1 << np.arange(n_sensors)), weights, 1 << n_sensors) / total
    balance = shares.reshape((2,) * n_sensors)
    for axis in range(n_sensors):
        even, odd = np.split(balance, 2, axis)
        balance = np.concatenate([even + odd, even - odd], axis)
    balance = balance.ravel()
    words = _independent_words(1 + np.argsort(-np.abs(balance[1:]), kind="stable"), n_sensors)
    if not (pairs.is_apart.any() or _rows_apart(cells, weights) or _cancels(cells, weights, words, balance)):
        return False
    drawn = np.ones(1)
    for word in words:
        drawn = np.concatenate([drawn * (1 + balance[word]) / 2, drawn * (1 - balance[word]) / 2])
    rng = np.random.default_rng(0)
    various = [entr(rng.multinomial(int(total), drawn / drawn.sum()) / total).sum() for _ in range(N_REDRAWN)]
    return bool(entr(shares).sum() >= np.mean(various) - STANDARD_ERRORS * np.std(various))


def _independent_words(order: NDArray[np.int64], n_words: int) -> list[int]:
    """The first sets of sensors, as bits of a number, none of which is the XOR of others before it."""
    words: list[int] = []
    reduced: list[int] = []  # falling
    for word in map(int, order):
        rest = word
        for other in reduced:
            rest = min(rest, rest ^ other)
        if rest:
            words.append(word)
            reduced = sorted([*reduced, rest], reverse=True)
        if len(words) == n_words:
            break
    return words


def _cancels(
    cells: NDArray[np.bool_], weights: NDArray[np.float64], words: list[int], balance: NDArray[np.float64]
) -> bool:
    """Whether an uneven parity of a few sensors breaks the inequality of Harris, by Fisher's test.

    Mostly even parities make it likely that two of the sensors are on and all the others off; mostly odd ones, that one
    is. Independent sources make "all of these are on" and "some of the others is on" positively dependent.
    """
    from scipy.stats import hypergeom  # takes long to load, and is seldom needed

    n_sensors, tails = cells.shape[1], [1.0]
    for word in words:
        members = [i for i in range(n_sensors) if word >> i & 1]
        if 3 <= len(members) <= LARGEST_PARITY:
            for chosen in combinations(members, 2 if balance[word] > 0 else 1):
                all_on = cells[:, chosen].all(axis=1)
                any_on = cells[:, [i for i in members if i not in chosen]].any(axis=1)
                lone, on, quiet = weights @ np.column_stack([all_on & ~any_on, all_on, ~any_on])
                tails.append(float(hypergeom.sf(lone - 1, weights.sum(), on, quiet)))
    n_tests = sum(comb(n_sensors, size) * comb(size, 2) for size in range(3, LARGEST_PARITY + 1))
    return min(tails) <= LEVEL / n_tests


def _graded(cells: NDArray[np.bool_], weights: NDArray[np.float64], pairs: PairTests) -> Hint | None:
    """Nearly all pairs depend on each other and, among rows with as many other sensors on, all about equally little.

    That number tells nearly all about one common factor. Of separate sources it tells little: pairs of sensors that
    share a source still depend on each other, and others do not.
    """
    chosen = np.unique(np.linspace(0, cells.shape[1] - 1, GRADED_SENSORS).round().astype(np.int64))
    part, others = cells[:, chosen], ~np.eye(chosen.size, dtype=bool)
    if chosen.size < LEAST_GRADED or pairs.is_linked[np.ix_(chosen, chosen)][others].mean() < LINKED_PAIRS:
        return None
    share_on = part.mean(axis=1)
    if weights @ ((share_on > 0.25) & (share_on < 0.75)) < BETWEEN * weights.sum():  # one source of all: all or none on
        return None
    log_odds = np.array([_log_odds(part, weights, i, k) for i, k in combinations(range(chosen.size), 2)])
    if log_odds.std() > EVEN_LOG_ODDS or log_odds.mean() < 0:
        return None
    return Hint(
        "graded",
        "each sensor depends on every other, as if by one ability or load behind all of them rather than by separate "
        "sources; a model of graded factors suits this better",
        method="beta",
        n_sources=GRADED_FACTORS,
    )


def _log_odds(cells: NDArray[np.bool_], weights: NDArray[np.float64], i: int, k: int) -> float:
    """The log odds ratio of two sensors over rows with as many others on, by Mantel and Haenszel."""
    others = cells.sum(axis=1) - cells[:, i] - cells[:, k]
    tables = np.bincount(4 * others + 2 * cells[:, i] + cells[:, k], weights, 4 * cells.shape[1]).reshape(-1, 4)
    total = np.maximum(tables.sum(axis=1), 1.0)
    same, different = tables[:, 3] * tables[:, 0] / total, tables[:, 1] * tables[:, 2] / total
    return float(np.log((same.sum() + 0.5) / (different.sum() + 0.5)))
