"""Work through a plan on all cores; what is on disk already is not done again."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bica.compare.records import Record, RecordFile
from bica.errors import SettingError
from bica.progress import report
from bica.threads import n_cores

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Job(Protocol):
    """Something to be done once: a plain value that can go to another process."""

    def key(self) -> Record:
        """What tells it from all other jobs of a plan: plain values, among them ``contender``."""
        ...

    def perform(self) -> Record:
        """Do it; the key and what came of it, as one flat record."""
        ...


def run_plan(plan: Sequence[Job], path: str | Path, *, n_jobs: int | None = None) -> list[Record]:
    """Do every job of ``plan`` that ``path`` does not hold yet; return the records of the plan, in its order.

    A killed run continues where it was: call again with the same path. ``n_jobs`` processes of one thread each share
    the work, by default one a core; with 1 the work is done right here. Ctrl-C lets the jobs at hand finish. In a
    script, call this under ``if __name__ == "__main__":``, since the processes read the script anew.
    """
    jobs = n_cores() if n_jobs is None else n_jobs
    if jobs < 1:
        raise SettingError(f"{jobs} processes can do nothing; give n_jobs from 1 up")
    file = RecordFile(path)
    names = [_name(job.key()) for job in plan]
    done = _named(file.records, plan)
    left = [job for job, name in zip(plan, names, strict=True) if name not in done]
    report("tasks", len(plan) - len(left), len(plan))
    for number, record in enumerate(_results(left, jobs), 1):
        file.add(record)
        report("tasks", len(plan) - len(left) + number, len(plan))
    done = _named(file.records, plan)
    return [done[name] for name in names]


def _name(key: Record) -> tuple[object, ...]:
    return tuple(key.values())


def _named(records: Sequence[Record], plan: Sequence[Job]) -> dict[tuple[object, ...], Record]:
    """Records by the values that make up the key of a job of this plan; those of other plans are left out."""
    parts = list(plan[0].key()) if plan else []
    return {tuple(record[part] for part in parts): record for record in records if record.keys() >= set(parts)}


def _results(plan: list[Job], n_jobs: int) -> Iterator[Record]:
    """Records as they become ready."""
    if n_jobs == 1 or len(plan) < 2:
        yield from map(_perform, plan)
        return
    fresh = multiprocessing.get_context("spawn")  # a forked copy would inherit threads in unknown states
    with _one_thread(), ProcessPoolExecutor(n_jobs, fresh, initializer=_ignore_interrupts) as pool:
        waiting = [pool.submit(_perform, job) for job in plan]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _perform(job: Job) -> Record:
    return job.perform()


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process; a method that ends early on it must not count as finished."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
