"""Exports are read back by other programs' rules, whatever the names are."""

import csv
import io
import re

import networkx
import numpy as np
import pytest
from hypothesis import given

from bica.errors import ModelError, SettingError
from bica.model.export import FORMATS, csv_text, dot_text, export_text, graphml_text
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.reference import dot_reader
from tests.strategies import lossy_models, models

HOSTILE = [
    "=1+1",
    'a "b"',
    "back\\slash\\",
    "line\nfeed",
    "tab\there",
    "a,b;c",
    "<&amp;>]]>",
    "\\N",
    "ünï\U0001f600",
    "\u2028",
    "",
]
MODEL = OrMixture(np.tril(np.ones((11, 3))), [0.2, 0.5, 1 / 3], sensors=HOSTILE, names=['"', "source1", None])


def named_edges(model):
    names = model.source_names()
    return {(names[source], sensor) for source, sensor in model.edges()}


def chances(model):
    return dict(zip(model.source_names(), model.probability.tolist(), strict=True))


class TestNetworkx:
    @given(models())
    def test_the_graph_is_bipartite_and_complete(self, model):
        graph = model.to_networkx()
        kinds = networkx.get_node_attributes(graph, "kind")
        assert [node for node, kind in kinds.items() if kind == "sensor"] == [("sensor", s) for s in model.sensors]
        assert {n[1]: graph.nodes[n]["probability"] for n, kind in kinds.items() if kind == "source"} == chances(model)
        edges = {tuple(sorted(edge, reverse=True)) for edge in graph.edges}
        assert edges == {(("source", source), ("sensor", sensor)) for source, sensor in named_edges(model)}
        assert all(graph.nodes[a]["bipartite"] != graph.nodes[b]["bipartite"] for a, b in graph.edges)

    def test_sensors_carry_their_noise(self):
        graph = OrMixture([[1], [1]], [0.5], Noise([0.1, 0.2], 0.3), sensors=["a", "b"]).to_networkx()
        node = graph.nodes["sensor", "b"]
        assert (node["false_alarm"], node["miss"], node["name"]) == (0.2, 0.3, "b")

    def test_a_sensor_and_a_source_may_have_the_same_name(self):
        assert len(OrMixture([[1]], [0.5], sensors=["x"], names=["x"]).to_networkx()) == 2


class TestGraphML:
    def read(self, text):
        return networkx.parse_graphml(text)

    @given(models())
    def test_it_is_read_back_exactly_or_refused(self, model):
        try:
            text = graphml_text(model)
        except ModelError:
            assert re.search(
                "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "".join((*model.sensors, *model.source_names()))
            )
            return
        expected = networkx.relabel_nodes(model.to_networkx(), ":".join)
        found = self.read(text)
        assert dict(found.nodes(data=True)) == dict(expected.nodes(data=True))
        assert set(map(frozenset, found.edges)) == set(map(frozenset, expected.edges))

    def test_hostile_names_are_kept(self):
        found = self.read(graphml_text(MODEL))
        assert [data["name"] for _, data in found.nodes(data=True) if data["kind"] == "sensor"] == HOSTILE

    def test_carriage_returns_survive(self):
        found = self.read(graphml_text(OrMixture([[1]], [0.5], sensors=["a\r\nb\rc"])))
        assert found.nodes["sensor:a\r\nb\rc"]["name"] == "a\r\nb\rc"

    @pytest.mark.parametrize("character", ["\x00", "\x1b", "\x0c", "\ufffe", "\uffff"])
    def test_characters_that_xml_cannot_hold_are_refused_by_name(self, character):
        with pytest.raises(
            ModelError, match=r"GraphML cannot hold all characters of the name 'bad.*; rename it or export CSV"
        ):
            graphml_text(OrMixture([[1]], [0.5], sensors=[f"bad{character}"]))

    def test_the_text_is_one_xml_document_in_utf_8(self):
        text = graphml_text(MODEL)
        assert text.startswith("<?xml version='1.0' encoding='utf-8'?>\n")
        assert text.endswith("</graphml>\n")


