"""The model file: one JSON document. Never pickle.

JSON has no infinity, so a log-likelihood of minus infinity is written as the text ``"-inf"``; numbers of the
diagnostics that are not finite become text as well, and an error that is not known is left out.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bica.errors import ModelError
from bica.model.noise import Noise
from bica.output import write_whole

SCHEMA = "bica-model"
VERSION = 1


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One source as the file tells it."""

    sensors: tuple[int, ...]
    probability: float
    error: float | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class FittedEntry:
    """How the model was learned, as the file tells it."""

    by: str
    method: str
    n_samples: float | None = None
    log_likelihood: float | None = None
    n_iter: int = 1
    converged: bool = True
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelDocument:
    """What a model file holds, in plain values."""

    sensors: tuple[str, ...]
    sources: tuple[SourceEntry, ...]
    noise: Noise
    fitted: FittedEntry | None = None  # None: the model was not learned from data


def document_text(document: ModelDocument) -> str:
    """The document as JSON, the same bytes for the same document."""
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "sensors": list(document.sensors),
        "sources": [_source_json(source, document.sensors) for source in document.sources],
        "noise": {"false_alarm": document.noise.false_alarm, "miss": document.noise.miss},
    }
    if document.fitted is not None:
        content["fitted"] = _fitted_json(document.fitted)
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_document(document: ModelDocument, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the model file, whole or not at all."""
    write_whole(path, document_text(document), overwrite=overwrite)


def _source_json(source: SourceEntry, sensors: tuple[str, ...]) -> dict[str, Any]:
    entry: dict[str, Any] = {"sensors": [sensors[i] for i in source.sensors], "probability": source.probability}
    if source.error is not None:
        entry["error"] = source.error
    if source.name is not None:
        entry["name"] = source.name
    return entry


def _fitted_json(fitted: FittedEntry) -> dict[str, Any]:
    return {
        "by": fitted.by,
        "method": fitted.method,
        "n_samples": fitted.n_samples,
        "log_likelihood": as_json(fitted.log_likelihood),
        "n_iter": fitted.n_iter,
        "converged": fitted.converged,
        "diagnostics": as_json(fitted.diagnostics),
    }


def as_json(value: Any) -> Any:
    """Plain values that JSON can hold, from plain values and NumPy's; objects are written in the order of their keys.

    >>> as_json({"worst": np.float64("-inf"), "counts": np.arange(3), "by": ("a", None)})
    {'by': ['a', None], 'counts': [0, 1, 2], 'worst': '-inf'}
    """
    if isinstance(value, np.generic | np.ndarray):
        return as_json(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: as_json(value[key]) for key in sorted(value)}
    raise ModelError(f"a model file cannot hold {value!r}; diagnostics are numbers, text, lists and mappings of names")
