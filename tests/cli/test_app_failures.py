"""What goes wrong is told in one sentence and in the exit code."""

import os
import signal
import subprocess
import sys
import warnings
from functools import partial

import click
import pytest

from bica import errors
from bica.cli.app import plain_errors
from tests.cli.conftest import shell, write_model

CODES = {
    errors.DataError: 3,
    errors.InfeasibleError: 3,
    errors.LimitError: 4,
    errors.MissingExtraError: 3,
    errors.ModelError: 3,
    errors.ModelFileError: 3,
    errors.OutputError: 3,
    errors.SettingError: 2,
}


def leave(error: BaseException) -> int:
    with pytest.raises(click.exceptions.Exit) as left, plain_errors():
        raise error
    return left.value.exit_code


def test_every_error_of_ours_has_a_code():
    ours = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.BicaError)}
    assert ours - {errors.BicaError, errors.RowError} == CODES.keys()  # that one is made of a row and its trouble


@pytest.mark.parametrize("kind", CODES)
def test_our_errors_are_one_sentence(kind, capsys):
    assert leave(kind("row 3 holds 2")) == CODES[kind]
    assert capsys.readouterr() == ("", "bica: row 3 holds 2\n")


def test_python_running_out_of_memory_is_a_limit(capsys):
    assert leave(MemoryError()) == 4
    assert "memory" in capsys.readouterr().err


def test_a_bug_is_our_fault_and_says_how_to_see_more(capsys):
    assert leave(KeyError("lost")) == 1
    told = capsys.readouterr().err
    assert "bug in bica" in told
    assert "BICA_TRACEBACK=1" in told
    assert "Traceback" not in told


def test_the_traceback_is_there_on_request(capsys, monkeypatch):
    monkeypatch.setenv("BICA_TRACEBACK", "1")
    leave(KeyError("lost"))
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_130(capsys):
    assert leave(KeyboardInterrupt()) == 130
    assert "interrupted" in capsys.readouterr().err


def test_an_interrupt_that_python_wraps_while_it_imports_is_one_all_the_same(capsys):
    wrapped = RuntimeError("Error calling __set_name__ on 'abstractmethod' instance")
    wrapped.__cause__ = KeyboardInterrupt()
    assert leave(wrapped) == 130
    assert capsys.readouterr().err == "bica: interrupted; no file was left half-written\n"


def test_a_sentence_stays_one_line_whatever_it_quotes(capsys):
    leave(errors.DataError("column 'a\n\x1b[31m' is strange"))
    assert capsys.readouterr().err == "bica: column 'a\\n\\x1b[31m' is strange\n"


