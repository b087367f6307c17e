"""A drawing as one HTML page without a network: every level, what is in each block, and the recipe beside it."""

from __future__ import annotations

import gzip
import hashlib
import re
from base64 import b64encode
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from composer.draw.arrange.foot import KINDS, UNSHADED, shows_whole_blocks
from composer.draw.arrange.shares import COLORINGS, COUNTED, STEPS, TRAINED, WHOLE_BLOCKS, Coloring, NodeShares
from composer.draw.build.levels import LEVELS, Level
from composer.draw.build.source_files import File, elsewhere, files, source
from composer.draw.export.node_facts import facts, implied
from composer.draw.export.paint import BORDERS, COVERS, SHADED
from composer.draw.links import LinkGraph
from composer.draw.paths import above, plain
from composer.draw.scene import Box, Reference, Scene, WirePath
from composer.draw.style.palette import DARK, LIGHT
from composer.draw.style.themes import ThemeName, rules
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.printable import json_text, markup

PAGE_FILES = Path(__file__).parent / "web"
SCRIPTS = ("page.js", "size.js", "look.js")
MAX_VIEWS = 16
"""Pictures in a page: what lies deeper than so many is not opened."""


class Picture(Protocol):
    """What a page shows."""

    @property
    def scene(self) -> Scene:
        """What is on it."""

    def svg(self) -> str:
        """Return its text."""


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
    def at(self) -> RedrawPicture:
        """The same model at another level with other nodes opened."""


class RedrawPicture(Protocol):
    """Draws a model again."""

    def __call__(self, level: Level, opened: Sequence[str], color: Coloring | None = None) -> Openable:
        """Return its drawing at a level with some nodes opened, in the same colors or in others."""


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


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of a page."""

    views: Sequence[View]
    first: Level
    """What is shown at first."""
    theme: ThemeName
    unwritten: Mapping[str, Sequence[str]]
    """Ports of blocks for which the recipe writes nothing, by the blocks' paths."""


def html(figure: Openable) -> str:
    """Return the page; the figure's own level is what it shows first."""
    views = all_views(figure)
    inputs = figure.model.program.untyped.inputs
    data = {
        "sides": [""],
        "direction": figure.scene.direction,
        "facts": facts(figure.model),
        "color": figure.color,
        "highlight": [*dict.fromkeys(map(plain, figure.highlight))],
        "optional": [one.name for one in inputs if one.optional or one.default],
        "legend": {
            "kind": list(KINDS.items()),
            "trainable": list(TRAINED.items()),
            "share": [said for _, said in STEPS],
            "of": COUNTED,
        },
    }
    pictures = Pictures(views, figure.level, figure.theme, implied(figure.model))
    return document(figure.scene.name, pictures, {"": figure.model}, data, style=shade_rules())


def document(
    title: str,
    pictures: Pictures,
    models: Mapping[str, RolledProgram],
    data: Mapping[str, Any],
    *,
    changed: Mapping[File, Container[int]] = MappingProxyType({}),
    panel: str = "",
    hint: str = "",
    style: str = "",
    scripts: Sequence[str] = SCRIPTS,
) -> str:
    """Return a page of some pictures, with the files in which their models are written beside them.

    Args:
        title: the title of the page.
        pictures: what it shows.
        models: what the pictures show, by what its paths begin with.
        data: what else the script needs.
        changed: lines of files that are highlighted.
        panel: HTML above what is said of the chosen block.
        hint: a sentence more about how to use the page.
        style: CSS after that of the page.
        scripts: the files of the page's script.
    """
    sources = files(list(models.values()))
    where = [(side, *one) for side, model in models.items() for one in elsewhere(model).items()]
    views, first = pictures.views, pictures.first
    data = {
        **data,
        "files": [one.name for one in sources],
        "own": [sources.index(source(model.program)) for model in models.values()],
        "written": {side + path: [sources.index(file), first, last] for side, path, (file, first, last) in where},
        "first": first,
        "views": {view.key: view_data(view, pictures.unwritten) for view in views},
    }
    script = "".join(map(page_file, scripts)) + "start();"
    parts = {
        "policy": policy(script),
        "title": markup(title),
        "style": page_file("page.css") + f"@media screen{{html[data-theme=dark] #stage{{{rules(DARK)}}}}}" + style,
        "levels": "".join(f'<button type="button" data-level="{level}">{level.capitalize()}</button>' for level in LEVELS),
        "panel": panel,
        "hint": hint,
        "recipes": "".join(recipe(one, changed.get(one, ())) for one in sources),
        "picture": next(view for view in views if view.key == first).figure.svg(),
        "data": as_json({"packed": compressed(data)}),
        "script": script,
        "theme": "dark" if pictures.theme == "dark" else "",
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page_file("page.html"))


