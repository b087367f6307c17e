"""The losses of a recipe's own: what is not a field of a loss may be one of its ports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from blocks.core import Part, fields, ports
from blocks.losses.loss import Loss, ScalarLoss
from composer.language.recipe.ast import LossDecl, UseDecl
from composer.language.recipe.base_parser import BaseParser
from composer.language.recipe.graphs import GraphParser
from composer.language.recipe.keys import keys_of
from composer.language.yaml.nodes import YamlEntry, YamlMapping, YamlNode, YamlScalar

UNTYPED: type[Loss] = ScalarLoss
"""What a loss without a type is."""


def losses(graphs: GraphParser, node: YamlNode | None, task: str) -> Iterator[LossDecl]:
    """Yield the losses under a key, of a model for some task."""
    reader = graphs.reader
    for name, value in ((entry.key, entry.value) for entry in reader.entries(node, "losses")):
        if name.text == task:
            reader.error("name-taken", name.span, f"`{task}` is the loss of the task", hint="choose another name")
        if not reader.declares(name, "a loss"):
            continue
        if not isinstance(value, YamlMapping):
            hint = f"{name.text}: {{in: node}} or {{type: cross_entropy, in: node, target: labels}}"
            reader.error("value-form", value.span, "a loss must be a mapping", hint=hint)
        yield LossDecl(name.text, name.span, _loss(graphs, name, value) if isinstance(value, YamlMapping) else None)


def _loss(graphs: GraphParser, name: YamlScalar, node: YamlMapping) -> UseDecl | None:
    """Return a loss as the use of its block that it stands for."""
    reader, library = graphs.reader, graphs.library
    default = YamlScalar(UNTYPED.kind, node.span)
    kind = reader.scalar(node.get("type"), "the type of a loss is one word") if "type" in node else default
    if kind is None:
        return None
    known = list(library.of(Loss))
    if kind.text not in known:
        if kind.text in library:
            hint = f"use the scalar of a node as a loss: {name.text}: {{in: node}}, or choose among {', '.join(known)}"
            reader.error("not-a-loss", kind.span, f"{kind.text} is not a loss", hint=hint)
        else:
            reader.unknown("unknown-block", kind.span, "loss", kind.text, known)
        return None
    part = library[kind.text]
    edges = _edges(reader, node, part)
    if "input" in ports(part) and "input" not in edges:
        hint = "in: {input: node, …}" if isinstance(node.get("in"), YamlMapping) else "in: node"
        reader.error("missing-key", name.span, f"the loss `{name.text}` has no input", hint=hint)
        return None
    keys = {*keys_of("loss"), *ports(part), *fields(part)}
    strange = [each for each in node if each.key.text not in keys]
    reader.keys(strange, tuple(fields(part)), f"the loss {kind.text}", also=(*keys_of("loss"), *ports(part)))
    missing = [port for port, mark in ports(part).items() if mark == "" and port not in edges]
    if missing and not strange:
        hint = f"write it beside `in`: {', '.join(f'{port}: …' for port in missing)}" if "in" in node else f"{missing[0]}: …"
        reader.error("missing-port", name.span, f"port {missing[0]} of {kind.text} is not connected", hint=hint)
        return None
    given = YamlEntry(YamlScalar("in", node.span), YamlMapping(tuple(edges.values()), node.span))
    own = (each for each in node if each.key.text in {*fields(part), "when"})
    use = graphs.typed(YamlMapping((YamlEntry(YamlScalar("type", kind.span), kind), given, *own), node.span), kind)
    return replace(use, options=replace(use.options, misread=use.options.misread or bool(strange)))


def _edges(reader: BaseParser, node: YamlMapping, part: type[Part]) -> dict[str, YamlEntry]:
    """Return the entries of a loss that name what flows in, port by port: those under `in`, and those beside it."""
    found: dict[str, YamlEntry] = {}
    given = node.entry("in")
    if given is not None and isinstance(given.value, YamlMapping):
        found |= {each.key.text: each for each in given.value}
    elif given is not None:
        first = next(iter(ports(part)))
        found[first] = YamlEntry(YamlScalar(first, given.key.span), given.value)
    for each in node:
        if each.key.text in found and each.key.text in ports(part):
            reader.error("one-value", each.key.span, f"port {each.key.text} takes one value, but `in` already gives it one")
        elif each.key.text in ports(part):
            found[each.key.text] = each
    return found
