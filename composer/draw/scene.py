"""A drawing as positioned things: what every writer is given, whatever it writes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, TypeAlias

from blocks.core.look import BlockIcon, Hue
from composer.draw.style.text_metrics import enlarged, letters_width

Point: TypeAlias = tuple[float, float]
"""To the right and downwards, in pixels of a page of natural size."""
Role: TypeAlias = Literal[
    "heading",
    "facts",
    "title",
    "expert",
    "detail",
    "row",
    "params",
    "shape",
    "port",
    "chip",
    "tick",
    "header",
    "pill",
    "sign",
    "badge",
]
"""What a text is for, which decides how it looks."""
Anchor: TypeAlias = Literal["start", "middle", "end"]
Style: TypeAlias = Literal["main", "side", "cross", "expert", "idle", "loss", "loop", "far", "measured", "rewired"]
"""What a wire carries: the stream, something from the side, another stream, a visit of an expert or none, a loss, a state,
what is called by its name, or sizes alone; or, where two models are compared, something else than in the other."""
DOTTED: frozenset[Style] = frozenset({"idle", "measured"})
DASHED: frozenset[Style] = frozenset({"loss", "loop"})
Happened: TypeAlias = Literal["added", "removed", "replaced", "altered", "rewired", "shared"]
"""What became of a thing from one model to another."""


@dataclass(frozen=True, slots=True)
class Font:
    """Size in pixels, and weight."""

    size: float
    bold: bool = False


FONTS: dict[Role, Font] = {
    "heading": Font(20, True),
    "facts": Font(11.5),
    "title": Font(13, True),
    "expert": Font(11, True),
    "detail": Font(10.5),
    "row": Font(10.5, True),
    "params": Font(10),
    "shape": Font(10),
    "port": Font(10),
    "chip": Font(10),
    "tick": Font(10),
    "header": Font(11),
    "pill": Font(12.5, True),
    "sign": Font(12, True),
    "badge": Font(10, True),
}


@cache
def _font(role: Role, enlarged: float) -> Font:
    usual = FONTS[role]
    return replace(usual, size=usual.size * enlarged)


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def grown(self, by: float) -> Area:
        """The rectangle with a margin, which may be negative."""
        return Area(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def reach(self, side: int) -> float:
        """How far from x = 0 it goes to a side: -1 or 1."""
        return self.right if side > 0 else -self.left

    def meets(self, other: Area) -> bool:
        """Whether the two share a point inside."""
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text at its baseline."""

    x: float
    y: float
    text: str
    role: Role
    anchor: Anchor = "middle"
    enlarged: float = field(default_factory=enlarged.get)

    @property
    def font(self) -> Font:
        """That of its role, as large as it is here."""
        return _font(self.role, self.enlarged)

    @property
    def area(self) -> Area:
        """What the letters cover."""
        font = self.font
        width = letters_width(self.text, font.size, bold=font.bold)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Area(left, self.y - 0.74 * font.size, left + width, self.y + 0.22 * font.size)


@dataclass(frozen=True, slots=True)
class Swatch:
    """Cells of a map of layers beside what these layers have."""

    kinds: tuple[int, ...]


Icon: TypeAlias = BlockIcon | Swatch
ICON = 28.0
"""An icon's width and height."""
SWATCH = 9.0
"""Of a cell; the next one stands right of it."""


@dataclass(frozen=True, slots=True)
class PlacedIcon:
    """An icon with its upper left corner."""

    icon: Icon
    x: float
    y: float

    @property
    def area(self) -> Area:
        """What it covers."""
        wide, high = (SWATCH * len(self.icon.kinds), SWATCH) if isinstance(self.icon, Swatch) else (ICON, ICON)
        return Area(self.x, self.y, self.x + wide, self.y + high)


@dataclass(frozen=True, slots=True)
class About:
    """What a thing on the page stands for."""

    path: str
    """Of the node, `layers.attn.body`; a folded repeat has no index."""
    tip: str = ""
    """What is shown, in one line: title, detail, parameters."""
    lines: tuple[int, int] | None = None
    """The first and the last line in the recipe's text; none for what stands in another file."""
    parameters: int = 0
    """How many are learned here, in all places that it stands for; those of the things inside it not counted."""
    covers: tuple[str, ...] = ()
    """Paths of nodes that are not drawn by themselves but in it."""
    description: str = ""
    """What is set, shown or not, and how parameters start."""


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

    @property
    def area(self) -> Area:
        """The rectangle of the border."""
        return Area(self.x, self.y, self.x + self.width, self.y + self.height)


RADIUS = 9.0
"""Of a merge."""


@dataclass(frozen=True, slots=True)
class MergeCircle:
    """A circle where streams become one."""

    about: About
    x: float
    y: float
    sign: Literal["+", "×", "Σ", "‖"]

    @property
    def area(self) -> Area:
        """The square around the circle."""
        return Area(self.x - RADIUS, self.y - RADIUS, self.x + RADIUS, self.y + RADIUS)


@dataclass(frozen=True, slots=True)
class Strip:
    """The layers of a repeat whose passes differ: a cell for each, the first below."""

    x: float
    y: float
    width: float
    height: float
    kinds: tuple[int, ...]
    """Of each pass: 0 for the most frequent one."""
    ticks: tuple[Text, ...]

    @property
    def area(self) -> Area:
        """The rectangle of all cells."""
        return Area(self.x, self.y, self.x + self.width, self.y + self.height)


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

    @property
    def area(self) -> Area:
        """The rectangle of the border."""
        return Area(self.x, self.y, self.x + self.width, self.y + self.height)


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


@dataclass(frozen=True, slots=True)
class Dot:
    """Where a wire forks."""

    x: float
    y: float
    faint: bool = False
    """Whether it fades, with all the wires that meet here."""


@dataclass(frozen=True, slots=True)
class Chip:
    """The name of a value that comes from far away, or goes there, in place of a long wire."""

    about: About
    text: Text
    source: str
    target: str
    port: str = ""


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
        letters = self.text.area
        return Area(letters.left - 5, self.text.y - 11, letters.right + 5, self.text.y + 4)


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
    chips: tuple[Chip, ...] = ()
    rings: tuple[Ring, ...] = ()
    badges: tuple[Badge, ...] = ()
    faint: frozenset[str] = frozenset()
    """Paths of what is the same in the other model, and fades."""
    description: str = ""
    """Of the whole model: its task, and what it is given."""
