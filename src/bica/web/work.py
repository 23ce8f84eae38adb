"""What may take long, in a process of its own (``python -m bica.web.work``): reading, learning, decoding, explaining.

One line of JSON on standard input says what to do; lines of JSON on standard output say how far it is and how it ended.
A second line, or the end of standard input, asks to stop: what was found so far is kept.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from time import monotonic
from typing import IO, Any

import numpy as np

from bica.data.columns import ColumnLook, Columns
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.data.tables import looks_in, open_table
from bica.data.writers import activity_file
from bica.diagnose.hints import hints
from bica.diagnose.verdicts import Diagnosis
from bica.errors import BicaError, ColumnWarning, SettingError
from bica.estimate.forecast import forecast
from bica.estimate.settings import KnownSource
from bica.invert.decode import decode, decode_table
from bica.methods import method_named
from bica.model.fit import Fit
from bica.pipeline import learn, observe
from bica.progress import ALL_CORES, COMPILING, listening, report
from bica.report.content import parts_of
from bica.report.page import Parts, page_of, shown_name
from bica.text import BEFORE_A_FIT, Nouns, harmless
from bica.web.store import Store, TableEntry, explained

PAUSE = 0.1  # seconds between two reports of the same loop
ROWS_LISTED = 500
COLUMNS_LISTED = 2000
CHOICES = {"noise": ("auto", "estimate", "two-rates", "per-sensor"), "edges": ("auto", "sure", "lossy")}


def options_of(reading: Mapping[str, Any], *, weighted: bool = True) -> dict[str, Any]:
    """How the page says a table is to be read, checked, as ``open_table`` takes it; weights are left out if not wanted.

    >>> options_of({"binarize": {"dBm": -70}, "weights": "n", "drop": ["ward"], "other": 1})
    {'drop': ['ward'], 'binarize': {'dBm': -70.0}, 'sample_weight': 'n'}
    """
    options: dict[str, Any] = {"drop": [str(name) for name in _list(reading, "drop")]}
    options |= {key: str(reading[key]) for key in ("id", "time") if reading.get(key)}
    thresholds, weights = reading.get("binarize"), reading.get("weights")
    if isinstance(thresholds, Mapping) and thresholds:
        options["binarize"] = {str(name): _number(value, "a threshold") for name, value in thresholds.items()}
    elif thresholds not in (None, "", {}):
        options["binarize"] = _number(thresholds, "a threshold")
    if weights and weighted:
        options["sample_weight"] = str(weights)
    elif weights:
        options["drop"].append(str(weights))
    return {key: value for key, value in options.items() if value != []}


def _number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SettingError(f"{what} is a number, but {value!r} was given") from None


def read_table(store: Store, task: Mapping[str, Any]) -> dict[str, Any]:
    """What is in a table: its columns, its rows, and what they say about hidden sources before any fit.

    What cannot be read is noted with the columns, so that the page can ask what they are.
    """
    entry = store.table(task["table"])
    looks = looks_in(entry.path)
    entry = replace(entry, reading=suggested(looks) if task.get("reading") is None else task["reading"])
    try:
        found = _described(entry, looks)
    except BicaError as error:
        if not looks:
            raise
        sentence = _without_paths(harmless(str(error)), store, task)
        found = {"error": sentence, "columns": [_look(look, SUGGESTED[look.role]) for look in looks[:COLUMNS_LISTED]]}
    store.write_table(replace(entry, read=found))
    return {"table": entry.id}


SUGGESTED = {"sensor": "sensor", "measurement": "sensor", "index": "drop", "text": "drop", "id": "id", "time": "time"}


def suggested(looks: Sequence[ColumnLook]) -> dict[str, Any]:
    """How a table is best read at first: text and ids beyond the first are left out; readers see an index and times.

    >>> suggested([ColumnLook("name", "id", ("Ann",)), ColumnLook("ward", "text", ("north",))])
    {'drop': ['ward'], 'id': 'name'}
    """
    ids = [look.name for look in looks if look.role == "id"]
    drop = [look.name for look in looks if look.role == "text"] + ids[1:]
    return {"drop": drop} | ({"id": ids[0]} if ids else {})


def _described(entry: TableEntry, looks: Sequence[ColumnLook]) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", ColumnWarning)
        columns = open_table(entry.path, **options_of(entry.reading)).columns
        observed = observe(entry.path, **options_of(entry.reading))
    counts, order = observed.data.counts(), observed.order
    report("checking the table", 0, None)
    diagnosis = Diagnosis.of(counts, trend=order.trend)
    alike, steps = order.persistence, [f"next: {step}" for step in diagnosis.next_steps()]
    in_order = [] if alike is None else [f"{alike.words()}; if they are consecutive slots, learn from their order"]
    notes = dict.fromkeys(str(warning.message) for warning in noted if issubclass(warning.category, ColumnWarning))
    return {
        "columns": _columns(counts, columns, looks),
        "n_columns": counts.n_sensors,
        "n_rows": counts.n_samples,
        "n_distinct": len(counts.weights),
        "verdict": diagnosis.verdict,
        "sentence": BEFORE_A_FIT[diagnosis.verdict],
        "notes": [harmless(note) for note in notes],
        "findings": [harmless(line) for line in [*diagnosis.reasons, *steps, *diagnosis.findings()[1:], *in_order]],
        "hints": [asdict(sign) for sign in hints(counts)],
        "forecast": forecast(counts, diagnosis.table).sentence,
    }


def _columns(counts: PatternCounts, columns: Columns, looks: Sequence[ColumnLook]) -> list[dict[str, Any]]:
    """Every column with what it was taken for, and how often it was on and missing if that is a sensor."""
    n_seen = counts.times_observed()
    share, missing = counts.ones() / np.maximum(n_seen, 1), 1 - n_seen / max(counts.n_samples, 1)
    place = {name: i for i, name in enumerate(counts.sensors)}
    beside = dict.fromkeys(columns.labels, "id") | {columns.time: "time"}
    listed = []
    for number, look in enumerate(looks[:COLUMNS_LISTED]):
        i = place.get(look.name)
        if i is None:
            listed.append(_look(look, "weights" if number == columns.weight else beside.get(look.name, "drop")))
        else:
            figures = {"share": round(float(share[i]), 6), "missing": round(float(missing[i]), 6)}
            listed.append(_look(look, "sensor") | figures)
    return listed


def _look(look: ColumnLook, role: str) -> dict[str, Any]:
    examples = [shown_name(cell) for cell in look.examples]
    return {"name": look.name, "shown": shown_name(look.name), "role": role, "examples": examples}


def learner_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the page says about learning, checked, as a method takes it.

    >>> learner_settings({"noise": "auto", "forbidden": [["door", "yard"]]})
    {'forbidden': (('door', 'yard'),)}
    """
    given: dict[str, Any] = {}
    for key, choices in CHOICES.items():
        chosen = settings.get(key) or "auto"
        if chosen not in choices:
            raise SettingError(f"{key} is one of {', '.join(choices)}, but {chosen!r} was given")
        given |= {} if chosen == "auto" else {key: chosen}
    known = [_known(each) for each in _list(settings, "known")]
    forbidden = tuple(_names(names) for names in _list(settings, "forbidden"))
    return given | ({"known": known} if known else {}) | ({"forbidden": forbidden} if forbidden else {})


