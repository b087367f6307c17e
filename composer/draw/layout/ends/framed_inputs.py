"""Inputs of the model that blocks in the frame of a repeat read, by a wire from a box in place of a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeGuard

from composer.draw.diagram import Flow, Group, IrregularSubgraph, Leaf, Titles
from composer.draw.edges import DiagramEdge, DiagramSource
from composer.draw.passes.branches import group_branches
from composer.draw.passes.irregular import group_irregular_subgraphs
from composer.draw.passes.order import sort_topologically
from composer.draw.passes.split_columns import name_from_others

MAX_READ = 2
"""Blocks of frames that a wire leads to from one input: more read it by its name."""
MAX_LED = 2
"""Inputs that are led into frames: of more, all go by their names."""
PLUMBING = "bool"
"""The type of inputs that only tell what of others counts."""
NOTHING_LED: Mapping[str, DiagramSource] = MappingProxyType({})
"""Where no input is led into a frame."""


def is_told(path: str, titles: Titles) -> bool:
    """Return whether an input is one whose type a figure tells, and no plumbing."""
    return not titles.types.get(path, PLUMBING).endswith(PLUMBING)


def lead_into_repeats(flow: Flow, titles: Titles) -> tuple[Flow, Mapping[str, DiagramSource]]:
    """Return a flow in which wires lead from required inputs to the few blocks in repeats that read them, and these inputs: what
    a step takes in is no detail. What begins a branch there, only tells sizes, starts a recurrence, or is read by some passes
    alone, goes by its name.
    """
    inner = [edge for edge in _in_repeats(flow) if edge.source.is_model_input and edge.source.path in titles.required]
    read = Counter(edge.source.path for edge in inner)
    apart = {edge.source.path for edge in inner if edge.shape_only or edge.partial or edge.source.at_first}
    wanted = {path for path, count in read.items() if count <= MAX_READ and path not in apart and is_told(path, titles)}
    if not 0 < len(wanted) <= MAX_LED:
        return flow, NOTHING_LED

    def led(edge: DiagramEdge) -> DiagramEdge:
        own = edge.source.is_model_input and edge.source.path in wanted
        return edge.reading(replace(edge.source, reference="")) if own else edge

    def in_frame(frame: Flow) -> Flow:
        return frame.map_edges(led).map_groups(in_frame)

    found = flow.map_items(lambda item: item.map_flows(in_frame) if _is_repeat(item) else item)
    if _height(found) > _height(flow):
        return flow, NOTHING_LED
    return found, {edge.source.path: replace(edge.source, reference="") for edge in inner if edge.source.path in wanted}


def name_in_own_frames(column: Flow) -> Flow:
    """Return a column whose frames read inputs that have their boxes in it by their names: a wire would go around all that is
    between.
    """
    inputs = {item.about.path for item in column.items if isinstance(item, Leaf) and item.model_input}
    return column.map_groups(lambda inner: name_from_others(inner, inputs)) if inputs else column


def _in_repeats(flow: Flow) -> Iterator[DiagramEdge]:
    """Yield the edges in the frames of repeats whose passes are of one kind."""
    for item in flow.items:
        if _is_repeat(item):
            yield from item.flows[0].all_edges()


def _height(flow: Flow) -> int:
    """Return how many things stand above each other in the frames of repeats, where ways that nothing is led into stand side by
    side.
    """
    frames = (sort_topologically(item.flows[0]) for item in flow.items if _is_repeat(item))
    return sum(len(group_branches(group_irregular_subgraphs(frame, _reads_no_wire)).items) for frame in frames)


def _reads_no_wire(ways: IrregularSubgraph) -> bool:
    """Return whether no wire leads from an input of the model to something on several ways."""
    return not any(edge.source.is_model_input and edge.upward for edge in ways.flow.edges)


def _is_repeat(item: object) -> TypeGuard[Group]:
    return isinstance(item, Group) and bool(item.count) and len(item.flows) == 1
