"""Reads damaged files in a process of its own: ``python -m tests.attack.child FOLDER SEED FIRST LAST FORMAT...``.

Prints one JSON line per trouble, and one at the end of each format. The number of the file at hand stays in the folder,
so that a crash leaves what caused it. A file that takes far too long ends the process. ``child corpus FOLDER`` reads
the files of a folder instead.
"""

import json
import os
import re
import resource
import signal
import sys
import warnings
from pathlib import Path
from time import process_time

from bica.errors import BicaError
from tests.attack.formats import FORMATS, mutated

MOST_SECONDS = 10.0  # of CPU, per file
GIVEN_UP = 30.0  # CPU seconds after which the process is ended by the system
MOST_MEGABYTES = 1000.0  # of the whole process, imports and compiled code included
ADDRESSES = 16 << 30  # bytes; a process that asks for more must not take the machine along
LONGEST_SENTENCE = 2000  # characters
PEAK = re.compile(r"VmHWM:\s+(\d+)")


def peak_megabytes() -> float:
    return int(PEAK.search(Path("/proc/self/status").read_text()).group(1)) / 1000


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def outcome_of(read, path: Path) -> tuple[str, str]:
    """What became of a file: read, refused, or the kind of trouble it made and what was said."""
    try:
        read(path)
    except BicaError as error:
        said = str(error)
        return ("wordy", said) if "\n" in said or len(said) > LONGEST_SENTENCE else ("refused", said)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - what is not ours is looked for, panics of other languages included
        return "foreign", f"{type(error).__name__}: {error}"
    return "read", ""


def attack(name: str, seed: int, numbers: range, folder: Path) -> dict[str, object]:
    format_ = FORMATS[name]
    path = folder / f"attack{format_.ending}"
    for example in format_.examples:
        path.write_bytes(example)
        format_.read(path)  # what is not damaged is read, and kernels are compiled
    counts, slowest, largest, start = {"read": 0, "refused": 0}, 0.0, 0.0, process_time()
    with open(folder / "at", "wb", buffering=0) as place:
        for number in numbers:
            path.write_bytes(mutated(name, seed, number))
            os.pwrite(place.fileno(), b"%-20d%s" % (number, name.encode()), 0)
            forget_peak()
            signal.setitimer(signal.ITIMER_PROF, GIVEN_UP)
            begin = process_time()
            outcome, said = outcome_of(format_.read, path)
            seconds, megabytes = process_time() - begin, peak_megabytes()
            slowest, largest = max(slowest, seconds), max(largest, megabytes)
            counts[outcome] = counts.get(outcome, 0) + 1
            for trouble in troubles(outcome, seconds, megabytes):
                tell(trouble=trouble, format=name, seed=seed, number=number, said=said[:300])
    signal.setitimer(signal.ITIMER_PROF, 0)
    return {
        "format": name,
        "counts": counts,
        "slowest": slowest,
        "megabytes": largest,
        "seconds": process_time() - start,
    }


def troubles(outcome: str, seconds: float, megabytes: float) -> list[str]:
    found = [outcome] if outcome in ("foreign", "wordy") else []
    found += ["slow"] if seconds > MOST_SECONDS else []
    return found + (["large"] if megabytes > MOST_MEGABYTES else [])


def read_corpus(folder: Path) -> None:
    """Read every file that ever failed; its name begins with its format."""
    for path in sorted(folder.iterdir()):
        format_ = FORMATS[path.name.partition("--")[0].replace("-", " ")]
        forget_peak()
        signal.setitimer(signal.ITIMER_PROF, GIVEN_UP)
        begin = process_time()
        outcome, said = outcome_of(format_.read, path)
        found = troubles(outcome, process_time() - begin, peak_megabytes())
        tell(file=path.name, outcome=outcome, said=said[:300], troubles=found)


def tell(**content: object) -> None:
    print(json.dumps(content), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.argv[1] == "corpus":
        read_corpus(Path(sys.argv[2]))
        sys.exit()
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    numbers = range(int(sys.argv[3]), int(sys.argv[4]))
    for name in sys.argv[5:]:
        tell(ended=attack(name, seed, numbers, folder))
