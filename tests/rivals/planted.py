"""Factor tables drawn at random, as the papers of the rivals do."""

import csv

import numpy as np

from bica.data.patterns import PatternCounts


def clusters(seed, noise, n_sources=5, n_sensors=40, n_samples=300):
    """Sources of density 0.3, rows in each with chance 0.35; noise replaces a cell by a coin toss."""
    rng = np.random.default_rng(seed)
    mixing = rng.random((n_sensors, n_sources)) < 0.3
    rows = (rng.random((n_samples, n_sources)) < 0.35) @ mixing.T
    replaced = rng.random(rows.shape) < noise
    return mixing, PatternCounts.of(np.where(replaced, rng.random(rows.shape) < 0.5, rows))


def factors(seed, n_sources, n_samples, n_sensors, density, flip_rate):
    """Both factors of one density, chosen so that ``density`` of the table is on; cells are flipped."""
    rng = np.random.default_rng(seed)
    chance = np.sqrt(1 - (1 - density) ** (1 / n_sources))
    mixing = (rng.random((n_sources, n_sensors)) < chance).T
    rows = (rng.random((n_samples, n_sources)) < chance) @ mixing.T
    return mixing, PatternCounts.of(rows ^ (rng.random(rows.shape) < flip_rate)), chance


def zoo_rows(shared_data):
    """101 animals by 17 traits: the numbers of legs count as two, at most four and at least five."""
    with open(shared_data / "zoo" / "X.csv") as file:
        animals = list(csv.DictReader(file))
    many = [sum(int(animal[f"legs_{n}"]) for n in (5, 6, 8)) for animal in animals]
    rest = [[int(value) for name, value in animal.items() if not name.startswith("legs")] for animal in animals]
    return np.column_stack([rest, 1 - np.array(many), many])


def bars(seed, side, chance, n_samples=1000):
    """Images of rows and columns of a square, each on by itself: the mixing, the images and which bars are on."""
    rng = np.random.default_rng(seed)
    place = np.arange(side * side)
    mixing = np.column_stack([place // side == k for k in range(side)] + [place % side == k for k in range(side)])
    activity = rng.random((n_samples, 2 * side)) < (rng.uniform(*chance, 2 * side) if np.ndim(chance) else chance)
    return mixing, activity @ mixing.T, activity
