"""Files appear whole or not at all."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from bica.errors import BicaError, OutputError
from bica.output import check_target, end_all_passing, temporary_folder, whole_file, write_whole


@pytest.fixture
def target(tmp_path):
    return tmp_path / "model.json"


def test_text_is_written_as_utf_8_and_bytes_as_they_are(target):
    write_whole(target, "naïve\n")
    assert target.read_bytes() == "naïve\n".encode()
    write_whole(target, b"\x00\r\n", overwrite=True)
    assert target.read_bytes() == b"\x00\r\n"


def test_nothing_is_overwritten_unless_asked(target):
    target.write_text("old")
    with pytest.raises(OutputError, match=r"model.json exists already; .*--force"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    write_whole(target, "new", overwrite=True)
    assert target.read_text() == "new"


@pytest.mark.parametrize(
    ("broken", "overwrite"), [("fsync", False), ("fsync", True), ("link", False), ("replace", True)]
)
def test_a_full_disk_leaves_everything_as_it_was(target, monkeypatch, broken, overwrite):
    if overwrite:
        target.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(OutputError, match=r"model.json cannot be written: No space left on device"):
        write_whole(target, "new", overwrite=overwrite)
    assert os.listdir(target.parent) == (["model.json"] if overwrite else [])
    assert not overwrite or target.read_text() == "old"


def test_a_write_that_breaks_half_way_leaves_nothing(target, monkeypatch):
    monkeypatch.setattr("builtins.open", lambda *args, **_: HalfFile(*args))
    with pytest.raises(OutputError, match="File too large"):
        write_whole(target, "0123456789")
    assert os.listdir(target.parent) == []


class HalfFile:
    """A file that takes the first half of what it is given."""

    def __init__(self, path, mode):
        self.descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.descriptor)

    def write(self, content):
        os.write(self.descriptor, content[: len(content) // 2])
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def test_an_interruption_passes_through_and_leaves_nothing(target, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(target, "new")
    assert os.listdir(target.parent) == []


def test_a_folder_is_refused_even_with_force(tmp_path):
    with pytest.raises(OutputError, match="is a folder"):
        write_whole(tmp_path, "new", overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_device_is_written_into_and_never_replaced(overwrite):
    write_whole(os.devnull, "new", overwrite=overwrite)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OutputError, match=r"model.json cannot be written: there is no folder .*absent"):
        write_whole(tmp_path / "absent" / "model.json", "new")


@pytest.mark.parametrize("path", ["a\0b", "x" * 300], ids=["zero byte", "long name"])
def test_an_impossible_path_is_refused(tmp_path, path):
    with pytest.raises(OutputError, match="cannot be written"):
        write_whole(tmp_path / path, "new")
    assert os.listdir(tmp_path) == []


def test_what_could_not_be_written_is_refused_before_the_work(tmp_path, target):
    assert check_target(target) == target.resolve()
    assert os.listdir(tmp_path) == []
    target.write_text("old")
    for path, complaint in [(target, "exists already"), (tmp_path, "is a folder"), (target / "x", "no folder")]:
        with pytest.raises(OutputError, match=complaint):
            check_target(path)
    assert check_target(target, overwrite=True) == target.resolve()


def test_a_folder_without_the_right_to_write_is_refused_before_the_work(target, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere, so the answer is made up
    with pytest.raises(OutputError, match="may not be written into"):
        check_target(target)


def test_the_longest_possible_name_is_fine(tmp_path):
    write_whole(tmp_path / ("x" * 255), "new")
    assert os.listdir(tmp_path) == ["x" * 255]


def test_half_a_character_is_refused(target):
    with pytest.raises(OutputError, match="cannot be written"):
        write_whole(target, "\ud800")
    assert os.listdir(target.parent) == []


def test_a_link_stays_a_link(target, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    with pytest.raises(OutputError, match="exists already"):
        write_whole(link, "newer")


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OutputError, match="cannot be written"):
        write_whole(tmp_path / "loop", "new")


def test_a_new_file_has_the_usual_rights_and_an_old_one_keeps_its_own(target):
    mask = os.umask(0o027)
    try:
        write_whole(target, "new")
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        target.chmod(0o600)
        write_whole(target, "newer", overwrite=True)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    finally:
        os.umask(mask)


def test_the_error_is_ours_and_an_ordinary_one(tmp_path):
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the builtin class is the point
        write_whole(tmp_path, "new")
    assert isinstance(caught.value, BicaError)


def test_a_draft_moves_into_place_when_all_is_written(target):
    with whole_file(target) as draft:
        draft.write_text("piece by piece")
        assert not target.exists()
    assert target.read_text() == "piece by piece"
    assert os.listdir(target.parent) == [target.name]


def test_a_draft_vanishes_with_any_error_which_passes_unchanged(target):
    def break_off():
        with whole_file(target) as draft:
            draft.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        break_off()
    assert os.listdir(target.parent) == []


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_during_the_work_is_left_alone(target, monkeypatch, links):
    def no_links(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if not links:  # as on some drives for exchange
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(OutputError, match=r"model.json appeared .* left alone; the result is in .*model\.new\.json$"):
        write_while_another_writes(target)
    assert target.read_text() == "somebody else's"
    assert target.with_name("model.new.json").read_text() == "ours"
    assert len(os.listdir(target.parent)) == 2
    with pytest.raises(OutputError, match=r"the result is in .*model\.new-2\.json$"):
        write_while_another_writes(target)


def write_while_another_writes(target):
    target.unlink(missing_ok=True)
    with whole_file(target) as draft:
        draft.write_text("ours")
        target.write_text("somebody else's")


def test_with_permission_it_is_overwritten_all_the_same(target):
    with whole_file(target, overwrite=True) as draft:
        draft.write_text("ours")
        target.write_text("somebody else's")
    assert target.read_text() == "ours"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_fills_up_piece_by_piece_is_told_with_the_name_of_the_file(target):
    def fill():
        with whole_file(target) as draft:
            draft.symlink_to("/dev/full")
            with open(draft, "wb") as file:
                file.write(bytes(1 << 20))

    with pytest.raises(OutputError, match=r"model.json cannot be written: No space left on device"):
        fill()
    assert os.listdir(target.parent) == []


def test_a_program_that_cannot_unwind_still_leaves_nothing(target):
    with temporary_folder() as folder, whole_file(target) as draft:
        (folder / "inside").write_text("for a moment")
        draft.write_text("half")
        end_all_passing()
        assert not folder.exists()
        assert os.listdir(target.parent) == []
        draft.write_text("whole")
    assert os.listdir(target.parent) == [target.name]


def in_a_process(script, folder):
    """What is left among the temporary files of a program when it has ended."""
    code = f"from bica.output import begin_passing, passing_path\nimport os\n{script}"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(folder)}, capture_output=True)
    return done.returncode, os.listdir(folder)


def test_what_a_signal_keeps_from_being_entered_is_removed_when_the_program_ends(tmp_path):
    """A request to end may strike after a folder is made and before anything would remove it."""
    assert in_a_process("passing_path().mkdir(); raise SystemExit(7)", tmp_path) == (7, [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_copy_of_a_program_leaves_what_is_its_parents(tmp_path):
    script = "path = passing_path(); path.mkdir()\nif not (pid := os.fork()): raise SystemExit(0)\nos.waitpid(pid, 0)\n"
    assert in_a_process(f"{script}raise SystemExit(0 if path.exists() else 1)", tmp_path) == (0, [])
