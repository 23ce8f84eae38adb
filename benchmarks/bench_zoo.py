"""Paths over shared links in real backbone networks: is every source found, and nothing that is not there.

BICA_DATA=folder-of-tables python benchmarks/bench_zoo.py > benchmarks/results/zoo.md

``--every 2 --first 1`` takes every second network from the second one on, ``--seed`` other rows: settle constants on
one set and report another. With ``--records FILE``, finished networks are kept there, one line of JSON each, and a
second call does only what is missing; ``--stop-after`` ends a call after so many seconds.
"""

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bica import Likelihood, Noise, OrMixture, PatternCounts
from bica.errors import BicaWarning
from bica.estimate.lattice import Cells, Surface
from bica.estimate.rows.states import CAREFUL, RowSurface, StateCells, first_shape
from bica.estimate.score import Found, Scale
from bica.estimate.search import SearchTask, SourceSearch, Start
from bica.estimate.settings import Settings, Varying, as_sets

DATA = Path(os.environ.get("BICA_DATA", Path(__file__).parents[2] / "shared" / "data"))
N_SAMPLES = 5000
PROBABILITY = (0.01, 0.12)
SIZES = ((0, 16), (17, 24), (25, 36), (37, 64))
EXACT = 16  # sensors up to which scores are compared on the lattice, which is exact
LONG_LISTS = CAREFUL._replace(most_in_all=1 << 26)  # states: a gigabyte
BEGUN = time.monotonic()
BELOW = 0.5  # a score this far below that of the truth is a failure of the search


@dataclass(frozen=True)
class Run:
    """What one network gave."""

    name: str
    n_sensors: int
    n_sources: int
    found: int
    spurious: int
    score_above_truth: float
    verdict: str
    seconds: float

    @property
    def right(self) -> bool:
        """Every source exact, none spurious."""
        return self.found == self.n_sources and not self.spurious


def truth_of(name: str, flip_rate: float, rng: np.random.Generator) -> OrMixture:
    """The network with probabilities drawn at random."""
    network = networks()[name]
    mixing = np.zeros((network["paths"], len(network["sources"])), dtype=bool)
    for source, sensors in enumerate(network["sources"]):
        mixing[sensors, source] = True
    return OrMixture(mixing, rng.uniform(*PROBABILITY, mixing.shape[1]), Noise.flips(flip_rate))


def networks() -> dict[str, dict]:
    return json.loads((DATA / "topology_zoo" / "networks.json").read_text())


def run(name: str, flip_rate: float, seed: int) -> Run:
    """Draw rows, learn from them, noise unknown, and compare with the truth."""
    rng = np.random.default_rng([seed, *name.encode()])
    truth = truth_of(name, flip_rate, rng)
    data = PatternCounts.of(truth.sample(N_SAMPLES, rng))
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicaWarning)
        fit = Likelihood(n_jobs=1).fit(data, np.random.default_rng(0))
    seconds = time.process_time() - begun
    true, got = columns(truth), columns(fit.model)
    above = 0.0 if true == got else above_truth(fit.model, truth, data)
    verdict = "settled" if fit.converged else "not settled"
    return Run(name, truth.n_sensors, len(true), len(true & got), len(got - true), above, verdict, seconds)


def columns(model: OrMixture) -> set[tuple[int, ...]]:
    return {tuple(np.flatnonzero(column).tolist()) for column in model.mixing.T}


def above_truth(model: OrMixture, truth: OrMixture, data: PatternCounts) -> float:
    """By how much the score of these sources exceeds that of the true ones, each with its best rates and flip rate."""
    table = Varying.of(data, (), ())
    shape = first_shape(table, Settings())
    surface = RowSurface(StateCells.of(table.data), shape, LONG_LISTS)
    if table.data.n_sensors <= EXACT:
        surface = Surface(Cells.of(table.data), shape)
    scale = Scale(surface, table.data.n_samples)
    return scale.advantage(*(refitted(one.of_sensors(table.places), scale) for one in (model, truth)))


def refitted(seen: OrMixture, scale: Scale) -> Found:
    """These sources with their best rates and flip rate."""
    sources = as_sets(sorted(columns(seen) - {()}))
    rate = np.array([seen.rate[(column == seen.mixing.T).all(axis=1)].sum() for column in _unpacked(sources, seen)])
    judged = SearchTask(scale, (), sources, exact=True)
    free = np.ones(sources.size, dtype=bool)
    starts = (Start(sources, rate, free, np.array([flips])) for flips in (max(np.mean(seen.noise.miss), 1e-4), 0.02))
    return max((SourceSearch(judged, start).best for start in starts), key=lambda found: found.score)


