"""Jobs of the page: one at a time per browser, each in a process of its own; they go on when the tab is closed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from bica.errors import BicaError, SettingError

AT_ONCE = 2  # processes that work at the same time; further jobs wait
REMEMBERED = 200  # browsers whose last job is remembered
LONGEST_LINE = 1 << 24  # bytes of an answer
PATIENCE = 20.0  # seconds that work may take to end when the server does
CRASHED = "the process that did this ended by itself; perhaps there was not enough memory"
LONGEST_ANSWER = 30.0  # seconds until a question is given up
TOO_SLOW = "this model is too large to explain within half a minute; `bica explain` takes the time it needs"
KINDS = {
    "read": "reading the table",
    "fit": "learning the sources",
    "activity": "decoding the rows",
    "report": "writing the report",
}


class BusyError(BicaError, RuntimeError):
    """A browser asked for a second job, or a question took too long."""


@dataclass(slots=True, eq=False)
class Job:
    """One piece of work and how it goes."""

    kind: str
    about: Mapping[str, Any]  # which table or fit it is about
    id: str = field(default_factory=lambda: secrets.token_hex(6))
    state: str = "waiting"  # then "running"; at the end "done", "stopped" or "failed"
    what: str = ""
    done: int = 0
    total: int | None = None
    stopping: bool = False
    result: Mapping[str, Any] | None = None
    error: str = ""
    began: float = field(default_factory=monotonic)
    ended: float | None = None
    process: Process | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.ended is not None

    def as_dict(self) -> dict[str, Any]:
        """What a browser hears of it."""
        news = {key: getattr(self, key) for key in SHOWN}
        seconds = (self.ended or monotonic()) - self.began
        return news | {"title": KINDS[self.kind], "over": self.is_over, "seconds": round(seconds, 1)}

    def hear(self, news: Mapping[str, Any]) -> None:
        """Take in one line of the process."""
        if "what" in news:
            self.what, self.done, self.total = news["what"], news["done"], news["total"]
        elif "result" in news:
            self.state, self.result = "done", news["result"]
        elif "stopped" in news:
            self.state, self.error = "stopped", news["stopped"]
        elif "error" in news:
            self.state, self.error = "failed", news["error"]


SHOWN = ("id", "kind", "about", "state", "what", "done", "total", "stopping", "result", "error")


class Jobs:
    """The jobs of all browsers. A process waits ready, so that work begins at once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.of_browser, self.tasks = folder, dict[str, Job](), set[asyncio.Task[None]]()
        self.places = asyncio.Semaphore(AT_ONCE)
        self.spare: asyncio.Task[Process] | None = None

    def warm(self) -> None:
        """Have a process ready."""
        if self.spare is None:
            self.spare = asyncio.create_task(_new_process())

    def job(self, browser: str) -> Job | None:
        """The present or last job of a browser."""
        return self.of_browser.get(browser)

    def start(self, browser: str, kind: str, task: Mapping[str, Any]) -> Job:
        """Begin a job; a browser has one at a time."""
        present = self.job(browser)
        if present is not None and not present.is_over:
            raise BusyError(f"this browser is busy {KINDS[present.kind]}; wait for that, or stop it first")
        self.of_browser.pop(browser, None)  # the latest comes last
        job = self.of_browser[browser] = Job(kind, {key: task.get(key) for key in ("table", "fit")})
        self._forget_old()
        running = asyncio.create_task(self._run(job, {**task, "kind": kind, "folder": str(self.folder)}))
        self.tasks.add(running)
        running.add_done_callback(self.tasks.discard)
        return job

    def _forget_old(self) -> None:
        over = [browser for browser, job in self.of_browser.items() if job.is_over]
        for browser in over[: max(0, len(self.of_browser) - REMEMBERED)]:
            del self.of_browser[browser]

    async def _run(self, job: Job, task: Mapping[str, Any]) -> None:
        try:
            async with self.places:
                if not job.stopping:
                    await self._work(job, task)
        except (OSError, ValueError):
            job.error = CRASHED
        finally:
            if job.state in ("waiting", "running"):
                job.state = "stopped" if job.stopping else "failed"
                job.error = job.error or ("stopped before there was anything to keep" if job.stopping else CRASHED)
            job.ended = monotonic()
            await _end(job.process)

    async def _work(self, job: Job, task: Mapping[str, Any]) -> None:
        ready, self.spare = self.spare, None
        job.process = process = await (ready or _new_process())
        self.warm()
        assert process.stdin is not None
        assert process.stdout is not None
        job.state, job.what = "running", KINDS[job.kind]
        process.stdin.write(json.dumps(task).encode() + b"\n")
        while line := await process.stdout.readline():
            job.hear(json.loads(line))

    def stop(self, browser: str) -> Job | None:
        """Ask the job to stop and keep the best so far; asked again, end it at once."""
        job = self.job(browser)
        if job is None or job.is_over:
            return job
        if job.process is not None:
            with contextlib.suppress(ProcessLookupError, ConnectionError):
                if job.stopping:
                    job.process.kill()
                elif job.process.stdin is not None:
                    job.process.stdin.write(b"stop\n")
        job.stopping = True
        return job

    async def close(self) -> None:
        """Ask everything to stop, wait for what is kept, and end the rest."""
        for browser in list(self.of_browser):
            self.stop(browser)
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=PATIENCE)
        for job in self.of_browser.values():
            await _end(job.process)
        if self.spare is not None:
            await _end(await self.spare)


class Answerer:
    """Questions, answered one after the other by one process; one that takes too long ends it, and the next begins."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.turn = folder, asyncio.Lock()
        self.process: Process | None = None

    async def ask(self, kind: str, task: Mapping[str, Any]) -> Any:
        """The result of a task, or an error in one sentence."""
        async with self.turn:
            try:
                process = await self._ready()
                news = await asyncio.wait_for(self._asked(process, {**task, "kind": kind}), LONGEST_ANSWER)
            except BaseException as error:  # also if the browser has gone: the process would answer nobody
                await self.close()
                if isinstance(error, TimeoutError):
                    raise BusyError(TOO_SLOW) from None
                raise
        if "result" not in news:
            raise SettingError(news.get("error") or CRASHED)
        return news["result"]

    async def _ready(self) -> Process:
        if self.process is None:
            self.process = await _new_process("--many")
            assert self.process.stdout is not None
            await self.process.stdout.readline()  # it says that it is ready; importing takes a while
        return self.process

    async def _asked(self, process: Process, task: Mapping[str, Any]) -> Mapping[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({**task, "folder": str(self.folder)}).encode() + b"\n")
        while line := await process.stdout.readline():
            news: Mapping[str, Any] = json.loads(line)
            if "what" not in news:
                return news
        await self.close()
        return {"error": CRASHED}

    async def close(self) -> None:
        """End the process; the next question begins another."""
        process, self.process = self.process, None
        await _end(process)


async def _new_process(*options: str) -> Process:
    """A process that waits for its task. It does not see Ctrl-C in the terminal: the server tells it what to do."""
    errors = None if os.environ.get("BICA_TRACEBACK") else DEVNULL
    command = (sys.executable, "-m", "bica.web.work", *options)
    return await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=errors, limit=LONGEST_LINE, start_new_session=True
    )


async def _end(process: Process | None) -> None:
    if process is None:
        return
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()
