"""Files of every kind into the store of events."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bica.data.captures.packets import open_bytes
from bica.data.captures.pcap import HEADER, PcapHeader
from bica.data.captures.pcapng import MAGIC
from bica.data.captures.read import Sniffer, add_capture, is_capture
from bica.data.files import check_file, kind_of
from bica.data.slots.event_files import EventColumns, add_event_log
from bica.data.slots.store import EventStore
from bica.data.standard_input import kind_inside, speaking_of_standard_input
from bica.progress import tracked


def add_files(
    store: EventStore,
    paths: Sequence[str],
    columns: EventColumns | None = None,
    *,
    sniffer: Sniffer = "file",
    skip_bad: bool = False,
) -> dict[str, dict[str, int]]:
    """Put the events of all files into the store; returns what was read and skipped of each capture, by its path.

    A path that ends in .pcap, .pcapng or .cap (also with .gz behind) is a capture; a single dash is standard input.
    """
    captures = {}
    for file, path in enumerate(tracked(paths, "reading events", len(paths))):
        with _on_disk(path) as here:
            if is_capture(here) or (path == "-" and _starts_like_a_capture(here)):
                check_file(here)
                captures[path] = add_capture(store, file, here, sniffer)
            elif path == "-":
                add_event_log(store, file, here, kind_inside(here), columns or EventColumns(), skip_bad=skip_bad)
            else:
                check_file(here)
                add_event_log(store, file, here, kind_of(here), columns or EventColumns(), skip_bad=skip_bad)
    return captures


@contextmanager
def _on_disk(path: str) -> Iterator[Path]:
    """The file itself; standard input becomes one for a while."""
    if path != "-":
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="bica-") as folder:
        here = Path(folder) / "stdin"
        with open(here, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with speaking_of_standard_input(here):
            yield here


def _starts_like_a_capture(path: Path) -> bool:
    if not os.path.getsize(path):
        return False
    with open_bytes(path) as file:
        start = file.read(HEADER)
    return start.startswith(MAGIC) or PcapHeader.of(start) is not None
