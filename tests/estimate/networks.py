"""Random networks of narrow sources, as wide tables show them."""

import numpy as np

from bica.data.patterns import PatternCounts
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture


def network(seed, n_sensors=24, n_sources=20, flip_rate=0.02, chances=(0.03, 0.15)):
    """Distinct sources of one to four sensors drawn at random."""
    rng = np.random.default_rng(seed)
    columns = set()
    while len(columns) < n_sources:
        columns.add(tuple(sorted(rng.choice(n_sensors, rng.integers(1, 5), replace=False).tolist())))
    mixing = np.zeros((n_sensors, n_sources), dtype=bool)
    for number, column in enumerate(sorted(columns)):
        mixing[list(column), number] = True
    names = [f"s{i}" for i in range(n_sensors)]
    return OrMixture(mixing, rng.uniform(*chances, n_sources), Noise.flips(flip_rate), sensors=names)


def rows_of(truth, n_samples=8000, seed=0):
    return truth.sample(n_samples, np.random.default_rng(seed))


def drawn(truth, n_samples=8000, seed=0):
    return PatternCounts.of(rows_of(truth, n_samples, seed), sensors=truth.sensors)


def columns_of(model):
    """The sensors of every source, by name."""
    return {frozenset(np.array(model.sensors)[column].tolist()) for column in model.mixing.T}


def by_column(model, values):
    """Values of the sources, such as probabilities, by the names of their sensors."""
    keys = (frozenset(np.array(model.sensors)[column].tolist()) for column in model.mixing.T)
    return dict(zip(keys, values.tolist(), strict=True))
