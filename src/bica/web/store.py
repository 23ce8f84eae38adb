"""What the page keeps: a folder with the tables that were brought and the fits that were made, so that none is lost."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from bica.errors import DataError, SettingError
from bica.model.files import read_document
from bica.model.fit import Fit
from bica.output import write_whole
from bica.report.page import Parts

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
        told = _read_json(self.home("tables", identity) / ABOUT)
        if told is None:
            raise SettingError("that table is not here any more; bring it again")
        return TableEntry(**told)

    def tables(self) -> list[TableEntry]:
        """All tables, the latest first."""
        found = [_read_json(home / ABOUT) for home in (self.folder / "tables").iterdir()]
        return sorted((TableEntry(**told) for told in found if told), key=lambda entry: entry.time, reverse=True)

    def keep_fit(self, fit: Fit, identity: str | None = None, **told: Any) -> FitEntry:
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
            **told,
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
        told = _read_json(self.home("fits", identity) / REPORT)
        return None if told is None else Parts(**told)

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
        told = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None
