"""Names of sources: ids that depend on the sensors alone, names that the user gives, names kept through refits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from bica.errors import SettingError
from bica.text import USUAL_NOUN, as_name, folded, shown_names

ID_LENGTH = 8  # hexadecimal digits: among 1000 sources two are alike once in some 9000 models
NEARLY = 2 / 3  # of the sensors of either: from here on a source counts as the same after a refit
ROUNDING = 1e-12  # of a share of sensors
LISTED = 5  # names in a sentence
Sets = Sequence[frozenset[str]]


def source_id(sensors: Iterable[str]) -> str:
    """A short id of the source that drives these sensors, the same whatever their order and the other sources are.

    >>> source_id(["door", "hall"]), source_id(["hall", "door"])
    ('2afc0207', '2afc0207')
    """
    text = "\0".join(sorted(sensors))
    return hashlib.blake2b(text.encode(), digest_size=ID_LENGTH // 2).hexdigest()


def renamed(
    names: Sequence[str | None], ids: Sequence[str], new_names: Mapping[str, str | None], noun: str = USUAL_NOUN
) -> tuple[str | None, ...]:
    """The names with some given anew: by id, present name, number or ``source3``; None or "" takes a name away.

    ``noun`` is the user's word for a source: where it is disease, ``disease3`` is known, too.

    >>> renamed([None, "hall"], ["1a2b3c4d", "5e6f7a8b"], {"source1": "door", "5e6f7a8b": None})
    ('door', None)
    """
    shown = shown_names(names, noun)
    place = {f"{word}{j + 1}": j for word in (USUAL_NOUN, noun, "") for j in range(len(names))}
    place.update({identity: j for j, identity in enumerate(ids)})
    place.update({name: j for j, name in enumerate(shown)})
    found = list(names)
    for key, name in new_names.items():
        if key not in place:
            raise SettingError(f"there is no {noun} {key!r}; there are {folded(shown, LISTED)}")
        found[place[key]] = None if name is None else as_name(name, f"the name of {key}").strip() or None
    given = [name for name in found if name is not None]
    twice = next((name for name in given if given.count(name) > 1), None)
    if twice is not None:
        raise SettingError(f"two sources would be called {twice!r}; give each its own name")
    return tuple(found)


def kept_names(new: Sets, old: Sets, old_names: Sequence[str | None]) -> tuple[str | None, ...]:
    """The old names for new sources, each at most once: equal sets of sensors first, then those that share most.

    A source that shares less than two thirds of the sensors of either with every named one has no name.

    >>> old = [frozenset("abc"), frozenset("d")]
    >>> kept_names([frozenset("ef"), frozenset("ab"), frozenset("d")], old, ["printer", "lift"])
    (None, 'printer', 'lift')
    """
    likeness = sorted(
        (-_shared(new[j], old[k]), j, k) for j in range(len(new)) for k in range(len(old)) if old_names[k] is not None
    )
    found: list[str | None] = [None] * len(new)
    taken: set[int] = set()
    for negative, j, k in likeness:
        if -negative >= NEARLY - ROUNDING and found[j] is None and k not in taken:
            found[j] = old_names[k]
            taken.add(k)
    return tuple(found)


def _shared(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / max(1, len(left | right))