class TestDot:
    @given(models())
    def test_it_is_read_back_exactly_or_refused(self, model):
        try:
            nodes, edges = dot_reader.read(dot_text(model))
        except ModelError:
            assert re.search("[\x00-\x08\x0b-\x1f\x7f]", "".join((*model.sensors, *model.source_names())))
            return
        labels = {name: node["label"] for name, node in nodes.items()}
        boxes = [node["label"] for node in nodes.values() if node["shape"] == "box"]
        assert boxes == list(model.sensors)
        sources = {node["label"]: float(node["probability"]) for node in nodes.values() if "probability" in node}
        assert sources == chances(model)
        assert {(labels[source], labels[sensor]) for source, sensor in edges} == named_edges(model)

    def test_hostile_names_are_kept(self):
        nodes, edges = dot_reader.read(dot_text(MODEL))
        assert [node["label"] for node in nodes.values()] == [*HOSTILE, '"', "source1", "source3"]
        assert len(edges) == MODEL.mixing.sum()

    @pytest.mark.parametrize("character", ["\x00", "\x1b", "\r", "\x7f"])
    def test_control_characters_are_refused_by_name(self, character):
        with pytest.raises(ModelError, match="DOT cannot hold all characters of the name 'bad"):
            dot_text(OrMixture([[1]], [0.5], sensors=["a"], names=[f"bad{character}"]))


class TestCsv:
    def read(self, text):
        return list(csv.reader(io.StringIO(text, newline="")))

    @given(models())
    def test_it_is_read_back_exactly_whatever_the_names_are(self, model):
        head, *lines = self.read(csv_text(model))
        assert head == ["source", "sensor", "probability"]
        assert {(source, sensor) for source, sensor, _ in lines} == named_edges(model)
        assert len(lines) == model.mixing.sum()
        assert {source: float(chance) for source, _, chance in lines} == chances(model)

    def test_a_name_like_a_formula_stays_as_it_is(self):
        assert self.read(csv_text(OrMixture([[1]], [0.5], sensors=["=1+1"])))[1] == ["source1", "=1+1", "0.5"]

    def test_lines_end_in_a_line_feed(self):
        assert csv_text(OrMixture([[1]], [0.5])) == "source,sensor,probability\nsource1,x0,0.5\n"


class TestFormats:
    @pytest.mark.parametrize("name", FORMATS)
    def test_the_table_of_formats_is_what_export_text_offers(self, name):
        assert export_text(MODEL, name) == FORMATS[name](MODEL)

    @pytest.mark.parametrize("name", FORMATS)
    def test_the_same_model_gives_the_same_text(self, name):
        again = OrMixture(MODEL.mixing, MODEL.probability, MODEL.noise, sensors=MODEL.sensors, names=MODEL.names)
        assert export_text(MODEL, name) == export_text(again, name)

    @pytest.mark.parametrize("name", FORMATS)
    def test_a_model_of_nothing_can_be_exported(self, name):
        assert export_text(OrMixture(np.zeros((0, 0)), []), name)

    def test_an_unknown_format_is_refused_with_what_there_is(self):
        with pytest.raises(SettingError, match="no export format 'xls'; choose one of graphml, dot, csv"):
            export_text(MODEL, "xls")


class TestLossyEdges:
    LOSSY = OrMixture([[1, 0], [1, 1]], [0.2, 0.5], reach=[[0.875, 0], [1, 0.25]], sensors=["a", "b"])

    @given(lossy_models())
    def test_the_graph_carries_the_reach(self, model):
        graph, names = model.to_networkx(), model.source_names()
        place = {name: i for i, name in enumerate(model.sensors)}
        for source, sensor in model.edges():
            edge = graph.edges[("source", names[source]), ("sensor", sensor)]
            expected = {"reach": model.reach[place[sensor], source]} if model.has_lossy_edges else {}
            assert edge == expected

    def test_graphml_dot_and_csv_carry_it(self):
        graph = networkx.parse_graphml(graphml_text(self.LOSSY))
        assert graph.edges["source:source1", "sensor:a"]["reach"] == 0.875
        assert '"source1" -- "sensor1" [label="87.5 %", reach="0.875"];' in dot_text(self.LOSSY)
        assert csv_text(self.LOSSY).splitlines()[:2] == ["source,sensor,probability,reach", "source1,a,0.2,0.875"]
        _, edges = dot_reader.read(dot_text(self.LOSSY))
        assert edges == [("source1", "sensor1"), ("source1", "sensor2"), ("source2", "sensor2")]
