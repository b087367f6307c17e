"""A drawing as its user holds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict, Unpack, get_args

from composer.atomic_files import StrPath
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.levels import LEVELS, Depth, Level
from composer.draw.build.titles import titles
from composer.draw.diagram import Flow, Group
from composer.draw.export.formats import FORMATS, NotDrawn, points, write
from composer.draw.export.svg import svg
from composer.draw.fitting import Attempts, fit_to_page, fit_to_paper
from composer.draw.paths import above, plain
from composer.draw.scene import Scene
from composer.draw.style.themes import THEMES, ThemeName
from composer.draw.style.typography import Typography
from composer.graph.passes.roll_layers.roll_layers import RolledProgram, as_written, folded
from composer.graph.typed import TypedProgram
from composer.language.suggestions import did_you_mean, suggest

Engine: TypeAlias = Literal["structured", "dot"]
"""What lays a drawing out: this package, by the structure of the recipe, or Graphviz."""
MAX_UNROLLED_BOXES = 60
"""Boxes of a drawing in which every pass is drawn: above each other, these are longer than two pages already."""


class Options(TypedDict, total=False):
    """Options of a drawing."""

    theme: ThemeName
    """`auto` follows the reader's screen, `slide` has larger text, thicker lines and no background."""
    open: Sequence[str]
    """Paths of nodes that are shown from inside."""
    unroll: bool
    """Whether every pass of a repeat is drawn."""
    highlight: Sequence[str]
    """Nodes that stay bright while all else fades."""
    width: str
    """Of the picture, with a unit: `240pt`."""
    title: str
    """What stands at the top in place of the recipe's name."""
    params: bool
    """Whether boxes show their numbers of parameters."""
    shapes: bool
    """Whether shapes stand beside the wires."""
    engine: Engine


DEFAULTS: Options = {
    "theme": "light",
    "open": (),
    "unroll": False,
    "highlight": (),
    "width": "",
    "title": "",
    "params": True,
    "shapes": True,
    "engine": "structured",
}
"""The options that are not given."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing: a scene of positioned things, and how it is to look."""

    scene: Scene
    model: RolledProgram
    """What it shows."""
    level: Level
    at: Callable[[Level, Sequence[str]], Figure]
    """The same model at another level with other nodes opened, light and of natural size."""
    theme: ThemeName = "light"
    width: str = ""
    """Of the picture, with a unit: `240pt`; its natural size without."""
    highlight: tuple[str, ...] = ()
    """Paths of what stays bright while everything else fades."""

    @property
    def formats(self) -> tuple[str, ...]:
        """What it can be saved as."""
        return tuple(FORMATS)

    def svg(self) -> str:
        """Return the drawing as the text of an SVG file.

        Examples:
            >>> import composer
            >>> composer.load("gpt2").draw().svg()[:4]
            '<svg'
        """
        return svg(self.scene, self.theme, width=self.width, highlight=self.highlight)

    def html(self) -> str:
        """Return the text of a web page that shows the drawing at every level."""
        from composer.draw.export.html import html

        return html(self)

    def save(self, path: StrPath, format: str | None = None) -> None:
        """Write the drawing to a file.

        Args:
            path: Where to write.
            format: The format: SVG, HTML, PNG, PDF, DOT or Mermaid; that of the name's ending by default.

        Raises:
            Missing: A program or a package is needed that is not installed; an SVG is then written instead.
            NotDrawn: The ending is not that of a supported format.
        """
        write(self, Path(path), format)

    def _repr_svg_(self) -> str:
        return self.svg()


