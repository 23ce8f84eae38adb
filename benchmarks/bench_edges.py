"""Whether the rows choose the right edges, on tables that no limit of the choice was set on.

python benchmarks/bench_edges.py plain > /tmp/plain.md     # one part; together they are benchmarks/results/edges.md
python benchmarks/bench_edges.py many
python benchmarks/bench_edges.py limits
"""

import sys
import time
import warnings
from dataclasses import dataclass
from unittest import mock

import numpy as np

from bica import Likelihood, Noise, OrMixture, PatternCounts
from bica.estimate import edges as rules
from bica.metrics import column_score
from bica.model.fit import Fit
from bica.simulate import random_network, with_lossy_edges

PART, sys.argv = sys.argv[1], sys.argv[:1]  # the benchmarks below read their number of seeds from the command line
import bench_likelihood  # noqa: E402
import bench_many_sensors  # noqa: E402

FIRST_SEED = 11_000
N_PLAIN, N_MANY, N_LIMITS = 5, 1, 6
MOST_SENSORS = 1000  # of plain tables that are tried
LEAK = 0.005


def fitted(data: PatternCounts, edges: str) -> tuple[Fit, float]:
    """The fit, and its CPU seconds."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = Likelihood(edges=edges).fit(data, np.random.default_rng(0))
    return fit, time.process_time() - begun


def rows_of(truth: OrMixture, n_samples: int, rng: np.random.Generator) -> PatternCounts:
    return PatternCounts.of(truth.sample(n_samples, rng), sensors=truth.sensors)


def plain_line(title: str, tables: list[PatternCounts]) -> str:
    """How often "auto" gives the model of "sure", and what it costs."""
    pairs = [[fitted(data, edges) for edges in ("sure", "auto")] for data in tables]
    same = sum(sure[0].model == auto[0].model for sure, auto in pairs)
    lossy = sum(auto[0].model.has_lossy_edges for _, auto in pairs)
    seconds = [np.median([pair[k][1] for pair in pairs]) for k in (0, 1)]
    return f"| {title} | {same} of {len(pairs)} | {lossy} | {seconds[0]:.2f} | {seconds[1]:.2f} |"


def plain_tables(problem: bench_likelihood.Problem) -> list[PatternCounts]:
    tables = []
    for seed in range(FIRST_SEED, FIRST_SEED + N_PLAIN):
        rng = np.random.default_rng([seed, problem.n_samples])
        noise, shape = Noise.flips(rng.uniform(*problem.flip_rates)), (problem.n_sensors, problem.n_sources)
        truth = random_network(*shape, probability=problem.probability, noise=noise, rng=rng)
        tables.append(rows_of(truth, problem.n_samples, rng))
    return tables


def wide_tables(problem: bench_many_sensors.Problem) -> list[PatternCounts]:
    tables = []
    for seed in range(FIRST_SEED, FIRST_SEED + N_MANY):
        rng = np.random.default_rng(seed)
        noise, shape = Noise.flips(problem.flip_rate), (problem.n_sensors, problem.n_sources)
        truth = random_network(*shape, probability=problem.probability, noise=noise, rng=rng)
        tables.append(rows_of(truth, problem.n_samples, rng))
    return tables


@dataclass(frozen=True)
class Lossy:
    """Tables with lossy edges, of other shapes than those on which the limits were set."""

    title: str
    n_sensors: int
    n_sources: int
    n_samples: int
    reach: tuple[float, float]
    sizes: tuple[int, int] = (3, 5)

    def draw(self, seed: int) -> tuple[OrMixture, PatternCounts]:
        """The network, and rows of it."""
        rng = np.random.default_rng(seed)
        truth = random_network(self.n_sensors, self.n_sources, column_weight=self.sizes, rng=rng)
        if self.reach == (1.0, 1.0):
            truth = truth.with_noise(Noise.flips(0.05))
        else:
            truth = with_lossy_edges(truth, self.reach, rng=rng).with_noise(Noise(LEAK, 0.0))
        return truth, rows_of(truth, self.n_samples, rng)


LIMITS = [
    Lossy("reach ~ U(.5, 1), T = 1000", 10, 6, 1000, (0.5, 1.0)),
    Lossy("reach ~ U(.8, 1), T = 1000", 10, 6, 1000, (0.8, 1.0)),
    Lossy("reach ~ U(.8, 1), T = 10 000", 10, 6, 10_000, (0.8, 1.0)),
    Lossy("reach ~ U(.9, 1), T = 1000", 10, 6, 1000, (0.9, 1.0)),
    Lossy("reach ~ U(.9, 1), T = 10 000", 10, 6, 10_000, (0.9, 1.0)),
    Lossy("m = 8, n = 8, 2–4 sensors, U(.6, .9), T = 3000", 8, 8, 3000, (0.6, 0.9), (2, 4)),
    Lossy("m = 12, n = 6, 4–8 sensors, U(.3, .9), T = 2000", 12, 6, 2000, (0.3, 0.9), (4, 8)),
    Lossy("sure, m = 12, n = 9, 3–6 sensors, 5 % flips, T = 2000", 12, 9, 2000, (1.0, 1.0), (3, 6)),
    Lossy("sure, m = 9, n = 14, 2–5 sensors, 5 % flips, T = 3000", 9, 14, 3000, (1.0, 1.0), (2, 5)),
]


def limits_line(problem: Lossy) -> str:
    """The choice as it is, without each limit, and how far lossy edges lead over sure ones that were asked for."""
    chosen, n_far, n_error, leads, f1 = [], 0, 0, [], []
    for seed in range(FIRST_SEED, FIRST_SEED + N_LIMITS):
        truth, data = problem.draw(seed)
        auto, _ = fitted(data, "auto")
        with mock.patch.object(rules, "FAR_AHEAD", np.inf):
            n_far += fitted(data, "auto")[0].model != auto.model
        with mock.patch.object(rules, "MOST_ERROR", np.inf):
            n_error += fitted(data, "auto")[0].model != auto.model
        sure, _ = fitted(data, "sure")
        other = sure.diagnostics.get("other_edges")
        leads.append(-np.inf if other is None else -float(other["score_behind"]))
        chosen.append(auto.model.has_lossy_edges)
        f1.append([column_score(fit.model, truth).f1 for fit in (sure, auto)])
    means = np.mean(f1, axis=0)
    asked = [lead for lead in leads if np.isfinite(lead)]
    spread = f"{min(asked):.0f} to {max(asked):.0f} ({len(asked)})" if asked else "–"
    return (
        f"| {problem.title} | {sum(chosen)} of {len(chosen)} | {means[0]:.3f} | {means[1]:.3f} | {n_far} | {n_error} "
        f"| {spread} | {sum(lead > 10.0 for lead in leads)} |"
    )


def main() -> None:
    for edges in ("auto", "lossy"):
        fitted(LIMITS[0].draw(0)[1], edges)  # compiles
    if PART == "plain":
        print(f"## Plain OR, cells of `bench_likelihood.py`: {N_PLAIN} tables each, seeds from {FIRST_SEED} on\n")
        print("| cell | model of “sure” under “auto” | lossy | s sure | s auto |\n| --- | --- | --- | --- | --- |")
        for problem in bench_likelihood.PROBLEMS:
            print(plain_line(problem.title, plain_tables(problem)), flush=True)
    elif PART == "many":
        print(f"## Plain OR, cells of `bench_many_sensors.py`: {N_MANY} table each, seed {FIRST_SEED}\n")
        print("| cell | model of “sure” under “auto” | lossy | s sure | s auto |\n| --- | --- | --- | --- | --- |")
        for wide in sorted(bench_many_sensors.PROBLEMS, key=lambda one: one.n_sensors * one.n_samples):
            if wide.n_sensors <= MOST_SENSORS:
                print(plain_line(wide.title, wide_tables(wide)), flush=True)
    else:
        print(f"## The limits of the choice: {N_LIMITS} tables each, seeds from {FIRST_SEED} on\n")
        print("`FAR_AHEAD`, `MOST_ERROR`: tables whose model is another one without this limit. Lead: of lossy edges")
        print("over sure ones that were asked for, in nats (tables where both were learned). Beyond 10, sure edges")
        print("are in doubt.\n")
        print("| tables | lossy chosen | F1 sure | F1 auto | FAR_AHEAD | MOST_ERROR | lead | in doubt |")
        print("| --- " * 8 + "|", flush=True)
        for problem in LIMITS:
            print(limits_line(problem), flush=True)


if __name__ == "__main__":
    main()
