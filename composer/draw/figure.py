"""A drawing as its user holds it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Unpack, get_args

from composer.atomic_files import StrPath
from composer.cost.units import short
from composer.draw.arrange.apply import arranged, with_notes
from composer.draw.arrange.arrangement import Arrangement, Unarrangeable
from composer.draw.arrange.foot import shaded, shows_whole_blocks, with_foot
from composer.draw.arrange.hide import Hidden
from composer.draw.arrange.merge import parameters_of_each
from composer.draw.arrange.shares import COLORINGS, WHOLE_BLOCKS, Coloring, NodeShares
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.group_places import group_places, repeat_places, stream_places
from composer.draw.build.levels import LEVELS, Depth, Level
from composer.draw.build.texts.titles import titles
from composer.draw.closing import closed_to_fit, partly_closed
from composer.draw.details.drawn import Details
from composer.draw.diagram import Flow
from composer.draw.export.formats import FORMATS, NotDrawn, points, write
from composer.draw.export.svg import svg
from composer.draw.export.views import Redraw
from composer.draw.fitting import (
    MAX_DETAILS_EXCESS,
    MAX_TELLING_EXCESS,
    Attempt,
    Attempts,
    excess_of,
    fit_to_page,
    fit_to_paper,
    pages,
)
from composer.draw.formula_lines import with_formula_lines
from composer.draw.in_place import with_small_open
from composer.draw.layout.boxes import with_even_titles
from composer.draw.layout.page import MARGIN, NARROW_MARGIN
from composer.draw.layout.wrapped import NoColumnEnd
from composer.draw.option_paths import not_drawn, with_paths
from composer.draw.options import AUTO, DEFAULTS, NONE, Engine, Options, passes_of
from composer.draw.paths import plain
from composer.draw.scene import Direction, Scene
from composer.draw.style.themes import THEMES, ThemeName
from composer.draw.style.typography import Typography
from composer.draw.wording import printable
from composer.graph.passes.roll_layers.roll_layers import RolledProgram, as_written, folded
from composer.graph.typed import TypedProgram
from composer.language.suggestions import did_you_mean, suggest

MAX_UNROLLED_BOXES = 60
"""Boxes of a drawing in which every pass is drawn: above each other, these are longer than two pages already."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing: a scene of positioned things, and how it is to look."""

    scene: Scene
    model: RolledProgram
    """What it shows."""
    level: Level
    at: Redraw[Figure]
    """The same model at another level with other nodes opened, light and of natural size."""
    theme: ThemeName = "light"
    width: str = ""
    """Of the picture, with a unit: `240pt`; its natural size without."""
    highlight: tuple[str, ...] = ()
    """Paths of what stays bright while everything else fades."""
    color: Coloring = "kind"
    """What its colors tell."""
    closed: tuple[str, ...] = ()
    """Paths of what its level shows from inside, or was to be opened, and the page has no room for."""
    inside: tuple[str, ...] = ()
    """Paths of what an option names and the figure does not show, since it is inside of a box."""
    undetailed: tuple[str, ...] = ()
    """Names of blocks whose details are asked for and not drawn: these are inside of its boxes, or open in it."""
    possible_details: tuple[str, ...] = ()
    """Where there are such, names that could be asked for instead."""
    excess: float = 1.0
    """How many times larger than a page, or than the column of its width, it is without its details; 1 for one that is at most a
    page."""

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
        NotDrawn: if an option has no such value, there is no node at a path, two options contradict each other, a width is
            invalid, or the unrolled model has too many boxes.
        TypeError: if an option does not exist.
    """
    try:
        return draw_arranged(typed, level, options)
    except Unarrangeable as no:
        raise NotDrawn(no.message, no.hint) from None


def draw_arranged(typed: TypedProgram, level: Level, options: Options) -> Figure:
    """Return the drawing of a model, or raise what `draw` raises, but what is wrong with nodes as it is known.

    Raises:
        Unarrangeable: if there is no node at a path, or the options about nodes contradict each other.
    """
    if unknown := options.keys() - DEFAULTS.keys():
        raise TypeError(f"unknown option: {', '.join(sorted(unknown))}; the options are {', '.join(DEFAULTS)}")
    chosen: Options = {**DEFAULTS, **options}
    check_choice("level", level, LEVELS)
    check_choice("theme", chosen["theme"], tuple(THEMES))
    check_choice("engine", chosen["engine"], get_args(Engine))
    check_choice("direction", chosen["direction"], get_args(Direction))
    check_choice("color", chosen["color"], COLORINGS)
    check_width(chosen["width"])
    model = as_written(typed) if chosen["unroll"] is True else folded(typed)
    return figure(model, level, with_paths(chosen, model))


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


def figure(model: RolledProgram, level: Level, options: Options, fitted: Depth | None = None) -> Figure:
    """Return the drawing of a model in which all paths of the options are found; if one is `fitted` to a page already, as deep as
    that, but for what is to be opened, which may make it larger than a page.

    Raises:
        NotDrawn: if the unrolled model has too many boxes.
        Unarrangeable: if nodes cannot be hidden or merged, or colors cannot tell what is drawn.
    """
    typography = Typography(THEMES[options["theme"]].text_scale)
    width, unroll = options["width"], options["unroll"]
    coloring = options["color"]
    whole = coloring in WHOLE_BLOCKS  # no part of a block is told by itself
    merged = (path for nodes in options["merge"].values() for path in nodes)
    depth = Depth(
        level,
        frozenset(options["open"]),
        unroll is True,
        passes_of(options),
        params=options["params"],
        experts=not whole,
        dropout=options["dropout"],
        named=frozenset(map(plain, (*options["hide"], *merged, *options["labels"], *options["break_after"]))),
        bright=frozenset(map(plain, options["highlight"])),
    )
    shares, wanted = NodeShares(model), arrangement(model, options)
    facts = partial(shares.facts, flops=options["flops"], cache=options["cache"])
    counts = {entry.name: prod(entry.parameter.shape) for entry in model.parameters if not entry.tied_to}
    each = partial(parameters_of_each, counts if options["params"] else {})

    def diagram(wanted_depth: Depth) -> tuple[Flow, tuple[Hidden, ...]]:
        flow, gone = arranged(build_diagram(model, wanted_depth), wanted, each, said)
        return with_even_titles(with_formula_lines(flow), typography), gone

    said = facts if options["flops"] or options["cache"] else None
    whole_flow = build_diagram(model, depth)
    flow, gone = arranged(whole_flow, wanted, each, said)
    flow = with_even_titles(with_formula_lines(flow), typography)
    if unroll:
        check_boxes(flow)
    head = with_notes(titles(model, options["title"]), gone, wanted, short)
    head = head if options["shapes"] else replace(head, types={})
    attempts = Attempts(
        lambda less: diagram(less)[0],
        head,
        typography,
        options["shapes"],
        tuple(options["break_after"]),
        options["direction"],
        cache(lambda: group_places(model.program.root)),
        lambda: stream_places(model.program.root),
        details=shows_details(level, options),
    )
    begin, deep = flow, depth
    if fitted is not None:
        deep = replace(fitted, opened=depth.opened | fitted.opened)
        begin = diagram(deep)[0]
    try:
        found = fit_to_page(attempts, begin, deep, less=fitted is None)
    except NoColumnEnd as no:
        possible = f"one can after {' or '.join(no.possible)}" if no.possible else "this drawing has several columns already"
        raise Unarrangeable("break_after", no.path, f"no column can end after `{no.path}`", possible) from None
    scene, margin = found.scene, MARGIN
    details = [one for one in options["details"] if one not in (AUTO, NONE)]
    undetailed: tuple[str, ...] = tuple(details)
    others: tuple[str, ...] = ()
    if attempts.details:
        made = Details(
            attempts.diagram,
            cache(lambda: (*attempts.groups(), *repeat_places(model.program.root))),
            pages,
            MAX_DETAILS_EXCESS,
            MAX_TELLING_EXCESS,
            typography,
            options["shapes"],
        )
        found, scene = with_details(made, found, details)
        if not details:
            found, scene = with_small_open(made, attempts, found, scene)
            scene = made.with_fan(scene)
        undetailed = made.missing(scene, details)
        others = made.possible(scene, found.flow, found.depth) if undetailed else ()
    if options["engine"] == "dot":
        from composer.draw.layout.graphviz_layout import layout_by_graphviz

        scene = layout_by_graphviz(scene, typography)
    elif width and not width.endswith("%"):
        usual = scene
        scene = fit_to_paper(attempts, scene, depth, points(width))
        margin = MARGIN if scene is usual else NARROW_MARGIN
    column = points(width) if width and not width.endswith("%") else None
    told = found.scene if scene.details or scene.fan else scene
    excess = max(1.0, excess_of(told, attempts, level, column))
    if whole and not shows_whole_blocks(scene, shares):
        hint = "leave `open` out" if level == "block" else "use the level block or overview"
        message = f"color {coloring} tells what whole blocks have, and this drawing shows some from inside"
        raise Unarrangeable("color", "", message, hint)
    scene = shaded(scene, shares, coloring)
    caption = printable(options["caption"])
    scene = with_foot(scene, typography, coloring, legend=options["legend"], caption=caption, margin=margin)
    shown = {path for detail in scene.details for path in detail.stands_for}
    closed = tuple(path for path in closed_to_fit(scene, flow, attempts.groups) if path not in shown)
    inside = tuple(not_drawn(options, whole_flow, head.inputs))
    again: Options = {
        **options,
        "theme": "light",
        "width": "",
        "highlight": (),
        "unroll": False,
        "break_after": (),
        "hide": [*dict.fromkeys(map(plain, options["hide"]))],
        "labels": {plain(path): said for path, said in options["labels"].items()},
    }
    # What it closes to fit a page says how deep others are only if these are drawn in the same way.
    alike = {**options, "details": (), "hide": [*options["hide"]]} == {**again, "details": ()}
    at = partial(reopened, folded(model.program) if unroll is True else model, again, found.depth if alike else None)
    bright, theme = tuple(options["highlight"]), options["theme"]
    return Figure(scene, model, level, at, theme, width, bright, coloring, closed, inside, undetailed, others, excess)


WORTH_WRAPPING = 1.2
"""How many times larger a page may be on which a stream stays in one column, with what is used again closed and drawn once."""


def with_details(made: Details, found: Attempt, details: Sequence[str]) -> tuple[Attempt, Scene]:
    """Return a drawing with its details: all uses of a block are closed or none, if what this closes has a detail; where all were
    open, if the page is smaller by it, or not much larger with a stream in one column that was wrapped.
    """
    alike, own = found.alike, None
    if alike is not None:
        scene = made.beside(alike.scene, alike.flow, alike.depth, details)
        if made.tells_all(scene, found.flow):
            if partly_closed(found.flow, made.groups(), found.depth):
                return alike, scene
            own = made.beside(found.scene, found.flow, found.depth, details)
            straight = found.is_wrapped and not alike.is_wrapped and made.is_within(scene, own, WORTH_WRAPPING)
            if (straight or made.is_smaller(scene, own)) and {*made.missing(scene, details)} <= {*made.missing(own, details)}:
                return alike, scene
    return found, own or made.beside(found.scene, found.flow, found.depth, details)


def shows_details(level: Level, options: Options) -> bool:
    """Return whether a figure may have details: one on an upright page of its own, in the colors of kinds, with the passes of
    repeats as one.
    """
    usual = options["direction"] == "up" and options["engine"] == "structured" and not options["unroll"]
    plain_look = options["color"] == "kind" and options["theme"] != "slide"
    whole_page = not options["width"] or options["width"].endswith("%")
    return NONE not in options["details"] and level == "block" and usual and plain_look and whole_page


def arrangement(model: RolledProgram, options: Options) -> Arrangement:
    """Return how a drawing departs from what its level shows."""
    optional = (one.name for one in model.program.untyped.inputs if one.optional or one.default)
    return Arrangement(
        tuple(options["hide"]),
        {printable(label): tuple(nodes) for label, nodes in options["merge"].items()},
        {path: printable(label) for path, label in options["labels"].items()},
        () if options["optional_inputs"] else tuple(optional),
        names=options["names"],
        dropout=options["dropout"],
    )


def check_boxes(flow: Flow) -> None:
    """Check that an unrolled model has not too many boxes.

    Raises:
        NotDrawn: if it has.
    """
    boxes = sum(1 for _ in flow.leaves())
    if boxes > MAX_UNROLLED_BOXES:
        message = f"the unrolled model has {boxes} boxes; at most {MAX_UNROLLED_BOXES} are drawn"
        raise NotDrawn(
            message, "reduce the number of layers, or draw some passes and the others as one box, as with `layers=0:2`"
        )


def reopened(
    model: RolledProgram,
    options: Options,
    fitted: Depth | None,
    level: Level,
    opened: Sequence[str],
    color: Coloring | None = None,
) -> Figure:
    """Return a model at some level with some nodes opened; where that shows blocks from inside, in the colors of kinds. What is
    closed in the drawing that is `fitted` to a page stays so at the same level: a reader finds the rest again.

    Raises:
        NotDrawn: if what is hidden or merged cannot be so at this level.
    """
    inside = level == "full" or opened
    color = color or options["color"]
    color = "kind" if inside and color in WHOLE_BLOCKS else color
    try:
        details = (NONE,) if opened else options["details"]  # what is opened needs the room
        same = opened and fitted is not None and fitted.level == level and color == options["color"]
        wanted: Options = {**options, "open": opened, "color": color, "details": details}
        return figure(model, level, wanted, fitted if same else None)
    except Unarrangeable as no:
        raise NotDrawn(f"at the level {level}: {no.message}", no.hint) from None
