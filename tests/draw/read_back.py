"""What a picture says, read from its SVG as a person would, and held against every pass of the model that it shows.

Nothing here knows how a drawing is made: the truth is the typed graph, in which each pass of a repeat is there by itself.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from math import floor, log10, prod
from typing import Any, TypeAlias

from blocks.core import Formula, Part, fields, size, spoken
from composer.graph.anatomy import wires_of
from composer.graph.describe import phrases
from composer.graph.formula_text import formula_text
from composer.graph.initial_values import start_of
from composer.graph.parameters import parameters
from composer.graph.passes.roll_layers.roll_layers import folded
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import TensorType
from composer.graph.visit import every_node, every_pass, walk
from tests.draw.read_ports import read_in
from tests.draw.read_squeezes import squeezed

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:\u00a0\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)(?:[ \u00a0]([KMBT])\b)?")
SHARE = re.compile(r"(\d+) of (\d+)")
ORDINAL = r"(\d+)(?:st|nd|rd|th)"
ROW = re.compile(
    rf"(\d+) of (\d+)|(?:(first and last|first|last|other|all|both)(?: (\d+))?|{ORDINAL}(?: (and|–) {ORDINAL})?)(?=: )"
)
"""How many of all passes of a repeat have something, or which: `3 of 4`, `first 2: `, `3rd and 5th: `, `both: `."""
TURN = re.compile(r"(\d+) × \(((?:[^()]|\([^()]*\))* · (?:[^()]|\([^()]*\))*)\)")
"""Blocks that come several times in turns."""
ACTIVATIONS = frozenset(["relu", "silu", "gelu", "sigmoid", "tanh", "softplus", "elu"])
"""What is a function of each number, by the word for it in a box around it."""
WIDTHS = re.compile(r"(?<!InstanceNorm )(?<![\d\u00a0])[\d\u00a0]+(?: (?:\||→) [\d\u00a0]+)* channels")
"""How many channels the blocks in branches give; not those of a norm."""
OPEN = re.compile(r"…|up to|\bvary\b|\bkinds\b|in the (?:first|last)\b|\bor\b|\|")
"""What says that values differ without naming all of them."""
LIST = re.compile(r"\d[\d.]*(?:[\u00a0 ]\d{3})*(?:, \d[\d.]*(?:[\u00a0 ]\d{3})*)+")
SERIES = re.compile(rf"({LIST.pattern})(?:, … (\d[\d.]*(?:[\u00a0 ]\d{{3}})*))?")
"""Values in the order of passes: of many, the first ones and the last."""
KEPT = re.compile(rf"in and out ({LIST.pattern})")
"""Widths of maps that give as many channels as they read, in the order of passes."""
COUNTED = re.compile(r"(?:^|[·+:] )× (\d+(?:, (?:… )?\d+)*)\b")
"""How many passes a repeat has; of several, each in their order, or the first ones and the last."""
PARALLEL = re.compile(r"^(\d+(?:, (?:… )?\d+)*) (?:in parallel$|parallel )")
"""How many passes a repeat has that do not read each other."""
GOES_ON = re.compile(r"(?:[,→×+:=]|\b(?:or|of|in|to|up|the|and))$")
"""How a line ends that is not the end of a fact."""
COMES_FROM = re.compile(r".→ |\d× \d")
"""How the end of a line and the next one are that go on with a fact."""
RANGE = re.compile(r"\b(\w+)\((\d+)(?::(\d+))?\)")
"""Passes of a repeat, as the language names them."""
START = re.compile(r"(?:([\w.]+(?: and [\w.]+)*) )?\bstarts? at (-?\d[\d.]*(?:e-?\d+)?)")
"""At which number some parameters start, and which."""
TIMES = re.compile(r"(?:(?<=^)|(?<=[(,·] )|(?<=\())(\d+) × (?=[^\W\d])| (\d+) times(?= ·|$)")
"""How often a closed box has a block."""
SCALE = re.compile(r"(?:(?<=^)|(?<=· ))× [\d.]+(?: · |$)")
"""A block that multiplies by a number: behind how often something is there stands what."""
MORE = re.compile(r"(?:^| · )…(?=$| · | \+ skip(?:$| · ))")
"""What stands behind the blocks that a closed box names, where there are more in it."""
SHARED = re.compile(r"([\d.]+(?: [KMBT])?) shared")
"""The parameters that all passes of a repeat have together."""
SKIP = re.compile(r" \+ skip(?=$| · )")
"""What stands behind blocks around which the input goes."""
PARAMETERS = re.compile(r"[\d.]+(?: [KMBT])?(?:,? (?:some )?frozen)?(?: parameters?)?")
CHAIN = re.compile(r"\d[\d.\u00a0]*(?: → \d[\d.\u00a0]*){2,}")
"""The widths of a repeat from pass to pass, or of one block with a hidden width."""
REACH = 4.0
"""Pixels between an arrowhead and what it leads to."""
AT_NAME = 18.0
"""Pixels between an arrowhead and where the name begins that it leads to."""
IN_BRANCHES = re.compile(r" · | \+ shortcut | \| | → (?=\d+ × \d|[^\W\d])")
"""What stands between the blocks that a closed box names: in a row, around others, beside others and in a branch."""
MAX_SWATCH = 10.0
"""Pixels from which on a cell belongs to a map of layers rather than to the header of a frame."""
BELOW = 40.0
"""Pixels from a box to what stands at the wire below it."""
BELOW_TURNED = 160.0
"""The same where the stream runs to the right, and such a text is as long as the wire."""
UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


@dataclass(frozen=True)
class Place:
    """A rectangle on the page."""

    left: float
    top: float
    right: float
    bottom: float

    def holds(self, other: Place) -> bool:
        """Return whether another rectangle lies in it."""
        return self.left <= other.left and self.top <= other.top and other.right <= self.right and other.bottom <= self.bottom

    def touches(self, x: float, y: float, reach: float) -> bool:
        """Return whether a point lies in it or so near."""
        return self.left - reach <= x <= self.right + reach and self.top - reach <= y <= self.bottom + reach


Cell: TypeAlias = tuple[str, str]
"""The color of a small square, by fill and opacity."""
EMPTY: Cell = ("", "")
"""That of a square in the color of the page, which says nothing of a layer."""


@dataclass
class DrawnBox:
    """A box or a circle on the page."""

    path: str
    place: Place
    tip: str
    description: str
    lines: list[str]
    swatches: list[list[Cell]] = field(default_factory=list)
    """The colors of small squares in it, row by row."""
    name: str = ""
    """What small letters at its left say, which is what its node is called."""
    merged: list[str] = field(default_factory=list)
    """The nodes that it stands for, where these are several."""
    letters: list[str] = field(default_factory=list)
    """How each line is written: large and bold, or small."""
    corners: list[tuple[float, float]] = field(default_factory=list)
    """Those of its border, from the upper left one to the right, where its sides are slanted."""


@dataclass
class DrawnFrame:
    """A frame with what is written at its border."""

    path: str
    place: Place
    tip: str
    lines: list[str]
    cells: list[Cell]
    """The map of its layers, the first one first."""
    swatches: list[list[Cell]] = field(default_factory=list)
    """The colors of small squares in its header, which are those of some layers in a map."""
    layers: list[Place] = field(default_factory=list)
    """Where the layers of the map stand."""


@dataclass
class DrawnWire:
    """A wire."""

    source: str
    target: str
    port: str
    start: tuple[float, float]
    tip: tuple[float, float] | None
    """Where its arrowhead points; none without one."""
    idle: bool
    """Whether nothing flows along it for this token."""
    corners: list[tuple[float, float]] = field(default_factory=list)
    """Where it starts, turns and ends."""


@dataclass
class Picture:
    """All of it."""

    boxes: list[DrawnBox]
    frames: list[DrawnFrame]
    wires: list[DrawnWire]
    texts: list[tuple[float, float, str]]
    """What stands on the page by itself."""
    references: list[tuple[float, float, str, str]] = field(default_factory=list)
    """Where a wire begins or ends with a name, of what, and the name."""
    below: float = BELOW
    details: list[Place] = field(default_factory=list)
    """Where closed blocks are drawn from inside, beside the figure."""
    fans: list[tuple[float, float]] = field(default_factory=list)
    """Where wires end from a border to what is inside of it: of passes that differ, each begins there."""

    def part_of(self, x: float, y: float) -> Place | None:
        """Return the detail that a point lies in; none for one in the figure itself."""
        return next((one for one in self.details if one.touches(x, y, 0.0)), None)

    def of_part(self, places: list[tuple[str, Place]], part: Place | None) -> list[tuple[str, Place]]:
        """Return those of some paths and places that lie in a detail; those in the figure itself where it is none."""
        return (
            [(path, place) for path, place in places if self.part_of(place.left, place.top) == part] if self.details else places
        )


def read(svg: str) -> Picture:
    """Return what a picture shows."""
    root = ET.fromstring(svg)
    page = root.find(f"{SVG}rect[@class='paper']")
    paper = "" if page is None else page.get("fill", "")
    free = [(float(text.get("x", "0")), float(text.get("y", "0")), text.text or "") for text in root.findall(f"{SVG}text")]
    picture = Picture([], [], [], free)
    for group in root.iter(f"{SVG}g"):
        kinds = (group.get("class") or "").split()
        tip, described = (group.findtext(f"{SVG}{tag}") or "" for tag in ("title", "desc"))
        lines = [with_dots(text.text or "") for text in group.findall(f"{SVG}text")]
        groups = [cells for inner in group.findall(f"{SVG}g") if (cells := inner.findall(f"{SVG}rect"))]
        small = [
            all(float(one.get(side, "0")) <= MAX_SWATCH for one in cells for side in ("width", "height")) for cells in groups
        ]
        colors = [[color_of(one, paper) for one in cells] for cells in groups]
        swatches = [one for one, is_small in zip(colors, small, strict=True) if is_small]
        cells = [cell for one, is_small in zip(colors, small, strict=True) if not is_small for cell in one]
        if "node" in kinds:
            names = (one.text or "" for one in group.findall(f"{SVG}text[@class='m name']") if one.get("text-anchor") is None)
            several = group.get("data-merged", "").split()
            letters = [text.get("font-size", "") + text.get("font-weight", "") for text in group.findall(f"{SVG}text")]
            if len({*letters[:2]}) < len(lines[:2]) and COUNTED.match(lines[1]):  # of a title in two lines
                lines[:2], letters = [" · ".join(lines[:2])], letters[1:]
            box = DrawnBox(
                group.get("data-id", ""),
                place(group),
                tip,
                described,
                lines,
                swatches,
                next(names, ""),
                several,
                letters,
                outline(group),
            )
            picture.boxes.append(box)
        elif "detail" in kinds:
            picture.details.append(place(group))
        elif "reference" in kinds:
            said = group.find(f"{SVG}text")
            assert said is not None
            at = float(said.get("x", "0")), float(said.get("y", "0"))
            picture.references.append((*at, group.get("data-id", ""), said.text or ""))
        elif "frame" in kinds:
            layers = [
                rectangle(one) for cells_of, is_small in zip(groups, small, strict=True) if not is_small for one in cells_of
            ]
            frame = DrawnFrame(group.get("data-id", ""), place(group), tip, lines, cells, swatches, layers)
            picture.frames.append(frame)
        elif "edge" in kinds and group.get("data-a") is not None:
            picture.wires.append(wire(group))
        elif "edge" in kinds:
            picture.fans.append(wire(group).corners[-1])
    return picture


def with_dots(line: str) -> str:
    """Return a line with the dots that stand between other facts where a semicolon stands beside a formula.

    >>> with_dots("2 × Linear; σ(gate)·value;"), with_dots("× 3 Layer (first: conv; other 2: pool)")
    ('2 × Linear · σ(gate)·value', '× 3 Layer (first: conv; other 2: pool)')
    """
    return line if re.search(r"\([^()]*: .*; ", line) else line.removesuffix(";").replace("; ", " · ")


def whole(box: DrawnBox) -> list[str]:
    """Return the lines of an upright box as one would read them: a title in several lines, facts below it in several; the rows
    of kinds stay as they are.
    """
    if split_rows(box.lines)[0]:
        return box.lines
    found: list[tuple[str, str]] = []
    for line, letters in zip(box.lines, box.letters, strict=True):
        if found and found[-1][1] == letters:
            goes_on = letters == found[0][1] or GOES_ON.search(found[-1][0]) or COMES_FROM.match(f"{found[-1][0][-1]}{line}")
            found[-1] = (f"{found[-1][0]}{' ' if goes_on else ' · '}{line}", letters)
        else:
            found.append((line, letters))
    return [line for line, _ in found]


def with_brackets(box: DrawnBox) -> list[str]:
    """Return the lines of a box; where some end in brackets, as one would read them."""
    return whole(box) if any(line.count("(") != line.count(")") for line in box.lines) else box.lines


def from_the_left(picture: Picture) -> Picture:
    """Return a picture whose stream runs to the right as one whose stream runs up: a quarter of a turn to the left."""

    def place_of(one: Place) -> Place:
        return Place(one.top, -one.right, one.bottom, -one.left)

    def point(x: float, y: float) -> tuple[float, float]:
        return y, -x

    return Picture(
        [replace(box, place=place_of(box.place), lines=whole(box)) for box in picture.boxes],
        [replace(one, place=place_of(one.place), layers=[*map(place_of, one.layers)]) for one in picture.frames],
        [
            replace(one, start=point(*one.start), tip=one.tip and point(*one.tip), corners=[point(*at) for at in one.corners])
            for one in picture.wires
        ],
        [(*point(x, y), text) for x, y, text in picture.texts],
        [(*point(x, y), path, name) for x, y, path, name in picture.references],
        BELOW_TURNED,
        [*map(place_of, picture.details)],
        [point(*one) for one in picture.fans],
    )


def color_of(cell: ET.Element, paper: str) -> Cell:
    """Return the color of a small square."""
    color = cell.get("fill", ""), cell.get("fill-opacity", "")
    return EMPTY if color == (paper, "") else color


def rectangle(shape: ET.Element) -> Place:
    """Return where a rectangle is."""
    x, y, width, height = (float(shape.get(name, "0")) for name in ("x", "y", "width", "height"))
    return Place(x, y, x + width, y + height)


def place(group: ET.Element) -> Place:
    """Return where a box, a circle or a frame stands: its first shape."""
    for shape in group:
        at = {name: float(value) for name, value in shape.items() if re.fullmatch(r"-?[\d.]+", value)}
        if shape.tag == f"{SVG}rect":
            return rectangle(shape)
        if shape.tag == f"{SVG}circle":
            return Place(at["cx"] - at["r"], at["cy"] - at["r"], at["cx"] + at["r"], at["cy"] + at["r"])
        if shape.tag == f"{SVG}path":
            xs, ys = zip(*round_corners(shape.get("d", "")), strict=True)
            return Place(min(xs), min(ys), max(xs), max(ys))
    raise AssertionError(ET.tostring(group))


def outline(group: ET.Element) -> list[tuple[float, float]]:
    """Return the corners of a box with slanted sides, from the upper left one to the right; nothing for others."""
    first = next((shape for shape in group if shape.tag in {f"{SVG}{name}" for name in ("rect", "circle", "path")}), None)
    if first is None or first.tag != f"{SVG}path":
        return []
    last, *others = reversed(round_corners(first.get("d", "")))
    return [last, *reversed(others)]


def round_corners(drawn: str) -> list[tuple[float, float]]:
    """Return the corners of a closed path that are round: the control points of its curves."""
    found: list[tuple[float, float]] = []
    x = y = 0.0
    for letter, said in re.findall(r"([Mlhvq])([^A-Za-z]*)", drawn):
        at = [*map(float, said.split())]
        if letter == "q":
            found.append((x + at[0], y + at[1]))
        dx, dy = (0.0, at[0]) if letter == "v" else (at[0], 0.0) if letter == "h" else (at[-2], at[-1])
        x, y = (dx, dy) if letter == "M" else (x + dx, y + dy)
    return found


def wire(group: ET.Element) -> DrawnWire:
    """Return a wire."""
    path, head = group.find(f"{SVG}path"), group.find(f"{SVG}polygon")
    assert path is not None
    corners = corners_of(path.get("d", ""))
    tip = None
    if head is not None:
        x, y = head.get("points", "").split()[0].split(",")
        tip = float(x), float(y)
    ends = group.get("data-a", ""), group.get("data-b", ""), group.get("data-port", "")
    return DrawnWire(*ends, corners[0], tip, "e-idle" in group.get("class", ""), corners)


def corners_of(drawn: str) -> list[tuple[float, float]]:
    """Return where the pieces of a path begin and end."""
    corners: list[tuple[float, float]] = []
    for letter, said in re.findall(r"([Mlhvqc])([^A-Za-z]*)", drawn):
        *_, x, y = (0.0, *map(float, said.split()))
        dx, dy = (0.0, y) if letter == "v" else (y, 0.0) if letter == "h" else (x, y)
        corners.append((dx, dy) if letter == "M" else (corners[-1][0] + dx, corners[-1][1] + dy))
    return corners


def numbers(text: str) -> list[float]:
    """Return the numbers in a text, `30.1 M` and `√768` as what they stand for; but for shares of a width, places of axes and
    counts of blocks; which passes a loss reads is held against the model elsewhere.
    """
    text = START.sub("", text)  # held against the initial values elsewhere
    text = re.sub(r"(?:\bweights? = |\bshared with )\S+", "", text)  # whose weights these are, by a path
    text = re.sub(
        r"\bof all \d+ [a-z_]+|\bof [a-z_]+ \d+ … \d+|[\d.]+%|\baxis -?\d+|\b\d+ (?:blocks|kinds|others|masks)\b", "", text
    )
    text = re.sub(r"√(\d[\d\u00a0]*)", lambda root: str(float(root[1].replace("\u00a0", "")) ** 0.5), text)
    return [float(said.replace("\u00a0", "")) * UNITS.get(unit, 1) for said, unit in NUMBER.findall(text)]


# -- the truth


@dataclass(frozen=True)
class Truth:
    """What may be said of a node in one pass."""

    path: str
    place: str
    """Its path in the `state_dict`."""
    kind: str
    numbers: frozenset[float]
    count: int
    """Parameters of its own."""
    loops: tuple[tuple[str, frozenset[float]], ...] = ()
    """What may be said of each layer and direction of a recurrent block, with the end of the names of its parameters."""

    def of_loops(self, steps: list[str]) -> list[Truth]:
        """Return what may be said of a part of a recurrent block, in each layer; of both directions where the path names none."""
        back = {"backward": True, "forward": False}.get(steps[0])
        chosen = [said for end, said in self.loops if back is None or len(self.loops) == 1 or end.endswith("_reverse") == back]
        return [replace(self, numbers=said, count=0, loops=()) for said in chosen]

    def of_part(self, steps: list[str], owned: Mapping[str, int]) -> Truth:
        """Return what may be said of a part of it: of what it computes, or of an expert, which tells its number from one on."""
        count = owned.get(".".join([self.place, *steps]), 0)
        numbered = {int(step) + 1.0 for step in steps if step.isdigit()}
        return replace(self, numbers=self.numbers | numbered | ({count} if count else set())) if steps else self

    def has(self, number: float) -> bool:
        """Return whether a number is one of it; of large ones, three digits are said."""
        known = (*self.numbers, *([self.count] if self.count else ()))
        return any(near(said, one) for one in known for said in ([number, 1 / number] if number else [number]))


class Model:
    """A model, each pass by itself; or what is in one pass `alone` of a repeat of it, `stages.0`."""

    def __init__(self, typed: TypedProgram, alone: str = "") -> None:
        self.typed, self.alone = typed, alone
        self.squeezed = squeezed(typed)
        """What gives the value of a squeeze, by the path of that."""
        self.owned: dict[str, int] = {}
        for entry in parameters(typed):
            if not entry.tied_to:
                steps = entry.name.split(".")
                for end in range(len(steps) + 1):
                    holder = ".".join(steps[:end])
                    self.owned[holder] = self.owned.get(holder, 0) + prod(entry.parameter.shape)
        self.starts: dict[str, dict[str, float | None]] = {}
        """At which number parameters start, by the path of their block and their name below it; none for what is drawn."""
        for entry in parameters(typed):
            init = start_of(typed.untyped, entry) or entry.parameter.init
            constant = init.how == "constant" and not init.formula
            for end in [at.start() for at in re.finditer(r"\.", entry.name)] if not entry.tied_to else ():
                held_by = self.starts.setdefault(entry.name[:end], {})
                held_by[entry.name[end + 1 :]] = float(init.value) if constant else None
        self.inputs = {one.name: typed.inputs[one.name] for one in typed.untyped.inputs}
        self.ports: dict[str, list[frozenset[float]]] = {}
        """The sizes of what comes into a group at a port, or into a repeat from a node, in each pass."""
        self.by_path: dict[str, list[Truth]] = {}
        """What may be said of the nodes of a path, in each pass."""
        self.kinds: dict[str, list[list[object]]] = {}
        """What the passes of a repeat consist of, for each time that it stands in the model."""
        self.counts: dict[str, list[list[int]]] = {}
        """The parameters of each pass of a repeat, for each time that it stands in the model."""
        self.held: dict[str, list[list[Truth]]] = {}
        """What may be said of all that is in each pass of a repeat, for each time that it stands in the model."""
        self.joins: dict[str, set[tuple[str, int]]] = {}
        """Which values of several are joined at a path, and of how many."""
        self.joined: dict[str, set[frozenset[float]]] = {}
        """The sizes of what is joined at a path."""
        self.skips = {*skips_in(typed), *skips_in(folded(typed).program)}  # of layers that are written one by one too
        """The passes and groups in which a sum reads an input of them."""
        self.shared: set[str] = set()
        """Repeats all of whose passes have the same parameters."""
        self.uses: dict[str, list[str]] = {}
        """Where each block of the recipe is, by the words for it."""
        self.parallel: dict[str, bool] = {}
        """Whether no pass of a repeat reads another one."""
        self.states: dict[str, TensorType] = {}
        """What scans hand on from step to step, by their paths and its name."""
        shared: set[str] = set()
        for visit in walk(typed.root, every_pass, every_node):
            node, path = visit.node, visit.path
            name = f"{alone}{plain(visit.path[len(alone) :])}"
            for one in sorted(shared):
                path = re.sub(rf"^{re.escape(one)}\.\d+", one, path)  # as its parameters are called
            if isinstance(node, TypedRepeat):
                if node.node.share is not None:
                    shared.add(path)
                    self.shared.add(name)
                for index in range(len(node.passes)):
                    if alone == f"{visit.path}.{index}":
                        count = self.owned.get(f"{path}.{node.prefix(index)}".rstrip("."), 0)
                        self.by_path[alone] = [Truth(alone, alone, "", frozenset([float(index)]), count)]
            if alone and not visit.path.startswith(f"{alone}."):
                continue
            if isinstance(node, TypedGroup) and node.node.part is not None:
                self.uses.setdefault(spoken(node.node.part.kind), []).append(visit.path)
            if isinstance(node, TypedScan):
                carried = {f"{name}.{one}": node.graph.inputs[one] for one in node.carried}
                self.states |= {one: type_ for one, type_ in carried.items() if isinstance(type_, TensorType)}
            if isinstance(node, TypedRepeat):
                self.parallel[name] = parallel(node)
                each = [self.owned.get(f"{path}.{node.prefix(index)}".rstrip("."), 0) for index in range(len(node.passes))]
                self.counts.setdefault(name, []).append(each)
                self.kinds.setdefault(name, []).append([contents(one) for one in node.passes])
                self.held.setdefault(name, []).append([held(visit.path, one) for one in node.passes])
            for port, type_ in of_ports(node, visit.graph):
                self.ports.setdefault(f"inputs/{name}.{port}", []).append(frozenset(numbers(" × ".join(map(size, type_.sizes)))))
            if isinstance(node, TypedBlock) and node.part.kind in ("add", "concat"):
                several = sum(len(wire.refs) for wire in node.node.wires)
                self.joins.setdefault(name, set()).add((node.part.kind, several))
                types = [one for one in node.outputs.values() if isinstance(one, TensorType)]
                self.joined.setdefault(name, set()).add(
                    frozenset(n for one in types for n in numbers(" × ".join(map(size, one.sizes))))
                )
            if isinstance(node, TypedBlock) and len(terms := summed(node)) > 1:
                self.joins.setdefault(name, set()).add(("add", len(terms)))
                self.joined.setdefault(name, set())
            said = frozenset(of_node(node))
            if isinstance(node, TypedRepeat):
                said |= {float(len(node.passes)), *map(float, each)}
            kind, loops = (node.part.kind, tuple(of_loops(node))) if isinstance(node, TypedBlock) else ("", ())
            self.by_path.setdefault(name, []).append(Truth(visit.path, path, kind, said, self.owned.get(path, 0), loops))

    def of(self, path: str) -> list[Truth]:
        """Return what may be said of a box: of its node in each pass, or of the block of which it is a part."""
        if self.alone and path == self.alone:
            return self.by_path.get(path, [])
        steps = path.split(".")
        for end in range(len(steps), 0, -1):
            if not steps[end - 1].isdigit() and (found := self.by_path.get(plain(".".join(steps[:end])))):
                found = [one for one in found if one.path == ".".join(steps[:end])] or found  # of a pass that is drawn by itself
                if steps[end:] and found[0].loops:
                    return [part for one in found for part in one.of_loops(steps[end:])]
                return [one.of_part(steps[end:], self.owned) for one in found]
        return []

    def with_inside(self, path: str, passes: list[Truth]) -> list[Truth]:
        """Return what may be said of a node in each pass; of a repeat, also of what is in it."""
        each_time = self.held.get(path, [])
        if len(each_time) != len(passes):
            return passes
        inner = [frozenset[float]().union(*(held.numbers for held in each)) for each in each_time]
        return [replace(one, numbers=one.numbers | more) for one, more in zip(passes, inner, strict=True)]

    def lengths(self, path: str) -> list[int]:
        """Return how many passes a repeat has, each time that it stands in the model."""
        return [len(each) for each in self.counts[path]]

    def passes_with_skip(self, path: str) -> set[str]:
        """Return the passes of something in which its input, or that of something in it, goes around blocks."""
        found: set[str] = set()
        for one in self.skips:
            steps, left = one.split("."), path.split(".")
            for end, step in enumerate(steps, 1):
                if left and step == left[0]:
                    left.pop(0)
                elif not step.isdigit():
                    break
                if not left and not (end < len(steps) and steps[end].isdigit()):
                    found.add(".".join(steps[:end]))
                    break
        return found

    def inside(self, path: str) -> list[list[Truth]]:
        """Return what may be said of all that is in something, of each path in each pass."""
        return [found for one, found in self.by_path.items() if one.startswith(f"{path}.")]


def skips_in(typed: TypedProgram) -> Iterator[str]:
    """Yield the passes and groups in which a sum reads an input of them."""
    for visit in walk(typed.root, every_pass, every_node):
        if isinstance(visit.node, TypedRepeat):
            yield from (f"{visit.path}.{index}" for index, one in enumerate(visit.node.passes) if adds_input(one))
        elif isinstance(visit.node, TypedGroup | TypedScan) and adds_input(visit.node.graph):
            yield visit.path


def adds_input(graph: TypedGraph) -> bool:
    """Return whether a sum reads an input of a graph as it is, beside something else."""
    inputs = {one.name for one in graph.graph.inputs}
    sums = (node for node in graph.nodes if isinstance(node, TypedBlock) and node.part.kind == "add")
    read = ([ref.node in inputs for wire in node.node.wires for ref in wire.refs] for node in sums)
    return any(any(one) and not all(one) for one in read)


def parallel(node: TypedRepeat) -> bool:
    """Return whether nothing in a pass of a repeat reads what another pass gives."""
    read = False
    for graph, given in zip(node.passes, node.node.passes, strict=True):
        names = read_in(graph)
        read |= any(ref.node == node.name and wire.port in names for wire in given.wires for ref in wire.refs)
    return len(node.passes) > 1 and not read


def held(path: str, graph: TypedGraph) -> Truth:
    """Return what may be said of all blocks of a pass."""
    nodes = [visit.node for visit in walk(graph, every_pass, every_node)]
    said = {number for node in nodes if isinstance(node, TypedBlock) for number in of_block(node)}
    said |= {float(len(node.passes)) for node in nodes if isinstance(node, TypedRepeat)}
    return Truth(path, path, "", frozenset(said), 0)


def contents(graph: TypedGraph) -> object:
    """Return what a pass consists of: its nodes with what is set in them and what they read, and how the axes of what is read of
    what it is given are called.
    """
    refs = [ref for node in graph.nodes for wire in wires_of(node.node) for ref in wire.refs]
    used = {ref.node for ref in (*refs, *(ref for _, ref in graph.graph.outputs))}
    inputs = [one for name, one in graph.inputs.items() if name in used]
    given = [[axis.name for axis in one.axes] for one in inputs if isinstance(one, TensorType)]
    nodes: list[object] = []
    for visit in walk(graph, every_pass, every_node):
        node = visit.node
        read = [(wire.port, *map(str, wire.refs)) for wire in wires_of(node.node)]
        told = (node.part.kind, *phrases(node), *sorted(of_block(node))) if isinstance(node, TypedBlock) else ()
        nodes.append((visit.path, read, told))
    return given, nodes, [(name, str(ref)) for name, ref in graph.graph.outputs]


def plain(path: str) -> str:
    """Return a path without passes."""
    return ".".join(step for step in path.split(".") if not step.isdigit())


def of_node(node: TypedNode) -> Iterator[float]:
    """Yield every number that may be said of a node: of a group, which may be one kind of several in a box, all that is in it."""
    if isinstance(node, TypedBlock):
        yield from of_block(node)
        return
    yield from numbers(spoken(node.name))
    if isinstance(node, TypedGroup):
        for visit in walk(node.graph, every_pass, every_node):
            if isinstance(visit.node, TypedBlock):
                yield from of_block(visit.node)


def of_block(node: TypedBlock) -> Iterator[float]:
    """Yield every number that is set or computed in a block."""
    yield from of_value(node.part)
    yield from of_value([*node.sizes.values()])
    yield from of_value([tuple(map_)[:2] for map_ in node.modules.values()])
    yield from of_value([parameter.shape for parameter in node.parameters])
    yield from of_value([adapter.rank for adapter in node.adapters.values()])
    yield from of_value([prod(parameter.shape) for parameter in node.parameters])
    yield float(sum(prod(parameter.shape) for parameter in node.parameters))  # a router's, of all its maps
    yield 100 * getattr(node.part, "share", 0.0)  # as percents
    for name in ("factors", "value"):  # formulas, drawn as they are written
        if isinstance(formula := getattr(node.part, name, None), str):
            yield from numbers(formula)
    if node.part.is_random and getattr(node.part, "axes", None):  # a box has their shape
        made = (one for one in node.outputs.values() if isinstance(one, TensorType))
        yield from (number for one in made for number in numbers(" × ".join(map(size, one.sizes))))
    if node.part.kind == "slice":  # counted from the end
        yield from (float(-end) for end in (getattr(node.part, "start", 0), getattr(node.part, "stop", None)) if end)
    if (router := getattr(node.part, "router", None)) is not None and router.visits() == "time":
        yield 1.0  # visit of each position
    if kv_heads := getattr(node.part, "kv_heads", None):
        yield node.part.heads / kv_heads  # type: ignore[attr-defined]
    yield from numbers(f"{spoken(node.part.kind)} {spoken(node.name)}")  # which may stand in titles
    for slot in node.slots.values():
        if isinstance(slot, TypedBlock):
            yield from of_block(slot)


def of_loops(node: TypedBlock) -> Iterator[tuple[str, frozenset[float]]]:
    """Yield what may be said of each layer and direction of a recurrent block, as torch names and stacks their parameters: the
    widths of the input and the state, the number of gates, and how many parameters there are.
    """
    shapes = {one.name: one.shape for one in node.parameters}
    for name in shapes:
        if name.startswith("weight_hh"):
            end = name.removeprefix("weight_hh")
            own = [shapes[other] for other in shapes if re.fullmatch(rf"(weight|bias)_(ih|hh){end}", other)]
            (rows, hidden), (_, dim) = shapes[name], shapes[f"weight_ih{end}"]
            yield end, frozenset({1.0, hidden, dim, rows // hidden, sum(map(prod, own))})


def of_value(value: Any) -> Iterator[float]:
    """Yield the numbers in a value."""
    match value:
        case bool() | None | str():
            return
        case int() | float():
            yield float(value)
        case Formula():
            yield from numbers(formula_text(value, value.names))
        case Part():
            for name in fields(type(value)):
                yield from of_value(getattr(value, name))
        case dict():
            yield from of_value([*value.values()])
        case list() | tuple():
            for one in value:
                yield from of_value(one)


# -- what is held against it


def of_ports(node: TypedNode, around: TypedGraph | None) -> Iterator[tuple[str, TensorType]]:
    """Yield what comes into a group or a pass of a repeat, by its ports, or into a repeat, by the nodes that make it."""
    found: list[tuple[str, object]] = []
    if isinstance(node, TypedGroup):
        found = list(node.graph.inputs.items())
    elif isinstance(node, TypedRepeat) and around is not None:
        wires = [(wire.port, ref) for one in node.node.passes for wire in one.wires for ref in wire.refs if ref.node != node.name]
        found = [(name, around.type_of(ref)) for port, ref in wires for name in {port, ref.node}]
    yield from ((port, type_) for port, type_ in found if isinstance(type_, TensorType))


def of_detail_input(box: DrawnBox, model: Model) -> Iterator[str]:
    """Yield what is not so of the shape at an input of a block that is drawn by itself: of each axis a number of all passes, or
    those of all in their order, or some of these.
    """
    passes = model.ports[box.path]
    for axis in (axis for line in box.lines[1:] for axis in line.split(" × ")):
        said = numbers(axis)
        if len(said) == len(passes) > 1:
            known = all(number in sizes for number, sizes in zip(said, passes, strict=True))
        else:
            known = all((any if len(said) > 1 else all)(number in sizes for sizes in passes) for number in said)
        if not known:
            yield f"{box.path}: `{axis}`: that is not what comes in: {passes}"


def of_state(box: DrawnBox, model: Model) -> Iterator[str]:
    """Yield what is not so of a box that stands for a state of a recurrence: its name and its shape."""
    if box.lines[0] not in (name := box.path.rpartition(".")[2], spoken(name)):
        yield f"{box.path}: it is not called `{box.lines[0]}`"
    sizes = [number for one in model.states[box.path].sizes for number in numbers(size(one))]
    for line in box.lines[1:]:
        if numbers(line) != sizes:
            yield f"{box.path}: `{line}`: it has {sizes}"


def lies(picture: Picture, model: Model) -> Iterator[str]:
    """Yield every statement of a picture that does not hold in each pass that it is about."""
    for box in picture.boxes:
        if box.path in model.ports:
            yield from of_detail_input(box, model)
            continue
        if box.path in model.states:
            yield from of_state(box, model)
            continue
        passes = model.of(box.path)
        yield from of_input(box, model)
        yield from of_starts(box, passes, model)
        yield from of_skips(box, model)
        if box.name and box.name != named(plain(box.path)) and not is_called(box, model):
            yield f"{box.path}: it is not called `{box.name}`"
        box = as_repeat(box, model)
        passes = model.of(box.path)
        if not passes or passes[0].kind == "compute":  # a formula is drawn as it is written
            continue
        rows, rest = split_rows(with_brackets(box))
        lines = [*rest, *([box.tip] if " | " in box.tip else box.tip.split(" — "))]
        if box.merged:
            yield from merged(box, lines, model)
            continue
        if found := range_of(box, model):
            yield from of_range(box, found, lines, model)
            continue
        if plain(box.path) in model.counts and box.path != plain(box.path):
            yield from of_pass(box, rows, lines, model)
            continue
        if " + " in box.tip.partition(" — ")[0]:  # a norm with what reads it, whose parameters are those of both
            lines = [" · ".join(said for said in line.split(" · ") if not PARAMETERS.fullmatch(said)) for line in lines]
        around = [found for frame in picture.frames if frame.place.holds(box.place) and (found := split_rows(frame.lines)[0])]
        around += beside(box, picture)
        if not around and sum(other.path == box.path for other in picture.boxes) > 1:
            around.append([(1, len(passes), [])])  # a table beside one of several blocks in the same place
        if around:  # which passes have it is said around it
            count, whole, _ = around[-1][-1]
            known = model.with_inside(box.path, passes)
            if model.inside(box.path):  # a closed box, which tells how often each block is there
                lines = [" · ".join(TIMES.sub("", one) for one in line.split(" · ")) for line in lines]
            yield from (f"{box.path}: `{line}`: {why}" for line in lines for why in of_some(count, line, known))
        elif model.inside(box.path):
            yield from closed(box, lines, model, counted_beside(box, picture, model))
        else:
            yield from (f"{box.path}: `{line}`: {why}" for line in lines for why in of_all(line, passes))
        each_time = model.held.get(box.path, [])
        if len(each_time) == 1 or (rows and rows[0][1] == sum(map(len, each_time))):
            yield from told_apart(box, rows, model)
            continue
        inner = not around and {len(each) for each in each_time} == {rows[0][1] if rows else 0}  # a repeat in alike passes
        for count, whole, said in rows:
            if len(passes) % whole and not (around or inner):
                yield f"{box.path}: `{said[0]}`: there are {len(passes)}"
            times = len(each_time) if inner else 1 if around else max(1, len(passes) // whole)  # of the inner one of two repeats
            if around and whole not in wholes(box.path, around[-1][-1], model):
                yield f"{box.path}: `{said[0]}`: around it, {around[-1][-1][0]} of {around[-1][-1][1]} are told"
            known = [one for each in each_time for one in each] if (around or inner) and each_time else passes
            yield from (f"{box.path}: `{said[0]}`: {why}" for why in of_some(count * times, " ".join(said), known))
        if rows and sum(count for count, _, _ in rows) != rows[0][1]:
            yield f"{box.path}: the rows are not all: {[said for _, _, said in rows]}"
    for frame in picture.frames:
        if frame.path in model.counts:
            yield from miscolored(frame, model)
            one_kind = any(other.place.holds(frame.place) and split_rows(other.lines)[0] for other in picture.frames)
            yield from counted(frame.path, [*frame.lines, *frame.tip.split(" — ")], model, any if one_kind else all)


def is_called(box: DrawnBox, model: Model) -> bool:
    """Return whether a box has the name of a squeeze that has none, which is all that reads what the box gives."""
    around = plain(box.path).rpartition(".")[0]
    return model.squeezed.get(f"{around}.{box.name}".removeprefix(".")) == plain(box.path)


def named(path: str) -> str:
    """Return what the author called a node: the body of a residual branch by the name of this."""
    *around, name = path.split(".")
    return around[-1] if name == "body" and around else name


def wholes(path: str, around: tuple[int, int, list[str]], model: Model) -> set[int]:
    """Return of how many passes the kinds of a box may be told, where it stands for so many passes of a repeat, maybe in another
    repeat: of those, of one time of the inner repeat, of all times.
    """
    count, whole, _ = around
    holder = path if path in model.counts else path.rpartition(".")[0]
    while holder and holder not in model.counts:
        holder = holder.rpartition(".")[0]
    lengths = model.lengths(holder) if holder else []
    sums = [{0}, *(set[int]() for _ in lengths)]
    for length in lengths:  # of so many of all times
        for some in range(len(lengths), 0, -1):
            sums[some] |= {one + length for one in sums[some - 1]}
    return {count, *lengths, *(sums[count] if count < len(sums) else ())} if whole == len(lengths) else {count, *lengths}


def range_of(box: DrawnBox, model: Model) -> re.Match[str] | None:
    """Return where a box says which passes of a repeat it stands for, if it stands for some."""
    holder = plain(box.path)
    if holder not in model.counts or holder == box.path:
        return None
    return next((one for one in RANGE.finditer(" ".join(box.lines)) if one[1] == holder.rpartition(".")[2]), None)


def of_range(box: DrawnBox, found: re.Match[str], lines: list[str], model: Model) -> Iterator[str]:
    """Yield what is not so of a box for some passes of a repeat, `layers(3:12)`: how many these are, and what they have."""
    first, end = int(found[2]), int(found[3] or int(found[2]) + 1)
    holder = plain(box.path)
    (each,) = model.counts[holder]
    if box.path != f"{holder}.{first}":
        yield f"{box.path}: it is not `{found[0]}`"
    passes = [
        {path: [one for one in truths if first <= int(one.path[len(holder) + 1 :].partition(".")[0]) < end]}
        for path, truths in model.by_path.items()
        if path.startswith(f"{holder}.")
    ]
    inner = [one for known in passes for one in known.values()]
    for line in (re.sub(RANGE, "", line) for line in lines):
        for counted_ in COUNTED.findall(line):
            if counted_ != str(end - first):
                yield f"{box.path}: `{line}`: these are {end - first}"
        in_how_many = any if OPEN.search(line) else all
        for said in numbers(COUNTED.sub("", line)):
            has = any(known and in_how_many(one.has(said) for one in known) for known in inner)
            if not near(said, sum(each[first:end])) and not has:
                yield f"{box.path}: `{line}`: none has {said:g} in each"


def of_pass(box: DrawnBox, rows: list[tuple[int, int, list[str]]], lines: list[str], model: Model) -> Iterator[str]:
    """Yield what is not so of a box for one pass of a repeat, `Stage 0`, held against this pass alone; its rows are about the
    passes of the repeat that is all there is in it.
    """
    if not box.lines[0].endswith(f" {box.path.rpartition('.')[2]}"):
        yield f"{box.path}: it is not called `{box.lines[0]}`"
    alone = Model(model.typed, box.path)
    yield from closed(box, lines, alone)
    if rows:
        inner = [path for path in alone.held if path.rpartition(".")[0] == box.path]
        if len(inner) != 1:
            yield f"{box.path}: its rows are about {inner}"
        yield from told_apart(replace(box, path=inner[0]), rows, alone)
        said = [ROW.sub("", line, count=1).removeprefix(": ") for line in whole_rows(box.lines)]
        for line, places in zip(said, places_of(box.lines), strict=False):
            for path in (f"{inner[0]}.{place}" for place in places):
                one, this = replace(box, path=path, lines=[box.lines[0], line]), Model(model.typed, path)
                yield from [*closed(one, [line], this), *of_skips(one, this)]
    known = [*alone.of(box.path), *(one for found in alone.inside(box.path) for one in found)]
    for line in box.lines[1:]:
        blocks = ROW.sub("", line, count=1) if share_of(line) else line  # which passes a row is about is held against them above
        for said in numbers(COUNTED.sub("", TIMES.sub("", blocks))):
            if not any(one.has(said) for one in known):
                yield f"{box.path}: `{line}`: nothing in this pass has {said:g}"


def whole_rows(lines: list[str]) -> list[str]:
    """Return the rows of kinds in a box, each with the lines in which it goes on."""
    found: list[str] = []
    for line in lines:
        if share_of(line):
            found.append(line)
        elif found:
            found[-1] += f" {line}" if line.startswith("+ ") else f" · {line}"
    return found


def beside(box: DrawnBox, picture: Picture) -> list[list[tuple[int, int, list[str]]]]:
    """Return which passes have a box, where that stands below it at the wire that leads to it."""
    middle = (box.place.left + box.place.right) / 2
    below = [text for x, y, text in picture.texts if 0 < x - middle < BELOW and 0 < y - box.place.bottom < picture.below]
    return [found for text in below if (found := split_rows([text])[0])]


def miscolored(frame: DrawnFrame, model: Model) -> Iterator[str]:
    """Yield what is not so of a map of layers: it has a cell for each pass, and cells of one color stand for equal passes."""
    if len(model.kinds[frame.path]) > 1:
        return  # it stands in passes that differ
    (kinds,) = model.kinds[frame.path]
    if frame.cells and len(frame.cells) != len(kinds):
        yield f"{frame.path}: {len(frame.cells)} cells for {len(kinds)} passes"
    elif frame.cells:
        for one, other in combinations(range(len(kinds)), 2):
            if frame.cells[one] == frame.cells[other] != EMPTY and kinds[one] != kinds[other]:
                yield f"{frame.path}: passes {one} and {other} are different"


def loose(picture: Picture) -> Iterator[str]:
    """Yield every wire that does not start at what it is said to come from, or has no arrowhead at what it leads to; a loss may
    stand elsewhere, if its wire ends at what it is called.
    """
    titles = {box.path: box.lines[0] for box in picture.boxes if box.lines}
    called = [(x, y, path) for x, y, path, name in picture.references if name == titles.get(path)]
    places = [(box.path, box.place) for box in picture.boxes]
    boxes = {path for path, _ in places} - {frame.path for frame in picture.frames}
    for wire in picture.wires:
        if wire.target in boxes and not wire.idle:
            if wire.tip is None and any(joins(wire, other) for other in picture.wires):
                continue
            if wire.tip is None:
                yield f"{wire.source} → {wire.target}: there is no arrowhead"
            elif any(path == wire.target and abs(x - wire.tip[0]) + abs(y - wire.tip[1]) < AT_NAME for x, y, path in called):
                continue
            elif not any(one.touches(*wire.tip, REACH) for path, one in places if f"{path}.".startswith(f"{wire.target}.")):
                yield f"{wire.source} → {wire.target}: the arrow ends elsewhere"
    yield from starting_at_nothing(picture)


def starting_at_nothing(picture: Picture) -> Iterator[str]:
    """Yield every wire that starts neither at the box or the frame that it is said to come from, nor at another wire that leads
    on from there, nor at a name.
    """
    frames = [(frame_path(frame, picture), line) for frame in picture.frames for line in (*border(frame.place), *frame.layers)]
    places = [*((box.path, box.place) for box in picture.boxes), *frames]
    fans = [Place(x, y, x, y) for x, y in picture.fans]
    drawn = [wire for wire in picture.wires if any(in_path(path, wire.source) for path, _ in places)]
    for source in dict.fromkeys(wire.source for wire in drawn):
        lines = [one for path, one in places if in_path(path, source) or in_path(source, path)]  # or at what is around that
        of_names = [wire for wire in drawn if wire.source == source and at_name(wire.start, picture)]
        lines += [*fans, *(line for wire in of_names for line in lines_of(wire))]
        waiting = [wire for wire in drawn if wire.source == source and wire not in of_names]
        while found := [wire for wire in waiting if any(line.touches(*wire.start, REACH) for line in lines)]:
            lines = [line for wire in found for line in lines_of(wire)]
            waiting = [wire for wire in waiting if wire not in found]
        yield from (f"{wire.source} → {wire.target}: the wire starts at nothing" for wire in waiting)


def frame_path(frame: DrawnFrame, picture: Picture) -> str:
    """Return the path of a frame; of one around passes of one kind, that of the frame around it."""
    around = [other for other in picture.frames if other.path and other.place.holds(frame.place)]
    inner = min(around, key=lambda other: other.place.right - other.place.left, default=frame)
    return frame.path or inner.path


def in_path(path: str, other: str) -> bool:
    """Return whether something is another thing, or lies in it."""
    return bool(other) and f"{path}.".startswith(f"{other}.")


def border(place: Place) -> list[Place]:
    """Return the four lines around a rectangle."""
    left, top, right, bottom = place.left, place.top, place.right, place.bottom
    return [Place(left, y, right, y) for y in (top, bottom)] + [Place(x, top, x, bottom) for x in (left, right)]


def at_name(point: tuple[float, float], picture: Picture) -> bool:
    """Return whether a wire that starts at a point does so at a name."""
    return any(abs(x - point[0]) + abs(y - point[1]) < AT_NAME for x, y, *_ in picture.references)


def lines_of(wire: DrawnWire) -> list[Place]:
    """Return the pieces of a wire."""
    return [Place(min(a, c), min(b, d), max(a, c), max(b, d)) for (a, b), (c, d) in pairwise(wire.corners)]


def joins(wire: DrawnWire, other: DrawnWire) -> bool:
    """Return whether a wire ends at another one, which has an arrowhead and leads to what is called the same there."""
    same = wire.target == other.target and {*wire.port.split(", ")} <= {*other.port.split(", ")}
    return same and other.tip is not None and any(line.touches(*wire.corners[-1], REACH) for line in lines_of(other))


def counted_beside(box: DrawnBox, picture: Picture, model: Model) -> int:
    """Return how many parameters of a closed box stand in boxes beside it, in the same part of the page."""
    part = picture.part_of(box.place.left, box.place.top)
    apart = (one for one in picture.boxes if one.path.rpartition(".")[0] == box.path and not box.place.holds(one.place))
    return sum(model.owned.get(one.path, 0) for one in apart if picture.part_of(one.place.left, one.place.top) == part)


def closed(box: DrawnBox, lines: list[str], model: Model, beside: int = 0) -> Iterator[str]:
    """Yield what is not so of a repeat or a group that is one box, of whose parameters so many are told beside it."""
    if box.path in model.counts:
        yield from counted(box.path, [box.lines[0], *lines[len(box.lines) :]], model)
    inner = [*model.inside(box.path), model.of(box.path)]
    for line in lines:
        told = line in box.lines[1:]
        yield from of_norms(box.path, line, model)
        of_some_passes = box.path in model.counts and bool(MORE.search(line))  # others have other blocks, which are not told
        line = unrolled(SCALE.sub("", SKIP.sub("", MORE.sub("", line))))
        if not told and COUNTED.match(line) and box.path in model.counts:
            continue
        if told:
            yield from of_chain(box.path, line, model)
            yield from of_list(box.path, line, inner)
            line = CHAIN.sub(lambda found: "" if is_chain(box.path, found[0], model) else found[0], line)
        inside = [model.lengths(path) for path in model.counts if path.startswith(f"{box.path}.")]
        if (named := COUNTED.findall(line)) and line != box.lines[0]:
            if not all(any(in_order(one, lengths) for lengths in inside) for one in named):
                yield f"{box.path}: `{line}`: in it there are {inside}"
            continue
        if (own := SHARED.fullmatch(line)) and box.path in model.counts:
            yield from shared(box.path, own[1], model)
        if re.search(r"^× |[+] × |each|shared|up to|parameters", line):
            continue
        each = [one.count - beside for one in inner[-1]]
        if beside and PARAMETERS.fullmatch(line) and not any(near(said, count) for said in numbers(line) for count in each):
            yield f"{box.path}: `{line}`: beside it, {beside} are told"
        if told:
            yield from of_blocks(box.path, line, inner)
            yield from of_uses(box.path, line, model)
            yield from of_branches(box.path, line, model)
            line = re.sub(r"\b\d+ branches,", "", line)
            line = TIMES.sub("", line)
        named_so = {float(digits) for digits in re.findall(r"\d+", box.path)} if line == box.lines[0] else set()
        for said in numbers(line):
            if said in named_so or any(near(said, count) for count in (sum(each), *each)):
                continue
            about = [found for found in inner if any(one.has(said) for one in found)]
            if not about:
                yield f"{box.path}: `{line}`: nothing in it has {said:g}"
            elif (
                not OPEN.search(line)
                and not of_some_passes
                and not any(all(any(one.has(n) for n in numbers(line)) for one in found) for found in about)
            ):
                yield f"{box.path}: `{line}`: {said:g} is not so in each pass"


def of_norms(path: str, line: str, model: Model) -> Iterator[str]:
    """Yield which norms a closed box has letters for that are not in it."""
    kinds = {one.kind for found in (model.of(path), *model.inside(path)) for one in found}
    for said in NORM.findall(line):
        if not any(kind.startswith(NORMS[said]) for kind in kinds):
            yield f"{path}: `{line}`: no {NORMS[said]} is in it"


def of_chain(path: str, line: str, model: Model) -> Iterator[str]:
    """Yield what is not so of the widths that a closed box tells in a row: one block has them, or each pass of a repeat those
    between which its number is.
    """
    known = [one for truths in (model.of(path), *model.inside(path)) for one in truths if one.kind]
    blocks = [one for one in known if spoken(one.kind) not in model.uses]  # which have the numbers of all that is in them
    for said in CHAIN.findall(line):
        hidden = said.count(" → ") == 2 and any(all(map(one.has, numbers(said))) for one in blocks)
        if not is_chain(path, said, model) and not hidden:
            yield f"{path}: `{line}`: no passes have `{said}` one after the other"


def of_list(path: str, line: str, inner: list[list[Truth]]) -> Iterator[str]:
    """Yield what is not so of values in a closed box of which some come again: each is that of the pass at its place."""
    for first, last in SERIES.findall(line):
        told = numbers(first)
        if last or len({*told}) == len(told):
            continue
        whole = [found for found in inner if found and len(found) % len(told) == 0]
        ways = [zip(told * (len(found) // len(told)), found, strict=True) for found in whole]
        if not any(all(one.has(said) for said, one in way) for way in ways):
            yield f"{path}: `{first}` is not so in each pass"


def is_chain(path: str, said: str, model: Model) -> bool:
    """Return whether each pass of a repeat, at a path or in what is there, has two of some widths, one after the other."""
    pairs = [*pairwise(map(float, said.replace("\u00a0", "").split(" → ")))]
    repeats = [each for one, times in model.held.items() if one == path or one.startswith(f"{path}.") for each in times]
    ways = [zip(pairs, each, strict=True) for each in repeats if len(each) == len(pairs)]
    return any(all(one.has(before) and one.has(after) for (before, after), one in way) for way in ways)


def unrolled(line: str) -> str:
    """Return what a closed box says with each block as often as it is there, where some come in turns.

    >>> unrolled("2 × (3 × conv 3 × 3 · ReLU) · pool")
    '6 × conv 3 × 3 · 2 × ReLU · pool'
    """

    def each(found: re.Match[str]) -> str:
        count = int(found[1])
        told = [(re.fullmatch(r"(\d+) × (\D.*)", one), one) for one in found[2].split(" · ")]
        return " · ".join(f"{count * int(own[1])} × {own[2]}" if own else f"{count} × {one}" for own, one in told)

    while (shorter := TURN.sub(each, line)) != line:
        line = shorter
    return line


def shared(path: str, said: str, model: Model) -> Iterator[str]:
    """Yield what is not so of the parameters that all passes of a repeat are said to have together."""
    every = {count for each in model.counts[path] for count in each}
    if path not in model.shared or not all(near(numbers(said)[0], count) for count in every):
        yield f"{path}: `{said} shared`: its passes have {sorted(every)}"


def of_blocks(path: str, line: str, inner: list[list[Truth]]) -> Iterator[str]:
    """Yield what is not so of the blocks that a closed box names: all numbers of one are those of one node, and there are so many
    of these.
    """
    for said in IN_BRANCHES.split(line):
        if OPEN.search(said) or LIST.search(said) or PARAMETERS.fullmatch(re.sub(r",? (some )?frozen$", "", said)):
            continue
        nested = re.fullmatch(r"(?:\d+ × )?.* \((.*[^\W\d].*)\)", said)  # `tower (conv 3 × 3, stride 2)`
        if nested or said.startswith("× "):
            continue
        times = TIMES.match(said)
        alone = TIMES.sub("", said)
        own = numbers(alone)
        kind = alone.lower() if alone.lower() in ACTIVATIONS else ""
        having = [
            [one for one in found if all(map(one.has, own)) and (one.kind or not own) and kind in ("", one.kind)]
            for found in inner
        ]
        having = [found for found in having if found]
        counts = Counter(pass_of(path, one.path) for found in having for one in {one.path: one for one in found}.values())
        if max(counts.values(), default=0) < (count := int(times[1]) if times else 1):
            yield f"{path}: `{said}`: {len(having)} of its nodes have {own}"
        elif (own or kind) and len(having) == 1 and count not in counts.values():  # the one block of a repeat in it
            yield f"{path}: `{said}`: it is there {sorted({*counts.values()})} times"


def of_uses(path: str, line: str, model: Model) -> Iterator[str]:
    """Yield what is not so of how often a closed box has a block of the recipe: in no pass there are more of it than in one."""
    told: Counter[str] = Counter()
    for said in IN_BRANCHES.split(line):
        found = re.fullmatch(r"(?:(\d+) × )?([^()]+?)(?: \(.*\))?", said)
        if found and found[2] in model.uses:
            told[found[2]] += int(found[1] or 1)
    for block, count in told.items():
        inside = [one for one in model.uses[block] if plain(one).startswith(f"{plain(path)}.")]
        each = Counter(pass_of(path, one) for one in inside)
        if inside and max(each.values()) < count:
            yield f"{path}: `{line}`: there are {sorted({*each.values()})} of {block}"


def summed(node: TypedBlock) -> tuple[str, ...]:
    """Return what a formula does nothing but sum, each once; nothing for another block."""
    formula = getattr(node.part, "formula", None)
    terms = formula.text.split(" + ") if isinstance(formula, Formula) else []
    return tuple(terms) if isinstance(formula, Formula) and sorted(terms) == sorted(formula.names) else ()


def pass_of(path: str, node: str) -> str:
    """Return in which pass of something a node is: the beginning of its path.

    >>> pass_of("stages.layers", "stages.2.layers.0.conv"), pass_of("head", "head.layers.3.conv")
    ('stages.2.layers.0', 'head')
    """
    steps, left = node.split("."), path.split(".")
    for end, step in enumerate(steps):
        if not left and not step.isdigit():
            return ".".join(steps[:end])
        if left and step == left[0]:
            left.pop(0)
    return node


def of_branches(path: str, line: str, model: Model) -> Iterator[str]:
    """Yield what is not so of branches that a closed box names: something in it joins so many, and a sum is around a shortcut."""
    if told := WIDTHS.search(line):
        branches = told[0].removesuffix(" channels").split(" | ")
        ends = [int(branch.rpartition(" → ")[2].replace("\u00a0", "")) for branch in branches]
        joins = [(one, kinds) for one, kinds in model.joins.items() if one.startswith(f"{path}.")]
        given = [sum(ends) if kind == "concat" else ends[0] for _, kinds in joins for kind, of in kinds if of == len(ends)]
        if not any(one in sizes for at, _ in joins for sizes in model.joined[at] for one in given):
            yield f"{path}: `{line}`: what is joined has {[model.joined[at] for at, _ in joins]}"
        line = WIDTHS.sub("", line)
    found = re.search(r"(\d+) branches", line)
    count = int(found[1]) if found else len(line.split(" | ")) if " | " in line else 2 if " + shortcut " in line else 0
    how = "concat" if ", concat" in line else "add"
    joined = [kind for one, kinds in model.joins.items() if one.startswith(f"{path}.") for kind in kinds]
    if count and (how, count) not in joined:
        yield f"{path}: `{line}`: in it there are {joined}"


def of_input(box: DrawnBox, model: Model) -> Iterator[str]:
    """Yield what is not so of the type of an input of the model."""
    given = model.inputs.get(box.path)
    if isinstance(given, TensorType) and len(box.lines) > 1 and not model.by_path.get(box.path):
        sizes = " × ".join(map(size, given.sizes))
        if re.sub("[()]", "", box.lines[1]) != re.sub("[()]", "", " · ".join(filter(None, (sizes, given.dtype)))):
            yield f"{box.path}: `{box.lines[1]}`: it is {given}"


def of_starts(box: DrawnBox, passes: list[Truth], model: Model) -> Iterator[str]:
    """Yield what is not so of how parameters start, in each pass, or in as many as a row names: all of a block or of a part of
    it, or those that are named; in a closed box, those of something in it.
    """
    rows, rest = split_rows(box.lines)
    told = [(len(passes), line) for line in rest] + [(count, " ".join(said)) for count, _, said in rows]
    for count, line in told:
        for found in START.finditer(line):
            names, value = found[1].split(" and ") if found[1] else [], found[2]
            wrong = [one for one in passes if not starts_so(names, value, plain(box.path), one, model)]
            if len(wrong) > len(passes) - count:
                yield f"{box.path}: `{found[0]}`: not in {', '.join(one.path for one in wrong)}"


def starts_so(names: list[str], value: str, path: str, one: Truth, model: Model) -> bool:
    """Return whether parameters of a box, or of something in it, start at a number in a pass: those that are named, else all."""

    def alike(known: Mapping[str, float | None]) -> bool:
        chosen = [known.get(name, known.get(f"{name}.weight")) for name in names] if names else [*known.values()]
        return {*map(said_of, chosen)} == {value}

    part = path[len(plain(one.path)) + 1 :]
    below = model.starts.get(one.place, {})
    inside = [at for held_by, at in model.starts.items() if held_by.startswith(f"{one.place}.")]
    return alike({name: at for name, at in below.items() if not part or name.startswith(f"{part}.")}) or any(map(alike, inside))


def of_skips(box: DrawnBox, model: Model) -> Iterator[str]:
    """Yield what is not so of the skip connection around what a box has in it: it is there in as many passes as a row names."""
    places = iter(places_of(box.lines))
    first = next((number for number, line in enumerate(box.lines) if share_of(line)), len(box.lines))
    told = [*box.lines[:first], *whole_rows(box.lines)]
    for line in told if model.inside(box.path) else ():  # a formula may add what is called so
        row = share_of(line)
        having = model.passes_with_skip(box.path)
        if SKIP.search(line) and len(having) < (row[0] if row else 1):
            yield f"{box.path}: `{line}`: its input goes around blocks in {len(having)}"
        own = {f"{box.path}.{place}" for place in next(places)} if row else set()
        if SKIP.search(line) and len(model.held.get(box.path, ())) == 1 and not own <= having:
            yield f"{box.path}: `{line}`: its input goes around blocks in {sorted(having)}"


def said_of(number: float | None) -> str:
    """Return a number as a drawing writes it."""
    return "" if number is None else f"{number:g}"


def told_apart(box: DrawnBox, rows: list[tuple[int, int, list[str]]], model: Model) -> Iterator[str]:
    """Yield what is not so of the kinds of passes in the box of a repeat: as many as are named have the numbers, each is in a
    row, and equal passes are in the same one.
    """
    held, kinds = ([one for each in found[box.path] for one in each] for found in (model.held, model.kinds))
    if not rows:
        return
    for count, whole, said in rows:
        if whole != len(held):
            yield f"{box.path}: `{said[0]}`: there are {len(held)}"
        yield from (f"{box.path}: `{said[0]}`: {why}" for why in of_some(count, " ".join(said), held))
    for (count, _, said), places in zip(rows, places_of(box.lines), strict=False):
        if places:
            own = [one for place, one in enumerate(held) if place in places]
            yield from (f"{box.path}: `{said[0]}`: there, {why}" for why in of_some(count, " ".join(said), own))
            if len(own) != count or {repr(kinds[place]) for place in places} & {
                repr(kind) for place, kind in enumerate(kinds) if place not in places
            }:
                yield f"{box.path}: `{said[0]}`: it is not of the passes {sorted(places)}"
    if sum(count for count, _, _ in rows) != len(held):
        yield f"{box.path}: the rows are not all: {[said for _, _, said in rows]}"
    sizes = {0}  # of all sets of kinds
    for one in {repr(kind): kinds.count(kind) for kind in kinds}.values():
        sizes |= {size + one for size in sizes}
    yield from (f"{box.path}: `{said[0]}`: no kinds are {count} passes" for count, _, said in rows if count not in sizes)


def counted(path: str, lines: list[str], model: Model, in_how_many: Callable[[Iterator[bool]], bool] = all) -> Iterator[str]:
    """Yield what is not so of the number of passes of a repeat and of their parameters."""
    every = [count for each in model.counts[path] for count in each]
    for line in lines:
        lengths = model.lengths(path)
        if " | " in line:  # one of several things, each in some passes
            continue
        some = in_how_many is any  # those of one kind of the passes around it
        if (found := COUNTED.search(line)) and not in_order(found[1], lengths) and not (some and among(found[1], lengths)):
            yield f"{path}: `{line}`: there are {lengths}"
        if (beside := PARALLEL.search(line)) and not in_order(beside[1], lengths) and not (some and among(beside[1], lengths)):
            yield f"{path}: `{line}`: there are {lengths} in parallel"
        if (found or beside) and bool(beside) != model.parallel[path]:
            yield f"{path}: `{line}`: they are {'parallel' if model.parallel[path] else 'a series'}"
        line = re.sub(r"up to \S+(?: [KMBT])? active", "", line)
        for said in re.findall(r"(up to [\d.]+(?: [KMBT]\b)?|[\d.]+(?: [KMBT])?(?= each| shared))", line):
            if said.startswith("up to"):
                most = [max(every), *(map(max, model.counts[path]) if in_how_many is any else ())]
                right = any(near(numbers(said)[0], one) for one in most)
            else:
                right = in_how_many(near(numbers(said)[0], count) for count in every)
            if not right:
                yield f"{path}: `{line}`: they have {sorted({*every})}"


def in_order(said: str, lengths: list[int]) -> bool:
    """Return whether numbers of passes are those of a repeat each time that it stands in the model, in this order; one is that of
    all, and of a repeat in two others the inner one may be told alone.
    """
    first, _, last = said.partition(", … ")
    told = [int(one) for one in first.split(", ")]
    if last:
        return lengths[: len(told)] == told and lengths[-1] == int(last)
    return len(lengths) % len(told) == 0 and told * (len(lengths) // len(told)) == lengths


def among(said: str, lengths: list[int]) -> bool:
    """Return whether numbers of passes are some of those of a repeat, in their order."""
    left = iter(lengths)
    return all(int(one) in left for one in said.replace("… ", "").split(", "))


def near(said: float, number: float) -> bool:
    """Return whether a picture says a number so: with all digits of a whole one below 1000, with three or more of others."""
    if said == number or (number == int(number) and abs(number) < 1000):
        return said == number
    return abs(said - number) <= 0.501 * 10 ** (floor(log10(abs(number))) - 2)


def share_of(line: str) -> tuple[int, int] | None:
    """Return how many passes a line is about, and of how many, zero where it tells which; none where it does neither."""
    found = ROW.match(line)
    if not found:
        return None
    if found[1]:
        return int(found[1]), int(found[2])
    if found[6] == "–":
        return int(found[7]) - int(found[5]) + 1, 0
    return int(found[4] or (2 if found[3] in ("both", "first and last") else 1)) if found[3] else 2 if found[6] else 1, 0


def places_of(lines: list[str]) -> list[set[int]]:
    """Return which passes the rows of kinds in a box are about, an empty set for those that only tell how many."""
    found: list[set[int]] = []
    shares = [(share[0], said) for line in lines if (share := share_of(line)) and (said := ROW.match(line))]
    whole = sum(count for count, _ in shares)
    for count, said in shares:
        before = set[int]().union(*found)
        places = {"first": {*range(count)}, "last": {*range(whole - count, whole)}, "other": {*range(whole)} - before}
        places |= {"all": {*range(whole)}, "both": {*range(whole)}, "first and last": {0, whole - 1}}
        own = {int(one) - 1 for one in said.group(5, 7) if one}
        found.append(places[said[3]] if said[3] else {*range(min(own), max(own) + 1)} if said[6] == "–" else own)
    return found


def as_repeat(box: DrawnBox, model: Model) -> DrawnBox:
    """Return a box; one of a group that says in its title that it is a repeat, as the repeat in it."""
    if not box.lines or box.path in model.counts or not re.search(r" · × \d", box.lines[0]):
        return box
    inside = [path for path in model.counts if path.rpartition(".")[0] == box.path]
    return replace(box, path=inside[0]) if len(inside) == 1 else box


def split_rows(lines: list[str]) -> tuple[list[tuple[int, int, list[str]]], list[str]]:
    """Return the rows of kinds in a box, each with its shares, and the other lines."""
    rows: list[tuple[int, int, list[str]]] = []
    rest: list[str] = []
    for line in lines:
        if (share := share_of(line)) and (found := re.match(r"(?:(?:: | · )(.*?))?(?: · …)?$", ROW.sub("", line, count=1))):
            rows.append((*share, [TIMES.sub("", unrolled(SKIP.sub("", found[1] or "")))]))
        elif rows:
            rows[-1][2].append(line)
        else:
            rest.append(line)
    whole = sum(count for count, _, _ in rows)  # where rows tell which passes they are about
    return [(count, said_of_all or whole, said) for count, said_of_all, said in rows], rest


NORMS = {"BN": "batchnorm", "LN": "layernorm", "GN": "groupnorm", "RMS": "rmsnorm"}
"""What norms are called by letters in closed boxes."""
NORM = re.compile(rf"(?<![\w-])(?:{'|'.join(NORMS)})(?![\w-])")
AGAIN = re.compile(r", (?:(\d+) times|twice)(?= · |$)")
"""How often the values of a list follow one another."""


def of_all(line: str, passes: list[Truth]) -> Iterator[str]:
    """Yield what a line says that is not so in every pass."""
    if again := AGAIN.search(line):
        values, turns = line[: again.start()].rpartition(" · ")[2], int(again[1] or 2)
        line = line[: again.start()] + line[again.end() :]
        held = {said: [one.has(said) for one in passes] for said in numbers(values)}
        if any(each != each[: len(each) // turns] * turns for each in held.values()) or all(all(each) for each in held.values()):
            yield f"it does not come {turns} times"
    for said in numbers(line):
        if not any(one.has(said) for one in passes):
            yield f"no pass has {said:g}"
    yield from out_of_order(line, passes)
    yield from unlike_chain(line, passes)
    differing = [n for n in numbers(line) if any(one.has(n) for one in passes) and not all(one.has(n) for one in passes)]
    if differing and not OPEN.search(line):
        # of a list, one number may be in all passes for another reason
        series = [numbers(said.replace(" → ", ", ")) for said in (*LIST.findall(line), *CHAIN.findall(line))]
        told = {*differing, *(n for listed in series if {*listed} & {*differing} for n in listed)}
        without = [one.path for one in passes if not any(one.has(number) for number in told)]
        if without:
            yield f"nothing of it holds in {', '.join(without)}"


def out_of_order(line: str, passes: list[Truth]) -> Iterator[str]:
    """Yield what a line says of the values of passes in their order that is not so: of those of which it leaves some out, of the
    last one; of those that come more than once, of each.
    """
    for first, last in SERIES.findall(line):
        told = numbers(first)
        if last and not passes[-1].has(*numbers(last)):
            yield f"the last pass has not {last}"
        in_each = len(passes) % len(told) == 0 or last  # of a repeat in another one, all of the inner one each time
        every = told if last else told * (len(passes) // len(told))
        wrong = [said for said, one in zip(every, passes, strict=False) if not one.has(said)]
        if len({*told}) < len(told) and (not in_each or wrong):
            yield f"{first} is not so in each pass"


def unlike_chain(line: str, passes: list[Truth]) -> Iterator[str]:
    """Yield what a line says of the widths of passes that is not so: each pass has two of a chain, one after the other, or all of
    it, as a block with a hidden width; of widths that all keep, each has the one at its place.
    """
    for said in () if OPEN.search(line) else CHAIN.findall(line):
        pairs = [*pairwise(numbers(said.replace(" → ", ", ")))]
        ways = [zip(pairs, passes[at : at + len(pairs)], strict=True) for at in range(0, len(passes), len(pairs))]
        whole = len(passes) % len(pairs) == 0
        one_by_one = whole and all(one.has(a) and one.has(b) for way in ways for (a, b), one in way)
        if not one_by_one and not all(one.has(number) for one in passes for number in numbers(said)):
            yield f"no passes have `{said}` one after the other"
    for said in KEPT.findall(line):
        widths = numbers(said)
        if len(widths) != len(passes) or not all(one.has(width) for width, one in zip(widths, passes, strict=True)):
            yield f"they do not keep {said}"


def of_some(count: int, line: str, passes: list[Truth]) -> Iterator[str]:
    """Yield what a row says that is not so in as many passes as it names."""
    for said in numbers(line):
        if not any(one.has(said) for one in passes):
            yield f"no pass has {said:g}"
    if OPEN.search(line):
        return
    chains = [[*pairwise(numbers(said.replace(" → ", ", ")))] for said in CHAIN.findall(line)]
    line = CHAIN.sub("", line)
    listed, rest = LIST.findall(line), numbers(LIST.sub("", line))  # of a list, each pass has one
    having = [
        one
        for one in passes
        if all(map(one.has, rest))
        and all(any(map(one.has, numbers(values))) for values in listed)
        and all(any(one.has(before) and one.has(after) for before, after in pairs) for pairs in chains)
    ]
    if len(having) < count:
        yield f"it holds in {len(having)}"
    for pairs in chains:
        left = iter(having)
        whole = all(one.has(number) for one in having for pair in pairs for number in pair)
        if not whole and not all(any(one.has(a) and one.has(b) for one in left) for a, b in pairs):
            yield "no passes have these widths one after the other"


# -- figures that leave out nodes, or draw several as one


def merged(box: DrawnBox, lines: list[str], model: Model) -> Iterator[str]:
    """Yield what is not so of a box for several nodes: its parameters are their sum in each pass, other numbers theirs."""
    every = [model.of(path) for path in box.merged]
    sums = {sum(counts) for counts in zip(*([one.count for one in found] for found in every), strict=True)}
    around = {plain(path).rpartition(".")[0] for path in box.merged}
    dropouts = [
        found for path, found in model.by_path.items() if found[0].kind == "dropout" and path.rpartition(".")[0] in around
    ]
    inner = [*every, *dropouts, *(found for path in box.merged for found in model.inside(path))]
    for line in lines:
        if PARAMETERS.fullmatch(line.removeprefix("up to ")):
            said = numbers(line)[0]
            right = near(said, max(sums)) if line.startswith("up to") else len(sums) == 1 and near(said, *sums)
            if not right:
                yield f"{box.path}: `{line}`: together they have {sums}"
        elif line not in (box.lines[0], box.tip):
            for said in numbers(line):
                if not any(all(one.has(said) for one in found) for found in inner if found):
                    yield f"{box.path}: `{line}`: none of its nodes has {said:g} in each pass"


def left_out(svg: str, model: Model) -> Iterator[str]:
    """Yield where what a figure says is not drawn is not what it lacks: each parameter stands in a box, or is counted there."""
    picture = read(svg)
    said = next((text for *_, text in picture.texts if "not drawn" in text), "")
    described = (ET.fromstring(svg).findtext(f"{SVG}desc") or "").partition("not drawn: ")[2]
    names = re.findall(r"([\w.]+)(?: \([^()]*(?:\([^()]*\)[^()]*)*\))?(?:, |$)", described)
    hidden = [path for path in names if model.by_path.get(path)]
    shown = {path for box in picture.boxes for path in (box.path, *box.merged)}
    shown |= {frame.path for frame in picture.frames if frame.path not in model.counts}
    for box in picture.boxes:
        if some := range_of(box, model):
            shown |= {f"{plain(box.path)}.{number}" for number in range(int(some[2]), int(some[3] or int(some[2]) + 1))}
    whole, parameters = 0, {name: count for name, count in model.owned.items() if name}
    leaves = {name: count for name, count in parameters.items() if not any(other.startswith(f"{name}.") for other in parameters)}
    for name, count in leaves.items():
        forms = [name.split("."), plain(name).split(".")]  # where passes are drawn one by one, and where they are not
        holders = {".".join(steps[:end]) for steps in forms for end in range(1, len(steps) + 1)}
        if holders & set(hidden):
            whole += count
        elif not holders & shown:
            yield f"{name} is nowhere"
    if bool(hidden) != bool(said):
        yield f"`{said}`: {hidden} are not drawn"
    elif hidden:
        count = re.search(r"with ([\d.]+(?: [KMBT])?) parameters", said)
        if whole != (numbers(count[1])[0] if count else 0) and not (count and near(numbers(count[1])[0], whole)):
            yield f"`{said}`: they have {whole}"
        if not re.search(rf"\b{len(hidden)} nodes? not drawn", said):
            yield f"`{said}`: {hidden} are not drawn"
