"""The model file: one JSON document, checked strictly when it is read, never pickle; and the intervals written into it.

Everything here is plain values, so that a model can be shown without loading NumPy. JSON has no infinity: a
log-likelihood of minus infinity is the text ``"-inf"``, and an error that is not known is left out. The interval of a
source follows from its probability and error: it is written for other programs, and checked but not used on reading.
A model with sure edges is written as version 1, as ever; lossy edges make it version 2, where ``reach`` and its errors
stand beside the sensors of a source.
"""

import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as shortened
from statistics import NormalDist
from typing import Any

from bica.errors import ModelError, ModelFileError
from bica.output import write_whole
from bica.text import USUAL_NOUNS, Nouns, as_distinct_names, as_name, shown_names

LEVEL = 0.95  # of every interval unless another is asked for
HARDLY_IN_DOUBT = 0.99  # a support from which on a source is as good as certain
NEAR = 2.0  # errors: closer to 0 or 1, the log odds of an estimate mean little
LARGEST_LOG_ODDS = 700.0  # beyond that the probability is 1 to the last digit


def probability_interval(probability: float, error: float, level: float = LEVEL) -> tuple[float, float]:
    """The interval that holds the true probability at confidence ``level``, from an estimate and its standard error.

    The interval is symmetric in the log odds, where estimates spread about evenly also near 0 and 1, so it never
    leaves [0, 1]. An estimate of exactly 0 or 1 has no log odds; there the plain interval is cut at the ends.

    >>> [round(end, 3) for end in probability_interval(0.02, 0.01)]
    [0.007, 0.053]
    >>> probability_interval(0.3, 0.0)
    (0.3, 0.3)
    """
    if math.isnan(error):
        return math.nan, math.nan
    half = NormalDist().inv_cdf(0.5 + level / 2) * error
    if probability in (0.0, 1.0) or error == 0.0:
        return max(0.0, probability - half), min(1.0, probability + half)
    log_odds = math.log(probability) - math.log1p(-probability)
    half /= probability * (1.0 - probability)
    return _probability_of(log_odds - half), _probability_of(log_odds + half)


def rate_interval(rate: float, error: float, level: float = LEVEL) -> tuple[float, float]:
    """The interval of a reach or a leak, which may well be 1 or 0.

    An estimate within two errors of either has the plain interval, cut at the end: there, one that is symmetric in the
    log odds would leave nothing out. Others have the interval of a probability.

    >>> [round(end, 3) for end in rate_interval(0.001, 0.01)], [round(end, 3) for end in rate_interval(0.8, 0.01)]
    ([0.0, 0.021], [0.78, 0.819])
    """
    if math.isnan(error) or min(rate, 1.0 - rate) > NEAR * error:
        return probability_interval(rate, error, level)
    half = NormalDist().inv_cdf(0.5 + level / 2) * error
    return max(0.0, rate - half), min(1.0, rate + half)


def _probability_of(log_odds: float) -> float:
    odds = math.exp(min(log_odds, LARGEST_LOG_ODDS))
    return odds / (1.0 + odds)


SCHEMA = "bica-model"
VERSION = 1  # of models with sure edges
LOSSY_VERSION = 2  # with the reach of lossy edges
BYTES_LIMIT = 1 << 28  # of a file
CELLS_LIMIT = 1 << 30  # of the mixing matrix: otherwise a small file could ask for more memory than there is
DEPTH_LIMIT = 50  # of nested diagnostics
Rate = float | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One source as a model file holds it."""

    sensors: tuple[int, ...]
    probability: float
    error: float | None = None
    name: str | None = None
    reach: tuple[float, ...] | None = None  # of each sensor, where edges are lossy
    reach_error: tuple[float | None, ...] | None = None

    def reach_interval(self, edge: int) -> tuple[float, float] | None:
        """Where the true reach of the sensor at this place lies with 95 % certainty; None without an error."""
        error = None if self.reach_error is None else self.reach_error[edge]
        return None if self.reach is None or error is None else rate_interval(self.reach[edge], error)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the true probability lies with 95 % certainty; None without an error.

        >>> [round(end, 3) for end in SourceEntry((0, 1), 0.2, error=0.01).interval]
        [0.181, 0.22]
        """
        return None if self.error is None else probability_interval(self.probability, self.error)


