"""Ties that can be read where they are written: what a block is written out as may hide the node that is named.

Before:
    norm: rmsnorm
    r: {graph: {norm: rmsnorm, body: {type: rmsnorm, tie: norm}}}, where the outer `norm` is meant
After:
    norm: rmsnorm
    r: {graph: {norm: rmsnorm, body: rmsnorm}, tie: {body.weight: norm.weight}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from composer.diagnostics import Diagnostic, RecipeError
from composer.graph.anatomy import rebuilt, regions, slots, with_nodes
from composer.graph.ir import Graph, Tie
from composer.graph.parameters import descended, parameters_of
from composer.graph.typed import TypedGraph, TypedNode, TypedParameter
from composer.graph.visit import walk


class SightLevel(NamedTuple):
    """A graph around a tie, or the slot that a node fills."""

    nodes: Mapping[str, TypedNode]
    holder: str
    """The node of it that is tied, or that has it inside."""


class HoistedTie(NamedTuple):
    """A tie on its way to a node around the tied one."""

    up: int
    """How many nodes it is still to pass before the one that it is written at."""
    tie: Tie

    def out_of(self, prefix: str) -> HoistedTie:
        """Return the same as it is seen from around a node or a graph whose names begin so."""
        return HoistedTie(self.up - 1, replace(self.tie, parameter=prefix + self.tie.parameter))


def with_visible_ties(root: TypedGraph) -> TypedGraph:
    """Return the graph with each tie at a node from which the other node can be named.

    Raises:
        RecipeError: There is no such node.
    """
    if not any(tie.up for visit in walk(root, once=True) for tie in visit.node.node.ties):
        return root
    return _graph(root, ())[0]


def _graph(graph: TypedGraph, around: tuple[SightLevel, ...]) -> tuple[TypedGraph, list[HoistedTie]]:
    """Return a graph with what of its ties is written around it; `around` are the levels from the inside out."""
    nodes, hoisted = [], []
    for node in graph.nodes:
        changed, out = _node(node, node.name, (SightLevel(graph.by_name, node.name), *around))
        nodes.append(changed)
        hoisted += out
    return with_nodes(graph, nodes), hoisted


def _node(node: TypedNode, name: str, levels: tuple[SightLevel, ...]) -> tuple[TypedNode, list[HoistedTie]]:
    """Return a node in the innermost of some levels, where it has a name, with what of its ties is written around it."""
    inner = [(region.name, region.owner, _graph(region.graph, levels)) for region in regions(node)]
    filled = {slot: _node(one, slot, (SightLevel({slot: one}, slot), *levels)) for slot, one in slots(node)}
    found = [each.out_of(prefix) for prefix, owner, (_, out) in inner if owner for each in out]
    found += [each.out_of("") for _, out in filled.values() for each in out]
    ties, out = [each.tie for each in found if each.up == 0], [each for each in found if each.up]
    changed = rebuilt(node, [graph for _, _, (graph, _) in inner], {slot: one for slot, (one, _) in filled.items()})
    for tie in node.node.ties:
        place = _place(tie, levels)
        if place == 0 and not ties:
            ties.append(tie)
            continue
        each = list(_one_by_one(tie, node, levels[tie.up].nodes))
        if place == 0:
            ties += each
        else:
            out += [HoistedTie(place, replace(one, up=tie.up - place)) for one in each]
    if tuple(ties) != node.node.ties:
        changed = replace(changed, node=replace(changed.node, ties=tuple(ties)))  # type: ignore[arg-type]  # each kind with its own
    return changed, [each._replace(tie=replace(each.tie, parameter=f"{name}.{each.tie.parameter}")) for each in out]


def _place(tie: Tie, levels: Sequence[SightLevel]) -> int:
    """Return how far around the tied node the innermost one is from which the other can be named."""
    first = tie.path[0]
    for place in range(tie.up + 1):
        hidden = any(first in level.nodes for level in levels[place + 1 : tie.up])
        own = levels[place]
        if not hidden and (first != own.holder if place == tie.up else first not in own.nodes or first == own.holder):
            return place
    raise RecipeError([_unwritable(tie)])


def _one_by_one(tie: Tie, node: TypedNode, beside: Mapping[str, TypedNode]) -> Iterator[Tie]:
    """Yield a tie for each parameter of a node that is tied."""
    if tie.parameter:
        yield tie
        return
    _, other, _ = descended(tie.path, beside)
    last = tie.path[-1]
    theirs = _parameters(other, regions(other)[last].name if isinstance(last, int) else "")
    for name, parameter in _parameters(node).items():
        if name in theirs and theirs[name].shape == parameter.shape:
            steps = tuple(int(step) if step.isdigit() else step for step in name.split("."))
            path = (*tie.path, *steps)
            if any(isinstance(step, int) for step in path[2:]):
                raise RecipeError([_unwritable(tie)])  # a pass is named at the first step alone
            yield replace(tie, parameter=name, path=path)


def _parameters(node: TypedNode, inside: str = "") -> dict[str, TypedParameter]:
    """Return the parameters below a node, or in one pass of it, by their names there."""
    alone = TypedGraph(Graph((), (), ()), {}, (node,), {}, {node.name: node})
    start = f"{node.name}.{inside}"
    return {name[len(start) :]: each for name, each in parameters_of(alone).items() if name.startswith(start)}


def _unwritable(tie: Tie) -> Diagnostic:
    message = f"written out, this tie has no place from which `{tie.path[0]}` can be named"
    return Diagnostic("tie", message, tie.span, hint="rename one of the nodes of that name")
