"""Fresh kinds of networks, default settings: which answers are wrong, by whose fault, and does the verdict say so.

    python benchmarks/bench_families.py --seeds 500 504 --records FILE > families.md

``--families`` takes some of them only. Every table goes the whole way of ``BICA().fit``: read, count, learn, judge.
A wrong answer is compared with the true sources, refitted with every kind of noise (one flip rate beyond 16 sensors,
where rates of every sensor have no score): "below" scores less than they do (a fault of the search), "above" more
(the cost of a source, or too few rows).
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bench_zoo import BELOW, EXACT, columns
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

from bica import Likelihood, Noise, OrMixture, PatternCounts
from bica.errors import BicaWarning
from bica.estimate.lattice import Cells, Surface, lowest_rate
from bica.estimate.rows.states import CAREFUL, RowSurface, StateCells
from bica.estimate.score import Scale, cost_by_size
from bica.estimate.search import SearchTask, SourceSearch, Start
from bica.estimate.settings import WORD, Varying, as_sets
from bica.estimate.whole import CONVINCING, KINDS, log_evidence
from bica.pipeline import learn
from bica.simulate import random_network, simulate

FLIPS = (0.0, 0.01, 0.02, 0.05)
ROWS = (500, 1000, 2000, 5000, 10_000)
SLOW = 20.0  # CPU seconds
Rng = np.random.Generator


@dataclass(frozen=True)
class Table:
    """A problem: rows, how they are to be read, and the model behind them."""

    truth: OrMixture
    rows: np.ndarray
    how: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """What one table gave."""

    family: str
    seed: int
    n_sensors: int
    n_sources: int
    n_rows: int
    flip_rate: float
    found: int
    spurious: int
    above_truth: float | None  # by score; None where nothing is wrong, or no score can be had
    kind: str  # of noise and edges
    verdict: str
    settled: bool
    seconds: float

    @property
    def right(self) -> bool:
        """Every source exact, none spurious."""
        return self.found == self.n_sources and not self.spurious

    def words(self) -> str:
        """One line about a wrong or slow answer."""
        score = "no score" if self.above_truth is None else f"{self.above_truth:+.1f}"
        return (
            f"- {self.family} {self.seed}: {self.n_sensors} sensors, {self.n_rows} rows, {self.flip_rate:.0%} flips: "
            f"{self.found} of {self.n_sources}, {self.spurious} spurious, {score}, {self.kind}, {self.verdict}"
            f"{'' if self.settled else ', not settled'}, {self.seconds:.1f} s"
        )


def merged(sets: list[frozenset[int]], rate: np.ndarray, n_sensors: int, noise: Noise) -> OrMixture:
    """A model of sources with these sensors; those with the same sensors are one, and those without any are none."""
    total: dict[frozenset[int], float] = {}
    for sensors, one in zip(sets, rate, strict=True):
        if sensors:
            total[sensors] = total.get(sensors, 0.0) + float(one)
    mixing = np.array([[i in sensors for sensors in total] for i in range(n_sensors)], dtype=bool)
    return OrMixture(mixing.reshape(n_sensors, len(total)), -np.expm1(-np.array(list(total.values()))), noise)


def some_flips(rng: Rng) -> Noise:
    return Noise.flips(float(rng.choice(FLIPS)))


def some_rows(rng: Rng) -> int:
    return int(rng.choice(ROWS))


def frequent(n: int, rng: Rng) -> np.ndarray:
    """Rates of links: alike or over a wide range."""
    if rng.random() < 0.5:
        return -np.log1p(-rng.uniform(0.01, 0.12, n))
    return -np.log1p(-np.exp(rng.uniform(np.log(0.003), np.log(0.3), n)))


def drawn(truth: OrMixture, rng: Rng) -> Table:
    return Table(truth, truth.sample(some_rows(rng), rng))


def lengths_of_links(n_nodes: int, kind: str, rng: Rng) -> np.ndarray:
    """A random connected graph: the lengths of its links, 0 where there is none."""
    place = rng.random((n_nodes, 2))
    far = np.hypot(*(place[:, None] - place).T)
    tree = minimum_spanning_tree(far).toarray()
    tree = np.maximum(tree, tree.T)
    if kind == "tree":
        return tree
    if kind == "barabasi":
        linked = np.zeros((n_nodes, n_nodes), dtype=bool)
        for node in range(1, n_nodes):
            weight = 1.0 + linked[:node].sum(axis=1)
            ends = rng.choice(node, size=min(2, node), replace=False, p=weight / weight.sum())
            linked[node, ends] = linked[ends, node] = True
        return np.where(linked, far, 0.0)
    near = rng.random((n_nodes, n_nodes)) < 0.7 * np.exp(-far / 0.25) if kind == "waxman" else far < 0.27
    near = np.triu(near, 1)
    return np.where(near | near.T, far, tree)


def path_network(n_paths: int, rng: Rng, noise: Noise) -> OrMixture:
    """Shortest paths between some nodes of a random graph; the links are the sources."""
    kind = str(rng.choice(["geometric", "waxman", "barabasi", "tree"]))
    length = lengths_of_links(int(rng.integers(10, 40)), kind, rng)
    ends = rng.choice(len(length), size=int(np.ceil((1 + np.sqrt(1 + 8 * n_paths)) / 2)), replace=False)
    _, before = dijkstra(csr_matrix(length), directed=False, return_predecessors=True)
    pairs = [(a, b) for i, a in enumerate(ends) for b in ends[:i]]
    chosen = rng.permutation(len(pairs))[:n_paths]
    users: dict[tuple[int, int], set[int]] = {}
    for path, place in enumerate(chosen):
        begin, node = pairs[place]
        while node != begin:
            link = (int(min(node, before[begin, node])), int(max(node, before[begin, node])))
            users.setdefault(link, set()).add(path)
            node = before[begin, node]
    return merged([frozenset(one) for one in users.values()], frequent(len(users), rng), len(chosen), noise)


def paths(rng: Rng) -> Table:
    return drawn(path_network(int(rng.integers(8, 41)), rng, some_flips(rng)), rng)


def many_paths(rng: Rng) -> Table:
    return drawn(path_network(int(rng.integers(45, 101)), rng, some_flips(rng)), rng)


def nested(rng: Rng) -> Table:
    """Services on hosts on racks, each of which may fail."""
    n_sensors, levels = int(rng.integers(8, 31)), [(2, 4), (2, 3)][: int(rng.integers(1, 3))]
    groups = [frozenset([i]) for i in range(n_sensors)]
    sets = list(groups)
    for low, high in levels:
        groups, rest = [], groups
        while rest:
            size = int(rng.integers(low, high + 1))
            groups.append(frozenset().union(*rest[:size]))
            rest = rest[size:]
        sets += groups
    return drawn(merged(sets, -np.log1p(-rng.uniform(0.01, 0.08, len(sets))), n_sensors, some_flips(rng)), rng)


def dense(rng: Rng) -> Table:
    """Each sensor hears half of the sources, which are often on."""
    n_sensors, n_sources = int(rng.integers(8, 21)), int(rng.integers(4, 9))
    sets = [frozenset(np.flatnonzero(rng.random(n_sensors) < 0.5).tolist()) for _ in range(n_sources)]
    return drawn(merged(sets, -np.log1p(-rng.uniform(0.3, 0.6, n_sources)), n_sensors, some_flips(rng)), rng)


def rare(rng: Rng) -> Table:
    """A few sources that are hardly ever on, beside frequent ones."""
    n_sensors = int(rng.integers(8, 33))
    network = random_network(n_sensors, round(0.8 * n_sensors), rng=rng, noise=some_flips(rng))
    probability = network.probability.copy()
    few = rng.choice(probability.size, size=max(1, probability.size // 4), replace=False)
    probability[few] = rng.uniform(0.002, 0.01, few.size)
    return drawn(network.with_probability(probability), rng)


def crowded(rng: Rng) -> Table:
    """Twice as many sources as sensors."""
    n_sensors = int(rng.integers(8, 21))
    return drawn(
        random_network(n_sensors, 2 * n_sensors, probability=(0.01, 0.12), rng=rng, noise=some_flips(rng)), rng
    )


def unequal(rng: Rng, n_sensors: int | None = None) -> Table:
    """Every sensor has its own rates of misses and false alarms."""
    n_sensors = n_sensors or int(rng.integers(8, 17))
    noise = Noise(rng.uniform(0, 0.05, n_sensors), rng.uniform(0, 0.4, n_sensors))
    return drawn(random_network(n_sensors, round(0.7 * n_sensors), rng=rng, noise=noise), rng)


def unequal_many(rng: Rng) -> Table:
    return unequal(rng, int(rng.integers(17, 31)))


def persistent(rng: Rng) -> Table:
    """Sources that stay on for some rows."""
    network = random_network(int(rng.integers(8, 25)), int(rng.integers(6, 17)), rng=rng, noise=some_flips(rng))
    stay = float(rng.choice([3.0, 10.0]))
    return Table(network, np.asarray(simulate(network, int(rng.choice([5000, 10_000])), rng, persistence=stay).rows))


def gaps(rng: Rng) -> Table:
    """Cells are missing at random."""
    network = random_network(int(rng.integers(8, 25)), int(rng.integers(6, 17)), rng=rng, noise=some_flips(rng))
    rows = network.sample(int(rng.choice([1000, 5000])), rng).astype(float)
    rows[rng.random(rows.shape) < rng.uniform(0.05, 0.2)] = np.nan
    return Table(network, rows)


def weighted(rng: Rng) -> Table:
    """Counted rows with their numbers, or twice as many rows of half a weight."""
    network = path_network(int(rng.integers(8, 25)), rng, some_flips(rng))
    n_rows = some_rows(rng)
    if rng.random() < 0.5:
        distinct, times = np.unique(network.sample(n_rows, rng), axis=0, return_counts=True)
        return Table(network, distinct, {"sample_weight": times})
    return Table(network, network.sample(2 * n_rows, rng), {"sample_weight": np.full(2 * n_rows, 0.5)})


def odd_columns(rng: Rng) -> Table:
    """Copies of sensors, sensors that are never on, and one that always is."""
    network = random_network(int(rng.integers(6, 20)), int(rng.integers(5, 15)), rng=rng)
    copied = rng.choice(network.n_sensors, size=3, replace=False)
    mixing = np.vstack([network.mixing, network.mixing[copied], np.zeros((3, network.n_sources), dtype=bool)])
    always = np.zeros((len(mixing), 1), dtype=bool)
    always[-1] = True
    probability = np.append(network.probability, 1.0)
    order = rng.permutation(len(mixing))
    return drawn(OrMixture(np.hstack([mixing, always])[order], probability), rng)


FAMILIES: dict[str, Callable[[Rng], Table]] = {
    "paths": paths,
    "many paths": many_paths,
    "nested": nested,
    "dense": dense,
    "rare": rare,
    "crowded": crowded,
    "unequal": unequal,
    "unequal, 17–30": unequal_many,
    "persistent": persistent,
    "gaps": gaps,
    "weighted": weighted,
    "odd columns": odd_columns,
}


def run(family: str, seed: int) -> Run:
    """Draw a table, learn from it by default, and compare with the truth."""
    rng = np.random.default_rng([seed, *family.encode()])
    table = FAMILIES[family](rng)
    truth, begun = table.truth, time.process_time()
    learned = learn(table.rows, Likelihood(n_jobs=1), np.random.default_rng(0), **table.how)
    seconds, fit = time.process_time() - begun, learned.fit
    true, got = columns(truth), columns(fit.model)
    kind = fit.diagnostics["noise"].get("kind", "one flip rate")
    lossy = fit.model.has_lossy_edges
    above = None
    one_rate = truth.noise.n_sensors is None and not lossy
    if true != got and truth.n_sensors <= (WORD if one_rate else EXACT):
        stretch = learned.order.persistence.stretch if learned.order.persistence else 1.0
        above = above_truth(fit.model, truth, learned.counts.counts(), stretch)
    miss = truth.noise.rates(truth.n_sensors)[1]
    return Run(
        family,
        seed,
        truth.n_sensors,
        len(true),
        round(learned.counts.n_samples),
        float(miss.mean()),
        len(true & got),
        len(got - true),
        above,
        "lossy edges" if lossy else kind,
        learned.diagnosis.verdict,
        fit.converged,
        seconds,
    )


def above_truth(model: OrMixture, truth: OrMixture, data: PatternCounts, stretch: float) -> float:
    """By how much the evidence of these sources exceeds that of the true ones, each with its best rates and noise."""
    fewer = PatternCounts(data.patterns, data.weights / stretch, data.sensors, data.observed)
    table = Varying.of(fewer, (), ())
    return best_evidence(model, table) - best_evidence(truth, table)


def best_evidence(model: OrMixture, table: Varying) -> float:
    """The log evidence of these sources with the best kind of noise, by the rule by which a fit chooses it."""
    n_sensors, lowest = table.data.n_sensors, lowest_rate(table.data)
    seen = merged(
        [frozenset(np.flatnonzero(column).tolist()) for column in model.of_sensors(table.places).mixing.T],
        np.minimum(model.rate, 20.0),
        n_sensors,
        Noise(),
    )
    cost = cost_by_size(n_sensors, table.data.n_samples, n_sensors)
    sources, best = as_sets(np.flatnonzero(column) for column in seen.mixing.T), -np.inf
    for place, kind in enumerate(KINDS if n_sensors <= EXACT else KINDS[:1]):
        shape = kind.shape(n_sensors, lowest)
        if n_sensors <= EXACT:
            surface: Any = Surface(Cells.of(table.data), shape)
        else:
            surface = RowSurface(StateCells.of(table.data), shape, CAREFUL)
        task = SearchTask(Scale(surface, cost), (), sources, exact=True)
        for rate in (1e-3, 0.02, 0.1) if n_sensors <= EXACT else (0.02,):
            start = Start(sources, seen.rate, np.ones(sources.size, dtype=bool), np.full(shape.n_unknown, rate))
            best = max(best, log_evidence(SourceSearch(task, start)) - CONVINCING * place)
    return best


def line(family: str, runs: list[Run]) -> str:
    """One line of the table."""
    wrong = [run for run in runs if not run.right]
    told = Counter(run.verdict for run in wrong)
    below = sum(run.above_truth is not None and run.above_truth < -BELOW for run in wrong)
    above = sum(run.above_truth is not None and run.above_truth >= -BELOW for run in wrong)
    seconds = sorted(run.seconds for run in runs)
    return (
        f"| {family} | {len(runs)} | {len(runs) - len(wrong)} ({1 - len(wrong) / len(runs):.0%}) | "
        f"{sum(run.found for run in runs)} of {sum(run.n_sources for run in runs)} | "
        f"{sum(run.spurious for run in runs)} | {below} | {above} | {told['fits']} | "
        f"{sum(run.right and run.verdict == 'misfit' for run in runs)} | "
        f"{statistics.median(seconds):.1f}, {seconds[-1]:.1f} |"
    )


def recorded(file: Path | None) -> dict[tuple[str, int], Run]:
    if file is None or not file.exists():
        return {}
    runs = [Run(**json.loads(text)) for text in file.read_text().splitlines()]
    return {(run.family, run.seed): run for run in runs}


def main() -> None:
    """Print the table, and below it the answers that are wrong or slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=[500, 504], help="from the first up to before the second")
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--records", type=Path, help="finished tables, one line of JSON each")
    parser.add_argument("--stop-after", type=float, default=np.inf, help="begin no table after so many seconds")
    given = parser.parse_args()
    warnings.simplefilter("ignore", BicaWarning)
    begun, done = time.monotonic(), recorded(given.records)
    asked = [(family, seed) for seed in range(*given.seeds) for family in given.families]
    for family, seed in asked:
        if (family, seed) in done or time.monotonic() - begun > given.stop_after:
            continue
        done[family, seed] = one = run(family, seed)
        print(one, file=sys.stderr, flush=True)
        if given.records is not None:
            with given.records.open("a") as file:
                file.write(json.dumps(asdict(one)) + "\n")
    print("| family | tables | right | sources | spurious | below | above | wrong, fits | right, misfit | seconds |")
    print("|" + " --- |" * 10)
    every = [done[key] for key in asked if key in done]
    for family in given.families:
        if runs := [run for run in every if run.family == family]:
            print(line(family, runs))
    print(line("all", every) + "\n\nWrong, or longer than 20 CPU seconds:\n")
    for one in every:
        if not one.right or one.seconds > SLOW:
            print(one.words())


if __name__ == "__main__":
    main()
