"""Commands that write, ended at random moments: what they leave behind, and whether they go on afterwards."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import numpy as np

from bica import OrMixture
from bica.compare.run import read_records
from bica.model.fit import Fit

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
MARK = "BICA_ATTACK"  # in the environment of a command, and so of every process that it starts
A_WHILE = 1.0  # seconds after the end in which processes and temporary files may still go
LONG = 4.0  # CPU seconds of commands whose turn comes less often
RERUN = 0.25  # share of the killed commands that are typed again
IDLE = 5.0  # seconds without work after which a command waits for somebody
LONGER = 15.0  # and after SIGKILL: processes that are still importing notice at the end of that
GIVEN_UP = 120.0  # seconds until a command that was asked to end counts as stuck
MODEL = OrMixture(
    [[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], [0.2, 0.3, 0.1], sensors=["door", "hall", "yard", "roof"]
)
COMMANDS = {  # every command that writes; files called old are there before, and are replaced
    "fit": "fit t.csv -o old.json --force",
    "fit, new file": "fit t.csv -o new.json",
    "fit in time": "fit t.csv -o old.json --temporal --force",
    "bootstrap": "fit t.csv -o old.json --bootstrap 10 --force",
    "count": "count t.csv -o old.parquet --force",
    "slots": "slots log.csv --slot 1s -o old.csv --force",
    "decode": "decode m.json t.csv -o old.csv --force",
    "decode with a picture": "decode m.json t.csv -o old.parquet --picture a.svg --force",
    "report": "report m.json t.csv -o r.html",
    "simulate": "simulate -o old.csv --truth old.json --activity a.csv --samples 50000 --force",
    "name": "name m.json source1=lift",
    "export": "export m.json -o g.graphml",
    "demo": "demo -o shown",
    "compare": "compare t.csv --methods findbica,asso --runs 2 --jobs 2 --sources 3 -o bica-compared",
    "reproduce": "reproduce topologies --quick --methods findbica --jobs 2 -o bica-again",
    "monitor": "monitor one=m.json two=t.csv -o old.csv --force",
    "spectrum simulate": "spectrum simulate -o old.csv --field f.json --truth old.json --force",
    "spectrum fit": "spectrum fit t.csv -o old.json --force",
    "spectrum map": "spectrum map m.json field.json -o map.svg",
    "serve": "serve t.csv --folder bica-served --json",
}


def make_workspace(folder: Path) -> None:
    """The files that the commands read, and some that they replace."""
    rows = MODEL.sample(8_000, np.random.default_rng(0)).astype(int)
    lines = "\n".join(",".join(map(str, row)) for row in rows.tolist())
    (folder / "t.csv").write_text(",".join(MODEL.sensors) + "\n" + lines + "\n")
    MODEL.save(folder / "m.json")
    MODEL.save(folder / "old.json")
    (folder / "old.csv").write_text("older\n1\n")
    duckdb.sql("SELECT 1 AS older").write_parquet(str(folder / "old.parquet"))
    events = "".join(f"{1_700_000_000 + k % 5000},s{k % 7}\n" for k in range(20_000))
    (folder / "log.csv").write_text("time,sensor\n" + events)
    monitors = [{"name": name, "x": 100.0 * k, "y": 50.0} for k, name in enumerate(MODEL.sensors)]
    propagation = {"power_mw": 20.0}
    content = {"schema": "bica-field", "version": 1, "side": 500.0, "corner": [0, 0], "propagation": propagation}
    (folder / "field.json").write_text(json.dumps(content | {"monitors": monitors, "users": []}))


def fault_in(path: Path) -> str | None:
    """Why a file is not whole; None if it is."""
    try:
        content = path.read_bytes()
        if path.suffix == ".json":
            told = json.loads(content)
            if told.get("schema") == "bica-model":
                Fit.load(path)
        elif path.suffix == ".parquet":
            duckdb.sql(f"SELECT count(*) FROM read_parquet('{path}')").fetchall()
        elif path.suffix == ".jsonl":
            read_records(path)  # whose last line may be torn, which a rerun cuts off
        elif path.suffix in (".svg", ".graphml"):
            ElementTree.fromstring(content)
        elif path.suffix == ".html" and not content.rstrip().endswith(b"</html>"):
            return "the end is missing"
        elif path.suffix in (".csv", ".md") and not content.endswith(b"\n"):
            return "the last line is torn"
    except Exception as error:  # noqa: BLE001 - whatever a reader says of it, the file is not whole
        return f"{type(error).__name__}: {error}"[:200]
    return None


def processes_of(mark: str) -> list[int]:
    """The processes that carry this mark."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            gone = (place / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if not gone and f"{MARK}={mark}".encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


