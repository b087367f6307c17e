"""Uses of blocks as nodes: by their own forward, by a graph that they declare, or by one that the recipe defines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from blocks.core import Part, fields, is_node
from blocks.core.fields import NodeName
from blocks.primitives.state import State
from composer.graph.passes.expand.builders import NodeBuilder, PendingEdge, Site
from composer.graph.passes.expand.error_report import StopExpansion
from composer.graph.passes.expand.node_options import settle
from composer.graph.passes.expand.scope import Scope
from composer.graph.state_update import SUFFIX, Renewal
from composer.language.recipe.ast import ExpressionValue, FieldEntry, UseDecl
from composer.language.recipe.defined_block import is_defined

if TYPE_CHECKING:
    from composer.graph.passes.expand.expand import Expander


class Uses:
    """Writes uses of blocks."""

    def __init__(self, expander: Expander) -> None:
        self.expander, self.report = expander, expander.report

    def use(self, what: UseDecl, scope: Scope, site: Site) -> NodeBuilder:
        """The node of one use.

        Raises:
            Stop: where it can be none, which is reported.
        """
        part, around = what.part, site.home.holder
        if not is_node(part):
            hint = "it fills a slot of another block"
            self.report.error("not-a-node", what.type_span, f"{part.kind} is no node of a graph", hint=hint)
            raise StopExpansion
        node = self.expander.new(site, what.span)
        node.part = part
        settle(node, what.options, scope, site, self.expander.values)
        if part.position_inputs and site.home.shut:
            message = f"{part.kind} needs positions, which the holder of this slot cannot hand on"
            hint = "write it as a node of its own, before or after the holder"
            self.report.error("slot-form", what.type_span, message, hint=hint)
            raise StopExpansion
        if is_defined(part):
            node.broken = node.broken or any(entry.value is None for entry in what.fields)
            self.expander.instances.write(node, what, scope)
        elif node.dropped and scope.outer is None and around is not None and around.part and not is_defined(around.part):
            node.part = None  # a block's own expansion drops what changes no type, such as a scale by 1
        elif part.graph:
            self.expander.composites.write(node, what, scope)
        else:
            self._fields(node, what, scope)
        return node

    def _fields(self, node: NodeBuilder, what: UseDecl, scope: Scope) -> None:
        """The fields of a block that computes by itself."""
        known, written = fields(what.part), {entry.name: entry for entry in what.fields}
        node.broken = node.broken or any(field.required and name not in written for name, field in known.items())
        for name, entry in written.items():
            value = entry.value
            if isinstance(value, ExpressionValue) and isinstance(known[name].form, NodeName):
                continue  # of a node, the only one: what a state becomes
            found = None
            if value is not None:
                found = self.report.attempt(partial(self.expander.fields.field, value, known[name], what.part, scope, node))
            if found is None:
                node.broken = True
            else:
                node.fields[name] = found
        for name, field in known.items():
            if name not in written and isinstance(field.default, Part):
                default = self.expander.fields.default_slot(field, node, node.name_span)
                if default is not None:
                    node.fields[name] = default
        if issubclass(what.part, State) and not node.broken and not node.dropped:
            self._renewal(node, written["next"], scope)

    def _renewal(self, state: NodeBuilder, entry: FieldEntry, scope: Scope) -> None:
        """The node of what a state becomes, beside it."""
        written = entry.value
        assert isinstance(written, ExpressionValue)
        if state.home.sealed:
            self.report.error("slot-form", state.name_span, "a state cannot fill a slot", hint="write it as a node of its own")
            raise StopExpansion
        node = self.expander.new(Site(state.name + SUFFIX, state.home, written.span, ""), state.span)
        node.part, node.read = Renewal, True
        node.fields["shape"] = state.fields["shape"]
        node.edges["next"] = PendingEdge("next", (written.expression,), scope, entry.key)
        state.home.nodes[node.name] = node
