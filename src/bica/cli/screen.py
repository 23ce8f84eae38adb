"""The two screens: the answer goes to standard output, everything else to standard error."""

import json
import sys
from collections.abc import Mapping
from io import TextIOWrapper
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from bica.report.names import harmless


class Screen(Console):
    """A rich console that shows text as it is: names from files are data, not markup, emoji codes or highlights."""

    def __init__(self, stream: TextIO) -> None:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal of plain letters shows the rest as escapes
        super().__init__(file=stream, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Leave a reader that has gone to the caller, who knows what to do."""
        raise


def screen_for(output: str | None = None) -> Screen:
    """Where the table goes: standard output, unless a file is written there (``-``)."""
    return Screen(sys.stderr if output == "-" else sys.stdout)


def notes() -> Screen:
    """Where progress and notes go."""
    return Screen(sys.stderr)


def note(sentence: str) -> None:
    """One line for the person at the terminal."""
    notes().print(Text(harmless(sentence)), soft_wrap=True)


def print_json(content: Mapping[str, Any]) -> None:
    """The answer for programs, and nothing else, on standard output."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    sys.stdout.buffer.write(f"{text}\n".encode())  # JSON is UTF-8, whatever the terminal is
