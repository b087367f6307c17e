"""A typed program as one flat graph of blocks: borders dissolved, repeats unrolled, every node still at its path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple, TypeAlias

from blocks.core import Block, Init
from composer.compare.forms import Form, forms
from composer.compare.steps import Carried, Next, Stacked, Step, typed
from composer.diagnostics import Span
from composer.graph.describe import kind_of
from composer.graph.ir import Ref, Wire
from composer.graph.parameters import parameters
from composer.graph.renewal import SUFFIX
from composer.graph.scope import Declaration
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.graph.types import Type
from composer.language.globs import matches

INPUT = "input"
RENEWAL, STATE = "next", "state"
"""What a state becomes is a node of this kind, and reads its state at this port."""
SLOT = "slot "
"""The port by which a block reads what fills one of its slots begins with this."""


class Source(NamedTuple):
    """One output of one node."""

    node: int
    """The node's place among the flat graph's; `HELD.node` is what fills a slot being fed by its holder."""
    port: int
    """Which of its outputs."""


HELD = Source(-1, 0)
Values: TypeAlias = Mapping[str, tuple[Source, ...]]
"""What is there under a name; several for a range of passes."""


@dataclass(frozen=True, slots=True)
class Read:
    """A port and what it reads; a port that takes several has one for each, in order."""

    port: str
    source: Source
    way: tuple[int | None, ...] = ()
    """For a block that broadcasts: where the axes of the value stand among those of the result, where that is not one by one."""


@dataclass(frozen=True, slots=True)
class Learned:
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
    fields: Mapping[str, Form]
    reads: tuple[Read, ...]
    edges: Mapping[str, Source]
    """What the masks among the fields read, by the port that carries it."""
    learned: tuple[Learned, ...]
    block: TypedBlock | None
    commutes: bool = False
    """Whether the order of what it reads means nothing."""
    fed: Source | None = None
    """For what stands in a slot of another block: what that block is fed."""

    @property
    def primary(self) -> Source | None:
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

    typed: TypedProgram
    nodes: tuple[FlatNode, ...]
    inputs: tuple[int, ...]
    """The places of the model's inputs among the nodes, in the order of a call."""
    outputs: Values
    losses: Values
    """Nodes that give the recipe's own losses, by the names of these."""
    places: Mapping[str, Place]
    """Everything that has a path; the inputs first, then in the order in which it computes."""
    readers: Sequence[Sequence[tuple[int, Read]]]
    """For each node, who reads it."""


def flatten(typed: TypedProgram) -> FlatModel:
    """The flat graph of a model."""
    return _Flattener(typed).model()


