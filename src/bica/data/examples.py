"""Tables that come with the package, each with its known answer."""

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bica.errors import DataError

DESCRIPTIONS = {
    "abilene": "The Abilene research network, seen through 10 paths between 5 of its nodes",
    "geant2009": "The GÉANT research network of 2009, seen through 15 paths between 6 of its nodes",
    "btnorthamerica": "BT's North American backbone, seen through 21 paths between 7 of its nodes",
}


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A table and the sources that it was made from; the networks are real, the failures of links simulated."""

    name: str
    description: str
    table_path: Path
    sensors: tuple[str, ...]
    source_names: tuple[str, ...]
    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,)


def example(name: str) -> Example:
    """One of the bundled tables: "abilene", "geant2009" or "btnorthamerica".

    The networks are from the Internet Topology Zoo (CC BY 4.0, see ``examples/ATTRIBUTION.md`` beside this file).

    >>> abilene = example("abilene")
    >>> abilene.mixing.shape, abilene.source_names[0], abilene.probability[0]
    ((10, 7), 'link01', np.float64(0.075))
    """
    if name not in DESCRIPTIONS:
        raise DataError(f"there is no example {name!r}; there are {', '.join(DESCRIPTIONS)}")
    folder = Path(str(files("bica.data"))) / "examples"
    (_, *source_names), *rows = _records(folder / f"{name}_G.csv")
    sources = {source: float(probability) for source, probability, _ in _records(folder / f"{name}_sources.csv")[1:]}
    return Example(
        name=name,
        description=f"{DESCRIPTIONS[name]}; a path is bad (1) while one of its links is down",
        table_path=folder / f"{name}_X.csv",
        sensors=tuple(sensor for sensor, *_ in rows),
        source_names=tuple(source_names),
        mixing=np.array([[cell == "1" for cell in cells] for _, *cells in rows]),
        probability=np.array([sources[source] for source in source_names]),
    )


def _records(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))
