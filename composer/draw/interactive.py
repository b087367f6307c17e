"""A drawing as one HTML page without a network: every level, what is in each block, and the recipe beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.draw.facts import facts, implied
from composer.draw.graph import Graph
from composer.draw.outline import LEVELS, Level
from composer.draw.packed import packed
from composer.draw.palette import DARK
from composer.draw.scene import Box, Scene
from composer.draw.svg import rules

if TYPE_CHECKING:
    from composer.draw.figure import Figure

WEB = Path(__file__).parent / "web"
MOST_VIEWS = 16
"""Pictures in a page: what lies deeper than so many is not opened."""


@dataclass(slots=True)
class View:
    """One picture of the page: a level with some nodes opened."""

    level: Level
    opened: tuple[str, ...]
    figure: Figure
    opens: dict[str, str] = field(default_factory=dict)
    """Path of a block to the view in which it is open."""
    closes: dict[str, str] = field(default_factory=dict)
    """The same for what is open here."""

    @property
    def key(self) -> str:
        """What the script calls it."""
        return "+".join((self.level, *self.opened))


def html(figure: Figure) -> str:
    """The page; the figure's own level is what it shows first."""
    views = {view.key: view for view in all_views(figure)}
    source = figure.model.typed.program.recipe.name_scalar.span.source
    pictures = packed([view.figure.svg() for view in views.values()])
    told = {
        "first": figure.level,
        "words": pictures.words,
        "things": pictures.things,
        "views": {
            key: {"picture": picture, **view_data(view, implied(figure.model))}
            for (key, view), picture in zip(views.items(), pictures.pictures, strict=True)
        },
        "facts": facts(figure.model),
    }
    page = (WEB / "page.html").read_text(encoding="utf-8")
    parts = {
        "title": escape(figure.scene.name),
        "style": (WEB / "page.css").read_text(encoding="utf-8") + f"html[data-theme=dark] #picture{{{rules(DARK)}}}",
        "levels": "".join(f'<button type="button" data-level="{level}">{level.capitalize()}</button>' for level in LEVELS),
        "file": escape(Path(source.name).name),
        "recipe": "".join(recipe_lines(source.lines)),
        "picture": views[figure.level].figure.svg(),
        "data": data(told),
        "script": (WEB / "page.js").read_text(encoding="utf-8"),
        "theme": "dark" if figure.theme == "dark" else "",
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page)


def data(told: Any) -> str:
    """JSON that a script may hold: it neither ends there nor turns into a comment."""
    return re.sub("<(?=[!/s])", r"\\u003c", json.dumps(told, ensure_ascii=False, separators=(",", ":")), flags=re.IGNORECASE)


def recipe_lines(lines: Sequence[str]) -> Iterator[str]:
    """The recipe, a line each."""
    last = len(lines) - (lines[-1] == "")
    for number, line in enumerate(lines[:last], 1):
        yield f'<li id="line{number}">{escape(line) or " "}</li>'


def all_views(figure: Figure) -> list[View]:
    """The three levels, and what opens from them; each picture once."""
    found: dict[str, View] = {level: View(level, (), figure.at(level, ())) for level in LEVELS}
    whole = {path for box in found["full"].figure.scene.boxes for path in above(box.about.path)}
    waiting = [found["block"], found["overview"]]
    while waiting:
        view = waiting.pop(0)
        for path in openable(view.figure.scene, whole):
            around = [one for one in view.opened if path.startswith(f"{one}.")]
            opened = (*around, path)
            deeper = View(view.level, opened, figure.at(view.level, opened))
            if path in {box.about.path for box in deeper.figure.scene.boxes}:
                continue  # it has nothing inside after all
            if frames(deeper.figure.scene) == frames(found["block"].figure.scene) and view.level == "overview":
                view.opens[path] = "block"
                continue
            if deeper.key not in found:
                if len(found) >= MOST_VIEWS:
                    continue
                found[deeper.key] = deeper
                waiting.append(deeper)
            view.opens[path] = deeper.key
    for view in found.values():
        view.closes |= closing(view, found)
    return list(found.values())


def closing(view: View, found: dict[str, View]) -> Iterator[tuple[str, str]]:
    """Paths of what is open in a view, with the view in which it is not."""
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


def above(path: str) -> list[str]:
    """A path and all that lead to it."""
    steps = path.split(".")
    return [".".join(steps[:end]) for end in range(1, len(steps) + 1)]


def openable(scene: Scene, whole: set[str]) -> list[str]:
    """Blocks of a picture that have something inside."""
    inner = {path.rpartition(".")[0] for path in whole}
    return [path for path in dict.fromkeys(box.about.path for box in scene.boxes) if path in inner]


def frames(scene: Scene) -> set[str]:
    """What is drawn from inside."""
    return {frame.about.path for frame in scene.frames}


def view_data(view: View, unwritten: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What the script has to know of a picture: which wires each link goes through, and whether the recipe writes it."""
    scene = view.figure.scene
    graph = Graph(scene)
    numbers = {id(wire): number for number, wire in enumerate(scene.wires)}
    merges_first = sorted(graph.nodes, key=lambda node: (node.thing is None, isinstance(node.thing, Box)))
    names = {node.key: number for number, node in enumerate(merges_first)}
    links = []
    for link in graph.links:
        plain = link.port in unwritten.get(link.target, ())
        links.append([names[link.source], names[link.target], [numbers[id(wire)] for wire in link.wires], int(plain)])
    return {
        "level": view.level,
        "nodes": [node.about.path for node in merges_first],
        "links": links,
        "opens": view.opens,
        "closes": view.closes,
    }
