"""Choose the settings of every rival by its own objective, on problems that no comparison reports.

    python benchmarks/tune_rivals.py > benchmarks/results/tuning.md

The truth is drawn but never looked at. What each method tries to lower decides: for factorisations the cells that they
rebuild wrongly, for methods with a likelihood what they lose per row of fresh rows. Seeds are 1000 and up;
comparisons use seeds from 0.
"""

import warnings
from time import process_time

import numpy as np

from bica import PatternCounts
from bica.compare.contest import held_out_likelihood
from bica.compare.task import Setting, warm_up
from bica.errors import BicaWarning
from bica.methods import method_named, needs_n_sources

PROBLEMS = [
    Setting(network="topology three", n_samples=1000, flip_rate=0.1),
    Setting(network="random 15 x 15", n_samples=1000, flip_rate=0.02),
    Setting(network="bars 4", n_samples=500, flip_rate=0.02),
]
SEEDS = (1000, 1001)
GRID = {  # the first is the default
    "mac": ("wrong", [{}, {"max_assign": 2}, {"symmetric": True}]),
    "grecond": ("wrong", [{}, {"orientation": "best"}]),
    "grecond-plus": ("wrong", [{}, {"cost_of_zero": 2.0}, {"cost_of_zero": 1.0}]),
    "message-passing": ("wrong", [{}, {"prior": (0.3, 0.3)}, {"channel": 0.9}, {"damping": 0.5}]),
    "ormachine": ("held out", [{}, {"prior": (0.3, 0.3)}, {"burn_in": 300}]),
    "asso": ("wrong", [{}, {"cost_of_zero": 2.0}, {"cost_of_one": 2.0}]),
    "elbmf": ("wrong", [{}, {"growth": 1.02}, {"inertia": 1e-2}]),
    "attractor": ("held out", [{}, {"miss": 0.1}, {"refine": False}]),
    "buffet": ("held out", [{}, {"sampler": "rj"}, {"alpha": 5.0}]),
    "noca": ("held out", [{"n_init": 5}, {"n_init": 5, "max_iter": 200}]),
    "quartets": ("held out", [{}, {"standard_errors": 3.0}, {"level": 0.95}]),
    "fastica": ("wrong", [{}, {"max_iter": 1000}]),
}


def cost(objective, fit, fresh):
    if objective == "wrong":
        return fit.diagnostics["wrong_cells"]
    value = held_out_likelihood(fit.model, fresh)
    return np.inf if value is None else -value


def measured(name, objective, settings, setting, seed):
    problem = setting.draw(seed)
    told = {"n_sources": problem.model.n_sources} if needs_n_sources(name) else {}
    fresh = PatternCounts.of(setting.draw_from(problem.model, 1000, np.random.default_rng([seed, 7])).rows)
    begin = process_time()
    fit = method_named(name, **told, **settings).fit(PatternCounts.of(problem.rows), np.random.default_rng(seed))
    return cost(objective, fit, fresh), process_time() - begin


def main():
    warnings.simplefilter("ignore", BicaWarning)
    print("# Settings of the rivals, chosen by their own objectives\n\n    python benchmarks/tune_rivals.py\n")
    print(f"Means over seeds {SEEDS} of each problem; lower is better. Cells rebuilt wrongly, or minus the mean")
    print("log-likelihood of 1000 fresh rows. The truth chose nothing; the comparison uses other seeds.\n")
    titles = " | ".join(f"{p.network}, {p.n_samples} rows, {p.flip_rate:.0%}" for p in PROBLEMS)
    print(f"| method | objective | settings | {titles} | CPU s |\n|{' --- |' * (len(PROBLEMS) + 4)}")
    for name, (objective, grid) in GRID.items():
        warm_up(name)
        for settings in grid:
            outcomes = [[measured(name, objective, settings, p, seed) for seed in SEEDS] for p in PROBLEMS]
            costs = " | ".join(f"{np.mean([c for c, _ in of_problem]):.4g}" for of_problem in outcomes)
            seconds = np.mean([s for of_problem in outcomes for _, s in of_problem])
            title = ", ".join(f"{k}={v}" for k, v in settings.items()) or "default"
            print(f"| {name} | {objective} | {title} | {costs} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
