"""Reads damaged files of one format in a process of its own: ``python -m tests.attack.child FORMAT SEED N FOLDER``.

Prints what became of them as JSON. The file at hand stays in the folder, so that a crash leaves what caused it.
"""

import json
import resource
import sys
import warnings
from pathlib import Path
from time import process_time

import numpy as np

from bica.errors import BicaError
from tests.attack.formats import FORMATS, damaged


def attack(name: str, seed: int, n_inputs: int, folder: Path) -> dict[str, object]:
    content, read = FORMATS[name]
    path = folder / f"attack.{name}"
    path.write_bytes(content)
    read(path)  # what is not damaged is read, and kernels are compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = {"read": 0, "refused": 0, "foreign": [], "long": [], "slowest": 0.0}
    for number in range(n_inputs):
        path.write_bytes(damaged(content, np.random.default_rng([seed, number])))
        begin = process_time()
        try:
            read(path)
            told["read"] += 1
        except BicaError as error:
            told["refused"] += 1
            if "\n" in str(error) or len(str(error)) > 2000:
                told["long"].append([number, str(error)[:200]])
        except Exception as error:  # noqa: BLE001 - what is not ours is what is looked for
            told["foreign"].append([number, f"{type(error).__name__}: {error}"[:200]])
        told["slowest"] = max(told["slowest"], process_time() - begin)
    told["megabytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    return told


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, seed, n_inputs, folder = sys.argv[1:]
    print("\n" + json.dumps(attack(name, int(seed), int(n_inputs), Path(folder))))
