"""Pictures appear whole or not at all, and a name cannot break out of them."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from bica.errors import MissingExtraError, OutputError, SettingError
from bica.model.or_mixture import OrMixture
from bica.report import pictures as extra
from bica.report.figures import mixing_chart
from bica.report.pictures import save_picture

CHART = mixing_chart(OrMixture([[1]], [0.5], sensors=["</script><script>alert(1)</script>"]))


def test_a_png_is_a_png(tmp_path):
    save_picture(CHART, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_an_svg_is_well_formed_and_keeps_the_name(tmp_path):
    save_picture(CHART, tmp_path / "p.svg")
    texts = [element.text for element in ElementTree.parse(tmp_path / "p.svg").iter() if element.text]
    assert any(text.startswith("</script><script>alert(1)") for text in texts)


@pytest.mark.slow
def test_a_page_needs_no_network_and_has_only_our_scripts(tmp_path):
    save_picture(CHART, tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert page.count("<script") - page.count('"<script') == page.count("</script>") == 2
    assert "<script src" not in page
    assert "window.vegaEmbed" in page


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(SettingError, match=r"\.png, \.svg, \.html.*'\.bmp'"):
        save_picture(CHART, tmp_path / "p.bmp")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unasked(tmp_path):
    (tmp_path / "p.svg").write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        save_picture(CHART, tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text() == "mine"
    save_picture(CHART, tmp_path / "p.svg", overwrite=True)
    assert (tmp_path / "p.svg").read_text() != "mine"


def test_without_the_extra_one_sentence_names_it(monkeypatch, tmp_path):
    monkeypatch.setattr(extra, "PACKAGES", ("a_package_that_is_not_there",))
    with pytest.raises(MissingExtraError, match=r'pip install "bica\[report\]"'):
        save_picture(CHART, tmp_path / "p.svg")


@pytest.mark.slow
def test_without_altair_the_figures_say_what_to_install():
    code = "import bica.report.pictures as e; e.PACKAGES = ('not_there',); import bica.report.figures"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.stderr.rstrip().endswith('pip install "bica[report]"')
