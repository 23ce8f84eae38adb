"""The spectrum experiment with signals that fade: sure edges against the default, and where the users are.

python benchmarks/bench_fading.py > benchmarks/results/fading.md
"""

import statistics
import sys
import time

import numpy as np

from bica import Likelihood, PatternCounts
from bica.applications.spectrum import Propagation, random_field, random_traffic
from bica.applications.spectrum.field import PlacedUsers
from bica.applications.spectrum.survey import draw_survey
from bica.metrics import edge_score

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
FIRST_SEED, N_USERS, N_SLOTS, FALSE_ALARM = 300, (5, 10), 10_000, 0.01
FADING = (0.0, 4.0, 8.0)  # dB
EDGES = ("sure", "auto")


def run(fading: float, n_users: int, seed: int, edges: str) -> dict[str, float]:
    """What one kind of edges gave on one field."""
    rng = np.random.default_rng([seed, n_users])
    field = random_field(n_users, rng, propagation=Propagation(fading_db=fading))
    survey = draw_survey(field, random_traffic(n_users, rng), N_SLOTS, FALSE_ALARM, rng)
    truth, rows = survey.problem.model, survey.problem.rows
    data = PatternCounts.of(rows, sensors=truth.sensors)
    begun = time.process_time()
    model = Likelihood(edges=edges).fit(data, np.random.default_rng(0)).model
    seconds = time.process_time() - begun
    score = edge_score(model, truth)
    regions = PlacedUsers.of(model, field).regions
    users = {tuple(column): survey.members[j][0] for j, column in enumerate(truth.mixing.T.tolist()) if sum(column) > 2}
    away = [
        float(np.linalg.norm(region.centre - field.users[users[key]]))
        for region, column in zip(regions, model.mixing.T.tolist(), strict=True)
        if (key := tuple(column)) in users
    ]
    return {
        "too many": model.n_sources - truth.n_sources,
        "f1": score.f1,
        "reach": score.mean_reach_error,
        "metres": statistics.median(away) if away else np.nan,
        "lossy": float(model.has_lossy_edges),
        "seconds": seconds,
    }


def line(fading: float, edges: str) -> str:
    runs = [run(fading, n, FIRST_SEED + seed, edges) for n in N_USERS for seed in range(N_SEEDS)]
    mean = {name: np.nanmean([float("nan") if one[name] is None else one[name] for one in runs]) for name in runs[0]}
    return (
        f"| {fading:g} dB | {edges} | {mean['lossy']:.0%} | {mean['too many']:+.1f} | {mean['f1']:.3f} "
        f"| {mean['reach']:.3f} | {mean['metres']:.0f} | {statistics.median(one['seconds'] for one in runs):.2f} |"
    )


def main() -> None:
    run(FADING[-1], 5, 0, "auto")  # compiles
    print("# Users whose signals fade\n\n    python benchmarks/bench_fading.py\n")
    print(f"10 monitors on 500 m by 500 m, {' and '.join(map(str, N_USERS))} users, {N_SLOTS} slots, 1 % false alarms")
    print(
        f"(1 % flips without fading), {N_SEEDS} fields each from seed {FIRST_SEED} on. Reach: mean error where the rows"
    )
    print("tell it. Metres: from the middle of the region to the user, of exact users of three monitors and more.\n")
    print("| fading | edges | lossy chosen | sources too many | edge F1 | reach off | metres | seconds |")
    print("| --- " * 8 + "|", flush=True)
    for fading in FADING:
        for edges in EDGES:
            print(line(fading, edges), flush=True)


if __name__ == "__main__":
    main()
