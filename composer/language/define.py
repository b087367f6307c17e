"""`blocks:` of a recipe: their params and ports first, since each may name the others, then their graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from blocks.core import Library, Part
from composer.diagnostics import Diagnostic, Label, Span
from composer.language.defined import defined, is_defined
from composer.language.document import Entry, Listing, Node, Scalar
from composer.language.document import Mapping as YamlMapping
from composer.language.expression import If, Path
from composer.language.recipe import Body, Choice, Definition, FieldEntry, GivenValue, Group, Repeat, SlotValue, Use, What
from composer.language.uses import Lent

if TYPE_CHECKING:
    from composer.language.parse import Parser

KEYS = ("doc", "source", "params", "blocks", "inputs", "graph", "outputs", "init")
NODES = 6_000
"""Nodes that one block may come to."""
BLOCKS = 500
"""Definitions in one recipe, those of the files that it uses included."""
NESTED = 20
"""How deep definitions may stand in one another's `blocks`."""


def define(parser: Parser, node: Node | None, outer: type[Part] | None = None, depth: int = 1) -> list[Definition]:
    """Every definition under `blocks`, with those that it makes for itself; from then on, the parser knows the outer ones."""
    before = parser.library
    parser.defined += len(node.entries) if isinstance(node, YamlMapping) else 0
    if parser.defined > BLOCKS and isinstance(node, YamlMapping):
        if parser.defined - len(node.entries) <= BLOCKS:
            parser._error("too-many-nodes", node.span, f"a recipe and what it uses define at most {BLOCKS:,} blocks")
        return []
    begun: list[tuple[Definition, YamlMapping]] = []
    for entry in parser._entries(node, "blocks"):
        if (declared := _declared(parser, entry, before, outer, depth)) is not None:
            begun.append((declared, entry.value))  # type: ignore[arg-type]  # a mapping, or it were not declared
    parser.library = before.shadowed_by(declared.part for declared, _ in begun)
    found: list[Definition] = []
    for declared, root in begun:
        around = parser.library
        inside = define(parser, root.get("blocks"), declared.part, depth + 1)
        graph = root.get("graph")
        assert graph is not None
        found.append(replace(declared, body=parser.body(graph, root.entry("outputs")), library=parser.library))
        found.extend(inside)
        parser.library = around
    return found


def with_definitions(root: YamlMapping, library: Library) -> Library:
    """The library with what a recipe's `blocks` define, as far as their params and ports go."""
    from composer.language.parse import Parser

    parser = Parser(library, [])
    entries = parser._entries(root.get("blocks"), "blocks")
    found = [declared.part for entry in entries if (declared := _declared(parser, entry, library, None, 1))]
    return library.shadowed_by(found) if found else library


def _declared(parser: Parser, entry: Entry, library: Library, outer: type[Part] | None, depth: int) -> Definition | None:
    """A definition but for its graph; None where it is none, which is reported."""
    name, root = entry.key.text, entry.value
    if not parser._declares(entry.key, "a block"):
        return None
    if name in library and not is_defined(library[name]):
        parser._error("name-taken", entry.key.span, f"`{name}` is a block of the library already", hint="name it differently")
        return None
    if not isinstance(root, YamlMapping):
        hint = f"{name}: {{inputs: {{x: …}}, graph: {{…}}}}, on lines of their own"
        parser._error("value-form", root.span, "a block is defined by a mapping", hint=hint)
        return None
    if depth > NESTED:
        parser._error("too-deep", entry.key.span, f"blocks are defined more than {NESTED} deep inside one another")
        return None
    parser._keys(root, KEYS, "a block")
    if root.get("graph") is None:
        hint = "write `graph:` with the block's nodes below it"
        parser._error("missing-key", entry.key.span, f"the block `{name}` needs a graph", hint=hint)
        return None
    params = tuple(parser._params(root.get("params")))
    inputs = tuple(parser._inputs(root.get("inputs"), block=True))
    outputs = root.get("outputs")
    ports = [each.key.text for each in outputs] if isinstance(outputs, YamlMapping) else []
    part = defined(name, parser._text(root.get("doc")), params, inputs, ports)
    part.lent = isinstance(root, Lent)
    nothing = Body((), (), root.span)
    init = tuple(parser._init(root.get("init")))
    return Definition(part, entry.key.span, params, inputs, nothing, init, library, outer, root)


