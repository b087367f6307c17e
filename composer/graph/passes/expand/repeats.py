"""Repeats: one graph for all passes that see the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.ir import GraphInput
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import (
    Binding,
    Bound,
    Broken,
    Deferred,
    GraphBuilder,
    Listed,
    NamesSoFar,
    NodeBuilder,
    PassBuilder,
    Scope,
    Site,
)
from composer.graph.passes.expand.expansion import Expansion, GraphWriter
from composer.graph.passes.expand.node_options import apply_options
from composer.language.expressions.ast import Binary, Expression, RefPath, Unary
from composer.language.expressions.evaluator import as_int
from composer.language.expressions.functions import FUNCTIONS
from composer.language.expressions.parser import names
from composer.language.recipe.ast import (
    RepeatDecl,
)
from composer.language.recipe.free_names import identifiers
from composer.language.recipe.keys import VALUE_WORDS
from composer.language.wording import BOOLEANS, counted
from composer.language.yaml.nodes import YamlList, YamlNode, YamlScalar
from composer.memo import IdentityKey, Memo

MAX_PASSES = 4_000
"""Passes of one repeat."""
MAX_ALL_PASSES = 100_000
"""Passes of all repeats."""
MAX_EACH_VALUES = 40_000
"""Values of `each`, over all passes of all repeats."""
MAX_TOTAL_NODES = 1_000_000
"""Nodes of the model, every pass counted."""


class Repeats:
    """Works out the passes of repeats."""

    def __init__(self, expansion: Expansion, writer: GraphWriter) -> None:
        self.expansion, self.writer, self.library = expansion, writer, expansion.library
        self.values, self.report = expansion.values, expansion.report
        self.free: Memo[IdentityKey[Any], frozenset[str]] = Memo()
        self.sizes: Memo[NodeBuilder, int] = Memo()
        self.passes = 0
        """Passes so far."""
        self.count = 0
        """Values of `each` so far."""
        self.differing = 0
        """Nodes so far of passes that differ from the first of their repeat."""

    def repeat(self, what: RepeatDecl, scope: Scope, site: Site) -> NodeBuilder:
        """Return the node of a repeat."""
        node = self.expansion.new(site, what.span)
        apply_options(node, what.options, scope, site, self.values)
        node.passes, node.index = [], what.index
        self.report.inside(node, lambda: self._write(node, what, scope))
        return node

    def _write(self, node: NodeBuilder, what: RepeatDecl, scope: Scope) -> None:
        """Write the passes of a repeat; of one that is left out a single one, however many it would have."""
        assert node.passes is not None
        count = 1 if node.absent else self._count(what, scope)
        if what.share is not None and self.values.boolean(what.share.expression, scope, what.share.span):
            node.share = what.share.span
        self._passes(node, node.passes, what, scope, count)
        read = self._free(what.body) | {key for _, _, value in what.each for key in self._free(value)}
        for name, span, _ in what.each:
            if name not in read:
                message = f"nothing in the repeat reads `{name}`"
                self.report.add(Diagnostic("unused-value", message, span, "warning"))
        self._within_limit(self.size(node), what, scope, count)

    def _count(self, what: RepeatDecl, scope: Scope) -> int:
        """Return the number of passes.

        Raises:
            StopExpansion, TooMuch: where there are none, or too many, which is reported.
        """
        count = self.values.evaluate_as(as_int, what.count.expression, scope, what.count.span)
        if not 1 <= count <= MAX_PASSES:
            message = f"a repeat has 1 to {MAX_PASSES:,} passes, not {count}"
            set_here = self.values.set_here(what.count.expression, scope)
            self.report.error("passes", scope.graph, what.count.span, message, labels=set_here)
            raise StopExpansion
        self.passes += count
        if self.passes > MAX_ALL_PASSES:
            self._too_much(what, scope, f"the repeats have more than {MAX_ALL_PASSES:,} passes")
        self.count += count * len(what.each)
        if self.count > MAX_EACH_VALUES:
            self._too_much(what, scope, f"the repeats have more than {MAX_EACH_VALUES:,} `each` values")
        return count

    def _within_limit(self, nodes: int, what: RepeatDecl, scope: Scope, count: int) -> None:
        if nodes > MAX_TOTAL_NODES:
            self._too_much(what, scope, f"with {count:,} passes the model has more than {MAX_TOTAL_NODES:,} nodes")

    def _too_much(self, what: RepeatDecl, scope: Scope, message: str, hint: str = "") -> NoReturn:
        set_here = self.values.set_here(what.count.expression, scope)
        self.report.too_much(scope.graph, what.count.span, message, hint=hint, labels=set_here)

    def _passes(self, node: NodeBuilder, passes: list[PassBuilder], what: RepeatDecl, scope: Scope, count: int) -> None:
        """Write the passes out, those that see the same as one graph: what is later read of one is then an output of all."""
        shared: dict[Any, GraphBuilder] = {}
        body, ordinal = self._free(what.body), {what.index, node.name}
        total = 1
        for index in range(count):
            counted: dict[str, Binding] = {what.index: Bound(index, what.index_span)}
            values: dict[str, Binding] = {}
            table = {name: [(0, binding)] for name, binding in counted.items()}
            for number, (name, span, written) in enumerate(what.each, 1):
                place = replace(scope, values=NamesSoFar(scope.values, table, number))
                values[name] = self._each(written, index, count, place, span) or Broken(span)
                table.setdefault(name, []).append((number, values[name]))
            key = self._key(values, body, ordinal, index)
            plain = tuple((name, binding.value) for name, binding in values.items() if isinstance(binding, Bound))
            known = shared.get(key)
            graph = known or self.expansion.graph(node, passes=count)
            passes.append(PassBuilder(graph, plain))
            if known is None:
                shared[key] = graph
                graph.pass_index = index
                graph.inputs |= {port: GraphInput(port) for port in node.fed}
                graph.absent |= node.unfed
                inside = scope.with_values(counted).within(graph, values)
                if len(shared) == 1:
                    self.writer.body(what.body, graph, inside)
                else:
                    self._differing_pass(what, graph, scope, inside)
            if index == 0 and not what.each and not body & ordinal:
                passes += [PassBuilder(graph, ()) for _ in range(count - 1)]  # which all are the same
                return
            total += self._graph_size(graph)
            self._within_limit(total, what, scope, count)

    def _differing_pass(self, what: RepeatDecl, graph: GraphBuilder, scope: Scope, inside: Scope) -> None:
        """Write a pass that differs from the first of a repeat, which stands in `scope`."""
        outermost, before = graph.differing is None, self.writer.written
        graph.differing = graph.differing or (what, scope)
        self.writer.body(what.body, graph, inside)
        if outermost:
            self.differing += self.writer.written - before

    def refuse_differing(self, repeat: tuple[RepeatDecl, Scope], most: int) -> NoReturn:
        """Report that there are more than so many nodes, at a repeat whose passes differ.

        Raises:
            TooMuch: always.
        """
        message = f"the passes of this repeat differ, and with them the model has more than {most:,} different nodes"
        self._too_much(*repeat, message, hint="passes with equal values count once")

    def size(self, node: NodeBuilder) -> int:
        """Return the number of nodes below a node, itself, every pass and those with a mistake counted."""
        return self.sizes.get(node, lambda: self._whole_size(node))

    def _whole_size(self, node: NodeBuilder) -> int:
        below = 0
        if node.passes is not None:
            graphs = Counter([one.graph for one in node.passes])
            below += sum([count * self._graph_size(graph) for graph, count in graphs.items()])
        if node.graph is not None:
            below += self._graph_size(node.graph)
        filled = [value for value in node.fields.values() if isinstance(value, NodeBuilder)]
        return 1 + below + sum(map(self.size, filled))

    def _graph_size(self, graph: GraphBuilder) -> int:
        return sum(map(self.size, graph.nodes.values())) + len(graph.failed)

    def _each(self, node: YamlNode, index: int, count: int, scope: Scope, span: Span) -> Binding | None:
        """Return the value of one `each` name in one of `count` passes: of a list that is written, or that a param holds, the
        item of this pass.
        """
        found = self._in_pass(node, index, scope)
        if not isinstance(found, Listed) or isinstance(node, YamlList):
            return found
        if len(found.items) != count:
            passes = f"each of the {count} passes" if count > 1 else "the only pass"
            message = f"a list has one item for {passes}; this one has {counted(len(found.items), 'item')}"
            hint = "written in square brackets under `each`, its items are cycled"
            if index == 0:
                self.report.error(
                    "each-items", scope.graph, node.span, message, labels=(Label(found.span, "set here"),), hint=hint
                )
            return None
        return found.items[index]

    def _in_pass(self, node: YamlNode, index: int, scope: Scope) -> Binding | None:
        """Return the value of one `each` name in one pass: plain where it can be, else what the field reads."""
        if isinstance(node, YamlList):
            if not node.items:
                self.report.error("empty-list", scope.graph, node.span, "a list of `each` values needs at least one")
                return None
            node = node.items[index % len(node.items)]
        if not isinstance(node, YamlScalar):
            return Deferred(node, scope, node.span)
        expression = self.values.parsed_scalar(node)
        if expression is None:
            return None
        skipped: list[Expression] = []
        taken = self.report.attempt(
            scope.graph, lambda: self.values.branch(expression, scope, lambda other, _: skipped.append(other))
        )
        if isinstance(taken, RefPath) and isinstance(scope.values.get(taken.steps[0].name), Listed):
            return self.report.attempt(scope.graph, lambda: self.values.held(taken, scope))
        if isinstance(taken, RefPath) and not (len(taken.steps) == 1 and taken.steps[0].name in BOOLEANS):
            name = taken.steps[0].name
            if len(taken.steps) == 1 and taken.steps[0].arguments is None:
                return scope.values.get(name) or Deferred(node, scope, node.span)
            if name not in FUNCTIONS and (name in self.library or len(taken.steps) == 1):  # a mask, perhaps misspelled
                return Deferred(node, scope, node.span)
        if taken is None:
            return None
        if any(name in self.library and name not in scope.values for name in _combined(taken)):
            return Deferred(node, scope, node.span)  # a mask, such as `causal and window(8)`
        if any(name not in scope.values and name not in VALUE_WORDS for other in skipped for name in names(other)):
            return Deferred(node, scope, node.span)  # a word of the field that reads it, or none at all
        value = self.report.attempt(scope.graph, lambda: self.values.evaluate(taken, scope))
        return None if value is None else Bound(value, node.span)

    def _key(self, values: Mapping[str, Binding], body: frozenset[str], counted: set[str], index: int) -> Any:
        """Return what a pass is made of: the values that its body reads, by themselves or in what is read later; and which
        pass it is, where a name is read by which that is `counted`: that of the index, or of the repeat, whose earlier
        passes it may see.
        """
        read, waiting = set(body), [*(body & values.keys())]
        while waiting:
            binding = values[waiting.pop()]
            for item in binding.items if isinstance(binding, Listed) else (binding,):
                more = self._free(item.holds) - read if isinstance(item, Deferred) else frozenset()
                read |= more
                waiting += more & values.keys()
        return tuple(_key(values[each]) for each in sorted(values.keys() & read)), index if counted & read else None

    def _free(self, what: Any) -> frozenset[str]:
        """Return the names that a piece of a recipe may read."""
        return self.free.get(IdentityKey(what), lambda: identifiers([what]))


def _combined(expression: Expression) -> Iterator[str]:
    """Yield the names that `and`, `or` and `not` combine, which may be masks: what is compared is none."""
    match expression:
        case RefPath(steps=(step, *_)) if step.name not in FUNCTIONS:
            yield step.name
        case Unary(operator="not", operand=operand):
            yield from _combined(operand)
        case Binary(operator="and" | "or", left=left, right=right):
            yield from _combined(left)
            yield from _combined(right)


def _key(binding: Binding) -> Any:
    match binding:
        case Bound(value=value):
            return "value", type(value), value
        case Deferred(holds=holds):
            return "deferred", IdentityKey(holds)
        case Listed(items=items):
            return "list", tuple(map(_key, items))
    return ("broken",)
