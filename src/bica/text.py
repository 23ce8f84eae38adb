"""Plain wording: names as text, distinct and safe to show; counts, lists and verdicts in words. Needs no NumPy."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, zip_longest
from reprlib import Repr
from reprlib import repr as shortened
from typing import Any

from bica.errors import ModelError

HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")  # a surrogate, which UTF-8 cannot write


def harmless(text: str) -> str:
    r"""The text with every character that is not printable written as an escape.

    >>> print(harmless("red\x1b[31m\nalert"))
    red\x1b[31m\nalert
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_BRIEF = Repr()
_BRIEF.maxstring = _BRIEF.maxother = 200  # characters; names are seldom longer, and a sentence stays one


def brief(value: Any) -> str:
    """What a value looks like, cut in the middle if that is long.

    >>> brief("door"), len(brief("x" * 10**6)), brief(10**6000)
    ("'door'", 200, 'a number of thousands of digits')
    """
    try:
        return _BRIEF.repr(value)
    except ValueError:  # Python writes whole numbers of up to 4300 digits
        return "a number of thousands of digits"


def as_name(value: Any, what: str) -> str:
    """The value as plain text, or an error that says why it is none."""
    if not isinstance(value, str):
        raise ModelError(f"{what} must be text, but {shortened(value)} was given")
    if HALF_A_CHARACTER.search(value):
        raise ModelError(f"{what} must be Unicode text, but {shortened(value)} holds half a character")
    return str(value)


def as_distinct_names(values: Iterable[Any], what: str) -> tuple[str, ...]:
    """The values as plain texts, or an error if two are alike.

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
    """The names, with a number added to each that occurred before.

    >>> told_apart(["link", "link", "other"])
    ('link', 'link (2)', 'other')
    """
    distinct: dict[str, None] = {}
    numbers: dict[str, Iterator[int]] = {}
    for name in names:
        candidate = name
        while candidate in distinct:
            candidate = f"{name} ({next(numbers.setdefault(name, count(2)))})"
        distinct[candidate] = None
    return tuple(distinct)


def counted(n: float, thing: str) -> str:
    """A number with its noun.

    >>> counted(1, "source"), counted(12000, "row")
    ('1 source', '12000 rows')
    """
    return f"{n:.15g} {thing}" if n == 1 else f"{n:.15g} {thing}s"


def _both_forms(word: str) -> tuple[str, str]:
    one, slash, several = word.partition("/")
    if slash:
        return one, several
    for ending, single in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", "")):
        if word.lower().endswith(ending) and len(word) > len(ending) + 1 and not word.lower().endswith("ss"):
            return word[: -len(ending)] + single, word
    return word, word


WORD_LENGTH = 60  # characters of a noun that the user gives
THINGS = ("sensors", "sources", "rows")  # that users have words of their own for


@dataclass(frozen=True, slots=True)
class Nouns:
    """What the user calls sensors, sources and rows: the plural, or both forms as in ``mouse/mice``.

    >>> Nouns(sensors="symptoms", sources="allergies").source
    ('allergy', 'allergies')
    >>> Nouns(rows="mouse/mice").row
    ('mouse', 'mice')
    """

    sensors: str = "sensors"
    sources: str = "sources"
    rows: str = "rows"
    sensor: tuple[str, str] = field(init=False, compare=False, repr=False)  # one and several, as in a sentence
    source: tuple[str, str] = field(init=False, compare=False, repr=False)
    row: tuple[str, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for things in THINGS:
            given = as_name(getattr(self, things), f"the word for {things}").strip()
            if not all(given.split("/")) or given.count("/") > 1 or not given.isprintable() or len(given) > WORD_LENGTH:
                raise ModelError(f"{shortened(given)} is no word for {things}; give a plural, or both as in mouse/mice")
            object.__setattr__(self, things, given)
            object.__setattr__(self, things.removesuffix("s"), _both_forms(given))

    def changes(self) -> dict[str, str]:
        """The words that differ from ours, as a model file holds them."""
        return {key: getattr(self, key) for key in THINGS if getattr(self, key) != getattr(USUAL_NOUNS, key)}

    def with_changes(self, changes: Mapping[str, str | None]) -> "Nouns":
        """The same with other words where some are given."""
        own = {key: getattr(self, key) for key in THINGS}
        return Nouns(**{**own, **{key: word for key, word in changes.items() if word is not None}})


USUAL_NOUNS = Nouns()


def counted_as(n: float, forms: tuple[str, str]) -> str:
    """A number with the noun for one or for several.

    >>> counted_as(1, ("symptom", "symptoms")), counted_as(5000, ("mouse", "mice"))
    ('1 symptom', '5000 mice')
    """
    return f"{n:.15g} {forms[0] if n == 1 else forms[1]}"


OUR_NOUNS = re.compile(r"(?<![\w'\"-])(?:(sensor|source|row)(s?)|source(\d+))(?![\w'\"-])")  # or source3


def in_words_of(nouns: Nouns, sentence: str, names: Iterable[str] = ()) -> str:
    """The sentence with the user's nouns in place of ours, unless one of the ``names`` in it holds such a word.

    Commands between backticks stay as they are.

    >>> in_words_of(Nouns(rows="patients"), "the rows are odd; try `bica fit rows.csv`")
    'the patients are odd; try `bica fit rows.csv`'
    >>> in_words_of(Nouns(sources="diseases"), "source1 and source2 cannot be told apart")
    'disease1 and disease2 cannot be told apart'
    """
    if nouns == USUAL_NOUNS or any(OUR_NOUNS.search(name) for name in names):
        return sentence
    parts = sentence.split("`")
    parts[::2] = [OUR_NOUNS.sub(lambda found: _their_noun(nouns, found), part) for part in parts[::2]]
    return "`".join(parts)


def _their_noun(nouns: Nouns, found: re.Match[str]) -> str:
    ours, plural, number = found.groups()
    return f"{nouns.source[0]}{number}" if ours is None else str(getattr(nouns, ours)[bool(plural)])


def in_a_list(name: str) -> str:
    """A name as it stands in a list of names: in double quotes if it holds a comma.

    >>> in_a_list("milk"), in_a_list("bread, dark")
    ('milk', '"bread, dark"')
    """
    return f'"{name}"' if "," in name else name


def folded(names: Sequence[str], at_most: int, n_names: int | None = None) -> str:
    """The names separated by commas, then how many were left out; ``n_names`` if there are more than were given.

    >>> folded(["a", "b", "c", "d"], 2), folded(["a", "b", "c", "d"], 2, 9)
    ('a, b, and 2 more', 'a, b, and 7 more')
    """
    total = len(names) if n_names is None else n_names
    if len(names) == total <= at_most + 1:  # leaving out a single name saves nothing
        return ", ".join(names)
    return ", ".join([*names[:at_most], f"and {total - len(names[:at_most])} more"])


def listed(names: Iterable[str], at_most: int, notes: Iterable[str] = ()) -> str:
    """Names in one line for a screen: harmless, in quotes where they hold a comma, perhaps each with a note after it.

    >>> listed(["milk", "bread, dark", "egg"], 1), listed(["milk", "egg"], 9, ["often", ""])
    ('milk, and 2 more', 'milk often, egg')
    """
    quoted = (in_a_list(harmless(name)) for name in names)
    return folded([f"{q} {note}" if note else q for q, note in zip_longest(quoted, notes, fillvalue="")], at_most)


SMALLEST_SHARE = 0.001  # that is written as a number


def percent(share: float) -> str:
    """A share in words, never rounded to nothing or to everything.

    >>> percent(0.1234), percent(0.00001), percent(0.99999), percent(0), percent(1)
    ('12.3 %', 'less than 0.1 %', 'more than 99.9 %', '0 %', '100 %')
    """
    if 0 < share < SMALLEST_SHARE:
        return "less than 0.1 %"
    if 1 - SMALLEST_SHARE < share < 1:
        return "more than 99.9 %"
    return f"{100 * share:.3g} %"


VERDICTS = {  # and what each means
    "fits": "fits: the rows look as the model expects",
    "too few rows": "too few rows: so few could not contradict a wrong model either",
    "doubtful": "doubtful: take the model with care",
    "misfit": "misfit: the rows contradict the model",
    "open": "open: so far nothing speaks against independent sources; a fit will show",
}
BEFORE_A_FIT = VERDICTS | {  # where there is no model yet
    "doubtful": "doubtful: something in the table speaks against independent sources",
    "misfit": "misfit: independent sources do not make such rows",
}


USUAL_NOUN = "source"


def shown_names(names: Iterable[str | None], noun: str = USUAL_NOUN) -> tuple[str, ...]:
    """A name for every source, no two alike: the given one or, by its place, ``noun`` and a number.

    >>> shown_names([None, "flu", None]), shown_names([None, "flu"], "disease")
    (('source1', 'flu', 'source3'), ('disease1', 'flu'))
    """
    return told_apart(name or f"{noun}{j + 1}" for j, name in enumerate(names))
