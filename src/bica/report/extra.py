"""The packages that draw are optional; without them one sentence says what to install."""

from importlib.util import find_spec

from bica.errors import MissingExtraError

PACKAGES = ("altair", "vl_convert")


def can_draw() -> bool:
    """Whether pictures can be made here."""
    return all(find_spec(package) for package in PACKAGES)


def need_drawing() -> None:
    """Refuse in one sentence where pictures cannot be made."""
    if not can_draw():
        raise MissingExtraError('pictures need two more packages; install them with: pip install "bica[report]"')
