"""Uses of blocks as nodes: by their own forward, by a graph that they declare, or by one that the recipe defines."""

from __future__ import annotations

from functools import partial

from blocks.core import Part, fields, is_node
from blocks.core.fields import NodeName, formula_field
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import NodeBuilder, PendingEdge, Scope, Site
from composer.graph.passes.expand.composite_blocks import Composites
from composer.graph.passes.expand.definition_instances import Instances
from composer.graph.passes.expand.expansion import Expansion
from composer.graph.passes.expand.field_values import Fields
from composer.graph.passes.expand.formulas import FormulaReader
from composer.graph.passes.expand.node_options import apply_options
from composer.graph.state_update import SUFFIX, Renewal
from composer.language.recipe.ast import ExpressionValue, FieldEntry, UseDecl
from composer.language.recipe.defined_block import is_defined


class Uses:
    """Writes uses of blocks."""

    def __init__(self, expansion: Expansion, fields: Fields, instances: Instances, composites: Composites) -> None:
        self.expansion, self.report = expansion, expansion.report
        self.fields, self.instances, self.composites = fields, instances, composites

    def use(self, what: UseDecl, scope: Scope, site: Site) -> NodeBuilder:
        """Return the node of one use.

        Raises:
            StopExpansion: where it can be none, which is reported.
        """
        part = what.part
        if not is_node(part):
            hint = "use it in a slot of another block"
            self.report.error("not-a-node", site.home, what.type_span, f"{part.kind} cannot be a node of a graph", hint=hint)
            raise StopExpansion
        node = self.expansion.new(site, what.span)
        node.part = part
        apply_options(node, what.options, scope, site, self.expansion.values)
        self.report.inside(node, partial(self._write, node, what, scope, site))
        return node

    def _write(self, node: NodeBuilder, what: UseDecl, scope: Scope, site: Site) -> None:
        """Write what is inside of a use."""
        part = what.part
        if part.position_inputs and site.home.within_sealed:
            message = f"{part.kind} needs positions, which a block in this slot is not passed"
            hint = "move it to a node of its own, before or after this block"
            self.report.error("slot-form", site.home, what.type_span, message, hint=hint)
            raise StopExpansion
        if is_defined(part):
            node.broken = node.broken or any(entry.value is None for entry in what.fields)
            self.instances.write(node, what, scope)
        elif part.graph:
            self.composites.write(node, what, scope)
        else:
            self._fields(node, what, scope, site)

    def _fields(self, node: NodeBuilder, what: UseDecl, scope: Scope, site: Site) -> None:
        """Write the fields of a block that computes by itself."""
        known, written = fields(what.part), {entry.name: entry for entry in what.fields}
        node.broken = node.broken or bool([name for name, field in known.items() if field.required and name not in written])
        if formula_field(what.part):
            FormulaReader(self.expansion, node, what, scope, site).read(written)
            return
        for name, entry in written.items():
            value = entry.value
            if isinstance(value, ExpressionValue) and isinstance(known[name].form, NodeName):
                continue  # of a node, the only one: what a state becomes
            found = None
            if value is not None:
                found = self.report.attempt(node.home, partial(self.fields.field, value, known[name], what.part, scope, node))
            if found is None:
                node.broken = True
            else:
                node.fields[name] = found
        for name, field in known.items():
            if name not in written and isinstance(field.default, Part):
                default = self.fields.default_slot(field, node, node.name_span)
                if default is not None:
                    node.fields[name] = default
        if what.part.renewed_by and not node.broken and not node.dropped:
            self._renewal(node, written[what.part.renewed_by], scope)

    def _renewal(self, state: NodeBuilder, entry: FieldEntry, scope: Scope) -> None:
        """Write the node of what a state becomes, beside it."""
        written = entry.value
        assert isinstance(written, ExpressionValue)
        if state.home.sealed:
            self.report.error(
                "slot-form", state.home, state.name_span, "a state cannot fill a slot", hint="move it to a node of its own"
            )
            raise StopExpansion
        node = self.expansion.new(Site(state.name + SUFFIX, state.home, written.span, ""), state.span)
        node.part, node.read = Renewal, True
        node.fields["shape"] = state.fields["shape"]
        node.edges["next"] = PendingEdge("next", (written.expression,), scope, entry.key)
        state.home.nodes[node.name] = node
