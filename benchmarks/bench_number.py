"""How often the number of sources of network three can be right at all: what oracles reach that know more than anybody.

    python benchmarks/bench_number.py [first seed] [the one after the last] > benchmarks/results/number.md

10 % flips, 1000 rows, the tables of ``bench_few_rows.py``. The two weak sources, {2, 7} and {7} with probability .06,
decide whether the number is right. The oracles know the ten others with their probabilities, and the flip rate. What a
further source changes is then linear in the distribution of the patterns, so every choice of up to four is scored.
"""

import sys
from itertools import combinations

import numpy as np
from bench_few_rows import drawn
from numpy.typing import NDArray
from scipy.special import logsumexp

from bica import OrMixture

Vector = NDArray[np.float64]
N_SAMPLES = 1000
WEAK = 0.1  # probability below which a source of network three is one of the two weak ones
MOST_MORE = 4  # further sources
NARROW = 2  # sensors that an oracle knows the weak sources to have at most
TITLE = f"""# How often the number of sources of network three can be right at all

    python benchmarks/bench_number.py {{first}} {{last}}

{N_SAMPLES} rows, 10 % flips. The oracles know ten of the twelve sources, their probabilities and the flip rate.
Those of the first table also know that further sources have at most {NARROW} sensors and p = .06, and weigh all choices
of up to {MOST_MORE} of them.
"""
GRID = np.exp(np.linspace(np.log(0.005), np.log(0.4), 30))  # probabilities of a source whose own is unknown
AT_ONCE = 4000  # choices of sources
THRESHOLDS = np.arange(0.0, 12.0, 0.25)  # nats that a source must gain


def as_set(column: NDArray[np.bool_]) -> int:
    return int((1 << np.flatnonzero(column)).sum())


class StrongKnown:
    """The rows of one table, seen by somebody who knows the strong sources and the noise."""

    def __init__(self, truth: OrMixture, rows: NDArray[np.bool_]) -> None:
        n_sets, weak = 2**truth.n_sensors, truth.probability < WEAK
        sets = np.array([as_set(column) for column in truth.mixing.T])
        self.weights = np.bincount(rows @ (1 << np.arange(truth.n_sensors)), minlength=n_sets).astype(float)
        hidden = np.zeros(n_sets)
        hidden[0] = 1.0
        every = np.arange(n_sets)
        for source, probability in zip(sets[~weak], truth.probability[~weak], strict=True):
            hidden = (1 - probability) * hidden + probability * np.bincount(every | source, hidden, n_sets)
        self.shown = np.array([self._flipped(np.bincount(every | s, hidden, n_sets), truth) for s in every])
        self.weak = tuple(sorted(sets[weak].tolist()))
        self.candidates = [s for s in every[1:].tolist() if s not in sets[~weak]]

    @staticmethod
    def _flipped(hidden: Vector, truth: OrMixture) -> Vector:
        """The distribution of rows, from that of what sources switch on."""
        flips = float(np.mean(truth.noise.miss))
        table = hidden.reshape((2,) * truth.n_sensors)
        for axis in range(truth.n_sensors):
            table = (1 - flips) * table + flips * np.flip(table, axis)
        return table.ravel()

    def log_likelihood(self, more: NDArray[np.int64], probability: Vector) -> Vector:
        """With further sources, a row of sets for each value; all sets of a column are on with the same probability."""
        number = more.shape[1]
        mixed = np.zeros((len(more), self.weights.size))
        for active in range(2**number):
            on = np.array([active >> k & 1 for k in range(number)], dtype=bool)
            share = np.prod(np.where(on, probability, 1 - probability), axis=-1)
            union = np.bitwise_or.reduce(np.where(on, more, 0), axis=1, initial=0)
            mixed += np.broadcast_to(share, len(more))[:, None] * self.shown[union]
        return np.log(mixed) @ self.weights


def subsets(candidates: list[int], number: int) -> NDArray[np.int64]:
    chosen = list(combinations(candidates, number))
    return np.array(chosen, dtype=np.int64).reshape(len(chosen), number)


