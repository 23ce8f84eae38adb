"""Values turned into pictures and pages: charts of models, of monitoring and of spectra, and a report to send.

A chart is an Altair chart: a notebook shows it, ``save_picture`` writes it as PNG, SVG or a page of HTML. The packages
that draw are optional (``pip install "bica[report]"``) and are loaded with the first chart.

>>> from bica import OrMixture, report
>>> chart = report.mixing_chart(OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["door", "yard"]))
>>> [len(part["layer"]) for part in chart.to_dict()["hconcat"]]
[2, 2]
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     report.save_picture(chart, f"{folder}/model.svg")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bica.report.pictures import can_draw, need_drawing, save_picture

if TYPE_CHECKING:
    from bica.report.applications import FoundUser, MonitoringPicture, SpectrumMap, monitoring_chart, spectrum_map_chart
    from bica.report.content import report_of
    from bica.report.figures import (
        activity_chart,
        found_and_true_chart,
        matching_chart,
        mixing_chart,
        network_chart,
        overview_chart,
        patterns_chart,
    )

    # not public: what the methods of values forward to
    from bica.report.figures import decoded_activity_chart as decoded_activity_chart
    from bica.report.page import Report
    from bica.report.page import bootstrap_table as bootstrap_table
    from bica.report.page import explanation_table as explanation_table
    from bica.report.page import model_table as model_table

_HOME = {  # the public names, and those that the methods of values forward to
    "Report": "page",
    "FoundUser": "applications",
    "MonitoringPicture": "applications",
    "SpectrumMap": "applications",
    "activity_chart": "figures",
    "bootstrap_table": "page",
    "decoded_activity_chart": "figures",
    "explanation_table": "page",
    "found_and_true_chart": "figures",
    "matching_chart": "figures",
    "mixing_chart": "figures",
    "model_table": "page",
    "monitoring_chart": "applications",
    "network_chart": "figures",
    "overview_chart": "figures",
    "patterns_chart": "figures",
    "report_of": "content",
    "spectrum_map_chart": "applications",
}

PAGES = ("content", "page")  # which need no package for drawing

__all__ = [
    "FoundUser",
    "MonitoringPicture",
    "Report",
    "SpectrumMap",
    "activity_chart",
    "can_draw",
    "found_and_true_chart",
    "matching_chart",
    "mixing_chart",
    "monitoring_chart",
    "network_chart",
    "overview_chart",
    "patterns_chart",
    "report_of",
    "save_picture",
    "spectrum_map_chart",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bica.report' has no attribute {name!r}")
    if _HOME[name] not in PAGES:
        need_drawing()
    return getattr(import_module(f"bica.report.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
