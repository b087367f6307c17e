"""The views of a page: which pictures of a model it has, and which of them opens from which."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from composer.draw.arrange.foot import UNSHADED, shows_whole_blocks
from composer.draw.arrange.shares import COLORINGS, WHOLE_BLOCKS, Coloring, NodeShares
from composer.draw.build.levels import LEVELS, Level
from composer.draw.links import LinkGraph
from composer.draw.paths import above, plain
from composer.draw.scene import Box, Reference, Scene, WirePath
from composer.draw.style.themes import ThemeName
from composer.graph.passes.roll_layers.roll_layers import RolledProgram

MAX_VIEWS = 16
"""Pictures in a page: what lies deeper than so many is not opened."""


class Picture(Protocol):
    """What a page shows."""

    @property
    def scene(self) -> Scene:
        """What is on it."""

    def svg(self) -> str:
        """Return its text."""


DrawnPicture = TypeVar("DrawnPicture", covariant=True)


class Redraw(Protocol[DrawnPicture]):
    """Draws a model again."""

    def __call__(self, level: Level, opened: Sequence[str], color: Coloring | None = None) -> DrawnPicture:
        """Return its drawing at a level with some nodes opened, in the same colors or in others."""


class Openable(Picture, Protocol):
    """A picture of a model that can be drawn at other levels."""

    @property
    def model(self) -> RolledProgram:
        """What it shows."""

    @property
    def level(self) -> Level:
        """How much of it."""

    @property
    def theme(self) -> ThemeName:
        """How it looks."""

    @property
    def color(self) -> Coloring:
        """What its colors tell."""

    @property
    def highlight(self) -> tuple[str, ...]:
        """Paths of what stays bright."""

    @property
    def closed(self) -> tuple[str, ...]:
        """Paths of what its level shows from inside and it does not."""

    @property
    def at(self) -> Redraw[Openable]:
        """The same model at another level with other nodes opened."""


@dataclass(slots=True)
class View:
    """One picture of the page: a level with some nodes opened."""

    level: Level
    opened: tuple[str, ...]
    figure: Picture
    opens: dict[str, str] = field(default_factory=dict)
    """Path of a block to the view in which it is open."""
    closes: dict[str, str] = field(default_factory=dict)
    """The same for what is open here."""
    copied: str = ""
    """The SVG that is copied, where it is not the one that is shown."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else the script gets to know."""

    @property
    def key(self) -> str:
        """What the script calls it."""
        return "+".join((self.level, *self.opened))


def all_views(figure: Openable) -> list[View]:
    """Return the three levels, and what opens from them; each picture once."""
    drawn = {level: figure.at(level, (), "kind") for level in LEVELS}
    found: dict[str, View] = {level: View(level, (), one) for level, one in drawn.items()}
    closed = {path for one in drawn.values() for path in one.closed}
    whole = {path for box in drawn["full"].scene.boxes for path in above(box.about.path)}
    waiting = [found["block"], found["overview"], found["full"]]
    while waiting:
        view = waiting.pop(0)
        for path in openable(view.figure.scene, whole, closed):
            whole_path = plain(path)  # all passes of a repeat open together
            around = [one for one in view.opened if whole_path.startswith(f"{one}.")]
            opened = (*around, whole_path)
            if (key := "+".join((view.level, *opened))) in found:
                view.opens[path] = key
                continue
            if len(found) >= MAX_VIEWS and (view.opened or view.level != "overview"):
                continue
            deeper = View(view.level, opened, drawn[view.level].at(view.level, opened, "kind"))
            if {path, whole_path} & {box.about.path for box in deeper.figure.scene.boxes}:
                continue  # it has nothing inside after all
            if frames(deeper.figure.scene) == frames(found["block"].figure.scene) and view.level == "overview":
                view.opens[path] = "block"
                continue
            if len(found) < MAX_VIEWS:
                found[key] = deeper
                waiting.append(deeper)
                view.opens[path] = key
    shares = NodeShares(figure.at(figure.level, ()).model)
    for view in found.values():
        view.closes |= closing(view, found)
        view.more = {"shades": dict(shades(view.figure.scene, shares))}
        if figure.color != "kind":
            view.copied = figure.at(view.level, view.opened).svg()
    return list(found.values())


def shades(scene: Scene, shares: NodeShares) -> Iterator[tuple[Coloring, str]]:
    """Yield for each coloring how dark every box is, a digit for each; a box that has no shade has a blank."""
    whole = shows_whole_blocks(scene, shares)
    for coloring in COLORINGS:
        if coloring == "kind" or (coloring in WHOLE_BLOCKS and not whole):
            continue
        yield coloring, "".join(" " if box.hue in UNSHADED else str(shares.step(box.about, coloring)) for box in scene.boxes)


def closing(view: View, found: dict[str, View]) -> Iterator[tuple[str, str]]:
    """Yield the paths of what is open in a view, with the view in which it is not."""
    if view.level == "overview":
        for path in view.opened:
            rest = tuple(one for one in view.opened if one != path and not one.startswith(f"{path}."))
            yield path, "+".join(("overview", *rest))
        return
    if view.opened:
        yield view.opened[-1], view.level
    upper = "block" if view.level == "full" else "overview"
    shown = {plain(box.about.path) for box in found[upper].figure.scene.boxes}
    for box in view.figure.scene.boxes:
        for path in above(box.about.path):
            if path in shown and path != box.about.path and path not in view.opened:
                yield path, upper


def openable(scene: Scene, whole: set[str], closed: Collection[str] = ()) -> list[str]:
    """Return the blocks of a picture that have something inside, those first that are closed to fit a page."""
    inner = {path.rpartition(".")[0] for path in whole}.union(closed)
    found = (path for path in dict.fromkeys(box.about.path for box in scene.boxes) if plain(path) in inner)
    return sorted(found, key=lambda path: plain(path) not in closed)


def frames(scene: Scene) -> set[str]:
    """Return what is drawn from inside."""
    return {frame.about.path for frame in scene.frames}


def unsaid(wire: WirePath, graph: LinkGraph, unwritten: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a wire is there by the order of the nodes alone; one that leaves a border is, where all that
    read it do so.
    """
    if not wire.source.startswith(f"{wire.target}."):
        return wire.port in unwritten.get(wire.target, ())
    through = [link for link in graph.links if wire in link.wires[:-1]]
    return bool(through) and all(link.port in unwritten.get(link.target, ()) for link in through)


def view_data(view: View, unwritten: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a picture, and what the script has to know of it: which wires each link goes through, and which wires the
    recipe does not write.
    """
    scene = view.figure.scene
    graph = LinkGraph(scene)
    numbers = {id(wire): number for number, wire in enumerate(scene.wires)}
    merges_first = sorted(graph.nodes, key=lambda node: (isinstance(node.thing, Reference), isinstance(node.thing, Box)))
    names = {node.key: number for number, node in enumerate(merges_first)}
    links = [[names[one.source], names[one.target], [numbers[id(wire)] for wire in one.wires]] for one in graph.links]
    return {
        "picture": view.figure.svg(),
        "copied": view.copied,
        "level": view.level,
        "named": [node.about.path for node in merges_first if isinstance(node.thing, Reference)],
        "links": links,
        "implied": [number for number, wire in enumerate(scene.wires) if unsaid(wire, graph, unwritten)],
        "opened": view.opened,
        "opens": view.opens,
        "closes": view.closes,
        **view.more,
    }
