"""The four fixed networks of the evaluation, and how they are sampled in it."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from bica.errors import SettingError
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What every topology is tried with."""

    n_samples: tuple[int, ...]
    flip_rates: tuple[float, ...]
    n_runs: int


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files("bica.simulate").joinpath("topologies.json").read_text("utf-8"))
    return content


TOPOLOGIES: tuple[str, ...] = tuple(entry["name"] for entry in _content()["topologies"])
EVALUATION = Evaluation(tuple(_content()["samples"]), tuple(_content()["flip_rates"]), _content()["runs"])


def topology(name: str, noise: Noise | None = None) -> OrMixture:
    """One of the four networks by name: connected or in three groups, fewer or more sources than sensors.

    The paper describes its networks but does not publish them; these have the same four characters.

    >>> TOPOLOGIES
    ('one', 'two', 'three', 'four')
    >>> topology("two").mixing.shape
    (10, 7)
    """
    entry = next((entry for entry in _content()["topologies"] if entry["name"] == name), None)
    if entry is None:
        raise SettingError(f"there is no topology {name!r}; choose one of {', '.join(TOPOLOGIES)}")
    mixing = np.zeros((entry["n_sensors"], entry["n_sources"]), dtype=bool)
    for place, source in enumerate(entry["sources"]):
        mixing[source["sensors"], place] = True
    return OrMixture(mixing, [source["probability"] for source in entry["sources"]], noise)
