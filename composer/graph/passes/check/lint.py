"""Warnings about a whole model: what is sound and probably not meant."""

from __future__ import annotations

from collections.abc import Iterator

from blocks.embedding.embedding import Embedding
from blocks.masks.mask import Mask
from blocks.positions.learned import LearnedPositions
from composer.diagnostics import Diagnostic
from composer.graph.ir import FieldValue, Known, PartValue, Pending, wires_of
from composer.graph.passes.expand.error_report import labels
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, children
from composer.language.patterns import matches
from composer.language.suggestions import suggest

LARGE = 1000
"""Words of a vocabulary from which on its matrix is a large part of the work."""
MULTIPLE, TILE = 8, 64
"""What tensor cores want an axis to be a multiple of, and what they like best."""


def doubts(typed: TypedProgram) -> tuple[Diagnostic, ...]:
    """The warnings that no block alone can give."""
    blocks = list(_blocks(typed.root, set()))
    found = [*_vocabulary(typed, blocks), *_windows(typed, blocks), *_unread_inputs(typed), *_unmatched(typed)]
    return tuple({each.span: each for each in found}.values())


def _vocabulary(typed: TypedProgram, blocks: list[TypedBlock]) -> Iterator[Diagnostic]:
    """A vocabulary that a GPU would like rounded up; a published model cannot choose its own any more."""
    if typed.program.recipe.checkpoints is not None:
        return
    for block in blocks:
        if isinstance(block.part, Embedding) and block.part.vocab > LARGE and block.part.vocab % MULTIPLE:
            rounded = -(-block.part.vocab // TILE) * TILE
            message = f"a vocabulary of {block.part.vocab}, no multiple of {MULTIPLE}, slows the output layer down on a GPU"
            hint = f"{rounded} is the next multiple of {TILE}; ids beyond the last word are never used"
            yield _at(dict(block.node.fields)["vocab"], "vocabulary", message, hint)


def _windows(typed: TypedProgram, blocks: list[TypedBlock]) -> Iterator[Diagnostic]:
    """A window that is never left."""
    lengths = [block.part.max_length for block in blocks if isinstance(block.part, LearnedPositions)]
    declared = typed.program.params.get("context")
    context = declared if isinstance(declared, int) and not isinstance(declared, bool) else min(lengths, default=None)
    if context is None:
        return
    for block in blocks:
        for width in _widths(value for _, value in block.node.fields):
            if isinstance(width, Known) and width.value >= context:
                message = f"a window of {width.value} is no shorter than the context of {context}, so it cuts nothing off"
                yield _at(width, "idle-window", message, "leave the window out, or shorten it")


def _widths(values: Iterator[FieldValue]) -> Iterator[FieldValue]:
    for value in values:
        if isinstance(value, PartValue):
            if issubclass(value.part, Mask) and value.part.width_field:
                yield dict(value.fields)[value.part.width_field]
            yield from _widths(inner for _, inner in value.fields)


def _unread_inputs(typed: TypedProgram) -> Iterator[Diagnostic]:
    """An input of the model that nothing reads."""
    graph = typed.program.graph
    read = {ref.node for node in graph.nodes for wire in wires_of(node) for ref in wire.refs}
    read |= {ref.node for _, ref in (*graph.outputs, *typed.program.positions)}
    for declared in typed.program.inputs:
        if declared.name not in read:
            yield Diagnostic("unused-input", f"nothing reads the input `{declared.name}`", declared.span, "warning")


def _unmatched(typed: TypedProgram) -> Iterator[Diagnostic]:
    """A pattern of `init` that no parameter's name matches."""
    for pattern, _, _, span in typed.program.init:
        if not any(matches(pattern, name) for name in _names(typed.root, "")):
            offered = suggest(pattern, _names(typed.root, ""))
            hint = f"did you mean {' or '.join(offered)}?" if offered else ""
            yield Diagnostic("unused-init", "no parameter has a name like this", span, "warning", hint=hint)


def _names(graph: TypedGraph, prefix: str) -> Iterator[str]:
    for node in graph.nodes:
        if not node.node.dropped:
            yield from _names_below(node, prefix + node.name)


def _names_below(node: TypedNode, name: str) -> Iterator[str]:
    if isinstance(node, TypedBlock):
        yield from (f"{name}.{parameter.name}" for parameter in node.parameters)
    for child, below in children(node):
        yield from _names_below(below, f"{name}.{child}")


def _blocks(graph: TypedGraph, seen: set[TypedGraph]) -> Iterator[TypedBlock]:
    """Every block that is used, once for all passes that are the same."""
    if graph in seen:
        return
    seen.add(graph)
    for node in graph.nodes:
        match node:
            case TypedBlock():
                yield node
            case TypedGroup() | TypedScan():
                yield from _blocks(node.graph, seen)
            case TypedRepeat():
                for one in node.passes:
                    yield from _blocks(one, seen)


def _at(value: FieldValue, code: str, message: str, hint: str) -> Diagnostic:
    """A warning at a field's value, with the param that it was set by."""
    origins = value.origins if isinstance(value, Known | Pending) else ()
    return Diagnostic(code, message, value.span, "warning", labels=labels(origins, value.span), hint=hint)
