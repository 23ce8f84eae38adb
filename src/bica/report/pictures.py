"""Charts into files: PNG, SVG, or a page of HTML that needs no network."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from bica.errors import SettingError
from bica.output import check_target, write_whole
from bica.report.extra import need_drawing

if TYPE_CHECKING:
    import altair

FORMATS = (".png", ".svg", ".html")


def save_picture(chart: altair.TopLevelMixin, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the chart as the ending of ``path`` says, whole or not at all."""
    need_drawing()
    check_target(path, overwrite=overwrite)
    write_whole(path, picture_bytes(chart, Path(path).suffix), overwrite=overwrite)


def picture_bytes(chart: altair.TopLevelMixin, ending: str) -> bytes:
    """The content of the picture file with this ending."""
    if ending not in FORMATS:
        raise SettingError(
            f"a picture cannot be written as {ending or 'a file without ending'!r}; use .png, .svg or .html"
        )
    if ending == ".png":
        image = io.BytesIO()
        chart.save(image, format="png", scale_factor=2)  # sharp on dense screens
        return image.getvalue()
    text = io.StringIO()
    chart.save(text, format=ending[1:], inline=True)
    return text.getvalue().encode()
