"""Recipe to graph: shorthands, conditions, slots and passes worked out; repeats stay folded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from blocks.core import Part
from blocks.core.fields import formula_field
from composer.diagnostics import Span
from composer.graph.ir import GraphInput
from composer.graph.passes.compilation import Compilation
from composer.graph.passes.error_report import StopExpansion, TooMuch
from composer.graph.passes.expand.block_uses import Uses
from composer.graph.passes.expand.builders import Binding, Broken, GraphBuilder, NodeBuilder, Scope, Site
from composer.graph.passes.expand.composite_blocks import Composites
from composer.graph.passes.expand.definition_instances import Instances
from composer.graph.passes.expand.expansion import MAX_EDGES, Expansion
from composer.graph.passes.expand.field_values import Fields
from composer.graph.passes.expand.node_options import apply_options, edges_of_nothing
from composer.graph.passes.expand.params import Params
from composer.graph.passes.expand.repeats import MAX_TOTAL_NODES, Repeats
from composer.language.recipe.ast import (
    BlockChoice,
    Conditional,
    GraphBody,
    GroupDecl,
    NodeContent,
    NodeDecl,
    NodeOptions,
    RepeatDecl,
    ScanDecl,
    UseDecl,
)
from composer.language.recipe.defined_block import is_defined
from composer.language.yaml.nodes import YamlMapping, YamlScalar

MAX_NODES = 6_000
"""Nodes that are expanded one by one, also those with a mistake; of a repeat, those of its first pass."""
MAX_DIFFERENT_NODES = 24_000
"""The same, with the passes of repeats that differ from the first: enough for a thousand usual layers."""
MAX_LEVELS = 58
"""Levels of lists and mappings around a graph, written out: with those of the recipe and of a node, few enough to be read."""


def expand(state: Compilation) -> Compilation:
    """Write out shorthands, conditions, slots and the passes of repeats.

    Before:
        graph:
          mlp: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 16}}
    After:
        mlp: a group of norm, body, add
    """
    assert state.parsed is not None
    broken: dict[str, Binding] = {key.text: Broken(key.span) for key in _keys(state.parsed.root, "params")}
    expansion = Expansion(state.parsed, state.library, broken)
    state = replace(state, expansion=expansion)
    try:
        Expander(expansion).recipe()
    except TooMuch:
        return state.reported(stopped=True)
    return state.reported()


class Expander:
    """Writes a recipe out."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        self.report, self.values = expansion.report, expansion.values
        fields = Fields(expansion, self)
        self.instances = Instances(expansion, self)
        self.uses = Uses(expansion, fields, self.instances, Composites(expansion, self, fields))
        self.repeats = Repeats(expansion, self)
        self.tried = 0
        """Nodes of graphs so far, and graphs without any, whatever came of them."""
        self.edges = 0
        """What the graphs so far take and return."""

    def recipe(self) -> None:
        """Write out the whole recipe.

        Raises:
            TooMuch: where it comes to too many nodes, which is reported.
        """
        expansion, declared = self.expansion, self.expansion.recipe
        root, values, scope = expansion.root, expansion.params, expansion.scope
        params = Params(declared.params, self.values)
        params.bind(scope, values)
        params.unused(declared.root, declared.name_scalar.span.source)
        for item in declared.inputs:
            root.inputs[item.name] = GraphInput(item.name, type=item.type)
        root.failed.update(key.text for key in _keys(declared.root, "inputs") if key.text not in root.inputs)
        if "inputs" not in declared.root:
            root.failed.add("input")
        self.body(declared.body, root, scope)
        expansion.losses = self._losses(root, scope)

    def _losses(self, root: GraphBuilder, scope: Scope) -> dict[str, str]:
        """Return a node for each of the recipe's own losses, out of the sight of references; the name of each."""
        above = root.fresh("losses")
        found = {}
        for declared in self.expansion.recipe.losses:
            site = Site(f"{above}.{declared.name}", root, declared.span, "")
            node = self.report.attempt(root, partial(self.node, declared.what, scope, site))
            if node is not None:
                node.read = True
                root.nodes[site.name] = node
                if not node.dropped:
                    found[declared.name] = site.name
        return found

    # -- graphs

    def body(self, body: GraphBody, graph: GraphBuilder, scope: Scope) -> None:
        """Write nodes into a graph.

        Raises:
            TooMuch: where there are too many nodes or edges, which is reported.
        """
        self.edges += len(graph.inputs) + len(body.outputs)
        if self.edges > MAX_EDGES:
            self.report.too_much(graph, body.span, f"the model has more than {MAX_EDGES:,} edges")
        above, size = "input", 0
        graph.declared |= {declared.name: declared.what for declared in body.nodes}
        if not body.nodes:
            self._try(graph, body.span)
        for declared in body.nodes:
            self._try(graph, declared.span)
            if declared.name in graph.inputs or declared.name in graph.nodes:
                message = f"`{declared.name}` is already an input of this graph"
                self.report.error("name-taken", graph, declared.span, message, hint="choose another name for the node")
                continue
            inner = Scope(graph, scope.values, scope.outer, declared.name, scope.library)
            site = Site(declared.name, graph, declared.span, above)
            node = self.report.attempt(graph, partial(self.node, declared.what, inner, site))
            if node is not None:
                graph.nodes[declared.name] = node
                size += self.repeats.size(node)
                if size > MAX_TOTAL_NODES:
                    self.report.too_much(graph, declared.span, f"the model has more than {MAX_TOTAL_NODES:,} nodes")
            else:
                graph.failed.add(declared.name)
            above = declared.name
        if body.outputs:
            graph.outputs_pending.extend((name, span, reference, scope) for name, span, reference in body.outputs)
        elif body.nodes:
            last = body.nodes[-1]
            graph.outputs_pending.append(("" if graph.holder else last.name, last.span, last.name, scope))

    # -- nodes

    def node(self, what: NodeContent | None, scope: Scope, site: Site) -> NodeBuilder:
        """Expand one node.

        Raises:
            StopExpansion, TooMuch: where there is none, or too many, which is reported.
        """
        self._within_limit(site.home, site.span)
        if site.home.levels > MAX_LEVELS:
            message = f"blocks are nested too deep: written out, they take more than {MAX_LEVELS} levels of lists and mappings"
            self.report.error("too-deep", site.home, site.span, message, hint="does a block contain itself?")
            raise StopExpansion
        match what:
            case BlockChoice() | Conditional():
                return self._choice(what, scope, site)
            case UseDecl(part=part, span=span) if site.fed and formula_field(part):  # it calls what it is fed `input`
                body = GraphBody((NodeDecl(site.name, span, what),), (), span)
                return self._group(GroupDecl(body, NodeOptions(), span), scope, site)
            case UseDecl():
                return self.uses.use(what, scope, site)
            case GroupDecl() | ScanDecl():
                return self._group(what, scope, site)
            case RepeatDecl():
                return self.repeats.repeat(what, scope, site)
            case None:  # it could not be read
                raise StopExpansion

    @property
    def written(self) -> int:
        """The number of nodes so far."""
        return max(self.tried, len(self.expansion.all_nodes))

    def _try(self, graph: GraphBuilder, span: Span) -> None:
        """Count a node before it is written."""
        self.tried += 1
        self._within_limit(graph, span)

    def _within_limit(self, graph: GraphBuilder, span: Span) -> None:
        if graph.differing is not None:
            if self.written > MAX_DIFFERENT_NODES:
                self.repeats.refuse_differing(graph.differing, MAX_DIFFERENT_NODES)
        elif self.written - self.repeats.differing > MAX_NODES:
            message = f"the model has more than {MAX_NODES:,} different nodes"
            self.report.too_much(graph, span, message, hint="passes with equal values count once")

    def _choice(self, what: BlockChoice | Conditional, scope: Scope, site: Site) -> NodeBuilder:
        chosen = self.expansion.choices.choose(what, scope)
        target, place, site = chosen.content, chosen.scope, site.with_options(chosen.options)
        if target is None:
            node = self.expansion.new(site, what.span)
            edges_of_nothing(node, site)
            return node
        if isinstance(target, Part):
            return self.expansion.default(target, site)
        around = site.home.holder.part if site.home.holder is not None else None
        if around is not None and not is_defined(around):  # a slot's own text, not the expansion that uses it
            site = site.at(target.type_span if isinstance(target, UseDecl) else target.span)
        inside = Scope(place.graph, place.values, place.outer, place.inside or scope.inside, place.library)
        return self.node(target, inside, site.filling() if place is not scope else site)

    def _group(self, what: GroupDecl | ScanDecl, scope: Scope, site: Site) -> NodeBuilder:
        node = self.expansion.new(site, what.span)
        apply_options(node, what.options, scope, site, self.values)
        if isinstance(what, ScanDecl):
            node.axis = (what.axis, what.axis_span)
        inner = self.expansion.inside(node, node.edges)
        self.report.inside(node, lambda: self.body(what.body, inner, scope.within(inner)))
        return node


def _keys(root: YamlMapping, name: str) -> Iterable[YamlScalar]:
    """Return the names under a key of the recipe."""
    value = root.get(name)
    return (entry.key for entry in value) if isinstance(value, YamlMapping) else ()
