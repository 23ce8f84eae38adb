"""The model in other programs' formats: a graph object, GraphML, DOT, a list of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

    from bica.model.or_mixture import OrMixture


def to_networkx(model: OrMixture) -> networkx.Graph:
    """A bipartite graph: nodes ``("sensor", name)`` and ``("source", name)`` with their attributes, an edge a reach."""
    import networkx

    graph = networkx.Graph()
    names = model.source_names()
    for name in model.sensors:
        graph.add_node(("sensor", name), kind="sensor", name=name, bipartite=0)
    for name, probability in zip(names, model.probability.tolist(), strict=True):
        graph.add_node(("source", name), kind="source", name=name, bipartite=1, probability=probability)
    graph.add_edges_from((("source", names[source]), ("sensor", sensor)) for source, sensor in model.edges())
    return graph
