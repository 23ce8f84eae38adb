"""Random likelihood surfaces for property tests: rows with gaps, sources, every shape of noise."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.estimate.lattice import Cells, NoiseShape, Point, Surface
from bica.estimate.whole import own_rates, two_rates
from bica.model.noise import Noise

clear_rates = st.floats(0.1, 0.3)  # of noise: four sensors leave every row a chance of at least 1e-4
SHAPES = ("known", "shared", "two", "own")


@dataclass(frozen=True)
class Problem:
    """A point on a surface, with the rows behind it as the slow twin takes them."""

    surface: Surface
    point: Point
    rows: list[tuple[int | None, ...]]
    weights: list[int]

    @property
    def sources(self):
        return list(zip(self.point.sources.tolist(), self.point.probability.tolist(), strict=True))

    @property
    def rates(self):
        return [rate.tolist() for rate in self.surface.noise.rates(self.point.noise)]


@st.composite
def problems(draw, max_sensors=4, max_sources=4, noise=clear_rates, shapes=SHAPES, min_sources=0, gaps=True):
    m = draw(st.integers(1, max_sensors))
    cell = st.sampled_from([0, 1, None] if gaps else [0, 1])
    rows = draw(st.lists(st.tuples(*[cell] * m), min_size=1, max_size=8))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    sets = draw(st.lists(st.integers(1, 2**m - 1), min_size=min_sources, max_size=max_sources, unique=True))
    rate = np.array(draw(st.lists(st.floats(0.02, 2), min_size=len(sets), max_size=len(sets))))
    shape, unknown = draw(noise_shapes(m, noise, shapes))
    surface = Surface(cells_of(rows, weights), shape)
    return Problem(surface, surface.at(np.array(sets, np.int64), rate, unknown), rows, weights)


@st.composite
def noise_shapes(draw, m, rates, shapes=SHAPES):
    kind, each = draw(st.sampled_from(shapes)), st.lists(rates, min_size=m, max_size=m)
    if kind == "known":
        return NoiseShape.known(Noise(draw(each), draw(each)), m), np.empty(0)
    if kind == "shared":
        return NoiseShape.shared_flips(m, 1e-4), np.array([draw(rates)])
    if kind == "two":
        return two_rates(m, 1e-4), np.array([draw(rates), draw(rates)])
    return own_rates(m, 1e-4), np.array(draw(each) + draw(each))


def cells_of(rows, weights):
    table = np.array([[np.nan if cell is None else cell for cell in row] for row in rows], float)
    return Cells.of(PatternCounts.of(table, sample_weight=np.array(weights, float)))


def surface_of(model, n_samples, shape, seed=1):
    """The surface of rows drawn from a model."""
    rows = model.sample(n_samples, np.random.default_rng(seed))
    return Surface(Cells.of(PatternCounts.of(rows)), shape)


def slope_by_differences(height, start, step=1e-6):
    """Central differences of ``height`` in every coordinate."""
    moves = step * np.eye(start.size)
    return np.array([(height(start + move) - height(start - move)) / (2 * step) for move in moves])
