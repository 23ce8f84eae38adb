"""The model file: one JSON document, checked strictly when it is read. Never pickle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bica.errors import ModelFileError
from bica.output import write_whole

SCHEMA = "bica-model"
VERSION = 1
Rate = float | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One source as the file tells it."""

    sensors: tuple[int, ...]
    probability: float
    error: float | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ModelDocument:
    """What a model file holds, in plain values."""

    sensors: tuple[str, ...]
    sources: tuple[SourceEntry, ...]
    false_alarm: Rate
    miss: Rate
    fitted: Mapping[str, Any] = field(default_factory=dict)  # how the model was learned; empty if it was given


def document_text(document: ModelDocument) -> str:
    """The document as JSON, the same bytes for the same document."""
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "sensors": list(document.sensors),
        "sources": [_source_json(source, document.sensors) for source in document.sources],
        "noise": {"false_alarm": document.false_alarm, "miss": document.miss},
        "fitted": dict(document.fitted),
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _source_json(source: SourceEntry, sensors: tuple[str, ...]) -> dict[str, Any]:
    entry: dict[str, Any] = {"sensors": [sensors[i] for i in source.sensors], "probability": source.probability}
    if source.error is not None:
        entry["error"] = source.error
    if source.name is not None:
        entry["name"] = source.name
    return entry


def write_document(document: ModelDocument, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the model file, whole or not at all."""
    write_whole(path, document_text(document), overwrite=overwrite)


def read_document(path: str | Path) -> ModelDocument:
    """Read and check a model file; whatever is wrong with it comes out as one sentence."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{path} is not a model file: it is not UTF-8 text") from error
    return parse_document(text, str(path))


def parse_document(text: str, origin: str) -> ModelDocument:
    """The document in ``text``; ``origin`` names it in errors."""
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{origin} is not a model file, or was cut short: {error}") from error
    check = _Checker(origin)
    check.that(isinstance(content, dict) and content.get("schema") == SCHEMA, f'no "schema": "{SCHEMA}" in it')
    version = content.get("version")
    check.that(version == VERSION, f"it has version {version!r}, but only {VERSION} can be read here")
    sensors = check.names(content.get("sensors"))
    fitted = content.get("fitted", {})
    check.that(isinstance(fitted, dict), '"fitted" is not an object')
    false_alarm, miss = check.noise(content.get("noise"), len(sensors))
    return ModelDocument(sensors, check.sources(content.get("sources"), sensors), false_alarm, miss, fitted)


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


@dataclass(frozen=True, slots=True)
class _Checker:
    origin: str

    def that(self, condition: bool, complaint: str) -> None:
        if not condition:
            raise ModelFileError(f"{self.origin} is not a valid model file: {complaint}")

    def names(self, value: Any) -> tuple[str, ...]:
        self.that(
            isinstance(value, list) and all(isinstance(v, str) for v in value), '"sensors" is not a list of names'
        )
        self.that(len(set(value)) == len(value), "two sensors have the same name")
        return tuple(value)

    def probability(self, value: Any, what: str) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        self.that(number and 0 <= value <= 1, f"{what} is {value!r}, which is no number in [0, 1]")
        return float(value)

    def noise(self, value: Any, n_sensors: int) -> tuple[Rate, Rate]:
        self.that(isinstance(value, dict) and {"false_alarm", "miss"} <= value.keys(), '"noise" lacks its two rates')
        false_alarm, miss = (self._rate(value[name], name, n_sensors) for name in ("false_alarm", "miss"))
        return false_alarm, miss

    def _rate(self, value: Any, name: str, n_sensors: int) -> Rate:
        if not isinstance(value, list):
            return self.probability(value, f"the {name} rate")
        self.that(len(value) == n_sensors, f"there are {len(value)} {name} rates for {n_sensors} sensors")
        return tuple(self.probability(rate, f"a {name} rate") for rate in value)

    def sources(self, value: Any, sensors: tuple[str, ...]) -> tuple[SourceEntry, ...]:
        self.that(isinstance(value, list), '"sources" is not a list')
        place = {name: i for i, name in enumerate(sensors)}
        entries = tuple(self._source(entry, number, place) for number, entry in enumerate(value, 1))
        self.that(len({entry.sensors for entry in entries}) == len(entries), "two sources have the same sensors")
        return entries

    def _source(self, value: Any, number: int, place: Mapping[str, int]) -> SourceEntry:
        what = f"source {number}"
        self.that(isinstance(value, dict), f"{what} is not an object")
        names, error, name = value.get("sensors"), value.get("error"), value.get("name")
        self.that(isinstance(names, list) and len(names) > 0, f"{what} lists no sensors")
        for sensor in names:
            self.that(isinstance(sensor, str) and sensor in place, f"{what} names an unknown sensor {sensor!r}")
        self.that(len(set(names)) == len(names), f"{what} lists a sensor twice")
        self.that(name is None or isinstance(name, str), f"the name of {what} is not text")
        return SourceEntry(
            sensors=tuple(sorted(place[sensor] for sensor in names)),
            probability=self.probability(value.get("probability"), f"the probability of {what}"),
            error=None if error is None else self.probability(error, f"the error of {what}"),
            name=name,
        )
