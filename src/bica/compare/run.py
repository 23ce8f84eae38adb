"""Work through a plan on all cores; every finished job is one line on disk and is not run again."""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from bica.data.readers.engine import connection, path_literal, text_literal
from bica.errors import BicaWarning, DataError, LimitError, OutputError, SettingError
from bica.output import check_target, temporary_folder, write_whole
from bica.progress import n_threads, report

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
    if not isinstance(record, dict) or "contender" not in record:
        raise DataError(f"{path} is no file of results: line {number} is not a record of a comparison")
    return record


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
    if n_jobs == 1 or len(plan) < 2:
        yield from map(_perform, plan)
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
