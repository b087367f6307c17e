"""States that nothing reads but what they become next, so that no call depends on them."""

from __future__ import annotations

from collections.abc import Iterable

from composer.graph.passes.expand.builders import GraphBuilder, NodeBuilder
from composer.graph.state_update import SUFFIX, Renewal


def idle_states(graph: GraphBuilder, others: Iterable[str] = ()) -> set[NodeBuilder]:
    """Return the states of a graph that lead nowhere: not to an output, nor to one of `others`, which are read though neither a
    node nor an output reads them. What leads to a node that nothing reads is not among them, since that node is the mistake.
    """
    renewals = [name for name, node in graph.nodes.items() if node.part is Renewal]
    if not renewals:
        return set()
    unread = (name for name, node in graph.nodes.items() if not node.read)
    found = reached(graph, (*(ref.node for ref in graph.outputs.values()), *others, *unread))
    states = {name.removesuffix(SUFFIX) for name in renewals}
    return {graph.nodes[name] for name in states - found}


def reached(graph: GraphBuilder, names: Iterable[str]) -> set[str]:
    """Return the nodes of a graph that some depend on, themselves among them, and those on which it depends what states of them
    become.
    """
    waiting, found = list(names), set()
    while waiting:
        if (name := waiting.pop()) in graph.nodes and name not in found:
            found.add(name)
            waiting.append(name + SUFFIX)
            waiting.extend(ref.node for wire in graph.nodes[name].every_wire() for ref in wire.refs)
    return found
