"""Recipe to graph: shorthands, conditions, slots and passes worked out; repeats stay folded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from blocks.core import Library, Part, ports
from composer.diagnostics import Diagnostic, Span
from composer.graph.ir import GraphInput, Known, Program
from composer.graph.passes.expand.block_choice import Choices
from composer.graph.passes.expand.block_uses import Uses
from composer.graph.passes.expand.builders import GraphBuilder, NodeBuilder, Site
from composer.graph.passes.expand.composite_blocks import Composites
from composer.graph.passes.expand.definition_instances import Instances
from composer.graph.passes.expand.error_report import ErrorReport, StopExpansion, TooMuch, once
from composer.graph.passes.expand.evaluation import DEPTH, Evaluator
from composer.graph.passes.expand.field_values import Fields
from composer.graph.passes.expand.init_rules import starts, written_starts
from composer.graph.passes.expand.node_options import settle
from composer.graph.passes.expand.params import Params
from composer.graph.passes.expand.repeats import Repeats
from composer.graph.passes.expand.scope import Binding, Bound, Broken, Extent, Scope
from composer.graph.passes.resolve.freeze import freeze
from composer.graph.passes.resolve.resolve import Wiring
from composer.language.recipe.ast import (
    BlockChoice,
    GraphBody,
    GroupDecl,
    NodeContent,
    ParsedRecipe,
    RepeatDecl,
    ScanDecl,
    UseDecl,
)
from composer.language.recipe.defined_block import is_defined
from composer.language.yaml.nodes import YamlMapping, YamlScalar

NODES = 6_000
"""Nodes that are expanded one by one; a repeat whose passes agree counts once."""


def expand(recipe: ParsedRecipe, library: Library) -> tuple[Program | None, tuple[Diagnostic, ...]]:
    """The graph of a recipe, and what is wrong with it: only the sound part of the graph then, or none at all."""
    expander = Expander(recipe, library)
    return expander.program(), tuple(once([*recipe.diagnostics, *expander.report.diagnostics]))


class Expander:
    """One run of `expand`."""

    def __init__(self, recipe: ParsedRecipe, library: Library) -> None:
        self.recipe, self.library = recipe, library
        self.report = ErrorReport()
        self.values = Evaluator(self.report)
        self.choices = Choices(recipe, self.values)
        self.fields = Fields(self)
        self.uses = Uses(self)
        self.repeats = Repeats(self)
        self.composites = Composites(self)
        self.instances = Instances(self)
        self.all_nodes: list[NodeBuilder] = []
        self.all_graphs: list[GraphBuilder] = []
        self.depth = 0
        self.root = self.graph(None)
        self.values_of_recipe: dict[str, Binding] = {key.text: Broken(key.span) for key in _keys(recipe.root, "params")}
        """What the params of the recipe are."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong so far."""
        return not any(found.severity == "error" for found in [*self.recipe.diagnostics, *self.report.diagnostics])

    def program(self) -> Program | None:
        """The program, unless mistakes leave none."""
        recipe, root, values = self.recipe, self.root, self.values_of_recipe
        scope = Scope(root, values)
        params = Params(recipe.params, self.values)
        params.settle(scope, values)
        params.unused(recipe.root, recipe.name_scalar.span.source)
        for declared in recipe.inputs:
            root.inputs[declared.name] = GraphInput(declared.name, type=declared.type)
        root.failed.update(key.text for key in _keys(recipe.root, "inputs") if key.text not in root.inputs)
        if "inputs" not in recipe.root:
            root.failed.add("input")
        try:
            self.body(recipe.body, root, scope)
            losses = self._losses(root, scope)
            wiring = Wiring(self)
            positions = wiring.connect(root, [(name, span, reference, scope) for name, span, reference in recipe.positions])
        except TooMuch:
            return None
        assert not self.sound or not any(node.broken for node in self.all_nodes), "a mistake that nobody was told of"
        self.instances.unused()
        rules = tuple(written_starts(recipe.init, scope, self.values))
        graph = freeze(root, self.report.diagnostics)
        if graph is None:
            return None
        if recipe.definitions:
            rules = (*starts(graph), *rules)
        plain = {name: binding.value for name, binding in values.items() if isinstance(binding, Bound)}
        origins = {name: binding.span for name, binding in values.items() if not isinstance(binding, Extent)}
        return Program(recipe, graph, recipe.inputs, plain, origins, tuple(positions), rules, losses, self.sound)

    def _losses(self, root: GraphBuilder, scope: Scope) -> dict[str, str]:
        """A node for each of the recipe's own losses, out of the sight of references; the name of each."""
        above = root.fresh("losses")
        found = {}
        for declared in self.recipe.losses:
            site = Site(f"{above}.{declared.name}", root, declared.span, "")
            node = self.report.attempt(partial(self.node, declared.what, scope, site))
            if node is not None:
                node.read = True
                root.nodes[site.name] = node
                found[declared.name] = site.name
        return found

    # -- graphs

    def graph(self, holder: NodeBuilder | None, *, sealed: bool = False) -> GraphBuilder:
        """An empty graph in the node that holds it."""
        graph = GraphBuilder(holder, sealed)
        if sealed:
            graph.inputs["input"] = GraphInput("input")
        self.all_graphs.append(graph)
        return graph

    def inside(self, holder: NodeBuilder, ports: Iterable[str]) -> GraphBuilder:
        """The graph of a node, with an input for each of the ports that something is wired to."""
        holder.graph = self.graph(holder)
        holder.graph.inputs |= {port: GraphInput(port) for port in ports if port in holder.edges}
        return holder.graph

    def body(self, body: GraphBody, graph: GraphBuilder, scope: Scope) -> None:
        """Writes nodes into a graph."""
        above = "input"
        for declared in body.nodes:
            if declared.name in graph.inputs or declared.name in graph.nodes:
                message = f"`{declared.name}` is an input of this graph already"
                self.report.error("name-taken", declared.span, message, hint="name the node differently")
                continue
            inner = Scope(graph, scope.values, scope.outer, declared.name, scope.library)
            site = Site(declared.name, graph, declared.span, above)
            node = self.report.attempt(partial(self.node, declared.what, inner, site))
            if node is not None:
                graph.nodes[declared.name] = node
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
        """One node.

        Raises:
            Stop: where there is none, which is reported.
        """
        if len(self.all_nodes) > NODES:
            hint = "passes that agree in all that they read count once"
            self.report.error("too-many-nodes", site.span, f"more than {NODES:,} nodes differ from one another", hint=hint)
            raise TooMuch
        self.depth += 1
        before, self.report.inside = self.report.inside, site.home
        try:
            if self.depth > DEPTH:
                message = f"blocks stand more than {DEPTH} deep inside one another"
                self.report.error("too-deep", site.span, message, hint="does a block hold itself?")
                raise StopExpansion
            match what:
                case BlockChoice():
                    return self._choice(what, scope, site)
                case UseDecl():
                    return self.uses.use(what, scope, site)
                case GroupDecl() | ScanDecl():
                    return self._group(what, scope, site)
                case RepeatDecl():
                    return self.repeats.repeat(what, scope, site)
            raise StopExpansion  # it could not be read
        finally:
            self.depth -= 1
            self.report.inside = before

    def new(self, site: Site, span: Span) -> NodeBuilder:
        """A node that is nothing yet."""
        node = NodeBuilder(site.name, site.home, site.span, span)
        self.all_nodes.append(node)
        return node

    def _choice(self, what: BlockChoice, scope: Scope, site: Site) -> NodeBuilder:
        target, place = self.choices.choose(what, scope)
        if target is None:
            node = self.new(site, what.span)
            node.edges["x"] = site.implied("x")
            return node
        if isinstance(target, Part):
            return self.default(target, site)
        around = site.home.holder.part if site.home.holder is not None else None
        if around is not None and not is_defined(around):  # a slot's own text, not the expansion that uses it
            site = site.at(target.type_span if isinstance(target, UseDecl) else target.span)
        inside = Scope(place.graph, place.values, place.outer, place.inside or scope.inside, place.library)
        return self.node(target, inside, site.filling() if place is not scope else site)

    def default(self, part: Part, site: Site) -> NodeBuilder:
        """A node for a part that is the default of a slot."""
        node = self.new(site, site.span)
        node.part = type(part)
        node.fields = {key: Known(getattr(part, key), site.span) for key in type(part).model_fields}
        port = next(iter(ports(type(part))))
        node.edges[port] = site.implied(port)
        return node

    def _group(self, what: GroupDecl | ScanDecl, scope: Scope, site: Site) -> NodeBuilder:
        node = self.new(site, what.span)
        settle(node, what.options, scope, site, self.values)
        if isinstance(what, ScanDecl):
            node.axis = (what.axis, what.axis_span)
        inner = self.inside(node, node.edges)
        self.body(what.body, inner, scope.within(inner))
        return node


def _keys(root: YamlMapping, name: str) -> Iterable[YamlScalar]:
    """The names under a key of the recipe."""
    value = root.get(name)
    return (entry.key for entry in value) if isinstance(value, YamlMapping) else ()
