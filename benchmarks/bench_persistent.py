"""Sources that stay on for ten slots: how often their number is right and the verdict "misfit", with and without order.

    python benchmarks/bench_persistent.py > benchmarks/results/persistent.md

Seeds 0 to 19; the same tables for both ways. Noise is unknown to the learner.
"""

import warnings
from collections import Counter

import numpy as np

from bica import BICA, Noise
from bica.errors import BicaWarning
from bica.simulate import random_network, simulate

N_TABLES, N_SENSORS, N_SOURCES, N_SLOTS, STAY = 20, 8, 8, 5000, 10.0


def drawn(seed: int, flip_rate: float):
    rng = np.random.default_rng(seed)
    network = random_network(N_SENSORS, N_SOURCES, noise=Noise.flips(flip_rate), rng=rng)
    return simulate(network, N_SLOTS, rng, persistence=STAY)


def row(temporal: bool, flip_rate: float) -> str:
    verdicts, n_right, n_exact = Counter(), 0, 0
    for seed in range(N_TABLES):
        problem = drawn(seed, flip_rate)
        found = BICA(temporal=temporal, random_state=0).fit(problem.rows)
        verdicts[found.diagnostics_["diagnosis"]["verdict"]] += 1
        n_right += found.n_sources_ == problem.model.n_sources
        n_exact += set(map(bytes, found.components_)) == set(map(bytes, problem.model.mixing.T.copy()))
    way = "in time" if temporal else "rows without order"
    told = f"{verdicts['fits']} | {verdicts['doubtful']} | {verdicts['misfit']}"
    return f"| {way} | {100 * flip_rate:g} % | {n_right} of {N_TABLES} | {n_exact} of {N_TABLES} | {told} |"


def main() -> None:
    warnings.simplefilter("ignore", BicaWarning)
    print(f"# Sources that stay on for {STAY:g} slots: m = n = {N_SENSORS}, {N_SLOTS} slots, {N_TABLES} tables\n")
    print("| learned | flips | number of sources right | all sources exact | fits | doubtful | misfit |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for flip_rate in (0.0, 0.02):
        for temporal in (False, True):
            print(row(temporal, flip_rate), flush=True)


if __name__ == "__main__":
    main()
