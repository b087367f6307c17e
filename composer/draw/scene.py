"""A drawing as positioned things: what every writer is given, whatever it writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from blocks.core.look import Hue, Sign
from composer.draw.about import About
from composer.draw.geometry import Area, PlacedIcon, Point, Text

CARDS, CARD_APART = 2, 4.0
"""Behind what stands for several side by side, and from one to the next, to the right and upwards."""
CARD_ROOM = CARDS * CARD_APART
"""How far they reach."""
Style: TypeAlias = Literal["main", "side", "cross", "expert", "idle", "loss", "loop", "far", "measured", "rewired"]
"""What a wire carries: the stream, something from the side, another stream, a visit of an expert or none, a loss, a state,
what is called by its name, or sizes alone; or, where two models are compared, something else than in the other."""
DOTTED: frozenset[Style] = frozenset({"idle", "measured"})
DASHED: frozenset[Style] = frozenset({"loss", "loop"})
Direction: TypeAlias = Literal["up", "right"]
"""Where the stream of a drawing runs to."""
Places: TypeAlias = Literal["", "fewer", "more"]
"""Whether a block gives fewer or more places along time, height or width than it reads."""
Side: TypeAlias = Literal["left", "right", "top", "bottom"]
UPRIGHT: tuple[Side, Side] = ("top", "bottom")
LEVEL: tuple[Side, Side] = ("right", "left")
"""Where a stream leaves that runs up or down, and to the right or to the left."""


@dataclass(frozen=True, slots=True)
class Slant:
    """How a box narrows."""

    toward: Side
    """Where it is narrower."""
    by: float
    """How far the corners of that side stand back, on either side."""


Happened: TypeAlias = Literal["added", "removed", "replaced", "altered", "rewired", "shared"]
"""What became of a thing from one model to another."""


@dataclass(frozen=True, slots=True)
class Box:
    """A block."""

    about: About
    hue: Hue
    x: float
    y: float
    width: float
    height: float
    texts: tuple[Text, ...]
    icons: tuple[PlacedIcon, ...] = ()
    dashed: bool = False
    """Whether it is not computed for every token, or only in training."""
    double: bool = False
    """Whether it takes a second stream."""
    frame: str = ""
    """Key of the innermost frame around it; nothing where there is none."""
    kind: str = ""
    """Where kinds of passes of a repeat are drawn side by side, the number of the kind that it belongs to: `#1`, the innermost
    repeat first.
    """
    block: str = ""
    """The block of the recipe that it is a use of, where its title begins with the name of this one."""
    shade: int | None = None
    """How dark it is where colors tell a size, from 0 to 4; nothing where they tell kinds of blocks."""
    places: Places = ""
    """Whether it gives fewer or more places than it reads, for which it becomes narrower or wider along the stream."""
    slant: Slant | None = None
    """That, where wires tell which way the stream goes through it."""
    parallel: bool = False
    """Whether it stands for several that read none of each other, which cards behind it show."""

    @property
    def area(self) -> Area:
        """The rectangle of the border, and around one with slanted sides."""
        return Area(self.x, self.y, self.x + self.width, self.y + self.height)

    @property
    def corners(self) -> tuple[Point, Point, Point, Point]:
        """Those of the border, from the upper left one to the right."""
        area, by = self.area, self.slant.by if self.slant else 0.0
        toward = self.slant.toward if self.slant else ""
        return (
            (area.left + by * (toward == "top"), area.top + by * (toward == "left")),
            (area.right - by * (toward == "top"), area.top + by * (toward == "right")),
            (area.right - by * (toward == "bottom"), area.bottom - by * (toward == "right")),
            (area.left + by * (toward == "bottom"), area.bottom - by * (toward == "left")),
        )

    def moved(self, dx: float, dy: float) -> Box:
        """Return the same elsewhere, with all that is in it."""
        texts = tuple(text.moved(dx, dy) for text in self.texts)
        icons = tuple(icon.moved(dx, dy) for icon in self.icons)
        return replace(self, x=self.x + dx, y=self.y + dy, texts=texts, icons=icons)


MergeSign: TypeAlias = Sign | Literal["Σ"]
"""That of a block, or of the sum over experts."""
RADIUS = 9.0
"""Of a merge."""


@dataclass(frozen=True, slots=True)
class MergeCircle:
    """A circle where streams become one."""

    about: About
    x: float
    y: float
    sign: MergeSign
    frame: str = ""
    """Key of the innermost frame around it; nothing where there is none."""
    kind: str = ""
    """Where kinds of passes of a repeat are drawn side by side, the number of the kind that it belongs to: `#1`, the innermost
    repeat first.
    """

    @property
    def area(self) -> Area:
        """The square around the circle."""
        return Area(self.x - RADIUS, self.y - RADIUS, self.x + RADIUS, self.y + RADIUS)

    def moved(self, dx: float, dy: float) -> MergeCircle:
        """Return the same elsewhere."""
        return replace(self, x=self.x + dx, y=self.y + dy)


UNTOLD = -1
"""In place of the kind of a pass, where a map has no color for each kind: an empty cell, from which wires may lead."""


@dataclass(frozen=True, slots=True)
class Strip:
    """The layers of a repeat whose passes differ: a cell for each, the first below."""

    x: float
    y: float
    width: float
    height: float
    kinds: tuple[int, ...]
    """Of each pass: 0 for the most frequent one, `UNTOLD` of all where there are too many."""
    ticks: tuple[Text, ...]
    level: bool = False
    """Whether the first one is at the left rather than below."""

    @property
    def area(self) -> Area:
        """The rectangle of all cells."""
        return Area(self.x, self.y, self.x + self.width, self.y + self.height)

    def exit_of(self, index: int) -> Point:
        """Return where a wire starts at the right of a cell, or below it where the first cell is at the left."""
        share = (index + 0.5) / len(self.kinds)
        if self.level:
            return self.x + self.width * share, self.y + self.height
        return self.x + self.width, self.y + self.height * (1 - share)

    def moved(self, dx: float, dy: float) -> Strip:
        """Return the same elsewhere."""
        ticks = tuple(tick.moved(dx, dy) for tick in self.ticks)
        return replace(self, x=self.x + dx, y=self.y + dy, ticks=ticks)


@dataclass(frozen=True, slots=True)
class Frame:
    """A border around what belongs together: a repeat, a group, the experts of a mixture."""

    about: About
    x: float
    y: float
    width: float
    height: float
    texts: tuple[Text, ...]
    pill: Text | None = None
    """How often it is passed through."""
    strip: Strip | None = None
    kinds: tuple[int, ...] = ()
    """Where the passes of a repeat differ, which kind each is."""
    icons: tuple[PlacedIcon, ...] = ()
    key: str = ""
    """Its path, and where passes of a repeat differ, behind it the numbers of the kinds that are drawn by themselves."""
    frame: str = ""
    """Key of the innermost frame around it; nothing where there is none."""
    parallel: bool = False
    """Whether it stands for several that read none of each other, which cards behind it show."""

    @property
    def area(self) -> Area:
        """The rectangle of the border."""
        return Area(self.x, self.y, self.x + self.width, self.y + self.height)

    def moved(self, dx: float, dy: float) -> Frame:
        """Return the same elsewhere, with all that is written at it."""
        return replace(
            self,
            x=self.x + dx,
            y=self.y + dy,
            texts=tuple(text.moved(dx, dy) for text in self.texts),
            pill=self.pill and self.pill.moved(dx, dy),
            strip=self.strip and self.strip.moved(dx, dy),
            icons=tuple(icon.moved(dx, dy) for icon in self.icons),
        )


def card_areas(boxes: Iterable[Box], frames: Iterable[Frame]) -> Iterator[Area]:
    """Yield what the cards behind boxes and frames cover, above these and right of them."""
    things: list[Box | Frame] = [*boxes, *frames]
    for area in (thing.area for thing in things if thing.parallel):
        left, right, high = area.left + CARD_APART, area.right + CARD_ROOM, area.top - CARD_ROOM
        yield Area(left, high, right, area.top)
        yield Area(area.right, area.top, right, area.bottom - CARD_APART)


@dataclass(frozen=True, slots=True)
class WirePath:
    """A line from one thing to another."""

    source: str
    target: str
    """Paths; of a model's input or output, its name."""
    points: tuple[Point, ...]
    """The corners, which writers round; of a curve, four control points."""
    port: str = ""
    """The target's port, where it is not the first."""
    style: Style = "main"
    arrow: bool = True
    curved: bool = False
    partial: bool = False
    """Whether only some passes have it."""
    from_inside: bool = False
    """Whether it starts at a border and goes on inside of it, rather than out of it."""
    to_inside: bool = False
    """Whether it comes to a border from inside of it."""
    passage: str = ""
    """Which it is of several values that go through a border: of the one that it starts at and goes on inside of, else of the one
    where it ends; nothing for the first.
    """
    kind: str = ""
    """Of the boxes and frames that it leads from and to, where there are several of one path."""
    place: str = ""
    """Which it is of the values that its target reads in an order, counted from 1, or several; nothing where order is nothing."""

    def through(self, points: Iterable[Point]) -> WirePath:
        """Return the same on another way."""
        return replace(self, points=tuple(points))

    def moved(self, dx: float, dy: float) -> WirePath:
        """Return the same elsewhere."""
        return self.through((x + dx, y + dy) for x, y in self.points)


