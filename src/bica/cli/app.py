"""The command ``bica``: a table of commands, each loaded when it is called; its errors are one plain sentence.

The sentence goes to standard error, and the kind of error is the exit code.
"""

import errno
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from bica.errors import BicaError, BicaWarning, ColumnWarning, SettingError, Terminated
from bica.text import harmless
from bica.version import __version__

OUR_FAULT, USAGE, BAD_DATA, LIMIT, INTERRUPTED, TERMINATED = 1, 2, 3, 4, 130, 143
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
GRACE = 0.5  # seconds to unwind after a request to end; a compiled loop may take longer to notice
ENDED = "ended on request; no file was left half-written"
TRACEBACK = "BICA_TRACEBACK"
SETTING = re.compile(r"`(drop|columns|id|time|long|binarize|sources|sample_weight)`")  # that are options
LIKE = 0.55  # how much of a word must agree with the one that was meant


def nearest(typed: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant; None if none is near.

    >>> nearest("fti", ["fit", "show"]), nearest("xyz", ["fit", "show"])
    ('fit', None)
    """
    from difflib import get_close_matches

    found = get_close_matches(typed.lower(), list(names), n=1, cutoff=LIKE)
    return found[0] if found else None


class LazyGroup(click.Group):
    """A group that loads a command when it is called; ``table`` has the module and the summary of each by name."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which a new user needs them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name: a function of the same name in its module, or of the name after a colon."""
        if cmd_name not in self.table:
            return None
        module, _, function = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), function or cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was typed; where there is none of that name, the one that was probably meant is named."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            meant = nearest(args[0], self.table)
            if meant is None:
                raise
            raise click.UsageError(f"No such command {args[0]!r}; did you mean {meant}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the summaries without loading a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.table.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every error it raises is reported in one sentence."""
        with plain_errors():
            return super().invoke(ctx)


COMMANDS = {
    "demo": (
        "bica.cli.commands.demo",
        "Find the hidden links behind a small bundled table, and compare with the truth.",
    ),
    "check": (
        "bica.cli.commands.slots",
        "Check TABLE before any fit: whether hidden sources can explain it or another tool suits it, and the cost.",
    ),
    "slots": (
        "bica.cli.commands.slots",
        "Turn EVENTS, logs or captures, into a table of zeros and ones: one row per slot.",
    ),
    "fit": ("bica.cli.commands.fit", "Learn the sources behind TABLE, a file of zeros and ones."),
    "unmix": (
        "bica.cli.commands.fit",
        "Unmix measurements: what each source adds to the columns of TABLE while it is on, and when it was on.",
    ),
    "count": (
        "bica.cli.commands.slots",
        "Count the distinct rows of each TABLE into one file, from which models are learned.",
    ),
    "show": ("bica.cli.commands.show", "Show the sources of MODEL: their sensors and how often each is on."),
    "name": ("bica.cli.commands.show", "Give sources of MODEL names, and say what sensors, sources and rows are."),
    "report": ("bica.cli.commands.report", "Write a report to send: MODEL as one HTML file that needs no network."),
    "serve": ("bica.cli.commands.report", "Open a page on this machine to learn, see and question a model."),
    "decode": ("bica.cli.commands.decode", "Find which sources of MODEL were on in each row of TABLE."),
    "explain": (
        "bica.cli.commands.decode",
        "Explain one observation: the likeliest sets of active sources of MODEL behind it.",
    ),
    "watch": (
        "bica.cli.commands.watch",
        "Watch ROWS as they arrive: which sources of MODEL switch on and off, and when the world has changed.",
    ),
    "simulate": ("bica.cli.commands.simulate", "Make a table of zeros and ones whose sources are known."),
    "score": ("bica.cli.commands.compare", "Measure how far MODEL is from TRUTH, another model file."),
    "compare": (
        "bica.cli.commands.compare",
        "Compare methods: on each TABLE, on simulated problems, or both.",
    ),
    "reproduce": ("bica.cli.commands.reproduce", "Run the paper's experiments again: results, figures and tables."),
    "export": ("bica.cli.commands.show", "Write MODEL as a graph or a list for other programs."),
    "monitor": ("bica.cli.commands.monitor", "Choose the channel that each sniffer should watch."),
    "spectrum": ("bica.cli.commands.spectrum", "Separate the users of a radio spectrum by what monitors report."),
    "warmup": ("bica.cli.commands.demo", "Compile ahead what fits, decodes and reports need, once on each machine."),
}


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="bica %(version)s")
def app() -> None:
    """Find the independent hidden causes behind on/off data.

    Start with `bica demo`, then `bica fit TABLE -o MODEL`. Every command explains itself with --help.
    """


def main() -> None:
    """Run the command line: the script ``bica`` and ``python -m bica`` call this."""
    app(prog_name="bica")


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
        if _comes_from_ctrl_c(error):
            _leave("interrupted; no file was left half-written", INTERRUPTED)
        _leave(_sentence(error), _exit_code(error))


def _comes_from_ctrl_c(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: Python 3.11 wraps whatever is raised while a class is made, as in imports."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _exit_code(error: Exception) -> int:
    if isinstance(error, SettingError):
        return USAGE
    if isinstance(error, MemoryError):  # ours, LimitError, and Python's own
        return LIMIT
    return BAD_DATA if isinstance(error, BicaError | OSError) else OUR_FAULT


def _sentence(error: Exception) -> str:
    if isinstance(error, BicaError):
        return SETTING.sub(lambda found: f"--{'weights' if found[1] == 'sample_weight' else found[1]}", str(error))
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
        import traceback

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
    from bica.output import terminate  # here and below: `bica --help` needs none of it

    terminate()


def _end_without_unwinding(reading: int, requests: list[int], finished: threading.Event) -> None:
    said = ""
    while (number := os.read(reading, 1)) and number[0] not in requests:
        if number[0] == signal.SIGINT and not finished.is_set():  # at once, however long a compiled loop takes
            from bica.cli.options import SAID

            if said != SAID["on Ctrl-C"]:  # the server raises the signal once more when it has ended
                said = SAID["on Ctrl-C"]
                with suppress(OSError):
                    os.write(2, f"\n{said}\n".encode())
    if number and not finished.wait(GRACE):
        from bica.output import end_all_passing

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
            if issubclass(category, ColumnWarning):
                click.echo(f"note: {harmless(str(message))}", err=True)
            elif issubclass(category, BicaWarning):
                click.echo(f"bica: warning: {harmless(str(message))}", err=True)
            else:
                usual(message, category, *place, **named)

        warnings.simplefilter("always", BicaWarning)
        warnings.showwarning = show
        yield
