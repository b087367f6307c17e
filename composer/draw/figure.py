"""A drawing as its user holds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from composer.draw.formats import SUFFIXES, Format, points, written
from composer.draw.layers import Model, as_written, folded
from composer.draw.outline import LEVELS, Depth, Level, outline
from composer.draw.page import Titles, narrow_page, page
from composer.draw.programs import Missing
from composer.draw.scene import Scene
from composer.draw.structure import Flow, Group
from composer.draw.svg import svg
from composer.draw.titles import titles
from composer.files import save
from composer.graph.typed import TypedProgram
from composer.language.near import near

ThemeName: TypeAlias = Literal["light", "dark", "auto", "slide"]
Engine: TypeAlias = Literal["structured", "dot"]
"""Who lays a drawing out: we, by the structure of the recipe, or Graphviz."""
WIDEST_PAGE, HIGHEST_PAGE = 1200.0, 1500.0
"""Of a drawing at the level of blocks: where it would be larger, mixtures of experts are closed, and then repeats."""
SMALLEST, LEAST = 10, 7
"""Pixels of the smallest letters of a drawing, and points that they have at least where a width is asked for."""
HIGHEST_PAPER = 720
"""Points of what stands in a column of paper."""
MOST_UNROLLED = 60
"""Boxes of a drawing in which every pass is drawn."""


class NotDrawn(ValueError):
    """What was asked of a drawing cannot be: a sentence, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing: a scene of positioned things, and how it is to look."""

    scene: Scene
    model: Model
    """What it shows."""
    level: Level
    at: Callable[[Level, Sequence[str]], Figure]
    """The same model at another level with other nodes opened, light and of natural size."""
    theme: ThemeName = "light"
    width: str = ""
    """Of the picture, with a unit: `240pt`; its natural size without."""
    highlight: tuple[str, ...] = ()
    """Paths of what stays bright while everything else fades."""

    def svg(self) -> str:
        """The text of an SVG file."""
        return svg(self.scene, self.theme, width=self.width, highlight=self.highlight)

    def html(self) -> str:
        """The text of a page that shows every level."""
        from composer.draw.interactive import html

        return html(self)

    def save(self, path: str | Path, format: Format | None = None) -> None:
        """Writes a file; its format is that of the name's ending.

        Raises:
            Missing: where a program or a package is needed that is not there; then an SVG stands beside the name.
            NotDrawn: where the ending is that of no format.
        """
        path = Path(path)
        if format is None and path.suffix.lower() not in SUFFIXES:
            raise NotDrawn(f"{path.name} is no drawing's name", f"let it end in {', '.join(SUFFIXES)}")
        try:
            save(path, written(self, format or SUFFIXES[path.suffix.lower()]))
        except Missing as missing:
            instead = path.with_suffix(".svg")
            save(instead, written(self, "svg"))
            raise Missing(f"{missing.message}; {instead} is written instead", missing.hint) from None

    def _repr_svg_(self) -> str:
        return self.svg()


def draw(
    typed: TypedProgram,
    level: Level = "block",
    *,
    theme: ThemeName = "light",
    expand: Sequence[str] = (),
    unroll: bool = False,
    highlight: Sequence[str] = (),
    width: str = "",
    title: str = "",
    params: bool = True,
    shapes: bool = True,
    engine: Engine = "structured",
) -> Figure:
    """The drawing of a model.

    Raises:
        Missing: where Graphviz is to lay it out and is not there.
        NotDrawn: where a path leads nowhere, a width is no length, or every pass were too much.
    """
    if width and (not re.fullmatch(r"\d+(\.\d+)?(px|pt|pc|mm|cm|in|em|%)?", width) or not re.search("[1-9]", width)):
        raise NotDrawn(f"{width} is no width", "write a number with a unit, such as 240pt")
    model = as_written(typed) if unroll else folded(typed)
    opened, bright = ([plain(model.names.called(path)) for path in paths] for paths in (expand, highlight))
    depth = Depth(level, frozenset(opened), unroll, params)
    flow = outline(model, depth)
    boxes = sum(1 for _ in flow.leaves())
    if unroll and boxes > MOST_UNROLLED:
        raise NotDrawn(f"with every pass there are {boxes} boxes, and at most {MOST_UNROLLED} are drawn", "set fewer layers")
    known = paths(outline(model, Depth("full", frozenset(opened)))) if opened or bright else set()
    for path in (*opened, *bright):
        if path not in known:
            offered = near(path, known)
            raise NotDrawn(f"there is no node called `{path}`", f"did you mean {' or '.join(offered)}?" if offered else "")
    head = titles(model, flow, title)
    scene = page(flow, head, shapes=shapes)
    for smaller_depth in (replace(depth, experts=False), replace(depth, experts=False, layers=False)):
        fits = scene.width <= WIDEST_PAGE and (level == "full" or scene.height <= HIGHEST_PAGE)
        if level == "overview" or unroll or fits or (level == "full" and not smaller_depth.layers):
            break
        closed = outline(model, smaller_depth)
        if closed == flow:
            continue
        smaller = page(closed, head, shapes=shapes)
        if smaller.width < scene.width or smaller.height < scene.height:
            scene = smaller
    if width and not width.endswith("%") and engine == "structured":
        scene = legible(scene, points(width), model, depth, head, shapes=shapes)
    if engine == "dot":
        from composer.draw.engine import laid_out_by_graphviz

        scene = laid_out_by_graphviz(scene)
    at = partial(another, typed, title, params, shapes, engine)
    return Figure(scene, model, level, at, theme, width, tuple(highlight if unroll else bright))


def legible(scene: Scene, width: float, model: Model, depth: Depth, head: Titles, *, shapes: bool) -> Scene:
    """A drawing for a column of paper of so many points: the usual one if its letters are large enough then; else all in one
    column, less deep where it must be.
    """
    room = width * SMALLEST / LEAST
    if scene.width <= room:
        return scene
    for level in reversed(LEVELS[: LEVELS.index(depth.level) + 1]):
        scene = narrow_page(outline(model, replace(depth, level=level, experts=False)), head, room, shapes=shapes)
        said = [text for box in scene.boxes for text in box.texts] + [text for frame in scene.frames for text in frame.texts]
        cut = any(text.text.endswith("…") for text in said)
        if scene.width <= room and scene.height * width / scene.width <= HIGHEST_PAPER and not cut:
            break
    return scene


def another(
    typed: TypedProgram, title: str, params: bool, shapes: bool, engine: Engine, level: Level, opened: Sequence[str]
) -> Figure:
    """A model at some level."""
    return draw(typed, level, expand=opened, title=title, params=params, shapes=shapes, engine=engine)


def plain(path: str) -> str:
    """A path without the passes of repeats: `layers.3.attn` is `layers.attn`."""
    return re.sub(r"\.\d+(?=\.|$)", "", path)


def paths(flow: Flow) -> set[str]:
    """Every path in a flow, with those that lead to it."""
    found: set[str] = set()
    for item in flow.items:
        steps = item.about.path.split(".")
        found |= {".".join(steps[: end + 1]) for end in range(len(steps))}
        if isinstance(item, Group):
            found |= set().union(*map(paths, item.flows))
    return found
