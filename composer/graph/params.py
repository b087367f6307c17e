"""Hyperparameters: each default worked out after those that it names."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from operator import gt, lt

from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.report import Stop
from composer.graph.scope import Binding, Bound, Deferred, Scope
from composer.graph.values import IDENTIFIER, Values
from composer.language.document import Listing, Node, Scalar
from composer.language.document import Mapping as YamlMapping
from composer.language.evaluate import as_float, as_int, evaluate_word
from composer.language.express import ExpressionError, names
from composer.language.expression import Expression, Path, Value
from composer.language.recipe import (
    Param,
    Recipe,
)

CONTEXT = "context"
"""A param that may stand without use: the length that the model is meant for, at which costs are given."""


class Params:
    """The params of one recipe."""

    def __init__(self, recipe: Recipe, values: Values) -> None:
        self.recipe, self.values, self.report = recipe, values, values.report

    def settle(self, scope: Scope, values: dict[str, Binding]) -> None:
        declared = {param.name: param for param in self.recipe.params}
        expressions = {name: self._param_expression(param) for name, param in declared.items()}
        for name in self._order(declared, expressions):
            try:
                values[name] = self._param(declared[name], expressions[name], scope)
            except (ExpressionError, Stop) as error:
                self.report.take(error)

    def _order(self, declared: Mapping[str, Param], expressions: Mapping[str, Expression | None]) -> list[str]:
        """The params, each after those that its default names; without those of a cycle, which is reported."""
        needs = {
            name: [
                other
                for other in sorted(names(expressions[name]))
                if other in declared and not self._is_word(expressions[name], name)
            ]
            for name in declared
        }
        while True:
            try:
                return list(TopologicalSorter(needs).static_order())
            except CycleError as error:
                path = error.args[1][::-1]  # each names the next
                start = path.index(min(path[:-1], key=list(declared).index))
                path = [*path[start:-1], *path[: start + 1]]
                self.report.error("param-cycle", declared[path[0]].span, f"params that need each other: {' → '.join(path)}")
                for name in path:
                    needs.pop(name, None)
                needs = {name: [other for other in others if other in needs] for name, others in needs.items()}

    def _is_word(self, expression: Expression | None, name: str) -> bool:
        return isinstance(expression, Path) and expression.text == name

    def _param_expression(self, param: Param) -> Expression | None:
        if param.type in ("block", "mask") or not isinstance(param.default, Scalar):
            return None
        return self.values.parsed_scalar(param.default)

    def _param(self, param: Param, expression: Expression | None, scope: Scope) -> Binding:
        if param.type in ("block", "mask"):
            return Deferred(param.default, scope, param.default.span if param.default else param.span)
        if param.default is None:
            self.report.error("missing-param", param.span, f"`{param.name}` has no value", hint=f"set it: --set {param.name}=…")
            raise Stop
        if not isinstance(param.default, Scalar):
            self.report.error(
                "value-form",
                param.default.span,
                f"`{param.name}` is one value",
                hint="a list that changes from pass to pass stands under `each` of a repeat"
                if isinstance(param.default, Listing)
                else "a block is written in the long form: {type: block, default: …}",
            )
            raise Stop
        if expression is None:
            raise Stop
        span = param.default.span
        if param.type in ("word", "choice"):
            return Bound(
                evaluate_word(expression, self.values.plain(expression, scope)[0], param.of or (param.default.text,)), span
            )
        if (
            param.type is None
            and isinstance(expression, Path)
            and len(expression.steps) == 1
            and expression.steps[0].arguments is None
        ):
            name = expression.steps[0].name
            if name in ("true", "false"):
                return Bound(name == "true", span)
            if name in scope.values:
                return scope.values[name]
            return Bound(name, span)
        if param.type == "flag":
            return Bound(self.values.flag(expression, scope, span), span)
        return Bound(self._typed(self.values.evaluate(expression, scope), param, scope, span), span)

    def _typed(self, value: Value, param: Param, scope: Scope, span: Span) -> Value:
        if param.type == "int":
            value = as_int(value, span)
        elif param.type == "float":
            value = as_float(value, span)
        elif param.type == "number" and (isinstance(value, bool | str)):
            as_float(value, span)
        for bound, wrong, words in ((param.minimum, lt, "at least"), (param.maximum, gt, "at most")):
            if bound is not None and not isinstance(value, bool | str):
                limit = self.values.evaluate(bound.expression, scope)
                if wrong(value, limit):
                    self.report.error(
                        "out-of-range",
                        span,
                        f"{param.name} is {words} {limit}, not {value}",
                        labels=(Label(bound.span, "declared here"),),
                    )
                    raise Stop
        return value

    def unused(self) -> None:
        used: set[str] = set()
        stack: list[tuple[Node, bool]] = [(self.recipe.root, True)]
        while stack:
            node, top = stack.pop()
            if isinstance(node, YamlMapping):
                stack.extend(
                    (entry.value, False) for entry in node if not (top and entry.key.text in ("doc", "source", "recipe"))
                )
            elif isinstance(node, Listing):
                stack.extend((item, False) for item in node.items)
            else:
                used.update(IDENTIFIER.findall(node.text))
        for param in self.recipe.params:
            if param.name not in used and param.name != CONTEXT:
                message = f"nothing uses `{param.name}`"
                if param.span.source == self.recipe.name_scalar.span.source:
                    self.report.error("unused-param", param.span, message, hint="remove it, or use it in the graph")
                else:  # what extends its recipe has taken the place of what used it
                    self.report.diagnostics.append(Diagnostic("unused-param", message, param.span, "warning"))
