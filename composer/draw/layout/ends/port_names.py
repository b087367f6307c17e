"""What a box calls the values that it reads: small words at the ends of wires, where these do not come from what tells it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

from composer.draw.diagram import Flow, Group, Item, Leaf
from composer.draw.edges import OUTPUT, SEVERAL, DiagramEdge, InnerOutput
from composer.draw.geometry import Text
from composer.draw.style.typography import Typography

MIN_WIRES = 3
"""Wires into a box of which a reader cannot tell which is which: of two, one is the stream."""
HEAD = 9.0
"""From a border to a name beside the wire: an arrowhead of 7 pixels, and a gap."""
ABOVE = 3.0
"""From a level wire to the name above it."""
BESIDE, BELOW, GAP = 6.0, 11.5, 7.0
"""From an upright wire to a name beside it, half of an arrowhead and a gap; from the border above to where its letters stand, so
that wires turn off below it; and to what stands at its other side.
"""
MAX_SCALE = 1.1
"""How large letters may be that have room there."""
WORD = re.compile(r"[^\W_]+")
AT_FIRST = "at first"
"""What is said of a value that only the first pass or step reads."""
MAX_STATE_LETTERS = 2
"""Letters of an input whose name stands at a wire back."""
NO_NAMES: Mapping[DiagramEdge, str] = MappingProxyType({})


def names_at_ends(edges: Iterable[DiagramEdge], items: Mapping[str, Item]) -> Mapping[DiagramEdge, str]:
    """Return what a box calls the values that it reads, of all `edges` into it, where they mean different things and the sources
    of several say something else; but for what a name beside it tells. A wire back for several states has their names, which
    that of the number with which all of them start does not say again. The sources are among the `items`, as far as they have
    boxes there.
    """
    given = [*dict.fromkeys(edges)]
    untold = [edge for edge in given if not is_told(edge, items)]
    states = {edge.input for edge in given if edge.back and SEVERAL in edge.input}
    if sum(len(_inputs(edge)) for edge in untold) < MIN_WIRES or len({*chain(*map(_inputs, given))}) < MIN_WIRES:
        return NO_NAMES
    told = [edge for edge in given if edge.input and (edge in untold or not edge.source.reference)]
    return {edge: said_at_end(edge) for edge in told if not (edge.source.number and edge.input in states)}


def _inputs(edge: DiagramEdge) -> list[str]:
    """Return what a box calls the values that come in as one; nothing, once, for a stream."""
    return edge.input.split(SEVERAL)


def said_at_end(edge: DiagramEdge) -> str:
    """Return what stands at the end of a wire: what its target calls the value, and whether only the first pass or step reads
    it, which a name in place of a wire says itself.
    """
    first = AT_FIRST if edge.source.at_first and not edge.source.reference else ""
    return " ".join(filter(None, (edge.input, first)))


def with_outputs_told(flow: Flow) -> Flow:
    """Return a flow in which a value that is read by its name is called an output, in its frames too, where the end of another
    wire into the same block has that name: there it is what the block calls something else.
    """
    every = [*flow.all_edges()]
    if {edge.source.reference for edge in every if edge.source.reference}.isdisjoint({edge.input for edge in every}):
        return flow
    called = {path for path in dict.fromkeys(e.target for e in flow.edges if e.source.reference) if _names_meet(flow, path)}

    def told(edge: DiagramEdge) -> DiagramEdge:
        is_output = edge.target in called and _is_ambiguous(edge, flow.edges_into(edge.target))
        return edge.reading(replace(edge.source, suffix=OUTPUT)) if is_output else edge

    return (flow.map_edges(told) if called else flow).map_groups(with_outputs_told)


def _names_meet(flow: Flow, path: str) -> bool:
    """Return whether a block reads a value by a name that stands at the end of another wire into it."""
    edges = flow.edges_into(path)
    meeting = {edge.source.reference for edge in edges if _is_ambiguous(edge, edges)}
    return bool(meeting) and not meeting.isdisjoint(names_at_ends(edges, flow.by_path).values())


def _is_ambiguous(edge: DiagramEdge, edges: Iterable[DiagramEdge]) -> bool:
    """Return whether a value is read by a name, with nothing behind it, that its target has for another one of some `edges`."""
    source = edge.source
    alone = source.reference and not (source.suffix or source.at_first or edge.partial or source.is_model_input)
    return bool(alone) and any(source.reference == one.input and source.origin != one.source.origin for one in edges)


def name_of_state(edge: DiagramEdge) -> str:
    """Return what the target of a wire calls a state from the step before, where that is a letter as in formulas."""
    return edge.input if edge.back and len(edge.input) <= MAX_STATE_LETTERS else ""


def far_starts(edges: Iterable[DiagramEdge]) -> Mapping[DiagramEdge, str]:
    """Return what stands at the ends of those wires from elsewhere that only the first pass or step reads."""
    return {edge: AT_FIRST for edge in edges if edge.source.at_first and not edge.back}


def names_of_bundle(edges: Sequence[DiagramEdge]) -> Mapping[DiagramEdge, str]:
    """Return what a box calls the values that come in from below beside its stream, where many wires end side by side that a
    reader would have to follow.
    """
    named = {edge: said_at_end(edge) for edge in edges if edge.input and not edge.main}
    return named if len({edge.input for edge in named}) >= MIN_WIRES else NO_NAMES


def names_below(
    edges: Sequence[DiagramEdge], named: Mapping[DiagramEdge, str], typography: Typography
) -> dict[DiagramEdge, float]:
    """Return how wide the names are of what comes in from below, of values that are `named` at any side or come in a bundle; none
    of letters that are too high for the room below an arrowhead.
    """
    names = {**names_of_bundle(edges), **{edge: name for edge, name in named.items() if edge in edges}}
    high = typography.scale <= MAX_SCALE
    return {edge: typography.width(name, "port") + BESIDE + GAP for edge, name in names.items() if high}


def name_below(edge: DiagramEdge, x: float, foot: float, typography: Typography) -> Text:
    """Return the name of what comes in from below, beside the arrowhead below a box, which ends at a height."""
    return Text(x + BESIDE, foot + BELOW, said_at_end(edge), "port", "start", typography.scale)


def is_told(edge: DiagramEdge, items: Mapping[str, Item]) -> bool:
    """Return whether the source of a value says what the box that reads it calls it; what has no name there, such as the tokens
    that a mask allows, is told by its own name, but for the stream.
    """
    if not edge.input:
        return not edge.main
    return words(edge.input) <= words(shown(edge, items))


def shown(edge: DiagramEdge, items: Mapping[str, Item]) -> str:
    """Return what stands at the source of a value: its name in place of a wire, or name and title of a box and its output."""
    if edge.source.reference:
        return edge.source.reference
    item = items.get(edge.source.path)
    box = f"{item.name} {item.look.title}" if isinstance(item, Leaf) else edge.source.path.rpartition(".")[2]
    unnamed = isinstance(item, Group) and isinstance(edge.source.origin, InnerOutput)  # it goes straight through a border
    return box if unnamed else f"{box} {edge.source.port}"


def words(text: str) -> set[str]:
    """Return the words of a name or a title."""
    return {word.lower() for word in WORD.findall(text)}


def name_beside(name: str, side: int, border: float, y: float, typography: Typography) -> Text:
    """Return a name above the end of a level wire at a side of a box, at a height."""
    return Text(side * (border + HEAD), y - ABOVE, name, "port", "end" if side < 0 else "start", typography.scale)


def room_beside(names: Iterable[str], typography: Typography) -> float:
    """Return how long wires into a side are at least, to have names above them; nothing where there are none."""
    return max((HEAD + typography.width(name, "port") for name in names), default=0.0)