@dataclass
class Stage:
    """A workspace with temporary files of its own, in which commands are typed."""

    folder: Path
    scratch: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self, words: str, **more: object) -> subprocess.Popen:
        environment = os.environ | {"TMPDIR": str(self.scratch), MARK: self.mark, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "bica", *words.split()]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
        return subprocess.Popen(command, cwd=self.folder, env=environment | dict(more.pop("env", {})), **pipes | more)

    def left(self) -> list[str]:
        """Drafts beside the outputs and temporary files."""
        drafts = [path for path in self.folder.rglob(".bica-*") if path.exists()]
        return sorted(str(path) for path in [*drafts, *self.scratch.iterdir()])

    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith(".bica-")
        }


@contextmanager
def a_stage(template: Path) -> Iterator[Stage]:
    home = Path(tempfile.mkdtemp(prefix="moments-"))
    try:
        shutil.copytree(template, home / "work")
        (home / "scratch").mkdir()
        yield Stage(home / "work", home / "scratch")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def a_template() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="template-") as folder:
        make_workspace(Path(folder))
        yield Path(folder)


def is_serving(words: str) -> bool:
    return words.startswith("serve")


def whole_time(words: str, template: Path) -> float:
    """How much CPU time a command takes if nobody ends it, all its processes together; it must succeed."""
    with a_stage(template) as stage:
        process = stage.start(words)
        used = wait_for(process, float("inf"))
        if is_serving(words):
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=GIVEN_UP)
        assert process.returncode == 0 or is_serving(words), f"{words}: {said}"
        return used


@dataclass
class Kill:
    """One command that was ended, and what was wrong afterwards."""

    name: str
    signal: str
    after: float
    code: int | None = None
    seconds_to_end: float = 0.0
    cpu_to_end: float = 0.0
    was_running: bool = True
    reran: bool = False
    faults: list[str] = field(default_factory=list)


def cpu_of_session(leader: int) -> float:
    """The CPU seconds of all processes of a session that are still there."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_for(process: subprocess.Popen, seconds: float) -> float:
    """Wait until a command has used so many CPU seconds, has ended or is idle; returns what it has used."""
    used, since = 0.0, time.monotonic()
    while process.poll() is None and used < seconds and time.monotonic() < since + IDLE:
        now = cpu_of_session(process.pid)
        used, since = (now, time.monotonic()) if now > used else (used, since)
        time.sleep(0.02)
    return used


def wait_until_gone(stage: Stage, seconds: float) -> None:
    """Give processes and temporary files so long to go."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and (processes_of(stage.mark) or stage.left()):
        time.sleep(0.1)


def killed(name: str, number: signal.Signals, after: float, template: Path, *, rerun: bool) -> Kill:
    """Type a command, end it after so many CPU seconds, and look at what it left."""
    words, kill = COMMANDS[name], Kill(name, number.name, after)
    with a_stage(template) as stage:
        before = stage.files()
        process = stage.start(words)
        wait_for(process, after)
        kill.was_running = process.poll() is None
        if kill.was_running:
            _send(process, number, kill)
        kill.code = process.returncode
        wait_until_gone(stage, A_WHILE if number != signal.SIGKILL else LONGER)
        kill.faults += _faults(stage, before, number)
        if rerun:
            kill.reran = True
            kill.faults += _faults_of_rerun(stage, words)
        for pid in processes_of(stage.mark):  # which are faults, noted above
            os.kill(pid, signal.SIGKILL)
    return kill


