"""Where the groups of a model stand, and which of them are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from composer.draw.paths import plain
from composer.graph.anatomy import TYPED, Region, regions, wires_of
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode
from composer.graph.visit import Fold, Inside, Visit, every_node, walk


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """A group, or a block that a recipe defines, in a drawing."""

    path: str
    """Without the passes of repeats."""
    form: object
    """The same for all that are alike but for their numbers: of the same kinds of nodes, wired in the same way."""


def group_places(root: TypedGraph) -> tuple[GroupPlace, ...]:
    """Return the groups of a model that may be frames, from the outside in and in the order of the data."""
    forms: Fold[TypedGraph, TypedNode, object, object] = Fold(TYPED, _node_form, _graph_form, every_node)
    found: dict[str, GroupPlace] = {}
    for visit in walk(root, _each_graph_once):
        node, path = visit.node, plain(visit.path)
        if isinstance(node, TypedGroup) and not _never_frame(node):
            found.setdefault(path, GroupPlace(path, forms.node(node, "")))
    return tuple(found.values())


def _never_frame(node: TypedGroup) -> bool:
    """Return whether its nodes always stand for themselves: of a `residual`, or of what is around a formula in a slot."""
    part = node.node.part
    return node.graph.by_name.keys() == {node.name} if part is None else part.dissolved


def _each_graph_once(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    seen: set[TypedGraph] = set()
    for region in regions(visit.node):
        if region.graph not in seen:
            seen.add(region.graph)
            yield f"{visit.path}.", region


def _node_form(node: TypedNode, inside: Inside[TypedGraph, object, object]) -> object:
    part = node.node.part if isinstance(node, TypedGroup) else node.part if isinstance(node, TypedBlock) else None
    within = frozenset(form for _, form in inside.regions)
    return type(node).__name__, part.kind if part else "", within, tuple(form for _, form in inside.slots)


def _graph_form(graph: TypedGraph, forms: list[object]) -> object:
    read = tuple(tuple((wire.port, wire.refs) for wire in wires_of(node.node)) for node in graph.nodes)
    return tuple(node.name for node in graph.nodes), tuple(forms), read
