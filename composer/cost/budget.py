"""What is too large to build: refused while it is still a formula."""

from __future__ import annotations

from composer.cost.costs import BYTES, costs
from composer.cost.units import in_bytes
from composer.diagnostics import Diagnostic
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.memo import Memo

MODULES = 200_000
"""Python objects that torch would hold."""
LARGEST = 64 * 2**30
"""Bytes of the weights in fp32."""


def budget(typed: TypedProgram, *, allow_large: bool = False) -> tuple[Diagnostic, ...]:
    """Why a model is not built; `allow_large` admits any size of weights."""
    name = typed.program.recipe.name_scalar
    found = []
    if (count := modules(typed.root)) > MODULES:
        found.append(
            Diagnostic("too-many-modules", f"{name.text} would have {count:,} modules; at most {MODULES:,} are built", name.span)
        )
    weights = costs(typed).weights("fp32")
    if weights > LARGEST and not allow_large:
        count = weights // BYTES["fp32"]
        message = (
            f"{name.text} has {count:,} parameters, {in_bytes(weights)} in fp32; at most {in_bytes(LARGEST)} are built by default"
        )
        hint = "`check` and `summary` work; build a smaller model with --set, or compile with `allow_large=True`"
        found.append(Diagnostic("too-large-to-build", message, name.span, hint=hint))
    return tuple(found)


def modules(graph: TypedGraph, done: Memo[TypedGraph, int] | None = None) -> int:
    """How many modules a graph becomes."""
    known = Memo() if done is None else done
    return known.get(graph, lambda: sum(_modules(node, known) for node in graph.nodes))


def _modules(node: TypedNode, done: Memo[TypedGraph, int]) -> int:
    match node:
        case TypedBlock(modules=linears, slots=slots):
            return 1 + len(linears) + sum(_modules(slot, done) for slot in slots.values() if slot is not None)
        case TypedGroup(graph=graph) | TypedScan(graph=graph):
            return 1 + modules(graph, done)
        case TypedRepeat(owners=owners):
            return 1 + sum(1 + modules(one, done) for one in owners)
