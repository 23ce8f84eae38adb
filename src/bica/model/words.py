"""Counts and lists in words, for sentences and tables."""

from collections.abc import Sequence


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
