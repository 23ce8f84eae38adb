"""Lossy edges behind up to 16 sensors: sources, numbers, intervals, and the choice between sure and lossy edges.

python benchmarks/bench_lossy.py > benchmarks/results/lossy.md
"""

import statistics
import sys
import time
from dataclasses import dataclass, replace

import numpy as np

from bica import Likelihood, Noise, OrMixture, PatternCounts
from bica.estimate.lossy.learn import lossy_task
from bica.estimate.lossy.surface import LAST_PACE, LossyPoint
from bica.estimate.settings import Varying
from bica.metrics import column_score, edge_score
from bica.model.files import rate_interval
from bica.model.identified import identified
from bica.simulate import random_network, with_lossy_edges

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
FIRST_SEED = 7000  # constants were chosen on seeds 0 to 159 and 1000 to 1007
LEAK = 0.005
LEVEL = 0.95
N_NETWORKS = 1000  # whose sources are counted that no rows can tell
SAME = 0.05  # nats: a score this much below that of the truth is a failure of the search


@dataclass(frozen=True)
class Problem:
    """One row of a table."""

    title: str
    wanted: str
    n_sensors: int
    n_sources: int
    n_samples: int
    sizes: tuple[int, int] = (3, 5)
    reach: tuple[float, float] = (0.5, 1.0)  # (1, 1): sure edges
    flip_rate: float = 0.0

    def draw(self, seed: int) -> tuple[OrMixture, PatternCounts]:
        """The network, and rows of it."""
        rng = np.random.default_rng(seed)
        truth = random_network(self.n_sensors, self.n_sources, column_weight=self.sizes, rng=rng)
        if self.reach == (1.0, 1.0):
            truth = truth.with_noise(Noise.flips(self.flip_rate))
        else:
            truth = with_lossy_edges(truth, self.reach, rng=rng).with_noise(Noise(LEAK, 0.0))
        return truth, PatternCounts.of(truth.sample(self.n_samples, rng), sensors=truth.sensors)


LEARNED = [
    Problem("m = 10, n = 6, T = 10 000, 3–5 sensors", "≥ .97, ≥ 95 %, ≤ .3 s", 10, 6, 10_000),
    Problem("same, 2–4 sensors", "≥ .95, ≥ 90 %", 10, 6, 10_000, (2, 4)),
    Problem("same as the first, T = 1000", "≥ .88, ≥ 70 %, ≤ .5 s", 10, 6, 1000),
    Problem("2–4 sensors, T = 1000", "", 10, 6, 1000, (2, 4)),
    Problem("m = 14, n = 10, T = 10 000, 3–5 sensors", "≥ .98, ≤ 2 s", 14, 10, 10_000),
]
CHOSEN = [
    Problem("sure, no flips, T = 1000", "sure", 10, 10, 1000, (2, 4), (1.0, 1.0)),
    Problem("sure, flips 2 %, T = 1000", "sure", 10, 10, 1000, (2, 4), (1.0, 1.0), 0.02),
    Problem("sure, flips 10 %, T = 1000", "sure", 10, 10, 1000, (2, 4), (1.0, 1.0), 0.1),
    Problem("sure, flips 10 %, T = 10 000", "sure", 10, 10, 10_000, (2, 4), (1.0, 1.0), 0.1),
    Problem("sure, m = 8, n = 12, flips 5 %, T = 5000", "sure", 8, 12, 5000, (2, 4), (1.0, 1.0), 0.05),
    Problem("reach ~ U(.5, 1), T = 1000", "lossy", 10, 6, 1000),
    Problem("reach ~ U(.8, 1), T = 1000", "lossy", 10, 6, 1000, (3, 5), (0.8, 1.0)),
    Problem("reach ~ U(.8, 1), T = 10 000", "lossy", 10, 6, 10_000, (3, 5), (0.8, 1.0)),
    Problem("reach ~ U(.9, 1), T = 1000", "lossy in ≥ 2 of 8", 10, 6, 1000, (3, 5), (0.9, 1.0)),
    Problem("reach ~ U(.9, 1), T = 10 000", "lossy", 10, 6, 10_000, (3, 5), (0.9, 1.0)),
]


@dataclass(frozen=True)
class Run:
    """What one seed gave with lossy edges."""

    exact: float  # share of the true sources
    n_sources: int
    edge_f1: float
    probability_off: list[float]
    reach_off: list[float]
    below_truth: bool
    as_likely: bool  # as likely as the truth with fewer sources: then no rows can tell
    covered: dict[str, list[bool]]
    seconds: float


