"""Files that appear whole or not at all."""

import os
import secrets
import shutil
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
    try:
        target = Path(path).resolve()  # a link stays a link, and what it points to is written
        obstacle = _obstacle(target, overwrite)
        if obstacle is None:
            _move_into_place(target, content.encode() if isinstance(content, str) else content)
    except (OSError, ValueError, RuntimeError) as error:  # the disk, the path or the text; a link that leads to itself
        raise OutputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from error
    if obstacle is not None:
        raise OutputError(f"{path} {obstacle}")


def _obstacle(target: Path, overwrite: bool) -> str | None:
    if target.is_dir():
        return "is a folder; name a file"
    if target.exists() and not target.is_file():
        return "is no ordinary file; name another"
    if target.exists() and not overwrite:
        return "exists already; choose another name or ask to overwrite it (--force)"
    return None


def _move_into_place(target: Path, content: bytes) -> None:
    draft = target.with_name(f".bica-{secrets.token_hex(8)}")  # in the same folder: a move within it is one step
    try:
        with open(draft, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
