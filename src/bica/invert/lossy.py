"""A group whose edges may fail: the most probable activity behind each row, and sums over all activities.

What is written for sure edges does not carry over: there a table of all sets of sensors holds the cheapest activity of
each, here the failures of edges have to be summed out before activities are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bica.invert.groups import Group, Solution, silent_share
from bica.kernels.bits import n_words, unpacked
from bica.kernels.decoding.lossy import LossyNetwork, decode_lossy
from bica.kernels.decoding.lossy_sums import sample_row, sum_rows
from bica.progress import ALL_CORES, in_threads, tracked

MOST_NODES = 20_000  # of the search in each connected part of a row: all 2^14 of thirteen sources
ROWS_PER_PIECE = 64
LARGEST_WORK = 1 << 26  # passes over cells of the table of one part of a row: some tenths of a second
N_BURNT, N_SWEEPS, N_BATCHES = 100, 2000, 20  # of the sampler; the means of batches show how far it may be off
SEED = 0  # of every row, so that a row's answer does not depend on the others
TWO_SIDED = 2.0  # standard errors that are reported as the error


def network_of(group: Group) -> LossyNetwork:
    """The group as the kernels take it."""
    assert group.reach is not None
    source, sensor = (np.ascontiguousarray(places) for places in np.nonzero(group.mixing.T))
    by_sensor = np.argsort(sensor, kind="stable")
    lost = 1.0 - group.reach[sensor, source]
    return LossyNetwork(
        np.append(0, np.cumsum(group.mixing.sum(axis=0))),
        sensor,
        lost,
        np.append(0, np.cumsum(group.mixing.sum(axis=1))),
        source[by_sensor],
        lost[by_sensor],
        group.source_cost,
        group.prohibitive(),
    )


def _pieces(n_rows: int) -> list[slice]:
    return [slice(start, start + ROWS_PER_PIECE) for start in range(0, n_rows, ROWS_PER_PIECE)]


def solve_lossy(group: Group, cells: NDArray[np.uint8], n_nodes: int = MOST_NODES) -> Solution:
    """The cheapest activity behind each row of cells; where a row is impossible, that with the fewest wrong cells.

    In a row, sources that can only gain or only lose are decided first; what remains falls into parts, and each part is
    searched depth first. A part that is not finished after ``n_nodes`` nodes leaves a gap; one of up to 13 sources
    always is. Ties go to the fewest active sources, then to the smallest number that their bits spell.
    """
    network, weight = network_of(group), np.exp(-group.penalty)
    active, gap = np.zeros((len(cells), n_words(group.sources.size)), np.uint64), np.zeros(len(cells))
    cells = np.ascontiguousarray(cells)

    def search(rows: slice) -> None:
        decode_lossy(network, weight, cells[rows], n_nodes, active[rows], gap[rows])

    pieces = _pieces(len(cells))
    for _ in tracked(in_threads(search, pieces, ALL_CORES), "searching pieces of rows", len(pieces)):
        pass
    found = group.solution(active, cells)
    return Solution(active, found.cost, gap)


@dataclass(frozen=True, slots=True)
class LossySums:
    """Sums over the activities behind each row of a group."""

    log_probability: NDArray[np.float64]  # (n_rows,); a lower bound where a source is not exact
    probability: NDArray[np.float64]  # (n_rows, n_sources), that each source is on; NaN where the row is impossible
    error: NDArray[np.float64]  # (n_rows, n_sources), two standard errors where sampled; 0 where exact
    exact: NDArray[np.bool_]  # (n_rows, n_sources)


def lossy_sums(group: Group, cells: NDArray[np.uint8]) -> LossySums:
    """Sum over the activities behind each row of cells, row by row.

    Exact where the cells of a part that must be followed are few (its ones, if nothing is missed): 2^22 sets of them at
    most, and less for many edges. Beyond, the sources are sampled, and a lower bound of the row's probability is the
    sum over the activities that were met.
    """
    network, weight = network_of(group), np.exp(-group.penalty)
    shape, cells = (len(cells), group.sources.size), np.ascontiguousarray(cells)
    total, share, exact = np.empty(len(cells)), np.empty(shape), np.empty(shape, dtype=bool)

    def add_up(rows: slice) -> None:
        sum_rows(network, weight, cells[rows], LARGEST_WORK, total[rows], share[rows], exact[rows])

    pieces = _pieces(len(cells))
    for _ in tracked(in_threads(add_up, pieces, ALL_CORES), "summing over activities, pieces of rows", len(pieces)):
        pass
    found = LossySums(total - np.logaddexp(0.0, -group.source_cost).sum(), share, np.zeros(shape), exact)
    _sample(group, network, cells, found)
    return found


def _sample(group: Group, network: LossyNetwork, cells: NDArray[np.uint8], found: LossySums) -> None:
    """Fill in the sources whose tables were too large, in place."""
    rows = np.flatnonzero(~found.exact.all(axis=1))
    if not rows.size:
        return
    best, weight = solve_lossy(group, cells[rows]), np.exp(-group.penalty)
    start = unpacked(best.active, group.sources.size)
    for place, row in enumerate(tracked(rows.tolist(), "sampling activities, rows", len(rows))):
        members = np.flatnonzero(~found.exact[row])
        if np.isinf(best.cost[place]) or np.isinf(found.log_probability[row]):
            found.log_probability[row], found.probability[row], found.exact[row] = -np.inf, np.nan, True
            continue
        of_row = weight[np.arange(len(weight)), cells[row]]
        share, met = np.empty((N_SWEEPS, members.size)), np.empty((1 + N_BURNT + N_SWEEPS, members.size), dtype=bool)
        draws = np.random.default_rng(SEED).random((N_BURNT + N_SWEEPS, members.size))
        sample_row(network, of_row, members, start[place].copy(), draws, share, met)
        means = share.reshape(N_BATCHES, -1, members.size).mean(axis=1)
        found.probability[row, members] = means.mean(axis=0)
        found.error[row, members] = TWO_SIDED * means.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)
        found.log_probability[row] += _log_sum(group, of_row, members, np.unique(met, axis=0))


def _log_sum(
    group: Group, of_row: NDArray[np.float64], members: NDArray[np.int64], activity: NDArray[np.bool_]
) -> float:
    """The log of the sum of the odds of these activities of the members, with the cells that only members explain."""
    assert group.reach is not None
    reach, (alone, switched) = group.reach[:, members], of_row.T
    factor = (alone != switched) & (switched == 0)
    followed = (alone != switched) & (switched > 0) & (reach > 0).any(axis=1)
    with np.errstate(divide="ignore"):
        log_odds = np.log1p(-reach[factor]).sum(axis=0) - group.source_cost[members]
        z = silent_share(reach[followed], activity)
        of_cells = np.log(z * alone[followed] + (1 - z) * switched[followed]).sum(axis=1)
    return float(logsumexp(np.where(activity, log_odds, 0.0).sum(axis=1) + of_cells))
