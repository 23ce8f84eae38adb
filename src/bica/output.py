"""Files that appear whole or not at all; drafts and temporary folders that are gone when the program ends.

Where a command names an output, a single dash is standard output.
"""

import atexit
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NoReturn

from bica.errors import OutputError, SettingError, Terminated

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EINVAL, errno.EACCES)


_asked_to_end = False


def terminate() -> NoReturn:
    """Answer the request to end: what runs unwinds, and its drafts and temporary folders go."""
    global _asked_to_end
    _asked_to_end = True
    raise Terminated


def interruption() -> BaseException:
    """What a library that reports only that a signal came should have raised."""
    return Terminated() if _asked_to_end else KeyboardInterrupt()


def _new_name() -> str:
    """Sixteen digits that nothing else is called by."""
    return os.urandom(8).hex()


_passing: set[Path] = set()  # drafts and temporary files and folders that exist at this moment


def begin_passing(path: Path) -> None:
    """Note, before it is made, that ``path`` must not outlive the program."""
    _passing.add(path)


def passing_path() -> Path:
    """A new name among the temporary files, for what must not outlive the program."""
    import tempfile  # here and below: heavy imports wait, so that `bica --help` starts at once

    path = Path(tempfile.gettempdir()) / f"bica-{_new_name()}"
    begin_passing(path)
    return path


def end_passing(path: Path) -> None:
    """Remove what is left of ``path``, a file or a folder."""
    import shutil

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    _passing.discard(path)


def end_all_passing() -> None:
    """The last act of a program: remove every draft and temporary file that unwinding has left."""
    for path in list(_passing):
        end_passing(path)


atexit.register(end_all_passing)  # a signal may strike between making a file and entering what would remove it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_passing.clear)  # they are the parent's


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for nobody else, gone afterwards.

    >>> with temporary_folder() as folder:
    ...     _ = (folder / "note.txt").write_text("for a moment")
    >>> folder.exists()
    False
    """
    import shutil

    folder = passing_path()
    try:
        with _plainly(folder):
            folder.mkdir(0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _passing.discard(folder)


def check_outputs(force: bool, *paths: str | None, read: Sequence[str | None] = (), as_json: bool = False) -> None:
    """Before the work, refuse files that could not be written after it; None is no file.

    Standard output carries one thing only, which may be an answer ``as_json``, and a file is written once. What is
    ``read`` is never overwritten, whatever was asked for.
    """
    wanted = [path for path in paths if path is not None]
    if as_json and "-" in wanted:
        raise SettingError("--json and a file written to `-` both want standard output; choose one")
    if len(set(wanted)) < len(wanted):
        raise SettingError("two outputs go to the same place; name them differently")
    for path in wanted:
        if path != "-":
            check_target(path, overwrite=force)
            for source in read:
                if source is not None and _is_same_file(path, source):
                    raise SettingError(f"{path} is what is read, and would be lost; name another file")


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.isfile(path) and os.path.samefile(path, other)
    except (OSError, ValueError):  # no such file, or no such name
        return False


def write_output(path: str, content: str | bytes, force: bool) -> None:
    """Write a whole file, or send it to standard output."""
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content.encode() if isinstance(content, str) else content)
    else:
        write_whole(path, content, overwrite=force)


def write_whole(path: str | Path, content: str | bytes, *, overwrite: bool = False) -> None:
    """Write ``content`` beside ``path`` first, then move it there in one step.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> write_whole(Path(folder.name) / "note.txt", "all of it")
    >>> os.listdir(folder.name)
    ['note.txt']
    """
    with _plainly(path):
        data = content.encode() if isinstance(content, str) else content
    with whole_file(path, overwrite=overwrite) as draft, _plainly(path), open(draft, "wb") as file:
        file.write(data)


@contextmanager
def whole_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A draft beside ``path`` to write into, piece by piece; it is moved there at the end, or removed after an error.

    A file that appears at ``path`` meanwhile is left alone unless ``overwrite`` is set: the draft then moves to a free
    name beside it, which the error reports.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> with whole_file(Path(folder.name) / "note.txt") as draft:
    ...     _ = draft.write_text("all of it")
    >>> os.listdir(folder.name)
    ['note.txt']
    """
    target = check_target(path, overwrite=overwrite)
    if _is_device(target):  # a pipe or /dev/null is written into, never replaced
        with _full_disk_named(path, target):
            yield target
        return
    draft = target.with_name(f".bica-{_new_name()}")  # in the same folder: a move within it is one step
    begin_passing(draft)
    try:
        with _full_disk_named(path, draft):
            yield draft
        with _plainly(path):
            _move_into_place(draft, target, overwrite=overwrite)
    finally:
        draft.unlink(missing_ok=True)
        _passing.discard(draft)


def check_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The file that ``path`` leads to, links followed; refused before the work if it could not be written after it."""
    with _plainly(path):
        target = Path(path).resolve()
        if target.is_dir():
            raise OutputError(f"{path} is a folder; name a file")
        if not target.parent.is_dir():
            raise OutputError(f"{path} cannot be written: there is no folder {target.parent}")
        if _is_device(target):
            return target
        if target.exists() and not overwrite:
            raise OutputError(f"{path} exists already; choose another name or ask to overwrite it (--force)")
        if not os.access(target.parent, os.W_OK):
            raise OutputError(f"{path} cannot be written: the folder {target.parent} may not be written into")
    return target


def free_name(path: str | Path, word: str) -> Path:
    """A name beside ``path`` that no file has.

    >>> free_name("no/such/model.json", "unfinished").as_posix()
    'no/such/model.unfinished.json'
    """
    path = Path(path)
    names = (f"{path.stem}.{word}{'' if n == 1 else f'-{n}'}{path.suffix}" for n in count(1))
    return next(path.with_name(name) for name in names if not os.path.lexists(path.with_name(name)))


@contextmanager
def _plainly(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # the disk, the path or the text; a link that leads to itself
        raise OutputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def _full_disk_named(path: str | Path, draft: Path) -> Iterator[None]:
    """The system does not say which file it had no room for; other errors pass."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError) or not (error.errno in NO_ROOM or error.filename == str(draft)):
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror}") from error


def _is_device(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _move_into_place(draft: Path, target: Path, *, overwrite: bool) -> None:
    with open(draft, "rb+") as file:
        os.fsync(file.fileno())
    if overwrite:
        if target.exists():
            import shutil

            shutil.copymode(target, draft)
        os.replace(draft, target)
        return
    try:
        _move_to_free_place(draft, target)
    except FileExistsError:
        beside = free_name(target, "new")
        _move_to_free_place(draft, beside)
        raise OutputError(
            f"{target} appeared while the work went on and was left alone; the result is in {beside}"
        ) from None


def _move_to_free_place(draft: Path, target: Path) -> None:
    """Move in one step that fails where a file is: a second link, since renaming would replace it."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(target):  # file systems without links leave a moment between this look and the move
            raise FileExistsError from None
        os.replace(draft, target)
