"""What any rule of cost could reach on real networks: what true sources gain, and false ones beside all true ones.

    BICA_DATA=folder-of-tables python benchmarks/bench_zoo_reach.py --every 2 --flips 0.05 --records FILE

Nothing is searched. Every network is refitted with its true sources; then each weak one is taken out, and all others
are refitted. A rule that takes sources by what they gain is right only if it keeps the weakest true one and refuses the
best false one, so these two numbers of every network bound all such rules, even one that was chosen in hindsight.
"""

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from bench_zoo import EXACT, LONG_LISTS, N_SAMPLES, PROBABILITY, Settings, networks, truth_of
from scipy.stats import norm

from bica import OrMixture, PatternCounts
from bica.estimate.lattice import Cells, Surface
from bica.estimate.rows.states import RowSurface, StateCells, first_shape, from_rows
from bica.estimate.score import Scale
from bica.estimate.search import SearchTask, SourceSearch, Start, relatives
from bica.estimate.settings import Varying, as_sets

CLEAR = 25.0  # nats that a source gains at once, beyond which no rule would miss it
LEAST = 2.0  # nats: about what the unknown rate of a source that gains little is worth
MOST_ROWS = 4000  # distinct rows whose common parts are candidates


@dataclass(frozen=True)
class Reach:
    """What decides about one network."""

    name: str
    n_sensors: int
    gain: float  # of the weakest true source, all others refitted
    false_gain: float  # of the best false source beside all true ones, their numbers as they are
    excess: float  # over the cost of its size, of the true source where that is least
    false_excess: float  # the same of the false source where it is largest
    lead: float  # of the truth over the best answer with a source less, by the score that is used
    oracle: float  # the log odds of the weakest true source for who knows how sizes and probabilities are drawn


def reach(name: str, flip_rate: float, seed: int) -> Reach:
    rng = np.random.default_rng([seed, *name.encode()])
    truth = truth_of(name, flip_rate, rng)
    table = Varying.of(PatternCounts.of(truth.sample(N_SAMPLES, rng)), (), ())
    n_sensors, scale = table.data.n_sensors, scale_of(table)
    judged = SearchTask(scale, (), np.empty(0, np.int64), exact=True)
    best = SourceSearch(judged, start_of(truth.of_sensors(table.places), flip_rate)).best
    point = best.fit.point
    gains, excess, leads, odds = [math.inf], [math.inf], [math.inf], [math.inf]
    for place, source in enumerate(point.sources):
        rest = np.arange(point.sources.size) != place
        without = scale.surface.at(point.sources[rest], point.rate[rest], point.noise)
        if scale.surface.additions(without, np.array([source]))[0][0] > CLEAR:
            continue
        other = SourceSearch(judged, Start(without.sources, without.rate, np.ones(rest.sum(), bool), point.noise)).best
        gains.append(point.log_likelihood - other.fit.point.log_likelihood)
        excess.append(gains[-1] - scale.cost[int(source).bit_count()])
        leads.append(scale.advantage(best, other))
        odds.append(oracle_odds(gains[-1], -math.expm1(-point.rate[place]), int(source), point.sources, n_sensors))
    candidates = np.setdiff1d(candidates_of(table, point.sources), np.append(point.sources, 0))
    false_gain = scale.surface.additions(point, candidates)[0]
    false_excess = float((false_gain - scale.cost[np.bitwise_count(candidates)]).max())
    return Reach(name, n_sensors, min(gains), float(false_gain.max()), min(excess), false_excess, min(leads), min(odds))


def scale_of(table: Varying) -> Scale:
    """The score, on the lattice where that is exact."""
    shape, n_sensors = first_shape(table, Settings()), table.data.n_sensors
    surface = RowSurface(StateCells.of(table.data), shape, LONG_LISTS) if n_sensors > EXACT else None
    surface = surface or Surface(Cells.of(table.data), shape)
    return Scale(surface, table.data.n_samples)


