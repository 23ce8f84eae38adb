"""Problems with known answers: networks, activity over time, and the rows that sensors show of them.

Networks are random, the four fixed ones of the paper's evaluation (their edges may be lossy), or real ones whose tables
come with the package.

>>> import numpy as np
>>> problem = simulate(topology("one"), 100, np.random.default_rng(7))
>>> problem.activity.shape, problem.rows.shape
((100, 6), (100, 10))
"""

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations, compress
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import DataError, SettingError
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

__all__ = [
    "EVALUATION",
    "TOPOLOGIES",
    "Evaluation",
    "Example",
    "Problem",
    "bars",
    "example",
    "markov_activity",
    "random_network",
    "simulate",
    "topology",
    "with_lossy_edges",
]

BUNDLED = Path(str(files("bica.data"))) / "examples"
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


def pooling_design(
    n_pools: int = 48,
    n_samples: int = 384,
    pools_per_sample: int = 6,
    *,
    probability: tuple[float, float] = (0.01, 0.01),
    noise: Noise | None = None,
    rng: np.random.Generator,
) -> OrMixture:
    """Samples tested in pools: a sample is a source, on if it is a carrier, and a pool is a sensor.

    The pools are as many groups as a sample has pools; each group splits the samples at random into pools whose sizes
    differ by one at most; samples that share all their pools are one source. Such a design cannot be learned, having
    many more sources than sensors, but its rows can be decoded. Designs of 48 pools were used to screen for a virus
    (N. Shental et al.: Efficient high-throughput SARS-CoV-2 testing to detect asymptomatic carriers, Science Advances
    6, 2020); theirs come from a code, ours are random.

    >>> design = pooling_design(rng=np.random.default_rng(1))
    >>> design.mixing.shape, set(design.mixing.sum(axis=0).tolist()), set(design.mixing.sum(axis=1).tolist())
    ((48, 384), {6}, {48})
    """
    if pools_per_sample < 1 or n_pools % pools_per_sample:
        raise SettingError(
            f"{n_pools} pools cannot be split into {pools_per_sample} equal groups; give a multiple of pools_per_sample"
        )
    width = n_pools // pools_per_sample
    _check_ranges(n_pools, n_samples, (1, pools_per_sample), probability)
    mixing = np.zeros((n_pools, n_samples), dtype=bool)
    for group in range(pools_per_sample):
        mixing[group * width + rng.permutation(n_samples) % width, np.arange(n_samples)] = True
    return OrMixture(mixing, rng.uniform(*probability, n_samples), noise)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The sizes and noise levels at which every topology is tried."""

    n_samples: tuple[int, ...]
    flip_rates: tuple[float, ...]
    n_runs: int


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((BUNDLED / "topologies.json").read_text("utf-8"))
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


ROUNDING = 1e-9  # relative: 0.9 and 9 slots belong together, though 1 - 0.9 is a little below 0.1


def markov_activity(
    probability: ArrayLike, persistence: ArrayLike, n_samples: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which sources are on in each of ``n_samples`` consecutive slots: (n_samples, n_sources).

    ``probability`` is the share of slots in which a source is on, ``persistence`` the mean number of slots that it
    then stays on (L, at least 1), for all sources or for each. Stays are geometric: an active source stops after each
    slot with probability 1/L, a silent one of probability p starts with probability p / ((1 - p) L), and the first slot
    is drawn from the stationary law. Slots are independent where L = 1 / (1 - p); neighbouring slots correlate by
    1 - 1 / (L (1 - p)). Time grows with the number of cells, without a Python loop over them.

    >>> activity = markov_activity([0.2, 0.5], 10, 100_000, np.random.default_rng(7))
    >>> activity.mean(axis=0).round(2)
    array([0.2, 0.5])
    """
    on_share = np.atleast_1d(np.asarray(probability, dtype=float))
    stay = np.asarray(persistence, dtype=float)
    _check_settings(on_share, stay, n_samples)
    stop = np.broadcast_to(1 / stay, on_share.shape)
    activity = np.empty((on_share.size, n_samples), dtype=bool)
    for row, p, leave in zip(activity, on_share, stop, strict=True):
        row[:] = _chain(p, leave, n_samples, rng)
    return np.ascontiguousarray(activity.T)


def _check_settings(on_share: NDArray[np.float64], stay: NDArray[np.float64], n_samples: int) -> None:
    if n_samples < 0:
        raise SettingError(f"{n_samples} samples cannot be drawn; give a count from 0 up")
    if on_share.ndim > 1 or stay.shape not in ((), (1,), on_share.shape):
        raise SettingError(
            f"persistence has shape {stay.shape} for probabilities of shape {on_share.shape}; give one number for all "
            "sources or one per source"
        )
    if not ((on_share >= 0) & (on_share <= 1)).all():
        raise SettingError("a probability of being on must lie in [0, 1]")
    if not (np.isfinite(stay) & (stay >= 1)).all():
        raise SettingError("persistence is a mean number of slots, so it must be finite and at least 1")
    _check_start(on_share, np.broadcast_to(stay, on_share.shape))


