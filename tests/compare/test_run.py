import json
import os
import signal
import sys
from subprocess import DEVNULL, Popen
from time import monotonic, sleep

import numpy as np
import pytest

from bica.compare import CONTENDERS, MEASURES, Contender, Setting, run_plan, tasks, topology_settings
from bica.compare.run import RecordFile, _one_thread
from bica.compare.task import Task
from bica.errors import DataError, LimitError, OutputError, SettingError
from bica.progress import listening

SETTINGS = [Setting(network="topology two", n_samples=50, flip_rate=rate) for rate in (0.0, 0.1)]
PLAN = tasks(["findbica", "truth"], SETTINGS, range(2))
KILLED = """
from bica.compare import Setting, run_plan, tasks
if __name__ == "__main__":
    settings = [Setting(network="topology two", n_samples=50, flip_rate=0.1)]
    run_plan(tasks(["findbica", "truth"], settings, range(400)), {path!r}, n_jobs=2)
"""


def without_times(records):
    return [{name: value for name, value in record.items() if name != "cpu_seconds"} for record in records]


def test_a_run_gives_a_record_for_every_task_in_order(tmp_path):
    records = run_plan(PLAN, tmp_path / "results.jsonl", n_jobs=1)
    assert [(r["contender"], r["flip_rate"], r["seed"]) for r in records] == [
        (task.contender, task.setting.flip_rate, task.seed) for task in PLAN
    ]
    assert all(set(MEASURES) <= record.keys() and record["failure"] is None for record in records)
    assert all(record["cpu_seconds"] >= 0 for record in records)


@pytest.mark.slow
def test_processes_change_nothing_but_the_time(tmp_path):
    alone, together = run_plan(PLAN, tmp_path / "one", n_jobs=1), run_plan(PLAN, tmp_path / "two", n_jobs=2)
    assert without_times(alone) == without_times(together)


