"""Flows in a line of text, as docstrings of passes show them."""

from __future__ import annotations

import re

from blocks.core import Look
from composer.draw.about import About
from composer.draw.diagram import Branches, Flow, IrregularSubgraph, Item, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, ModelInput, NodeOutput

ITEM = re.compile(r"(\w+)(?::(\w+))?\(([^)]*)\)")


def flow(text: str) -> Flow:
    """Return the flow that a line shows."""
    found = ITEM.findall(text)
    names = {name for name, _, _ in found}
    items = [Leaf(About(name), Look(title or name, hue="norm" if name == "norm" else "ffn")) for name, title, _ in found]
    edges = [
        DiagramEdge(DiagramSource((NodeOutput if (own := read.strip("~")) in names else ModelInput)(own)), name, "", read == own)
        for name, _, reads in found
        for read in reads.split()
    ]
    return Flow(None, tuple(items), tuple(edges), None)


def shown(drawn: Flow) -> str:
    """Return a flow in a line."""
    return " ".join(_item(item, drawn) for item in drawn.items)


def _item(item: Item, drawn: Flow) -> str:
    match item:
        case Leaf():
            return _leaf(item, drawn)
        case Branches(flows=flows, join=join):
            return " ".join([f"[{' | '.join(map(shown, flows))}]", *([_leaf(join, drawn)] if join else [])])
        case IrregularSubgraph(flow=inner, join=join):
            return f"{{{shown(inner.without({join.about.path}))}}} {_leaf(join, drawn)}"
    raise AssertionError(item)


def _leaf(leaf: Leaf, drawn: Flow) -> str:
    path, title = leaf.about.path, "|".join(row.share.partition(": ")[2] for row in leaf.rows) or leaf.look.title
    reads = " ".join(("@" if e.source.reference else "" if e.main else "~") + e.source.path for e in drawn.edges_into(path))
    return f"{path}{'' if title == path else f':{title}'}({reads})"