def _check_start(on_share: NDArray[np.float64], stay: NDArray[np.float64]) -> None:
    """Refuse probabilities for which a silent source would have to start with a probability above 1."""
    impossible = np.flatnonzero(on_share > (1 + ROUNDING) * (1 - on_share) * stay)
    if impossible.size:
        source = impossible[0]
        raise SettingError(
            f"source {source} cannot be on with probability {on_share[source]:g} in stays of {stay[source]:g} slots on "
            "average, even with one silent slot between them; raise persistence to at least p / (1 - p), or lower the "
            "probability"
        )


def _chain(p: float, stop: float, n_samples: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """In which slots one source is on, drawn stay by stay."""
    start = min(1.0, stop * p / (1 - p))
    if start == 0:
        return np.zeros(n_samples, dtype=bool)
    on = bool(rng.random() < p)
    first, second = (stop, start) if on else (start, stop)
    switched = np.zeros(n_samples, dtype=bool)
    slot = 0
    while slot < n_samples:
        n_pairs = 1 + int((n_samples - slot) / (1 / first + 1 / second))
        stays = np.stack([rng.geometric(first, n_pairs), rng.geometric(second, n_pairs)], axis=1)
        ends = slot + np.cumsum(np.minimum(stays, n_samples).ravel())  # the minimum keeps the sum from overflowing
        switched[ends[ends < n_samples]] = True
        slot = int(ends[-1])
    return np.logical_xor.accumulate(switched) ^ on


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Rows whose model and activity are known."""

    model: OrMixture
    activity: NDArray[np.bool_]  # (n_samples, n_sources), which sources were on
    rows: NDArray[np.bool_]  # (n_samples, n_sensors), what the sensors showed

    @property
    def n_samples(self) -> int:
        """How many rows were drawn."""
        return len(self.rows)


def simulate(
    model: OrMixture, n_samples: int, rng: np.random.Generator, persistence: ArrayLike | None = None
) -> Problem:
    """Draw the activity of the sources from ``model``, and the rows that its noisy sensors show of it.

    Rows are independent of each other unless ``persistence`` gives the mean number of rows for which a source stays
    on (see ``markov_activity``).

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> problem = simulate(model, 4, np.random.default_rng(7))
    >>> bool((problem.rows == model.observe(problem.activity)).all())  # no noise here
    True
    """
    if n_samples < 0:
        raise SettingError(f"{n_samples} samples cannot be drawn; give a count from 0 up")
    if persistence is None:
        activity = model.draw_activity(n_samples, rng)
    else:
        activity = markov_activity(model.probability, persistence, n_samples, rng)
    return Problem(model, activity, model.draw_rows(activity, rng))


DESCRIPTIONS = {
    "abilene": "The Abilene research network, seen through 10 paths between 5 of its nodes",
    "geant2009": "The GÉANT research network of 2009, seen through 15 paths between 6 of its nodes",
    "btnorthamerica": "BT's North American backbone, seen through 21 paths between 7 of its nodes",
}


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A table and the sources that it was made from; the networks are real, the failures of links simulated."""

    name: str
    description: str
    table_path: Path
    sensors: tuple[str, ...]
    source_names: tuple[str, ...]
    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,)


def example(name: str) -> Example:
    """One of the bundled tables: "abilene", "geant2009" or "btnorthamerica".

    The networks are from the Internet Topology Zoo (CC BY 4.0, see ``data/examples/ATTRIBUTION.md``).

    >>> abilene = example("abilene")
    >>> abilene.mixing.shape, abilene.source_names[0], abilene.probability[0]
    ((10, 7), 'link01', np.float64(0.075))
    """
    if name not in DESCRIPTIONS:
        raise DataError(f"there is no example {name!r}; there are {', '.join(DESCRIPTIONS)}")
    (_, *source_names), *rows = _records(BUNDLED / f"{name}_G.csv")
    sources = {source: float(probability) for source, probability, _ in _records(BUNDLED / f"{name}_sources.csv")[1:]}
    return Example(
        name=name,
        description=f"{DESCRIPTIONS[name]}; a path is bad (1) while one of its links is down",
        table_path=BUNDLED / f"{name}_X.csv",
        sensors=tuple(sensor for sensor, *_ in rows),
        source_names=tuple(source_names),
        mixing=np.array([[cell == "1" for cell in cells] for _, *cells in rows]),
        probability=np.array([sources[source] for source in source_names]),
    )


def _records(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))
