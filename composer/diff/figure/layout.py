"""The layout of a comparison: two drawings side by side, marks at what differs, and notes between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from composer.diff.changes import DifferenceData
from composer.diff.figure.geometry import along, area_of, around, content, shifted
from composer.diff.figure.notes import APART, INDENT, LINE, NOTE, Note, high, in_columns, note, spread
from composer.diff.figure.places import DrawnThing, FoundPlaces, PassCount, Spot, path_of, places
from composer.diff.figure.sides import SIDES, sided
from composer.diff.render import caption, changed_costs, summary_line, unchanged_costs
from composer.draw.build.levels import Level
from composer.draw.export.svg import svg
from composer.draw.figure import Figure
from composer.draw.figure import draw as drawn
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.fragment import Pieces
from composer.draw.layout.page import MARGIN, lines_of
from composer.draw.options import NONE
from composer.draw.scene import Badge, Box, Dot, Frame, Happened, MergeCircle, Ring, Scene, WirePath
from composer.draw.style.typography import Typography

SIGNS: dict[Happened, str] = {"added": "+", "removed": "−", "replaced": "→", "altered": "~", "rewired": ">", "shared": "="}
LEGEND: dict[Happened, str] = {
    "removed": "only here, on the left",
    "added": "only here, on the right",
    "replaced": "another block",
    "altered": "other values, or a change inside",
    "rewired": "reads something else",
    "shared": "parameters shared otherwise",
}
LETTERS = Typography()
GAP = 44.0
"""The gap between a drawing and the notes."""


@dataclass(frozen=True, slots=True)
class MarkedDrawings:
    """Two drawings side by side with what differs marked, without notes."""

    scene: Scene
    pictures: tuple[Figure, Figure]
    """Each drawing by itself. The scene has the wires of the first, then those of the second."""
    found: tuple[FoundPlaces, ...]
    """The changes from the top of the page to its foot, with the elements of either drawing that show them."""
    order: tuple[int, ...]
    """The place of each of them among the changes of the difference."""

    def svg(self) -> str:
        """Return the text of an SVG file."""
        return svg(self.scene)


def marked_drawings(difference: DifferenceData, level: Level) -> MarkedDrawings:
    """Draw both models with what differs marked, without notes."""
    page = _Page(difference, level)
    before, after = page.pictures
    return MarkedDrawings(page.scene([]), (before, after), tuple(page.found), tuple(page.order))


def annotated_scene(difference: DifferenceData, level: Level) -> Scene:
    """Return the scene of both models with what differs marked, and notes on the changes between the drawings."""
    page = _Page(difference, level)
    return page.scene([note(*caption(one.change)) for one in page.found])


class _Page:
    """The page while it is laid out."""

    def __init__(self, difference: DifferenceData, level: Level) -> None:
        self.difference = difference
        self.pictures = [drawn(model, level, shapes=False, details=[NONE]) for model in difference.models]
        found = list(places(difference, self.pictures))
        self.areas = [content(picture.scene) for picture in self.pictures]
        self.pieces = Pieces()
        self.rings: list[Ring] = []
        self.badges: list[Badge] = []
        self.ringed: set[str] = set()
        """The paths of the elements with a ring."""
        self.order = sorted(range(len(found)), key=lambda number: self.height(found[number]))  # from top to bottom
        self.found = [found[number] for number in self.order]

    def height(self, found: FoundPlaces) -> float:
        """Return the height of a change on the page, negative, from the foot of its drawing."""
        for area, spots in zip(self.areas, found.spots, strict=True):
            if spots:
                return area_of(spots[0]).top - area.bottom
        return -1e6  # a change of the model as a whole

    def scene(self, notes: Sequence[Note]) -> Scene:
        """Return the scene, with the notes between the drawings."""
        wide = [area.right - area.left for area in self.areas]
        heads = [self.column_head(picture, width) for picture, width in zip(self.pictures, wide, strict=True)]
        tallest = max(area.bottom - area.top for area in self.areas)
        columns = in_columns([high(lines) + APART for lines in notes], 1.2 * tallest)
        room = len(columns) * (NOTE + APART)
        starts = [MARGIN, MARGIN + wide[0] + 2 * GAP + room]
        right = starts[1] + wide[1]
        said, top = self.head(right - MARGIN)
        inner = top + 22 + 15 * max(map(len, heads)) + 14
        foot = inner + max([tallest, *(sum(high(notes[n]) + APART for n in column) for column in columns)])
        moves = [(start - area.left, foot - area.bottom) for start, area in zip(starts, self.areas, strict=True)]
        paper = Area(0, 0, right + MARGIN, foot + MARGIN)
        names = self.difference.before, self.difference.after
        for side, (name, lines, start) in enumerate(zip(names, heads, starts, strict=True)):
            title = Text(start, top + 18, name, "title", "start")
            facts = [Text(start, top + 35 + 15 * number, line, "facts", "start") for number, line in enumerate(lines)]
            self.pieces.take(sided(self.pictures[side].scene, SIDES[side]), *moves[side])
            self.pieces.texts += [title, *facts]
            self.mark(side, moves[side], title, paper)
        for number, column in enumerate(columns):
            self.note(notes, column, MARGIN + wide[0] + GAP + number * (NOTE + APART), inner, foot)
        pieces = self.pieces
        page_width = max([right + MARGIN, *(text.area.right + MARGIN for text in said)])
        faint = frozenset(self.faint() if self.found else ())
        return Scene(
            f"{names[0]} → {names[1]}",
            page_width,
            foot + MARGIN,
            (*said, *pieces.texts),
            tuple(pieces.frames),
            tuple(pieces.wires),
            tuple(replace(dot, faint=self.fades(dot, faint)) for dot in pieces.dots),
            tuple(pieces.boxes),
            tuple(pieces.merges),
            tuple(pieces.references),
            tuple(self.rings),
            tuple(self.badges),
            faint,
        )

    def faint(self) -> Iterator[str]:
        """Yield the paths of what is the same in both models."""
        whole = tuple(f"{path}." for path in self.ringed)
        things: tuple[DrawnThing, ...] = (*self.pieces.boxes, *self.pieces.merges, *self.pieces.references, *self.pieces.frames)
        for one in things:
            if one.about.path not in self.ringed and not one.about.path.startswith(whole):
                yield one.about.path

    def fades(self, dot: Dot, faint: frozenset[str]) -> bool:
        """Return whether all wires that meet at a fork are faint."""
        meeting = (one for one in self.pieces.wires if any(on(dot, a, b) for a, b in pairwise(one.points)))
        return bool(faint) and all(one.style != "rewired" and {one.source, one.target} <= faint for one in meeting)

    # -- the head

    def head(self, room: float) -> tuple[list[Text], float]:
        """Return the title, the costs and the legend, and the height at which they end."""
        title, _, counted = summary_line(self.difference).partition(": ")
        changed = [f"{what} {text}" for what, text in changed_costs(self.difference)]
        same = [f"{what} unchanged ({text})" for what, text in unchanged_costs(self.difference) if not self.difference.equal]
        facts = lines_of([counted.partition(", ")[0], *changed, *same], room, LETTERS)
        said = [Text(MARGIN, 34, title, "heading", "start")]
        said += [Text(MARGIN, 54 + 15 * number, line, "facts", "start") for number, line in enumerate(facts)]
        x, y = MARGIN, 54 + 15 * len(facts) + 12
        occurring = {one.happened for one in self.found}
        for one in self.found:
            occurring |= {
                one.ring(spot, side) for side in (0, 1) for spot in one.spots[side] or () if not isinstance(spot, WirePath)
            }
        for happened, meaning in LEGEND.items():
            if happened in occurring:
                width = LETTERS.width(meaning, "facts")
                if x + 38 + width > MARGIN + room and x > MARGIN:
                    x, y = MARGIN, y + 26
                badge = Badge(happened, "", Text(x + 14, y, SIGNS[happened], "badge"))
                self.badges.append(badge)
                if happened != "rewired":
                    self.rings.append(Ring(happened, "", Area(x, badge.area.top - 4, x + 28, badge.area.bottom + 4)))
                said.append(Text(x + 36, y, meaning, "facts", "start"))
                x += 36 + width + 26
        return said, y + (22 if occurring else 0)

    def column_head(self, picture: Figure, width: float) -> list[str]:
        """Return the caption of one of the models."""
        facts = [text.text for text in picture.scene.texts if text.role == "facts"]
        return lines_of([fact for line in facts for fact in line.split(" · ")], width, LETTERS)

    # -- marks

    def mark(self, side: int, move: Point, title: Text, paper: Area) -> None:
        """Add the rings and badges of one drawing."""
        prefix, pieces = SIDES[side], self.pieces
        blocks: tuple[Box | MergeCircle, ...] = (*pieces.boxes, *pieces.merges)
        solid = {one.about.path: one.area for one in blocks}
        icons = (icon.area for box in pieces.boxes for icon in box.icons)
        beyond = (
            Area(-1e4, -1e4, 3, 1e4),
            Area(-1e4, paper.bottom - 3, 1e4, 1e4),
            Area(paper.right - 3, -1e4, 1e4, 1e4),
        )
        taken = [*(text.area for text in self.texts()), *(one.area for one in self.badges), *icons, *beyond]
        beside = title.area.right + 24.0
        rings: dict[str, tuple[FoundPlaces, Spot]] = {}
        for number, one in enumerate(self.found, 1):
            spots = one.spots[side]
            text = f"{SIGNS[one.happened]} {number}"
            if spots == ():
                self.badges.append(Badge(one.happened, prefix, Text(beside, title.y - 1, text, "badge")))
                beside += 36
            nodes_with_badge: set[str] = set()
            for spot in spots or ():
                path = path_of(spot)
                if isinstance(spot, WirePath):
                    self.rewire(spot, prefix)
                elif path not in rings or (one.weight(spot, side) > rings[path][0].weight(spot, side)):
                    rings[path] = one, spot
                node = one.node(spot, side) or path
                if node in nodes_with_badge:  # by another part of it, such as an expert
                    continue
                nodes_with_badge.add(node)
                others = [area for name, area in solid.items() if name != prefix + path]
                badge = self.free(one.happened, prefix + path, text, along(spot, move), taken, others)
                self.badges.append(badge)
                taken.append(badge.area)
        for path, (one, spot) in rings.items():
            area = shifted(area_of(spot), move)
            others = [other for name, other in solid.items() if name != prefix + path]
            near = any(area.grown(6).meets(other) and not isinstance(spot, Frame) for other in others)
            self.rings.append(Ring(one.ring(spot, side), prefix + path, area.grown(1.8 if near else 3.5)))
            if not isinstance(spot, PassCount):
                self.ringed.add(prefix + path)

    def texts(self) -> Iterator[Text]:
        """Yield all texts placed so far."""
        yield from self.pieces.texts
        for box in self.pieces.boxes:
            yield from box.texts
        for frame in self.pieces.frames:
            yield from (*frame.texts, *([frame.pill] if frame.pill else ()), *(frame.strip.ticks if frame.strip else ()))
        yield from (reference.text for reference in self.pieces.references)

    def free(
        self, happened: Happened, path: str, text: str, spots: Sequence[Point], taken: Sequence[Area], solid: Sequence[Area]
    ) -> Badge:
        """Return a badge at the first position where it covers nothing."""
        pills = [one.pill.area.grown(9) for one in self.pieces.frames if one.pill]
        badges = (Badge(happened, path, Text(x, y + 3.6, text, "badge")) for x, y in chain(spots, around(spots[0])))
        blocked = [area.grown(1) for area in (*taken, *pills, *solid)]
        first = Badge(happened, path, Text(spots[0][0], spots[0][1] + 3.6, text, "badge"))
        return next((one for one in badges if not any(one.area.meets(area) for area in blocked)), first)

    def rewire(self, wire: WirePath, prefix: str) -> None:
        """Give a wire the style of a changed edge."""
        ends = prefix + wire.source, prefix + wire.target, wire.port
        self.pieces.wires = [
            replace(one, style="rewired") if (one.source, one.target, one.port) == ends else one for one in self.pieces.wires
        ]

    # -- notes

    def note(self, notes: Sequence[Note], column: Sequence[int], x: float, top: float, foot: float) -> None:
        """Add a column of notes, each as near to the height of its change as the others allow."""
        heights = [high(notes[number]) for number in column]
        tops = spread(heights, [foot + self.height(self.found[number]) for number in column], top, foot)
        for number, start in zip(column, tops, strict=True):
            happened = self.found[number].happened
            self.badges.append(Badge(happened, "", Text(x + 13, start + 11, f"{SIGNS[happened]} {number + 1}", "badge")))
            self.pieces.texts += [
                Text(x + INDENT, start + 11 + LINE * line, text, role, "start") for line, (text, role) in enumerate(notes[number])
            ]


def on(dot: Dot, a: Point, b: Point) -> bool:
    """Return whether a fork lies on a segment of a wire."""
    return min(a[0], b[0]) - 1 < dot.x < max(a[0], b[0]) + 1 and min(a[1], b[1]) - 1 < dot.y < max(a[1], b[1]) + 1
