"""Files that appear whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bica.errors import OutputError


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

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> with whole_file(Path(folder.name) / "note.txt") as draft:
    ...     _ = draft.write_text("all of it")
    >>> os.listdir(folder.name)
    ['note.txt']
    """
    target = check_target(path, overwrite=overwrite)
    if _is_device(target):  # a pipe or /dev/null is written into, never replaced
        yield target
        return
    draft = target.with_name(f".bica-{secrets.token_hex(8)}")  # in the same folder: a move within it is one step
    try:
        yield draft
        with _plainly(path):
            _move_into_place(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


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


@contextmanager
def _plainly(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # the disk, the path or the text; a link that leads to itself
        raise OutputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from error


def _is_device(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _move_into_place(draft: Path, target: Path) -> None:
    with open(draft, "rb+") as file:
        os.fsync(file.fileno())
    if target.exists():
        shutil.copymode(target, draft)
    os.replace(draft, target)