@dataclass(frozen=True, slots=True)
class Dot:
    """Where a wire forks."""

    x: float
    y: float
    faint: bool = False
    """Whether it fades, with all the wires that meet here."""

    def moved(self, dx: float, dy: float) -> Dot:
        """Return the same elsewhere."""
        return Dot(self.x + dx, self.y + dy, self.faint)


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of a value that comes from far away, or goes there, in place of a long wire."""

    about: About
    text: Text
    source: str
    target: str
    port: str = ""

    def moved(self, dx: float, dy: float) -> Reference:
        """Return the same elsewhere."""
        return replace(self, text=self.text.moved(dx, dy))


@dataclass(frozen=True, slots=True)
class Ring:
    """A line around a thing that differs from the other model."""

    happened: Happened
    path: str
    """Of the thing."""
    area: Area


@dataclass(frozen=True, slots=True)
class Badge:
    """The sign and the number of a change, at a thing, a wire or a note."""

    happened: Happened
    path: str
    """Of what it stands at; of a wire, its target; of a note, none."""
    text: Text

    @property
    def area(self) -> Area:
        """The rectangle of the badge."""
        inner = self.text.area
        return Area(inner.left - 5, self.text.y - 11, inner.right + 5, self.text.y + 4)


SWATCH_SIZE = 14.0
"""Width and height of a color in a legend."""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A color of boxes, and what it tells."""

    x: float
    y: float
    """The upper left corner of the color."""
    text: Text
    hue: Hue
    shade: int | None = None
    """How dark it is, where colors tell a size."""


