"""Packed documents: where some attention keeps the documents of a row apart, and another node lets them see each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from blocks.core import Part
from blocks.masks.mask import Mask
from composer.diagnostics import Declaration, Diagnostic
from composer.graph.cache_slots import slot_axes
from composer.graph.dims import Dim, Symbolic, TextRows
from composer.graph.ir import PartValue
from composer.graph.networkx_view import view
from composer.graph.passes.infer.text_dependence import masks
from composer.graph.typed import TypedBlock, TypedProgram, TypedScan
from composer.graph.types import TensorType, each_given
from composer.graph.visit import Visit, every_node, every_pass, walk

ROWS_APART = "give each document a row of its own, or leave the node out"


def across_documents(typed: TypedProgram) -> Iterator[Diagnostic]:
    """Yield a warning for each node that lets documents of a row see each other, where a mask of another keeps them apart."""
    visits = list(walk(typed.root, every_pass, every_node, once=True))
    kept: dict[Dim, str] = {}
    counted: dict[str, bool] = {}
    for visit in visits:
        if isinstance(visit.node, TypedBlock):
            for _, mask, axis in _self_masks(visit.node):
                found = next(_within(mask, _keeps_documents), None)
                structure = found.structure() if found is not None else None
                if found is None or structure is None or structure.documents is None:
                    continue
                if structure.documents not in counted:
                    counted[structure.documents] = _counted(typed, structure.documents)
                if not counted[structure.documents]:
                    names = {wire.port: str(wire.refs[0]) for wire in visit.node.node.wires}
                    kept.setdefault(axis, found.with_edges(names).expression())
    for visit in visits if kept else ():
        match visit.node:
            case TypedBlock():
                yield from _block(visit, visit.node, kept)
            case TypedScan(axis=along, carried=carried) if carried and _of_call(along.size) in kept:
                yield _carries(visit, "a scan", kept[_of_call(along.size)])
            case _:
                pass


def _counted(typed: TypedProgram, port: str) -> bool:
    """Return whether what masks read at a port is counted from the start of each row, as chunks of a text are: no number of it
    comes from an input but one that marks padding, so it tells no documents apart.
    """
    import networkx as nx

    graph = view(typed)
    numbers = nx.subgraph_view(graph, filter_edge=lambda *edge: not graph.edges[edge]["shape_only"])
    ids = {source for source, _, read in graph.edges(data=True) if read["port"] == port}
    inputs = {name for name, type_ in typed.inputs.items() if type_.dtype != "bool"}
    return bool(ids) and inputs.isdisjoint(ids.union(*(nx.ancestors(numbers, source) for source in ids)))


def _block(visit: Visit, block: TypedBlock, kept: Mapping[Dim, str]) -> Iterator[Diagnostic]:
    """Yield the warning for a block, if there is one."""
    part, given = block.part, [type_ for type_ in each_given(block.inputs) if isinstance(type_, TensorType)]
    along = next((size for type_ in given for size in map(_of_call, type_.sizes) if size in kept), None)
    if along is None:
        return
    masked = [(slot, mask, axis) for slot, mask, axis in _self_masks(block) if axis in kept]
    inner = [value for name in type(part).model_fields if isinstance(value := getattr(part, name), Part)]
    for slot, mask, axis in masked:
        if not any(_within(mask, _keeps_documents)) and not any(_within(mask, _reads_pairs)):  # pairs may keep anything apart
            yield _sees(visit, block, slot, mask, kept[axis])
    if (part.carry and _of_past(block, kept)) or any(type(one).carry for one in inner):
        yield _carries(visit, part.kind, kept[along])
    elif not list(masks(part, block.inputs, block.sizes)) and (_looks_back(block, kept) or _mixes(block, given, kept)):
        message = f"{part.kind} mixes positions of different documents, which `{kept[along]}` keeps apart in attention"
        yield Diagnostic("mixed-documents", message, visit.written, "warning", hint=ROWS_APART)


def _self_masks(block: TypedBlock) -> Iterator[tuple[str, Mask, Dim]]:
    """Yield each mask between positions of one axis whose length is known only when the model runs."""
    for slot, mask, query, key in masks(block.part, block.inputs, block.sizes):
        if isinstance(query, Symbolic) and _of_call(query) == _of_call(key):
            yield slot, mask, _of_call(query)


def _of_call(size: Dim) -> Dim:
    """Return the number of rows of one call, for that of all rows so far."""
    match size:
        case Symbolic(terms=(((TextRows(count=count, which="so far"),), 1),)):
            return count
    return size


def _within(mask: Mask, is_sought: Callable[[Mask], bool]) -> Iterator[Mask]:
    """Yield the masks that a mask is combined of, of those that are sought."""
    if not mask.inner() and is_sought(mask):
        yield mask
    for part in mask.inner():
        yield from _within(part, is_sought)


def _keeps_documents(mask: Mask) -> bool:
    structure = mask.structure()
    return structure is not None and structure.documents is not None


def _reads_pairs(mask: Mask) -> bool:
    """Return whether a mask reads data for each pair of query and key."""
    return any({"query", "key"} <= {*slot_axes(declared)} for declared in type(mask).node_refs.values())


def _looks_back(block: TypedBlock, kept: Mapping[Dim, str]) -> bool:
    """Return whether a block keeps vectors of earlier positions."""
    slots = (declared for declared in type(block.part).cache_slots.values() if declared.startswith("float"))
    axes = {_of_call(block.sizes[axis]) for declared in slots for axis in slot_axes(declared) if axis in block.sizes}
    return not axes.isdisjoint(kept)


def _of_past(block: TypedBlock, kept: Mapping[Dim, str]) -> bool:
    """Return whether a block gives each position something of earlier ones."""
    return not {*map(_of_call, block.part.past_axes(block.sizes))}.isdisjoint(kept)


def _mixes(block: TypedBlock, given: list[TensorType], kept: Mapping[Dim, str]) -> bool:
    """Return whether a block gives each position something of the others; not where it is about pairs of positions, which may be
    masked as numbers, nor where rows of a batch are normalized together in training.
    """
    mixed = {_of_call(size) for size in block.part.mixed_axes(block.sizes)} & kept.keys()
    outputs = [type_ for type_ in block.outputs.values() if isinstance(type_, TensorType)]
    of_pairs = any([*map(_of_call, type_.sizes)].count(axis) > 1 for type_ in (*given, *outputs) for axis in mixed)
    made = {_of_call(size) for type_ in outputs for size in type_.sizes}
    return not mixed.isdisjoint(made) and not of_pairs and not block.part.batch_dependent


def _sees(visit: Visit, block: TypedBlock, slot: str, mask: Mask, documents: str) -> Diagnostic:
    written = mask.with_edges({wire.port: str(wire.refs[0]) for wire in block.node.wires})
    text = f"({written.expression()})" if written.precedence < 1 else written.expression()
    message = f"with the mask `{written.expression()}`, documents see each other that `{documents}` keeps apart elsewhere"
    hint = f"mask: {documents}" if mask.hides_nothing else f"mask: {text} and {documents}"
    value = dict(block.node.fields).get(slot)
    span = value.span if isinstance(value, PartValue) and not isinstance(value.span.source, Declaration) else visit.written
    return Diagnostic("mixed-documents", message, span, "warning", hint=hint)


def _carries(visit: Visit, kind: str, documents: str) -> Diagnostic:
    message = f"{kind} carries its state from one document into the next, which `{documents}` keeps apart in attention"
    return Diagnostic("mixed-documents", message, visit.written, "warning", hint=ROWS_APART)
