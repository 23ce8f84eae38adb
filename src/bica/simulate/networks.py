"""Networks of sources and sensors: random ones, the four fixed ones of the paper's evaluation, and lossy edges."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations, compress
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.errors import SettingError
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

SensorsOfSource = tuple[int, ...] | NDArray[np.int64]  # the sensors of one source, ascending


def random_network(
    n_sensors: int,
    n_sources: int,
    *,
    column_weight: tuple[int, int] = (2, 4),
    probability: tuple[float, float] = (0.05, 0.3),
    noise: Noise | None = None,
    rng: np.random.Generator,
) -> OrMixture:
    """A network in which no two sources reach the same set of sensors.

    The number of sensors of a source is uniform over ``column_weight`` (both ends included), and the set uniform among
    those of that size; where all sets of a size are taken, another size is drawn. Probabilities are uniform over the
    range ``probability``. Apart from the mixing matrix itself, time and memory grow with the number of its ones.

    >>> model = random_network(10, 6, rng=np.random.default_rng(7))
    >>> model.mixing.shape, model.mixing.sum(axis=0).tolist()
    ((10, 6), [3, 3, 4, 4, 4, 4])
    """
    _check_ranges(n_sensors, n_sources, column_weight, probability)
    sizes = _draw_sizes(_room(n_sensors, n_sources, column_weight), n_sources, rng)
    mixing = np.zeros((n_sensors, n_sources), dtype=bool)
    for source, column in enumerate(_distinct_columns(n_sensors, sizes, rng)):
        mixing[list(column), source] = True
    return OrMixture(mixing, rng.uniform(*probability, n_sources), noise)


def with_lossy_edges(
    model: OrMixture, reach: tuple[float, float] = (0.5, 1.0), *, rng: np.random.Generator
) -> OrMixture:
    """The same network, whose edges work only at times: each with a probability drawn uniformly from ``reach``.

    >>> model = with_lossy_edges(topology("one"), (0.5, 0.9), rng=np.random.default_rng(7))
    >>> model.has_lossy_edges, bool((model.reach[model.mixing] >= 0.5).all())
    (True, True)
    """
    if not 0 < reach[0] <= reach[1] <= 1:
        raise SettingError(f"reach is {reach}, but it must be a range in (0, 1]: how often an edge works")
    drawn = np.where(model.mixing, rng.uniform(*reach, model.mixing.shape), 0.0)
    return OrMixture(model.mixing, model.probability, model.noise, drawn, sensors=model.sensors, names=model.names)


def _check_ranges(
    n_sensors: int, n_sources: int, column_weight: tuple[int, int], probability: tuple[float, float]
) -> None:
    if n_sensors < 0 or n_sources < 0:
        raise SettingError(f"a network cannot have {n_sensors} sensors and {n_sources} sources; give counts from 0 up")
    if not 1 <= column_weight[0] <= column_weight[1]:
        raise SettingError(f"column_weight is {column_weight}, but it must be a range of whole numbers from 1 up")
    if not 0 <= probability[0] <= probability[1] <= 1:
        raise SettingError(f"probability is {probability}, but it must be a range in [0, 1]")


def _room(n_sensors: int, n_sources: int, column_weight: tuple[int, int]) -> NDArray[np.int64]:
    """How many sources could have each number of sensors, indexed by that number."""
    least, most = column_weight
    room = np.zeros(min(most, n_sensors) + 1, dtype=np.int64)
    for size in range(least, room.size):
        room[size] = min(comb(n_sensors, size), n_sources)
    if room.sum() < n_sources:
        raise SettingError(
            f"{n_sources} sources need as many distinct columns, but {n_sensors} sensors allow only {room.sum()} with "
            f"{least} to {most} ones; ask for fewer sources or widen column_weight"
        )
    return room


def _draw_sizes(room: NDArray[np.int64], n_sources: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many sources get each number of sensors, indexed by that number."""
    taken = np.zeros_like(room)
    while taken.sum() < n_sources:
        drawn = rng.choice(np.flatnonzero(taken < room), n_sources - taken.sum())
        taken = np.minimum(taken + np.bincount(drawn, minlength=room.size), room)
    return taken


def _distinct_columns(n_sensors: int, sizes: NDArray[np.int64], rng: np.random.Generator) -> list[SensorsOfSource]:
    """``sizes[size]`` distinct columns of every size, in random order."""
    columns = [column for size, count in enumerate(sizes) for column in _sets_of(n_sensors, size, int(count), rng)]
    return [columns[place] for place in rng.permutation(len(columns))]


def _sets_of(n_sensors: int, size: int, count: int, rng: np.random.Generator) -> Iterable[SensorsOfSource]:
    possible = comb(n_sensors, size)
    if 2 * count > possible:  # listing them all beats drawing until the last missing one turns up
        return compress(combinations(range(n_sensors), size), rng.permutation(possible) < count)
    found: dict[bytes, SensorsOfSource] = {}
    while len(found) < count:
        column = np.sort(rng.choice(n_sensors, size, replace=False))
        found[column.tobytes()] = column
    return found.values()


def bars(side: int, *, probability: tuple[float, float] = (0.05, 0.3), rng: np.random.Generator) -> OrMixture:
    """The lines and columns of a square of sensors, each a source of its own; every sensor lies on two of them.

    The images in which hidden bars have to be found are a usual test of methods for overlapping causes (P. Foldiak:
    Forming sparse representations by local anti-Hebbian learning, Biological Cybernetics 64, 1990).

    >>> bars(2, rng=np.random.default_rng(0)).mixing.astype(int).T.tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    """
    if side < 1:
        raise SettingError(f"a square cannot have {side} sensors on a side; give a count from 1 up")
    _check_ranges(side * side, 2 * side, (side, side), probability)
    place = np.arange(side * side)
    mixing = np.column_stack([place // side == k for k in range(side)] + [place % side == k for k in range(side)])
    return OrMixture(mixing, rng.uniform(*probability, 2 * side))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The sizes and noise levels at which every topology is tried."""

    n_samples: tuple[int, ...]
    flip_rates: tuple[float, ...]
    n_runs: int


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files("bica.simulate").joinpath("topologies.json").read_text("utf-8"))
    return content


TOPOLOGIES: tuple[str, ...] = tuple(entry["name"] for entry in _content()["topologies"])
EVALUATION = Evaluation(tuple(_content()["samples"]), tuple(_content()["flip_rates"]), _content()["runs"])


def topology(name: str, noise: Noise | None = None) -> OrMixture:
    """One of the four networks by name: connected or in three groups, fewer or more sources than sensors.

    The paper describes its networks but does not publish them; these have the same four characters.

    >>> TOPOLOGIES
    ('one', 'two', 'three', 'four')
    >>> topology("two").mixing.shape
    (10, 7)
    """
    entry = next((entry for entry in _content()["topologies"] if entry["name"] == name), None)
    if entry is None:
        raise SettingError(f"there is no topology {name!r}; choose one of {', '.join(TOPOLOGIES)}")
    mixing = np.zeros((entry["n_sensors"], entry["n_sources"]), dtype=bool)
    for place, source in enumerate(entry["sources"]):
        mixing[source["sensors"], place] = True
    return OrMixture(mixing, [source["probability"] for source in entry["sources"]], noise)
