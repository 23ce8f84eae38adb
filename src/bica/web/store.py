"""What the page keeps, a folder with tables and fits, so that none is lost; and what it asks of a fit at once."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.errors import DataError, InfeasibleError, SettingError
from bica.invert.explain import explain
from bica.invert.posterior import posterior
from bica.kernels.bits import packed
from bica.metrics.matching import paired_sources
from bica.model.files import read_document
from bica.model.fit import Fit
from bica.model.names import renamed
from bica.model.or_mixture import OrMixture
from bica.output import write_whole
from bica.report.content import parts_of
from bica.report.page import Parts, shown_name, with_plain_names

IDENTITY = re.compile(r"[0-9a-f]{12}")
NAME_LENGTH = 100  # characters of a file name that are kept
ABOUT, MODEL, REPORT = "about.json", "model.json", "report.json"


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table that the page may learn from."""

    id: str
    name: str  # as the user knows it
    path: str  # where it is: the user's own file, or the copy of what was dropped
    kept: bool  # whether it is a copy of ours
    time: str
    reading: Mapping[str, Any] = field(default_factory=dict)  # how it is read: thresholds, columns to leave out, ...
    read: Mapping[str, Any] | None = None  # what was found in it; None before it was read


@dataclass(frozen=True, slots=True)
class FitEntry:
    """A fit that is kept."""

    id: str
    title: str
    time: str
    table: str | None = None  # the id of its table
    table_name: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = ""
    interrupted: bool = False
    n_sources: int = 0
    n_sensors: int = 0
    n_rows: float | None = None
    words: Mapping[str, Any] = field(default_factory=dict)  # for one and several sources and sensors, if not ours


class Store:
    """Tables and fits, each in a folder of its own below ``tables`` and ``fits``."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        for part in ("tables", "fits"):
            (self.folder / part).mkdir(mode=0o700, parents=True, exist_ok=True)

    def home(self, part: str, identity: Any) -> Path:
        """The folder of an entry; ids are checked, so that no path leads elsewhere."""
        if not isinstance(identity, str) or not IDENTITY.fullmatch(identity):
            raise SettingError(f"there are no {part} of that name")
        return self.folder / part / identity

    def new_home(self, part: str) -> Path:
        """A new folder for an entry; it does not count as one before something says what it is about."""
        home = self.folder / part / secrets.token_hex(6)
        home.mkdir(mode=0o700)
        return home

    def new_table(self, path: Path, name: str, *, home: Path | None = None) -> TableEntry:
        """Note a table: the user's own file, or the copy of it in ``home``."""
        kept, home = home is not None, home or self.new_home("tables")
        entry = TableEntry(home.name, shown_file(name), str(path), kept, now())
        self.write_table(entry)
        return entry

    def write_table(self, entry: TableEntry) -> None:
        """Note what is known about a table."""
        _write_json(self.home("tables", entry.id) / ABOUT, asdict(entry))

    def table(self, identity: Any) -> TableEntry:
        """The table of this id."""
        content = _read_json(self.home("tables", identity) / ABOUT)
        if content is None:
            raise SettingError("that table is not here any more; bring it again")
        return TableEntry(**content)

    def tables(self) -> list[TableEntry]:
        """All tables, the latest first."""
        found = [_read_json(home / ABOUT) for home in (self.folder / "tables").iterdir()]
        return sorted(
            (TableEntry(**content) for content in found if content), key=lambda entry: entry.time, reverse=True
        )

    def keep_fit(self, fit: Fit, identity: str | None = None, **content: Any) -> FitEntry:
        """Keep a fit; once the model file is there, nothing loses it."""
        home = self.new_home("fits") if identity is None else self.home("fits", identity)
        fit.save(home / MODEL, overwrite=True)
        diagnosis = fit.diagnostics.get("diagnosis")
        entry = FitEntry(
            home.name,
            time=now(),
            verdict=str(diagnosis.get("verdict", "")) if isinstance(diagnosis, Mapping) else "",
            interrupted="interrupted" in fit.diagnostics,
            n_sources=fit.model.n_sources,
            n_sensors=fit.model.n_sensors,
            n_rows=fit.n_samples,
            words={"source": fit.nouns.source, "sensor": fit.nouns.sensor},
            **content,
        )
        _write_json(home / ABOUT, asdict(entry))
        return entry

    def fit_entry(self, identity: Any) -> FitEntry:
        """What is noted about the fit of this id."""
        home = self.home("fits", identity)
        if not (home / MODEL).is_file():
            raise SettingError("that fit is not here any more")
        return FitEntry(**(_read_json(home / ABOUT) or {"id": home.name, "title": "unnamed", "time": ""}))

    def fits(self) -> list[FitEntry]:
        """All fits, the latest first; the model file alone is enough to be one."""
        homes = [home for home in (self.folder / "fits").iterdir() if (home / MODEL).is_file()]
        entries = [self.fit_entry(home.name) for home in homes if IDENTITY.fullmatch(home.name)]
        return sorted(entries, key=lambda entry: entry.time, reverse=True)

    def fit(self, identity: Any) -> Fit:
        """The fit of this id."""
        self.fit_entry(identity)
        return Fit.of_document(read_document(self.home("fits", identity) / MODEL))

    def save_fit(self, identity: str, fit: Fit) -> None:
        """Replace the model file, as after a source was named."""
        fit.save(self.home("fits", identity) / MODEL, overwrite=True)

    def write_report(self, identity: str, parts: Parts) -> None:
        """Keep what the report of a fit says."""
        _write_json(self.home("fits", identity) / REPORT, asdict(parts))

    def report(self, identity: str) -> Parts | None:
        """What the report of a fit says; None if that was not written."""
        content = _read_json(self.home("fits", identity) / REPORT)
        return None if content is None else Parts(**content)

    def forget(self, part: str, identity: Any) -> None:
        """Remove an entry; the user's own file stays."""
        shutil.rmtree(self.home(part, identity), ignore_errors=True)

    def n_bytes(self) -> int:
        """How much the copies of tables take."""
        return sum(_size(file) for home in (self.folder / "tables").iterdir() for file in _listed(home))


