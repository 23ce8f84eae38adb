"""How long starting takes: CPU seconds of whole processes, against the imports that they cannot do without.

python benchmarks/bench_startup.py > benchmarks/results/startup.md
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

RUNS = 5  # interleaved: a busy machine slows all
ROWS = "a,b\n" + "0,0\n" * 40 + "1,0\n" * 10 + "1,1\n" * 50
COMMANDS = {
    "`import click`": ("-c", "import click"),
    "`bica --help`": ("-m", "bica", "--help"),
    "a file that exists refused, by `bica fit`": ("-m", "bica", "fit", "t.csv", "-o", "m.json"),
    "the same by `bica report`": ("-m", "bica", "report", "m.json", "-o", "t.csv"),
    "`bica show m.json`": ("-m", "bica", "show", "m.json"),
    "`bica explain m.json --on a,b`": ("-m", "bica", "explain", "m.json", "--on", "a,b"),
    "`import sklearn.base`": ("-c", "import sklearn.base"),
    "`from bica import BICA`": ("-c", "from bica import BICA"),
}
REFUSED = [words for what, words in COMMANDS.items() if words[-2:] in (("-o", "m.json"), ("-o", "t.csv"))]
WANTED = {"`bica show m.json`": "≤ 0.3", "`bica explain m.json --on a,b`": "≤ 1"}


def seconds(words: tuple[str, ...], folder: str) -> float:
    """CPU seconds of one process, which must end as it is meant to."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ("exists already" in done.stderr) != (words in REFUSED) or (done.returncode and words not in REFUSED):
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print one line per command."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "t.csv").write_text(ROWS)
        seconds(("-m", "bica", "fit", "t.csv", "-o", "./m.json"), folder)
        seconds(COMMANDS["`bica explain m.json --on a,b`"], folder)  # which compiles
        runs = [{name: seconds(words, folder) for name, words in COMMANDS.items()} for _ in range(RUNS)]
    middle = {name: median(run[name] for run in runs) for name in COMMANDS}
    beyond = median(run["`from bica import BICA`"] - run["`import sklearn.base`"] for run in runs)
    print("# Starting\n\n    python benchmarks/bench_startup.py\n")
    print(f"CPU seconds of the whole process, medians of {RUNS} interleaved runs, kernels compiled before.\n")
    print("| what | CPU seconds | wanted |\n| --- | --- | --- |")
    for name, value in middle.items():
        print(f"| {name} | {value:.2f} | {WANTED.get(name, '')} |")
    print(f"| `from bica import BICA` beyond `import sklearn.base` | {beyond:.2f} | ≤ 0.3 |")


if __name__ == "__main__":
    main()
