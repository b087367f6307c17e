"""Size limits of models, checked before anything is built."""

from __future__ import annotations

from typing import assert_never

from composer.cost.costs import BYTES
from composer.cost.units import in_bytes
from composer.diagnostics import Declaration, Diagnostic, Span
from composer.graph.anatomy import TYPED
from composer.graph.parameters import in_file_order, numel, owned, parameters
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.visit import Fold, Inside

MAX_MODULES = 200_000
"""Most `nn.Module` objects of a model; each is a Python object with several dicts."""
MAX_BYTES = 64 * 2**30
"""Largest size of the weights in fp32 that is built without `allow_large`."""


def budget(typed: TypedProgram, *, allow_large: bool = False) -> tuple[Diagnostic, ...]:
    """Return the errors of a model that is too large to build; `allow_large` permits any size of weights."""
    name = typed.untyped.recipe.name_scalar
    found = []
    if (count := modules(typed.root)) > MAX_MODULES:
        message = f"{name.text} would have {count:,} modules; at most {MAX_MODULES:,} are built"
        found.append(Diagnostic("too-many-modules", message, name.span))
    weights = numel(parameters(typed)) * BYTES["fp32"]
    if weights > MAX_BYTES and not allow_large:
        count = weights // BYTES["fp32"]
        limit = f"at most {in_bytes(MAX_BYTES)} are built by default"
        message = f"{name.text} has {count:,} parameters, {in_bytes(weights)} in fp32; {limit}"
        hint = "`check` and `summary` work; build a smaller model with --set, or this one in Python, with `allow_large=True`"
        found.append(Diagnostic("too-large-to-build", message, _largest(typed) or name.span, hint=hint))
    return tuple(found)


def _largest(typed: TypedProgram) -> Span | None:
    """Return the node with most of the weights: the largest one, or what is in it, as long as that has more than half."""
    counts = owned(parameters(typed))
    graph, prefix, found = typed.root, "", None
    while True:
        paths = ((f"{prefix}{node.name}", node) for node in in_file_order(graph))
        path, node = max(paths, key=lambda each: counts.get(each[0], 0))
        if isinstance(node.node.name_span.source, Declaration) or (found is not None and 2 * counts.get(path, 0) <= counts[""]):
            return found
        found, prefix = node.node.name_span, f"{path}."
        if not isinstance(node, TypedGroup):
            return found
        graph = node.graph


def modules(graph: TypedGraph) -> int:
    """Return the number of modules of a graph."""
    return Fold(TYPED, _modules, lambda graph, found: sum(found), lambda graph: graph.nodes).graph(graph)


def _modules(node: TypedNode, inside: Inside[TypedGraph, int, int]) -> int:
    below = sum(inside.owners()) + sum(count for _, count in inside.slots)
    match node:
        case TypedBlock(modules=linears):
            return 1 + len(linears) + below
        case TypedGroup() | TypedScan():
            return 1 + below
        case TypedRepeat(owners=owners):
            return 1 + len(owners) + below
        case _:
            assert_never(node)
