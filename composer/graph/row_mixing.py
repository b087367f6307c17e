"""Which nodes let the rows of a batch depend on each other.

Where none does, a row gives the same whatever the others are, and batches whose gradients are accumulated equal one large one.
It is derived from the types: a block mixes rows if it mixes an axis whose size depends on the number of rows, or reads one in
order, by a mask, a cache, a carry or positions. What depends on rows and has no axis for them is one value for the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from blocks.core import Part
from blocks.losses.loss import Loss
from composer.diagnostics import Span
from composer.graph.anatomy import regions
from composer.graph.dims import Dim, Quotient, Symbolic, leaves
from composer.graph.ir import Ref
from composer.graph.passes.infer.text_dependence import masks, read_by
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.graph.types import TensorType, Type, Types, each_of
from composer.graph.visit import every_pass, walk
from composer.language.expressions.ast import RefPath
from composer.language.tasks import TASKS
from composer.language.wording import with_article


@dataclass(frozen=True, slots=True)
class Mixing:
    """A node that lets rows of a batch depend on each other."""

    path: str
    does: str
    """What it is and does: `is a mean, which mixes the rows of a batch`."""
    span: Span
    """Where it is in the recipe."""


def mixing(program: TypedProgram, *, training: bool) -> Iterator[Mixing]:
    """Yield the nodes that let rows depend on each other, losses apart, each once.

    Args:
        program: The typed program.
        training: Whether the model is in training, where statistics of a batch count too.
    """
    rows = _rows(program)
    if isinstance(rows, Mixing):
        yield rows
        return
    for visit in walk(program.root, every_pass, once=True):
        does = _does(visit.node, rows, training=training)
        if does is not None:
            yield Mixing(visit.path, does, visit.node.node.name_span)
    yield from _Whole(rows).readers(program.root)


def _rows(program: TypedProgram) -> frozenset[object] | Mixing:
    """Return what the number of rows is made of: the first axis of what the task reads, or of the first input."""
    asked = TASKS[program.untyped.recipe.task].inputs if program.untyped.recipe.task else {}
    names = [*(name for name in asked if name in program.inputs), *program.inputs]
    for name in names:
        sizes = program.inputs[name].sizes
        if sizes and isinstance(sizes[0], int):
            does = f"has {sizes[0]} rows, so what is computed across them is not known by its type"
            return Mixing(name, does, next(each.type.span for each in program.untyped.inputs if each.name == name))
        if sizes:
            return frozenset(leaves(sizes[0]))
    return frozenset()


def _does(node: TypedNode, rows: frozenset[object], *, training: bool) -> str | None:
    """Return what a node does that lets rows depend on each other; None if it does nothing of that kind itself."""
    match node:
        case TypedBlock(part=part):
            if isinstance(part, Loss):
                return None
            if part.batch_dependent and training:
                return f"is {with_article(part.kind)}, which averages over a whole batch"
            if part.batch_dependent:  # its statistics are those of training
                return None
            if any(_touches(size, rows) for size in part.mixed_axes(node.sizes)):
                return f"is {with_article(part.kind)}, which mixes the rows of a batch"
            if any(_touches(size, rows) for size in _ordered(part, node)):
                return f"is {with_article(part.kind)}, which reads the rows of a batch in their order"
            given = [type_ for types in node.inputs.values() for type_ in each_of(types)]
            if any(_is_odd(size, rows) for type_ in node.outputs.values() for size in _sizes(type_)) and not any(
                _is_odd(size, rows) for type_ in given for size in _sizes(type_)
            ):
                return f"is {with_article(part.kind)}, which does not give one value for each row of a batch"
            most = max([1, *(_axes_of_rows(type_, rows) for type_ in given)])
            if any(_axes_of_rows(type_, rows) > most for type_ in node.outputs.values()):
                return f"is {with_article(part.kind)}, which gives a value for each two rows of a batch"
        case TypedScan(axis=axis):
            if _touches(axis.size, rows):
                return "is a scan along the rows of a batch"
        case TypedGroup() | TypedRepeat():
            pass
        case _:
            assert_never(node)
    return None


def _ordered(part: Part, block: TypedBlock) -> Iterator[Dim]:
    """Yield the sizes of the axes that a block reads in order."""
    kept = {**part.cache_slots, **part.carry}
    if kept:
        own = {axes[0].text for text in kept.values() if (axes := pattern(text).axes) and isinstance(axes[0], RefPath)}
        yield from (size for name, size in block.sizes.items() if name not in own and isinstance(size, Symbolic))
    if type(part).past_axes is not Part.past_axes:  # what is there by default names, in `...`, also the rows of position ids
        yield from part.past_axes(block.sizes)
    yield from (block.sizes[axis] for axis in part.position_inputs.values())
    for _, _, query, key in masks(part, block.inputs, block.sizes):
        yield from (query, key)


def _touches(size: object, rows: frozenset[object]) -> bool:
    return isinstance(size, Symbolic) and not rows.isdisjoint(leaves(size))


def _is_odd(size: Dim, rows: frozenset[object]) -> bool:
    """Return whether a size depends on the number of rows otherwise than as so many for each row, and some more."""
    if not isinstance(size, Symbolic) or rows.isdisjoint(leaves(size)):
        return False
    atoms = [atom for term, _ in size.terms for atom in term if _touches(Symbolic((((atom,), 1),)), rows)]
    squared = any(sum(atom in rows for atom in term) > 1 for term, _ in size.terms)
    return squared or any(isinstance(atom, Quotient) for atom in atoms)


def _axes_of_rows(type_: Type, rows: frozenset[object]) -> int:
    """Return how many axes have lengths that depend on the number of rows."""
    return sum(_touches(size, rows) for size in type_.sizes) if isinstance(type_, TensorType) else 0


def _sizes(types: Types) -> list[Dim]:
    return [size for one in each_of(types) if isinstance(one, TensorType) for size in one.sizes]


class _Whole:
    """Follows values that are one for the whole batch, such as losses, to the nodes that read them."""

    def __init__(self, rows: frozenset[object]) -> None:
        self.rows = rows
        self.known: dict[tuple[TypedGraph, frozenset[str]], frozenset[str]] = {}
        self.found: list[Mixing] = []

    def readers(self, root: TypedGraph) -> Iterator[Mixing]:
        """Yield the nodes that read such a value, other than losses and the updates of states."""
        self._outputs(root, frozenset(), "")
        yield from self.found

    def _outputs(self, graph: TypedGraph, given: frozenset[str], prefix: str) -> frozenset[str]:
        """Return the outputs of a graph that are one value for the batch, given which of its inputs are."""
        key = graph, given
        if key not in self.known:
            whole = {Ref(name) for name in given}
            for node in graph.nodes:
                whole |= self._of_node(graph, node, whole, prefix)
            self.known[key] = frozenset(name for name, ref in graph.graph.outputs if _whole_name(graph, ref) in whole)
        return self.known[key]

    def _of_node(self, graph: TypedGraph, node: TypedNode, whole: set[Ref], prefix: str) -> set[Ref]:
        path = f"{prefix}{node.name}"
        if isinstance(node, TypedBlock):
            return {Ref(node.name, port) for port in self._of_block(graph, node, whole, path)}
        found: set[Ref] = set()
        for region in regions(node):
            read = [(wire.port, _whole_name(graph, ref)) for wire in region.wires for ref in wire.refs]
            given = frozenset(port for port, ref in read if ref in whole | found)
            outputs = self._outputs(region.graph, given, f"{path}.{region.key}")
            if isinstance(node, TypedScan):
                later = given | {port for port, carried in node.carried.items() if carried in outputs}
                outputs = self._outputs(region.graph, later, f"{path}.")
            found |= {Ref(node.name, port, region.number) for port in outputs}
        return found

    def _of_block(self, graph: TypedGraph, block: TypedBlock, whole: set[Ref], path: str) -> list[str]:
        if isinstance(block.part, Loss):
            return [*block.outputs]
        read = [ref for wire in block.node.wires if wire.port not in block.part.shape_only_inputs for ref in wire.refs]
        of_batch = [ref for ref in read if _whole_name(graph, ref) in whole]
        if of_batch and not is_renewal(block):
            does = f"is {with_article(block.part.kind)} and reads `{of_batch[0]}`, which is one value for the whole batch"
            self.found.append(Mixing(path, does, block.node.name_span))
        if not any(_touches(size, self.rows) for types in read_by(block.part, block.inputs).values() for size in _sizes(types)):
            return []
        return [port for port, type_ in block.outputs.items() if not any(_touches(size, self.rows) for size in _sizes(type_))]


def _whole_name(graph: TypedGraph, ref: Ref) -> Ref:
    """Return a reference with the names that it leaves out: of the first output, and the number of the last pass."""
    node = graph.by_name.get(ref.node)
    if node is None:
        return Ref(ref.node)
    port = ref.port or next(iter(node.outputs), "")
    return Ref(ref.node, port, len(node.passes) - 1 if isinstance(node, TypedRepeat) and ref.index is None else ref.index)
