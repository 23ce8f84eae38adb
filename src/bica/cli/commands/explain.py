"""``bica explain``: the likeliest causes of one observation."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import click

from bica.cli.options import json_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bica.model.or_mixture import OrMixture

OFF, ON, UNKNOWN = 0, 1, 2


@click.command()
@click.argument("model")
@click.option("--on", multiple=True, metavar="SENSORS", help="Sensors that are on, separated by commas.")
@click.option("--off", multiple=True, metavar="SENSORS", help="Sensors that are off.")
@click.option("--unknown", multiple=True, metavar="SENSORS", help="Sensors that were not observed.")
@click.option(
    "--rest",
    type=click.Choice(["off", "unknown"]),
    default="off",
    show_default=True,
    help="State of the sensors that are not named.",
)
@click.option("-k", "k", type=click.IntRange(1, 10_000), default=5, show_default=True, help="How many explanations.")
@json_option
def explain(
    model: str,
    on: Sequence[str],
    off: Sequence[str],
    unknown: Sequence[str],
    rest: str,
    k: int,
    as_json: bool,
) -> None:
    """Explain one observation: the likeliest sets of active sources of MODEL behind it.

    SENSORS are names separated by commas; each option may be given more than once. MODEL is a model file; a single dash
    reads standard input.
    """
    from bica.cli.options import read_model
    from bica.cli.screens import Screen, print_json, waiting
    from bica.cli.screens.decoding import explanation_values, show_explanations
    from bica.invert.explain import explain as explain_row
    from bica.kernels.bits import packed
    from bica.model.or_mixture import OrMixture

    mixture = OrMixture.of_document(read_model(model))
    cells = _cells(mixture, {"--on": (on, ON), "--off": (off, OFF), "--unknown": (unknown, UNKNOWN)}, rest)
    with waiting("explaining"):
        found = explain_row(mixture, packed(cells == ON), packed(cells != UNKNOWN), k=k)
    if as_json:
        print_json(explanation_values(mixture, cells[0], found))
    else:
        show_explanations(Screen(), mixture, cells[0], found)


def _cells(mixture: OrMixture, named: dict[str, tuple[Sequence[str], int]], rest: str) -> NDArray[np.uint8]:
    import numpy as np

    from bica.errors import SettingError

    place = {name: i for i, name in enumerate(mixture.sensors)}
    cells = np.full((1, len(place)), UNKNOWN if rest == "unknown" else OFF, np.uint8)
    named_by: dict[str, str] = {}
    for option, (texts, cell) in named.items():
        for name in _names(texts, place.keys()):
            if name not in place:
                raise SettingError(f"{option} names {name!r}, which is not a sensor of MODEL; `bica show` lists them")
            if named_by.setdefault(name, option) != option:
                raise SettingError(f"{name!r} is given in {named_by[name]} and in {option}; name it once")
            cells[0, place[name]] = cell
    return cells


def _names(texts: Sequence[str], known: Container[str]) -> list[str]:
    """The names in texts separated by commas; a text that is a known name as a whole, commas included, is one name."""
    names = []
    for text in texts:
        names += [text] if text in known else [part.strip() for part in text.split(",") if part.strip()]
    return names
