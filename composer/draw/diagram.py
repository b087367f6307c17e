"""What a drawing consists of, before anything has a place: blocks, frames around some of them, and edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from blocks.core import Look
from composer.draw.scene import About, Role

Net: TypeAlias = tuple[str, str]
"""A value that wires lead away from a block: the block's path, and the port."""


@dataclass(frozen=True, slots=True)
class DiagramSource:
    """Where a value comes from."""

    path: str
    """Of a block, a frame or an input of the model; inside a frame, the frame's own path for what it was given."""
    port: str = ""
    shape: str = ""
    given: bool = False
    """Whether it is an input of the model."""
    word: str = ""
    """What is said behind its name: that it is an input, and may be left out."""
    chip: str = ""
    """What it is called where no wire leads to it."""

    @property
    def net(self) -> Net:
        """The value itself."""
        return self.path, self.port


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """A value that something reads."""

    source: DiagramSource
    target: str
    port: str
    main: bool
    """Whether it is the stream, and not something from the side."""
    partial: bool = False
    """Whether only some passes of a repeat have it."""
    back: bool = False
    """Whether it is what the pass or the step before gave."""
    measured: bool = False
    """Whether only its sizes count."""
    trains: bool = False
    """Whether a loss reads it."""

    @property
    def upward(self) -> bool:
        """Whether it is drawn as a wire that goes on from below."""
        return not self.source.chip and not self.back

    @property
    def named(self) -> str:
        """What it is called where no wire leads to its source."""
        name = self.source.chip or self.source.path
        return f"sizes of {name}" if self.measured else name


@dataclass(frozen=True, slots=True)
class Row:
    """One of several things that a block is, in some passes of a repeat each."""

    share: str
    """`22 of 26`."""
    look: Look
    passes: int
    kinds: tuple[int, ...] = ()
    """Which cells of the map of layers these are; nothing where there is no map."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A block."""

    about: About
    look: Look
    params: str = ""
    """How many parameters one of it has, or that they are another's."""
    shape: str = ""
    """Of what it gives, where it is not that of what it reads."""
    rows: tuple[Row, ...] = ()
    """Where passes differ."""
    after: str = ""
    """What happens in training to what it gives: `dropout 0.1`."""
    lines: tuple[tuple[Role, str], ...] = ()
    """On a narrow page, all that it says line by line, in place of title, detail and parameters."""


@dataclass(frozen=True, slots=True)
class Fan:
    """A mixture of experts, opened."""

    about: About
    router: Leaf
    expert: Look
    header: tuple[str, ...]
    experts: int
    visited: int
    most: int
    """How many are drawn, where there are more."""
    shared: Leaf | None = None
    outputs: tuple[str, ...] = ()
    """What is read of it beside its output."""
    after: str = ""
    """What happens in training to what it gives."""
    row: Row | None = None
    """Which passes of a repeat have it, where others have something else in its place."""
    instead: tuple[Leaf, ...] = ()
    """What these have, a row in each."""

    @property
    def pool(self) -> int:
        """The parameters of all experts."""
        return self.about.parameters - sum(leaf.about.parameters for leaf in self.instead)


@dataclass(frozen=True, slots=True)
class Sink:
    """What reads a value and gives nothing: a loss, or the state that it becomes in the next call."""

    leaf: Leaf | None
    """A loss as a box; none for what is only called by its name."""
    path: str
    name: str
    edges: tuple[DiagramEdge, ...]
    """What it reads; the first one leads to it, others come by name."""

    @property
    def net(self) -> Net:
        """The value that leads to it."""
        return self.edges[0].source.net


@dataclass(frozen=True, slots=True)
class Group:
    """What stands in a frame."""

    about: About
    header: tuple[str, ...]
    flows: tuple[Flow, ...]
    """One; or those of which each pass takes one, each with its own header."""
    headers: tuple[tuple[str, ...], ...] = ()
    count: str = ""
    """How many passes or steps, for a repeat or a scan."""
    kinds: tuple[int, ...] = ()
    """Where passes differ, which kind each is; 0 is the most frequent."""
    after: str = ""
    """What happens in training to what it gives."""


@dataclass(frozen=True, slots=True)
class Branches:
    """Flows side by side that start from one value, or each from inputs of its own, and end in one block."""

    flows: tuple[Flow, ...]
    ports: tuple[str, ...]
    """Of the block where they end, that of each flow."""
    join: Leaf
    fork: DiagramSource | None

    @property
    def about(self) -> About:
        """What stands for all of them: where they end."""
        return self.join.about


@dataclass(frozen=True, slots=True)
class Web:
    """Blocks from a fork to a join that stand neither in line nor side by side."""

    flow: Flow
    """In it the join comes last."""
    join: Leaf
    fork: DiagramSource

    @property
    def flows(self) -> tuple[Flow, ...]:
        """All that it holds."""
        return (self.flow,)

    @property
    def about(self) -> About:
        """What stands for all of them: where they end."""
        return self.join.about


Item: TypeAlias = Leaf | Fan | Group | Branches | Web


@dataclass(frozen=True, slots=True)
class Flow:
    """Items in an order in which each comes after what it reads."""

    owner: str
    """The frame that holds it, whose path is the source of what it was given; nothing for the model itself."""
    items: tuple[Item, ...]
    edges: tuple[DiagramEdge, ...]
    outlet: DiagramSource | None
    """What it returns."""
    exits: tuple[tuple[str, DiagramSource], ...] = ()
    """What else is read of it: the names of outputs of the model."""
    sinks: tuple[Sink, ...] = ()

    def all_edges(self) -> Iterator[DiagramEdge]:
        """Its edges and those of all that it holds."""
        yield from self.edges
        for item in self.items:
            if isinstance(item, Group | Branches | Web):
                for flow in item.flows:
                    yield from flow.all_edges()

    def leaves(self) -> Iterator[Leaf | Fan]:
        """Every block in it and in what it holds."""
        for item in self.items:
            if isinstance(item, Leaf | Fan):
                yield item
                continue
            for flow in item.flows:
                yield from flow.leaves()
            if isinstance(item, Branches):
                yield item.join
