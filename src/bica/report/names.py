"""Names from files, made safe to show: they may hold anything, even commands to the terminal."""


def harmless(text: str) -> str:
    r"""The text with every character that does not simply print written as an escape.

    >>> print(harmless("red\x1b[31m\nalert"))
    red\x1b[31m\nalert
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
