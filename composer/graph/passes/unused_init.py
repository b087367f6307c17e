"""Patterns of `init` that no parameter's name matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from composer.diagnostics import MAX_ERRORS, Diagnostic, Span
from composer.graph.ir import InitPattern
from composer.graph.parameters import parameters_of
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram
from composer.graph.visit import walk
from composer.language.name_index import NameIndex
from composer.language.patterns import matches
from composer.language.suggestions import did_you_mean, suggest
from composer.memo import Memo

MAX_OFFERED_USES = 10
"""Uses of a block whose parameters are offered for a pattern in it."""

SOMETIMES = "if it does with other settings, `when` beside the initializer says with which"


def unmatched(typed: TypedProgram) -> Iterator[Diagnostic]:
    """Yield a warning for each pattern of `init` that no parameter's name matches; for one of a block, in no use of the block.
    The first of them offer names: those of passes that are the same, once.
    """
    uses: dict[Span, list[InitPattern]] = {}
    for rule in typed.untyped.init:
        uses.setdefault(rule.span, []).append(rule)
    some = NameIndex(_different(typed.root)) if uses else NameIndex(())
    every: Memo[TypedGraph, NameIndex] = Memo()  # the names of all passes are many, and seldom asked for
    offers = MAX_ERRORS
    for span, rules in uses.items():
        if any(some.matches(rule.pattern) for rule in rules):
            continue
        index = every.get(typed.root, partial(_index, typed.root))
        if any(index.matches(rule.pattern) for rule in rules):
            continue
        near = [name for rule in rules[:MAX_OFFERED_USES] for name in _inside(some.names, rule.inside)] if offers else []
        offered = suggest(rules[0].written, near)
        offers -= offers > 0
        yield Diagnostic(
            "unused-init",
            "no parameter matches this pattern",
            span,
            "warning",
            hint=did_you_mean(offered) if offered else SOMETIMES,
        )


def _index(graph: TypedGraph) -> NameIndex:
    return NameIndex(parameters_of(graph))


def _different(graph: TypedGraph) -> Iterator[str]:
    """Yield the names of parameters, of passes that are the same those of the first."""
    for visit in walk(graph, once=True):
        if isinstance(visit.node, TypedBlock):
            yield from (f"{visit.path}.{each.name}" for each in visit.node.parameters)


def _inside(names: Iterable[str], inside: str) -> Iterator[str]:
    """Yield the names of parameters in what stands at the names that a pattern matches, without these."""
    if not inside:
        yield from names
        return
    for name in names:
        ends = [0, *(at + 1 for at, sign in enumerate(name) if sign == ".")]
        yield from (name[end:] for end in ends if matches(inside, name[:end]))
