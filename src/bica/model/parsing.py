"""Reading a model file: whatever is wrong with it comes out as one sentence."""

import json
import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from bica.errors import ModelError, ModelFileError
from bica.model.checks import as_names
from bica.model.files import SCHEMA, VERSION, FittedEntry, ModelDocument, SourceEntry, as_json
from bica.model.noise import Noise

BYTES_LIMIT = 1 << 28
CELLS_LIMIT = 1 << 30  # of the mixing matrix: a small file could otherwise ask for more memory than there is

FITTED = ("by", "method", "n_samples", "log_likelihood", "n_iter", "converged", "diagnostics")


def read_document(path: str | Path) -> ModelDocument:
    """Read and check a model file."""
    try:
        with open(path, "rb") as file:
            content = file.read(BYTES_LIMIT + 1)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a path that no system accepts
        raise ModelFileError(f"{path!r} cannot be read: {error}") from error
    return parse_document(content, str(path))


def parse_document(content: str | bytes, origin: str) -> ModelDocument:
    """The document in ``content``; ``origin`` names it in errors."""
    if len(content) > BYTES_LIMIT:
        raise ModelFileError(f"{origin} is not a model file: it is longer than {BYTES_LIMIT >> 20} MiB")
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
        document = json.loads(
            text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_without_repeated_keys
        )
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{origin} is not a model file: it is not UTF-8 text") from error
    except RecursionError as error:
        raise ModelFileError(f"{origin} is not a model file: it is nested too deeply") from error
    except ValueError as error:
        raise ModelFileError(f"{origin} is not a model file, or was cut short: {error}") from error
    return _Checker(origin).document(document)


def _finite(number: str) -> float:
    if not math.isfinite(float(number)):
        raise ValueError(f"{number} is not a finite number")
    return float(number)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("an object has two entries of the same name")
    return entries


@dataclass(frozen=True, slots=True)
class _Checker:
    """Turns what JSON gave into the document, piece by piece; never trusts a type."""

    origin: str

    def refusal(self, complaint: object) -> ModelFileError:
        return ModelFileError(f"{self.origin} is not a valid model file: {complaint}")

    def that(self, condition: bool, complaint: str) -> None:
        if not condition:
            raise self.refusal(complaint)

    def document(self, value: Any) -> ModelDocument:
        self.that(isinstance(value, dict) and value.get("schema") == SCHEMA, f'no "schema": "{SCHEMA}" in it')
        version = value.get("version")
        known = type(version) is int and version == VERSION
        self.that(known, f"it has version {shortened(version)}, but only {VERSION} can be read here")
        self.entries(value, "the file", {"schema", "version", "sensors", "sources", "noise"}, {"fitted"})
        sensors = self.names(value["sensors"], "sensor names")
        sources = self.sources(value["sources"], sensors)
        return ModelDocument(
            sensors, sources, self.noise(value["noise"], len(sensors)), self.fitted(value.get("fitted"))
        )

    def entries(self, value: Any, what: str, needed: Collection[str], possible: Collection[str] = ()) -> None:
        self.that(isinstance(value, dict), f"{what} is not an object")
        for name in sorted(needed):
            self.that(name in value, f'{what} has no "{name}"')
        for name in value:
            self.that(name in needed or name in possible, f"{what} has an unknown entry {shortened(name)}")

    def names(self, value: Any, what: str) -> tuple[str, ...]:
        self.that(isinstance(value, list), f"there is no list of {what}")
        try:
            return as_names(value, what)
        except ModelError as error:
            raise self.refusal(error) from error

    def number(self, value: Any, what: str, least: float = -math.inf, most: float = math.inf) -> float:
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        inside = plain and least <= value <= most and abs(value) <= sys.float_info.max  # JSON has whole numbers beyond
        self.that(inside, f"{what} is {shortened(value)}, but must be a number in [{least:g}, {most:g}]")
        return float(value)

    def text(self, value: Any, what: str) -> str:
        self.that(isinstance(value, str) and value != "", f"{what} is {shortened(value)}, but must be text")
        return str(value)

    def noise(self, value: Any, n_sensors: int) -> Noise:
        self.entries(value, '"noise"', {"false_alarm", "miss"})
        false_alarm, miss = (self._rate(value[name], f"{name} rate", n_sensors) for name in ("false_alarm", "miss"))
        try:
            return Noise(false_alarm, miss)
        except ModelError as error:
            raise self.refusal(error) from error

    def _rate(self, value: Any, what: str, n_sensors: int) -> float | list[float]:
        if not isinstance(value, list):
            return self.number(value, f"the {what}", 0, 1)
        self.that(len(value) == n_sensors, f"there are {len(value)} {what}s for {n_sensors} sensors")
        return [self.number(rate, f"a {what}", 0, 1) for rate in value]

    def sources(self, value: Any, sensors: tuple[str, ...]) -> tuple[SourceEntry, ...]:
        self.that(isinstance(value, list), '"sources" is not a list')
        fits = len(value) * len(sensors) <= CELLS_LIMIT
        self.that(fits, f"{len(value)} sources times {len(sensors)} sensors are more cells than memory is sure to hold")
        place = {name: i for i, name in enumerate(sensors)}
        entries = tuple(self._source(entry, f"source {number}", place) for number, entry in enumerate(value, 1))
        self.that(len({entry.sensors for entry in entries}) == len(entries), "two sources have the same sensors")
        self.names([entry.name for entry in entries if entry.name is not None], "source names")
        return entries

    def _source(self, value: Any, what: str, place: Mapping[str, int]) -> SourceEntry:
        self.entries(value, what, {"sensors", "probability"}, {"error", "name"})
        names, error, name = value["sensors"], value.get("error"), value.get("name")
        self.that(isinstance(names, list) and len(names) > 0, f"{what} lists no sensors")
        for sensor in names:
            if not isinstance(sensor, str) or sensor not in place:
                raise self.refusal(f"{what} names an unknown sensor {shortened(sensor)}")
        self.that(len(set(names)) == len(names), f"{what} lists a sensor twice")
        return SourceEntry(
            sensors=tuple(sorted(place[sensor] for sensor in names)),
            probability=self.number(value["probability"], f"the probability of {what}", 0, 1),
            error=None if error is None else self.number(error, f"the error of {what}", 0),
            name=None if name is None else self.text(name, f"the name of {what}"),
        )

    def fitted(self, value: Any) -> FittedEntry | None:
        if value is None:
            return None
        self.entries(value, '"fitted"', FITTED)
        n_samples, n_iter, converged = value["n_samples"], value["n_iter"], value["converged"]
        self.that(type(n_iter) is int and n_iter >= 0, f"n_iter is {shortened(n_iter)}, but must be a count")
        self.that(isinstance(converged, bool), f"converged is {shortened(converged)}, but must be true or false")
        return FittedEntry(
            by=self.text(value["by"], '"by"'),
            method=self.text(value["method"], "the method"),
            n_samples=None if n_samples is None else self.number(n_samples, "n_samples", 0),
            log_likelihood=self._log_likelihood(value["log_likelihood"]),
            n_iter=n_iter,
            converged=converged,
            diagnostics=self._diagnostics(value["diagnostics"]),
        )

    def _log_likelihood(self, value: Any) -> float | None:
        if value is None:
            return None
        return -math.inf if value == "-inf" else self.number(value, "the log-likelihood")

    def _diagnostics(self, value: Any) -> dict[str, Any]:
        self.that(isinstance(value, dict), '"diagnostics" is not an object')
        try:
            return dict(as_json(value))
        except RecursionError as error:  # JSON reads deeper than it could be written again
            raise self.refusal("it is nested too deeply") from error
