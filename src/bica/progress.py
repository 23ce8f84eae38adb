"""Long work: loops report how far they are, a listener shows it, and a time limit ends it; parts of it in threads.

A time limit is Ctrl-C by the clock: a report after it raises ``TimeUp``, so whoever keeps the best so far on Ctrl-C
keeps it then, too. Kernels run free of the interpreter lock, so that threads use every core.
"""

import _thread
import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from numbers import Integral, Real
from time import monotonic
from types import FrameType
from typing import TextIO, TypeVar

from bica.errors import LimitError, SettingError

Item = TypeVar("Item")
Listener = Callable[[str, int, int | None], None]  # what is being done, how many steps are done, of how many
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_listeners: list[Listener] = []  # of all threads
COMPILING = "compiling, once"  # the report of kernels that the first run after an install compiles
WAIT = f"{COMPILING}: the first run after an install takes some seconds longer"


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the reports of everything that runs inside to ``listener``, and put Ctrl-C off where it would do harm."""
    token = _listener.set(listener)
    _listeners.append(listener)
    try:
        with ctrl_c_beside_loops():
            yield
    finally:
        _listeners.remove(listener)
        _listener.reset(token)


def report(what: str, done: int, total: int | None) -> None:
    """Report to the listener that ``done`` steps are done, of ``total`` where that is known."""
    go_on()
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


# numba runs some Python while it hands over what a compiled loop returns, does not expect an exception there, and takes
# the process down with it. A named tuple is made by a lambda that was made from text.
BETWEEN_LOOPS = (f"{os.sep}numba{os.sep}", f"{os.sep}llvmlite{os.sep}")
MAKES_NAMED_TUPLES = ("<string>", "<lambda>")
AGAIN = 0.02  # seconds after which what was put off there is tried again


def is_between_loops(frame: FrameType | None) -> bool:
    """Whether Python is just handing values to a compiled loop or back, where nothing may be raised."""
    if frame is None:
        return False
    code = frame.f_code
    made = (code.co_filename, code.co_name) == MAKES_NAMED_TUPLES
    return made or any(place in code.co_filename for place in BETWEEN_LOOPS)


@contextmanager
def ctrl_c_beside_loops() -> Iterator[None]:
    """Put Ctrl-C off while a compiled loop is handing over; a handler of the user's own stays as it is."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def strike(number: int, frame: FrameType | None) -> None:
        if is_between_loops(frame):
            again = threading.Timer(AGAIN, _press_ctrl_c)
            again.daemon = True
            again.start()
        else:
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, strike)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _press_ctrl_c() -> None:
    if hasattr(signal, "pthread_kill"):  # also wakes a main thread that waits
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


class TimeUp(KeyboardInterrupt):
    """The time limit is over."""


Clock = Callable[[], float]
_deadlines: ContextVar[tuple[tuple[Clock, float], ...]] = ContextVar("deadlines", default=())


@contextmanager
def time_limited(seconds: float | None, clock: Clock | None = None) -> Iterator[None]:
    """End what runs inside after so many seconds, or when a limit around it ends, at its next report.

    The ``clock`` is that on the wall, unless another is given, such as ``time.process_time``.

    >>> with time_limited(0.0):
    ...     is_time_up()
    True
    """
    clock = clock or monotonic
    token = _deadlines.set(_deadlines.get() if seconds is None else (*_deadlines.get(), (clock, clock() + seconds)))
    try:
        yield
    finally:
        _deadlines.reset(token)


def is_time_up() -> bool:
    """Whether a time limit is over."""
    return any(clock() >= end for clock, end in _deadlines.get())


def go_on() -> None:
    """End the work where a limit is over; a loop whose steps are not worth a report calls this in each."""
    if is_time_up():
        raise TimeUp
    if _most_bytes.get()[0] < inf:
        _check_memory()


_most_bytes: ContextVar[tuple[float, float]] = ContextVar("most_bytes", default=(inf, 0.0))  # and the peak before


