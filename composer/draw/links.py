"""What a drawing shows, without places: nodes, clusters, and links between nodes alone, as other programs take them.

They are read from the scene, since layout decides what a diagram leaves open: how many experts are drawn, which values go by
their names, which words fit into a box. Nothing is guessed from places: layout says which frame a thing stands in, on which side
of a border a wire ends, and which kind of pass both belong to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from composer.draw.about import About
from composer.draw.paths import above, lies_in, title_of
from composer.draw.scene import Box, Frame, MergeCircle, Reference, Scene, Style, WirePath
from composer.memo import lazy

LinkEnd: TypeAlias = Box | MergeCircle | Reference
Way: TypeAlias = tuple[WirePath, ...]


@dataclass(frozen=True, slots=True)
class LinkNode:
    """A block, a merge, or an input or output that stands on the page by its name only."""

    key: str
    """Its path; where passes of a repeat differ and each kind is drawn, copies have numbers: `layers.ffn#2`."""
    about: About
    thing: LinkEnd
    lines: tuple[str, ...]
    """What is written in it: the title first."""

    @property
    def frame(self) -> str:
        """Key of the innermost frame around it; a name stands in none."""
        return "" if isinstance(self.thing, Reference) else self.thing.frame

    @property
    def kind(self) -> str:
        """Which kind of pass it belongs to, where several are drawn."""
        return "" if isinstance(self.thing, Reference) else self.thing.kind


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


@dataclass(frozen=True, slots=True)
class Border:
    """A side of a frame's border."""

    key: str
    """Of the frame."""
    inner: bool
    passage: str = ""
    """Which of several values goes through it."""

    @property
    def other_side(self) -> Border:
        """From where a wire comes to it."""
        return Border(self.key, not self.inner, self.passage)


@dataclass(frozen=True)
class LinkGraph:
    """A drawing as nodes, clusters and links."""

    scene: Scene

    @lazy
    def nodes(self) -> tuple[LinkNode, ...]:
        """All of them; those without a box last."""
        found: list[LinkNode] = []
        things: list[Box | MergeCircle] = [*self.scene.boxes, *self.scene.merges]
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
                    named.setdefault(path, LinkNode(path, About(path, title), reference, (title,)))
        return (*found, *named.values())

    @lazy
    def top(self) -> tuple[tuple[LinkNode, ...], tuple[Cluster, ...]]:
        """What no frame holds."""
        return self._held("")

    def _held(self, key: str) -> tuple[tuple[LinkNode, ...], tuple[Cluster, ...]]:
        nodes = tuple(node for node in self.nodes if node.frame == key)
        return nodes, tuple(Cluster(one, *self._held(one.key)) for one in self.scene.frames if one.frame == key)

    def number(self, frame: Frame) -> int:
        """Return which of the frames one is."""
        return next(number for number, one in enumerate(self.scene.frames) if one is frame)

    @lazy
    def links(self) -> tuple[Link, ...]:
        """Each value once for each port that reads it, in the order of the drawing; by a wire rather than by its name."""
        found: dict[tuple[str, str, str], Link] = {}
        for link in self.ways:
            key = (link.source, link.target, link.port)
            if key not in found or found[key].style == "far":
                found[key] = link
        return tuple(found.values())

    @lazy
    def ways(self) -> tuple[Link, ...]:
        """All of them, also where several values of a closed repeat go from one block to another."""
        return tuple(self._links())

    def _links(self) -> Iterator[Link]:
        nodes: dict[str, dict[str, str]] = {}
        """The keys of the nodes of each path, by the kind of pass."""
        for node in self.nodes:
            nodes.setdefault(node.about.path, {})[node.kind] = node.key
        frames: dict[str, dict[str, str]] = {}
        for frame in self.scene.frames:
            if path := frame.about.path:
                frames.setdefault(path, {})[frame.key.removeprefix(path)] = frame.key
        known = {*nodes, *frames}

        def crossing(path: str, other: str, kind: str, inside: bool, passage: str) -> str | Border:
            """Return the key of a wire's end: a border is passed inwards or outwards; anything else is itself."""
            drawn_path = _nearest(path, known) or path
            if drawn_path in nodes:
                return _of_kind(nodes[drawn_path], kind)
            frame_key = _of_kind(frames.get(drawn_path, {"": drawn_path}), kind)
            return Border(frame_key, inside or (drawn_path != path and lies_in(other, drawn_path)), passage)

        ends: list[tuple[str | Border, str | Border, WirePath]] = []
        into: dict[str | Border, list[tuple[str | Border, WirePath]]] = {}
        for wire in self.scene.wires:
            if wire.source and wire.target:
                start, end = (wire.passage, "") if wire.from_inside else ("", wire.passage)
                source = crossing(wire.source, wire.target, wire.kind, wire.from_inside, start)
                target = crossing(wire.target, wire.source, wire.kind, wire.to_inside, end)
                if source != target:
                    ends.append((source, target, wire))
                    into.setdefault(target, []).append((source, wire))

        def ways(
            source: str | Border, after: tuple[WirePath, ...], seen: frozenset[str | Border] = frozenset()
        ) -> Iterator[tuple[str, tuple[WirePath, ...]]]:
            """Yield what makes a value, behind all borders, and the way from there: from outside into a frame, or out of it."""
            if isinstance(source, str):
                yield source, after
                return
            for before, wire in into.get(source.other_side, ()):
                if before not in seen:
                    yield from ways(before, (wire, *after), seen | {before})

        for source, target, wire in ends:
            if isinstance(target, str):
                for maker, way in ways(source, (wire,)):
                    yield Link(maker, target, wire.port, wire.style, wire.partial, way[-1:] if wire.style == "far" else way)


def _of_kind(keys: Mapping[str, str], kind: str) -> str:
    """Return the key for what belongs to a kind of pass, or to the nearest one around it; else the first."""
    numbers = kind.split("#")[1:]
    around = ("".join(f"#{number}" for number in numbers[start:]) for start in range(len(numbers) + 1))
    return next((keys[one] for one in around if one in keys), next(iter(keys.values())))


def _nearest(path: str, known: set[str]) -> str:
    """Return the longest beginning of a path that is known; nothing where none is."""
    return next((one for one in reversed(above(path)) if one in known), "")
