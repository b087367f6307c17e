"""A model as one flat graph of blocks: groups dissolved, repeats unrolled; each node keeps its path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeAlias

from blocks.core import Init
from composer.diagnostics import Span
from composer.diff.normal_forms import NormalForm
from composer.graph.typed import TypedBlock, TypedProgram

INPUT = "input"
STEP = "each step"
"""The type of the node that stands for what each step of a scan begins with."""
NEXT_STATE, STATE = "next", "state"
"""The type of the node that computes the next value of a state, and the port at which it reads the state."""
SLOT = "slot "
"""How the names of ports begin by which a block reads what fills its slots."""


class FlatSource(NamedTuple):
    """One output of one node."""

    node: int
    """The index of the node in the flat graph; −1 for what a part in a slot reads from the block that has the slot."""
    port: int
    """The index of the output."""


SLOT_FEED = FlatSource(-1, 0)
FlatValues: TypeAlias = Mapping[str, tuple[FlatSource, ...]]
"""Values by name; several under one name for a range of passes."""


@dataclass(frozen=True, slots=True)
class Read:
    """A port and what it reads; a port that takes several has one for each, in order."""

    port: str
    source: FlatSource
    expansion: tuple[int | None, ...] = ()
    """For a block that broadcasts: the axes of the result that the axes of the value are; empty if all are the same."""


@dataclass(frozen=True, slots=True)
class FlatParameter:
    """A parameter of a node, with its name in the whole model."""

    name: str
    """The name below the node."""
    full: str
    owner: str
    """The parameter that it is tied to; itself if it is not tied."""
    trainable: bool
    start: Init
    set_by_recipe: bool
    """Whether the recipe says how it starts, under `init`; otherwise the block does."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatNode:
    """A block with all that it reads, from any graph; or an input of the model, which reads nothing."""

    path: str
    kind: str
    fields: Mapping[str, NormalForm]
    reads: tuple[Read, ...]
    edges: Mapping[str, FlatSource]
    """What the masks among the fields read, by port."""
    learned: tuple[FlatParameter, ...]
    block: TypedBlock | None
    commutes: bool = False
    """Whether the order of what it reads does not matter."""
    slot_feed: FlatSource | None = None
    """For a part in a slot: what the block reads that has the slot."""

    @property
    def primary(self) -> FlatSource | None:
        """The first value that it reads, except for what fills its slots."""
        return next((read.source for read in self.reads if not read.port.startswith(SLOT)), None)


@dataclass(frozen=True, slots=True)
class Place:
    """A node at any level: a block, a group, a repeat, or one pass."""

    kind: str
    span: Span | None
    """The span of its name; for a node that a block expands to, that of the block's."""
    start: int
    end: int
    """The range of the flat nodes in it; of a block, with its own."""
    number: int | None = None
    """The number of the pass; none for what is no pass."""
    passes: int = 0
    """How many passes a repeat has."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatModel:
    """All blocks of a model in topological order."""

    program: TypedProgram
    nodes: tuple[FlatNode, ...]
    inputs: tuple[int, ...]
    """The indices of the inputs among the nodes, in the order of a call."""
    outputs: FlatValues
    losses: FlatValues
    """The recipe's own losses, by name."""
    places: Mapping[str, Place]
    """Everything that has a path: first the inputs, then the nodes in topological order, each before what is in it."""
    readers: Sequence[Sequence[tuple[int, Read]]]
    """For each node, the nodes that read it."""


def commutes(block: TypedBlock) -> bool:
    """Return whether a block is a sum or a product of all that it reads."""
    return block.part.inline(block.sizes) in ("{xs: + }", "{xs: * }")


def readers(nodes: Sequence[FlatNode]) -> list[list[tuple[int, Read]]]:
    """Return, for each node, the indices of the nodes that read it, with the port."""
    found: list[list[tuple[int, Read]]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for read in (*node.reads, *(Read(port, source) for port, source in node.edges.items())):
            if read.source != SLOT_FEED:
                found[read.source.node].append((index, read))
    return found


def ports(reads: Iterable[Read]) -> Iterator[tuple[str, tuple[Read, ...]]]:
    """Yield each port with all that it reads."""
    for port, several in groupby(reads, key=lambda read: read.port):
        yield port, tuple(several)