def by_number(table: StrongKnown, probability: float) -> tuple[list[Vector], list[NDArray[np.int64]]]:
    """The log-likelihoods of all choices of 0, 1, ... further narrow sources that are on as often as is known."""
    narrow = [s for s in table.candidates if s.bit_count() <= NARROW]
    choices = [subsets(narrow, number) for number in range(MOST_MORE + 1)]
    heights = [
        np.concatenate(
            [
                table.log_likelihood(part, np.full(number, probability))
                for part in np.array_split(sets, len(sets) // 4000 + 1)
            ]
        )
        for number, sets in enumerate(choices)
    ]
    return heights, choices


def oracle(table: StrongKnown, probability: float) -> dict[str, bool]:
    """Whether number and set are right by the exact posterior, with two priors of the number."""
    heights, choices = by_number(table, probability)
    n_narrow, right = len(choices[1]), {}
    each = len(table.weak) / n_narrow  # how probable every narrow set is, if their expected number is the true one
    priors = {
        "every number alike": [-np.log(len(sets)) for sets in choices],
        "every set as probable as is true": [
            k * np.log(each) + (n_narrow - k) * np.log1p(-each) for k in range(len(choices))
        ],
    }
    for name, prior in priors.items():
        of_number = [logsumexp(height) + constant for height, constant in zip(heights, prior, strict=True)]
        best = max(range(len(choices)), key=lambda k: heights[k].max() + prior[k])
        most_probable = tuple(choices[best][heights[best].argmax()].tolist())
        right[f"number, {name}"] = int(np.argmax(of_number)) == len(table.weak)
        right[f"all sources, {name}"] = most_probable == table.weak
    told = choices[len(table.weak)][heights[len(table.weak)].argmax()]
    right["all sources, number known"] = tuple(told.tolist()) == table.weak
    return right


def greedy_numbers(table: StrongKnown) -> NDArray[np.int64]:
    """How many further sources of any size are taken, for each threshold: always the one that gains most.

    A taken source keeps the probability at which it gained most.
    """
    shown, gains = table.shown.copy(), []
    for _ in range(MOST_MORE + 2):
        now = np.log(shown[0]) @ table.weights
        trial = [(np.log((1 - p) * shown[0] + p * shown[table.candidates]) @ table.weights - now) for p in GRID]
        grid_place, place = np.unravel_index(np.argmax(trial), np.shape(trial))
        gains.append(trial[grid_place][place])
        unions, p = np.arange(len(shown)) | table.candidates[place], GRID[grid_place]
        shown = (1 - p) * shown + p * shown[unions]
    return np.array([next((k for k, gain in enumerate(gains) if gain < bound), len(gains)) for bound in THRESHOLDS])


def main() -> None:
    first, last = (int(value) for value in (*sys.argv[1:], "5000", "5100")[:2])
    shares, numbers = [], []
    for seed in range(first, last):
        truth, _ = drawn("three", N_SAMPLES, seed)
        rng = np.random.default_rng([seed, N_SAMPLES])
        table = StrongKnown(truth, truth.sample(N_SAMPLES, rng))
        shares.append(oracle(table, float(truth.probability.min())))
        numbers.append(greedy_numbers(table))
    print(TITLE.format(first=first, last=last))
    print("| what is right | share |\n| --- | ---: |")
    for name in shares[0]:
        print(f"| {name} | {np.mean([one[name] for one in shares]):.0%} |")
    right, shown = np.mean(np.array(numbers) == 2, axis=0), slice(4, None, 4)
    print("\nSources of any size and unknown probability, taken while the best gains more than a threshold:")
    print(f"{right.max():.0%} with the best threshold in hindsight, {THRESHOLDS[right.argmax()]:g} nats.\n")
    print("| threshold | " + " | ".join(f"{bound:g}" for bound in THRESHOLDS[shown]) + " |")
    print("|" + " --- |" * (1 + len(THRESHOLDS[shown])))
    print("| number right | " + " | ".join(f"{share:.0%}" for share in right[shown]) + " |")


if __name__ == "__main__":
    main()
