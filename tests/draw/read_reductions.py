"""What boxes say of reductions, held against the model: those that are no boxes stand in the box of a loss, or of another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from blocks.primitives.reduce import OfOneAxis, Reduction
from composer.draw.paths import plain
from composer.graph.anatomy import regions, wires_of
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram
from composer.graph.types import TensorType
from tests.draw.read_back import Picture

Run = tuple[str, int]
"""A kind of reduction and how many axes it takes away."""

KINDS = {"summed": "sum", "sum": "sum", "mean": "mean"}
TOLD = re.compile(r"(?:^|, |: | · )(summed|sum|mean) (?:over|of) (.*?)(?=, (?:summed|mean) over| · |$)")
"""A reduction in the box of a loss."""
NUMBERS = {"two": 2, "three": 3, "four": 4}
LAST_AXES = re.compile(r"the last (two|three|four) axes")
ALL = ("all numbers", "all axes")


def misreduced(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield what a picture says of the axes that are taken away and is not so: in boxes of losses, kind by kind in their order,
    and in those of reductions.
    """
    shown = {plain(box.path) for box in picture.boxes}
    lines = {plain(box.path): box.lines for box in picture.boxes if not box.merged}
    for loss in typed.untyped.losses.values():
        said = [run for line in lines.get(loss, []) for run in TOLD.findall(line)]
        wanted = hidden_below(typed.root.by_name[loss], typed.root, "", shown) if loss in lines else []
        if not agree([(KINDS[kind], axes) for kind, axes in said], wanted):
            yield f"{loss}: it says {said}, which are {wanted}"
    yield from _in_graph(typed.root, "", shown, lines)


def _in_graph(graph: TypedGraph, prefix: str, shown: set[str], lines: Mapping[str, list[str]]) -> Iterator[str]:
    for node in graph.nodes:
        path = f"{prefix}{node.name}"
        if is_reduction(node) and path in lines and isinstance(node, TypedBlock):
            said = [line.removeprefix("over ") for line in lines[path] if line.startswith("over ")]
            wanted = [*hidden_below(node, graph, prefix, shown), (node.part.kind, taken(node))]
            count = sum(axes for _, axes in wanted)
            if said and (len({kind for kind, _ in wanted}) > 1 or counted(said[0], whole_of(node, count)) != count):
                yield f"{path}: it says {said}, which are {wanted}"
        for region in regions(node)[:1]:
            yield from _in_graph(region.graph, f"{path}.", shown, lines)


def is_reduction(node: TypedNode | None) -> bool:
    """Return whether a node takes away axes, whatever these hold."""
    return isinstance(node, TypedBlock) and isinstance(node.part, Reduction) and not isinstance(node.part, OfOneAxis)


def taken(node: TypedBlock) -> int:
    """Return how many axes a reduction takes away."""
    before, (after,) = node.first_input, node.outputs.values()
    assert isinstance(before, TensorType) and isinstance(after, TensorType)
    return len(before.axes) - len(after.axes)


def whole_of(node: TypedBlock, count: int) -> int:
    """Return how many axes there are before so many are taken away, the last ones by a reduction."""
    (after,) = node.outputs.values()
    assert isinstance(after, TensorType)
    return len(after.axes) + count


def hidden_below(node: TypedNode, graph: TypedGraph, prefix: str, shown: set[str]) -> list[Run]:
    """Return the reductions that lead to a node of a graph and are no boxes, the first one first."""
    refs = [ref for wire in wires_of(node.node) for ref in wire.refs]
    before = graph.by_name.get(refs[0].node) if len(refs) == 1 else None
    if before is None or any(f"{one}.".startswith(f"{prefix}{before.name}.") for one in shown):
        return []
    if isinstance(before, TypedGroup) and all(map(is_reduction, before.graph.nodes)):
        inner = [(one.part.kind, taken(one)) for one in before.graph.nodes if isinstance(one, TypedBlock)]
    elif isinstance(before, TypedBlock) and is_reduction(before):
        inner = [(before.part.kind, taken(before))]
    else:
        return []
    return [*hidden_below(before, graph, prefix, shown), *inner]


def agree(said: list[tuple[str, str]], wanted: list[Run]) -> bool:
    """Return whether words tell runs of reductions: those of one kind that follow each other as one."""
    runs: list[Run] = []
    for kind, count in wanted:
        if runs and runs[-1][0] == kind:
            runs[-1] = kind, runs[-1][1] + count
        else:
            runs.append((kind, count))
    whole = sum(count for _, count in runs)
    return [(kind, counted(axes, whole)) for kind, axes in said] == runs


def counted(axes: str, whole: int) -> int:
    """Return how many axes words are about, of so many.

    >>> counted("height and width", 4), counted("batch and the last two axes", 4), counted("all numbers", 4)
    (2, 3, 4)
    """
    if axes in ALL:
        return whole
    several = [NUMBERS[found] for found in LAST_AXES.findall(axes)]
    others = [one for one in re.split(r", | and ", LAST_AXES.sub("", axes)) if one.strip()]
    return sum(several) + len(others)
