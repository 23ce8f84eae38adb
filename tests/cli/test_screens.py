"""Long work shows how far it is; short work stays quiet."""

import io
import sys
import time

import pytest

from bica.cli import options as module
from bica.cli.options import waiting
from bica.kernels import compiled
from bica.progress import WAIT, in_threads, report, tracked


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 30
        while text not in self.getvalue():
            assert time.monotonic() < deadline, self.getvalue()
            time.sleep(0.01)


@pytest.fixture
def stream_of(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")

    def made(*, terminal: bool, patience: float) -> Stream:
        stream = Stream(terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(module, "PATIENCE", patience)
        return stream

    return made


def test_long_work_shows_what_it_does(stream_of):
    stream = stream_of(terminal=True, patience=0.0)
    with waiting("learning [red]"):
        stream.wait_for("learning [red]")


def test_loops_that_report_move_the_bar(stream_of):
    stream = stream_of(terminal=True, patience=0.0)
    with waiting("learning"):
        for step in tracked(range(4), "sensors", 4):
            if step == 2:
                stream.wait_for("50%")
    assert "sensors" in stream.getvalue()


def test_short_work_is_quiet(stream_of):
    stream = stream_of(terminal=True, patience=600.0)
    with waiting("learning"):
        pass
    assert stream.getvalue() == ""


def test_a_file_gets_no_bar(stream_of):
    stream = stream_of(terminal=False, patience=0.0)
    with waiting("learning"):
        list(tracked(range(4), "sensors", 4))
    assert stream.getvalue() == ""


def test_without_a_terminal_lines_come_while_the_work_goes_on(stream_of, monkeypatch):
    stream = stream_of(terminal=False, patience=0.0)
    monkeypatch.setattr(module, "PAUSE", 0.01)
    with waiting("learning"):
        report("adding sources; score -12.5, sources", 4, None)
        stream.wait_for("learning: adding sources; score -12.5, sources: 4 (0 s)\n")
        report("blocks", 3, 9)
        stream.wait_for("learning: blocks, 3 of 9 (")
    length = len(stream.getvalue())
    time.sleep(0.05)
    assert len(stream.getvalue()) == length


def test_no_bar_stands_at_its_end_while_work_goes_on(stream_of):
    stream = stream_of(terminal=True, patience=0.0)
    with waiting("learning"):
        list(tracked(range(4), "sensors", 4))
        stream.wait_for("sensors, 4 of 4")
    assert "100%" not in stream.getvalue()


def test_the_cursor_is_back_after_an_interrupt(stream_of):
    stream = stream_of(terminal=True, patience=0.0)

    def interrupted():
        with waiting("learning"):
            stream.wait_for("learning")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("\x1b[?25l")


def test_without_a_terminal_the_first_run_says_once_that_it_compiles(capsys):
    with waiting("learning"):
        compiled.announce()
        compiled.announce()
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"{WAIT}\n"


def test_on_a_terminal_the_bar_counts_the_kernels(stream_of):
    stream = stream_of(terminal=True, patience=0.0)
    with waiting("learning"):
        compiled.announce()
        stream.wait_for("compiling, once")
        stream.wait_for(" of about ")


def test_a_kernel_that_a_thread_compiles_is_announced(capsys):
    with waiting("learning"):
        list(in_threads(lambda _: compiled.announce(), [1, 2], n_jobs=2))
    assert capsys.readouterr().err == f"{WAIT}\n"