@contextmanager
def memory_limited(n_bytes: float | None) -> Iterator[None]:
    """Have what runs inside keep to so much memory of the whole process, or end at its next report.

    A table then keeps less in memory and puts the rest on disk, and wide sources are learned from a smaller sample.
    None is no limit. What a process takes is known on Linux and macOS.

    >>> with memory_limited(1e6):
    ...     report("reading", 0, None)
    Traceback (most recent call last):
    bica.errors.LimitError: this takes more memory than the 1 MB that were allowed; allow more, or take fewer columns
    """
    token = _most_bytes.set((inf, 0.0) if n_bytes is None else (n_bytes, _bytes_in_use("VmHWM")))
    try:
        yield
    finally:
        _most_bytes.reset(token)


def memory_left() -> float:
    """The bytes that the limit allows beyond what the process takes now; infinity without a limit."""
    most, _ = _most_bytes.get()
    return most if most == inf else max(0.0, most - _bytes_in_use("VmRSS"))


def _check_memory() -> None:
    most, before = _most_bytes.get()
    highest = _bytes_in_use("VmHWM")
    if _bytes_in_use("VmRSS") > most or highest > max(most, before):
        allowed = f"{most / 1e6:.0f} MB"
        raise LimitError(
            f"this takes more memory than the {allowed} that were allowed; allow more, or take fewer columns"
        )


