"""How often a verdict is wrong: "misfit" for models of true OR mixtures, "fits" for what is none.

    python benchmarks/bench_verdicts.py > benchmarks/results/verdicts.md

Every table is learned from scratch with the default settings, or with those that a line names. Choose thresholds with
``--seed 0``, and report other seeds; the committed page says which. One process, one thread.
"""

import argparse
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bica import Likelihood, Noise, OrMixture, PatternCounts
from bica.diagnose.hints import hints
from bica.diagnose.verdicts import Diagnosis
from bica.errors import BicaWarning
from bica.estimate.settings import KnownSource
from bica.model.fit import Fit
from bica.simulate import random_network

TRUE_MODELS = {5: 100, 8: 100, 12: 100, 16: 12, 20: 40, 30: 50, 50: 40, 100: 40, 200: 30}  # sensors: tables
SEARCHED = 20  # sensors up to which true models are searched for; beyond, the learner rarely finds all sources
FLIP_RATES = (0.0, 0.01, 0.02, 0.05)
MANY = 64  # sensors, beyond which sources are rarer and rows more, so that the learner mostly finds them all
WORDS = ("fits", "too few rows", "doubtful", "misfit")
EXPLANATION = f"""Likelihood with its defaults: the rows choose the kind of noise and of edges. Random networks of 2 to
4 sensors per source; true ones have 300 to 10 000 rows (5000 or 20 000 beyond {MANY} sensors) and 0, 1, 2 or 5 % flips.
A misfit is false if the sources are exact. Where they are not, the learned model is wrong and its refusal right; such a
table is learned once more with the true sources known, which leaves probabilities, noise and further sources to the
rows ("fitted": exact sources by either way). Beyond {SEARCHED} sensors they are known from the start. The true model,
numbers and all, is judged by the same rows, too. Caught: doubtful or misfit. Seconds of one thread: medians of fit and
verdict, and the slowest verdict.
"""
Rows = np.ndarray  # bool (n_samples, n_sensors)


@dataclass(frozen=True)
class Run:
    """One table, learned and judged."""

    exact: bool  # the sources found are the true ones
    verdict: str
    of_known: str | None  # the verdict on a model with the true sources, numbers fitted; None where there is none
    of_truth: str  # the verdict on the true model, numbers and all
    fit_seconds: float
    seconds: float  # of the verdict


def judged(truth: OrMixture, rows: Rows, settings: dict[str, Any], refit: bool) -> Run:
    if refit and truth.n_sensors > SEARCHED:
        settings, refit = settings | known_sources(truth), False
    data, begun = PatternCounts.of(rows), time.process_time()
    fit = Likelihood(n_jobs=1, **settings).fit(data, np.random.default_rng(0))
    fitted = time.process_time()
    verdict, seconds = Diagnosis.of(data, fit).verdict, time.process_time() - fitted
    of_truth = Diagnosis.of(data, Fit(truth)).verdict
    exact = columns(truth) == columns(fit.model) and not fit.model.has_lossy_edges
    of_known = verdict if exact else with_known_sources(truth, data, settings) if refit else None
    return Run(exact, verdict, of_known, of_truth, fitted - begun, seconds)


def with_known_sources(truth: OrMixture, data: PatternCounts, settings: dict[str, Any]) -> str | None:
    """The verdict on a model learned with the true sources known; None if that has further sources, too."""
    fit = Likelihood(n_jobs=1, **settings, **known_sources(truth)).fit(data, np.random.default_rng(0))
    if columns(truth) != columns(fit.model) or fit.model.has_lossy_edges:
        return None
    return Diagnosis.of(data, fit).verdict


def known_sources(truth: OrMixture) -> dict[str, Any]:
    return {"known": [KnownSource(np.array(truth.sensors)[column].tolist()) for column in truth.mixing.T]}


def columns(model: OrMixture) -> set[bytes]:
    return {column.tobytes() for column in np.ascontiguousarray(model.mixing.T)}


