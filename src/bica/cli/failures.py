"""What goes wrong, told in one plain sentence on standard error and in the exit code."""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from bica.errors import BicaError, BicaWarning, SettingError
from bica.text import harmless

OUR_FAULT, USAGE, BAD_DATA, LIMIT, INTERRUPTED = 1, 2, 3, 4, 130
TRACEBACK = "BICA_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn whatever is raised inside into a sentence and an exit code; click's own exceptions pass."""
    try:
        with _plain_warnings():
            yield
        sys.stdout.flush()  # a full disk or a closed pipe shows here, not when the interpreter is gone
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt as stop:  # which may tell how far the work had come
        click.echo(err=True)  # the terminal has just shown ^C
        _leave(f"{' '.join(['interrupted', *map(str, stop.args)])}; no file was left half-written", INTERRUPTED)
    except BrokenPipeError:
        _leave_quietly()
    except Exception as error:  # noqa: BLE001 (the last stop: nothing above could tell it better)
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
        return "the memory of this machine is not enough for this; try fewer rows or sensors"
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'} cannot be used: {error.strerror or error}"
    return (
        f"this is a bug in bica, not in your data ({type(error).__name__}: {error}); "
        f"run again with {TRACEBACK}=1 to see where, and please report it"
    )


def _leave(sentence: str, code: int) -> NoReturn:
    if os.environ.get(TRACEBACK):
        traceback.print_exc()
    click.echo(f"bica: {harmless(sentence)}", err=True)
    raise click.exceptions.Exit(code)


def _leave_quietly() -> NoReturn:
    """The reader has seen enough, as in ``bica show MODEL | head -1``."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # the interpreter flushes once more when it ends
    raise click.exceptions.Exit(0)


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
