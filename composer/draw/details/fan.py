"""The fan of dilations: what one position reads through the convolutions of a repeat, drawn beside a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from blocks.core import grouped
from composer.draw.about import About
from composer.draw.build.group_places import GroupPlace
from composer.draw.details.dilations import Offsets, period, read_through, rows_of
from composer.draw.details.placing import best_spot
from composer.draw.geometry import Area, Text
from composer.draw.paths import plain
from composer.draw.scene import DilationFan, Scene
from composer.draw.style.typography import Typography
from composer.draw.wording import each_pass
from composer.graph.typed import TypedRepeat

MAX_ROWS, MAX_POSITIONS, MIN_ROWS = 4, 33, 2
"""Convolutions that are drawn, and positions in each row of them, at most; and how few are no fan."""
NEAR, WIDE, FEW_POSITIONS = 10.0, 15.0, 20
"""From one position to the next, where there are many, and where there are few; and how many are few."""
RISE, BESIDE, ABOVE = 34.0, 12.0, 14.0
"""From one row to the next; from the last position to what is written beside a row; from the highest row to what stands above."""
PAD, HEAD, LINE = 16.0, 30.0, 15.0
"""Between the border and the rows; for the title; for each line below that."""


def with_fan(
    scene: Scene,
    places: Sequence[GroupPlace],
    typography: Typography,
    has_room: Callable[[Scene], bool],
    size: Callable[[float, float], float],
    free: tuple[list[Area], Area],
) -> Scene:
    """Return a drawing with the fan of the first repeat in it that has one, if a page `has_room` for it; given the places of all
    repeats, by how much a width and a height are larger than a page, and what lies on the page.
    """
    things = {plain(one.about.path): one.area for drawn in scene.drawings for one in drawn.boxes}
    things |= {plain(one.about.path): one.area for drawn in scene.drawings for one in drawn.frames}
    for place in places:
        if place.path in things and isinstance(place.node, TypedRepeat) and (rows := rows_of(place.node)):
            fan = fan_of(place.node, rows, place.path, typography)
            if fan is None:
                continue
            taken, page = free
            x, y = best_spot(taken, page, fan.width, fan.height, things[place.path], size)
            moved = fan.moved(x, y)
            margin = page.left
            wide, high = max(scene.width, moved.area.right + margin), max(scene.height, moved.area.bottom + margin)
            with_it = replace(scene, width=wide, height=high, fan=moved)
            return with_it if has_room(with_it) else scene
    return scene


def fan_of(node: TypedRepeat, rows: Sequence[Offsets], path: str, typography: Typography) -> DilationFan | None:
    """Return the fan of the first of some rows at the upper left corner of a page; none where two are too wide."""
    own = period(rows)
    counts = range(min(own, MAX_ROWS), MIN_ROWS - 1, -1)
    drawn = next((rows[:count] for count in counts if width(rows[:count]) <= MAX_POSITIONS), ())
    if not drawn:
        return None
    apart = WIDE if width(drawn) <= FEW_POSITIONS else NEAR
    scale = typography.scale
    kernel, *lines = said(node, rows)
    title = Text(PAD, 22, "Dilations", "title", "start", scale)
    texts = [title, Text(title.area.right + BESIDE, 22, kernel, "detail", "start", scale)]
    texts += [Text(PAD, 22 + LINE * number, line, "detail", "start", scale) for number, line in enumerate(lines, 1)]
    more = len(drawn) < own
    head = HEAD + LINE * len(lines) + ABOVE + (ABOVE if more else 0.0)
    lowest = head + RISE * len(drawn)
    right = PAD + apart * (width(drawn) - 1) + BESIDE
    labels = ["input", *(f"dilation {dilation(offsets)}" for offsets in drawn)]
    texts += [Text(right, lowest - RISE * row + 3.5, label, "note", "start", scale) for row, label in enumerate(labels)]
    if more:
        high = lowest - RISE * len(drawn) - ABOVE - 1
        texts.append(Text(right, high, f"… dilation {dilation(rows[own - 1])}", "note", "start", scale))
    wide = max(text.area.right for text in texts) + PAD
    tip = ", ".join(("Dilations", kernel, *lines))
    about = About(path, tip, description="; ".join(labels))
    before = -sum(min(offsets) for offsets in drawn)
    return DilationFan(
        about, 0.0, 0.0, wide, lowest + PAD, tuple(texts), (PAD, lowest), apart, RISE, width(drawn), tuple(drawn), before
    )


def width(rows: Sequence[Offsets]) -> int:
    """Return from the first to the last of the positions that one reads through some rows how many there are."""
    return sum(max(offsets) - min(offsets) for offsets in rows) + 1


def dilation(offsets: Offsets) -> int:
    """Return how far apart the positions are that one reads."""
    return offsets[1] - offsets[0]


def said(node: TypedRepeat, rows: Sequence[Offsets]) -> tuple[str, ...]:
    """Return what stands beside the title and below it: how many positions a convolution reads, and one through all."""
    kernels = sorted({len(offsets) for offsets in rows})
    causal = all(max(offsets) == 0 for offsets in rows)
    kernel = f"kernel {', '.join(map(str, kernels))}{', causal' if causal else ''}"
    own, whole = period(rows), len(rows)
    word = each_pass(node.name)[1] if whole == len(node.passes) else "convolutions"
    read = "what one position reads: "
    if own == whole:
        return kernel, f"{read}{counted(rows)}"
    return kernel, f"{read}{counted(rows[:own])} in each stack of {own} {word}", f"{counted(rows)} in all {whole // own} stacks"


def counted(rows: Sequence[Offsets]) -> str:
    """Return how many positions one reads through some rows; of how many, where it leaves some out."""
    read, among = len(read_through(rows)), width(rows)
    return grouped(read) if read == among else f"{grouped(read)} of {grouped(among)}"
