"""How long a row waits for its answer: `bica watch --all` at 10^4 rows per second, and at half and twice that rate.

    python benchmarks/bench_watch.py > benchmarks/results/watch.md

Random networks of 10 and 20 sensors, as many sources, 1 % of the cells flipped (seed 19). One process writes a row
every so many microseconds by the clock, however late the answers are; the delay is from the moment a row should have
been written to the arrival of its answer. The first second is left out: kernels are loaded in it.
"""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from bica import Noise
from bica.simulate import random_network

SECONDS, WARM = 6, 1
RATES = (5_000, 10_000, 20_000)
SENSORS = (10, 20)
SEED = 19


def lines_of(n_sensors: int, folder: Path) -> tuple[Path, str, list[bytes]]:
    """A model file, the header, and rows of the model as lines."""
    rng = np.random.default_rng(SEED)
    model = random_network(n_sensors, n_sensors, noise=Noise.flips(0.01), rng=rng)
    path = folder / f"{n_sensors}.json"
    model.save(path)
    rows = model.sample(max(RATES) * SECONDS, rng).astype(np.uint8)
    return path, ",".join(model.sensors) + "\n", [b",".join(b"01"[c : c + 1] for c in row) + b"\n" for row in rows]


def delays(model: Path, header: str, lines: list[bytes], rate: int) -> np.ndarray:
    """Seconds from row to answer, for every row after the first second."""
    words = [sys.executable, "-m", "bica", "watch", str(model), "--all", "--json"]
    n_rows = rate * SECONDS
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(header.encode() + lines[0])
        process.stdin.flush()
        process.stdout.readline()  # imports are done
        arrived = np.zeros(n_rows)

        def listen() -> None:
            for number in range(n_rows):
                process.stdout.readline()
                arrived[number] = time.monotonic()

        listener = threading.Thread(target=listen)
        start = time.monotonic()
        listener.start()
        written = 0
        while written < n_rows:
            due = min(n_rows, int((time.monotonic() - start) * rate) + 1)
            process.stdin.write(b"".join(lines[written:due]))
            process.stdin.flush()
            written = due
            time.sleep(0.001)
        process.stdin.close()
        listener.join()
    return (arrived - start - np.arange(n_rows) / rate)[WARM * rate :]


if __name__ == "__main__":
    print("# Delay of `bica watch`\n\nMilliseconds from row to answer; `python benchmarks/bench_watch.py` says how.\n")
    print("| sensors | rows per second | median | 99 % | longest |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as place:
        for n_sensors in SENSORS:
            model, header, lines = lines_of(n_sensors, Path(place))
            for rate in RATES:
                found = 1000 * delays(model, header, lines, rate)
                shown = " | ".join(f"{number:.0f}" for number in (*np.quantile(found, [0.5, 0.99]), found.max()))
                print(f"| {n_sensors} | {rate} | {shown} |", flush=True)
