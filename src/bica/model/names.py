"""Names of sensors and sources: text that a file can hold, told apart where it must be."""

import re
from collections.abc import Iterable, Iterator
from itertools import count
from reprlib import repr as shortened
from typing import Any

from bica.errors import ModelError

HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")  # a surrogate, which UTF-8 cannot write


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