def draw(typed: TypedProgram, level: Level = "block", **options: Unpack[Options]) -> Figure:
    """Return the drawing of a model.

    Raises:
        Missing: if Graphviz is to lay it out and is not installed.
        NotDrawn: if an option has no such value, there is no node at a path, a width is invalid, or the unrolled model has too
            many boxes.
        TypeError: if an option does not exist.
    """
    if unknown := options.keys() - DEFAULTS.keys():
        raise TypeError(f"unknown option: {', '.join(sorted(unknown))}; the options are {', '.join(DEFAULTS)}")
    chosen: Options = {**DEFAULTS, **options}
    check_choice("level", level, LEVELS)
    check_choice("theme", chosen["theme"], tuple(THEMES))
    check_choice("engine", chosen["engine"], get_args(Engine))
    check_width(chosen["width"])
    model = as_written(typed) if chosen["unroll"] else folded(typed)
    opened, bright = ([plain(model.names.called(path)) for path in chosen[which]] for which in ("open", "highlight"))
    known = paths(build_diagram(model, Depth("full", frozenset(opened)))) if opened or bright else set()
    for path in (*opened, *bright):
        if path not in known:
            offered = suggest(path, known)
            raise NotDrawn(f"there is no node called `{path}`", did_you_mean(offered) if offered else "")
    found: Options = {**chosen, "open": opened, "highlight": chosen["highlight"] if chosen["unroll"] else bright}
    return figure(model, level, found)


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Check that an option has one of its values.

    Raises:
        NotDrawn: if it has not.
    """
    if value not in choices:
        offered = suggest(str(value), choices)
        hint = did_you_mean(offered) if offered else f"choose from {', '.join(choices)}"
        raise NotDrawn(f"{option}: there is no `{value}`", hint)


def check_width(width: str) -> None:
    """Check that a width is a positive number with a unit.

    Raises:
        NotDrawn: if it is not.
    """
    if width and (not re.fullmatch(r"\d+(\.\d+)?(px|pt|pc|mm|cm|in|em|%)?", width) or not re.search("[1-9]", width)):
        raise NotDrawn(f"`{width}` is not a valid width", "write a positive number with a unit, such as 240pt")


def figure(model: RolledProgram, level: Level, options: Options) -> Figure:
    """Return the drawing of a model in which all that is opened and all that stays bright are found."""
    typography = Typography(THEMES[options["theme"]].text_scale)
    width, unroll = options["width"], options["unroll"]
    depth = Depth(level, frozenset(options["open"]), unroll, options["params"])
    flow = build_diagram(model, depth)
    if unroll:
        check_boxes(flow)
    attempts = Attempts(model, titles(model, options["title"]), typography, options["shapes"])
    scene = fit_to_page(attempts, flow, depth)
    if options["engine"] == "dot":
        from composer.draw.layout.graphviz_layout import layout_by_graphviz

        scene = layout_by_graphviz(scene, typography)
    elif width and not width.endswith("%"):
        scene = fit_to_paper(attempts, scene, depth, points(width))
    again: Options = {**options, "theme": "light", "width": "", "highlight": (), "unroll": False}
    at = partial(reopened, folded(model.program) if unroll else model, again)
    return Figure(scene, model, level, at, options["theme"], width, tuple(options["highlight"]))


def check_boxes(flow: Flow) -> None:
    """Check that an unrolled model has not too many boxes.

    Raises:
        NotDrawn: if it has.
    """
    boxes = sum(1 for _ in flow.leaves())
    if boxes > MAX_UNROLLED_BOXES:
        message = f"the unrolled model has {boxes} boxes; at most {MAX_UNROLLED_BOXES} are drawn"
        raise NotDrawn(message, "reduce the number of layers, or draw the repeats folded")


def reopened(model: RolledProgram, options: Options, level: Level, opened: Sequence[str]) -> Figure:
    """Return a model at some level with some nodes opened."""
    return figure(model, level, {**options, "open": opened})


def paths(flow: Flow) -> set[str]:
    """Return every path in a flow, with those that lead to it."""
    found: set[str] = set()
    for item in flow.items:
        found |= {*above(item.about.path)}
        if isinstance(item, Group):
            found |= set().union(*map(paths, item.flows))
    return found
