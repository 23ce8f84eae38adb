"""Work through a plan on all cores; every finished job is one line on disk and is not run again; plans in files."""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import signal
import threading
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from bica.compare.contest import ContestProblem, OwnTable, SimulatedRows
from bica.compare.task import Setting
from bica.data.readers.engine import connection, path_literal, text_literal
from bica.errors import BicaWarning, DataError, LimitError, OutputError, SettingError
from bica.output import check_target, temporary_folder, write_whole
from bica.progress import has_executor, n_threads, report, spread
from bica.text import brief

Record = dict[str, Any]
FORMATS = {".csv": "csv, HEADER", ".parquet": "parquet"}


class RecordFile:
    """A file of JSON lines that only grows; a job counts as finished once its line is on the disk."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            check_target(self.path)
        self.records = read_records(self.path) if self.path.exists() else []
        self._cut_torn_line()

    def _cut_torn_line(self) -> None:
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n"):
            whole = self.path.read_bytes().rfind(b"\n") + 1
            os.truncate(self.path, whole)

    def add(self, record: Record) -> None:
        """Write one record and wait until the disk has it."""
        try:
            with open(self.path, "ab") as file:
                file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror or error}") from None
        self.records.append(record)


def read_records(path: str | Path) -> list[Record]:
    """The records in a file of results; a torn last line is left out."""
    try:
        content = Path(path).read_bytes()
        lines = content[: content.rfind(b"\n") + 1].decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as results: {error}") from None
    return [_record(line, number, path) for number, line in enumerate(lines, 1)]


def _record(line: str, number: int, path: str | Path) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or nested too deeply
        record = None
    if not isinstance(record, dict) or "contender" not in record or not all(map(_is_plain, record.values())):
        raise DataError(f"{path} is no file of results: line {number} is not a record of a comparison")
    return record


def _is_plain(value: object) -> bool:
    """Whether this is a value of a flat record; whole numbers are some that can be written as 64 bits."""
    return value is None or isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 1 << 63)


def write_table(records: Iterable[Record], path: str | Path, *, overwrite: bool = False) -> None:
    """Write the records as a table, one row each, CSV or Parquet as the ending says, whole or not at all."""
    ending = Path(path).suffix
    if ending not in FORMATS:
        raise SettingError(f"a table of results is written as {' or '.join(FORMATS)}, but {path} ends in {ending!r}")
    check_target(path, overwrite=overwrite)
    with temporary_folder() as folder:
        source, target = folder / "records.jsonl", folder / f"table{ending}"
        source.write_text("".join(json.dumps(record) + "\n" for record in records))
        if not source.stat().st_size:
            raise OutputError(f"{path} would be empty: there are no results yet")
        with connection() as engine:
            rows = f"read_json({path_literal(source)}, format='newline_delimited', sample_size=-1)"
            place = f"{text_literal(str(target))} (FORMAT {FORMATS[ending]})"
            engine.execute(f"COPY (SELECT * FROM {rows}) TO {place}")  # noqa: S608 (paths of our own, quoted)
        write_whole(path, target.read_bytes(), overwrite=overwrite)


ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Job(Protocol):
    """Something to be done once: a plain value that can be sent to another process."""

    def key(self) -> Record:
        """What distinguishes it from all other jobs of a plan: plain values, among them ``contender``."""
        ...

    def perform(self) -> Record:
        """Do it; return the key and the outcome as one flat record."""
        ...


def run_plan(plan: Sequence[Job], path: str | Path, *, n_jobs: int | None = None) -> list[Record]:
    """Do every job of ``plan`` that ``path`` does not hold yet; return the records of the plan, in its order.

    A killed run continues where it stopped: call again with the same path. ``n_jobs`` processes of one thread each
    share the work, counted as scikit-learn does: None is one, which is this process, and -1 is one per core. Ctrl-C
    gives up the running jobs. In a script, call this under ``if __name__ == "__main__":``, since each process imports
    the script again.
    """
    n_processes = n_threads(n_jobs)
    file = RecordFile(path)
    names = [_name(job.key()) for job in plan]
    done = _named(file.records, plan)
    left = [job for job, name in zip(plan, names, strict=True) if name not in done]
    report("tasks", len(plan) - len(left), len(plan))
    for number, record in enumerate(_results(left, n_processes), 1):
        file.add(record)
        report("tasks", len(plan) - len(left) + number, len(plan))
    done = _named(file.records, plan)
    return [done[name] for name in names]


def _name(key: Record) -> tuple[object, ...]:
    return tuple(key.values())


def _named(records: Sequence[Record], plan: Sequence[Job]) -> dict[tuple[object, ...], Record]:
    """The records by the values of their keys; records of other plans are left out."""
    parts = list(plan[0].key()) if plan else []
    return {tuple(record[part] for part in parts): record for record in records if record.keys() >= set(parts)}


def _results(plan: list[Job], n_jobs: int) -> Iterator[Record]:
    """The records of all jobs, as they become ready."""
    if n_jobs == 1 or len(plan) < 2 or has_executor():
        yield from spread(_perform, plan, 1)
        return
    fresh = multiprocessing.get_context("spawn")  # a forked copy would inherit threads in unknown states
    theirs, ours = fresh.Pipe(duplex=False)
    workers = ProcessPoolExecutor(n_jobs, fresh, initializer=_obey, initargs=(theirs,))
    with _one_thread(), theirs, workers as pool, ours:  # whatever ends this closes our end of the pipe first
        try:
            for future in as_completed([pool.submit(_perform, job) for job in plan]):
                yield future.result()
            pool.shutdown()
        except BrokenProcessPool:
            raise LimitError(
                "a process ended in the middle of its work, perhaps for lack of memory; what is finished is kept: "
                "run again to continue, with fewer processes"
            ) from None


def _perform(job: Job) -> Record:
    """The record of one job; what a method warns of belongs to a fit of one's own, not to one of thousands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicaWarning)
        return job.perform()