def start_of(truth: OrMixture, flip_rate: float) -> Start:
    sources = as_sets([tuple(np.flatnonzero(column).tolist()) for column in truth.mixing.T])
    order = np.argsort(sources)
    return Start(sources[order], truth.rate[order], np.ones(sources.size, bool), np.array([max(flip_rate, 1e-4)]))


def oracle_odds(gain: float, probability: float, source: int, sources: np.ndarray, n_sensors: int) -> float:
    """The log odds that a source is there: its probability is uniform, and the number of each size is known.

    The likelihood is a normal hill of this height over its probability, cut at the ends of the uniform distribution.
    """
    width = probability / math.sqrt(2.0 * max(gain, 1e-9))
    low, high = (norm.cdf((end - probability) / width) for end in PROBABILITY)
    evidence = gain + math.log(max(width * math.sqrt(2 * math.pi) * (high - low), 1e-300) / np.ptp(PROBABILITY))
    size = source.bit_count()
    alike = np.count_nonzero(np.bitwise_count(sources) == size)
    return evidence + math.log(alike / math.comb(n_sensors, size))


def candidates_of(table: Varying, sources: np.ndarray) -> np.ndarray:
    """All sets of sensors, or relatives of the sources and what frequent rows have in common."""
    if table.data.n_sensors <= EXACT - 4:
        return np.arange(1, 2**table.data.n_sensors)
    data = table.data.counts()
    frequent = np.argsort(-data.weights, kind="stable")[:MOST_ROWS]
    rows = data.patterns[frequent, 0].view(np.int64)
    return np.union1d(from_rows(rows, data.weights[frequent], data.n_sensors), relatives(sources, data.n_sensors))


def print_table(runs: list[Reach], flip_rate: float) -> None:
    names = ("gain", "false_gain", "excess", "false_excess")
    gain, false_gain, excess, false_excess = (np.array([getattr(run, name) for run in runs]) for name in names)
    bounds = np.arange(-12.0, 40.0, 0.25)
    common = np.array([np.mean((gain > bound) & (false_gain <= bound)) for bound in bounds])
    by_size = np.array([np.mean((excess > bound) & (false_excess <= bound)) for bound in bounds])
    print(f"\n## {flip_rate:.0%} flips, {len(runs)} networks\n\n| rule | networks right at most |\n| --- | ---: |")
    rules = {
        "today's score keeps every true source": np.mean([run.lead > 0 for run in runs]),
        "an oracle that knows how sizes and probabilities are drawn keeps them": np.mean([r.oracle > 0 for r in runs]),
        f"every true source gains {LEAST:g} nats, with sets for free": np.mean(gain > LEAST),
        "the same, and no false source gains as much": np.mean((gain > LEAST) & (false_gain <= LEAST)),
        "every true source gains more than every false one": np.mean(gain > false_gain),
        f"one threshold for all networks, the best in hindsight ({bounds[common.argmax()]:g} nats)": common.max(),
        f"the cost by size plus the best constant in hindsight ({bounds[by_size.argmax()]:g} nats)": by_size.max(),
    }
    for rule, share in rules.items():
        print(f"| {rule} | {share:.1%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flips", type=float, default=0.05)
    parser.add_argument("--leave-out", nargs="*", default=[], help="networks whose rows have too many hidden states")
    parser.add_argument("--records", type=Path, required=True, help="finished networks; a second call does the others")
    given = parser.parse_args()
    given.records.touch()
    runs = {one["name"]: Reach(**one) for one in map(json.loads, given.records.read_text().splitlines())}
    names = [name for name in sorted(networks())[given.first :: given.every] if name not in given.leave_out]
    for name in names:
        if name not in runs:
            runs[name] = reach(name, given.flips, given.seed)
            print(runs[name], file=sys.stderr, flush=True)
            with given.records.open("a") as file:
                file.write(json.dumps(asdict(runs[name])) + "\n")
    print("# What any rule of cost could reach on real networks\n")
    print(f"    python benchmarks/bench_zoo_reach.py --every {given.every} --first {given.first} --seed {given.seed}")
    print_table([runs[name] for name in names], given.flips)


if __name__ == "__main__":
    main()