def _unpacked(sources: np.ndarray, model: OrMixture) -> np.ndarray:
    return (sources[:, None] >> np.arange(model.n_sensors)) & 1 == 1


def line(title: str, runs: list[Run]) -> str:
    """One line of the table."""
    seconds = sorted(run.seconds for run in runs)
    right = sum(run.right for run in runs)
    return (
        f"| {title} | {len(runs)} | {right} ({right / len(runs):.1%}) | {sum(run.found for run in runs)} of "
        f"{sum(run.n_sources for run in runs)} | {sum(run.spurious for run in runs)} | "
        f"{sum(run.score_above_truth < -BELOW for run in runs)} | {statistics.mean(seconds):.1f}, "
        f"{statistics.median(seconds):.1f}, {seconds[-1]:.1f} |"
    )


def settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take every so many-th network")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flips", type=float, nargs="+", default=[0.0, 0.02, 0.05])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--records", type=Path, help="finished networks, one line of JSON each")
    parser.add_argument("--stop-after", type=float, default=float("inf"), help="begin no network after so many seconds")
    return parser.parse_args()


def performed(names: list[str], flip_rate: float, given: argparse.Namespace) -> list[Run]:
    """The runs of these networks, as far as time allows; those on record are not done again."""
    done = recorded(given.records, flip_rate, given.seed)
    missing = [name for name in names if name not in done]
    perform = partial(run, flip_rate=flip_rate, seed=given.seed)
    with ProcessPoolExecutor(given.jobs) as pool:
        list(pool.map(perform, missing[: given.jobs]))  # compiles
        for begin in range(0, len(missing), given.jobs):
            if time.monotonic() - BEGUN > given.stop_after:
                break
            for one in pool.map(perform, missing[begin : begin + given.jobs]):
                done[one.name] = one
                print(flip_rate, one, file=sys.stderr, flush=True)
                if given.records is not None:
                    with given.records.open("a") as file:
                        file.write(json.dumps({"flip_rate": flip_rate, "seed": given.seed, **asdict(one)}) + "\n")
    return [done[name] for name in names if name in done]


def recorded(file: Path | None, flip_rate: float, seed: int) -> dict[str, Run]:
    """The runs that a file holds for this flip rate and seed, by the name of the network."""
    if file is None or not file.exists():
        return {}
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    mine = [one for one in lines if (one.pop("flip_rate"), one.pop("seed")) == (flip_rate, seed)]
    return {one["name"]: Run(**one) for one in mine}


def main() -> None:
    """Print the tables, and below each the networks that are not right."""
    given = settings()
    names = sorted(networks())[given.first :: given.every]
    print("# Paths over shared links in real backbone networks, noise unknown\n")
    print(f"    python benchmarks/bench_zoo.py --every {given.every} --first {given.first} --seed {given.seed}\n")
    print(
        f"`topology_zoo`, {N_SAMPLES} rows, p ~ U{PROBABILITY}. Right: every source exact, none spurious. Below: score"
    )
    print(f"more than {BELOW} below that of the true sources, refitted. Seconds of one thread for the whole fit:")
    print("mean, median, largest.\n")
    for flip_rate in given.flips:
        print(f"## {flip_rate:.0%} flips\n")
        print("| sensors | networks | right | sources found | spurious | below | seconds |")
        print("|" + " --- |" * 7)
        runs = performed(names, flip_rate, given)
        if not runs:
            continue
        for low, high in SIZES:
            of_size = [run for run in runs if low <= run.n_sensors <= high]
            if of_size:
                print(line(f"{low}–{high}", of_size))
        print(line("all", runs))
        print("\nNot right: found of all, spurious, score above the truth\n")
        for one in runs:
            if not one.right:
                print(
                    f"- {one.name} ({one.n_sensors} sensors): {one.found} of {one.n_sources}, {one.spurious}, "
                    f"{one.score_above_truth:+.1f}, {one.verdict}, {one.seconds:.1f} s"
                )
        print(flush=True)


if __name__ == "__main__":
    main()