def _send(process: subprocess.Popen, number: signal.Signals, kill: Kill) -> None:
    used, begin = cpu_of_session(process.pid), time.monotonic()
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    last = used
    while process.poll() is None and time.monotonic() < begin + GIVEN_UP:
        last = max(last, cpu_of_session(process.pid))
        time.sleep(0.01)
    kill.seconds_to_end, kill.cpu_to_end = time.monotonic() - begin, last - used
    if process.poll() is None:
        kill.faults.append(f"still running {GIVEN_UP} s after {number.name}")
        process.kill()
    _, said = process.communicate()
    if number != signal.SIGKILL and "bug in bica" in said:
        kill.faults.append(f"said {said[-200:]}")


def _faults(stage: Stage, before: dict[str, bytes], number: signal.Signals) -> list[str]:
    after = stage.files()
    found = [f"lost {name}" for name in before if name not in after]
    for name, content in after.items():
        if content != before.get(name) and (fault := fault_in(stage.folder / name)):
            found.append(f"half-written {name}: {fault}")
    found += [f"process {pid} left" for pid in processes_of(stage.mark)]
    if number != signal.SIGKILL:
        found += [f"temporary file left: {path}" for path in stage.left()]
    return found


def _faults_of_rerun(stage: Stage, words: str) -> list[str]:
    """The same command again: it succeeds, unless its result is there already, and keeps finished records."""
    records = {path: path.read_bytes() for path in stage.folder.rglob("*.jsonl")}
    for draft in stage.folder.rglob(".bica-*"):
        draft.unlink()  # of a killed run
    process = stage.start(words)
    if is_serving(words):
        wait_for(process, float("inf"))
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=GIVEN_UP)
    ended = process.returncode in ((0, 130, -signal.SIGINT) if is_serving(words) else (0,))
    found = [] if ended or "exists already" in said else [f"rerun ended with {process.returncode}: {said[-200:]}"]
    for path, content in records.items():
        whole = content[: content.rfind(b"\n") + 1]
        if not path.read_bytes().startswith(whole):
            found.append(f"rerun lost finished records in {path.name}")
    return found


def kills(n_kills: int, seed: int, log: Path, seconds: float) -> None:
    """Commands in turn, each with every signal, at moments spread over the time that it takes; long ones less often.

    What is done is a line in ``log``; another run with the same log goes on there. None begins after so many seconds.
    """
    until, names = time.monotonic() + seconds, list(COMMANDS)
    with a_template() as template:
        if not log.exists():
            for name in names:  # once before, so that all is compiled
                whole_time(COMMANDS[name], template)
            lasting = {name: round(whole_time(COMMANDS[name], template), 2) for name in names}
            log.write_text(json.dumps(lasting) + "\n")
        first, *done = log.read_text().splitlines()
        lasting = json.loads(first)
        turns = [
            (name, number)
            for turn in range(3 * len(SIGNALS))
            for number in [SIGNALS[turn % len(SIGNALS)]]
            for name in names
            if lasting[name] < LONG or turn < len(SIGNALS)
        ]
        for k in range(len(done), n_kills):
            if time.monotonic() > until:
                return
            rng, (name, number) = random.Random(f"{seed} {k}"), turns[k % len(turns)]
            moment = lasting[name] * rng.uniform(0.02, 1.02)
            found = killed(name, number, moment, template, rerun=rng.random() < RERUN)
            with log.open("a") as file:
                file.write(json.dumps(asdict(found)) + "\n")


def table_of(log: Path) -> str:
    """The kills as a table: by command how many, how long until the end, and what was wrong."""
    found = [Kill(**json.loads(line)) for line in log.read_text().splitlines()[1:]]
    lines = [
        "| command | kills | while running | reruns | longest to end (s, CPU s) | faults |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(kill.name for kill in found):
        members = [kill for kill in found if kill.name == name]
        gentle = [kill for kill in members if kill.signal != "SIGKILL" and kill.was_running]
        slowest = max((kill.seconds_to_end for kill in gentle), default=0.0)
        cpu = max((kill.cpu_to_end for kill in gentle), default=0.0)
        faults = Counter(fault for kill in members for fault in kill.faults)
        counts = [len(members), sum(kill.was_running for kill in members), sum(kill.reran for kill in members)]
        lines.append(
            f"| {name} | {' | '.join(map(str, counts))} | {slowest:.1f}, {cpu:.1f} | {'; '.join(faults) or 'none'} |"
        )
    return "\n".join(lines)
