"""A column while it is laid out: its blocks in line, and what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TypeAlias

from composer.draw.diagram import Flow, Group, Item, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, InnerOutput, NodeOutput, Origin
from composer.draw.geometry import Area
from composer.draw.layout.fragment import Fragment
from composer.draw.layout.outer_inputs import OuterInput
from composer.draw.passes.order import begun_in_branches
from composer.draw.style.typography import Typography
from composer.memo import Memo

LANE_SIDE: int = 1
"""Where the lanes of a column go, and so residual connections: to the right, or to the left with -1. Where columns stand side by
side, those of all but the last go to the left, away from it.
"""

FrameMemo: TypeAlias = "Memo[tuple[Group, LayoutOptions], Fragment | None]"
"""The insides of frames in layers, which many attempts at a page have in common."""


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """What is written beside wires, and where these go."""

    typography: Typography
    side: int
    """Where lanes go: to the right, or to the left with -1."""
    shapes: bool = True
    narrow: bool = False
    """Whether blocks stand in one of several columns."""
    alone: bool = False
    """Whether no block stands beside another."""
    out: int = 1
    """Where what routers tell goes."""
    given: frozenset[Origin] = frozenset()
    """Values of other columns."""
    called: frozenset[Origin] = frozenset()
    """Values that all who read them, in other columns, call by names at the ends of wires."""
    rightward: frozenset[Origin] = frozenset()
    """In a frame, the values that columns at the right of all read."""
    inputs: tuple[str, ...] = ()
    """The model's inputs in their order, or what comes in at the border of a frame."""
    ends: tuple[str, ...] = ()
    """What goes out at the border of a frame."""
    names: bool = True
    """Whether what a box calls the values that it reads stands at the ends of wires, where these do not tell it."""
    broken: tuple[str, float] = ("", 0.0)
    """A frame whose inside stands in several columns, and how high these may be."""
    frames: FrameMemo = field(default_factory=Memo, compare=False)
    """The insides of frames that are laid out in layers already."""


@dataclass(slots=True)
class Station:
    """A thing on the spine, and what is between it and the one below."""

    path: str
    """Of what it gives; of what comes in, that of the frame around the column."""
    item: Item | None = None
    """None for what comes in and what goes out."""
    gives: Origin | None = None
    """The value that goes on upwards; none where nothing comes in or goes on."""
    fragment: Fragment = field(default_factory=Fragment)
    y: float = 0.0
    """Of its lower end."""
    straight: DiagramEdge | None = None
    """What comes in straight from the station below."""
    fed: DiagramEdge | None = None
    """What comes in from below out of a lane."""
    feed_y: float = 0.0
    """Where that turns in."""
    tap_y: float = 0.0
    """Where what it gives first leaves for a lane."""
    exit_y: list[float] = field(default_factory=list)
    """Where it leaves for outputs of the model, for losses and, if it does not go straight on there, for other columns."""


@dataclass(slots=True)
class Spine:
    """All stations from below, which begin with what comes in and end with what goes out."""

    flow: Flow
    width: float
    """Of its boxes."""
    options: LayoutOptions
    sent: frozenset[Origin]
    """Values that other columns read."""
    outer_inputs: Mapping[str, OuterInput]
    """What stands beside the way to its first reader, by path."""
    readers: Mapping[str, int]
    """Which station that is."""
    numbers: Mapping[str, int]
    """Which station an item is."""
    stations: list[Station] = field(default_factory=list)
    found: Fragment = field(default_factory=Fragment)
    beside: list[Area] = field(default_factory=list)
    """What stands beside the spine between two stations."""
    read: frozenset[Origin] = field(init=False)
    """What the items read, without what is inside of them."""
    ports: dict[str, set[str]] = field(default_factory=dict, init=False)
    """Of each path, the second outputs that are read by a wire, by what is inside of items too."""

    at_ends: dict[str, set[str]] = field(default_factory=dict, init=False)
    """Of each path, the second outputs that outputs of the model and losses lead from."""

    begun: Mapping[str, str] = field(init=False)
    """Of what branches side by side begin with, the path of all of these."""
    turned: frozenset[str] = field(init=False)
    """Items of which the next one reads a second output, which comes around from their side: what they give first goes off at
    the other side, where it does not cross that.
    """
    led_out: dict[str, set[InnerOutput]] = field(default_factory=dict, init=False)
    """Of each frame, what is read by a wire from its inside."""

    def __post_init__(self) -> None:
        self.begun = begun_in_branches(self.flow)
        self.turned = frozenset(
            below.about.path for below, above in pairwise(self.flow.items) if goes_around(self.flow, below, above)
        )
        self.read = frozenset(edge.source.origin for edge in self.flow.edges)
        for source in (*(edge.source for edge in self.flow.all_edges()), *([self.flow.outlet] if self.flow.outlet else [])):
            if isinstance(source.origin, InnerOutput):
                self.led_out.setdefault(source.path, set()).add(source.origin)
            elif source.port and not source.reference and not source.from_inside:
                self.ports.setdefault(source.path, set()).add(source.port)
        ends = (source for _, source in self.flow.exits), (edge.source for sink in self.flow.sinks for edge in sink.edges)
        for holder, _, port in (source.path.rpartition(".") for source in chain(*ends)):  # outputs and losses lead from there
            if isinstance(self.flow.by_path.get(holder), Leaf):
                self.at_ends.setdefault(holder, set()).add(port)

    def number(self, source: DiagramSource) -> int | None:
        """Return which station a value comes from; none for one from elsewhere."""
        if source.origin == self.flow.entry:
            return 0
        return None if isinstance(source.origin, FrameInput) else self.numbers.get(self.begun.get(source.path, source.path))

    def is_below(self, source: DiagramSource, number: int) -> bool:
        """Return whether a value comes straight up from the station below one."""
        return self.number(source) == number - 1 and not source.port and source.path not in self.begun

    def side_of(self, source: DiagramSource) -> int:
        """Return at which side a value goes into a lane that leads to below a block: where it leaves a frame, else where lanes
        are.
        """
        if source.path in self.turned and source.origin == NodeOutput(source.path):
            return -self.options.side
        inside = isinstance(source.origin, InnerOutput) or source.path in self.begun
        number = self.number(source) if inside else None
        known = number is not None and number < len(self.stations)  # a wire back comes from above
        tap = self.stations[number].fragment.taps.get(source.origin) if number is not None and known else None
        return (1 if tap[-1][0] > 0 else -1) if tap else self.options.side

    def local(self, source: DiagramSource) -> bool:
        """Return whether a value comes from something in this column."""
        return self.number(source) is not None or source.path in self.outer_inputs

    def fits_box_width(self, station: Station) -> bool:
        """Return whether nothing stands beside a block."""
        return station.item is None or station.fragment.left <= self.width / 2 + 1

    def keep(self, area: Area) -> None:
        """Keep room for what stands beside the spine between two stations."""
        self.beside.append(area)
        self.found.right = max(self.found.right, area.right)
        self.found.left = max(self.found.left, -area.left)


def goes_around(flow: Flow, below: Item, above: Item) -> bool:
    """Return whether an item is led up to by a second output of the one below it alone, which leaves that at a side."""
    streams = [edge.source for edge in flow.edges_into(above.about.path) if edge.main and edge.upward and not edge.passage]
    origins = [source.origin for source in streams if source.path == below.about.path]
    return len(origins) == len(streams) == 1 and isinstance(origins[0], NodeOutput) and bool(origins[0].port)
