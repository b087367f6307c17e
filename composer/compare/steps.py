"""How values go into the steps of a scan, from one step to the next, and out, as blocks that can be compared."""

from __future__ import annotations

from blocks.core import Block
from composer.graph.ir import BlockNode
from composer.graph.typed import TypedBlock, TypedScan
from composer.graph.types import Type


class Step(Block, kind="step"):
    """One step of what is walked."""

    axis: int
    """Which of the axes is walked."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}


class Carried(Block, kind="carried"):
    """What the step before returned, or what it starts with."""

    inputs = {"start": "float[...]"}
    outputs = {"y": "float[...]"}


class Next(Block, kind="next"):
    """What becomes of what is carried."""

    inputs = {"returned": "float[...]", "carried": "float[...]"}
    outputs = {"y": "float[...]"}


class Stacked(Block, kind="stacked"):
    """What all steps returned."""

    axis: int
    """Where the axis stands that is walked."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}


def typed(scan: TypedScan, part: Block, gives: Type) -> TypedBlock:
    """A block that stands for what a scan does by itself."""
    node = BlockNode(scan.name, type(part), (), (), span=scan.node.span, name_span=scan.node.name_span)
    return TypedBlock(node, part, {}, {}, {"y": gives}, (), {}, {})
