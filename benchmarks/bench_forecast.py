"""Does the forecast of `bica check` hold? The CPU seconds it promises beside those that the fit takes.

python benchmarks/bench_forecast.py > benchmarks/results/forecast.md

Tables: all of the folder that BICA_DATA names, and those that come with the package, or simulated ones (`--simulated`).
The constants of the forecast are half way, in logs, between its trial and the longest searches. With `--limit`, each
table is also learned with a time limit of two seconds.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

from bica.simulate import DESCRIPTIONS

TABLES = (
    "acute_inflammations/X.csv",
    "bell_labs_traffic/X.csv",
    "bell_labs_traffic/X_or.csv",
    "bell_labs_traffic/X_surge.csv",
    "disease_symptom_kb/X_sim_exact.npz",
    "disease_symptom_kb/X_sim_noisy_or.npz",
    "fraction_subtraction/X.csv",
    "groceries/X.npz",
    "hp_roles/americas_small_X.npz",
    "hp_roles/domino_X.csv",
    "hp_roles/emea_X.csv",
    "hp_roles/healthcare_X.csv",
    "lora_gateways/X.csv",
    "pbmc_genes/X.npz",
    "telecom_alarms/X.npz",
    "topology_paths/abilene_X.csv",
    "topology_paths/btnorthamerica_X.csv",
    "topology_paths/geant2009_X.csv",
    "zoo/X.csv",
)
SIMULATED = {  # sensors, sources, rows, flip rate, reach, highest probability, seed
    "m = 10, lossy": (10, 10, 3000, 0.01, 0.7, 0.3, 50),
    "m = 12, noisy": (12, 16, 1000, 0.05, 1.0, 0.3, 51),
    "m = 14, lossy": (14, 10, 10_000, 0.01, 0.6, 0.2, 52),
    "m = 16, noisy": (16, 20, 1000, 0.1, 1.0, 0.3, 53),
    "m = 20, dense": (20, 20, 2000, 0.05, 1.0, 0.4, 54),
    "m = 24, noisy": (24, 30, 1000, 0.05, 1.0, 0.3, 55),
    "m = 40, lossy": (40, 30, 5000, 0.01, 0.7, 0.1, 56),
    "m = 200": (200, 200, 20_000, 0.02, 1.0, 0.1, 57),
    "m = 600": (600, 600, 10_000, 0.02, 1.0, 0.05, 58),
    "m = 100, lossy": (100, 60, 5000, 0.01, 0.7, 0.1, 59),
}
LIMIT = 2.0  # seconds
WANTED = 3.0


def rows_of(name: str):
    """A table as ``bica fit`` takes it."""
    if name in DESCRIPTIONS:
        from bica.simulate import example

        return str(example(name).table_path)
    if name not in SIMULATED:
        return str(Path(os.environ["BICA_DATA"]) / name)
    import numpy as np

    from bica import Noise, OrMixture
    from bica.simulate import random_network

    n_sensors, n_sources, n_rows, flips, reach, highest, seed = SIMULATED[name]
    rng = np.random.default_rng(seed)
    truth = random_network(n_sensors, n_sources, probability=(highest / 10, highest), rng=rng)
    edges = None if reach == 1.0 else np.where(truth.mixing, rng.uniform(reach - 0.2, 1.0, truth.mixing.shape), 0.0)
    noise = Noise.flips(flips) if edges is None else Noise(flips, 0.0)
    return OrMixture(truth.mixing, truth.probability, noise, edges).sample(n_rows, rng)


def child(name: str, limited: bool) -> None:
    """Print the forecast and what the fit took as JSON; a first, short fit compiles."""
    import numpy as np

    from bica.diagnose.table import TableCheck
    from bica.estimate.forecast import forecast
    from bica.estimate.likelihood import Likelihood
    from bica.pipeline import observe

    warnings.simplefilter("ignore")
    data, rng = observe(rows_of(name)).data, np.random.default_rng(0)
    if limited:
        begun = time.monotonic()
        fit = Likelihood(time_limit=LIMIT).fit(data, rng)
        print(json.dumps({"seconds": time.monotonic() - begun, "n_sources": fit.model.n_sources}))
        return
    promised = forecast(data, TableCheck.of(data)).seconds
    begun = time.process_time()
    fit = Likelihood().fit(data, rng)
    took = time.process_time() - begun
    size = f"{data.n_sensors} | {len(data.weights)}"
    print(json.dumps({"size": size, "forecast": promised, "seconds": took, "n_sources": fit.model.n_sources}))


def run(*arguments: str) -> dict:
    """What a fresh interpreter prints."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(words, env=os.environ | one_thread, stdout=subprocess.PIPE, check=True).stdout)


def main(simulated: bool, limited: bool) -> None:
    """Print one line per table, and how many are within the factor."""
    given = [word for word in sys.argv[1:] if not word.startswith("--")]
    tables = given or (list(SIMULATED) if simulated else [*TABLES, *DESCRIPTIONS])
    print("# Forecasts\n\n    python benchmarks/bench_forecast.py" + (" --simulated" if simulated else ""))
    print("\nCPU seconds of one thread, kernels compiled before. Ratio: the larger of both over the smaller.\n")
    more = f" with a limit of {LIMIT:.0f} s: wall seconds, sources |" if limited else ""
    print(f"| table | columns | distinct rows | forecast | fit | ratio | sources |{more}")
    print(f"| --- | --- | --- | --- | --- | --- | --- |{' --- |' if limited else ''}")
    ratios = []
    for name in tables:
        done = run("--table", name)
        ratios.append(max(done["forecast"], done["seconds"]) / min(done["forecast"], done["seconds"]))
        numbers = f"{done['forecast']:.2f} | {done['seconds']:.2f} | {ratios[-1]:.1f} | {done['n_sources']}"
        short = run("--limited", name) if limited else None
        last = "" if short is None else f" {short['seconds']:.1f}, {short['n_sources']} |"
        print(f"| {name} | {done['size']} | {numbers} |{last}", flush=True)
    within = sum(ratio <= WANTED for ratio in ratios)
    print(f"\nWithin a factor of {WANTED:.0f}: {within} of {len(ratios)}; largest ratio {max(ratios):.1f}.")


if __name__ == "__main__":
    if "--table" in sys.argv or "--limited" in sys.argv:
        child(sys.argv[-1], "--limited" in sys.argv)
    else:
        main("--simulated" in sys.argv, "--limit" in sys.argv)