@dataclass(frozen=True, slots=True)
class ModelDocument:
    """The content of a model file in plain values."""

    sensors: tuple[str, ...]
    sources: tuple[SourceEntry, ...]
    false_alarm: Rate
    miss: Rate
    fitted: Mapping[str, Any] = field(default_factory=dict)  # how the model was learned; empty if it was given
    nouns: Nouns = USUAL_NOUNS  # what the user calls sensors, sources and rows
    leak_error: tuple[float | None, ...] | None = None  # standard errors of the false-alarm rates, sensor by sensor

    @property
    def has_lossy_edges(self) -> bool:
        """Whether some source does not always switch on a sensor that it reaches."""
        return any(source.reach is not None for source in self.sources)

    def source_names(self) -> tuple[str, ...]:
        """A name for every source, no two alike: the user's or, by its place, the user's noun and a number."""
        return shown_names([source.name for source in self.sources], self.nouns.source[0])


def known_numbers(values: Iterable[float]) -> tuple[float | None, ...]:
    """The numbers, with None in place of NaN.

    >>> known_numbers([0.5, math.nan])
    (0.5, None)
    """
    return tuple(None if math.isnan(value) else float(value) for value in values)


def document_text(document: ModelDocument) -> str:
    """The document as JSON, the same bytes for the same document."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "version": LOSSY_VERSION if document.has_lossy_edges else VERSION,
        "sensors": list(document.sensors),
        "sources": [_source_json(source, document.sensors) for source in document.sources],
        "noise": {"false_alarm": document.false_alarm, "miss": document.miss},
        "fitted": {name: as_json(document.fitted[name]) for name in FITTED if name in document.fitted},
    }
    if document.has_lossy_edges and document.leak_error is not None:
        content["noise"]["false_alarm_error"] = list(document.leak_error)
    if document.nouns != USUAL_NOUNS:
        content["words"] = document.nouns.changes()
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _source_json(source: SourceEntry, sensors: tuple[str, ...]) -> dict[str, Any]:
    entry: dict[str, Any] = {"sensors": [sensors[i] for i in source.sensors], "probability": source.probability}
    if source.reach is not None:
        entry["reach"] = list(source.reach)
    if source.reach is not None and source.reach_error is not None:
        entry["reach_error"] = list(source.reach_error)
    if source.error is not None:
        entry["error"] = source.error
    if source.interval is not None:
        entry["interval"] = list(source.interval)
    if source.name is not None:
        entry["name"] = source.name
    return entry


def write_document(document: ModelDocument, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a model file, whole or not at all."""
    write_whole(path, document_text(document), overwrite=overwrite)


def read_document(path: str | Path) -> ModelDocument:
    """The document in a model file, checked; whatever is wrong with it is reported in one sentence."""
    try:
        with open(path, "rb") as file:
            content = file.read(BYTES_LIMIT + 1)
    except FileNotFoundError as error:
        raise ModelFileError(f"there is no file {path}; check the name and the folder") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a path that no system accepts
        raise ModelFileError(f"{str(path)!r} cannot be read: {error}") from error
    return parse_document(content, str(path))


def parse_document(content: str | bytes, origin: str) -> ModelDocument:
    """The document in ``content``; ``origin`` names it in errors."""
    if len(content) > BYTES_LIMIT:
        raise ModelFileError(f"{origin} is not a model file: it is longer than {BYTES_LIMIT >> 20} MiB")
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
        value = json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_named_once)
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{origin} is not a model file: it is not UTF-8 text") from error
    except RecursionError as error:
        raise ModelFileError(f"{origin} is not a model file: it is nested too deeply") from error
    except ValueError as error:
        raise ModelFileError(f"{origin} is not a model file, or was cut short: {error}") from error
    try:
        return _document(value)
    except ModelError as error:
        raise ModelFileError(f"{origin} is not a valid model file: {error}") from error


def _finite(number: str) -> float:
    if not math.isfinite(float(number)):
        raise ValueError(f"{number} is not a finite number")
    return float(number)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("an object has two entries of the same name")
    return entries