@dataclass(slots=True)
class _Flattener:
    typed: TypedProgram
    nodes: list[FlatNode] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    forms: dict[int, Mapping[str, Form]] = field(default_factory=dict)
    learned: dict[str, list[Learned]] = field(default_factory=dict)
    top: Mapping[str, list[Values]] = field(default_factory=dict)
    """What the nodes of the outermost graph return."""
    positions: dict[str, Source] = field(default_factory=dict)
    """The nodes that give axes their positions, by axis."""
    fed: list[Source] = field(default_factory=list)
    """What the blocks are fed in whose slots stands what is being flattened, outermost first."""

    def model(self) -> FlatModel:
        self._parameters()
        given: dict[str, tuple[Source, ...]] = {}
        spans = {item.name: item.span for item in self.typed.program.inputs}
        for name in self.typed.inputs:
            given[name] = (Source(len(self.nodes), 0),)
            self.places[name] = Place(INPUT, spans[name], len(self.nodes), len(self.nodes) + 1)
            self.nodes.append(FlatNode(name, INPUT, {}, (), {}, (), None))
        count = len(self.nodes)
        outputs = self.graph(self.typed.root, given, "", None)
        losses = {name: self.resolved(Ref(node), given, self.top) for name, node in self.typed.program.losses.items()}
        return FlatModel(self.typed, tuple(self.nodes), tuple(range(count)), outputs, losses, self.places, readers(self.nodes))

    def _parameters(self) -> None:
        """Each parameter under its node's path, with what the recipe says of it."""
        table = parameters(self.typed)
        starts: dict[str, tuple[Init, bool]] = {}
        for entry in table:
            if not entry.tied_to:
                rules = [Init(how, value) for glob, how, value, _ in self.typed.program.init if matches(glob, entry.name)]  # type: ignore[arg-type]  # one of three words
                starts[entry.name] = (rules[-1], True) if rules else (entry.parameter.init, False)
        for entry in table:
            start, ruled = starts[entry.owner]
            path = entry.name.removesuffix(f".{entry.parameter.name}")
            one = Learned(entry.parameter.name, entry.name, entry.owner, entry.trainable, start, ruled)
            self.learned.setdefault(path, []).append(one)

    def _share(self, path: str, passes: int) -> None:
        """What all passes of a repeat share, under the path of each: to the later ones, what they are tied to."""
        own = {name: several for name, several in self.learned.items() if name.startswith(f"{path}.")}
        for index in range(passes):
            for name, several in own.items():
                later = f"{path}.{index}{name[len(path) :]}"
                tied = [replace(one, full=f"{later}.{one.name}") for one in several]
                self.learned[later] = tied if index else several

    # -- graphs

    def graph(self, graph: TypedGraph, given: Values, prefix: str, holder: Span | None) -> Values:
        """The nodes of a graph; returns what it returns."""
        inside: dict[str, list[Values]] = {}
        for node in graph.nodes:
            inside[node.name] = self.node(node, given, inside, prefix + node.name, holder)
            if not prefix:
                self.top = inside
                self._positions(given)
        return {name: self.resolved(ref, given, inside) for name, ref in graph.graph.outputs}

    def _positions(self, given: Values) -> None:
        for axis, ref in self.typed.program.positions:
            if axis not in self.positions and (ref.node in given or ref.node in self.top):
                (self.positions[axis],) = self.resolved(ref, given, self.top)

    def resolved(self, ref: Ref, given: Values, inside: Mapping[str, list[Values]]) -> tuple[Source, ...]:
        """The values that a reference in a graph names."""
        if ref.node not in inside:
            return given[ref.node]
        outputs = inside[ref.node][-1 if ref.index is None else ref.index]
        return outputs[ref.port] if ref.port else next(iter(outputs.values()))

    def node(
        self, node: TypedNode, given: Values, inside: dict[str, list[Values]], path: str, holder: Span | None
    ) -> list[Values]:
        """What a node returns, pass by pass; one pass for all but a repeat."""
        read = self._wired(node.node.wires, given, inside) if not isinstance(node, TypedRepeat) else {}
        if node.node.dropped:
            through = next(iter(read.values()))
            return [dict.fromkeys(node.outputs, through)]
        start = len(self.nodes)
        span = holder if isinstance(node.node.name_span.source, Declaration) else node.node.name_span
        self.places[path] = Place("", span, start, start)  # a node stands before what is in it
        passes = 0
        match node:
            case TypedBlock():
                if is_renewal(node):
                    read = {**read, STATE: self.resolved(Ref(node.name.removesuffix(SUFFIX)), given, inside)}
                returned: list[Values] = [self.block(node, read, path, span)]
            case TypedGroup(graph=graph):
                returned = [self.graph(graph, read, f"{path}.", span)]
            case TypedScan():
                returned = [self.scan(node, read, path, span)]
            case TypedRepeat():
                returned, passes = inside.setdefault(node.name, []), len(node.passes)
                if node.node.share is not None:
                    self._share(path, passes)
                for index, (one, graph) in enumerate(zip(node.node.passes, node.passes, strict=True)):
                    first = len(self.nodes)
                    self.places[f"{path}.{index}"] = Place("pass", span, first, first, index)
                    read = self._wired(one.wires, given, inside)
                    returned.append(self.graph(graph, read, f"{path}.{index}.", span))
                    self.places[f"{path}.{index}"] = Place("pass", span, first, len(self.nodes), index)
        self.places[path] = Place(kind_of(node), span, start, len(self.nodes), passes=passes)
        return returned

    def scan(self, scan: TypedScan, read: Values, path: str, span: Span | None) -> Values:
        """One step, with what goes into it, to the next and out."""
        inside = dict(read)
        types = scan.graph.inputs
        for port, axis in scan.steps.items():
            step = Step.model_construct(axis=axis)
            inside[port] = self._beside(scan, step, types[port], f"{path}.{port}", {"x": read[port]}, span)
        for port in scan.carried:
            inside[port] = self._beside(scan, Carried(), types[port], f"{path}.{port}", {"start": read[port]}, span)
        returned = self.graph(scan.graph, inside, f"{path}.", span)
        for port, output in scan.carried.items():
            both = {"returned": returned[output], "carried": inside[port]}
            self._beside(scan, Next(), types[port], f"{path}.next {port}", both, span)
        first = next(iter(returned))
        stacked = Stacked.model_construct(axis=scan.place)
        gives = self._beside(scan, stacked, scan.outputs[first], f"{path}.every {first}", {"x": returned[first]}, span)
        return {**returned, first: gives}

    def _beside(
        self, scan: TypedScan, part: Block, type_: Type | tuple[Type, ...], path: str, read: Values, span: Span | None
    ) -> tuple[Source, ...]:
        start = len(self.nodes)
        given = self.block(typed(scan, part, type_ if not isinstance(type_, tuple) else type_[0]), read, path, span)
        self.places[path] = Place(part.kind, span, start, start + 1)
        return given["y"]

    def _wired(self, wires: Iterable[Wire], given: Values, inside: Mapping[str, list[Values]]) -> Values:
        return {wire.port: tuple(s for ref in wire.refs for s in self.resolved(ref, given, inside)) for wire in wires}

    # -- blocks

    def block(self, block: TypedBlock, read: Values, path: str, span: Span | None) -> Values:
        """One block, after what fills its slots."""
        slots: list[Read] = []
        for name, filled in block.slots.items():
            if filled is not None:
                first = next((sources[0] for sources in read.values()), HELD)
                self.fed.append(self.fed[-1] if first == HELD and self.fed else first)
                (outputs,) = self.node(filled, {INPUT: (HELD,)}, {}, f"{path}.{name}", span)
                self.fed.pop()
                slots.append(Read(f"{SLOT}{name}", next(iter(outputs.values()))[0]))
        if id(block) not in self.forms:
            self.forms[id(block)] = forms(block)
        masked = {port for form in self.forms[id(block)].values() for port in form.ports()}
        reads = [Read(port, source) for port, sources in read.items() for source in sources if port not in masked]
        for port, axis in type(block.part).counts.items():
            source = self.positions.get(str(block.sizes.get(axis)))
            if port not in read and source is not None:
                reads.append(Read(port, source))
        if any(way != tuple(range(len(way))) for way in block.expansions):
            reads = [Read(one.port, one.source, way) for one, way in zip(reads, block.expansions, strict=True)]
        edges = {port: sources[0] for port, sources in read.items() if port in masked}
        node = FlatNode(
            path,
            RENEWAL if is_renewal(block) else block.part.kind,
            self.forms[id(block)],
            (*reads, *slots),
            edges,
            tuple(self.learned.get(path, ())),
            block,
            commutes(block),
            self.fed[-1] if self.fed else None,
        )
        self.nodes.append(node)
        return {port: (Source(len(self.nodes) - 1, index),) for index, port in enumerate(block.outputs)}


def commutes(block: TypedBlock) -> bool:
    """Whether a block is a sum or a product of all that it reads."""
    return block.part.inline() in ("{xs: + }", "{xs: * }")


def readers(nodes: Sequence[FlatNode]) -> list[list[tuple[int, Read]]]:
    """For each node, who reads it."""
    found: list[list[tuple[int, Read]]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for read in (*node.reads, *(Read(port, source) for port, source in node.edges.items())):
            if read.source != HELD:
                found[read.source.node].append((index, read))
    return found


def ports(reads: Iterable[Read]) -> Iterator[tuple[str, tuple[Read, ...]]]:
    """Each port with all that it reads."""
    for port, several in groupby(reads, key=lambda read: read.port):
        yield port, tuple(several)
