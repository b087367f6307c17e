"""Learned numbers and those of a formula, which read nothing: their title is their name, and one that is read row by row, such as
a codebook, has the picture of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace

from blocks.core import TableIcon
from composer.draw.brief.block import PARAMETER
from composer.draw.build.texts.node_names import PLAIN, by_itself
from composer.draw.diagram import Flow, Leaf
from composer.draw.formula_lines import CONSTANT
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph
from composer.graph.types import TensorType, Type


def tables_in(graph: TypedGraph) -> frozenset[str]:
    """Return the parameters in a graph of two axes that something reads row by row: it picks rows, or compares all of them."""
    blocks = [node for node in graph.nodes if isinstance(node, TypedBlock)]
    tables = {
        node.name for node in blocks if node.parameters and not node.part.inputs and [*map(axes, node.outputs.values())] == [2]
    }
    return frozenset(ref.node for node in blocks for ref in rows_read(node) if ref.node in tables) if tables else frozenset()


def rows_read(node: TypedBlock) -> Iterator[Ref]:
    """Yield what a block reads row by row."""
    wires = {wire.port: wire.refs for wire in node.node.wires}
    yield from (wires[port][place] for port, place in node.part.read_by_rows(node.sizes))


def axes(type_: Type) -> int:
    """Return how many axes a value has; 0 for what is not known."""
    return len(type_.axes) if isinstance(type_, TensorType) else 0


def titled_by_names(flow: Flow, tables: Container[str], trained: Callable[[str], bool], called: Callable[[str], str]) -> Flow:
    """Return a diagram in which numbers that read nothing have their name as title, given the paths of those that are `tables`,
    which of them are `trained`, and how a name is `called` by itself.

    Before: embed Parameter "512 × 64", weight Constant "1 / i"
    After:  Embed "learned 512 × 64", Weight "1 / i"
    """

    def titled(item: Leaf) -> Leaf:
        name = item.about.path.rpartition(".")[2]
        title, learned = item.look.title, item.look.title == PARAMETER
        if title not in (PARAMETER, CONSTANT) or item.closed or item.rows or name in PLAIN or name.isdigit():
            return item
        beside = "" if item.name in ("", name) else item.name
        facts = item.look.facts
        if learned and trained(item.about.path):
            facts = (f"learned {facts[0]}".replace("learned one number", "one learned number"), *facts[1:])
        icon = TableIcon() if item.about.path in tables else item.look.icon
        look = replace(item.look, title=by_itself(name, called, in_formula=item.in_formula), facts=facts, icon=icon)
        return replace(item, look=look, name=beside, array=True, in_formula=bool(beside) and item.in_formula)

    return flow.map_leaves(titled)