def _document(value: Any) -> ModelDocument:
    _check(isinstance(value, dict) and value.get("schema") == SCHEMA, f'no "schema": "{SCHEMA}" in it')
    version = value.get("version")
    known = type(version) is int and version in (VERSION, LOSSY_VERSION)
    _check(known, f"it has version {shortened(version)}, but only {VERSION} and {LOSSY_VERSION} can be read here")
    _check_entries(value, "the file", {"schema", "version", "sensors", "sources", "noise"}, {"fitted", "words"})
    _check(isinstance(value["sensors"], list), '"sensors" is not a list of names')
    sensors = as_distinct_names(value["sensors"], "a sensor name")
    lossy = version == LOSSY_VERSION
    false_alarm, miss, leak_error = _noise(value["noise"], len(sensors), lossy)
    return ModelDocument(
        sensors,
        _sources(value["sources"], sensors, lossy),
        false_alarm,
        miss,
        _fitted(value.get("fitted", {})),
        _nouns(value.get("words", {})),
        leak_error,
    )


def _nouns(value: Any) -> Nouns:
    _check_entries(value, '"words"', (), ("sensors", "sources", "rows"))
    return Nouns(**value)


def _check(condition: bool, complaint: str) -> None:
    if not condition:
        raise ModelError(complaint)


def _check_entries(value: Any, what: str, needed: Collection[str], possible: Collection[str] = ()) -> None:
    _check(isinstance(value, dict), f"{what} is not an object")
    for name in sorted(needed):
        _check(name in value, f'{what} has no "{name}"')
    for name in value:
        _check(name in needed or name in possible, f"{what} has an unknown entry {shortened(name)}")


def _number(value: Any, what: str, least: float = -math.inf, most: float = math.inf) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    inside = plain and least <= value <= most and abs(value) <= sys.float_info.max  # whole numbers may lie beyond
    _check(inside, f"{what} is {shortened(value)}, but must be a number in [{least:g}, {most:g}]")
    return float(value) + 0.0  # makes -0.0 an ordinary zero


def _noise(value: Any, n_sensors: int, lossy: bool) -> tuple[Rate, Rate, tuple[float | None, ...] | None]:
    _check_entries(value, '"noise"', {"false_alarm", "miss"}, {"false_alarm_error"} if lossy else ())
    false_alarm, miss = (_rate(value[name], f"{name} rate", n_sensors) for name in ("false_alarm", "miss"))
    n_rates = n_sensors if isinstance(false_alarm, tuple) or isinstance(miss, tuple) else 1
    for a, b in zip(_of_each(false_alarm, n_rates), _of_each(miss, n_rates), strict=True):
        _check(a + b < 1, "a sensor's false_alarm and miss rates add up to 1 or more, so it says nothing")
    return false_alarm, miss, _errors(value.get("false_alarm_error"), "false_alarm_error", n_sensors)


def _errors(value: Any, what: str, count: int) -> tuple[float | None, ...] | None:
    if value is None:
        return None
    _check(isinstance(value, list) and len(value) == count, f"{what} is not a list of {count} numbers")
    return tuple(None if error is None else _number(error, what, 0) for error in value)


def _rate(value: Any, what: str, n_sensors: int) -> Rate:
    if not isinstance(value, list):
        return _number(value, f"the {what}", 0, 1)
    _check(len(value) == n_sensors, f"there are {len(value)} {what}s for {n_sensors} sensors")
    return tuple(_number(rate, f"a {what}", 0, 1) for rate in value)


def _of_each(rate: Rate, n_rates: int) -> tuple[float, ...]:
    return rate if isinstance(rate, tuple) else (rate,) * n_rates


def _sources(value: Any, sensors: tuple[str, ...], lossy: bool) -> tuple[SourceEntry, ...]:
    _check(isinstance(value, list), '"sources" is not a list')
    fits = len(value) * len(sensors) <= CELLS_LIMIT
    _check(fits, f"{len(value)} sources times {len(sensors)} sensors are more cells than memory may hold")
    place = {name: i for i, name in enumerate(sensors)}
    entries = tuple(_source(entry, f"source {number}", place, lossy) for number, entry in enumerate(value, 1))
    sure = [entry.sensors for entry in entries if entry.reach is None or min(entry.reach) == 1]
    _check(len(set(sure)) == len(sure), "two sources have the same sensors")
    return entries