# -- blocks that hold one another


def mistakes(definitions: Sequence[Definition]) -> list[Diagnostic]:
    """Blocks that hold themselves, by way of others perhaps, and the first that comes to too many nodes."""
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
    message = f"a block cannot hold itself: {' → '.join(part.kind for part in path)}"
    return Diagnostic("block-cycle", message, uses[last][first], labels=labels)


def _too_large(order: Iterable[type[Part]], of: Mapping[type[Part], Definition]) -> Iterator[Diagnostic]:
    """The blocks that come to more nodes than can be written out, each after those that it holds."""
    sizes: dict[type[Part], int] = {}
    for part in order:
        definition = of[part]
        names = (name for name, _ in _named(definition.body, {param.name for param in definition.params}))
        held = [definition.library[name] for name in names if name in definition.library]
        sizes[part] = len(definition.body.nodes) + sum(sizes.get(one, 0) for one in held)
        if sizes[part] > NODES:
            message = f"`{part.kind}` comes to {sizes[part]:,} nodes, and at most {NODES:,} can be written out"
            hint = "what is the same many times belongs in a `repeat`"
            yield Diagnostic("too-many-nodes", message, definition.span, hint=hint)


def _first_uses(definition: Definition) -> dict[type[Part], Span]:
    """The definitions that one names, each with the first place."""
    found: dict[type[Part], Span] = {}
    names = {param.name for param in definition.params}
    for kind, span in _named(definition.body, names):
        part = definition.library[kind] if kind in definition.library else None  # noqa: SIM401  # a library is no dict
        if part is not None and is_defined(part):
            found.setdefault(part, span)
    for param in definition.params:
        if param.type == "block" and param.default is not None:
            for scalar in _kinds(param.default):
                if scalar.text in definition.library and is_defined(definition.library[scalar.text]):
                    found.setdefault(definition.library[scalar.text], scalar.span)
    return found


def _named(what: Body | What | None, hidden: set[str]) -> Iterator[tuple[str, Span]]:
    """Every block that a graph names; `hidden` are params, which stand for what they are given."""
    match what:
        case Body(nodes=nodes):
            for node in nodes:
                yield from _named(node.what, hidden)
        case Group(body=body):
            yield from _named(body, hidden)
        case Repeat(body=body, each=each):
            for _, _, value in each:
                yield from ((scalar.text, scalar.span) for scalar in _kinds(value))
            yield from _named(body, hidden | {name for name, _, _ in each})
        case Choice(expression=expression):
            yield from ((name, span) for name, span in _choices(expression) if name not in hidden)
        case Use(part=part, type_span=span, fields=fields):
            yield part.kind, span
            for field in fields:
                yield from _in_field(field, hidden)


def _in_field(field: FieldEntry, hidden: set[str]) -> Iterator[tuple[str, Span]]:
    match field.value:
        case SlotValue(what=what):
            yield from _named(what, hidden)
        case GivenValue(node=node):
            yield from ((scalar.text, scalar.span) for scalar in _kinds(node) if scalar.text not in hidden)


def _choices(expression: object) -> Iterable[tuple[str, Span]]:
    match expression:
        case If(then=then, otherwise=otherwise):
            yield from _choices(then)
            yield from _choices(otherwise)
        case Path(steps=(step,)):
            yield step.name, step.span


def _kinds(node: Node) -> Iterator[Scalar]:
    """What a value that may hold blocks names as types: all that stands under `type`, and words alone."""
    match node:
        case Scalar():
            yield node
        case Listing(items=items):
            for item in items:
                yield from _kinds(item)
        case YamlMapping():
            for entry in node:
                if entry.key.text == "type" and isinstance(entry.value, Scalar):
                    yield entry.value
                elif not isinstance(entry.value, Scalar):
                    yield from _kinds(entry.value)