def _bytes_in_use(what: str) -> float:
    """What this process takes now (VmRSS) or has taken at most (VmHWM), where the system tells; else 0."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next((1024.0 * int(line.split()[1]) for line in file if line.startswith(what)), 0.0)
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # in bytes on macOS


def checked_time_limit(seconds: float | None) -> float | None:
    """``seconds`` as they are, or one sentence on what they can be.

    >>> checked_time_limit(-1)
    Traceback (most recent call last):
    bica.errors.SettingError: time_limit is -1; it can be a number of seconds above 0, or None for no limit
    """
    if seconds is None or (isinstance(seconds, Real) and not isinstance(seconds, bool) and seconds > 0):
        return seconds
    raise SettingError(f"time_limit is {seconds!r}; it can be a number of seconds above 0, or None for no limit")


def report_anywhere(what: str, done: int, total: int | None) -> bool:
    """Report to the latest listener of any thread, and return whether there is one.

    For what concerns the whole process: threads that share a work have no listener of their own.
    """
    listener = _listener.get() or (_listeners[-1] if _listeners else None)
    if listener is not None:
        listener(what, done, total)
    return listener is not None


def tracked(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """The same ``items``, with a report after each.

    >>> with listening(lambda what, done, total: print(what, done, total)):
    ...     list(tracked("ab", "letters", 2))
    letters 0 2
    letters 1 2
    letters 2 2
    ['a', 'b']
    """
    done = 0
    report(what, done, total)
    for item in items:
        yield item
        done += 1
        report(what, done, total)


def lines_to(stream: TextIO, pause: float = 1.0) -> Listener:
    """A listener that writes a line when something begins or ends, and every ``pause`` seconds in between.

    >>> import sys
    >>> with listening(lines_to(sys.stdout, pause=60)):
    ...     list(tracked("abc", "letters", 3))
    letters: 0 of 3
    letters: 3 of 3
    ['a', 'b', 'c']
    """
    last = monotonic()

    def listener(what: str, done: int, total: int | None) -> None:
        nonlocal last
        if done in (0, total) or monotonic() >= last + pause:
            last = monotonic()
            print(f"{what}: {done}" if total is None else f"{what}: {done} of {total}", file=stream, flush=True)

    return listener


Part = TypeVar("Part")
Result = TypeVar("Result")
ALL_CORES = -1


class _Here(threading.local):
    """What is true of the thread that asks."""

    is_worker = False


_here = _Here()


def checked_n_jobs(n_jobs: int | None) -> int | None:
    """``n_jobs`` as it is, or one sentence on what it can be.

    >>> checked_n_jobs(0)
    Traceback (most recent call last):
    bica.errors.SettingError: n_jobs is 0; it can be a number from 1 up, -1 for all cores, or None for one
    """
    if n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0):
        return n_jobs
    raise SettingError(f"n_jobs is {n_jobs!r}; it can be a number from 1 up, -1 for all cores, or None for one")


def n_threads(n_jobs: int | None) -> int:
    """How many threads ``n_jobs`` asks for, counted as scikit-learn does.

    None is one, unless a joblib context such as ``joblib.parallel_config(n_jobs=2)`` says otherwise; -1 is one per
    core, -2 one less, and so on. Inside a thread of ours it is always one: the cores are busy already.

    >>> n_threads(3), n_threads(None)
    (3, 1)
    """
    checked_n_jobs(n_jobs)
    if _here.is_worker or (n_jobs is None and "joblib" not in sys.modules):  # unloaded, it cannot have a context
        return 1
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    from joblib import effective_n_jobs  # takes a while to load, and is seldom needed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on a worker of Dask, that it is one thread
        return int(effective_n_jobs(n_jobs))


def in_threads(
    task: Callable[[Part], Result], parts: Sequence[Part], n_jobs: int | None = None, ahead: int = 1000
) -> Iterator[Result]:
    """``task`` of every part, in order, so that the number of threads changes nothing but the time.

    Ctrl-C waits only for the parts that have begun. A time limit is that of every thread. At most ``ahead`` results per
    thread wait in memory.

    >>> list(in_threads(len, ["a", "bc"], n_jobs=2))
    [1, 2]
    """
    n_workers = min(len(parts), n_threads(n_jobs)) if len(parts) > 1 else 1
    if n_workers < 2:
        yield from map(task, parts)
        return
    pool = ThreadPoolExecutor(n_workers, initializer=_become_worker, initargs=(_deadlines.get(),))
    try:
        yield from _in_order(pool, task, parts, ahead * n_workers)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(pool: Executor, task: Callable[[Part], Result], parts: Sequence[Part], ahead: int) -> Iterator[Result]:
    """The results in the order of the parts; at most so many are asked for beyond the one that is awaited."""
    begun: deque[Future[Result]] = deque()
    try:
        for part in parts:
            begun.append(pool.submit(task, part))
            if len(begun) > ahead:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        for future in begun:
            future.cancel()


_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def work_on(executor: Executor | None) -> Iterator[None]:
    """Have resamples, compared methods and decoded files done by this executor, whatever ``n_jobs`` says.

    Anything with the ``submit`` of ``concurrent.futures`` will do: a pool of processes, or ``get_executor()`` of a
    client of Dask. It changes where the work is done, never its results.

    >>> with ThreadPoolExecutor(2) as pool, work_on(pool):
    ...     list(spread(len, ["a", "bc"]))
    [1, 2]
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise SettingError(f"{executor!r} is no executor; it needs `submit`, as those of concurrent.futures have")
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def has_executor() -> bool:
    """Whether ``work_on`` gave an executor."""
    return _executor.get() is not None


SENT_AHEAD = 64  # tasks: enough for as many workers, and few enough for Ctrl-C to end soon


def spread(task: Callable[[Part], Result], parts: Sequence[Part], n_jobs: int | None = None) -> Iterator[Result]:
    """``task`` of every part, in order, on the executor of ``work_on`` or else in threads.

    Only for tasks that share nothing and can be sent to another process: functions of a module, with their settings
    bound by ``functools.partial``. Others take ``in_threads``.
    """
    executor = _executor.get()
    if executor is None or _here.is_worker:
        return in_threads(task, parts, n_jobs)
    return _in_order(executor, task, parts, SENT_AHEAD)


def _become_worker(deadlines: tuple[tuple[Clock, float], ...]) -> None:
    _here.is_worker = True
    _deadlines.set(deadlines)
