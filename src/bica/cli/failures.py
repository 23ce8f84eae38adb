"""Errors as one plain sentence on standard error, and as an exit code."""

import errno
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import click

from bica.errors import BicaError, BicaWarning, SettingError
from bica.output import Terminated, end_all_passing, terminate
from bica.text import harmless

OUR_FAULT, USAGE, BAD_DATA, LIMIT, INTERRUPTED, TERMINATED = 1, 2, 3, 4, 130, 143
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
GRACE = 0.5  # seconds to unwind after a request to end; a compiled loop may take longer to notice
ENDED = "ended on request; no file was left half-written"
TRACEBACK = "BICA_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn whatever is raised inside into a sentence and an exit code; click's own exceptions pass."""
    _open_closed_streams()
    try:
        with _ending_on_request(), _plain_warnings():
            yield
        sys.stdout.flush()  # a full disk or a closed pipe shows here, not when the interpreter ends
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt as stop:  # which may say how far the work had come
        click.echo(err=True)  # the terminal has just shown ^C
        _leave(f"{' '.join(['interrupted', *map(str, stop.args)])}; no file was left half-written", INTERRUPTED)
    except Terminated:
        _leave(ENDED, TERMINATED)
    except BrokenPipeError:
        _leave_quietly()
    except Exception as error:  # noqa: BLE001 (the last stop: nothing above can report it better)
        _leave(_sentence(error), _exit_code(error))


def _exit_code(error: Exception) -> int:
    if isinstance(error, SettingError):
        return USAGE
    if isinstance(error, MemoryError):  # ours, LimitError, and Python's own
        return LIMIT
    return BAD_DATA if isinstance(error, BicaError | OSError) else OUR_FAULT


def _sentence(error: Exception) -> str:
    if isinstance(error, BicaError):
        return str(error)
    if isinstance(error, MemoryError):
        return "this machine has not enough memory for this; try fewer rows or sensors"
    if isinstance(error, OSError):
        if error.errno == errno.EBADF and error.filename is None:
            return "standard output is closed, so the answer could not be given"
        return f"{error.filename or 'standard output'} cannot be used: {error.strerror or error}"
    return (
        f"this is a bug in bica, not in your data ({type(error).__name__}: {error}); "
        f"run again with {TRACEBACK}=1 to see where, and please report it"
    )


def _leave(sentence: str, code: int) -> NoReturn:
    if os.environ.get(TRACEBACK):
        traceback.print_exc()
    click.echo(f"bica: {harmless(sentence)}", err=True)
    _drop_output()
    raise click.exceptions.Exit(code)


def _leave_quietly() -> NoReturn:
    """End without a message if the reader has closed the pipe, as in ``bica show MODEL | head -1``."""
    _drop_output(always=True)
    raise click.exceptions.Exit(0)


def _drop_output(*, always: bool = False) -> None:
    """The interpreter flushes once more when it ends; what cannot be written then must not be reported twice."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        always = True
    if always:
        with suppress(OSError, ValueError):  # a stream of a test has no descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """Take the places of closed standard streams, which the next file to be opened would get, and with it our text.

    What is then written to standard output fails as on a closed one.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR if name == "stderr" else os.O_RDONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))


@contextmanager
def _ending_on_request() -> Iterator[None]:
    """A request to end (SIGTERM, a closed terminal) unwinds what runs inside.

    Where that takes long, since a signal waits for the end of a compiled loop, a thread ends the process instead.
    """
    usual = [number for number in ENDING if signal.getsignal(number) == signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread() or not usual:
        yield
        return
    finished, (reading, writing) = threading.Event(), os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_end_without_unwinding, args=(reading, usual, finished), daemon=True).start()
    for number in usual:
        signal.signal(number, _end)
    try:
        yield
    finally:
        finished.set()
        signal.set_wakeup_fd(before)
        os.close(writing)  # which ends the thread
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


def _end(_: int, __: FrameType | None) -> NoReturn:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)  # a second request must not disturb the unwinding
    terminate()


def _end_without_unwinding(reading: int, requests: list[int], finished: threading.Event) -> None:
    while (number := os.read(reading, 1)) and number[0] not in requests:
        pass
    if number and not finished.wait(GRACE):
        end_all_passing()
        with suppress(OSError):
            os.write(2, f"bica: {ENDED}\n".encode())
        os._exit(TERMINATED)
    os.close(reading)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show our own warnings as sentences, without file and line."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **named: Any) -> None:
            if issubclass(category, BicaWarning):
                click.echo(f"bica: warning: {harmless(str(message))}", err=True)
            else:
                usual(message, category, *place, **named)

        warnings.simplefilter("always", BicaWarning)
        warnings.showwarning = show
        yield
