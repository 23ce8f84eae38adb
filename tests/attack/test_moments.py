"""Hostile moments and places: ended commands, two at once, a full disk, a closed folder, no home, little memory."""

import os
import resource
import signal
import subprocess
import sys

import pytest

from tests.attack.moments import SIGNALS, a_stage, a_template, fault_in, killed

pytestmark = [pytest.mark.attack, pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")]
NOBODY = 65534


@pytest.fixture(scope="module")
def template():
    with a_template() as folder:
        yield folder


@pytest.fixture
def stage(template):
    with a_stage(template) as found:
        yield found


def ended(process):
    _, said = process.communicate(timeout=120)
    return process.returncode, said


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("name", ["simulate", "count"])
def test_a_command_that_is_ended_leaves_nothing_half_done(template, name, number):
    """Once; `python -m tests.attack --kills 300` does it for all commands."""
    assert killed(name, number, 0.5, template, rerun=number == signal.SIGTERM).faults == []


def test_of_several_at_once_one_writes_the_file_and_none_is_lost(stage):
    words = "simulate -o shared.csv --samples 3000 --seed {}"
    ends = [ended(process) for process in [stage.start(words.format(seed)) for seed in range(4)]]
    assert sum(code == 0 for code, _ in ends) == 1
    assert all("exists already" in said or "was left alone" in said for code, said in ends if code)
    assert all(fault_in(path) is None for path in stage.folder.iterdir())
    assert stage.left() == []


def test_of_several_at_once_that_may_overwrite_one_is_there_whole(stage):
    words = "simulate -o shared.csv --samples 3000 --force --seed {}"
    ends = [ended(process) for process in [stage.start(words.format(seed)) for seed in range(4)]]
    assert [code for code, _ in ends] == [0] * 4
    assert len((stage.folder / "shared.csv").read_text().splitlines()) == 3001
    assert stage.left() == []


@pytest.mark.parametrize(
    "words",
    [
        "simulate -o old.csv --force",
        "simulate -o old.parquet --force",
        "count t.csv -o old.parquet --force",
        "slots log.csv --slot 1s -o old.csv --force",
    ],
)
def test_without_room_the_older_file_stays(stage, words):
    before = stage.files()

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    code, said = ended(stage.start(words, preexec_fn=little_room))
    assert code == 3
    assert "bug" not in said
    assert stage.files() == before
    assert stage.left() == []


def usable_by_others():
    try:
        return not subprocess.run([sys.executable, "-c", "import bica"], user=NOBODY, capture_output=True).returncode
    except PermissionError:
        return False


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_may_not_be_written_into_is_named_before_the_work(stage):
    stage.folder.parent.chmod(0o755)
    stage.folder.chmod(0o555)
    stage.scratch.chmod(0o777)
    if not usable_by_others():
        pytest.skip("others may not use this environment")
    code, said = ended(stage.start("simulate -o new.csv", user=NOBODY, env={"HOME": "/nonexistent"}))
    assert code == 3
    assert "may not be written into" in said


def test_without_a_home_everything_works(stage):
    without = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME")}
    command = [sys.executable, "-m", "bica", "count", "t.csv", "-o", "counts.parquet"]
    done = subprocess.run(command, cwd=stage.folder, env=without | {"TMPDIR": str(stage.scratch)}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert fault_in(stage.folder / "counts.parquet") is None


def test_too_little_memory_is_a_sentence(stage):
    """The work asks for far more than the process may have."""
    script = (
        "import resource, re, sys\nfrom bica.cli.app import main\nimport bica.pipeline, numpy as np\n"
        "size = int(re.search(r'VmSize:\\s+(\\d+)', open('/proc/self/status').read())[1]) * 1024\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 28), size + (1 << 28)))\n"
        "bica.pipeline.observe = lambda *_, **__: np.ones(1 << 40)\n"
        "sys.argv = ['bica', 'fit', 't.csv', '-o', 'new.json']\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=stage.folder, capture_output=True, text=True)
    assert done.returncode == 4
    assert "not enough memory" in done.stderr
    assert not (stage.folder / "new.json").exists()
