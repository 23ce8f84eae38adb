"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path

from bica.errors import OutputError


def write_whole(path: str | Path, content: str | bytes, *, overwrite: bool = False) -> None:
    """Write ``content`` beside ``path`` first, then move it there in one step.

    >>> folder = tempfile.TemporaryDirectory()
    >>> write_whole(Path(folder.name) / "note.txt", "all of it")
    >>> os.listdir(folder.name)
    ['note.txt']
    """
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{target} is a folder; name a file")
    if target.exists() and not overwrite:
        raise OutputError(f"{target} exists already; choose another name or ask to overwrite it (--force)")
    try:
        _move_into_place(target, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {error.strerror or error}") from error


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