def test_a_second_run_does_only_what_is_missing(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    first = run_plan(PLAN[:3], path, n_jobs=1)
    done, seen = [], []
    perform = Task.perform
    monkeypatch.setattr(Task, "perform", lambda task: done.append(task) or perform(task))
    with listening(lambda what, number, total: seen.append((what, number, total)) if what == "tasks" else None):
        records = run_plan(PLAN, path, n_jobs=1)
    assert done == PLAN[3:]
    assert records[:3] == first
    assert seen == [("tasks", number, len(PLAN)) for number in range(3, len(PLAN) + 1)]


def test_a_torn_line_does_not_count_and_is_done_again(tmp_path):
    path = tmp_path / "results.jsonl"
    whole = run_plan(PLAN, path, n_jobs=1)
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    assert without_times(run_plan(PLAN, path, n_jobs=1)) == without_times(whole)
    assert len(path.read_bytes().splitlines()) == len(PLAN)


@pytest.mark.slow
def test_a_killed_run_continues_where_it_was(tmp_path):
    script, path = tmp_path / "script.py", tmp_path / "results.jsonl"
    script.write_text(KILLED.format(path=str(path)))
    process = Popen([sys.executable, str(script)], start_new_session=True)
    begin = monotonic()
    while (not path.exists() or path.stat().st_size < 2000) and monotonic() < begin + 120:
        sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [json.loads(line) for line in lines if line.endswith(b"\n")]
    assert kept
    plan = tasks(["findbica", "truth"], SETTINGS[1:], range(400))
    partial = [task for task in plan if task.key().items() <= kept[0].items()]
    assert run_plan(partial, path, n_jobs=1) == kept[:1]  # taken from the file, its time included


def test_changed_settings_are_run_anew(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    plan = tasks(["findbica"], SETTINGS[:1], [0])
    run_plan(plan, path, n_jobs=1)
    monkeypatch.setitem(CONTENDERS, "findbica", Contender("findbica", {"min_probability": 0.2}))
    assert run_plan(plan, path, n_jobs=1)[0]["settings"] == '{"min_probability": 0.2}'
    assert len(path.read_bytes().splitlines()) == 2


def test_a_new_method_is_one_entry(tmp_path, monkeypatch):
    monkeypatch.setitem(CONTENDERS, "careful", Contender("findbica", {"min_probability": 0.1}))
    (record,) = run_plan(tasks(["careful"], SETTINGS[:1], [0]), tmp_path / "results.jsonl", n_jobs=1)
    assert record["contender"] == "careful"
    assert record["hamming_distance"] is not None


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(DataError, match="line 1 is not a record"):
        run_plan(PLAN, path, n_jobs=1)
    assert path.read_text() == "dear diary\n"


def test_no_process_is_refused(tmp_path):
    with pytest.raises(SettingError, match="n_jobs is 0; it can be a number from 1 up"):
        run_plan(PLAN, tmp_path / "results.jsonl", n_jobs=0)


def test_the_evaluation_has_all_topologies_sizes_and_noise_levels():
    settings = topology_settings()
    assert len(set(settings)) == 4 * 5 * 2
    assert {setting.n_samples for setting in settings} == {50, 100, 200, 500, 1000}


def test_every_contender_sees_the_same_problem_and_seeds_differ():
    problem, again, other = SETTINGS[0].draw(0), SETTINGS[0].draw(0), SETTINGS[0].draw(1)
    assert np.array_equal(problem.rows, again.rows)
    assert not np.array_equal(problem.rows, other.rows)


def test_workers_use_one_thread_and_the_environment_comes_back(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with _one_thread():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


ENDLESS = """
import sys, time
from bica.compare import run_plan

class Endless:
    def __init__(self, number):
        self.number = number

    def key(self):
        return {"contender": "endless", "seed": self.number}

    def perform(self):
        with open(sys.argv[2], "wb", 0) as held:  # until this process ends
            held.write(b"x")
            time.sleep(600)

def run():
    run_plan([Endless(number) for number in range(4)], sys.argv[1], n_jobs=2)
"""
AS_LIBRARY = 'if __name__ == "__main__":\n    run()\n'
AS_COMMAND = """
if __name__ == "__main__":
    from bica.cli.app import plain_errors
    import click
    try:
        with plain_errors():
            run()
    except click.exceptions.Exit as left:
        sys.exit(left.exit_code)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
@pytest.mark.parametrize(
    ("script", "number", "code"),
    [
        (AS_COMMAND, signal.SIGTERM, 143),
        (AS_COMMAND, signal.SIGINT, 130),
        (AS_COMMAND, signal.SIGKILL, -signal.SIGKILL),
        (AS_LIBRARY, signal.SIGTERM, -signal.SIGTERM),
        (AS_LIBRARY, signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_no_process_outlives_the_one_that_started_it(tmp_path, script, number, code):
    """Workers hold the end of a pipe: the other end is told when the last of them is gone, also a zombie's."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "script.py").write_text(ENDLESS + script)
    words = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "results.jsonl"), str(pipe)]
    with Popen(words, stderr=DEVNULL, env=os.environ | {"TMPDIR": str(tmp_path)}) as process:
        for _ in range(2):
            assert answer(held, 60) == b"x"
        process.send_signal(number)
        process.wait(10)
        assert answer(held, 10) == b""
    os.close(held)
    assert process.returncode == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", "script.py"]


def answer(held, seconds):
    """A letter from a worker, or nothing if there is none left to send one."""
    begin = monotonic()
    while monotonic() < begin + seconds:
        try:
            letter = os.read(held, 1)
        except BlockingIOError:  # somebody is there, and silent
            letter = None
        if letter or (letter == b"" and seconds < 60):
            return letter
        sleep(0.02)
    raise AssertionError("a worker goes on")


def test_a_worker_that_is_killed_is_told_in_one_sentence(tmp_path):
    plan = [Deadly(0), Deadly(1)]
    with pytest.raises(LimitError, match="a process ended in the middle of its work, perhaps for lack of memory"):
        run_plan(plan, tmp_path / "results.jsonl", n_jobs=2)


class Deadly:
    def __init__(self, number):
        self.number = number

    def key(self):
        return {"contender": "deadly", "seed": self.number}

    def perform(self):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("line", ["[" * 100_000, '{"contender": ' + "9" * 5000 + "}"], ids=["nested", "long"])
def test_a_hostile_record_is_refused_by_its_line(tmp_path, line):
    (tmp_path / "results.jsonl").write_text(line + "\n")
    with pytest.raises(DataError, match="line 1 is not a record of a comparison"):
        run_plan(PLAN, tmp_path / "results.jsonl", n_jobs=1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path):
    file = RecordFile(tmp_path / "results.jsonl")
    (tmp_path / "results.jsonl").symlink_to("/dev/full")
    with pytest.raises(OutputError, match=r"results.jsonl cannot be written: No space left on device"):
        file.add({"contender": "truth"})