def shown_file(name: str) -> str:
    r"""The last part of a file's name, without anything that leads elsewhere.

    >>> shown_file("../../etc/pass\x00wd"), shown_file("C:\\data\\alarms.csv"), shown_file("..")
    ('passwd', 'alarms.csv', 'table')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(letter for letter in last if letter.isprintable()).strip(". ")
    return plain[-NAME_LENGTH:] or "table"


def now() -> str:
    """The local time, to the second."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def is_model(path: str | Path) -> bool:
    """Whether a file looks like a model; its content is checked when it is read."""
    try:
        with open(path, "rb") as file:
            return b'"bica-model"' in file.read(200)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataError(f"{str(path)!r} is no path: {error}") from None


def bring(store: Store, path: str) -> TableEntry | FitEntry:
    """Note a file of the user's by its path: a table stays where it is, a model is copied."""
    if "\0" in path or not path.strip():
        raise DataError("give the path of a file, as in /home/me/alarms.csv")
    file = Path(os.path.expanduser(path.strip()))
    if not file.is_file():
        raise DataError(f"there is no file {file}; check the name and the folder")
    if is_model(file):
        return store.keep_fit(Fit.load(file), title=shown_file(file.name))
    return store.new_table(file.resolve(), file.name)


def _listed(home: Path) -> list[Path]:
    """The files of an entry; none if it is forgotten at this moment."""
    try:
        return list(home.iterdir())
    except OSError:
        return []


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, allow_nan=False), overwrite=True)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


# What the page asks about a fit, answered at once: names, explanations, a comparison.

EXPLANATIONS = 5
LIKELY = 40  # sources whose posterior is listed
LONGEST_NAME = 200  # characters of a name that the user gives


def parts(store: Store, identity: str) -> Parts:
    """What the report of a fit says; written anew where it is not kept, as for a model that was brought."""
    kept = store.report(identity)
    if kept is None:
        kept = parts_of(store.fit(identity))
        store.write_report(identity, kept)
    return kept


