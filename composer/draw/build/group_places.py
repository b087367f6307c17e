"""Where the groups and the repeats of a model stand, and which of them are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from composer.draw.build.walks import each_graph_once
from composer.draw.paths import plain
from composer.graph.anatomy import TYPED, Region, regions, wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.graph.visit import Fold, Inside, Visit, every_node, every_pass, walk


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """A group, or a block that a recipe defines, in a drawing; or a repeat or a scan."""

    path: str
    """Without the passes of repeats."""
    node: TypedNode
    """It, where it stands first."""
    form: object
    """The same for all that are alike but for their numbers: of the same kinds of nodes, wired in the same way."""

    @property
    def block(self) -> str:
        """The name of the block of the recipe that it is; nothing for another."""
        part = self.node.node.part if isinstance(self.node, TypedGroup) else None
        return part.kind if part is not None else ""


def group_places(root: TypedGraph) -> tuple[GroupPlace, ...]:
    """Return the groups of a model that may be frames, from the outside in and in the order of the data."""
    return tuple(_places(root, lambda node: isinstance(node, TypedGroup) and not _never_frame(node)))


def repeat_places(root: TypedGraph) -> tuple[GroupPlace, ...]:
    """Return the repeats and scans of a model, in the same order."""
    return tuple(_places(root, lambda node: isinstance(node, TypedRepeat | TypedScan)))


def stream_places(root: TypedGraph) -> frozenset[str]:
    """Return the paths of the groups and repeats of a model that several streams go through."""
    places = _places(root, lambda node: isinstance(node, TypedGroup | TypedRepeat) and has_streams(node))
    return frozenset(one.path for one in places)


def has_streams(node: TypedNode) -> bool:
    """Return whether several streams go through a node, each by one name."""
    graph = contents(node)
    return graph is not None and len({*graph.inputs} & {*graph.outputs}) > 1


def is_repeat(place: GroupPlace) -> bool:
    """Return whether a group holds nothing but a repeat of several passes, of which the closed box of it tells."""
    nodes = place.node.graph.nodes if isinstance(place.node, TypedGroup) else ()
    return len(nodes) == 1 and isinstance(nodes[0], TypedRepeat) and len(nodes[0].passes) > 1


def _places(root: TypedGraph, holds: Callable[[TypedNode], bool]) -> Iterable[GroupPlace]:
    forms: Fold[TypedGraph, TypedNode, object, object] = Fold(TYPED, _node_form, _graph_form, every_node)
    found: dict[str, GroupPlace] = {}
    for visit in walk(root, each_graph_once):
        path = plain(visit.path)
        if holds(visit.node) and path not in found:
            found[path] = GroupPlace(path, visit.node, forms.node(visit.node, ""))
    return found.values()


def node_forms(graph: TypedGraph) -> dict[str, object]:
    """Return for each node of a graph, by its name, what is the same for all that are alike but for their numbers."""
    forms: Fold[TypedGraph, TypedNode, object, object] = Fold(TYPED, _node_form, _graph_form, every_node)
    return {node.name: forms.node(node, "") for node in graph.nodes}


def _never_frame(node: TypedGroup) -> bool:
    """Return whether its nodes always stand for themselves: of a `residual`, or of what is around a formula in a slot."""
    part = node.node.part
    return node.graph.by_name.keys() == {node.name} if part is None else part.dissolved


def _node_form(node: TypedNode, inside: Inside[TypedGraph, object, object]) -> object:
    part = node.node.part if isinstance(node, TypedGroup) else node.part if isinstance(node, TypedBlock) else None
    within = frozenset(form for _, form in inside.regions)
    return type(node).__name__, part.kind if part else "", within, tuple(form for _, form in inside.slots)


def _graph_form(graph: TypedGraph, forms: list[object]) -> object:
    read = tuple(tuple((wire.port, wire.refs) for wire in wires_of(node.node)) for node in graph.nodes)
    return tuple(node.name for node in graph.nodes), tuple(forms), read


def contents(node: TypedNode) -> TypedGraph | None:
    """Return the graph inside a node, of a repeat that of its first pass; where one group is all there is in it, the graph of
    that; none where a node holds no graph.
    """
    graph = next((region.graph for region in regions(node)), None)
    inner = contents(graph.nodes[0]) if graph and len(graph.nodes) == 1 else None
    return inner or graph


def branching(graph: TypedGraph) -> int:
    """Return how often ways in a graph part and meet again, and how many inputs and outputs it has beyond the first: 0 for a
    chain. The step of a recurrence is one more, with all that parts and meets in it.
    """
    inner = (visit.node for visit in walk(graph, _open) if not visit.in_slot)
    return _parts(graph) + sum(1 + _parts(node.graph) for node in inner if _is_dissolved(node) or _is_recurrence(node))


def nodes_in(graph: TypedGraph) -> int:
    """Return how many nodes a graph has, with those of the steps of its recurrences."""
    return sum(not visit.in_slot for visit in walk(graph, lambda visit: every_pass(visit) if _is_recurrence(visit.node) else ()))


def recurs(node: TypedNode) -> bool:
    """Return whether a node is a recurrence that is written out, or holds one."""
    inside = (visit.node for region in regions(node) for visit in walk(region.graph, each_graph_once))
    return any(map(_is_recurrence, (node, *inside)))


def _parts(graph: TypedGraph) -> int:
    read = sum(len(_read_outside(node)) for node in graph.nodes)
    inputs, outputs = len(graph.graph.inputs), len(graph.graph.outputs)
    return read - (inputs + len(graph.nodes)) + 1 + max(0, inputs - 1) + outputs - 1


def _read_outside(node: TypedNode) -> list[tuple[str, Ref]]:
    """Return what a node reads at which of its ports; of the passes of a repeat, what none of these makes, once."""
    read = [(wire.port, ref) for wire in wires_of(node.node) for ref in wire.refs if ref.node != node.name]
    return [*dict.fromkeys(read)] if isinstance(node, TypedRepeat) else read


def _is_dissolved(node: TypedNode) -> TypeGuard[TypedGroup]:
    return isinstance(node, TypedGroup) and _never_frame(node)


def _is_recurrence(node: TypedNode) -> TypeGuard[TypedScan]:
    return isinstance(node, TypedScan) and bool(node.carried)


def _open(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    return every_pass(visit) if _is_dissolved(visit.node) or _is_recurrence(visit.node) else iter(())
