"""Uses of the blocks that a recipe defines: each a graph of its own, with the values that its params have there."""

from __future__ import annotations

from collections.abc import Mapping

from blocks.core import Part
from composer.graph.ir import GraphInput, PortType
from composer.graph.passes.expand.builders import Binding, Broken, Extent, GraphBuilder, NodeBuilder, Scope, plain_values
from composer.graph.passes.expand.expansion import Expansion, GraphWriter
from composer.graph.passes.expand.init_rules import evaluated_rules
from composer.graph.passes.expand.params import Params
from composer.language.expressions.parser import names
from composer.language.recipe.ast import Definition, GivenValue, UseDecl
from composer.language.recipe.keys import VALUE_WORDS


class Instances:
    """Writes out uses of definitions."""

    def __init__(self, expansion: Expansion, writer: GraphWriter) -> None:
        self.expansion, self.writer, self.report = expansion, writer, expansion.report
        self.definitions = expansion.recipe.definitions
        self.values: dict[GraphBuilder, Mapping[str, Binding]] = {}
        """Of each graph that a use became, the values in it."""

    def write(self, node: NodeBuilder, what: UseDecl, scope: Scope) -> None:
        """Write the graph of one use into the node that it became.

        Raises:
            TooMuch: where all uses have too many params, which is reported.
        """
        definition = self.definitions[what.part]
        self.expansion.count_values(len(definition.params), node.home, what.type_span)
        self.expansion.used.add(what.part)
        inner = self.expansion.graph(node)
        node.graph = inner
        fed = node.fed
        for declared in definition.inputs:
            if declared.name in fed:
                inner.inputs[declared.name] = GraphInput(declared.name)
            elif declared.optional:
                inner.absent.add(declared.name)
            else:  # which has been reported, so that nothing is said of what reads it
                inner.failed.add(declared.name)
        values = self._values(definition, what, scope, node.home)
        place = Scope(inner, values, library=definition.library)
        fixed = tuple(sorted(plain_values(values).items()))
        node.ports = tuple(
            PortType(declared.name, declared.type, declared.optional, fixed)
            for declared in definition.inputs
            if declared.name in fed
        )
        node.init = tuple(evaluated_rules(definition.init, place, self.expansion.values))
        self.values[inner] = values
        self.writer.body(definition.body, inner, place)

    def _values(self, definition: Definition, what: UseDecl, scope: Scope, home: GraphBuilder) -> dict[str, Binding]:
        """Return what the names of a definition stand for in one use: its params, the axes of its inputs, and what
        it sees around it.
        """
        outer = definition.outer
        values = dict(self.expansion.params if outer is None else self._values_around(outer, home))
        params = {param.name for param in definition.params}
        for declared in definition.inputs:
            for axis in declared.type.axes:
                for name in names(axis) - params - values.keys() - VALUE_WORDS:
                    values[name] = Extent(name, what.part)
        values |= {param.name: Broken(param.span) for param in definition.params}
        written = {entry.name: entry.value for entry in what.fields}
        given = {name: (value.node, scope) for name, value in written.items() if isinstance(value, GivenValue)}
        Params(definition.params, self.expansion.values).bind(Scope(self.expansion.root, values), values, given)
        return values

    def _values_around(self, part: type[Part], home: GraphBuilder | None) -> Mapping[str, Binding]:
        """Return what the names of a definition stand for in the use of it that is around a graph."""
        while home is not None and (home.holder is None or home.holder.part is not part):
            home = home.parent
        assert home is not None, "a definition is used inside of the one that holds it"
        return self.values[home]
