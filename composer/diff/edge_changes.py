"""Which edges of a recipe differ from those of an earlier version, with the lines in both."""

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
INPUT = "input"
Read = tuple[str, ...]
"""The paths, from the outermost graph on, of what a port reads."""


def changed_edges(before: TypedProgram, after: TypedProgram) -> list[Diagnostic]:
    """Return a warning for each node that both versions have and that reads something else now."""
    partners = _places(paired(before, after))
    ours, theirs = _spots(before.root), _spots(after.root)
    found: dict[tuple[Span, str], Diagnostic] = {}
    for path, spot in ours.items():
        other = theirs.get(partners.get(path, ""))
        if other is not None:
            for diagnostic in _changed(spot, other, partners):
                found.setdefault((diagnostic.span, diagnostic.message), diagnostic)
    return list(found.values())


def _places(pairing: Pairing) -> dict[str, str]:
    """Return the path in the second version of everything that both have; for a group, of the one that has most of its nodes."""
    votes: dict[str, Counter[str]] = {}
    for one, other in pairing.forward.items():
        ours, theirs = pairing.before.nodes[one].path, pairing.after.nodes[other].path
        while ours and theirs:
            votes.setdefault(ours, Counter())[theirs] += 1
            ours, theirs = ours.rpartition(".")[0], theirs.rpartition(".")[0]
    return {path: found.most_common(1)[0][0] for path, found in votes.items()}


@dataclass(frozen=True, slots=True)
class _Region:
    """A graph with its place in the model."""

    prefix: str = ""
    shown: str = ""
    """The prefix with a star for each pass."""
    captured: Mapping[str, Read] = field(default_factory=dict)
    """For each input that is captured from a graph around, the paths there."""
    span: Span | None = None
    """The span of the node that contains it."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A node with the graph that contains it."""

    node: TypedNode
    graph: TypedGraph
    region: _Region

    def edges(self) -> Iterator[tuple[str, Wire, Read]]:
        """Yield its ports, the first one as `in`, with what each reads; edges inside are those of the nodes there."""
        first = next(iter(regions(self.node)), None)
        wires = self.node.node.wires if isinstance(self.node, TypedBlock) else first.wires if first is not None else ()
        captured = {item.name for item in first.graph.graph.inputs if item.captured} if first is not None else set()
        for place, wire in enumerate(wire for wire in wires if wire.port not in captured):
            yield "in" if not place else wire.port, wire, _read(wire.refs, self.graph, self.region)

    def place(self, span: Span) -> Span:
        """Return the span in the recipe itself; of a node that a block expands to, that of the block."""
        return self.region.span if isinstance(span.source, Declaration) and self.region.span is not None else span


def _read(refs: tuple[Ref, ...], graph: TypedGraph, region: _Region) -> Read:
    found: list[str] = []
    for ref in refs:
        node = graph.by_name.get(ref.node)
        if node is None:
            handed = [item.name for item in graph.graph.inputs if not item.captured]
            own = INPUT if region.prefix and handed[:1] == [ref.node] else ref.node
            found.extend(region.captured.get(ref.node, (f"{region.prefix}{own}",)))
            continue
        last = not isinstance(node, TypedRepeat) or ref.index in (None, len(node.passes) - 1)
        path = f"{region.prefix}{ref.node}" if last else f"{region.prefix}{ref.node}.{ref.index}"
        found.append(f"{path}.{ref.port}" if ref.port else path)
    return tuple(found)


def _spots(root: TypedGraph) -> dict[str, _Placed]:
    """Return every node at any depth, by its path."""
    found: dict[str, _Placed] = {}
    for visit in walk(root, every_pass):
        if visit.graph is not None:
            found[visit.path] = _Placed(visit.node, visit.graph, _region(visit, found))
    return found


def _region(visit: Visit, found: Mapping[str, _Placed]) -> _Region:
    """Return the graph that contains a node."""
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


def _changed(one: _Placed, other: _Placed, partners: Mapping[str, str]) -> Iterator[Diagnostic]:
    ours = {port: (wire, read) for port, wire, read in one.edges()}
    for port, wire, read in other.edges():
        old, before = ours.get(port, (None, ()))
        if tuple(_image(path, partners) for path in before) == read:
            continue
        name = f"{other.region.shown}{other.node.name}"
        at = "" if port == "in" else f" at {port}"
        was = f"read {_shown(before, one.region, old)}" if old is not None else "read nothing"
        span = other.place(wire.spans[0] if wire.spans and not wire.implied else wire.span)
        place = one.place(old.span if old is not None else one.node.node.name_span)
        yield Diagnostic(
            CODE,
            f"`{name}` reads {_shown(read, other.region, wire)}{at}, and {was} before",
            span,
            "warning",
            labels=(Label(place, was),),
            hint=f"{place.source.name}:{place.line} has it as it was",
        )


def _image(path: str, partners: Mapping[str, str]) -> str:
    """Return the path in the second version, as far down as both have it."""
    steps, rest = path, ""
    while steps:
        if steps in partners:
            return partners[steps] + rest
        steps, _, step = steps.rpartition(".")
        rest = f".{step}{rest}"
    return path


def _shown(read: Read, region: _Region, wire: Wire | None) -> str:
    """Return what is read, by paths below the graph that reads it."""
    names = [f"`{path.removeprefix(region.prefix)}`" for path in read]
    return (", ".join(names) or "nothing") + " (implied)" * (wire is not None and wire.implied)
