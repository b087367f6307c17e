"""What a drawing consists of, before anything has a place: blocks, frames around some of them, and edges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from blocks.core import Look
from composer.draw.about import About
from composer.draw.edges import DiagramEdge, DiagramSource, ModelInput, NodeOutput, Origin
from composer.draw.paths import belongs
from composer.draw.scene import Places
from composer.draw.style.typography import Role


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
    model_input: bool = False
    """Whether it stands for an input of the model."""
    lines: tuple[tuple[Role, str], ...] = ()
    """On a narrow page, all that it says line by line, in place of title, detail and parameters."""
    name: str = ""
    """That of its node, where it tells more than the title."""
    array: bool = False
    """Whether it is numbers that read nothing, whose title is their name."""
    by_name: bool = False
    """Whether that name comes first in its title, where both have room: it says which of several uses of a block it is."""
    in_formula: bool = False
    """Whether a formula reads it by that name, which it then shows however long its title is."""
    gives: str = ""
    """What its first output is called, where it has several."""
    takes: str = ""
    """What its first input is called, where it has several, of a box that stands for what is in it."""
    closed: bool = False
    """Whether it stands for what is in it, which it may tell in a few lines."""
    elsewhere: bool = False
    """Whether it is a block of the recipe in another closed box that stands elsewhere in the model too."""
    places: Places = ""
    """Whether it gives fewer or more places than it reads, in all passes that it stands for."""
    parallel: bool = False
    """Whether it stands for passes of which none reads what another one gives."""


@dataclass(frozen=True, slots=True)
class OpenMixture:
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
    brief: tuple[str, ...] = ()
    """It in a few letters, from the fullest to the shortest."""
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
    def origin(self) -> Origin:
        """The value that leads to it."""
        return self.edges[0].source.origin


@dataclass(frozen=True, slots=True)
class Passage:
    """Where a value goes through the border of a frame: in at the bottom, out at the top."""

    port: str
    """What it is called: in the frame, the port of what comes in; nothing for the stream."""
    made: DiagramSource | None
    """What goes out there, which the next pass is given; nothing where a value only comes in."""
    enters: bool = True
    """Whether a value comes in."""
    read: bool = True
    """Whether what the last pass gives there is read around the frame."""


@dataclass(frozen=True, slots=True)
class Group:
    """What stands in a frame."""

    about: About
    header: tuple[str, ...]
    flows: tuple[Flow, ...]
    """One; or those of which each pass takes one, each with its own header."""
    headers: tuple[tuple[str, ...], ...] = ()
    cells: tuple[tuple[int, ...], ...] = ()
    """Of each of several flows, which cells of the map of layers it stands for; nothing where there is no map."""
    count: str = ""
    """How many passes or steps, for a repeat or a scan."""
    kinds: tuple[int, ...] = ()
    """Where passes differ, which kind each is; 0 is the most frequent."""
    after: str = ""
    """What happens in training to what it gives."""
    passages: tuple[Passage, ...] = ()
    """Of one that is laid out in layers, all that goes through its border, from the left."""
    parallel: bool = False
    """Whether no pass reads what another one gives."""
    shape: str = ""
    """Of what it gives, where it is not that of what it reads."""
    widths: str = ""
    """From which width to which its passes map one after the other, each by its only map: `64 → 128 → 1024`."""
    gives: str = ""
    """What its first output is called, where it has several."""
    goes_on: str = ""
    """Who alone reads what each pass returns: `next layer`; nothing where something around it does."""
    next_pass: str = ""
    """What the pass after one is called: `next layer`."""

    @property
    def pill(self) -> str:
        """How often it is passed through, as its pill says it; nothing for what is no repeat."""
        if not self.count:
            return ""
        return f"{self.count} in parallel" if self.parallel else f"× {self.count}"

    @property
    def is_many(self) -> bool:
        """Whether it stands for several side by side."""
        return self.parallel and bool(self.count)

    def map_flows(self, change: Callable[[Flow], Flow]) -> Group:
        """Return it with every flow in it changed."""
        return replace(self, flows=tuple(map(change, self.flows)))


@dataclass(frozen=True, slots=True)
class Branches:
    """Flows side by side that start from one value, or each from inputs of its own, and end in one block; or each in outputs and
    losses of its own, the heads of a model.
    """

    flows: tuple[Flow, ...]
    ports: tuple[str, ...]
    """Of the block where they end, that of each flow."""
    join: Leaf | None
    """None for heads."""
    fork: DiagramSource | None
    places: tuple[str, ...] = ()
    """Which the end of each flow is of the values that the join reads in an order, if it does."""
    bypass: DiagramEdge | None = None
    """What leads straight up from the fork to the join, between the flows."""
    base: Leaf | None = None
    """What each flow starts at another output of; none where all start from one value."""
    outputs: tuple[DiagramSource, ...] = ()
    """Of that, those at which the flows start."""

    def map_flows(self, change: Callable[[Flow], Flow]) -> Branches:
        """Return it with every flow in it changed."""
        return replace(self, flows=tuple(map(change, self.flows)))

    @property
    def about(self) -> About:
        """What stands for all of them: what they start at, or where they end."""
        end = self.base or self.join
        return end.about if end else self.flows[0].items[-1].about


@dataclass(frozen=True, slots=True)
class IrregularSubgraph:
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
        return self.join.about if self.join else self.flows[0].items[-1].about


Item: TypeAlias = Leaf | OpenMixture | Group | Branches | IrregularSubgraph


def is_state(item: Item) -> bool:
    """Return whether an item stands for what the step before gave."""
    return isinstance(item, Leaf) and item.look.hue == "state"


def output_of(item: Item) -> Origin:
    """Return what an item gives first."""
    path = item.about.path
    return ModelInput(path) if isinstance(item, Leaf) and item.model_input else NodeOutput(path)


@dataclass(frozen=True, slots=True)
class Flow:
    """Items in an order in which each comes after what it reads."""

    entry: Origin | None
    """What comes in from below: what a frame is given, or the value at which branches fork; nothing for the model itself."""
    items: tuple[Item, ...]
    edges: tuple[DiagramEdge, ...]
    outlet: DiagramSource | None
    """What it returns."""
    exits: tuple[tuple[str, DiagramSource], ...] = ()
    """What else is read of it: the names of outputs of the model."""
    sinks: tuple[Sink, ...] = ()

    @property
    def owner(self) -> str:
        """The path of what comes in from below; nothing for the model itself."""
        return self.entry.path if self.entry else ""

    @property
    def by_path(self) -> dict[str, Item]:
        """Its items by their paths, in their order."""
        return {item.about.path: item for item in self.items}

    # -- the flow with something else in it

    def with_items(self, items: Iterable[Item]) -> Flow:
        """Return it with other items."""
        return replace(self, items=tuple(items))

    def with_edges(self, edges: Iterable[DiagramEdge]) -> Flow:
        """Return it with other edges."""
        return replace(self, edges=tuple(edges))

    def with_sinks(self, sinks: Iterable[Sink]) -> Flow:
        """Return it with other sinks."""
        return replace(self, sinks=tuple(sinks))

    def with_exits(self, exits: Iterable[tuple[str, DiagramSource]]) -> Flow:
        """Return it with other outputs of the model."""
        return replace(self, exits=tuple(exits))

    def map_items(self, change: Callable[[Item], Item]) -> Flow:
        """Return it with every item changed."""
        return self.with_items(map(change, self.items))

    def map_leaves(self, change: Callable[[Leaf], Leaf]) -> Flow:
        """Return it with every box changed, those in frames too."""

        def of_item(item: Item) -> Item:
            if isinstance(item, Group):
                return item.map_flows(lambda inner: inner.map_leaves(change))
            return change(item) if isinstance(item, Leaf) else item

        return self.map_items(of_item)

    def map_edges(self, change: Callable[[DiagramEdge], DiagramEdge]) -> Flow:
        """Return it with every edge changed, but for those inside of items."""
        return self.with_edges(map(change, self.edges))

    def map_sinks(self, change: Callable[[Sink], Sink]) -> Flow:
        """Return it with every sink changed."""
        return self.with_sinks(map(change, self.sinks))

    def map_groups(self, change: Callable[[Flow], Flow]) -> Flow:
        """Return it with every flow in a frame changed."""
        return self.map_items(lambda item: item.map_flows(change) if isinstance(item, Group) else item)

    def without(self, paths: Collection[str]) -> Flow:
        """Return it without some items, and without the edges into them and the wires from them."""
        edges = (e for e in self.edges if e.target not in paths and (e.source.path not in paths or e.source.reference))
        return self.with_items(item for item in self.items if item.about.path not in paths).with_edges(edges)

    def only(self, paths: Collection[str]) -> Flow:
        """Return it with some items alone, and with what is led into them and out of them."""
        part = self.with_items(item for item in self.items if item.about.path in paths)
        part = part.with_edges(e for e in self.edges if e.target in paths)
        part = part.with_exits((name, source) for name, source in self.exits if belongs(source.path, paths))
        return part.with_sinks(sink for sink in self.sinks if belongs(sink.edges[0].source.path, paths))

    def with_item(self, item: Item, *edges: DiagramEdge) -> Flow:
        """Return it with an item in place of the one that has its path, and with more edges."""
        items = (item if one.about.path == item.about.path else one for one in self.items)
        return self.with_items(items).with_edges((*self.edges, *edges))

    # -- what is in it

    def edges_into(self, path: str) -> tuple[DiagramEdge, ...]:
        """Return what an item reads."""
        return tuple(e for e in self.edges if e.target == path)

    def all_edges(self) -> Iterator[DiagramEdge]:
        """Yield its edges and those of all that it holds."""
        yield from self.edges
        for item in self.items:
            if isinstance(item, Group | Branches | IrregularSubgraph):
                for flow in item.flows:
                    yield from flow.all_edges()

    def returned(self) -> Iterator[DiagramSource]:
        """Yield what it gives as outputs of a model, and what losses and states read."""
        yield from (source for _, source in self.exits)
        yield from (edge.source for sink in self.sinks for edge in sink.edges)

    @property
    def second_streams(self) -> set[Origin]:
        """What a block in it, or in what it holds, reads as another stream."""
        return {edge.source.origin for edge in self.all_edges() if edge.second_stream}

    def leaves(self) -> Iterator[Leaf | OpenMixture]:
        """Yield every block in it and in what it holds."""
        for item in self.items:
            if isinstance(item, Leaf | OpenMixture):
                yield item
                continue
            if isinstance(item, Branches) and item.base:
                yield item.base
            for flow in item.flows:
                yield from flow.leaves()
            if isinstance(item, Branches) and item.join:
                yield item.join


def told_shape(item: Item) -> str:
    """Return the shape that stands above an item: of a frame, nothing where it stands inside of that already, or where several
    values leave there.
    """
    if isinstance(item, Group):
        return "" if item.passages or item.shape in map(told_last, item.flows) else item.shape
    return item.shape if isinstance(item, Leaf) else ""


def told_last(flow: Flow) -> str:
    """Return the shape that is told last on the way to what a flow returns; nothing where none is."""
    streams = {edge.target: edge.source.path for edge in reversed(flow.edges) if edge.main and edge.upward}
    items, path = flow.by_path, flow.outlet.path if flow.outlet else ""
    while isinstance(item := items.pop(path, None), Leaf | Group):
        inner = told_last(item.flows[0]) if isinstance(item, Group) and len(item.flows) == 1 else ""
        if item.shape or inner:
            return item.shape or inner
        path = streams.get(path, "")
    return ""


@dataclass(frozen=True, slots=True)
class Titles:
    """What stands at the head of a page, and how inputs and outputs are called."""

    title: str
    facts: tuple[str, ...]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    description: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    """What inputs are, `B × T · int`; nothing where a figure tells no shapes."""
    required: frozenset[str] = frozenset()
    """Inputs that a model cannot do without."""
