"""Which edges of a recipe changed against another version of it, each with the places on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from composer.diagnostics import Declaration, Diagnostic, Label, Span
from composer.diff.find_changes import paired
from composer.diff.pairing import Pairing
from composer.graph.anatomy import regions
from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode, TypedProgram, TypedRepeat
from composer.graph.visit import Visit, every_pass, walk

CODE = "edge-changed"
GIVEN = "input"
Read = tuple[str, ...]
"""What a port reads: paths, from the outermost graph on."""


def changed_edges(before: TypedProgram, after: TypedProgram) -> list[Diagnostic]:
    """Return a warning for each node that both versions have and that reads something else now."""
    there = _places(paired(before, after))
    ours, theirs = _spots(before.root), _spots(after.root)
    found: dict[tuple[Span, str], Diagnostic] = {}
    for path, spot in ours.items():
        other = theirs.get(there.get(path, ""))
        if other is not None:
            for diagnostic in _changed(spot, other, there):
                found.setdefault((diagnostic.span, diagnostic.message), diagnostic)
    return list(found.values())


def _places(pairing: Pairing) -> dict[str, str]:
    """Return the path in the second version of everything that both have: of a group, where most of its nodes went."""
    votes: dict[str, Counter[str]] = {}
    for one, other in pairing.there.items():
        ours, theirs = pairing.before.nodes[one].path, pairing.after.nodes[other].path
        while ours and theirs:
            votes.setdefault(ours, Counter())[theirs] += 1
            ours, theirs = ours.rpartition(".")[0], theirs.rpartition(".")[0]
    return {path: found.most_common(1)[0][0] for path, found in votes.items()}


@dataclass(frozen=True, slots=True)
class _Region:
    """A graph as a part of the model."""

    prefix: str = ""
    shown: str = ""
    """The prefix with a star for each pass."""
    captured: Mapping[str, Read] = field(default_factory=dict)
    """Inputs that were read from a graph around it, by what they are there."""
    span: Span | None = None
    """Where the node is written that holds it."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """A node with the graph that it stands in."""

    node: TypedNode
    graph: TypedGraph
    region: _Region

    def edges(self) -> Iterator[tuple[str, Wire, Read]]:
        """Yield its ports, the first one called `in`, with what each reads; what is read inside of it is told there."""
        first = next(iter(regions(self.node)), None)
        wires = self.node.node.wires if isinstance(self.node, TypedBlock) else first.wires if first is not None else ()
        captured = {item.name for item in first.graph.graph.inputs if item.captured} if first is not None else set()
        for place, wire in enumerate(wire for wire in wires if wire.port not in captured):
            yield "in" if not place else wire.port, wire, _read(wire.refs, self.graph, self.region)

    def place(self, span: Span) -> Span:
        """Return a place in the author's own text: of a node that a block expands to, the block's."""
        return self.region.span if isinstance(span.source, Declaration) and self.region.span is not None else span


def _read(refs: tuple[Ref, ...], graph: TypedGraph, region: _Region) -> Read:
    found: list[str] = []
    for ref in refs:
        node = graph.by_name.get(ref.node)
        if node is None:
            handed = [item.name for item in graph.graph.inputs if not item.captured]
            own = GIVEN if region.prefix and handed[:1] == [ref.node] else ref.node
            found.extend(region.captured.get(ref.node, (f"{region.prefix}{own}",)))
            continue
        last = not isinstance(node, TypedRepeat) or ref.index in (None, len(node.passes) - 1)
        path = f"{region.prefix}{ref.node}" if last else f"{region.prefix}{ref.node}.{ref.index}"
        found.append(f"{path}.{ref.port}" if ref.port else path)
    return tuple(found)


def _spots(root: TypedGraph) -> dict[str, _Spot]:
    """Return every node at any depth, by its path."""
    found: dict[str, _Spot] = {}
    for visit in walk(root, every_pass):
        if visit.graph is not None:
            found[visit.path] = _Spot(visit.node, visit.graph, _region(visit, found))
    return found


def _region(visit: Visit, found: Mapping[str, _Spot]) -> _Region:
    """Return the graph that a node stands in, as a part of the model."""
    holder = visit.holder
    if holder is None or visit.region is None:
        return _Region()
    spots = (found.get(place.path) for place in holder.around)  # of what fills a slot, the block that has the slot
    around = next(spot for spot in spots if spot is not None)
    span = around.place(holder.node.node.name_span)
    name = holder.path.removeprefix(around.region.prefix)
    shown = f"{around.region.shown}{name}.{'' if visit.region.number is None else '*.'}"
    captured = {} if holder.graph is None else _captured(visit.region.wires, visit.region.graph, holder.graph, around.region)
    return _Region(visit.prefix, shown, captured, span)


def _captured(wires: tuple[Wire, ...], inside: TypedGraph, graph: TypedGraph, region: _Region) -> dict[str, Read]:
    names = {item.name for item in inside.graph.inputs if item.captured}
    return {wire.port: _read(wire.refs, graph, region) for wire in wires if wire.port in names}


def _changed(one: _Spot, other: _Spot, there: Mapping[str, str]) -> Iterator[Diagnostic]:
    ours = {port: (wire, read) for port, wire, read in one.edges()}
    for port, wire, read in other.edges():
        old, before = ours.get(port, (None, ()))
        if tuple(_image(path, there) for path in before) == read:
            continue
        name = f"{other.region.shown}{other.node.name}"
        at = "" if port == "in" else f" at {port}"
        was = f"read {_told(before, one.region, old)}" if old is not None else "read nothing"
        span = other.place(wire.spans[0] if wire.spans and not wire.implied else wire.span)
        place = one.place(old.span if old is not None else one.node.node.name_span)
        yield Diagnostic(
            CODE,
            f"`{name}` reads {_told(read, other.region, wire)}{at}, and {was} before",
            span,
            "warning",
            labels=(Label(place, was),),
            hint=f"{place.source.name}:{place.line} has it as it was",
        )


def _image(path: str, there: Mapping[str, str]) -> str:
    """Return the path in the second version, as far down as both have it."""
    steps, rest = path, ""
    while steps:
        if steps in there:
            return there[steps] + rest
        steps, _, step = steps.rpartition(".")
        rest = f".{step}{rest}"
    return path


def _told(read: Read, region: _Region, wire: Wire | None) -> str:
    """Return what is read, seen from the graph that reads it."""
    names = [f"`{path.removeprefix(region.prefix)}`" for path in read]
    return (", ".join(names) or "nothing") + " (implied)" * (wire is not None and wire.implied)
