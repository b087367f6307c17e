"""Which of the values that the box of a pass reads of others each of its concatenations takes, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from composer.draw.build.value_sources import Sources, captured_inputs
from composer.draw.diagram import Item, Leaf
from composer.draw.edges import DiagramSource
from composer.draw.wording import each_pass
from composer.graph.anatomy import wires_of
from composer.graph.typed import TypedBlock, TypedGraph

INNER_PASS = re.compile(r"(\w+)\((\d+)\)")
"""What a pass of a repeat in a box gives, as it is called beside that: `layers(1)`."""
SEVERAL = 2
"""Concatenations from which on it is not clear which takes what."""


def skips_in_order(graph: TypedGraph, given: Mapping[str, Sources], items: Iterable[Item]) -> str:
    """Return in which order the concatenations in a pass take what it is `given` by others, whose boxes are among the items:
    `skips: layer 1, layer 0, Level 2`. Nothing where there is one alone, one takes several, or words do not tell what it takes.
    """
    boxes = {item.about.path: item for item in items if isinstance(item, Leaf)}
    captured = captured_inputs(graph)
    found = []
    for node in graph.nodes:
        if isinstance(node, TypedBlock) and node.part.is_ordered:
            read = [ref.node for wire in wires_of(node.node) for ref in wire.refs if ref.node in captured]
            found += [[_called(one, boxes) for port in read for one in given.get(port, ())]] if read else []
    names = [own[0] for own in found if len(own) == 1]
    told = len(names) == len(found) >= SEVERAL and all(names) and len({*names}) == len(names)
    return f"skips: {', '.join(names)}" if told else ""


def _called(source: DiagramSource, boxes: Mapping[str, Leaf]) -> str:
    """Return what a value is called beside the box that gives it; nothing where that has no name for it."""
    box, inner = boxes.get(source.path), INNER_PASS.fullmatch(source.port)
    if box is None or source.reference:
        return ""
    if inner:
        return f"{each_pass(inner[1])[0]} {inner[2]}"
    return "" if source.port else box.name or box.look.title
