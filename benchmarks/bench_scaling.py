"""Time and peak memory of a fit against rows and sensors, with fitted slopes, as a table and a log–log picture.

python benchmarks/bench_scaling.py > benchmarks/results/scaling.md   (also writes scaling.png beside it)
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bica import BICA, Noise
from bica.simulate import random_network

ROWS = [(50, n_samples) for n_samples in (10_000, 30_000, 100_000, 300_000, 1_000_000)]
SENSORS = [(n_sensors, 50_000) for n_sensors in (50, 200, 1000, 4000)]
PICTURE = Path(__file__).parent / "results" / "scaling.png"


def measured(n_sensors: int, n_samples: int) -> dict[str, float]:
    """One fit in a process of its own; what the table and the interpreter take before the fit is subtracted."""
    told = subprocess.run(
        [sys.executable, __file__, str(n_sensors), str(n_samples)], check=True, capture_output=True, text=True
    )
    answer: dict[str, float] = json.loads(told.stdout)
    return {"sensors": n_sensors, "rows": n_samples, **answer}


def one_fit(n_sensors: int, n_samples: int) -> dict[str, float]:
    """Seconds and megabytes of one fit, after a small one that loads the kernels."""
    rng = np.random.default_rng(0)
    small = random_network(24, 24, probability=(0.01, 0.1), noise=Noise.flips(0.02), rng=rng)
    BICA().fit(small.sample(3000, rng))
    model = random_network(n_sensors, n_sensors, probability=(0.01, 0.1), noise=Noise.flips(0.02), rng=rng)
    rows = np.concatenate([model.sample(min(10_000, n_samples), rng) for _ in range(max(1, n_samples // 10_000))])
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    before, begun = megabytes("VmRSS"), time.perf_counter()
    found = BICA().fit(rows)
    seconds = time.perf_counter() - begun
    true = {tuple(column) for column in model.mixing.T.tolist()}
    recall = sum(tuple(column) in true for column in found.components_.tolist()) / len(true)
    return {"seconds": seconds, "megabytes": megabytes("VmHWM") - before, "table": rows.nbytes / 1e6, "recall": recall}


def megabytes(what: str) -> float:
    """The memory that this process holds (VmRSS), or the most it has held (VmHWM); on Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(what))) / 1e3


def slope(runs: list[dict[str, float]], by: str, what: str) -> float:
    """The exponent of the straight line through all points of a log–log picture."""
    return float(np.polyfit(np.log([run[by] for run in runs]), np.log([run[what] for run in runs]), 1)[0])


def table(runs: list[dict[str, float]], by: str) -> None:
    """Print the runs and their slopes."""
    print("| sensors | rows | seconds | MB beyond the table | table, MB | recall |")
    print("|" + " --- |" * 6)
    for run in runs:
        print(
            f"| {run['sensors']:.0f} | {run['rows']:.0f} | {run['seconds']:.1f} | {run['megabytes']:.0f} | "
            f"{run['table']:.0f} | {run['recall']:.4f} |"
        )
    print(f"\nSlopes by {by}: seconds {slope(runs, by, 'seconds'):.2f}, MB {slope(runs, by, 'megabytes'):.2f}.\n")


def picture(by_rows: list[dict[str, float]], by_sensors: list[dict[str, float]]) -> None:
    """Both sweeps, time and memory, on logarithmic axes."""
    import altair as alt

    panels = []
    for runs, by in ((by_rows, "rows"), (by_sensors, "sensors")):
        for what in ("seconds", "megabytes"):
            title = f"{what} against {by}: slope {slope(runs, by, what):.2f}"
            chart = alt.Chart(alt.Data(values=runs), title=title, width=260, height=180)
            scale = alt.Scale(type="log")
            encoded = chart.encode(
                x=alt.X(f"{by}:Q", scale=scale, title=by), y=alt.Y(f"{what}:Q", scale=scale, title=what)
            )
            panels.append(encoded.mark_line(point=True))
    ((panels[0] | panels[1]) & (panels[2] | panels[3])).save(str(PICTURE), scale_factor=1.5)


def main() -> None:
    """Both sweeps; 2 % noise, columns of 2 to 4 sensors, as many sources as sensors, p ~ U(0.01, 0.1)."""
    print("One fit each, noise unknown, two cores; memory is the rise of the process's peak during the fit.\n")
    by_rows, by_sensors = [measured(*size) for size in ROWS], [measured(*size) for size in SENSORS]
    table(by_rows, "rows")
    table(by_sensors, "sensors")
    picture(by_rows, by_sensors)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(one_fit(int(sys.argv[1]), int(sys.argv[2]))))
    else:
        main()
