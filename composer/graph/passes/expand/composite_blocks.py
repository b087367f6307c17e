"""Blocks that declare a graph, written out where they are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import BlockError, Part, fields, ports, standard
from blocks.core.fields import Field
from blocks.core.per_class import per_class
from composer.diagnostics import Declaration
from composer.graph.ir import Known
from composer.graph.passes.expand.builders import Binding, Bound, Broken, Deferred, NodeBuilder, Scope
from composer.graph.passes.expand.expansion import Expansion, GraphWriter
from composer.graph.passes.expand.field_values import Fields
from composer.graph.passes.own_blocks import raised
from composer.language.recipe.ast import (
    BlockChoice,
    Conditional,
    FieldEntry,
    GraphBody,
    MaskValue,
    NodeContent,
    SlotValue,
    UseDecl,
)
from composer.language.recipe.base_parser import BaseParser
from composer.language.recipe.graphs import GraphParser
from composer.language.yaml.nodes import YamlMapping
from composer.language.yaml.reader import read


@per_class
def declared_graph(part: type[Part]) -> YamlMapping:
    """Return the graph that a block declares, as it is written."""
    document = read(Declaration(f"<{part.kind}>", part.graph))
    assert document.root is not None and not document.diagnostics, document.diagnostics
    return document.root


@per_class
def expansion(part: type[Part]) -> GraphBody:
    """Return the graph that a block declares, parsed."""
    reader = BaseParser([])
    body = GraphParser(reader, standard(), values=frozenset(fields(part))).body(declared_graph(part))
    assert not reader.diagnostics, reader.diagnostics
    return body


class Composites:
    """Writes such blocks out."""

    def __init__(self, expansion: Expansion, writer: GraphWriter, fields: Fields) -> None:
        self.expansion, self.writer, self.fields, self.report = expansion, writer, fields, expansion.report

    def write(self, node: NodeBuilder, what: UseDecl, scope: Scope) -> None:
        """Write the graph of one use into the node that it became: fields are names inside, ports are inputs."""
        inner = self.expansion.inside(node, ports(what.part))
        written = {entry.name: entry for entry in what.fields}
        values = {
            name: self._bind(written[name], field, what.part, scope) if name in written else _default(field, scope, node)
            for name, field in fields(what.part).items()
        }
        if not any(isinstance(value, Broken) for value in values.values()):
            self._check(what, values, node)
        self.writer.body(expansion(what.part), inner, Scope(inner, values))

    def _bind(self, entry: FieldEntry, field: Field, part: type[Part], scope: Scope) -> Binding:
        """Return what is written for a field, as a name inside."""
        written = entry.value
        if written is None:
            return Broken(entry.key)
        if isinstance(written, SlotValue) and isinstance(written.what, BlockChoice | Conditional) and not field.nullable:
            choice = written.what
            chosen = self.report.attempt(scope.graph, lambda: self.expansion.choices.choose(choice, scope))
            if chosen is None:
                return Broken(written.span)
            if chosen.content is None:
                self.report.error("not-optional", scope.graph, written.span, f"the slot `{field.name}` cannot be empty")
                return Broken(written.span)
        if isinstance(written, SlotValue) and not field.nullable and self._left_out(written.what, scope):
            hint = f"leave the {part.kind} itself out: write its `when` one level up"
            self.report.error("not-optional", scope.graph, written.span, f"the slot `{field.name}` cannot be left out", hint=hint)
            return Broken(written.span)
        if isinstance(written, SlotValue) and not self._is_of_family(written.what, field, scope):
            return Broken(written.span)
        if isinstance(written, SlotValue | MaskValue):
            return Deferred(written, scope, written.span)
        value = self.report.attempt(scope.graph, lambda: self.fields.field(written, field, part, scope, None))
        if isinstance(value, Known):
            return Deferred(None, scope, value.span) if value.value is None else Bound(value.value, value.span)
        return Broken(written.span) if value is None else Deferred(written, scope, written.span)

    def _is_of_family(self, what: NodeContent, field: Field, scope: Scope) -> bool:
        """Return whether what is written for a slot may fill it; if not, that is reported."""

        def checked() -> bool:
            self.fields.check_family(what, scope, field)
            return True

        return self.report.attempt(scope.graph, checked) is True

    def _left_out(self, what: NodeContent, scope: Scope) -> bool:
        """Return whether `when` leaves out what fills a slot."""
        when = what.options.when
        return (
            when is not None
            and self.report.attempt(scope.graph, lambda: self.expansion.values.boolean(when, scope, when.span)) is False
        )

    def _check(self, what: UseDecl, values: Mapping[str, Binding], node: NodeBuilder) -> None:
        plain: dict[str, Any] = {
            key: value.value if isinstance(value, Bound) else value.holds
            for key, value in values.items()
            if isinstance(value, Bound | Deferred)
        }
        try:
            what.part.model_construct(**plain).check({}, frozenset(node.fed))
        except BlockError as error:
            at = next((entry.value for entry in what.fields if entry.name == error.field), None)
            self.report.error(
                error.code or "rejected", node.home, at.span if at else what.type_span, error.message, hint=error.hint
            )
        except Exception as error:  # the code of a user's own block may raise anything
            found = raised(what.part, error, self.expansion.library, what.type_span)
            if found is None:
                raise
            self.report.add(found)


def _default(field: Field, scope: Scope, node: NodeBuilder) -> Binding:
    if field.default is None or isinstance(field.default, Part):
        return Deferred(field.default, scope, node.name_span)
    return Bound(field.default, node.name_span)