def run(problem: Problem, seed: int) -> Run:
    truth, data = problem.draw(seed)
    started = time.process_time()
    fit = Likelihood(edges="lossy").fit(data, np.random.default_rng(0))
    seconds = time.process_time() - started
    score, height = truth_score(truth, data)
    pairs = matched(fit.model, truth)
    return Run(
        column_score(fit.model, truth).recall,
        fit.model.n_sources,
        edge_score(fit.model, truth).f1,
        [abs(fit.model.probability[j] - truth.probability[k]) for j, k in pairs],
        [float(off) for j, k in pairs for off in np.abs(fit.model.reach[:, j] - truth.reach[:, k])[truth.mixing[:, k]]],
        fit.diagnostics["score"] < score - SAME,
        fit.model.n_sources < truth.n_sources and fit.diagnostics["log_likelihood_of_pieces"] > height - 0.5,
        coverage(fit, truth, pairs) if len(pairs) == truth.n_sources else {},
        seconds,
    )


def truth_score(truth: OrMixture, data: PatternCounts) -> tuple[float, float]:
    """The score and the log-likelihood of the true sources, refitted."""
    task = lossy_task(Varying.of(data, (), ()), Likelihood())
    reach = truth.reach.T.copy()
    none = np.zeros(len(reach), bool), np.zeros(reach.shape, bool)
    top = task.surface.refit(LossyPoint(truth.probability, reach, np.full(truth.n_sensors, LEAK), *none), LAST_PACE)
    return task.score(top), top.log_likelihood


def share_untold(problem: Problem, n_networks: int) -> float:
    """In which share of the networks a source adds no number to what rows determine, so that none can tell it is there.

    Values may still lie beyond what the other sources can take over, as a reach above 1.
    """

    def n_told(sources: list[list[int]]) -> int:
        return sum(1 + len(sensors) for sensors in sources) - identified(sources).n_free

    n_untold = 0
    for seed in range(n_networks):
        truth, _ = replace(problem, n_samples=2).draw(FIRST_SEED + seed)
        sources = [np.flatnonzero(column).tolist() for column in truth.mixing.T]
        n_untold += any(n_told(sources[:j] + sources[j + 1 :]) == n_told(sources) for j in range(len(sources)))
    return n_untold / n_networks


def matched(found: OrMixture, truth: OrMixture) -> list[tuple[int, int]]:
    """Sources of three sensors or more that were found exactly, with those of the truth."""
    places = {tuple(column): k for k, column in enumerate(truth.mixing.T.tolist()) if sum(column) > 2}
    return [(j, places[key]) for j, column in enumerate(found.mixing.T.tolist()) if (key := tuple(column)) in places]


def coverage(fit, truth: OrMixture, pairs: list[tuple[int, int]]) -> dict[str, list[bool]]:
    """Whether each interval holds the true value; only numbers that have one."""
    covered: dict[str, list[bool]] = {"p": [], "reach": [], "leak": []}
    reach = fit.reach_interval(LEVEL)
    for j, k in pairs:
        covered["p"] += holds(fit.interval(LEVEL)[j], truth.probability[k])
        for i in np.flatnonzero(truth.mixing[:, k]):
            covered["reach"] += holds(reach[i, j], truth.reach[i, k])
    for rate, error in zip(fit.model.noise.false_alarm, fit.leak_error, strict=True):
        covered["leak"] += holds(np.array(rate_interval(rate, error, LEVEL)), LEAK)
    return covered


def holds(ends: np.ndarray, value: float) -> list[bool]:
    """Nothing where there is no interval, or one of no width because the value lies on its bound."""
    return [] if np.isnan(ends).any() or ends[0] == ends[1] else [bool(ends[0] <= value <= ends[1])]


def learned_line(problem: Problem, runs: list[Run]) -> str:
    right = np.mean([one.n_sources == problem.n_sources for one in runs])
    offs = [off for one in runs for off in one.probability_off], [off for one in runs for off in one.reach_off]
    seconds = [one.seconds for one in runs]
    return (
        f"| {problem.title} | {problem.wanted} | {np.mean([one.exact for one in runs]):.3f} | {right:.0%} "
        f"| {np.mean([one.n_sources for one in runs]):.2f} | {sum(one.as_likely for one in runs)} "
        f"| {np.mean([one.edge_f1 for one in runs]):.3f} | {np.mean(offs[0]):.3f}, {np.mean(offs[1]):.3f} "
        f"| {sum(one.below_truth for one in runs)} | {statistics.median(seconds):.2f} ({max(seconds):.2f}) |"
    )