def page_file(name: str) -> str:
    """Return a file of the page."""
    return (PAGE_FILES / name).read_text(encoding="utf-8")


def policy(script: str) -> str:
    """Return what a page may do: run its own script, and load nothing but pictures that it made itself, to save them as PNG.
    What a recipe says is only text; this holds even if it became markup.
    """
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = ("default-src 'none'", f"script-src 'sha256-{digest}'", "style-src 'unsafe-inline'", "img-src blob:")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))


def recipe(file: File, changed: Container[int]) -> str:
    """Return a file as a list of its lines."""
    name, lines = markup(file.name), file.text.split("\n")
    items = "".join(
        f"<li{' class=changed' * (number in changed)}>{markup(line) or ' '}</li>"
        for number, line in enumerate(lines[: len(lines) - (lines[-1] == "")], 1)
    )
    return f'<h2>{name}</h2><ol class="recipe" tabindex="0" aria-label="{name}">{items}</ol>'


def as_json(data: Any) -> str:
    """Return JSON that a script may hold: it neither ends there nor turns into a comment."""
    return re.sub("<(?=[!/s])", r"\\u003c", json_text(data, separators=(",", ":")), flags=re.IGNORECASE)


def compressed(data: Any) -> str:
    """Return data as JSON in gzip in base64, which `DecompressionStream` reads: pictures of a model have most text in common."""
    return b64encode(gzip.compress(json_text(data).encode(), mtime=0)).decode()


def all_views(figure: Openable) -> list[View]:
    """Return the three levels, and what opens from them; each picture once."""
    found: dict[str, View] = {level: View(level, (), figure.at(level, (), "kind")) for level in LEVELS}
    whole = {path for box in found["full"].figure.scene.boxes for path in above(box.about.path)}
    waiting = [found["block"], found["overview"]]
    while waiting:
        view = waiting.pop(0)
        for path in openable(view.figure.scene, whole):
            around = [one for one in view.opened if path.startswith(f"{one}.")]
            opened = (*around, path)
            if (key := "+".join((view.level, *opened))) in found:
                view.opens[path] = key
                continue
            if len(found) >= MAX_VIEWS and view.opened:
                continue
            deeper = View(view.level, opened, figure.at(view.level, opened, "kind"))
            if path in {box.about.path for box in deeper.figure.scene.boxes}:
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


def shade_rules() -> str:
    """Return the looks of boxes whose color tells a size, as CSS."""
    color = LIGHT.hues[SHADED].stroke, DARK.hues[SHADED].stroke
    found = [f":root{{--shade:{color[0]}}}@media screen{{html[data-theme=dark]{{--shade:{color[1]}}}}}"]
    for step, (cover, border) in enumerate(zip(COVERS, BORDERS, strict=True)):
        fill = f"color-mix(in srgb,var(--shade) {cover:.0%},var(--paper))"
        found.append(f".shade{step}>.s{{fill:{fill}!important;stroke:var(--shade)!important}}")
        found.append(f":where(.shade{step})>.s{{stroke-width:{border}}}")
    return "".join(found) + ".shade .i{stroke:var(--shade)!important}.shade :is(.on,.half){fill:var(--shade)!important}"


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
    shown = {box.about.path for box in found[upper].figure.scene.boxes}
    for box in view.figure.scene.boxes:
        for path in above(box.about.path):
            if path in shown and path != box.about.path and path not in view.opened:
                yield path, upper


def openable(scene: Scene, whole: set[str]) -> list[str]:
    """Return the blocks of a picture that have something inside."""
    inner = {path.rpartition(".")[0] for path in whole}
    return [path for path in dict.fromkeys(box.about.path for box in scene.boxes) if path in inner]


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