def network(n_sensors: int, rng: np.random.Generator, flip_rate: float) -> OrMixture:
    n_sources, often = (
        max(2, round(n_sensors * rng.uniform(0.6, 1.2))),
        (0.01, 0.1) if n_sensors > MANY else (0.03, 0.25),
    )
    return random_network(n_sensors, n_sources, probability=often, noise=Noise.flips(flip_rate), rng=rng)


def true_rows(n_sensors: int, rng: np.random.Generator) -> tuple[OrMixture, Rows]:
    n_samples = int(rng.choice([5000, 20_000] if n_sensors > MANY else [300, 1000, 3000, 10_000]))
    truth = network(n_sensors, rng, float(rng.choice(FLIP_RATES)))
    return truth, truth.sample(n_samples, rng)


def lossy(truth: OrMixture, reach: np.ndarray, n_samples: int, rng: np.random.Generator) -> Rows:
    """Each edge fails on its own."""
    activity, rows = truth.draw_activity(n_samples, rng), np.zeros((n_samples, truth.n_sensors), dtype=bool)
    for on, column, arrives in zip(activity.T, truth.mixing.T, reach.T, strict=True):
        rows |= on[:, None] & column & (rng.random(rows.shape) < arrives)
    return rows


def lossy_rows(n_sensors: int, rng: np.random.Generator) -> tuple[OrMixture, Rows]:
    truth = network(n_sensors, rng, 0.0)
    return truth, lossy(truth, rng.uniform(0.5, 0.95, truth.mixing.shape), 5000, rng)


def splinter_rows(n_sensors: int, rng: np.random.Generator) -> tuple[OrMixture, Rows]:
    truth = random_network(n_sensors, 11, rng=rng)
    return truth, lossy(truth, rng.uniform(0.9, 1.0, truth.mixing.shape), 8000, rng)


def exclusive_rows(n_sensors: int, rng: np.random.Generator) -> tuple[OrMixture, Rows]:
    truth = network(n_sensors, rng, float(rng.choice([0.0, 0.02])))
    activity, n_pairs = truth.draw_activity(5000, rng), truth.n_sources // 2
    activity[:, 1 : 2 * n_pairs : 2] &= ~activity[:, 0 : 2 * n_pairs : 2]
    return truth, truth.noise.apply(truth.observe(activity), rng)


def busy_rows(n_sensors: int, rng: np.random.Generator) -> tuple[OrMixture, Rows]:
    truth = network(n_sensors, rng, float(rng.choice([0.0, 0.02])))
    often = np.where(rng.random((5000, 1)) < 1 / 3, 2.2, 0.4)
    return truth, truth.noise.apply(truth.observe(rng.random((5000, truth.n_sources)) < often * truth.probability), rng)


def loud_rows(n_sensors: int, rng: np.random.Generator) -> tuple[OrMixture, Rows]:
    noise = Noise.flips(float(rng.choice([0.0, 0.02])))
    n_sources = max(2, int(0.6 * n_sensors))
    truth = random_network(n_sensors, n_sources, probability=(0.02, 0.12), noise=noise, rng=rng)
    rows = truth.sample(8000, rng)
    return truth, rows[rows.any(axis=1)]


Drawn = Callable[[int, np.random.Generator], tuple[OrMixture, Rows]]
SURE: dict[str, Any] = {"edges": "sure"}
ONE_RATE: dict[str, Any] = {"edges": "sure", "noise": "estimate"}
ALTERNATIVES: list[tuple[str, Drawn, tuple[int, ...], int, dict[str, Any]]] = [  # rows, sensors, tables of each size
    ("edges fail: reach ~ U(.5, .95), 5000 rows; sure edges", lossy_rows, (8, 12, 30), 20, SURE),
    ("the same, one flip rate", lossy_rows, (8, 12, 30), 20, ONE_RATE),
    ("splinters: m = 20, n = 11, reach ~ U(.9, 1), 8000 rows; sure edges", splinter_rows, (20,), 20, SURE),
    ("every second source is off when its neighbour is on, 5000 rows", exclusive_rows, (8, 24, 40), 20, {}),
    ("all sources 5.5 times as often in a third of 5000 rows", busy_rows, (8, 24, 40), 20, {}),
    ("all-quiet rows left out of 8000", loud_rows, (8, 24, 40), 20, {}),
]


