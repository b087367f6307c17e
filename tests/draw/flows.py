"""Flows written by hand, for tests of single passes of drawing."""

from __future__ import annotations

from blocks.core import Look
from composer.draw.about import About
from composer.draw.diagram import Flow, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, ModelInput, NodeOutput, Origin


def leaf(path: str, *facts: str, title: str = "Linear", parameters: int = 0) -> Leaf:
    """Return a block that says some facts."""
    return Leaf(About(path, parameters=parameters), Look(title, facts, "ffn"))


def flow(*reads: str, owner: str = "") -> Flow:
    """Return the blocks in the order in which they are written, each as `block: source, source`; the last one is returned. What
    is no block is an input of the model, or what the frame is given that owns the flow.
    """
    sources = {path: names.split(", ") for path, names in (line.split(": ") for line in reads)}

    def origin(name: str) -> Origin:
        return NodeOutput(name) if name in sources else FrameInput(name) if name == owner else ModelInput(name)

    edges = [
        DiagramEdge(DiagramSource(origin(name)), path, f"x{place}" if place else "", True)
        for path, names in sources.items()
        for place, name in enumerate(names)
    ]
    entry = FrameInput(owner) if owner else None
    return Flow(entry, tuple(map(leaf, sources)), tuple(edges), DiagramSource(NodeOutput(list(sources)[-1])))
