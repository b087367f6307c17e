"""How parameters start in blocks that bring patterns of their own: the patterns, with the names that they have in the model."""

from __future__ import annotations

from collections.abc import Iterator

from composer.diagnostics import Span
from composer.graph.ir import BlockNode, Graph, GroupNode, Node, RepeatNode, ScanNode, SlotNode

Start = tuple[str, str, float, Span]


def starts(graph: Graph, prefix: str = "") -> Iterator[Start]:
    """The patterns of every block below, the innermost first, so that those of what stands around it win."""
    for node in graph.nodes:
        yield from _of_node(node, f"{prefix}{node.name}.")


def _of_node(node: Node, prefix: str) -> Iterator[Start]:
    match node:
        case GroupNode(graph=graph, init=init):
            yield from starts(graph, prefix)
            for pattern, how, value, span in init:
                yield prefix + pattern, how, value, span
        case ScanNode(graph=graph):
            yield from starts(graph, prefix)
        case RepeatNode(passes=passes, share=share):
            for index, one in enumerate(passes if share is None else passes[:1]):
                yield from starts(one.graph, f"{prefix}{index}." if share is None else prefix)
        case BlockNode(fields=fields):
            for _, filled in fields:
                if isinstance(filled, SlotNode):
                    yield from _of_node(filled.node, f"{prefix}*")