def runs_of(
    drawn: Drawn, n_sensors: int, seeds: Iterable[int], title: str, settings: dict[str, Any], refit: bool = False
) -> list[Run]:
    runs = []
    for seed in seeds:
        rng = np.random.default_rng([seed, n_sensors, *title.encode()])
        runs.append(judged(*drawn(n_sensors, rng), settings, refit))
        print(title, n_sensors, seed, runs[-1], file=sys.stderr, flush=True)
    return runs


def counts(runs: list[Run]) -> str:
    told = Counter(run.verdict for run in runs)
    return " | ".join(str(told[word]) for word in WORDS)


def of_true_models(first: int, share: float, sizes: Iterable[int]) -> None:
    print("## Size: true OR mixtures\n")
    words = f"{' | '.join(WORDS)} | exact | of these: misfit | doubtful | fitted | of these: misfit | truth: misfit"
    print(f"| sensors | tables | {words} | seconds |")
    print("|" + " ---: |" * (len(WORDS) + 9))
    every = []
    for n_sensors in sizes:
        n_tables = TRUE_MODELS[n_sensors]
        runs = runs_of(true_rows, n_sensors, range(first, first + max(1, round(share * n_tables))), "true", {}, True)
        every += runs
        print(true_line(str(n_sensors), runs), flush=True)
    print(true_line("all", every) + "\n", flush=True)


def true_line(title: str, runs: list[Run]) -> str:
    exact = Counter(run.verdict for run in runs if run.exact)
    known = Counter(run.of_known for run in runs if run.of_known is not None)
    medians = (
        statistics.median(values) for values in zip(*((run.fit_seconds, run.seconds) for run in runs), strict=True)
    )
    slowest = max(run.seconds for run in runs)
    return (
        f"| {title} | {len(runs)} | {counts(runs)} | {exact.total()} | {exact['misfit']} | {exact['doubtful']} | "
        f"{known.total()} | {known['misfit']} | "
        f"{sum(run.of_truth == 'misfit' for run in runs)} | "
        f"{', '.join(f'{value:.2f}' for value in medians)} (at most {slowest:.2f}) |"
    )


def of_alternatives(first: int, share: float) -> None:
    print("## Power: what is no OR mixture of sure edges and independent sources\n")
    print(f"| rows | sensors | tables | {' | '.join(WORDS)} | caught |")
    print("| --- |" + " ---: |" * (len(WORDS) + 3))
    for title, drawn, sizes, n_tables, settings in ALTERNATIVES:
        for n_sensors in sizes:
            seeds = range(first, first + max(1, round(share * n_tables)))
            runs = runs_of(drawn, n_sensors, seeds, drawn.__name__, settings)
            caught = statistics.mean(run.verdict in ("doubtful", "misfit") for run in runs)
            print(f"| {title} | {n_sensors} | {len(runs)} | {counts(runs)} | {caught:.0%} |", flush=True)


def role_rows(n_sensors: int, rng: np.random.Generator) -> Rows:
    """Each row is a user with one of eight jobs, each job one to three roles, each role three to eight columns."""
    roles = random_network(n_sensors, 12, column_weight=(3, 8), rng=rng)
    jobs = np.array([np.isin(np.arange(12), rng.choice(12, rng.integers(1, 4), replace=False)) for _ in range(8)])
    return roles.observe(jobs[rng.choice(8, 300, p=rng.dirichlet(np.full(8, 3.0)))])


