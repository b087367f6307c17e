"""Edges of a diagram: where a value comes from, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

REQUIRED_INPUT, OPTIONAL_INPUT = " (input)", " (optional input)"
"""What stands behind the name of an input of the model where no wire leads from it."""
OUTPUT = " output"
"""Behind the name of a block, for what it gives."""
SIZES_OF = "sizes of "
"""Before the name of a value of which only the shape is read."""
TIMES = " ×"
"""Behind how often a block reads a value that it reads several times."""
SEVERAL = ", "
"""Between the names of values that come in as one."""


@dataclass(frozen=True, slots=True)
class NodeOutput:
    """What a block or a frame computes."""

    path: str
    port: str = ""
    """Nothing for its first output."""


@dataclass(frozen=True, slots=True)
class PassOutput:
    """What one pass of a repeat gives, where a wire leads to it from the side of the repeat."""

    path: str
    """Of the repeat."""
    port: str
    """The pass as it is called: `layers(3)`."""
    index: int


@dataclass(frozen=True, slots=True)
class InnerOutput:
    """What is made inside of a frame and read beside it, by a wire from there: a second output, or what some passes give."""

    path: str
    """Of the frame."""
    port: str
    """What it is called in the recipe: `layers(0:10).skip`."""
    made: NodeOutput
    """What makes it inside."""
    passes: str
    """Which passes these are, in words; nothing for a frame that is no repeat."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """An input of the model."""

    path: str
    """Its name."""
    port: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class FrameInput:
    """What goes up into a frame, as it is read inside of it."""

    path: str
    """Of the frame."""
    port: str = ""
    """Of a frame that is laid out in layers, the passage that it comes in through; nothing for its stream."""


@dataclass(frozen=True, slots=True)
class PreviousPass:
    """What earlier passes of a repeat have computed, or the previous step of a scan, until it is known which block that is."""

    path: str
    """Of the repeat or the scan."""
    port: str
    """Of its outputs."""
    immediate: bool
    """Whether it is the pass just before, so that a wire may lead back to it."""


Origin: TypeAlias = NodeOutput | PassOutput | InnerOutput | ModelInput | FrameInput | PreviousPass
"""What makes a value."""


def maker(origin: Origin) -> Origin:
    """Return what makes a value, inside of the frame that it is read of."""
    return origin.made if isinstance(origin, InnerOutput) else origin


@dataclass(frozen=True, slots=True)
class DiagramSource:
    """Where a value comes from, and what stands on the page about it."""

    origin: Origin
    shape: str = ""
    suffix: str = ""
    """What is said behind its name: that it is an input, and may be left out."""
    reference: str = ""
    """What it is called where no wire leads to it."""
    passes: str = ""
    """Which passes of a repeat give it, in words, where it is called by a name of theirs."""
    called: str = ""
    """What it is called by its name, where that is not its own name."""
    number: str = ""
    """The one number that it is, which is then its `reference`."""
    at_first: bool = False
    """Whether the first pass or step reads it, and the others in its place what the one before gave."""
    state: bool = False
    """Whether it is a state of a recurrence that has a box, which stands for what the one before gave."""

    @property
    def path(self) -> str:
        """Of what makes it."""
        return self.origin.path

    @property
    def port(self) -> str:
        """Of what makes it; nothing for the first output."""
        return self.origin.port

    @property
    def own_name(self) -> str:
        """The path of what makes it, and which of its outputs it is where that is not the first."""
        return f"{self.path}.{self.port}" if self.port else self.path

    @property
    def of_last_pass(self) -> bool:
        """Whether words tell that the last pass of a repeat gives it, which is what leaves a repeat."""
        return self.passes.startswith("last ") and " of " not in self.passes

    @property
    def is_model_input(self) -> bool:
        """Whether it is an input of the model."""
        return isinstance(self.origin, ModelInput)

    @property
    def from_inside(self) -> bool:
        """Whether a wire from it starts at a border and goes on inside of that."""
        return isinstance(self.origin, FrameInput)

    def by_name(self, name: str = "") -> DiagramSource:
        """Return it as it is called where no wire leads to it: by a name, or else by its own."""
        return replace(self, reference=name or self.reference or self.called or self.own_name)


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """A value that something reads."""

    source: DiagramSource
    target: str
    port: str
    """Several, where values of several passes come in as one: `, skip, far`, of which the first is that of the stream."""
    main: bool
    """Whether it is the stream, and not something from the side."""
    partial: bool = False
    """Whether only some passes of a repeat have it."""
    back: bool = False
    """Whether it is what the pass or the step before gave."""
    shape_only: bool = False
    """Whether only its sizes count."""
    second_stream: bool = False
    """Whether it is another stream, such as the memory of cross-attention."""
    trains: bool = False
    """Whether a loss reads it."""
    forks: bool = False
    """Whether it leads to a fork, from which branches go on; then no port of its target reads it."""
    passage: str = ""
    """Of a frame with several passages, that through which it comes in; nothing for the stream."""
    input: str = ""
    """What its target calls it by a name that its author or the block declares; nothing for a stream, and for what has none."""
    place: str = ""
    """Which it is of the values that its target reads in an order, counted from 1, or several; how often its target reads it,
    `2 ×`, where order is nothing and that is more than once; else nothing.
    """
    readers: str = field(default="", compare=False)
    """Which passes of a repeat have it, if not all do and few words tell which."""

    def reading(self, source: DiagramSource) -> DiagramEdge:
        """Return it from another source."""
        return replace(self, source=source)

    def by_name(self) -> DiagramEdge:
        """Return it as one from a source that is called by its name."""
        return self.reading(self.source.by_name())

    @property
    def starts(self) -> bool:
        """Whether its whole value is what a recurrence starts with, in all of its passes."""
        return self.source.at_first and self.upward and not self.source.port and not self.partial

    def begins(self, loop: DiagramEdge) -> bool:
        """Return whether the first pass or step reads it where others read what comes back by a loop: one input of a block."""
        same = self.target == loop.target and self.place == loop.place and not (self.partial or loop.partial)
        return self.source.at_first and loop.back and same and {*self.port.split(SEVERAL)} <= {*loop.port.split(SEVERAL)}

    @property
    def of_state(self) -> bool:
        """Whether it is what the pass or the step before gave, from where that is made or from a box that stands for it."""
        return self.back or self.source.state

    @property
    def upward(self) -> bool:
        """Whether it is drawn as a wire that goes on from below."""
        return not self.source.reference and not self.of_state

    @property
    def named(self) -> str:
        """What it is called where no wire leads to its source."""
        name = self.source.reference or self.source.called or self.source.own_name
        return f"{SIZES_OF}{name}" if self.shape_only else name


def grouped(edges: Iterable[DiagramEdge], key: Callable[[DiagramEdge], str]) -> dict[str, list[DiagramEdge]]:
    """Return edges by one of their ends."""
    found: dict[str, list[DiagramEdge]] = {}
    for edge in edges:
        found.setdefault(key(edge), []).append(edge)
    return found


def joined_inputs(edges: Sequence[DiagramEdge]) -> str:
    """Return what a target calls values that come in as one; nothing where it has no name for one of them."""
    names = dict.fromkeys(edge.input for edge in edges)
    return "" if "" in names else SEVERAL.join(names)


def joined_places(edges: Iterable[DiagramEdge]) -> str:
    """Return which value edges that are drawn as one stand for; nothing where they do not agree."""
    places = {edge.place for edge in edges}
    return places.pop() if len(places) == 1 else ""
