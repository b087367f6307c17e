"""Blocks of one kind that differ inside in a single box, or in a map on a skip connection: one detail tells both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from composer.draw.build.group_places import node_forms
from composer.draw.details.inside import BlockInside
from composer.draw.diagram import Leaf
from composer.draw.series import template
from composer.draw.style.looks import look
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode

MAX_DIFFERENCE = 60
"""Letters of what is said of the box that differs."""
SUM = "add"
"""The kind of block at which a skip connection ends."""


def difference(one: BlockInside, others: Sequence[BlockInside | None]) -> str:
    """Return what the one box says in which other blocks differ inside from one, but for numbers, all in the same; nothing where
    they differ otherwise.
    """
    said = {_difference(one, other) if other is not None else "" for other in others}
    return said.pop() if len(said) == 1 else ""


def _difference(one: BlockInside, other: BlockInside) -> str:
    """Return the same of one of them: all must be wired in the same way, and the box have the only title of its kind."""
    leaves, others = list(one.leaves), list(other.leaves)
    if len(leaves) != len(others) or wires(one) != wires(other):
        return ""
    differ = [its for leaf, its in zip(leaves, others, strict=True) if told(leaf) != told(its)]
    titles = Counter(leaf.look.title for leaf in leaves)
    if len(differ) != 1 or titles[differ[0].look.title] != 1 or any(leaf.rows for leaf in (*leaves, *differ)):
        return ""  # of a box with rows, these tell what it is, and not what stands beside its title
    said = f"{differ[0].look.title} {differ[0].look.detail}"
    return said if len(said) <= MAX_DIFFERENCE else ""


def told(leaf: Leaf) -> object:
    """Return what a box says but for its numbers, its name and how many parameters it has."""
    look = leaf.look
    rows = [(template(row.share), row.look) for row in leaf.rows]
    return look.title, [*map(template, look.facts)], look.sign, look.mask, look.sides, rows, leaf.after


def wires(inside: BlockInside) -> Counter[object]:
    """Return what leads where in a block, its boxes by their numbers: two blocks may call them otherwise."""
    numbers = {leaf.about.path: str(number) for number, leaf in enumerate(inside.leaves)}

    def place(path: str) -> str:
        return numbers.get(path) or path.replace(inside.path, "", 1)

    found = inside.flow.all_edges()
    return Counter((place(e.source.path), e.source.port, place(e.target), e.port, e.main, e.back) for e in found)


def on_the_skip(one: TypedGraph, other: TypedGraph) -> str:
    """Return what another use of a block has on a connection from one of its inputs to a sum, where one has nothing, or the other
    way round, but for numbers: `conv 1 × 1 on the skip`, `no conv 1 × 1 on the skip`; nothing where they differ otherwise.
    """
    more = map_on_skip(one, other)
    less = "" if more else map_on_skip(other, one)
    return f"{more} on the skip" if more else f"no {less} on the skip" if less else ""


def map_on_skip(plain: TypedGraph, mapped: TypedGraph) -> str:
    """Return in a few letters what a graph has on such a connection, if that is all by which it differs from a plain one."""
    added = [node for node in mapped.nodes if node.name not in plain.by_name]
    wires = [wire for node in added for wire in wires_of(node.node)]
    if len(added) != 1 or len(wires) != 1 or len(wires[0].refs) != 1:
        return ""
    (node,), ((read,),) = added, (wire.refs for wire in wires)
    readers = [one for one in mapped.nodes if any(ref.node == node.name for wire in wires_of(one.node) for ref in wire.refs)]
    is_skip = read.node in {one.name for one in mapped.graph.inputs} and [*map(kind, readers)] == [SUM]
    same = wired(mapped, {node.name: read}) == wired(plain, {})
    if not (isinstance(node, TypedBlock) and is_skip and same):
        return ""
    seen = look(node)
    return seen.brief[-1] if seen.brief else seen.title


def kind(node: TypedNode) -> str:
    """Return the kind of a block; nothing for what holds a graph."""
    return node.part.kind if isinstance(node, TypedBlock) else ""


def wired(graph: TypedGraph, through: Mapping[str, Ref]) -> object:
    """Return the nodes of a graph but for their numbers, with what each reads, as if some were not there, `through` which a value
    goes.
    """

    def read(ref: Ref) -> Ref:
        return through.get(ref.node, ref)

    forms = node_forms(graph)
    nodes = {
        node.name: (forms[node.name], [(wire.port, [*map(read, wire.refs)]) for wire in wires_of(node.node)])
        for node in graph.nodes
        if node.name not in through
    }
    return nodes, [(name, read(ref)) for name, ref in graph.graph.outputs]
