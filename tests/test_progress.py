"""Loops report, a listener shows; parts are done in threads."""

import multiprocessing
import signal
import threading
from collections import namedtuple
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from subprocess import run
from sys import executable
from time import sleep

import joblib
import numpy as np
import pytest

from bica import BICA, FindBICA, Likelihood, PatternCounts
from bica.compare import Setting, run_plan, tasks
from bica.data.readers.engine import connection
from bica.errors import LimitError, SettingError
from bica.estimate.bootstrap import bootstrap
from bica.progress import (
    MAKES_NAMED_TUPLES,
    ctrl_c_beside_loops,
    in_threads,
    listening,
    memory_left,
    memory_limited,
    n_threads,
    spread,
    tracked,
    work_on,
)


@pytest.fixture
def reports():
    return []


@pytest.fixture
def listener(reports):
    return lambda *report: reports.append(report)


def test_items_pass_through_unchanged_with_and_without_a_listener(listener):
    assert list(tracked("abc", "letters")) == ["a", "b", "c"]
    with listening(listener):
        assert list(tracked("abc", "letters")) == ["a", "b", "c"]


def test_every_item_is_reported_after_its_work(reports, listener):
    with listening(listener):
        for item in tracked([10, 20], "tens", 2):
            reports.append(item)
    assert reports == [("tens", 0, 2), 10, ("tens", 1, 2), 20, ("tens", 2, 2)]


def test_the_total_may_be_unknown(reports, listener):
    with listening(listener):
        list(tracked(iter([1]), "rows"))
    assert reports == [("rows", 0, None), ("rows", 1, None)]


def test_nothing_is_a_report_too(reports, listener):
    with listening(listener):
        assert list(tracked([], "rows", 0)) == []
    assert reports == [("rows", 0, 0)]


def test_items_are_taken_one_by_one(reports, listener):
    def endless():
        while True:
            yield 1

    with listening(listener):
        assert next(tracked(endless(), "ones")) == 1
    assert reports == [("ones", 0, None)]


def test_the_inner_listener_hears_and_the_outer_one_returns(reports, listener):
    inner = []
    with listening(listener):
        with listening(lambda *report: inner.append(report)):
            list(tracked([], "inside"))
        list(tracked([], "outside"))
    assert inner == [("inside", 0, None)]
    assert reports == [("outside", 0, None)]


def test_after_an_error_nobody_listens(reports, listener):
    with pytest.raises(ZeroDivisionError), listening(listener):
        raise ZeroDivisionError
    list(tracked([1], "rows"))
    assert reports == []


def test_an_error_in_the_work_stops_the_reports(reports, listener):
    with pytest.raises(ZeroDivisionError), listening(listener):
        sum(1 // item for item in tracked([1, 0], "rows"))
    assert reports == [("rows", 0, None), ("rows", 1, None)]


CORES = joblib.cpu_count()


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 1), (1, 1), (7, 7), (-1, CORES), (-CORES, 1), (-2 * CORES, 1)])
def test_jobs_are_counted_as_scikit_learn_does(n_jobs, expected):
    assert n_threads(n_jobs) == expected == joblib.effective_n_jobs(n_jobs)


def test_a_joblib_context_decides_where_nobody_else_did():
    with joblib.parallel_config(n_jobs=3):
        assert (n_threads(None), n_threads(2)) == (3, 2)
    with joblib.parallel_config(backend="threading", n_jobs=-1):
        assert n_threads(None) == CORES
    assert n_threads(None) == 1


def test_a_context_is_heard_by_the_work():
    barrier = threading.Barrier(3, timeout=20)  # broken unless three threads come together
    with joblib.parallel_config(n_jobs=3):
        assert len(set(in_threads(lambda _: barrier.wait(), range(3)))) == 3


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
@pytest.mark.parametrize(
    "use",
    [
        n_threads,
        lambda n_jobs: Likelihood(n_jobs=n_jobs),
        lambda n_jobs: BICA(n_jobs=n_jobs).fit([[0, 1], [1, 1]]),
        lambda n_jobs: BICA().fit([[0, 1], [1, 1]]).bootstrap(2, n_jobs=n_jobs),
        lambda n_jobs: bootstrap(FindBICA(), DATA, FindBICA().fit(DATA, RNG), 2, RNG, n_jobs=n_jobs),
    ],
)
def test_no_threads_are_refused_everywhere(n_jobs, use):
    with pytest.raises(SettingError, match=r"n_jobs is .*; it can be a number from 1 up, -1 for all cores"):
        use(n_jobs)


DATA, RNG = PatternCounts.of([[0, 1], [1, 1], [0, 0]]), np.random.default_rng(0)


def test_threads_inside_threads_are_one():
    """All cores are busy already: as many threads again in each of them would only stand in the way."""
    assert list(in_threads(lambda _: n_threads(5), range(3), 2)) == [1, 1, 1]
    assert list(in_threads(lambda _: n_threads(5), range(3), 1)) == [5, 5, 5]
    assert n_threads(5) == 5


def test_without_joblib_in_memory_nothing_is_loaded_to_learn_that_there_is_no_context():
    code = "import sys; from bica.progress import n_threads; assert (n_threads(None), n_threads(3)) == (1, 3); "
    assert run([executable, "-c", f"{code}assert 'joblib' not in sys.modules"]).returncode == 0


@pytest.mark.parametrize("n_jobs", [-1, 2, None])
def test_results_are_the_same_for_any_number(n_jobs):
    rows = np.random.default_rng(0).random((300, 4)) < 0.3
    one, other = (BICA(n_jobs=n, random_state=0).fit(rows) for n in (1, n_jobs))
    assert one.bootstrap(5).summary() == other.bootstrap(5).summary()