def _known(given: Any) -> KnownSource:
    if not isinstance(given, Mapping):
        raise SettingError("a known source has its sensors and perhaps a name")
    return KnownSource(_names(given.get("sensors")), name=given.get("name") or None)


def _list(settings: Mapping[str, Any], key: str) -> list[Any]:
    found = settings.get(key) or []
    if not isinstance(found, list):
        raise SettingError(f"{key} is a list")
    return found


def _names(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not given or not all(isinstance(name, str) for name in given):
        raise SettingError("sensors are given as a list of their names")
    return tuple(given)


def fit_table(store: Store, task: Mapping[str, Any]) -> dict[str, Any]:
    """Learn the sources behind a table; the fit is kept as soon as there is one, and then what its report says."""
    entry, settings = store.table(task["table"]), task.get("settings") or {}
    reading: Mapping[str, Any] = entry.reading if task.get("reading") is None else task["reading"]
    method = method_named("likelihood", n_jobs=ALL_CORES, **learner_settings(settings))
    words = Nouns().with_changes({key: word or None for key, word in (settings.get("words") or {}).items()})
    in_order = bool(settings.get("temporal"))
    fit = learn(entry.path, method, np.random.default_rng(0), temporal=in_order, **options_of(reading)).fit
    fit = replace(fit, nouns=words, diagnostics={**fit.diagnostics, "settings": _noted(settings, reading)})
    if task.get("names_from"):
        fit = fit.with_names_of(store.fit(task["names_from"]))
    title = str(settings.get("title") or entry.name)
    kept = store.keep_fit(
        fit, title=title, table=entry.id, table_name=entry.name, reading=dict(reading), settings=dict(settings)
    )
    try:
        report("writing the report", 0, None)
        parts = live_parts(fit, entry, reading)
    except KeyboardInterrupt:  # asked to stop when the fit was there already: it comes once
        parts = live_parts(fit, entry, reading)
    store.write_report(kept.id, parts)
    return {"fit": kept.id, "interrupted": kept.interrupted}


def _noted(settings: Mapping[str, Any], reading: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as `bica fit` takes them, so that the report can say how to learn the same model again."""
    chosen = {key: settings[key] for key in ("noise", "edges", "temporal", "known", "forbidden") if settings.get(key)}
    return {key: value for key, value in {**chosen, **reading}.items() if value and value != "auto"} | {"seed": 0}


def live_parts(fit: Fit, entry: TableEntry, reading: Mapping[str, Any]) -> Parts:
    """What the report of a fit says on the page: as in the file that is sent, and the first rows of the table."""
    parts = parts_of(fit, open_table(entry.path, **options_of(reading)), origin=entry.name)
    return replace(parts, content={**parts.content, "rows": first_rows(fit, entry, reading)})


def first_rows(fit: Fit, entry: TableEntry, reading: Mapping[str, Any]) -> dict[str, Any] | None:
    """The first rows of a table with the sources behind each, as ``report.js`` lists them."""
    table = open_table(entry.path, **options_of(reading, weighted=False))
    chunk = next(iter(table.chunks()), None)
    if chunk is None:
        return None
    rows = Rows.of_words(chunk.words, chunk.observed, len(table.sensors))
    rows = replace(rows.pick(np.arange(min(ROWS_LISTED, len(rows.words)))), sensors=table.sensors)
    rows = rows.matched(fit.model.sensors)
    found = decode(fit.model, rows.words, rows.observed, nearest=True)
    cells = rows.cells(fit.model.n_sensors)
    listed = [
        {
            "label": " ".join(shown_name(texts[i]) for texts in chunk.labels) or str(i + 1),
            "on": np.flatnonzero(cells[i] == 1).tolist(),
            "unknown": np.flatnonzero(cells[i] > 1).tolist(),
            "sources": np.flatnonzero(found.activity[i]).tolist() if found.feasible[i] else None,
        }
        for i in range(len(cells))
    ]
    return {"list": listed, "n_rows": fit.n_samples or len(listed)}


def decode_rows(store: Store, task: Mapping[str, Any]) -> dict[str, Any]:
    """The activity behind every row of a fit's table, as a CSV file beside the model."""
    fit, noted = store.fit(task["fit"]), store.fit_entry(task["fit"])
    entry = store.table(noted.table)
    table = open_table(entry.path, **options_of(noted.reading, weighted=False))
    target, n_rows = str(store.home("fits", noted.id) / "activity.csv"), 0
    with activity_file(target, fit.source_names(), overwrite=True, labels=table.columns.labels) as write:
        for found in decode_table(fit.model, table):
            write(found.activity, found.feasible, found.labels)
            n_rows += len(found.activity)
            report("rows decoded", n_rows, None if noted.n_rows is None else int(noted.n_rows))
    return {"fit": noted.id, "file": "activity.csv"}


def write_report(store: Store, task: Mapping[str, Any]) -> dict[str, Any]:
    """The report to send, one file beside the model, from the table itself if the fit has one."""
    fit, noted = store.fit(task["fit"]), store.fit_entry(task["fit"])
    with_rows, anonymise = bool(task.get("with_rows")) and noted.table is not None, bool(task.get("anonymise"))
    table, origin = None, ""
    if noted.table is not None:
        entry = store.table(noted.table)
        table, origin = open_table(entry.path, **options_of(noted.reading, weighted=not with_rows)), entry.name
    page = page_of(parts_of(fit, table, with_rows=with_rows, anonymise=anonymise, origin=origin))
    page.save(store.home("fits", noted.id) / "report.html", overwrite=True)
    return {"fit": noted.id, "file": "report.html"}


TASKS: Mapping[str, Callable[[Store, Mapping[str, Any]], dict[str, Any]]] = {
    "read": read_table,
    "fit": fit_table,
    "activity": decode_rows,
    "report": write_report,
    "explain": explained,
}


class Teller:
    """Writes how the work goes, at a bearable pace; raises ``KeyboardInterrupt`` once after a request to stop."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream, self.asked_to_stop = stream, threading.Event()
        self.last, self.what = -PAUSE, ""

    def send(self, **news: Any) -> None:
        """One line of JSON."""
        self.stream.write(json.dumps(news, allow_nan=False) + "\n")
        self.stream.flush()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """The listener of ``bica.progress``."""
        if self.asked_to_stop.is_set() and what != COMPILING:  # which cannot be broken off
            self.asked_to_stop.clear()
            raise KeyboardInterrupt
        if what != self.what or monotonic() >= self.last + PAUSE or done == total:
            self.last, self.what = monotonic(), what
            self.send(what=what, done=done, total=total)


def do(task: Mapping[str, Any], teller: Teller) -> dict[str, Any]:
    """Do one task and say how it ended: with ``result``, ``stopped`` or one plain sentence as ``error``."""
    store = Store(task["folder"])
    try:
        with listening(teller), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"result": TASKS[task["kind"]](store, task)}
    except KeyboardInterrupt:
        return {"stopped": "stopped before there was anything to keep"}
    except Exception as error:  # noqa: BLE001 (the last stop: nothing above can report it better)
        return {"error": _without_paths(_sentence(error), store, task)}


def _sentence(error: Exception) -> str:
    if isinstance(error, BicaError):
        return harmless(str(error))
    if isinstance(error, MemoryError):
        return "this machine has not enough memory for this; try fewer rows or columns"
    if isinstance(error, OSError):
        return harmless(f"{error.filename or 'a file'} cannot be used: {error.strerror or error}")
    return harmless(f"this is a bug in bica, not in your data ({type(error).__name__}: {error})")


def _without_paths(sentence: str, store: Store, task: Mapping[str, Any]) -> str:
    """The sentence with the name of the table as the user knows it, not where its copy is."""
    try:
        entry = store.table(task.get("table") or store.fit_entry(task.get("fit")).table)
    except BicaError:
        return sentence
    return sentence.replace(entry.path, entry.name)


def main() -> None:
    """Wait for a task, do it, and end, or go on with ``--many``; libraries that print do so on standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    teller = Teller(answers)
    teller.send(ready=True)
    if sys.argv[1:] == ["--many"]:
        for line in sys.stdin:
            teller.send(**do(json.loads(line), teller))
        return
    line = sys.stdin.readline()
    if not line.strip():
        return
    threading.Thread(target=_hear, args=(teller,), daemon=True).start()
    teller.send(**do(json.loads(line), teller))
    answers.close()
    os._exit(0)  # threads of libraries have nothing left to say


def _hear(teller: Teller) -> None:
    sys.stdin.readline()
    teller.asked_to_stop.set()


if __name__ == "__main__":
    main()
