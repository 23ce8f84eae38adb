"""How long `bica --help` takes, against `python -c "import click"` in the same minute.

python benchmarks/bench_startup.py > benchmarks/results/startup.md
"""

import subprocess
import sys
import time
from statistics import median

RUNS = 40
CLICK = [sys.executable, "-c", "import click"]
HELP = [sys.executable, "-m", "bica", "--help"]


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    seconds(CLICK), seconds(HELP)  # byte-compile
    times = [(seconds(CLICK), seconds(HELP)) for _ in range(RUNS)]  # interleaved: a busy machine slows both
    click, shown = (median(column) for column in zip(*times, strict=True))
    print("# Starting the command line\n\n    python benchmarks/bench_startup.py\n")
    print(f"Medians of {RUNS} interleaved runs.\n")
    print("| command | milliseconds | ratio | wanted |\n| --- | --- | --- | --- |")
    print(f'| `python -c "import click"` | {1000 * click:.0f} | 1 | |')
    print(f"| `bica --help` | {1000 * shown:.0f} | {shown / click:.2f} | < 2 |")


if __name__ == "__main__":
    main()
