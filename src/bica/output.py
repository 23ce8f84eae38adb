"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bica.errors import OutputError


def write_whole(path: str | Path, content: str | bytes, *, overwrite: bool = False) -> None:
    """Write ``content`` beside ``path`` first, then move it there in one step.

    >>> folder = tempfile.TemporaryDirectory()
    >>> write_whole(Path(folder.name) / "note.txt", "all of it")
    >>> os.listdir(folder.name)
    ['note.txt']
    """
    target = check_target(path, overwrite=overwrite)
    data = content.encode() if isinstance(content, str) else content
    with _plainly(target):
        if _is_device(target):  # a pipe or /dev/null is written into, never replaced
            target.write_bytes(data)
        else:
            _move_into_place(target, data)


def check_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """Refuse before the work what could not be written after it."""
    target = Path(path)
    with _plainly(target):
        if target.is_dir():
            raise OutputError(f"{target} is a folder; name a file")
        if not target.parent.is_dir():
            raise OutputError(f"{target} cannot be written: there is no folder {target.parent}")
        if _is_device(target):
            return target
        if target.exists() and not overwrite:
            raise OutputError(f"{target} exists already; choose another name or ask to overwrite it (--force)")
        if not os.access(target.parent, os.W_OK):
            raise OutputError(f"{target} cannot be written: the folder {target.parent} may not be written into")
    return target


@contextmanager
def _plainly(target: Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {error.strerror or error}") from error


def _is_device(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _move_into_place(target: Path, content: bytes) -> None:
    handle, draft = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