def test_our_warnings_are_sentences_and_others_stay(capsys):
    with warnings.catch_warnings(record=True) as others, plain_errors():
        warnings.warn("too few quiet rows", errors.BicaWarning, stacklevel=1)
        warnings.warn("old", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "bica: warning: too few quiet rows\n"
    assert [str(other.message) for other in others] == ["old"]


def test_usage_errors_pass():
    with pytest.raises(click.UsageError), plain_errors():
        raise click.UsageError("no")


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    sensors = [f"sensor_{i:05}" for i in range(30_000)]
    model = write_model(tmp_path / "m.json", sensors=sensors, sources=[{"sensors": sensors, "probability": 0.5}])
    command = [sys.executable, "-m", "bica", "show", str(model), "--full"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "1 source behind 30000 sensors\n"
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_full_disk_under_standard_output_is_told(model_file):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "bica", "show", str(model_file), "--json"]
        shown = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert shown.returncode == 3
    assert shown.stderr.count("\n") == 1
    assert "No space left" in shown.stderr


SLOW = """
import time
from bica.cli.app import main
from bica.estimate.likelihood import Likelihood

def fit(self, data, rng):
    print("busy", flush=True)
    time.sleep(600)

Likelihood.fit = fit
main()
"""


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n0,1\n")
    command = [sys.executable, "-c", SLOW, "fit", str(tmp_path / "table.csv"), "-o", str(tmp_path / "model.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "busy\n"
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate()
    assert (process.returncode, rest) == (130, "")
    assert told.endswith("bica: interrupted; no file was left half-written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_python_dash_m_tells_errors_the_same_way(tmp_path):
    shown = shell("show", tmp_path / "nothing.json")
    assert shown.returncode == 3
    assert shown.stdout == ""
    assert shown.stderr == f"bica: there is no file {tmp_path / 'nothing.json'}; check the name and the folder\n"


BUSY = """
import hashlib, time
from bica.cli.app import main
from bica.data.slots import tables

def busy(*_):
    print("busy", flush=True)
    {wait}

tables._on_cells = busy
main()
"""
WAITING = {
    "unwinding": "time.sleep(600)",
    "stuck in compiled code": 'hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)',  # hears no signal until it is done
}


@pytest.mark.skipif(os.name == "nt", reason="nothing can be asked to end there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("wait", WAITING.values(), ids=WAITING)
def test_a_request_to_end_leaves_neither_drafts_nor_temporary_folders(tmp_path, wait, number):
    output, scratch = tmp_path / "output", tmp_path / "scratch"
    output.mkdir()
    scratch.mkdir()
    (tmp_path / "events.csv").write_text("time,sensor\n1,a\n2,b\n")
    words = ["slots", tmp_path / "events.csv", "--slot", "1s", "-o", output / "table.csv"]
    command = [sys.executable, "-c", BUSY.format(wait=wait), *map(str, words)]
    environment = os.environ | {"TMPDIR": str(scratch)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    heard = partial(signal.signal, number, signal.SIG_DFL)  # nohup before the tests would ignore it
    with subprocess.Popen(command, env=environment, preexec_fn=heard, **pipes) as process:
        assert process.stdout.readline() == "busy\n"
        assert len(list(output.iterdir())) == len(list(scratch.iterdir())) == 1
        process.send_signal(number)
        _, told = process.communicate(timeout=5)
    assert process.returncode == 143
    assert told.endswith("bica: ended on request; no file was left half-written\n")
    assert "Traceback" not in told
    assert list(output.iterdir()) == list(scratch.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="nothing can be asked to end there")
def test_a_request_to_end_is_no_ctrl_c_to_which_a_fit_answers_with_what_it_has(tmp_path):
    """Also where the engine turns every signal into an error of its own."""
    script = (
        "import os, signal, sys, duckdb\nfrom bica.cli.app import plain_errors\n"
        "from bica.data.readers.engine import connection, ctrl_c_passing\n"
        "import threading\nthreading.Timer(1, os.kill, (os.getpid(), signal.SIGTERM)).start()\n"
        "with plain_errors(), connection() as engine, ctrl_c_passing():\n"
        "    engine.execute('SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b').fetchall()\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"TMPDIR": str(tmp_path)}, timeout=60
    )
    assert "bica: ended on request" in done.stderr
    assert "interrupted" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_handlers_of_signals_come_back():
    before = signal.getsignal(signal.SIGTERM)
    with plain_errors():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")
class TestClosedStreams:
    def test_an_answer_that_cannot_be_given_is_an_error(self, model_file):
        for words in ("show", "show --json"):
            done = closed(f"{words.split()[0]} {model_file} {' '.join(words.split()[1:])} >&-")
            assert (done.returncode, done.stderr) == (
                3,
                "bica: standard output is closed, so the answer could not be given\n",
            )

    def test_files_are_written_all_the_same(self, model_file, tmp_path):
        done = closed(f"export {model_file} -o {tmp_path / 'graph.dot'} >&- 2>&- <&-")
        assert done.returncode in (0, 3)
        assert (tmp_path / "graph.dot").read_text().startswith('graph "bica"')

    def test_without_standard_error_the_exit_code_is_left(self, tmp_path):
        assert closed(f"show {tmp_path / 'absent.json'} 2>&-").returncode == 3

    def test_without_standard_input_there_is_no_table(self):
        done = closed("fit - <&-")
        assert done.returncode == 3
        assert "bug" not in done.stderr


def closed(words):
    return subprocess.run(f"{sys.executable} -m bica {words}", shell=True, capture_output=True, text=True, timeout=60)


REFUSED = """
import sys
from pathlib import Path
from click.testing import CliRunner
from bica.cli.app import app

folder = Path(sys.argv[1])
for name in ("good.json", "good.csv", "good.html", "good.graphml", "good.parquet"):
    (folder / name).write_text("kept")
for words in (
    "fit t.csv -o good.json",
    "decode m.json t.csv -o good.csv",
    "report m.json -o good.html",
    "simulate -o good.csv",
    "export m.json -o good.graphml",
    "count t.csv -o good.parquet",
    "spectrum simulate -o good.csv",
    "spectrum fit t.csv -o good.json",
):
    words = [str(folder / word) if "." in word else word for word in words.split()]
    done = CliRunner().invoke(app, words, prog_name="bica")
    assert "exists already" in done.output, (words, done.output)
    loaded = {"numpy", "numba", "sklearn", "duckdb", "rich"} & sys.modules.keys()
    assert not loaded, (words, loaded)
"""


def test_a_file_that_exists_is_refused_before_anything_heavy_is_loaded(tmp_path):
    done = subprocess.run([sys.executable, "-c", REFUSED, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
