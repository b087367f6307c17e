"""The options of a node beside its block's fields: its edges, its condition, its ties."""

from __future__ import annotations

from collections.abc import Iterator

from blocks.core import Part, ports
from blocks.core.fields import formula_field
from composer.diagnostics import Span
from composer.language.expressions.ast import Expression, RefPath
from composer.language.recipe.ast import EdgeDecl, NodeOptions
from composer.language.recipe.base_parser import BaseParser
from composer.language.recipe.keys import WORDS
from composer.language.yaml.nodes import YamlEntry, YamlMapping, YamlNode, YamlScalar


def node_options(reader: BaseParser, node: YamlMapping, part: type[Part] | None = None) -> NodeOptions:
    """Return the options of a node of `part`; without one, of a node with a graph of its own."""
    edges, before = node.entry("in"), len(reader.diagnostics)
    read = tuple(_edges(reader, edges.value, part)) if edges else ()
    misread = len(reader.diagnostics) > before
    when, trainable = reader.expression(node.get("when")), reader.expression(node.get("trainable"))
    return NodeOptions(
        read,
        edges.value.span if edges else None,
        when.expression if when else None,
        _tie(reader, node.get("tie")),
        trainable.expression if trainable else None,
        misread,
    )


def _edges(reader: BaseParser, node: YamlNode, part: type[Part] | None) -> Iterator[EdgeDecl]:
    reads_names = part is not None and bool(formula_field(part))
    if isinstance(node, YamlMapping) and _is_choice(reader, node, "in"):
        return
    if not isinstance(node, YamlMapping):
        if reads_names:
            message = "a formula names what it reads; `in` maps these names to others"
            reader.error("value-form", node.span, message, hint="in: {name: node}")
        else:
            yield EdgeDecl("", node.span, reader.references(node))
        return
    for entry in node:
        port = entry.key
        if reads_names:
            yield EdgeDecl(port.text, port.span, reader.references(entry.value))
        elif part is not None and port.text not in (known := ports(part)):
            reader.unknown("unknown-port", port.span, "port", port.text, known, of=part.kind)
        elif part is not None or reader.declares(port, "an input", WORDS - {"input"}):
            yield EdgeDecl(port.text, port.span, reader.references(entry.value))


def _tie(reader: BaseParser, node: YamlNode | None) -> Expression | tuple[tuple[str, Span, Expression], ...] | None:
    if node is None:
        return None
    if not isinstance(node, YamlMapping):
        return reader.reference(node, "tie")
    if _is_choice(reader, node, "tie"):
        return None
    tied = ((entry.key, reader.reference(entry.value, "")) for entry in node)
    return tuple((name.text, name.span, reference) for name, reference in tied if reference)


def _is_choice(reader: BaseParser, node: YamlMapping, key: str) -> bool:
    """Return whether a mapping is a choice between blocks, which is no reference; report it."""
    if not {"if", "then"} <= {entry.key.text for entry in node} <= {"if", "then", "else"}:
        return False
    held = {word: part.text if isinstance(part := node.get(word), YamlScalar) else "…" for word in ("if", "then", "else")}
    other = held["else"] if node.get("else") is not None else "none"
    message = "`if`, `then` and `else` choose between blocks; a reference is chosen in one line"
    reader.error("value-form", node.span, message, hint=f"{key}: {held['then']} if {held['if']} else {other}")
    return True


def named_references(reader: BaseParser, entry: YamlEntry | None) -> Iterator[tuple[str, Span, Expression]]:
    """Yield the references by name, as under `positions`."""
    if entry is None:
        return
    key = entry.key.text
    if not isinstance(entry.value, YamlMapping):
        reader.error("value-form", entry.value.span, f"`{key}` maps names to references", hint=f"{key}: {{name: node}}")
        return
    for item in entry.value:
        reference = reader.reference(item.value, key)
        if reference is not None and reader.declares(item.key, "an output"):
            yield item.key.text, item.key.span, reference


def outputs(reader: BaseParser, entry: YamlEntry | None) -> Iterator[tuple[str, Span, Expression]]:
    """Yield the outputs of a graph, by name; a single reference is named after its target."""
    if entry is not None and isinstance(entry.value, YamlScalar):
        written = reader.expression(entry.value)
        if written is not None and isinstance(written.expression, RefPath):
            yield written.expression.steps[-1].name, entry.value.span, written.expression
            return
    yield from named_references(reader, entry)
