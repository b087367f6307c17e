"""Uses of the blocks that a recipe defines: each a graph of its own, with the values that its params have there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from blocks.core import Part
from composer.diagnostics import Diagnostic
from composer.graph.ir import GraphInput, PortType
from composer.graph.passes.expand.builders import NodeBuilder
from composer.graph.passes.expand.init_rules import written_starts
from composer.graph.passes.expand.params import Params
from composer.graph.passes.expand.scope import Binding, Bound, Broken, Extent, Scope
from composer.language.expressions.parser import names
from composer.language.recipe.ast import Definition, GivenValue, UseDecl
from composer.language.recipe.keys import VALUE_WORDS

if TYPE_CHECKING:
    from composer.graph.passes.expand.expand import Expander


class Instances:
    """Writes out uses of definitions."""

    def __init__(self, expander: Expander) -> None:
        self.expander, self.report = expander, expander.report
        self.definitions = expander.recipe.definitions
        self.around: list[tuple[type[Part], Mapping[str, Binding]]] = []
        """The definitions whose graphs are being written out, each with its values, the outermost first."""
        self.used: set[type[Part]] = set()

    def write(self, node: NodeBuilder, what: UseDecl, scope: Scope) -> None:
        """The graph of one use, in the node that it became."""
        definition = self.definitions[what.part]
        self.used.add(what.part)
        inner = self.expander.graph(node)
        node.graph = inner
        for declared in definition.inputs:
            if declared.name in node.edges:
                inner.inputs[declared.name] = GraphInput(declared.name)
            else:
                inner.absent.add(declared.name)
        values = self._values(definition, what, scope)
        place = Scope(inner, values, library=definition.library)
        fixed = tuple(sorted((name, value.value) for name, value in values.items() if isinstance(value, Bound)))
        node.ports = tuple(
            PortType(declared.name, declared.type, declared.optional, fixed)
            for declared in definition.inputs
            if declared.name in node.edges
        )
        node.init = tuple(written_starts(definition.init, place, self.expander.values))
        self.around.append((what.part, values))
        try:
            self.expander.body(definition.body, inner, place)
        finally:
            self.around.pop()

    def _values(self, definition: Definition, what: UseDecl, scope: Scope) -> dict[str, Binding]:
        """What the names of a definition stand for in one use: its params, the axes of its inputs, and what it sees around it."""
        outer = definition.outer
        values = dict(self.expander.values_of_recipe if outer is None else self._values_around(outer))
        params = {param.name for param in definition.params}
        for declared in definition.inputs:
            for axis in declared.type.axes:
                for name in names(axis) - params - values.keys() - VALUE_WORDS:
                    values[name] = Extent(name, what.part)
        values |= {param.name: Broken(param.span) for param in definition.params}
        written = {entry.name: entry.value for entry in what.fields}
        given = {name: (value.node, scope) for name, value in written.items() if isinstance(value, GivenValue)}
        Params(definition.params, self.expander.values).settle(Scope(self.expander.root, values), values, given)
        return values

    def _values_around(self, part: type[Part]) -> Mapping[str, Binding]:
        return next(values for holder, values in reversed(self.around) if holder is part)

    def unused(self) -> None:
        """Reports params that their definition does not use, and warns of blocks of this recipe that nothing uses."""
        sound = self.expander.sound
        own = self.expander.recipe.name_scalar.span.source
        for definition in self.definitions.values():
            Params(definition.params, self.expander.values).unused(definition.root, own)
            if sound and definition.part not in self.used and definition.span.source == own:
                message = f"nothing uses the block `{definition.part.kind}`"
                self.report.diagnostics.append(Diagnostic("unused-block", message, definition.span, "warning"))