def covered_line(problem: Problem, runs: list[Run]) -> str:
    cells = []
    for number in ("p", "reach", "leak"):
        held = [one for each in runs for one in each.covered.get(number, [])]
        cells.append(f"{np.mean(held):.1%} of {len(held)}" if held else "")
    return f"| {problem.title} | {' | '.join(cells)} |"


def choose(problem: Problem, seed: int) -> tuple[bool, bool, float, float, float, float]:
    """Lossy chosen, the same as sure, F1 of both answers, and their times."""
    truth, data = problem.draw(seed)
    times, fits = [time.process_time()], []
    for edges in ("sure", "auto"):
        fits.append(Likelihood(edges=edges).fit(data, np.random.default_rng(0)))
        times.append(time.process_time())
    sure, auto = fits
    scores = [column_score(fit.model, truth).f1 for fit in fits]
    same = auto.model == sure.model and auto.log_likelihood == sure.log_likelihood
    return (auto.model.has_lossy_edges, same, *scores, *np.diff(times))


def chosen_line(problem: Problem, n_seeds: int) -> str:
    runs = np.array([choose(problem, FIRST_SEED + seed) for seed in range(n_seeds)], dtype=float)
    seconds = np.median(runs[:, 4:], axis=0)
    return (
        f"| {problem.title} | {problem.wanted} | {runs[:, 0].sum():.0f} of {n_seeds} | {runs[:, 1].sum():.0f} "
        f"| {runs[:, 2].mean():.3f} | {runs[:, 3].mean():.3f} | {seconds[0]:.2f} | {seconds[1]:.2f} |"
    )


def main() -> None:
    Likelihood(edges="lossy").fit(LEARNED[0].draw(0)[1], np.random.default_rng(0))  # compiles
    Likelihood().fit(CHOSEN[2].draw(0)[1], np.random.default_rng(0))
    print("# Lossy edges behind up to 16 sensors\n\n    python benchmarks/bench_lossy.py\n")
    print(
        f"p ~ U(.05, .3), reach ~ U(.5, 1) and leaks {LEAK} unless said; {N_SEEDS} seeds from {FIRST_SEED} on, half as"
    )
    print("many for m = 14. All constants were chosen on seeds 0–159 and 1000–1007. CPU seconds, warm.\n")
    print('## Sources and numbers, edges="lossy"\n')
    print("“As likely”: tables where fewer sources are as likely as the true ones (such as a pair inside a triple), so")
    print("that no method can tell. “Below”: score lower than that of the true sources, refitted.\n")
    print(
        "| problem | wanted | exact | n right | n | as likely | edge F1 | p, reach off | below | s, median (longest) |"
    )
    print("| --- " * 10 + "|", flush=True)
    runs = {}
    for problem in LEARNED:
        n_seeds = N_SEEDS if problem.n_sensors < 14 else (N_SEEDS + 1) // 2
        runs[problem] = [run(problem, FIRST_SEED + seed) for seed in range(n_seeds)]
        print(learned_line(problem, runs[problem]), flush=True)
    untold = [f"{share_untold(problem, N_NETWORKS):.1%} ({problem.title})" for problem in LEARNED[:2]]
    print(f"\nIn {' and '.join(untold)} of {N_NETWORKS} such networks, a source adds no")
    print("number to what rows determine (`model/identified.py`): no method that prefers fewer sources can find it.")
    print("\n## Coverage of 95 % intervals\n\nTables with all sources found exactly; sources of 3 sensors or more.\n")
    print("| problem | p | reach | leak |\n| --- | --- | --- | --- |")
    for problem, found in runs.items():
        print(covered_line(problem, found), flush=True)
    print('\n## Sure or lossy, edges="auto"\n\n“Same”: model and likelihood are those of edges="sure".\n')
    print("| problem | wanted | lossy chosen | same | F1 sure | F1 auto | s sure | s auto |")
    print("| --- " * 8 + "|", flush=True)
    for problem in CHOSEN:
        print(chosen_line(problem, (N_SEEDS + 1) // 2), flush=True)


if __name__ == "__main__":
    main()
