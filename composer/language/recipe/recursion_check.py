"""The check that no block of a recipe contains itself, or expands to too many nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice, pairwise

from blocks.core import Part
from composer.diagnostics import Diagnostic, Label, Span
from composer.language.expressions.ast import Expression, If, RefPath
from composer.language.recipe.ast import (
    BlockChoice,
    Conditional,
    Definition,
    FieldEntry,
    GivenValue,
    GraphBody,
    GroupDecl,
    NodeContent,
    RepeatDecl,
    ScanDecl,
    SlotValue,
    UseDecl,
)
from composer.language.recipe.defined_block import is_defined
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar

MAX_NODES = 6_000
"""Nodes to which one block may expand."""


def check_recursion(definitions: Sequence[Definition]) -> list[Diagnostic]:
    """Return the mistakes of blocks that hold themselves, by way of others perhaps, and the first that comes
    to too many nodes.
    """
    uses = {each.part: _first_uses(each) for each in definitions}
    found: list[Diagnostic] = []
    while True:
        try:
            order = list(TopologicalSorter(uses).static_order())
        except CycleError as error:
            path: list[type[Part]] = error.args[1][::-1]  # each holds the next
            found.append(_cycle(path, uses))
            uses[path[0]] = {}
        else:
            break
    return found or list(islice(_too_large(order, {each.part: each for each in definitions}), 1))


def _cycle(path: Sequence[type[Part]], uses: Mapping[type[Part], Mapping[type[Part], Span]]) -> Diagnostic:
    *ahead, (last, first) = pairwise(path)
    labels = tuple(Label(uses[holder][held], f"holds {held.kind}") for holder, held in ahead)
    message = f"a block cannot contain itself: {' → '.join(part.kind for part in path)}"
    return Diagnostic("block-cycle", message, uses[last][first], labels=labels)


def _too_large(order: Iterable[type[Part]], of: Mapping[type[Part], Definition]) -> Iterator[Diagnostic]:
    """Yield the blocks that expand to too many nodes, each after those that it contains."""
    sizes: dict[type[Part], int] = {}
    for part in order:
        definition = of[part]
        names = (name for name, _ in _named(definition.body, {param.name for param in definition.params}))
        held = [definition.library[name] for name in names if name in definition.library]
        sizes[part] = len(definition.body.nodes) + sum(sizes.get(one, 0) for one in held)
        if sizes[part] > MAX_NODES:
            message = f"`{part.kind}` expands to {sizes[part]:,} nodes; at most {MAX_NODES:,} are supported"
            hint = "use a `repeat` for parts that occur many times"
            yield Diagnostic("too-many-nodes", message, definition.span, hint=hint)


def _first_uses(definition: Definition) -> dict[type[Part], Span]:
    """Return the definitions that one names, each with the first place."""
    named = list(_named(definition.body, {param.name for param in definition.params}))
    for param in definition.params:
        if param.type == "block" and param.default is not None:
            named += _kinds(param.default)
    found: dict[type[Part], Span] = {}
    for kind, span in named:
        if kind in definition.library and is_defined(part := definition.library[kind]):
            found.setdefault(part, span)
    return found


def _named(what: GraphBody | NodeContent | None, hidden: set[str]) -> Iterator[tuple[str, Span]]:
    """Yield every block that a graph names; `hidden` are params, which stand for what they are given."""
    match what:
        case GraphBody(nodes=nodes):
            for node in nodes:
                yield from _named(node.what, hidden)
        case GroupDecl(body=body) | ScanDecl(body=body):
            yield from _named(body, hidden)
        case RepeatDecl(body=body, each=each):
            for _, _, value in each:
                yield from _kinds(value)
            yield from _named(body, hidden | {name for name, _, _ in each})
        case Conditional(then=then, otherwise=otherwise):
            yield from _named(then, hidden)
            yield from _named(otherwise, hidden)
        case BlockChoice(expression=expression):
            yield from ((name, span) for name, span in _choices(expression) if name not in hidden)
        case UseDecl(part=part, type_span=span, fields=fields):
            yield part.kind, span
            for field in fields:
                yield from _in_field(field, hidden)


def _in_field(field: FieldEntry, hidden: set[str]) -> Iterator[tuple[str, Span]]:
    match field.value:
        case SlotValue(what=what):
            yield from _named(what, hidden)
        case GivenValue(node=node):
            yield from ((name, span) for name, span in _kinds(node) if name not in hidden)


def _choices(expression: Expression) -> Iterator[tuple[str, Span]]:
    match expression:
        case If(then=then, otherwise=otherwise):
            yield from _choices(then)
            yield from _choices(otherwise)
        case RefPath(steps=(step,)):
            yield step.name, step.span


def _kinds(node: YamlNode) -> Iterator[tuple[str, Span]]:
    """Yield what a value that may hold blocks names as types: all that stands under `type`, and words alone."""
    match node:
        case YamlScalar(text=text, span=span):
            yield text, span
        case YamlList(items=items):
            for item in items:
                yield from _kinds(item)
        case YamlMapping():
            for entry in node:
                if entry.key.text == "type" or not isinstance(entry.value, YamlScalar):
                    yield from _kinds(entry.value)
