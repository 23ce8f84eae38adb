"""Writing charts to files: PNG, SVG, PDF, or an HTML page that needs no network; the drawing packages are optional."""

from __future__ import annotations

import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bica.errors import MissingExtraError, SettingError
from bica.output import check_target, write_whole

if TYPE_CHECKING:
    import altair

PACKAGES = ("altair", "vl_convert")


def can_draw() -> bool:
    """Whether pictures can be made here.

    >>> can_draw()  # "bica[report]" is installed
    True
    """
    return all(find_spec(package) for package in PACKAGES)


def need_drawing() -> None:
    """Refuse in one sentence where pictures cannot be made."""
    if not can_draw():
        raise MissingExtraError('pictures need two more packages; install them with: pip install "bica[report]"')


FORMATS = (".png", ".svg", ".html")  # that experiments write
ENDINGS = (*FORMATS, ".pdf")
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>bica</title></head>
<body><div id="picture"></div>
<script>{library}</script>
<script>
vegaEmbed("#picture", {chart}, {{actions: {{export: true, source: false, compiled: false, editor: false}}}});
</script>
</body></html>
"""


def save_picture(chart: altair.TopLevelMixin, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the chart as the ending of ``path`` says (.png, .svg, .pdf or .html), whole or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> from bica.report import mixing_chart
    >>> from bica import OrMixture
    >>> with TemporaryDirectory() as folder:
    ...     save_picture(mixing_chart(OrMixture([[1]], [0.5])), f"{folder}/model.svg")
    ...     Path(f"{folder}/model.svg").read_text()[:4]
    '<svg'
    """
    need_drawing()
    check_target(path, overwrite=overwrite)
    write_whole(path, picture_bytes(chart, Path(path).suffix), overwrite=overwrite)


def check_picture(path: str | Path) -> None:
    """Refuse a picture before the work: an ending that cannot be written, or missing packages."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise SettingError(f"a picture is written as {', '.join(ENDINGS)}, but {path} ends otherwise")
    need_drawing()


def picture_bytes(chart: altair.TopLevelMixin, ending: str) -> bytes:
    """The content of the picture file with this ending."""
    if ending == ".png":
        image = io.BytesIO()
        chart.save(image, format="png", scale_factor=2)  # twice the pixels, for sharp pictures on dense screens
        return image.getvalue()
    if ending == ".svg":
        text = io.StringIO()
        chart.save(text, format="svg")
        return text.getvalue().encode()
    if ending == ".pdf":
        document = io.BytesIO()
        chart.save(document, format="pdf")
        return document.getvalue()
    if ending == ".html":
        return _page(chart).encode()
    raise SettingError(f"a picture is written as {', '.join(ENDINGS)}, but the name ends in {ending!r}")


def _page(chart: altair.TopLevelMixin) -> str:
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.split(".")[:2])
    # a sensor may be called </script>, which must not end the script
    content = json.dumps(chart.to_dict()).replace("<", "\\u003c")
    return PAGE.format(library=vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version), chart=content)
