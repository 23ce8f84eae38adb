"""Models in and files out, where a single dash is standard input or output."""

import sys

from bica.model.files import ModelDocument, parse_document, read_document
from bica.output import check_target, write_whole


def read_model(path: str) -> ModelDocument:
    """The model in this file, in plain values."""
    if path == "-":
        return parse_document(sys.stdin.buffer.read(), "standard input")
    return read_document(path)


def check_outputs(force: bool, *paths: str | None) -> None:
    """Before the work: refuse what could not be written after it."""
    for path in paths:
        if path not in (None, "-"):
            check_target(path, overwrite=force)


def write_file(path: str, content: str | bytes, force: bool) -> None:
    """Write a whole file, or send it to standard output."""
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content.encode() if isinstance(content, str) else content)
    else:
        write_whole(path, content, overwrite=force)