def graded_rows(n_sensors: int, rng: np.random.Generator) -> Rows:
    """One ability and as many questions of rising difficulty as there are columns."""
    beyond = rng.normal(size=(1000, 1)) - np.linspace(-1.5, 1.5, n_sensors)
    return rng.random(beyond.shape) < 1 / (1 + np.exp(-rng.uniform(1.2, 2.5) * beyond))


def xor_rows(n_sensors: int, rng: np.random.Generator) -> Rows:
    mixing = random_network(n_sensors, round(0.6 * n_sensors), rng=rng).mixing
    return (rng.random((2000, mixing.shape[1])) < rng.choice([0.2, 0.5])) @ mixing.T.astype(int) % 2 == 1


def exclusive_columns(n_sensors: int, rng: np.random.Generator) -> Rows:
    others = network(n_sensors - 4, rng, 0.0).sample(500, rng)
    return np.column_stack([rng.integers(0, 5, (500, 1)) == np.arange(4), others])


def count_rows(n_sensors: int, rng: np.random.Generator) -> Rows:
    half = n_sensors // 2
    return np.column_stack([rng.poisson(half / 2, (500, 1)) >= np.arange(1, half + 1) for _ in range(2)])


OTHER_KINDS = {
    "roles": role_rows,
    "graded": graded_rows,
    "xor": xor_rows,
    "exclusive": exclusive_columns,
    "counts": count_rows,
}
N_HINTS = 50


def of_hints(first: int, share: float) -> None:
    print("\n## Hints of `bica check`: tables of another kind, and true OR mixtures\n")
    print(f"| rows | sensors | tables | {' | '.join(OTHER_KINDS)} | none |")
    print("| --- |" + " ---: |" * (len(OTHER_KINDS) + 3))
    n_tables = max(1, round(share * N_HINTS))
    for kind, drawn in OTHER_KINDS.items():
        for n_sensors in (10, 20):
            rngs = [np.random.default_rng([seed, n_sensors, *kind.encode()]) for seed in range(first, first + n_tables)]
            print(hint_line(kind, str(n_sensors), [drawn(n_sensors, rng) for rng in rngs]), flush=True)
    rows = []
    for seed in range(first, first + 20 * n_tables):
        rng = np.random.default_rng([seed, *b"hints"])
        n_sensors = int(rng.choice([5, 8, 12, 20, 30, 50]))
        truth = network(n_sensors, rng, float(rng.choice(FLIP_RATES)))
        rows.append(truth.sample(int(rng.choice([100, 1000, 5000])), rng))
    print(hint_line("true OR mixtures", "5–50", rows))


def hint_line(title: str, n_sensors: str, tables: list[Rows]) -> str:
    told = Counter(hint.kind for rows in tables for hint in hints(PatternCounts.of(rows)))
    counted = " | ".join(str(told[kind]) for kind in OTHER_KINDS)
    return f"| {title} | {n_sensors} | {len(tables)} | {counted} | {len(tables) - told.total()} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1000, help="the first of each size")
    parser.add_argument("--share", type=float, default=1.0, help="of the tables")
    parser.add_argument("--parts", nargs="+", default=["size", "power", "hints"], help="size, power, hints")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(TRUE_MODELS), help="sensors of true models")
    given = parser.parse_args()
    warnings.simplefilter("ignore", BicaWarning)
    print("# Verdicts on models of known tables\n")
    print(f"    python benchmarks/bench_verdicts.py --seed {given.seed} --share {given.share:g}\n")
    print(EXPLANATION)
    runs_of(true_rows, 12, [0], "compiling", {})
    if "size" in given.parts:
        of_true_models(given.seed, given.share, given.sizes)
    for part in set(given.parts) & {"power", "hints"}:
        {"power": of_alternatives, "hints": of_hints}[part](given.seed, given.share)


if __name__ == "__main__":
    main()
