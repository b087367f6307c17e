"""The graph for networkx: what is in it, and that algorithms can use it."""

from __future__ import annotations

import networkx as nx

import composer
from tests.zoo import each_representative

SMALL = """
recipe: small
inputs: {x: "float[batch, time, 8]"}
graph:
  start: {type: linear, out: 8}
  layers:
    repeat: 3
    graph:
      up: {type: linear, out: 8}
      sum: {type: add, in: [input, up, start]}
  head: {type: linear, out: 4, bias: false}
outputs: {y: head}
"""


def flowing(graph: nx.MultiDiGraph[str]) -> nx.MultiDiGraph[str]:
    """Return the graph without what comes from an earlier pass."""
    return nx.MultiDiGraph((one, other) for one, other, carried in graph.edges(data="carried") if not carried)


def test_nodes_and_edges_say_what_they_are() -> None:
    """Every one of a small model, written out by hand."""
    graph = composer.load(SMALL).to_networkx()
    assert {name: (node["type"], node["parameters"], node["copies"], node["line"]) for name, node in graph.nodes(data=True)} == {
        "x": ("input", 0, 1, 3),
        "start": ("linear", 72, 1, 5),
        "layers.*.up": ("linear", 3 * 72, 3, 9),
        "layers.*.sum": ("add", 0, 3, 10),
        "head": ("linear", 32, 1, 11),
    }
    assert all(node["path"] == name for name, node in graph.nodes(data=True))
    assert {(one, other, edge["port"], edge["implied"], edge["carried"]) for one, other, edge in graph.edges(data=True)} == {
        ("x", "start", "x", True, False),
        ("start", "layers.*.up", "x", True, False),
        ("layers.*.sum", "layers.*.up", "x", True, True),
        ("start", "layers.*.sum", "xs", False, False),
        ("layers.*.sum", "layers.*.sum", "xs", False, True),
        ("layers.*.up", "layers.*.sum", "xs", False, False),
        ("layers.*.sum", "head", "x", True, False),
    }
    assert graph.edges["x", "start", 0]["type"] == "float[batch, time, 8]"
    assert not any(shape_only for *_, shape_only in graph.edges(data="shape_only"))
    measured = SMALL.replace("start: {", "place: {type: arange, axis: time, in: x}\n  start: {in: x, ").replace(
        "{y: ", "{at: place, y: "
    )
    edges = composer.load(measured).to_networkx().edges(data="shape_only")
    assert [(one, other) for one, other, shape_only in edges if shape_only] == [("x", "place")]
    assert graph.graph == {"name": "small", "task": "", "outputs": {"y": ["head"]}}


@each_representative
def test_the_zoo_as_graphs(name: str) -> None:
    """All parameters are there, nothing runs in a circle, and every output can be reached from an input, the scale of contrasts
    from a parameter.
    """
    recipe = composer.load(name)
    graph = recipe.to_networkx()
    assert sum(count for _, count in graph.nodes(data="parameters")) == recipe.summary().costs.parameters
    assert nx.is_directed_acyclic_graph(flowing(graph))
    inputs, learned = ([node for node, kind in graph.nodes(data="type") if kind == each] for each in ("input", "parameter"))
    for output, nodes in graph.graph["outputs"].items():
        sources = learned if (graph.graph["task"], output) == ("contrastive", "scale") else inputs
        assert any(nx.has_path(graph, source, node) for source in sources for node in nodes)


def test_passes_that_differ_are_nodes_of_their_own() -> None:
    """Named for the first of each kind."""
    graph = composer.load("gemma3").to_networkx()
    copies = {name: node["copies"] for name, node in graph.nodes(data=True) if name.endswith("attn.body")}
    assert copies == {"layers.0.attn.body": 22, "layers.5.attn.body": 4}
    assert graph.has_edge("layers.0.ffn.add", "layers.5.attn.norm") and graph.has_edge("layers.5.ffn.add", "layers.0.attn.norm")


def test_a_graph_is_the_users_own() -> None:
    """To change it changes nothing else."""
    recipe = composer.load(SMALL)
    recipe.to_networkx().remove_node("head")
    assert "head" in recipe.to_networkx()


def test_shared_weights_of_passes_that_differ_count_once() -> None:
    """At the first of them."""
    text = """recipe: shared
inputs: {x: "float[batch, time, 8]"}
graph:
  layers:
    repeat: 4
    share: true
    each: {sees: [causal and window(2), causal]}
    graph: {attn: {type: attention, heads: 2, mask: sees}}
"""
    graph = composer.load(text).to_networkx()
    assert {name: (node["parameters"], node["copies"]) for name, node in graph.nodes(data=True)} == {
        "x": (0, 1), "layers.0.attn": (4 * 8 * 8, 1), "layers.1.attn": (0, 1),
    }  # fmt: skip
