"""The model in other programs' formats: a graph object, GraphML, DOT, a list of edges.

Names are kept exactly. If a format cannot write one of their characters, the export is refused. In CSV a name such as
``=1+1`` stays as it is, so that reading it back gives the same name; a spreadsheet may take it for a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from bica.errors import ModelError, SettingError

if TYPE_CHECKING:
    import networkx

    from bica.model.or_mixture import OrMixture

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NOT_IN_DOT = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def export_text(model: OrMixture, name: str) -> str:
    """The model in the format of that name: one of ``FORMATS``.

    >>> from bica.model.or_mixture import OrMixture
    >>> print(export_text(OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["a", "b"]), "csv"), end="")
    source,sensor,probability
    source1,a,0.2
    source2,a,0.5
    source2,b,0.5
    """
    if name not in FORMATS:
        raise SettingError(f"there is no export format {name!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[name](model)


def to_networkx(model: OrMixture) -> networkx.Graph:
    """A bipartite graph of nodes ``("sensor", name)`` and ``("source", name)``; edges where sources reach sensors.

    Where edges may fail, each has its ``reach``: how often it works.
    """
    import networkx

    graph = networkx.Graph()
    names = model.source_names()
    rates = (rate.tolist() for rate in model.noise.rates(model.n_sensors))
    for name, false_alarm, miss in zip(model.sensors, *rates, strict=True):
        graph.add_node(("sensor", name), kind="sensor", name=name, bipartite=0, false_alarm=false_alarm, miss=miss)
    for name, probability in zip(names, model.probability.tolist(), strict=True):
        graph.add_node(("source", name), kind="source", name=name, bipartite=1, probability=probability)
    graph.add_edges_from(
        (("source", names[source]), ("sensor", sensor), {} if reach is None else {"reach": reach})
        for source, sensor, reach in _edges(model)
    )
    return graph


def _edges(model: OrMixture) -> Iterator[tuple[int, str, float | None]]:
    """A source's number, the name of a sensor that it reaches and how often; None where all edges are sure."""
    place = {name: i for i, name in enumerate(model.sensors)}
    for source, sensor in model.edges():
        reach = None if model.lossy_reach is None else float(model.lossy_reach[place[sensor], source])
        yield source, sensor, reach


def graphml_text(model: OrMixture) -> str:
    """The graph of ``to_networkx`` as GraphML; a node's id is its kind and its name, as in ``sensor:door``."""
    import networkx

    _refuse(model, NOT_IN_XML, "GraphML")
    graph = networkx.relabel_nodes(to_networkx(model), lambda node: ":".join(node))
    file = io.BytesIO()
    networkx.write_graphml_xml(graph, file)
    # XML readers turn a bare carriage return into a line feed
    return file.getvalue().decode("utf-8").replace("\r", "&#13;")


def dot_text(model: OrMixture) -> str:
    r"""The graph in the language of Graphviz: one ellipse per source, one box per sensor, names as labels.

    >>> from bica.model.or_mixture import OrMixture
    >>> print(dot_text(OrMixture([[1]], [0.2], sensors=['the "door"'])), end="")
    graph "bica" {
      rankdir="LR";
      "sensor1" [label="the \"door\"", shape="box"];
      "source1" [label="source1", shape="ellipse", probability="0.2"];
      "source1" -- "sensor1";
    }
    """
    _refuse(model, NOT_IN_DOT, "DOT")
    place = {name: i for i, name in enumerate(model.sensors, 1)}
    lines = [f'"sensor{i}" [label={_quoted(name)}, shape="box"];' for name, i in place.items()]
    for i, (name, probability) in enumerate(zip(model.source_names(), model.probability.tolist(), strict=True), 1):
        lines.append(f'"source{i}" [label={_quoted(name)}, shape="ellipse", probability="{probability!r}"];')
    for source, sensor, reach in _edges(model):
        label = "" if reach is None else f' [label="{100 * reach:.3g} %", reach="{reach!r}"]'
        lines.append(f'"source{source + 1}" -- "sensor{place[sensor]}"{label};')
    return "\n  ".join(['graph "bica" {', 'rankdir="LR";', *lines]) + "\n}\n"


def _quoted(name: str) -> str:
    """A label that Graphviz shows as ``name``: backslashes and ampersands would start an escape there."""
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("&", "&amp;")):
        name = name.replace(character, escape)
    return f'"{name}"'


def csv_text(model: OrMixture) -> str:
    """One line for each sensor that a source reaches, with ``reach`` where edges may fail; others have no line."""
    names, probability = model.source_names(), model.probability.tolist()
    rows: list[tuple[object, ...]] = [("source", "sensor", "probability")]
    rows += [(names[source], sensor, probability[source], reach) for source, sensor, reach in _edges(model)]
    if model.has_lossy_edges:
        rows[0] += ("reach",)
    else:
        rows[1:] = [row[:-1] for row in rows[1:]]
    return "".join(map(_csv_line, rows))


def _csv_line(row: tuple[object, ...]) -> str:
    line = io.StringIO(newline="")
    csv.writer(line).writerow(row)  # with both as its line end, it quotes a bare carriage return and a bare line feed
    return line.getvalue().removesuffix("\r\n") + "\n"


def _refuse(model: OrMixture, impossible: re.Pattern[str], language: str) -> None:
    for name in (*model.sensors, *model.source_names()):
        if impossible.search(name):
            raise ModelError(f"{language} cannot hold all characters of the name {name!r}; rename it or export CSV")


FORMATS: Mapping[str, Callable[[OrMixture], str]] = {"graphml": graphml_text, "dot": dot_text, "csv": csv_text}