@pytest.mark.slow
def test_an_executor_changes_no_resample_and_no_comparison(tmp_path):
    rows = np.random.default_rng(0).random((300, 4)) < 0.3
    fitted = BICA(random_state=0).fit(rows)
    plan = tasks(["findbica", "truth"], [Setting(network="topology two", n_samples=50, flip_rate=0.1)], range(2))
    here, found = fitted.bootstrap(5).summary(), run_plan(plan, tmp_path / "here.jsonl")
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, fresh) as pool, work_on(pool):
        assert fitted.bootstrap(5).summary() == here
        there = run_plan(plan, tmp_path / "there.jsonl")
    for record in (*found, *there):
        del record["cpu_seconds"]
    assert there == found


def test_an_executor_gets_every_part_and_answers_come_in_order():
    class Lazy(Executor):
        """Does nothing until somebody waits."""

        sent = 0

        def submit(self, task, part):
            self.sent += 1
            future = Future()
            future.result = lambda timeout=None: task(part)
            return future

    executor = Lazy()
    with work_on(executor):
        assert list(spread(abs, range(-200, 0))) == list(range(200, 0, -1))
    assert executor.sent == 200
    assert list(spread(abs, [-1, 2])) == [1, 2]  # and none is left afterwards
    assert executor.sent == 200
    with pytest.raises(SettingError, match="is no executor"), work_on(3):
        pass


class TestCtrlC:
    PRESS = "from signal import SIGINT, raise_signal\nraise_signal(SIGINT)\nended = True"

    def test_is_put_off_while_a_compiled_loop_hands_over(self):
        seen = {}
        with ctrl_c_beside_loops():
            exec(compile(self.PRESS, "/somewhere/numba/core/serialize.py", "exec"), seen)
            with pytest.raises(KeyboardInterrupt):
                sleep(30)
        assert seen["ended"]

    def test_is_put_off_while_a_named_tuple_is_made(self):
        made = namedtuple("Pressed", "number").__new__.__code__
        assert (made.co_filename, made.co_name) == MAKES_NAMED_TUPLES
        press = eval("lambda raise_it, number: (raise_it(number), number)[1]")
        with ctrl_c_beside_loops():
            assert press(signal.raise_signal, signal.SIGINT) == signal.SIGINT
            with pytest.raises(KeyboardInterrupt):
                sleep(30)

    def test_strikes_at_once_elsewhere(self):
        seen = {}
        with ctrl_c_beside_loops(), pytest.raises(KeyboardInterrupt):
            exec(compile(self.PRESS, "<string>", "exec"), seen)
        assert "ended" not in seen

    def test_leaves_handlers_as_they_were(self):
        before = signal.getsignal(signal.SIGINT)
        with ctrl_c_beside_loops(), ctrl_c_beside_loops():
            assert signal.getsignal(signal.SIGINT) is not before
        assert signal.getsignal(signal.SIGINT) is before

    def test_a_handler_of_the_user_stays(self):
        pressed = []
        before = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
        try:
            with ctrl_c_beside_loops():
                signal.raise_signal(signal.SIGINT)
        finally:
            signal.signal(signal.SIGINT, before)
        assert pressed == [1]


def test_what_takes_more_memory_than_allowed_ends_with_a_sentence():
    with memory_limited(1e6), pytest.raises(LimitError, match="1 MB"):
        PatternCounts.of([[0, 1], [1, 1]])
    with memory_limited(1e12):
        assert 1e11 < memory_left() < 1e12
        assert PatternCounts.of([[0, 1], [1, 1]]).n_samples == 2
    assert memory_left() == float("inf")


def test_a_limit_of_memory_is_not_left_behind_in_the_engine(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n0,1\n1,1\n")
    with connection() as engine:
        before = engine.execute("SELECT current_setting('memory_limit')").fetchall()
    with memory_limited(1e12):
        PatternCounts.of(tmp_path / "t.csv")
        with connection() as engine:
            assert engine.execute("SELECT current_setting('memory_limit')").fetchall() != before
    with connection() as engine:
        assert engine.execute("SELECT current_setting('memory_limit')").fetchall() == before


def test_learning_that_would_not_fit_is_not_begun():
    rows = np.random.default_rng(0).random((50, 16)) < 0.3
    with memory_limited(1e12):
        used = 1e12 - memory_left()
    with memory_limited(used + 300e6):
        BICA().fit(rows[:, :4])
    wide = np.random.default_rng(0).random((50, 3000)) < 0.3  # 432 MB of pairs
    with memory_limited(used + 300e6), pytest.raises(LimitError, match="MB are left"):
        BICA().fit(wide)


@pytest.mark.slow
def test_a_large_table_is_learned_within_its_memory(tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    hidden = rng.random((300_000, 60)) < 0.03
    table = {f"s{i:03d}": hidden[:, i % 60] ^ (rng.random(300_000) < 0.01) for i in range(120)}
    pq.write_table(pa.table(table), tmp_path / "table.parquet")
    code = (
        "import sys; from bica.cli.app import app; app(sys.argv[1:], standalone_mode=False); "
        "print([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0].split()[1])"
    )
    words = ["fit", str(tmp_path / "table.parquet"), "-o", str(tmp_path / "m.json"), "--memory", "450MB"]
    done = run([executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) * 1024 <= 450e6
    refused = run([executable, "-m", "bica", *words, "--force", "--memory", "20MB"], capture_output=True, text=True)
    assert refused.returncode == 4
    assert "20 MB" in refused.stderr
