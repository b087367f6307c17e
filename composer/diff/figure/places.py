"""Which elements of the drawings of two models show each of their changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from composer.diff.changes import (
    Added,
    Altered,
    Change,
    DifferenceData,
    LearnedChange,
    Nodes,
    PortChange,
    Removed,
    Replaced,
    Rewired,
    Stated,
    Tied,
    nodes_of,
)
from composer.diff.find_changes import paired
from composer.diff.flat_graph import FlatModel
from composer.draw.figure import Figure
from composer.draw.paths import belongs, lies_in, output_path, plain
from composer.draw.scene import Box, Frame, Happened, MergeCircle, Reference, Scene, WirePath
from composer.graph.passes.roll_layers.rolled_names import RolledNames
from composer.memo import lazy

DrawnThing: TypeAlias = Box | MergeCircle | Frame | Reference


@dataclass(frozen=True, slots=True)
class PassCount:
    """The number of passes that is written at the frame of a repeat."""

    frame: Frame


Spot: TypeAlias = DrawnThing | WirePath | PassCount
HAPPENED: dict[type[Change], Happened] = {
    Added: "added",
    Removed: "removed",
    Replaced: "replaced",
    Altered: "altered",
    Rewired: "rewired",
    Tied: "shared",
    LearnedChange: "altered",
    Stated: "altered",
}
"""The kinds of changes that a drawing distinguishes."""


@dataclass(frozen=True)
class DrawnModel:
    """One of the models, with its drawing."""

    scene: Scene
    model: FlatModel
    names: RolledNames

    def at(self, path: str) -> str:
        """Return the path of a node in the drawing."""
        return plain(self.names.called(path))

    def drawn(self, nodes: Nodes) -> Nodes:
        """Return nodes by their paths in the drawing."""
        return replace(nodes, paths=tuple(map(self.at, nodes.paths)))

    def passes_or_nodes(self, nodes: Nodes) -> Nodes:
        """Return nodes by their paths in the drawing; layers that are some of the passes of a repeat there, as passes."""
        paths = dict.fromkeys(map(self.names.called, nodes.paths))
        passes = dict.fromkeys(map(_pass_of, paths))
        repeats = {one.rpartition(".")[0] for one in passes}
        others = [path for path in self.called if belongs(path, repeats) and not belongs(path, paths)]
        if all(passes) and others and not any(belongs(path, passes) for path in others):
            return replace(nodes, kind="pass", paths=tuple(map(plain, passes)))
        return self.drawn(nodes)

    @lazy
    def called(self) -> tuple[str, ...]:
        """The paths of the blocks in the drawing, with the passes."""
        return tuple(self.names.called(node.path) for node in self.model.nodes)

    @lazy
    def things(self) -> tuple[DrawnThing, ...]:
        """The elements that stand for nodes."""
        return (*self.scene.frames, *self.scene.boxes, *self.scene.merges, *self.scene.references)

    @lazy
    def sources(self) -> dict[str, str]:
        """For each block, the path of the one whose output is its first input; both without passes."""
        nodes = self.model.nodes
        flows = ((node.path, node.primary) for node in nodes)
        return {self.at(path): self.at(nodes[one.node].path) for path, one in reversed(list(flows)) if one and one.node >= 0}

    def nodes(self, path: str, *, whole: bool = False) -> list[DrawnThing]:
        """Return the elements that show a node: its own, or those of its parts, or the box around it; `whole` with all inside.

        A node that is not drawn, such as a dropout, is shown where its input comes from."""
        path = plain(path)
        if found := self._drawn(path, whole):
            return found
        above = path.rpartition(".")[0]
        while above:
            own = self._own(above)
            if any(isinstance(one, Box | MergeCircle) for one in own):
                return own
            if own:
                break
            above = above.rpartition(".")[0]
        own = self._own(above)
        source = self.sources.get(path, "")
        if source and (not above or source.startswith(f"{above}.")):
            return self._own(source) or self.nodes(source) or own
        return own

    def _own(self, path: str) -> list[DrawnThing]:
        return [one for one in self.things if path and (path == one.about.path or path in one.about.covers)]

    def _drawn(self, path: str, whole: bool) -> list[DrawnThing]:
        own = self._own(path)
        if any(isinstance(one, Frame) for one in own):
            return [one for one in own if isinstance(one, Frame)]
        below = [one for one in self.things if one.about.path.startswith(f"{path}.")]
        around = [f"{one.about.path}." for one in below if isinstance(one, Frame)]
        below = [one for one in below if not one.about.path.startswith(tuple(around))]
        if not own:
            return below
        if whole:
            return [*own, *below]
        inside: list[DrawnThing] = [one for one in below if isinstance(one, Box)]
        return inside if inside and all(isinstance(one, MergeCircle) for one in own) else own

    def fields(self, path: str, names: Iterable[str]) -> list[DrawnThing]:
        """Return the elements that show fields of a node: the box of a field that has one, otherwise those of the node."""
        found: list[DrawnThing] = []
        for name in names:
            field = re.compile(rf"{re.escape(plain(path))}\.(\w+_)?{re.escape(name.partition('.')[0])}")  # `q_positions`, too
            part = [one for one in self.things if field.fullmatch(one.about.path)]
            found += [one for one in part or self.nodes(path) if one not in found]
        return found

    def reads(self, path: str, port: str, sources: Sequence[str]) -> Sequence[Spot]:
        """Return the wires and references at a port that come from some sources; all at the port if none does, and the elements
        of the node if none is drawn."""
        path = plain(path)
        wires: list[Spot] = [one for one in self.scene.wires if one.target == path and one.port in ("", port)]
        wires += [one for one in self.scene.references if one.target == path and one.port in ("", port)]
        meant = [self.at(named(one)) for one in sources]

        def from_(wire: Spot, *, around: bool) -> bool:
            source = wire.source if isinstance(wire, WirePath | Reference) else ""
            return any(lies_in(one, source) if around else one == source for one in meant)

        exact = [one for one in wires if from_(one, around=False)]
        return exact or [one for one in wires if from_(one, around=True)] or wires or self.nodes(path)

    def stated(self, what: str, value: str) -> list[DrawnThing]:
        """Return the elements that show an output or a loss: its own, or those of the node that computes it."""
        kind, _, name = what.removeprefix("name of the ").partition(" ")
        if kind not in ("output", "loss"):
            return []
        path = output_path(name or value) if kind == "output" else f"losses.{name or value}"
        return self._own(path) or (self.nodes(self.at(named(value))) if value != "none" else [])


def _pass_of(path: str) -> str:
    """Return the path of the innermost pass that a path leads through; none outside of repeats."""
    found = re.match(r"(.+\.\d+)(?:\.|$)", path)
    return found[1] if found else ""


def named(source: str) -> str:
    """Return the path without passes of a source or a parameter as changes name it: `layers.ffn.add` for `layers.(*-1).ffn.add`;
    the first for `h0.norm … h11.norm`, since all of them are drawn as one."""
    first = re.split(" … | / ", source)[0]
    return re.sub(r"\.(\*|\(\*-1\)|\d+)(?=\.|$)", "", first)


@dataclass(frozen=True, slots=True)
class FoundPlaces:
    """A change with the elements that show it in each of the drawings."""

    change: Change
    before: tuple[Spot, ...] | None
    """Empty for a change of the model as a whole; None if the change is in the other drawing only."""
    after: tuple[Spot, ...] | None

    @property
    def spots(self) -> tuple[tuple[Spot, ...] | None, tuple[Spot, ...] | None]:
        """The elements of the first and of the second drawing."""
        return self.before, self.after

    @property
    def happened(self) -> Happened:
        """The kind of the change in a drawing."""
        return HAPPENED[type(self.change)]

    def node(self, spot: Spot, side: int) -> str | None:
        """Return which node of the change an element shows, itself or a part of it; None for an element around the node."""
        nodes, path = nodes_of(self.change)[side], path_of(spot)
        names = map(plain, nodes.paths) if nodes is not None else ()
        return next((name for name in names if lies_in(path, name)), None)

    def weight(self, spot: Spot, side: int) -> int:
        """Return how many nodes of the change an element stands for; 0 if the change is inside of it."""
        nodes = nodes_of(self.change)[side]
        return len(nodes.paths) if nodes is not None and self.node(spot, side) is not None else 0

    def ring(self, spot: Spot, side: int) -> Happened:
        """Return the kind of the ring around an element: `altered` for one that only contains the change."""
        shown = self.node(spot, side) is not None or isinstance(spot, PassCount) or self.happened == "shared"
        return self.happened if shown else "altered"


def path_of(spot: Spot) -> str:
    """Return the path of an element; of a wire, the path of its target."""
    match spot:
        case WirePath(target=target):
            return target
        case PassCount(frame=frame):
            return frame.about.path
    return spot.about.path


def places(difference: DifferenceData, pictures: Sequence[Figure]) -> Iterator[FoundPlaces]:
    """Yield every change with the elements that show it."""
    pairing = paired(*difference.models)
    flat = pairing.before, pairing.after
    ours, theirs = (DrawnModel(one.scene, model, one.model.names) for one, model in zip(pictures, flat, strict=True))
    partners: dict[str, list[str]] = {}
    for one, other in pairing.forward.items():
        partners.setdefault(ours.at(pairing.before.nodes[one].path), []).append(theirs.at(pairing.after.nodes[other].path))
    for written in difference.changes:
        change = as_drawn(written, ours, theirs)
        match change:
            case Added(after=nodes):
                yield FoundPlaces(change, None, _whole(theirs, nodes))
            case Removed(before=nodes):
                yield FoundPlaces(change, _whole(ours, nodes), None)
            case Replaced(before=before, after=after):
                yield FoundPlaces(change, _whole(ours, before), _whole(theirs, after))
            case Altered(before=before, after=after, fields=fields):
                names = [one.name for one in fields]
                shown = (_once(side.fields(path, names) for path in _plain(at)) for side, at in ((ours, before), (theirs, after)))
                yield FoundPlaces(change, *shown)
            case Rewired(before=before, after=after, ports=ports):
                yield FoundPlaces(change, _reads(ours, before, ports, "before"), _reads(theirs, after, ports, "after"))
            case Tied(parameters=parameters) | LearnedChange(parameters=parameters):
                paths = list(dict.fromkeys(_owner(name, partners, ours) for name in parameters))
                right = [path for one in paths for path in dict.fromkeys(partners[one])]
                yield FoundPlaces(change, _once(map(ours.nodes, paths)), _once(map(theirs.nodes, right)))
            case Stated(what=what, before=value, after=its):
                yield FoundPlaces(change, tuple(ours.stated(what, value)), tuple(theirs.stated(what, its)))


def as_drawn(change: Change, ours: DrawnModel, theirs: DrawnModel) -> Change:
    """Return a change whose nodes have the paths of the drawings."""
    match change:
        case Added(after=nodes):
            return Added(theirs.passes_or_nodes(nodes))
        case Removed(before=nodes):
            return Removed(ours.passes_or_nodes(nodes))
        case Replaced() | Altered() | Rewired():
            return replace(change, before=ours.drawn(change.before), after=theirs.drawn(change.after))
        case Tied() | LearnedChange() | Stated():
            return change


def _plain(nodes: Nodes) -> list[str]:
    return list(dict.fromkeys(map(plain, nodes.paths)))


def _once(found: Iterable[Sequence[Spot]]) -> tuple[Spot, ...]:
    return tuple(dict.fromkeys(spot for spots in found for spot in spots))


def _whole(side: DrawnModel, nodes: Nodes) -> tuple[Spot, ...]:
    if nodes.kind == "pass":
        found = _once(side.nodes(path) for path in _plain(nodes))
        return tuple(PassCount(one) if isinstance(one, Frame) and one.pill else one for one in found)
    return _once(side.nodes(path, whole=True) for path in _plain(nodes))


def _reads(side: DrawnModel, nodes: Nodes, ports: Sequence[PortChange], when: str) -> tuple[Spot, ...]:
    return _once(side.reads(path, port.port, getattr(port, when)) for path in _plain(nodes) for port in ports)


def _owner(parameter: str, partners: dict[str, list[str]], side: DrawnModel) -> str:
    """Return the node that a parameter belongs to, `layers.*.attn.body.out.weight` to `layers.attn.body`."""
    path = side.at(named(parameter))
    while path not in partners:
        path = path.rpartition(".")[0]
    return path
