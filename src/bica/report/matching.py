"""The paper's picture of structure matching: what was found, matched with the truth, and where they differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bica.metrics import match_columns
from bica.metrics.pairs import aligned
from bica.model.or_mixture import OrMixture
from bica.report import look
from bica.report.figures import drawable
from bica.report.look import Grid, Values, cell_size, heading, styled

import altair as alt  # isort: skip (look.py says first what to install)


def matching_chart(found: OrMixture, truth: OrMixture) -> alt.HConcatChart:
    """Four boards of sources by sensors: all found, the found ones in the order of the true, the true, the difference.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> len(matching_chart(OrMixture([[1], [1]], [0.5]), truth).to_dict()["hconcat"])
    4
    """
    found, truth = drawable(aligned(found, truth)), drawable(truth)
    match = match_columns(found.mixing, truth.mixing, found.probability)
    wrong = match.mixing != truth.mixing
    dropped = found.n_sources - int((match.order >= 0).sum())
    size = cell_size(max(found.n_sources, truth.n_sources), 4 * truth.n_sensors)
    panels = [
        _board(found.mixing, truth.sensors, size, look.INK, "Inferred", f"{found.n_sources} sources"),
        _board(match.mixing, truth.sensors, size, look.INK, "Matched", f"{dropped} left over"),
        _board(truth.mixing, truth.sensors, size, look.INK, "True", f"{truth.n_sources} sources"),
        _board(wrong, truth.sensors, size, look.ORANGE, "Difference", f"{match.n_wrong} of {wrong.size} cells"),
    ]
    return styled(alt.hconcat(*panels, spacing=28))


def _board(
    mixing: NDArray[np.bool_], sensors: tuple[str, ...], size: float, color: str, title: str, subtitle: str
) -> alt.LayerChart:
    lines = [str(place + 1) for place in range(mixing.shape[1])]
    cells: Values = [{"line": lines[source], "column": sensors[sensor]} for sensor, source in np.argwhere(mixing)]
    board: alt.LayerChart = Grid(lines, sensors, size, size).filled(cells, color)
    named: alt.LayerChart = board.properties(title=heading(title, subtitle))
    return named
