"""One self-contained HTML file from plain values: no network, no library, nothing that a name could break out of."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from bica.output import write_whole
from bica.version import __version__

FRAME_HEIGHT = 720  # pixels of the report in a notebook


@dataclass(frozen=True, slots=True)
class Report:
    """A finished report: ``html`` is the whole page, ``save`` writes it; a notebook shows it."""

    html: str

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the page, whole or not at all."""
        write_whole(path, self.html, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"<Report of {len(self.html) / 1000:.0f} kB; .save('report.html') writes it>"

    def _repr_html_(self) -> str:
        frame = f'width="100%" height="{FRAME_HEIGHT}" style="border:1px solid #ddd;border-radius:8px"'
        return f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.html)}" {frame}></iframe>'


def page_of(content: dict[str, Any], *, title: str, eyebrow: str, headline: str, sentence: str, footer: str) -> Report:
    """The report with this content; the words at its top are in the page itself, so they show at once.

    >>> page = page_of({"verdict": {"kind": "fits"}}, title="</title>", eyebrow="", headline="", sentence="", footer="")
    >>> "<title>&lt;/title&gt;</title>" in page.html
    True
    """
    style, script = _template("report.css"), _template("report.js")
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_fingerprint(style)}'; script-src '{_fingerprint(script)}'"
    )
    words = {"title": title, "eyebrow": eyebrow, "headline": headline, "sentence": sentence, "footer": footer}
    html = Template(_template("report.html")).substitute(
        {key: escape(value) for key, value in words.items()},
        kind=escape(content["verdict"]["kind"]),
        version=escape(__version__),
        policy=policy,
        style=style,
        script=script,
        data=data_block(content),
    )
    return Report(html)


def data_block(content: dict[str, Any]) -> str:
    r"""The values as JSON in plain ASCII that no HTML parser mistakes for markup.

    >>> data_block({"name": "</script><!--"})
    '{"name":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _template(name: str) -> str:
    return files("bica.report").joinpath("templates", name).read_text("utf-8")


def _fingerprint(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
