"""What a drawing shows, without places: nodes, clusters, and links between nodes alone, as other programs take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from composer.draw.paths import title_of
from composer.draw.scene import About, Box, Frame, MergeCircle, Point, Scene, Style, WirePath

LinkEnd: TypeAlias = Box | MergeCircle
Way: TypeAlias = tuple[WirePath, ...]


@dataclass(frozen=True, slots=True)
class LinkNode:
    """A block, a merge, or an input or output that stands on the page by its name only."""

    key: str
    """Its path; where passes of a repeat differ and each kind is drawn, copies have numbers: `layers.ffn#2`."""
    about: About
    thing: LinkEnd | None
    lines: tuple[str, ...]
    """What is written in it: the title first."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A frame with what is in it."""

    frame: Frame
    nodes: tuple[LinkNode, ...]
    clusters: tuple[Cluster, ...]

    @property
    def header(self) -> str:
        """What is written at its upper border: how often it is passed through, and what it is."""
        said = [*([self.frame.pill.text] if self.frame.pill else []), *(text.text for text in self.frame.texts)]
        return " · ".join(said)


@dataclass(frozen=True, slots=True)
class Link:
    """A value from the node that makes it to one that reads it, through all borders."""

    source: str
    target: str
    port: str
    style: Style
    partial: bool
    wires: Way
    """The way that it goes, from border to border; of a value that is called by its name, the last piece alone."""


@dataclass(frozen=True)
class LinkGraph:
    """A drawing as nodes, clusters and links."""

    scene: Scene

    def holder(self, thing: LinkEnd | Frame) -> Frame | None:
        """The innermost frame around a thing; of frames, outer ones come first."""
        around = [frame for frame in self.scene.frames if frame is not thing and _inside(thing, frame)]
        return min(around, key=lambda frame: frame.width * frame.height, default=None)

    @cached_property
    def nodes(self) -> tuple[LinkNode, ...]:
        """All of them; those without a box last."""
        found: list[LinkNode] = []
        things: list[LinkEnd] = [*self.scene.boxes, *self.scene.merges]
        for thing in things:
            before = sum(node.about.path == thing.about.path for node in found)
            key = thing.about.path + (f"#{before + 1}" if before else "")
            lines = tuple(text.text for text in thing.texts) if isinstance(thing, Box) else (thing.sign,)
            found.append(LinkNode(key, thing.about, thing, lines))
        known = {node.about.path for node in found} | {frame.about.path for frame in self.scene.frames}
        named: dict[str, LinkNode] = {}
        for reference in self.scene.references:
            for path in (reference.source, reference.target):
                if path and not _nearest(path, known):
                    title = title_of(path)
                    named.setdefault(path, LinkNode(path, About(path, title), None, (title,)))
        return (*found, *named.values())

    @cached_property
    def top(self) -> tuple[tuple[LinkNode, ...], tuple[Cluster, ...]]:
        """What no frame holds."""
        return self._held(None)

    def _held(self, frame: Frame | None) -> tuple[tuple[LinkNode, ...], tuple[Cluster, ...]]:
        nodes = tuple(node for node in self.nodes if (self.holder(node.thing) if node.thing else None) is frame)
        inner = (one for one in self.scene.frames if self.holder(one) is frame)
        return nodes, tuple(Cluster(one, *self._held(one)) for one in inner)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Each value once for each port that reads it, in the order of the drawing; by a wire rather than by its name."""
        found: dict[tuple[str, str, str], Link] = {}
        for link in self.ways:
            key = (link.source, link.target, link.port)
            if key not in found or found[key].style == "far":
                found[key] = link
        return tuple(found.values())

    @cached_property
    def ways(self) -> tuple[Link, ...]:
        """All of them, also where several values of a closed repeat go from one block to another."""
        return tuple(self._links())

    def _links(self) -> Iterator[Link]:
        copies: dict[str, list[LinkNode]] = {}
        for node in self.nodes:
            copies.setdefault(node.about.path, []).append(node)
        drawn = {node.key for node in self.nodes}
        frames = {frame.about.path: frame for frame in self.scene.frames if frame.about.path}
        known = set(copies) | set(frames)

        def crossing(path: str, other: str, end: Point) -> str:
            """A border is passed inwards or outwards; of copies the nearest is meant; anything else is itself."""
            path = _nearest(path, known) or path
            if path in copies:
                return min(copies[path], key=lambda node: _distance(node.thing, end)).key
            return f"{path} {'inner' if self._holds(frames[path], other) else 'outer'}"

        ends: list[tuple[str, str, WirePath]] = []
        into: dict[str, list[tuple[str, WirePath]]] = {}
        for wire in self.scene.wires:
            if wire.source and wire.target:
                source = crossing(wire.source, wire.target, wire.points[0])
                target = crossing(wire.target, wire.source, wire.points[-1])
                if source != target:
                    ends.append((source, target, wire))
                    into.setdefault(target, []).append((source, wire))

        def ways(
            source: str, after: tuple[WirePath, ...], seen: frozenset[str] = frozenset()
        ) -> Iterator[tuple[str, tuple[WirePath, ...]]]:
            """What makes a value, behind all borders, and the way from there: from outside into a frame, or out of it."""
            if source in drawn:
                yield source, after
                return
            path, side = source.rsplit(" ", 1)
            for before, wire in into.get(f"{path} {'outer' if side == 'inner' else 'inner'}", ()):
                if before not in seen:
                    yield from ways(before, (wire, *after), seen | {before})

        for source, target, wire in ends:
            if target in drawn:
                for maker, way in ways(source, (wire,)):
                    yield Link(maker, target, wire.port, wire.style, wire.partial, way[-1:] if wire.style == "far" else way)

    def _holds(self, frame: Frame, path: str) -> bool:
        """Whether a frame holds what has a path: a block, or another frame."""
        things: list[LinkEnd | Frame] = [*self.scene.boxes, *self.scene.merges, *self.scene.frames]
        at = next((thing for thing in things if thing.about.path == path and thing is not frame), None)
        return at is not None and _inside(at, frame)


def _inside(thing: LinkEnd | Frame, frame: Frame) -> bool:
    area, around = thing.area, frame.area
    return around.left <= area.left and area.right <= around.right and around.top <= area.top and area.bottom <= around.bottom


def _distance(thing: LinkEnd | None, point: Point) -> float:
    if thing is None:
        return 0
    (x, y), area = point, thing.area
    return max(area.left - x, 0, x - area.right) + max(area.top - y, 0, y - area.bottom)


def _nearest(path: str, known: set[str]) -> str:
    """The longest beginning of a path that is known; nothing where none is."""
    steps = path.split(".")
    return next((".".join(steps[:end]) for end in range(len(steps), 0, -1) if ".".join(steps[:end]) in known), "")
