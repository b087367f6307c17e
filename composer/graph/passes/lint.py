"""Warnings about a whole model: what is sound and probably not meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from blocks.masks.mask import Mask
from composer.diagnostics import Diagnostic
from composer.graph.anatomy import wires_of
from composer.graph.ir import FieldValue, Known, PartValue, Pending
from composer.graph.passes.compilation import Compilation
from composer.graph.passes.error_report import labels
from composer.graph.passes.image_norms import norms_of_images
from composer.graph.passes.packed_documents import across_documents
from composer.graph.passes.unused_init import unmatched
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram
from composer.graph.visit import Visit, every_node, every_pass, walk

LARGE_VOCABULARY = 1000
"""The vocabulary size from which the output layer is a large part of the computation."""
VOCABULARY_MULTIPLE, VOCABULARY_TILE = 8, 64
"""The multiple of an axis that tensor cores need, and the one at which they are fastest."""


def lint(state: Compilation) -> Compilation:
    """Warn of what no block alone can know: what is sound and probably not meant.

    Before:
        init: {"*.bias": {constant: 0}}
        graph:
          up: {type: linear, out: 8, bias: false}
    After:
        warning[unused-init]: no parameter matches this pattern
    """
    typed = state.typed
    assert typed is not None
    every = _blocks(typed.root, entrances=every_pass, nodes=every_node, once=True)  # of passes that are the same, one
    blocks = [block for visit, block in every if visit.graph is not None]
    found = [
        *_vocabulary(typed, blocks),
        *_windows(typed, blocks),
        *_unread_inputs(typed),
        *unmatched(typed),
        *across_documents(typed),
        *norms_of_images(typed),
    ]
    return replace(state, warnings=(*state.warnings, *{each.span: each for each in found}.values()))


def _vocabulary(typed: TypedProgram, blocks: list[TypedBlock]) -> Iterator[Diagnostic]:
    """Yield a warning for a vocabulary that should be rounded up for GPUs, where maps have it as their outputs; that of a
    published model is fixed.
    """
    if typed.untyped.recipe.checkpoints is not None:
        return
    maps = (parameter for block in blocks if not block.part.vocab_field for parameter in block.parameters)
    outputs = {parameter.shape[0] for parameter in maps if parameter.shape}
    for block in blocks:
        name = block.part.vocab_field
        vocab = getattr(block.part, name) if name else 0
        if vocab > LARGE_VOCABULARY and vocab % VOCABULARY_MULTIPLE and vocab in outputs:
            rounded = -(-vocab // VOCABULARY_TILE) * VOCABULARY_TILE
            message = (
                f"a vocabulary of {vocab} is not a multiple of {VOCABULARY_MULTIPLE}, which slows the output layer down on a GPU"
            )
            hint = f"{rounded} is the next multiple of {VOCABULARY_TILE}; the additional ids stay unused"
            yield _at(dict(block.node.fields)[name], "vocabulary", message, hint)


def _windows(typed: TypedProgram, blocks: list[TypedBlock]) -> Iterator[Diagnostic]:
    """Yield a warning for a window that is never left."""
    lengths = [getattr(block.part, name) for block in blocks if (name := block.part.length_field)]
    declared = typed.untyped.params.get("context")
    context = declared if isinstance(declared, int) and not isinstance(declared, bool) else min(lengths, default=None)
    if context is None:
        return
    for block in blocks:
        for width in _widths(value for _, value in block.node.fields):
            if isinstance(width, Known) and width.value >= context:
                message = f"a window of {width.value} is not shorter than the context of {context}, so it has no effect"
                yield _at(width, "idle-window", message, "remove the window, or shorten it")


def _widths(values: Iterator[FieldValue]) -> Iterator[FieldValue]:
    for value in values:
        if isinstance(value, PartValue):
            if issubclass(value.part, Mask) and value.part.width_field:
                yield dict(value.fields)[value.part.width_field]
            yield from _widths(inner for _, inner in value.fields)


def _unread_inputs(typed: TypedProgram) -> Iterator[Diagnostic]:
    """Yield a warning for each input of the model that nothing reads."""
    graph = typed.untyped.graph
    read = {ref.node for node in graph.nodes for wire in wires_of(node) for ref in wire.refs}
    read |= {ref.node for _, ref in (*graph.outputs, *typed.untyped.positions)}
    for declared in typed.untyped.inputs:
        if declared.name not in read:
            yield Diagnostic("unused-input", f"nothing reads the input `{declared.name}`", declared.span, "warning")


def _blocks(graph: TypedGraph, **options: Any) -> Iterator[tuple[Visit, TypedBlock]]:
    for visit in walk(graph, **options):
        if isinstance(visit.node, TypedBlock):
            yield visit, visit.node


def _at(value: FieldValue, code: str, message: str, hint: str) -> Diagnostic:
    """Return a warning at a field's value, with the param that it was set by."""
    origins = value.origins if isinstance(value, Known | Pending) else ()
    return Diagnostic(code, message, value.span, "warning", labels=labels(origins, value.span), hint=hint)