def _obey(parent: Connection) -> None:
    """End with the parent, and leave Ctrl-C, which reaches every process, to it.

    A method answers Ctrl-C with what it has found so far, which must not count as finished.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(os._exit, 0)  # nothing is left to be written; tearing packages down may print on the screen
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """The other end of the pipe closes when the parent wants no more, or is gone, however it went."""
    with suppress(EOFError, OSError):
        parent.recv_bytes()
    os._exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes started inside use one thread each, so that their CPU time is that of one core."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# A contest as a short TOML file: which tables and networks, which methods, how many runs.

KNOWN = {
    "": {"methods", "runs", "table", "simulated"},
    "table": {"path", "truth", "sources"},
    "simulated": {"network", "rows", "flips"},
}


@dataclass(frozen=True, slots=True)
class ContestPlan:
    """What a file asks for; None where it leaves the choice to the reader."""

    problems: Sequence[ContestProblem]
    methods: tuple[str, ...] | None = None
    runs: int | None = None


def read_plan(path: str | Path) -> ContestPlan:
    r"""Read a contest; files that it names are found beside it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "plan.toml")
    ...     _ = file.write_text('runs = 2\n[[simulated]]\nnetwork = "bars 3"\nrows = [100, 500]')
    ...     [problem.title for problem in read_plan(file).problems]
    ['bars 3, 100 rows', 'bars 3, 500 rows']
    """
    try:
        content = tomllib.loads(Path(path).read_bytes().decode())
    except (OSError, ValueError, RecursionError) as error:  # no TOML, no UTF-8, or a number of thousands of digits
        raise DataError(f"{path} cannot be read as a plan: {error}") from None
    return _Parts(path).plan(content)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a file, each checked; errors name the file."""

    path: str | Path

    def plan(self, content: dict[str, Any]) -> ContestPlan:
        self._check_names(content, "")
        tables, drawn = (self._list(content, name, dict) for name in ("table", "simulated"))
        problems = [self._table(part) for part in tables] + [s for part in drawn for s in self._simulated(part)]
        if not problems:
            raise DataError(f"{self.path} names nothing to compare methods on; add a [[table]] or a [[simulated]]")
        methods = tuple(self._list(content, "methods", str)) or None
        return ContestPlan(problems, methods, self._count(content, "runs"))

    def _table(self, part: dict[str, Any]) -> ContestProblem:
        self._check_names(part, "table")
        path, truth = self._text(part, "path"), self._text(part, "truth")
        if path is None:
            raise DataError(f"{self.path}: a [[table]] needs a path")
        beside = Path(self.path).parent
        return OwnTable(
            path=str(beside / path),
            truth=None if truth is None else str(beside / truth),
            n_sources=self._count(part, "sources"),
        )

    def _simulated(self, part: dict[str, Any]) -> list[ContestProblem]:
        self._check_names(part, "simulated")
        network = self._text(part, "network")
        if network is None:
            raise DataError(f'{self.path}: [[simulated]] needs a network, such as "topology one"')
        rows, flips = self._list(part, "rows", int) or [1000], self._list(part, "flips", int | float) or [0.0]
        if min(rows) < 1 or not all(0 <= share < 1 for share in flips):
            raise DataError(f"{self.path}: rows are whole numbers from 1 up, and flips lie in [0, 1)")
        return [
            SimulatedRows(setting=Setting(network=network, n_samples=count, flip_rate=float(share)))
            for count in rows
            for share in flips
        ]

    def _check_names(self, part: dict[str, Any], what: str) -> None:
        strange = sorted(part.keys() - KNOWN[what])
        if strange:
            place = f" in [[{what}]]" if what else ""
            known = ", ".join(sorted(KNOWN[what]))
            raise DataError(f"{self.path} has {brief(strange[0])}{place}, which means nothing; it can have {known}")

    def _text(self, part: dict[str, Any], name: str) -> str | None:
        value = part.get(name)
        if value is not None and not isinstance(value, str):
            raise DataError(f"{self.path}: {name} is {brief(value)}; give a text in quotes")
        return value

    def _count(self, part: dict[str, Any], name: str) -> int | None:
        value = part.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise DataError(f"{self.path}: {name} is {brief(value)}; give a whole number from 1 up")
        return value

    def _list(self, part: dict[str, Any], name: str, kind: Any) -> list[Any]:
        value = part.get(name, [])
        value = value if isinstance(value, list) else [value]
        if not all(isinstance(item, kind) and not isinstance(item, bool) for item in value):
            raise DataError(
                f"{self.path}: {name} holds something else than it should; look at the example in the guide"
            )
        return value
