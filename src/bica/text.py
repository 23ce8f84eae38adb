"""Plain wording: names as text, safe to show and told apart; counts, lists and verdicts in words. Needs no NumPy."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from reprlib import repr as shortened
from typing import Any

from bica.errors import ModelError

HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")  # a surrogate, which UTF-8 cannot write


def harmless(text: str) -> str:
    r"""The text with every character that does not simply print written as an escape.

    >>> print(harmless("red\x1b[31m\nalert"))
    red\x1b[31m\nalert
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def as_name(value: Any, what: str) -> str:
    """Plain text, or one sentence on why this is none."""
    if not isinstance(value, str):
        raise ModelError(f"{what} must be text, but {shortened(value)} was given")
    if HALF_A_CHARACTER.search(value):
        raise ModelError(f"{what} must be Unicode text, but {shortened(value)} holds half a character")
    return str(value)


def as_distinct_names(values: Iterable[Any], what: str) -> tuple[str, ...]:
    """Plain texts, no two alike.

    >>> as_distinct_names(["door", "hall", "door"], "a sensor name")
    Traceback (most recent call last):
    bica.errors.ModelError: a sensor name must be given once only, but 'door' comes twice
    """
    names: dict[str, None] = {}
    for value in values:
        name = as_name(value, what)
        if name in names:
            raise ModelError(f"{what} must be given once only, but {shortened(name)} comes twice")
        names[name] = None
    return tuple(names)


def told_apart(names: Iterable[str]) -> tuple[str, ...]:
    """The names, with a number behind each that was there before.

    >>> told_apart(["link", "link", "other"])
    ('link', 'link (2)', 'other')
    """
    told: dict[str, None] = {}
    numbers: dict[str, Iterator[int]] = {}
    for name in names:
        candidate = name
        while candidate in told:
            candidate = f"{name} ({next(numbers.setdefault(name, count(2)))})"
        told[candidate] = None
    return tuple(told)


def counted(n: float, thing: str) -> str:
    """A number with its noun.

    >>> counted(1, "source"), counted(12000, "row")
    ('1 source', '12000 rows')
    """
    return f"{n:.15g} {thing}" if n == 1 else f"{n:.15g} {thing}s"


def folded(names: Sequence[str], at_most: int, n_names: int | None = None) -> str:
    """The names in a row, ending in how many were left out; ``n_names`` if there are more than were given.

    >>> folded(["a", "b", "c", "d"], 2), folded(["a", "b", "c", "d"], 2, 9)
    ('a, b, and 2 more', 'a, b, and 7 more')
    """
    total = len(names) if n_names is None else n_names
    if len(names) == total <= at_most + 1:  # leaving out a single name saves nothing
        return ", ".join(names)
    return ", ".join([*names[:at_most], f"and {total - len(names[:at_most])} more"])


def percent(share: float) -> str:
    """A share in words, never rounded to nothing or to everything.

    >>> percent(0.1234), percent(0.00001), percent(0.99999), percent(0), percent(1)
    ('12.3 %', 'less than 0.1 %', 'more than 99.9 %', '0 %', '100 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1:
        return "more than 99.9 %"
    return f"{100 * share:.3g} %"


VERDICTS = {
    "fits": "the rows are as the model has them",
    "doubtful": "take the model with care",
    "misfit": "the rows contradict the model",
    "open": "so far nothing speaks against independent sources; a fit will tell",
}


def verdict_words(verdict: str) -> str:
    """The verdict and what it means.

    >>> verdict_words("fits")
    'fits: the rows are as the model has them'
    """
    return f"{verdict}: {VERDICTS[verdict]}" if verdict in VERDICTS else verdict
