"""The texts of a repeat's passes made alike before they become one: with the same nodes, the same outputs, lists as long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import cycle, islice, pairwise

from composer.graph.unparse.node_text import INPUT, MISSING, bare, is_left_out, left_out, ports, stands_for
from composer.language.recipe.free_names import fresh
from composer.language.recipe.writer import Remark, YamlData


def node_order(graphs: Sequence[Mapping[str, YamlData]]) -> list[str]:
    """Return the nodes of all graphs, in an order that is right for each where there is one; those that are left out wherever
    they are come last, where nothing reads the node above.
    """
    present = [[name for name, node in graph.items() if not is_left_out(node)] for graph in graphs]
    sorter = TopologicalSorter[str]({name: () for names in present for name in names})
    for names in present:
        for above, below in pairwise(names):
            sorter.add(below, above)
    try:
        order = list(sorter.static_order())
    except CycleError:
        order = [name for names in present for name in names]
    return list(dict.fromkeys([*order, *(name for graph in graphs for name in graph)]))


def first_input(holder: Mapping[str, YamlData]) -> str:
    """Return what the first input of a graph is called in it."""
    return next(iter(edges), INPUT) if isinstance(edges := bare(holder.get("in", MISSING)), Mapping) else INPUT


def read_above(graph: Mapping[str, YamlData], first: str) -> dict[str, str]:
    """Return what nodes read of which that is not written, or need not be: what is above them, where that is the node above."""
    found = {}
    for above, (name, node) in zip([first, *graph], graph.items(), strict=False):
        if isinstance(node, Mapping) and isinstance(edge := node.get("in"), Remark):
            found[name] = str(edge.data)
        elif not isinstance(node, Mapping):
            found[name] = above
    return found


def with_all_nodes(graphs: Sequence[Mapping[str, YamlData]], names: Sequence[str]) -> list[list[YamlData]]:
    """Return the nodes of graphs that all have the same ones: one that a pass lacks is that of another pass, left out."""
    anywhere: dict[str, YamlData] = {}
    for name, node in (pair for graph in graphs for pair in graph.items()):
        if name not in anywhere or is_left_out(anywhere[name]):
            anywhere[name] = node
    lacking: dict[str, YamlData] = dict.fromkeys(names, MISSING)
    for name, node in anywhere.items():
        if isinstance(node, Mapping):
            lacking[name] = {**{key: value for key, value in node.items() if key != "tie"}, "when": "false"}
    return [[graph.get(name, lacking[name]) for name in names] for graph in graphs]


def with_outputs(holders: Sequence[Mapping[str, YamlData]]) -> list[Mapping[str, YamlData]]:
    """Return nodes with graphs inside so that each says what it returns, where not all end in the same node or return the same
    names; a node that stands for none is not among those of others. What some return by the name of a node is in others that of
    a node that is left out, and what it passes on; where not all return it, it is only read from outside, and need not be said.
    """
    graphs = [graph if isinstance(graph := bare(holder["graph"]), Mapping) else {} for holder in holders]
    outputs = [dict(written) if isinstance(written := holder.get("outputs"), Mapping) else {} for holder in holders]
    last = [[INPUT, *graph][-1] for graph in graphs]
    nodes = {name for graph in graphs for name in graph}
    first = [next(iter(one), MISSING) for one in outputs]
    all_return = set(outputs[0]).intersection(*outputs)
    pairs = list(zip(graphs, outputs, strict=True))
    by_node = {
        name
        for one, own in zip(outputs, first, strict=True)
        for name in one
        if name != own
        and (name not in all_return or (name in nodes and any(one[name] != name for one in outputs)))
        and not (name in all_return and any(name in graph and each[name] != name for graph, each in pairs))
    }
    if len({*last}) == 1 and not by_node and all(one.keys() == outputs[0].keys() for one in outputs):
        return list(holders)
    inputs = {name for holder in holders for name in ports(holder.get("in"))}
    taken = {INPUT, *nodes, *inputs, *(name for one in outputs for name in one)}
    said_first = {*first} - {MISSING}
    own = said_first.pop() if len(said_first) == 1 else fresh("y", taken)
    with_nodes = any(graph and stands_for(graph) is None for graph in graphs)
    said: list[Mapping[str, YamlData]] = []
    for holder, graph, returned, one, name in zip(holders, graphs, outputs, first, last, strict=True):
        value = stands_for(graph)
        there = {} if value is not None and with_nodes else graph
        passed_on = {each: left_out(str(bare(text))) for each, text in returned.items() if each in by_node and each not in graph}
        rest = {
            each: each if each in by_node else text
            for each, text in returned.items()
            if each != one and (each not in by_node or each in all_return)
        }
        result = returned[one] if returned else name if value is None else value
        said.append({**holder, "graph": {**there, **passed_on}, "outputs": {own: result, **rest}})
    return said


def with_long_lists(repeats: Sequence[Mapping[str, YamlData]]) -> list[Mapping[str, YamlData]]:
    """Return repeats whose lists of `each` values, which begin again where they end, are as long as the most passes where their
    lengths differ.
    """
    every = [each if isinstance(each := repeat.get("each"), Mapping) else {} for repeat in repeats]
    longest = max(int(str(bare(repeat["repeat"]))) for repeat in repeats)
    lengths: dict[str, set[int]] = {}
    for name, values in (pair for each in every for pair in each.items()):
        lengths.setdefault(name, set()).add(len(values) if isinstance(values, list) else 0)
    long = [
        {
            name: list(islice(cycle(values), longest)) if isinstance(values, list) and len(lengths[name]) > 1 else values
            for name, values in each.items()
        }
        for each in every
    ]
    return [{**repeat, "each": each} if each else repeat for repeat, each in zip(repeats, long, strict=True)]