def _source(value: Any, what: str, place: Mapping[str, int], lossy: bool) -> SourceEntry:
    possible = {"error", "interval", "name"} | ({"reach", "reach_error"} if lossy else set())
    _check_entries(value, what, {"sensors", "probability"}, possible)
    names, error, name = value["sensors"], value.get("error"), value.get("name")
    _check(isinstance(names, list) and len(names) > 0, f"{what} lists no sensors")
    for sensor in names:
        if not isinstance(sensor, str) or sensor not in place:
            raise ModelError(f"{what} names an unknown sensor {shortened(sensor)}")
    _check(len(set(names)) == len(names), f"{what} lists a sensor twice")
    _check_interval(value.get("interval"), f"the interval of {what}")
    order = sorted(range(len(names)), key=lambda k: place[names[k]])
    reach = _reach(value.get("reach"), what, len(names))
    lost = _errors(value.get("reach_error"), f"the reach_error of {what}", len(names))
    return SourceEntry(
        sensors=tuple(place[names[k]] for k in order),
        probability=_number(value["probability"], f"the probability of {what}", 0, 1),
        error=None if error is None else _number(error, f"the error of {what}", 0),
        name=None if name is None else as_name(name, f"the name of {what}") or None,
        reach=None if reach is None else tuple(reach[k] for k in order),
        reach_error=None if lost is None else tuple(lost[k] for k in order),
    )


def _reach(value: Any, what: str, n_sensors: int) -> tuple[float, ...] | None:
    if value is None:
        return None
    _check(isinstance(value, list) and len(value) == n_sensors, f"the reach of {what} is not one number per sensor")
    reach = tuple(_number(part, f"a reach of {what}", 0, 1) for part in value)
    _check(min(reach) > 0, f"a reach of {what} is 0, but a sensor that is never reached is not listed")
    return reach


def _check_interval(value: Any, what: str) -> None:
    if value is not None:
        _check(isinstance(value, list) and len(value) == 2, f"{what} is {shortened(value)}, but must be two numbers")
        low, high = (_number(end, what, 0, 1) for end in value)
        _check(low <= high, f"{what} ends before it begins")


def _fitted(value: Any) -> dict[str, Any]:
    _check_entries(value, '"fitted"', (), FITTED)
    return {name: check(value[name], name) for name, check in FITTED.items() if value.get(name) is not None}


def _words(value: Any, what: str) -> str:
    _check(value != "", f"{what} is empty")
    return as_name(value, what)


def _log_likelihood(value: Any, what: str) -> float | str:
    return "-inf" if value == "-inf" else _number(value, what)


def _count(value: Any, what: str) -> int:
    _check(type(value) is int and value >= 0, f"{what} is {shortened(value)}, but must be a count")
    return int(value)


def _truth(value: Any, what: str) -> bool:
    _check(isinstance(value, bool), f"{what} is {shortened(value)}, but must be true or false")
    return bool(value)


def _diagnostics(value: Any, what: str) -> dict[str, Any]:
    _check(isinstance(value, dict), f"{what} is {shortened(value)}, but must be an object")
    return dict(as_json(value))


FITTED: Mapping[str, Callable[[Any, str], Any]] = {
    "by": _words,
    "method": _words,
    "n_samples": lambda value, what: _number(value, what, 0),
    "log_likelihood": _log_likelihood,
    "n_iter": _count,
    "converged": _truth,
    "diagnostics": _diagnostics,
}


def as_json(value: Any, depth: int = DEPTH_LIMIT) -> Any:
    """The value in plain values that JSON can hold, entries of objects sorted; NumPy's values are accepted.

    >>> as_json({"worst": -math.inf, "by": ("a", None)})
    {'by': ['a', None], 'worst': '-inf'}
    """
    _check(depth > 0, "it is nested too deeply")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) + 0.0 if math.isfinite(value) else str(float(value))
    if isinstance(value, list | tuple):
        return [as_json(part, depth - 1) for part in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: as_json(value[key], depth - 1) for key in sorted(value)}
    if hasattr(value, "tolist"):
        return as_json(value.tolist(), depth)
    raise ModelError(f"a model file cannot hold {shortened(value)}; diagnostics are numbers, text, lists and mappings")
