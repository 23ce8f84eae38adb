"""Losses that come together: several sources that reach the same sensors may be one, seen through changing losses.

Given that a source is on, its edges fail independently in our model. Where fading or an outage takes several edges at
once, such a source comes out as a family of sources with nearly the same sensors. One source with exclusive *modes*, at
most one active in a row, each with reaches of its own, explains the same with as many numbers. Rows can tell the two
apart only where several sources of the family would often be on together, so the power of that test comes first: what
exclusive modes would lose if the sources were independent, as they were fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.edges import Family, LossyFit
from bica.estimate.lattice import Cells
from bica.estimate.lossy.surface import LossyPoint, LossySurface, Matrix, Vector, pinned
from bica.estimate.score import covariance_of
from bica.estimate.settings import Varying
from bica.kernels.lattice.lossy import NEARLY_SURE, row_probabilities, silence_table

ALIKE = 0.85  # cosine of the reaches of two sources of a family
LEAST_PIECES = 3  # that are joined where the rows cannot tell: two alike may well be two
TELLING = 30.0  # nats: where independent sources would lose less as modes, the rows cannot tell
REFUTED = 0.5  # of what independent sources would lose: who loses more is not exclusive
MODE_STEPS, MODE_TOLERANCE = 800, 1e-3
LEAST_WEIGHT = 1e-7  # of an expected row that counts

Owner = NDArray[np.int64]


def with_families(table: Varying, found: LossyFit) -> LossyFit:
    """The same fit, with families joined to one source each, unless the rows refute it.

    A joined source is on as often as all its modes, and has their mean reach.
    """
    owner = families_of(found.reach.T, found.probability, len(table.known))
    if owner.size == np.unique(owner).size:
        return found
    pieces = _point_of(found)
    surface = LossySurface(Cells.of(table.data.counts()))
    joined, notes = owner.copy(), []
    for group in np.unique(owner)[np.bincount(owner) > 1]:
        note = _compared(surface, pieces, owner == group, table.data.sensors)
        if note is None or not note.joined:
            joined[owner == group] = joined.max() + 1 + np.arange((owner == group).sum())
        notes += [note] if note is not None and (note.joined or not note.told) else []
    if not any(note.joined for note in notes):
        return replace(found, families=tuple(notes)) if notes else found
    order, labels = _in_order(joined)
    modes = surface.em(pieces.pick(order), MODE_STEPS, MODE_TOLERANCE, labels)
    return _joined(surface, modes, labels, found, tuple(notes))


def families_of(reach: Matrix, probability: Vector, n_known: int) -> Owner:
    """The number of the family of every source: single linkage of sources alike; known ones stay alone.

    >>> families_of(np.array([[0.9, 0.8, 0.0], [0.0, 0.5, 0.6], [0.8, 0.9, 0.1]]), np.array([0.1, 0.2, 0.1]), 0)
    array([0, 1, 0])
    """
    length = np.linalg.norm(reach, axis=1)
    alike = reach @ reach.T > ALIKE * np.outer(length, length)
    owner = np.arange(len(reach))
    for one, other in np.argwhere(alike):
        if n_known <= one < other and probability[owner == owner[one]].sum() + probability[other] < 1:
            owner[owner == owner[other]] = owner[one]
    return np.unique(owner, return_inverse=True)[1].astype(np.int64)


def _point_of(found: LossyFit) -> LossyPoint:
    reach = found.reach.T.copy()
    return LossyPoint(found.probability, np.minimum(reach, NEARLY_SURE), found.leak, *_none_given(reach))


def _in_order(owner: Owner) -> tuple[NDArray[np.int64], Owner]:
    """An order in which families stay together, the first of each where it was, and the families in that order."""
    first = np.array([np.flatnonzero(owner == group)[0] for group in owner])
    order = np.argsort(first, kind="stable")
    return order, np.unique(first[order], return_inverse=True)[1].astype(np.int64)


def _compared(
    surface: LossySurface, pieces: LossyPoint, inside: NDArray[np.bool_], sensors: tuple[str, ...]
) -> Family | None:
    """What is to be said of a family; None where the rows say that its sources are independent."""
    order, owner = _in_order(np.where(inside, inside.argmax(), np.arange(inside.size)))
    start = pieces.pick(order)
    observed = surface.em(start, MODE_STEPS, MODE_TOLERANCE, owner).log_likelihood - surface.height(pieces)
    expected_rows = expected_surface(surface, pieces)
    alone = expected_rows.height(pieces)
    expected = expected_rows.em(start, MODE_STEPS, MODE_TOLERANCE, owner).log_likelihood - alone
    if expected < -TELLING and observed < REFUTED * expected:
        return None
    weight = pieces.probability[inside]
    mean = weight @ pieces.reach[inside] / weight.sum()
    reached = tuple(sensors[i] for i in np.flatnonzero(mean))
    n_pieces, told = int(inside.sum()), bool(expected < -TELLING)
    return Family(reached, n_pieces, observed, expected, told, joined=told or n_pieces >= LEAST_PIECES)


def expected_surface(surface: LossySurface, point: LossyPoint) -> LossySurface:
    """The likelihood of the rows that would be expected if the point were the truth."""
    n_sensors, n_rows = point.leak.size, surface.cells.n_samples
    every = np.arange(1 << n_sensors)
    silence = silence_table(point.probability, point.reach, point.leak, np.arange(point.n_modes))
    weights = n_rows * row_probabilities(silence, every, np.zeros_like(every))
    kept = weights > LEAST_WEIGHT
    starts = np.array([0, kept.sum()])
    return LossySurface(Cells(np.zeros(1, np.int64), starts, every[kept], weights[kept], n_sensors, n_rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Mean:
    """The numbers of joined sources as functions of those of their modes: values and derivatives."""

    probability: Vector  # (n_sources,)
    reach: Matrix  # (n_sources, n_sensors)
    by_numbers: Matrix  # of probabilities, then reaches source by source (all sensors), then leaks

    @classmethod
    def of(cls, modes: LossyPoint, owner: Owner) -> _Mean:
        n_sources, n_sensors, n_modes = int(owner.max()) + 1, modes.leak.size, modes.n_modes
        member = (owner == np.arange(n_sources)[:, None]).astype(float)
        probability = member @ modes.probability
        reach = member @ (modes.probability[:, None] * modes.reach) / probability[:, None]
        n_numbers = modes.numbers().size
        slope = np.zeros((n_sources + n_sources * n_sensors + n_sensors, n_numbers))
        slope[:n_sources, :n_modes] = member
        slope[-n_sensors:, -n_sensors:] = np.eye(n_sensors)
        for mode in range(n_modes):
            source = int(owner[mode])
            rows = n_sources + source * n_sensors + np.arange(n_sensors)
            slope[rows, mode] = (modes.reach[mode] - reach[source]) / probability[source]
            edges = np.flatnonzero(modes.reach[mode])
            places = modes.edge_places(np.full(edges.size, mode), edges)
            slope[rows[edges], places] = modes.probability[mode] / probability[source]
        return cls(probability, reach, slope)


def _joined(
    surface: LossySurface, modes: LossyPoint, owner: Owner, pieces: LossyFit, notes: tuple[Family, ...]
) -> LossyFit:
    """The fit that shows each family as one source; errors by the delta method."""
    mean = _Mean.of(modes, owner)
    height, _, information = surface.slopes(modes, owner)
    loose = ~pinned(modes)
    covariance = np.zeros_like(information)
    covariance[np.ix_(loose, loose)] = covariance_of(information[np.ix_(loose, loose)])
    told = np.isfinite(np.diag(covariance))
    covariance[~told], covariance[:, ~told] = 0.0, 0.0
    variance = np.einsum("ij,jk,ik->i", mean.by_numbers, covariance, mean.by_numbers)
    error = np.where(np.abs(mean.by_numbers) @ ~told > 0, np.nan, np.sqrt(np.maximum(variance, 0.0)))
    n_sources, n_sensors = mean.reach.shape
    reach_error = error[n_sources:-n_sensors].reshape(n_sources, n_sensors)
    pair = (mean.reach > 0).sum(axis=1) == 2
    reach_error[(mean.reach == 0) | pair[:, None]] = np.nan
    shown = LossyPoint(mean.probability, mean.reach, modes.leak, *_none_given(mean.reach))
    return replace(
        pieces,
        mixing=(mean.reach > 0).T,
        probability=mean.probability,
        reach=mean.reach.T,
        leak=modes.leak,
        log_likelihood=surface.height(shown),
        probability_error=error[:n_sources],
        reach_error=reach_error.T,
        leak_error=error[-n_sensors:],
        families=tuple(replace(note, log_likelihood=height) for note in notes),
    )


def _none_given(reach: Matrix) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return np.zeros(len(reach), dtype=bool), np.zeros(reach.shape, dtype=bool)
