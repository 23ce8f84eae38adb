"""The long attack: ``python -m tests.attack --inputs 200000 --seed 1`` on files, ``--kills 300`` on moments,
``--fits 5000`` and ``--questions 5000`` in one process.

Each prints its figures as a table. A long attack can be done in turns: ``--slice K/N`` takes the K-th of N parts of the
files, and kills go on where the log of the last run ends.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path

from tests.attack import long_runs
from tests.attack.files import KINDS, attacked, keep
from tests.attack.formats import FORMATS
from tests.attack.moments import kills, table_of


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.attack")
    options.add_argument("--inputs", type=int, default=0, help="damaged files, spread over all formats")
    options.add_argument("--formats", default=",".join(FORMATS), help="only these, separated by commas")
    options.add_argument("--slice", default="1/1", help="K/N: the K-th of N parts of the files")
    options.add_argument("--keep", type=Path, help="a folder for files that make trouble")
    options.add_argument("--kills", type=int, default=0, help="commands to end at random moments")
    options.add_argument("--log", type=Path, default=Path("bica-kills.jsonl"), help="where finished kills are kept")
    options.add_argument("--seconds", type=float, default=900.0, help="for kills in this run; the next one goes on")
    options.add_argument("--fits", type=int, default=0, help="fits and decodes in one process")
    options.add_argument("--questions", type=int, default=0, help="questions to one page")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    if given.inputs:
        attack_files(given)
    if given.kills:
        kills(given.kills, given.seed, given.log, given.seconds)
        print(table_of(given.log))
    if given.fits:
        with tempfile.TemporaryDirectory(prefix="bica-fits-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(long_runs.table_of(list(long_runs.fits(given.fits, Path(folder)))))
    if given.questions:
        print(long_runs.table_of(list(long_runs.questions(given.questions))))


def attack_files(given: argparse.Namespace) -> None:
    names = given.formats.split(",")
    part, parts = map(int, given.slice.split("/"))
    n_inputs = -(-given.inputs // len(names))
    first, last = n_inputs * (part - 1) // parts, n_inputs * part // parts
    print(f"| format | inputs | read | refused | {' | '.join(KINDS)} | CPU s | slowest | memory (MB) |")
    print(f"|---{'|---' * (len(KINDS) + 6)}|")
    for name in names:
        toll = attacked([name], given.seed, first, last)[name]
        counts = [toll.n_inputs, toll.read, toll.refused, *map(toll.number_of, KINDS)]
        figures = [*map(str, counts), f"{toll.seconds:.0f}", f"{toll.slowest:.2f}", f"{toll.megabytes:.0f}"]
        print(f"| {name} | {' | '.join(figures)} |", flush=True)
        for trouble in toll.troubles:
            print("  " + json.dumps(trouble), flush=True)
            if given.keep:
                keep(trouble, given.keep)


if __name__ == "__main__":
    main()