def rename(store: Store, identity: str, given: Mapping[str, Any]) -> list[str]:
    """Name sources by their places, and return the names of all as they are shown; an empty name takes it away."""
    fit = store.fit(identity)
    names = list(fit.model.names)
    for place, name in given.items():
        if not str(place).isdecimal() or int(place) >= len(names):
            raise SettingError("there is no such source")
        if not isinstance(name, str) or len(name) > LONGEST_NAME:
            raise SettingError(f"a name is a text of up to {LONGEST_NAME} characters")
        names[int(place)] = name.strip() or None
    checked = renamed(names, [str(j) for j in range(len(names))], {})
    fit = replace(fit, model=fit.model.with_names(checked))
    store.save_fit(identity, fit)
    shown = list(with_plain_names(fit, fit.nouns).model.source_names())
    kept = parts(store, identity)
    sources = [{**source, "name": name} for source, name in zip(kept.content["sources"], shown, strict=True)]
    store.write_report(identity, replace(kept, content={**kept.content, "sources": sources}))
    return shown


def explained(store: Store, task: Mapping[str, Any]) -> dict[str, Any]:
    """The likeliest explanations of one observation, and how probable it makes every source."""
    model, on, unknown = store.fit(task["fit"]).model, task.get("on", []), task.get("unknown", [])
    cells = np.zeros((1, model.n_sensors), np.uint8)
    cells[0, _places(on, model.n_sensors)] = 1
    cells[0, _places(unknown, model.n_sensors)] = 2
    words, observed = packed(cells == 1), packed(cells < 2)
    try:
        found = explain(model, words, observed, k=EXPLANATIONS)
    except InfeasibleError:
        return {"explanations": [], "posterior": [], "exact": True, "proven": True}
    active = posterior(model, words, observed)
    probability = np.nan_to_num(active.probability[0])
    order = np.argsort(-probability, kind="stable")[:LIKELY]
    return {
        "explanations": [
            {"sources": np.flatnonzero(row).tolist(), "p": _short(p)}
            for row, p in zip(found.activity, found.probability, strict=True)
        ],
        "posterior": [{"source": int(j), "p": _short(probability[j])} for j in order],
        "exact": bool(found.exact and active.exact.all()),
        "proven": found.proven,
    }


def _places(given: Any, n_sensors: int) -> list[int]:
    if not isinstance(given, list) or not all(type(i) is int and 0 <= i < n_sensors for i in given):
        raise SettingError("sensors are given by their places")
    return given


def compared(store: Store, first: str, second: str) -> dict[str, Any]:
    """Two fits side by side: which sources they share, and how often each is on."""
    left, right = store.fit(first), store.fit(second)
    _same_sensors(left.model, right.model)
    ordered = right.model.of_sensors([right.model.sensors.index(name) for name in left.model.sensors])
    pairs, noun = paired_sources(ordered, left.model), left.nouns.source[0]
    sides = [_side(store, identity, fit) for identity, fit in ((first, left), (second, right))]
    lines = [
        {"left": _source(left.model, pair.true, noun), "right": _source(ordered, pair.found, noun), "equal": pair.exact}
        for pair in pairs
    ]
    return {"sides": sides, "pairs": lines, "n_equal": sum(pair.exact for pair in pairs)}


def _same_sensors(left: OrMixture, right: OrMixture) -> None:
    if set(left.sensors) != set(right.sensors):
        raise SettingError("these two fits are about different sensors, so they cannot be compared")


def _side(store: Store, identity: str, fit: Fit) -> dict[str, Any]:
    entry = store.fit_entry(identity)
    return {
        "id": identity,
        "title": entry.title,
        "time": entry.time,
        "verdict": entry.verdict,
        "n_sources": fit.model.n_sources,
        "log_likelihood": None if fit.log_likelihood is None else _short(fit.log_likelihood),
        "n_rows": fit.n_samples,
    }


def _source(model: OrMixture, place: int | None, noun: str) -> dict[str, Any] | None:
    if place is None:
        return None
    sensors = [shown_name(model.sensors[i]) for i in np.flatnonzero(model.mixing[:, place])]
    name = shown_name(model.source_names(noun)[place])
    return {"name": name, "p": _short(model.probability[place]), "sensors": sensors}


def _short(value: float | NDArray[np.float64]) -> float | None:
    number = float(value)
    return float(f"{number:.6g}") if np.isfinite(number) else None
