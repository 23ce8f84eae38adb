"""A long attack on every format, as a table: ``python -m tests.attack --inputs 200000 --seed 1``."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.attack.formats import FORMATS


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--inputs", type=int, default=3000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    n_inputs = -(-given.inputs // len(FORMATS))
    print("| format | inputs | read | refused | foreign | long | crashes | slowest (s) | memory (MB) |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in FORMATS:
        folder = tempfile.mkdtemp(prefix="attack-")
        command = [sys.executable, "-m", "tests.attack.child", name, str(given.seed), str(n_inputs), folder]
        done = subprocess.run(command, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            print(f"| {name} | {n_inputs} | | | | | exit {done.returncode}, see {Path(folder)} | | |", flush=True)
            continue
        told = json.loads(lines[-1])
        counts = [told["read"], told["refused"], len(told["foreign"]), len(told["long"]), 0]
        figures = [f"{told['slowest']:.2f}", str(told["megabytes"])]
        print(f"| {name} | {n_inputs} | {' | '.join(map(str, counts))} | {' | '.join(figures)} |", flush=True)
        for found in told["foreign"] + told["long"]:
            print(f"  {name}: {found}", file=sys.stderr)


if __name__ == "__main__":
    main()
