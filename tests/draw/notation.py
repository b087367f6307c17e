"""Flows in a line of text, as docstrings of passes show them."""

from __future__ import annotations

import re

from blocks.core import Look
from composer.draw.about import About
from composer.draw.diagram import Branches, Flow, IrregularSubgraph, Item, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, ModelInput, NodeOutput, PassOutput

ITEM = re.compile(r"(\w+)(?::(\w+))?\(([^)]*)\)")


def flow(text: str) -> Flow:
    """Return the flow that a line shows."""
    found = ITEM.findall(text)
    names = {name for name, _, _ in found}
    items = [Leaf(About(name), Look(title or name, hue="norm" if name == "norm" else "ffn")) for name, title, _ in found]
    edges = [
        DiagramEdge(_source(read, names), name, "", not read.startswith("~"))
        for name, _, reads in found
        for read in reads.split()
    ]
    return Flow(None, tuple(items), tuple(edges), None)


def _source(read: str, names: set[str]) -> DiagramSource:
    """Return what a block reads: `@b.1` is a pass of a repeat by its name, `@b.inner` what is made in a frame, `b.other` another
    output of a block.
    """
    if read.startswith("@"):
        path, _, index = read[1:].partition(".")
        if index and not index.isdigit():
            return DiagramSource(NodeOutput(read[1:]), reference=read[1:])
        return DiagramSource(NodeOutput(path), reference=f"{path}({index})")
    own = read.strip("~")
    path, _, port = own.partition(".")
    if port and path in names:
        return DiagramSource(NodeOutput(path, port))
    return DiagramSource((NodeOutput if own in names else ModelInput)(own))


def shown(drawn: Flow) -> str:
    """Return a flow in a line."""
    return " ".join(_item(item, drawn) for item in drawn.items)


def _item(item: Item, drawn: Flow) -> str:
    match item:
        case Leaf():
            return _leaf(item, drawn)
        case Branches(flows=flows, base=Leaf() as base, outputs=outputs):
            apart = [shown(_from(one, source)) for one, source in zip(flows, outputs, strict=True)]
            return f"{_leaf(base, drawn)} [{' | '.join(apart)}]"
        case Branches(flows=flows, join=join):
            return " ".join([f"[{' | '.join(map(shown, flows))}]", *([_leaf(join, drawn)] if join else [])])
        case IrregularSubgraph(flow=inner, join=join):
            return f"{{{shown(inner.without({join.about.path}))}}} {_leaf(join, drawn)}"
    raise AssertionError(item)


def _from(drawn: Flow, output: DiagramSource) -> Flow:
    """Return what starts at an output of a block, which it reads by the name of that."""
    return drawn.map_edges(lambda edge: edge.reading(output) if edge.source.origin == drawn.entry else edge)


def _leaf(leaf: Leaf, drawn: Flow) -> str:
    path, title = leaf.about.path, "|".join(row.share.partition(": ")[2] for row in leaf.rows) or leaf.look.title
    reads = " ".join(("@" if e.source.reference else "" if e.main else "~") + _called(e.source) for e in drawn.edges_into(path))
    return f"{path}{'' if title == path else f':{title}'}({reads})"


def _called(source: DiagramSource) -> str:
    if isinstance(source.origin, InnerOutput):
        return source.origin.made.path
    return f"{source.path}.{source.origin.index}" if isinstance(source.origin, PassOutput) else source.own_name
