"""Recipe to graph: shorthands, conditions, slots and passes worked out; repeats stay folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

from blocks.core import Library, Part, Reject, fields, is_node, ports
from blocks.core.fields import EdgeName
from blocks.core.fields import Field as FieldSpec
from blocks.primitives.state import State
from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.builders import GraphBuilder, NodeBuilder, PendingEdge, PendingTie
from composer.graph.fields import Fields
from composer.graph.freeze import freeze
from composer.graph.instances import Instances
from composer.graph.ir import GraphInput, Known, Program
from composer.graph.params import Params
from composer.graph.renewal import SUFFIX, Renewal
from composer.graph.repeats import Repeats
from composer.graph.report import Report, Stop, TooMuch, once
from composer.graph.scope import Binding, Bound, Broken, Declaration, Deferred, Extent, Scope
from composer.graph.starts import starts
from composer.graph.values import DEPTH, Values
from composer.graph.wire import Wiring
from composer.language.defined import is_defined
from composer.language.document import Listing, Node, Scalar
from composer.language.document import Mapping as YamlMapping
from composer.language.evaluate import as_float
from composer.language.expression import If, Path
from composer.language.graphs import Graphs
from composer.language.read import read
from composer.language.reader import Reader
from composer.language.recipe import (
    Body,
    Choice,
    ExpressionValue,
    FieldEntry,
    Group,
    InitRule,
    MaskValue,
    Recipe,
    Repeat,
    Scan,
    Settings,
    SlotValue,
    Use,
    What,
)
from composer.language.unknown import missing_field, unknown_block

NODES = 6_000
"""Nodes that are expanded one by one; a repeat whose passes agree counts once."""


def expand(recipe: Recipe, library: Library) -> tuple[Program | None, tuple[Diagnostic, ...]]:
    """The graph of a recipe, and what is wrong with it: only the sound part of the graph then, or none at all."""
    expander = Expander(recipe, library)
    return expander.program(), tuple(once([*recipe.diagnostics, *expander.report.diagnostics]))


@cache
def expansion(part: type[Part]) -> Body:
    """The graph that a block of graphs declares, parsed."""
    from blocks.core import standard

    document = read(Declaration(f"<{part.kind}>", part.graph))
    assert document.root is not None, document.diagnostics
    reader = Reader(list(document.diagnostics))
    body = Graphs(reader, standard()).body(document.root)
    assert not reader.diagnostics, reader.diagnostics
    return body


class Expander:
    """One run of `expand`."""

    def __init__(self, recipe: Recipe, library: Library) -> None:
        self.recipe, self.library = recipe, library
        self.report = Report()
        self.values = Values(self.report)
        self.fields = Fields(self)
        self.repeats = Repeats(self)
        self.instances = Instances(self)
        self.all_nodes: list[NodeBuilder] = []
        self.all_graphs: list[GraphBuilder] = []
        self.depth = 0
        self.root = self.graph(None)
        self.values_of_recipe: dict[str, Binding] = {key.text: Broken(key.span) for key in _keys(recipe.root, "params")}
        """What the params of the recipe are."""

    def program(self) -> Program | None:
        """The program, unless mistakes leave none."""
        recipe = self.recipe
        root, values = self.root, self.values_of_recipe
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
        self.instances.unused()
        rules = tuple(self.init(recipe.init, scope))
        graph = freeze(root, self.report.diagnostics)
        if graph is None:
            return None
        if recipe.definitions:
            rules = (*starts(graph), *rules)
        sound = not any(d.severity == "error" for d in [*recipe.diagnostics, *self.report.diagnostics])
        plain = {name: binding.value for name, binding in values.items() if isinstance(binding, Bound)}
        origins = {name: binding.span for name, binding in values.items() if not isinstance(binding, Extent)}
        return Program(recipe, graph, recipe.inputs, plain, origins, tuple(positions), rules, losses, sound)

    def _losses(self, root: GraphBuilder, scope: Scope) -> dict[str, str]:
        """A node for each of the recipe's own losses, out of the sight of references; the name of each."""
        above = root.fresh("losses")
        found = {}
        for declared in self.recipe.losses:
            name = f"{above}.{declared.name}"
            node = self.report.attempt(lambda: self.node(name, declared.what, scope, root, declared.span, ""))  # noqa: B023
            if node is not None:
                node.read = True
                root.nodes[name] = node
                found[declared.name] = name
        return found

    def init(self, rules: Iterable[InitRule], scope: Scope) -> Iterable[tuple[str, str, float, Span]]:
        """How parameters start: each pattern with its initialiser and number."""
        for rule in rules:
            value = self._init_value(rule, scope)
            if value is not None:
                yield rule.pattern, rule.how, value, rule.span

    def _init_value(self, rule: InitRule, scope: Scope) -> float | None:
        written = rule.value
        value: float | None = self.report.attempt(lambda: as_float(self.values.evaluate(written.expression, scope), written.span))
        if value is not None and value < 0 and rule.how != "constant":
            wanted = {"normal": "a standard deviation", "uniform": "half a width"}[rule.how]
            self.report.error("out-of-range", written.span, f"{wanted} is at least 0, not {value:g}")
        return value

    def graph(self, holder: NodeBuilder | None, *, sealed: bool = False) -> GraphBuilder:
        graph = GraphBuilder(holder, sealed)
        if sealed:
            graph.inputs["input"] = GraphInput("input")
        self.all_graphs.append(graph)
        return graph

    def body(self, body: Body, graph: GraphBuilder, scope: Scope) -> None:
        above = "input"
        for declared in body.nodes:
            if declared.name in graph.inputs or declared.name in graph.nodes:
                self.report.error(
                    "name-taken",
                    declared.span,
                    f"`{declared.name}` is an input of this graph already",
                    hint="name the node differently",
                )
                continue
            inner = Scope(graph, scope.values, scope.outer, declared.name, scope.library)
            node = self.report.attempt(lambda: self.node(declared.name, declared.what, inner, graph, declared.span, above))  # noqa: B023
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

    def node(
        self, name: str, what: What | None, scope: Scope, home: GraphBuilder, name_span: Span, above: str, *, fed: bool = False
    ) -> NodeBuilder:
        """One node in the graph `home`; `fed` where what it is was written for a slot, whose first port its holder feeds."""
        if len(self.all_nodes) > NODES:
            hint = "passes that agree in all that they read count once"
            self.report.error("too-many-nodes", name_span, f"more than {NODES:,} nodes differ from one another", hint=hint)
            raise TooMuch
        self.depth += 1
        before, self.report.inside = self.report.inside, home
        try:
            if self.depth > DEPTH:
                self.report.error(
                    "too-deep",
                    name_span,
                    f"blocks stand more than {DEPTH} deep inside one another",
                    hint="does a block hold itself?",
                )
                raise Stop
            match what:
                case Choice():
                    return self._choice(name, what, scope, home, name_span, above, fed=fed)
                case Use():
                    return self._use(name, what, scope, home, name_span, above, fed=fed)
                case Group() | Scan():
                    return self._group(name, what, scope, home, name_span, above, fed=fed)
                case Repeat():
                    return self.repeats.repeat(name, what, scope, home, name_span, above, fed=fed)
            raise Stop  # it could not be read
        finally:
            self.depth -= 1
            self.report.inside = before

    def new(self, name: str, home: GraphBuilder, name_span: Span, span: Span) -> NodeBuilder:
        node = NodeBuilder(name, home, name_span, span)
        self.all_nodes.append(node)
        return node

    def _choice(
        self, name: str, what: Choice, scope: Scope, home: GraphBuilder, name_span: Span, above: str, *, fed: bool
    ) -> NodeBuilder:
        target, place = self.choose(what, scope)
        if target is None:
            node = self.new(name, home, name_span, what.span)
            node.edges["x"] = PendingEdge("x", (), Scope(home, {}), name_span, above)
            return node
        around = home.holder.part if home.holder is not None else None
        if around is not None and not isinstance(target, Part) and not is_defined(around):
            name_span = (
                target.type_span if isinstance(target, Use) else target.span
            )  # a slot's own text, not the expansion that uses it
        if isinstance(target, Part):
            return self.default(name, target, home, name_span, above)
        return self.node(
            name,
            target,
            Scope(place.graph, place.values, place.outer, place.inside or scope.inside, place.library),
            home,
            name_span,
            above,
            fed=fed or place is not scope,
        )

    def choose(self, what: Choice, scope: Scope) -> tuple[What | Part | None, Scope]:
        """What a block's name stands for, and the place where that was written; None for `none`."""
        expression = self.values.branch(what.expression, scope)
        if not isinstance(expression, Path) or len(expression.steps) != 1 or expression.steps[0].arguments is not None:
            self.report.error("slot-form", expression.span, "a block is wanted here", hint="name one, or write {type: …}")
            raise Stop
        name = expression.steps[0].name
        binding = scope.values.get(name)
        if isinstance(binding, Broken):
            raise Stop
        if isinstance(binding, Deferred):
            return self._held(binding, name, expression.span)
        if isinstance(binding, Bound):
            if not isinstance(binding.value, str):
                self.report.error(
                    "slot-form",
                    expression.span,
                    f"`{name}` is {binding.value}, not a block",
                    labels=(Label(binding.span, "set here"),),
                )
                raise Stop
            name = binding.value
        if name == "none":
            return None, scope
        library = scope.library or self.recipe.library
        if name not in library:
            known = [*library, *(key for key, value in scope.values.items() if isinstance(value, Deferred))]
            self.report.diagnostics.extend(unknown_block(expression.span, name, known, self.recipe.clashes))
            raise Stop
        part = library[name]
        missing = [field.name for field in fields(part).values() if field.required]
        if missing:
            self.report.diagnostics.append(missing_field(expression.span, name, missing))
            raise Stop
        return Use(part, expression.span, (), what.settings, what.span), scope

    def _held(self, binding: Deferred, name: str, span: Span) -> tuple[What | Part | None, Scope]:
        held = binding.holds
        if held is None:
            return None, binding.scope
        if isinstance(held, Part):
            return held, binding.scope
        if isinstance(held, SlotValue):
            what: What | None = held.what
        elif isinstance(held, Scalar | YamlMapping | Listing):
            what = self._parsed_what(held, binding.scope.library or self.recipe.library)
        else:
            self.report.error(
                "slot-form", span, f"`{name}` holds a value, not a block", labels=(Label(binding.span, "set here"),)
            )
            raise Stop
        if what is None:
            raise Stop
        if isinstance(what, Choice) and not isinstance(what.expression, Path | If):
            if isinstance(held, SlotValue):  # the name is a field of a block, and this is what is written for it
                self.report.error(
                    "slot-form", what.expression.span, "a block is wanted here", hint="name one, or write {type: …}"
                )
            else:
                self.report.error("slot-form", span, f"`{name}` holds no block", labels=(Label(binding.span, "set here"),))
            raise Stop
        if isinstance(what, Choice):
            self.depth += 1
            try:
                if self.depth > DEPTH:
                    message = f"more than {DEPTH} names lead from one to the next here"
                    self.report.error("too-deep", span, message, hint="does a block hold itself?")
                    raise Stop
                return self.choose(what, binding.scope)
            finally:
                self.depth -= 1
        return what, binding.scope

    def _parsed_what(self, node: Node, library: Library) -> What | None:
        key = (id(node), f"what {id(library)}")
        if key not in self.values.parsed:
            self.values.keep_alive.append(node)
            self.values.parsed[key] = Graphs(Reader(self.report.diagnostics), library).what(node)
        what: What | None = self.values.parsed[key]
        return what

    def default(self, name: str, part: Part, home: GraphBuilder, name_span: Span, above: str) -> NodeBuilder:
        """A node for a part that is the default of a slot."""
        node = self.new(name, home, name_span, name_span)
        node.part = type(part)
        node.fields = {key: Known(getattr(part, key), name_span) for key in type(part).model_fields}
        port = next(iter(ports(type(part))))
        node.edges[port] = PendingEdge(port, (), Scope(home, {}), name_span, above)
        return node

    def settle(
        self, node: NodeBuilder, settings: Settings, scope: Scope, above: str, known: Mapping[str, str] | None, *, fed: bool
    ) -> None:
        """Edges, ties, `when` and `trainable`, which every node may have."""
        home = Scope(node.home, {})
        first = next(iter(known), "") if known is not None else "input"
        for edge in settings.edges:
            port = edge.port or first
            if fed and port in ("input", first):
                self.report.error("fed-port", edge.key, "what a slot is given comes from its holder", hint="remove this edge")
            elif not port:
                self.report.error(
                    "no-input", edge.key, f"{node.part.kind if node.part else 'this'} takes no input", hint="remove this edge"
                )
            elif edge.references is None:
                node.edges[port] = PendingEdge(port, (), scope, edge.key, failed=True)
            elif len(edge.references) != 1 and (known is None or known.get(port) != "*"):
                self.report.error("one-value", edge.key, f"port {port} takes one value, {len(edge.references)} are written",
                           hint="merge them first: {type: add, in: […]} or {type: concat, in: […]}")  # fmt: skip
            else:
                node.edges[port] = PendingEdge(port, edge.references, scope, edge.key)
        if known is None and not node.edges:
            node.edges["input"] = PendingEdge("input", (), home, node.name_span, above)
        for port, mark in (known or {}).items():
            if port in node.edges or mark == "?":
                continue
            if port == first and mark == "":
                node.edges[port] = PendingEdge(port, (), home, node.name_span, above)
            else:
                node.broken = True
                if settings.misread:
                    continue
                whose = node.part.kind if node.part else node.name
                hint = f"in: {{{port}: …}}" if mark == "" else "in: [first, second]"
                self.report.error("missing-port", node.name_span, f"port {port} of {whose} is not connected", hint=hint)
        if settings.when is not None:
            node.dropped = not self.values.flag(settings.when, scope, settings.when.span)
        if settings.trainable is not None:
            node.trainable = self.values.flag(settings.trainable, scope, settings.trainable.span)
        if isinstance(settings.tie, tuple):
            node.ties_pending = [PendingTie(name, reference, scope, span) for name, span, reference in settings.tie]
        elif settings.tie is not None:
            node.ties_pending = [PendingTie("", settings.tie, scope, settings.tie.span)]

    def _use(
        self, name: str, what: Use, scope: Scope, home: GraphBuilder, name_span: Span, above: str, *, fed: bool
    ) -> NodeBuilder:
        if not is_node(what.part):
            self.report.error(
                "not-a-node", what.type_span, f"{what.part.kind} is no node of a graph", hint="it fills a slot of another block"
            )
            raise Stop
        node = self.new(name, home, name_span, what.span)
        node.part = what.part
        self.settle(node, what.settings, scope, above, ports(what.part), fed=fed)
        if what.part.counts and _sealed(home):
            message = f"{what.part.kind} needs positions, which the holder of this slot cannot hand on"
            hint = "write it as a node of its own, before or after the holder"
            self.report.error("slot-form", what.type_span, message, hint=hint)
            raise Stop
        if is_defined(what.part):
            node.broken = node.broken or any(entry.value is None for entry in what.fields)
            self.instances.write(node, what, scope)
            return node
        around = home.holder.part if home.holder is not None else None
        if node.dropped and scope.outer is None and around is not None and not is_defined(around):
            node.part = None  # a block's own expansion drops what changes no type, such as a scale by 1
            return node
        written = {entry.name: entry for entry in what.fields}
        if not what.part.graph:
            node.broken = node.broken or any(field.required and key not in written for key, field in fields(what.part).items())
            for entry in what.fields:
                if entry.value is None:
                    node.broken = True
                    continue
                if isinstance(entry.value, ExpressionValue) and isinstance(fields(what.part)[entry.name].form, EdgeName):
                    continue  # of a node, the only one: what a state becomes
                value = self.report.attempt(
                    partial(self.fields.field, entry.value, fields(what.part)[entry.name], what.part, scope, node)
                )
                if value is not None:
                    node.fields[entry.name] = value
                else:
                    node.broken = True
            for key, field in fields(what.part).items():
                if key not in node.fields and key not in written and isinstance(field.default, Part):
                    value = self.fields.default_slot(field, node, name_span)
                    if value is not None:
                        node.fields[key] = value
            if issubclass(what.part, State) and not node.broken and not node.dropped:
                self._renewal(node, written["next"], scope)
            return node
        inner = self.graph(node)
        node.graph = inner
        for port in ports(what.part):
            if port in node.edges:
                inner.inputs[port] = GraphInput(port)
        values: dict[str, Binding] = {}
        for key, field in fields(what.part).items():
            if key in written:
                values[key] = self._bind(written[key], field, what.part, scope)
            else:
                plain = not (field.default is None or isinstance(field.default, Part))
                values[key] = Bound(field.default, name_span) if plain else Deferred(field.default, scope, name_span)
        if not any(isinstance(value, Broken) for value in values.values()):
            self._reject_composite(what, values, node)
        self.body(expansion(what.part), inner, Scope(inner, values))
        return node

    def _renewal(self, state: NodeBuilder, entry: FieldEntry, scope: Scope) -> None:
        """The node of what a state becomes, beside it."""
        written = entry.value
        assert isinstance(written, ExpressionValue)
        if state.home.sealed:
            self.report.error("slot-form", state.name_span, "a state cannot fill a slot", hint="write it as a node of its own")
            raise Stop
        node = self.new(state.name + SUFFIX, state.home, written.span, state.span)
        node.part, node.read = Renewal, True
        node.fields["shape"] = state.fields["shape"]
        node.edges["next"] = PendingEdge("next", (written.expression,), scope, entry.key)
        state.home.nodes[node.name] = node

    def _reject_composite(self, what: Use, values: Mapping[str, Binding], node: NodeBuilder) -> None:
        plain: dict[str, Any] = {
            key: value.value if isinstance(value, Bound) else value.holds
            for key, value in values.items()
            if not isinstance(value, Broken | Extent)
        }
        try:
            what.part.model_construct(**plain).reject({}, frozenset(node.edges))
        except Reject as no:
            at = next((entry.value for entry in what.fields if entry.name == no.field), None)
            self.report.error(no.code or "rejected", at.span if at else what.type_span, no.message, hint=no.hint)

    def _bind(self, entry: FieldEntry, field: FieldSpec, part: type[Part], scope: Scope) -> Binding:
        """A field of a block of graphs, as a name inside its graph."""
        written = entry.value
        if written is None:
            return Broken(entry.key)
        if isinstance(written, SlotValue) and isinstance(written.what, Choice) and not field.nullable:
            choice = written.what
            chosen = self.report.attempt(lambda: self.choose(choice, scope))
            if chosen is None:
                return Broken(written.span)
            if chosen[0] is None:
                self.report.error("not-optional", written.span, f"the slot `{field.name}` cannot be empty")
                return Broken(written.span)
        if isinstance(written, SlotValue | MaskValue):
            return Deferred(written, scope, written.span)
        value = self.report.attempt(lambda: self.fields.field(written, field, part, scope, None))
        if isinstance(value, Known):
            return Deferred(None, scope, value.span) if value.value is None else Bound(value.value, value.span)
        return Broken(written.span) if value is None else Deferred(written, scope, written.span)

    def _group(
        self, name: str, what: Group | Scan, scope: Scope, home: GraphBuilder, name_span: Span, above: str, *, fed: bool
    ) -> NodeBuilder:
        node = self.new(name, home, name_span, what.span)
        self.settle(node, what.settings, scope, above, None, fed=False)
        if fed and what.settings.edges and any(edge.port in ("", "input") for edge in what.settings.edges):
            self.report.error(
                "fed-port",
                next(e.key for e in what.settings.edges if e.port in ("", "input")),
                "what a slot is given comes from its holder",
                hint="remove this edge",
            )
        if fed and "input" not in node.edges:
            node.edges = {"input": PendingEdge("input", (), Scope(home, {}), name_span, above), **node.edges}
        if isinstance(what, Scan):
            node.axis = (what.axis, what.axis_span)
        inner = self.graph(node)
        node.graph = inner
        for port in node.edges:
            inner.inputs[port] = GraphInput(port)
        self.body(what.body, inner, scope.within(inner))
        return node


def _sealed(graph: GraphBuilder) -> bool:
    """Whether a graph fills a slot of a block that computes by itself, at any depth."""
    place: GraphBuilder | None = graph
    while place is not None:
        if place.sealed:
            return True
        place = place.parent
    return False


def _keys(root: YamlMapping, name: str) -> Iterable[Scalar]:
    """The names under a key of the recipe."""
    value = root.get(name)
    return (entry.key for entry in value) if isinstance(value, YamlMapping) else ()
