"""How long a slot is, as people write it."""

import re

from bica.errors import SettingError

MICROSECONDS = {"us": 1, "ms": 1000, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s|min|h|d|)")


def microseconds(text: str) -> int:
    """A length of time in microseconds; a bare number is seconds.

    >>> microseconds("500ms"), microseconds("1 min"), microseconds("0.5")
    (500000, 60000000, 500000)
    """
    found = LENGTH.fullmatch(text.strip())
    if found is None:
        raise SettingError(
            f"{text!r} is no length of time; write a number and one of us, ms, s, min, h, d, as in 500ms"
        )
    number, unit = found.groups()
    whole, _, fraction = number.partition(".")
    scale = MICROSECONDS[unit.replace("µ", "u") or "s"]
    length, rest = divmod(int(whole + fraction) * scale, int(10 ** len(fraction)))
    if rest or not length:
        raise SettingError(f"a slot of {text} cannot be; it lasts one microsecond or a whole number of them")
    return length


def in_words(length: int) -> str:
    """Microseconds in the largest unit that divides them.

    >>> in_words(500000), in_words(60000000)
    ('500 ms', '1 min')
    """
    unit = max((unit for unit, scale in MICROSECONDS.items() if length % scale == 0), key=MICROSECONDS.__getitem__)
    return f"{length // MICROSECONDS[unit]} {unit}"
