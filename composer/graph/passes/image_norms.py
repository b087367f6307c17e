"""Norms of the last axis of an image, whose channels stand in front of its pixels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, assert_never

from blocks.core import Norm, fields, standard
from composer.diagnostics import Diagnostic
from composer.graph.anatomy import regions
from composer.graph.ir import Ref, Wire
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import TensorType
from composer.graph.visit import Visit, every_node, every_pass, walk
from composer.language.expressions.parser import names

OF_IMAGES = "2d"
"""How the name of a norm ends that takes images."""
IMAGE_AXES = ("height", "width")
"""What blocks of images call their last axes."""


def norms_of_images(typed: TypedProgram) -> Iterator[Diagnostic]:
    """Yield a warning for each norm along the columns of what a convolution or another block of images made, where the same norm
    along its channels is another block.
    """
    for visit in walk(typed.root, every_pass, every_node, once=True):
        block = visit.node
        if not isinstance(block, TypedBlock) or not isinstance(block.part, Norm) or not block.node.wires:
            continue
        kind = block.part.kind
        if kind + OF_IMAGES in standard() and (maker := _maker(_inner(visit), block.node.wires[0].refs[0])):
            message = f"{kind} takes the last axis for the channels, which is the width of what {maker} gives"
            hint = f"{kind}{OF_IMAGES} normalizes the channels of images"
            yield Diagnostic("norm-axis", message, visit.written, "warning", hint=hint)


class Inner(NamedTuple):
    """A graph with what is around it."""

    graph: TypedGraph
    holder: TypedNode | None = None
    """The node whose graph it is; None for the outermost one."""
    wires: tuple[Wire, ...] = ()
    """What its inputs are, in terms of the graph around it."""
    outer: Inner | None = None


def _inner(visit: Visit) -> Inner | None:
    """Return the graph in which a node stands; None in a slot."""
    if visit.graph is None or visit.holder is None or visit.region is None:
        return Inner(visit.graph) if visit.graph is not None else None
    return Inner(visit.graph, visit.holder.node, visit.region.wires, _inner(visit.holder))


def _maker(place: Inner | None, ref: Ref) -> str:
    """Return the kind of the block of images that made a value, but for what keeps its pixels in place; empty if none did."""
    while place is not None:
        if ref.node not in place.graph.by_name:  # an input of the graph, which is a value around it
            wire = next((wire for wire in place.wires if wire.port == ref.node), None)
            if wire is None or isinstance(place.holder, TypedScan):  # one step may have other axes
                return ""
            place, ref = place.outer, wire.refs[0]
            continue
        node = place.graph[ref.node]
        match node:
            case TypedBlock():
                if _makes_images(node):
                    return node.part.kind
                if not _keeps_pixels(node):
                    return ""
                ref = node.node.wires[0].refs[0]
            case TypedGroup() | TypedRepeat():
                inside = regions(node)[-1 if ref.index is None else ref.index]
                returned = dict(inside.graph.graph.outputs)
                place, ref = (
                    Inner(inside.graph, node, inside.wires, place),
                    returned.get(ref.port) or next(iter(returned.values())),
                )
            case TypedScan():
                return ""
            case _:
                assert_never(node)
    return ""


def _makes_images(block: TypedBlock) -> bool:
    """Return whether a block gives images: its last two axes are computed from a height and a width."""
    declared = next(iter(block.part.outputs.values()), "")
    axes = pattern(declared).axes if declared else ()
    return len(axes) == 4 and all(name in names(axis) for name, axis in zip(IMAGE_AXES, axes[-2:], strict=True))


def _keeps_pixels(block: TypedBlock) -> bool:
    """Return whether a block without weights leaves the rows and columns of its first input where they are."""
    given, made = block.first_input, next(iter(block.outputs.values()))
    if not isinstance(given, TensorType) or not isinstance(made, TensorType) or block.parameters:
        return False
    moves = "pattern" in fields(type(block.part))  # such as rearrange
    return not moves and len(made.axes) == len(given.axes) and made.sizes[-2:] == given.sizes[-2:] and bool(block.node.wires)
