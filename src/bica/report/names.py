"""Names from files, made safe to show: they may hold anything, even commands to the terminal."""

import itertools
from collections.abc import Sequence


def harmless(text: str) -> str:
    r"""The text with every character that does not simply print written as an escape.

    >>> print(harmless("red\x1b[31m\nalert"))
    red\x1b[31m\nalert
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Harmless names, told apart where two of them look the same.

    >>> distinct_names(["link", "link", "other"])
    ['link', 'link (2)', 'other']
    """
    told: dict[str, None] = {}
    for name in map(harmless, names):
        tries = (name if count == 1 else f"{name} ({count})" for count in itertools.count(1))
        told[next(candidate for candidate in tries if candidate not in told)] = None
    return list(told)
