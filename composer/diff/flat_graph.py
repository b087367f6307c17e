"""A model as one flat graph of blocks: borders dissolved, repeats unrolled, every node still at its path."""

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
"""What each step of a scan begins with is a node of this kind."""
RENEWAL, STATE = "next", "state"
"""What a state becomes is a node of this kind, and reads its state at this port."""
SLOT = "slot "
"""The port by which a block reads what fills one of its slots begins with this."""


class FlatSource(NamedTuple):
    """One output of one node."""

    node: int
    """The node's place among the flat graph's; `HELD.node` is what fills a slot being fed by its holder."""
    port: int
    """Which of its outputs."""


HELD = FlatSource(-1, 0)
FlatValues: TypeAlias = Mapping[str, tuple[FlatSource, ...]]
"""What is there under a name; several for a range of passes."""


@dataclass(frozen=True, slots=True)
class Read:
    """A port and what it reads; a port that takes several has one for each, in order."""

    port: str
    source: FlatSource
    way: tuple[int | None, ...] = ()
    """For a block that broadcasts: where the axes of the value stand among those of the result, where that is not one by one."""


@dataclass(frozen=True, slots=True)
class FlatParameter:
    """A parameter of a node, as the whole model has it."""

    name: str
    """Below the node."""
    full: str
    owner: str
    """The name that owns the tensor; the full one where it is not tied."""
    trainable: bool
    start: Init
    ruled: bool
    """Whether the recipe says how it starts, and not the block."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatNode:
    """A block with what it reads, wherever that stands; an input of the model reads nothing."""

    path: str
    kind: str
    fields: Mapping[str, NormalForm]
    reads: tuple[Read, ...]
    edges: Mapping[str, FlatSource]
    """What the masks among the fields read, by the port that carries it."""
    learned: tuple[FlatParameter, ...]
    block: TypedBlock | None
    commutes: bool = False
    """Whether the order of what it reads means nothing."""
    fed: FlatSource | None = None
    """For what stands in a slot of another block: what that block is fed."""

    @property
    def primary(self) -> FlatSource | None:
        """The stream that flows through it."""
        return next((read.source for read in self.reads if not read.port.startswith(SLOT)), None)


@dataclass(frozen=True, slots=True)
class Place:
    """A node at any level: a block, a group, a repeat, or one pass."""

    kind: str
    span: Span | None
    """Where its name is written; for a node that a block expands to, the block's."""
    start: int
    end: int
    """The flat nodes below it, its own among them."""
    number: int | None = None
    """Which pass it is."""
    passes: int = 0
    """How many a repeat has."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatModel:
    """Every block of a model, each after what it reads."""

    program: TypedProgram
    nodes: tuple[FlatNode, ...]
    inputs: tuple[int, ...]
    """The places of the model's inputs among the nodes, in the order of a call."""
    outputs: FlatValues
    losses: FlatValues
    """Nodes that give the recipe's own losses, by the names of these."""
    places: Mapping[str, Place]
    """Everything that has a path; the inputs first, then in the order in which it computes."""
    readers: Sequence[Sequence[tuple[int, Read]]]
    """For each node, who reads it."""


def commutes(block: TypedBlock) -> bool:
    """Return whether a block is a sum or a product of all that it reads."""
    return block.part.inline() in ("{xs: + }", "{xs: * }")


def readers(nodes: Sequence[FlatNode]) -> list[list[tuple[int, Read]]]:
    """Return the readers of each node."""
    found: list[list[tuple[int, Read]]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for read in (*node.reads, *(Read(port, source) for port, source in node.edges.items())):
            if read.source != HELD:
                found[read.source.node].append((index, read))
    return found


def ports(reads: Iterable[Read]) -> Iterator[tuple[str, tuple[Read, ...]]]:
    """Yield each port with all that it reads."""
    for port, several in groupby(reads, key=lambda read: read.port):
        yield port, tuple(several)
