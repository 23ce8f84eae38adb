"""Progress of long work: loops report how far they are, and a listener shows it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TextIO, TypeVar

Item = TypeVar("Item")
Listener = Callable[[str, int, int | None], None]  # what is being done, how many steps are done, of how many
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the reports of everything that runs inside to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(what: str, done: int, total: int | None) -> None:
    """Report to the listener that ``done`` steps are done, of ``total`` where that is known."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


def tracked(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """The same ``items``, with a report after each.

    >>> with listening(lambda what, done, total: print(what, done, total)):
    ...     list(tracked("ab", "letters", 2))
    letters 0 2
    letters 1 2
    letters 2 2
    ['a', 'b']
    """
    done = 0
    report(what, done, total)
    for item in items:
        yield item
        done += 1
        report(what, done, total)


def lines_to(stream: TextIO, pause: float = 1.0) -> Listener:
    """A listener that writes a line when something begins or ends, and every ``pause`` seconds in between.

    >>> import sys
    >>> with listening(lines_to(sys.stdout, pause=60)):
    ...     list(tracked("abc", "letters", 3))
    letters: 0 of 3
    letters: 3 of 3
    ['a', 'b', 'c']
    """
    last = monotonic()

    def listener(what: str, done: int, total: int | None) -> None:
        nonlocal last
        if done in (0, total) or monotonic() >= last + pause:
            last = monotonic()
            print(f"{what}: {done}" if total is None else f"{what}: {done} of {total}", file=stream, flush=True)

    return listener