@dataclass(frozen=True, slots=True)
class DilationFan:
    """What one position reads through several convolutions: a row of positions for what the first one reads, and one above it for
    what each gives.
    """

    about: About
    """The repeat whose convolutions they are."""
    x: float
    y: float
    width: float
    height: float
    """Of the border."""
    texts: tuple[Text, ...]
    first: Point
    """The first position of the lowest row."""
    apart: float
    rise: float
    """From one position to the next, and from one row to the next."""
    positions: int
    """In each row."""
    reads: tuple[tuple[int, ...], ...]
    """For each row but the lowest, which positions of the row below one reads, counted from itself."""
    end: int
    """The number of the position in the highest row of which all that it reads is told apart."""

    @property
    def area(self) -> Area:
        """The rectangle of the border."""
        return Area(self.x, self.y, self.x + self.width, self.y + self.height)

    def moved(self, dx: float, dy: float) -> DilationFan:
        """Return the same elsewhere."""
        texts = tuple(text.moved(dx, dy) for text in self.texts)
        return replace(self, x=self.x + dx, y=self.y + dy, texts=texts, first=(self.first[0] + dx, self.first[1] + dy))

    def point(self, row: int, position: int) -> Point:
        """Return where a position of a row is, both counted from 0, the lowest row first."""
        return self.first[0] + self.apart * position, self.first[1] - self.rise * row

    @property
    def told(self) -> tuple[frozenset[int], ...]:
        """In each row from the lowest one, what the end reads."""
        found = [frozenset({self.end})]
        for offsets in reversed(self.reads):
            found.append(frozenset(position + offset for position in found[-1] for offset in offsets))
        return tuple(reversed(found))

    def dots(self, *, told: bool) -> Iterator[Point]:
        """Yield where the positions are that are `told` apart, or all others."""
        for row, own in enumerate(self.told):
            yield from (self.point(row, position) for position in range(self.positions) if (position in own) is told)

    def lines(self, *, told: bool) -> Iterator[tuple[Point, Point]]:
        """Yield a line from each position to each one that it reads in the row below: those `told` apart, or all others."""
        for row, offsets in enumerate(self.reads, 1):
            for position in range(self.positions):
                below = [position + offset for offset in offsets if 0 <= position + offset < self.positions]
                if (position in self.told[row]) is told:
                    yield from ((self.point(row, position), self.point(row - 1, one)) for one in below)


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole drawing; what comes later lies above."""

    name: str
    width: float
    height: float
    texts: tuple[Text, ...]
    """The title, the facts, and shapes beside wires."""
    frames: tuple[Frame, ...] = ()
    """Outer ones first."""
    wires: tuple[WirePath, ...] = ()
    dots: tuple[Dot, ...] = ()
    boxes: tuple[Box, ...] = ()
    merges: tuple[MergeCircle, ...] = ()
    references: tuple[Reference, ...] = ()
    rings: tuple[Ring, ...] = ()
    badges: tuple[Badge, ...] = ()
    faint: frozenset[str] = frozenset()
    """Paths of what is the same in the other model, and fades."""
    description: str = ""
    """Of the whole model: its task, and what it is given."""
    legend: tuple[LegendEntry, ...] = ()
    direction: Direction = "up"
    """Where the stream runs to."""
    details: tuple[Detail, ...] = ()
    """Closed blocks from inside, beside the drawing."""
    fan: DilationFan | None = None
    """What one position reads through the convolutions of a repeat, beside that."""

    @property
    def drawings(self) -> tuple[Scene, ...]:
        """It and those of its details: all that stands for the model on its page."""
        return self, *(detail.inside for detail in self.details)

    @property
    def has_pictures(self) -> bool:
        """Whether there are cards behind something, or a picture of a product."""
        things: list[Box | Frame] = [thing for one in self.drawings for thing in one.boxes]
        things += [thing for one in self.drawings for thing in one.frames]
        return any(thing.parallel or any(icon.picture for icon in thing.icons) for thing in things)


@dataclass(frozen=True, slots=True)
class Detail:
    """A block that is a closed box in a drawing, drawn from inside beside it."""

    about: About
    """The block."""
    stands_for: tuple[str, ...]
    """Paths of the boxes that it is the inside of, or like it but for numbers."""
    x: float
    y: float
    width: float
    height: float
    texts: tuple[Text, ...]
    """Its title, and of which box it is the inside where these differ."""
    inside: Scene
    """Its drawing, at its place on the page."""

    @property
    def area(self) -> Area:
        """The rectangle of the border."""
        return Area(self.x, self.y, self.x + self.width, self.y + self.height)
