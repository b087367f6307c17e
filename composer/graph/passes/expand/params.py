"""Hyperparameters: each default worked out after those that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from operator import gt, lt

from composer.diagnostics import Diagnostic, Label, Source, Span
from composer.graph.passes.error_report import UNUSED_PARAM, StopExpansion
from composer.graph.passes.expand.builders import Binding, Bound, Broken, Deferred, Listed, Scope
from composer.graph.passes.expand.evaluation import Evaluator
from composer.language.expressions.ast import ChoiceWord, Expression, RefPath, Value
from composer.language.expressions.evaluator import as_int, as_real, evaluate_word
from composer.language.expressions.parser import ExpressionError, names
from composer.language.recipe.ast import ExpressionValue, Param, ParamType
from composer.language.recipe.free_names import CONTEXT, names_read
from composer.language.recipe.param_types import type_of_default, type_of_value
from composer.language.wording import BOOLEANS, describe_value
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar


class Params:
    """The params of a recipe, or of a block in one."""

    def __init__(self, params: Sequence[Param], values: Evaluator) -> None:
        self.params, self.values, self.report = params, values, values.report

    def bind(self, scope: Scope, values: dict[str, Binding], given: Mapping[str, tuple[YamlNode, Scope]] | None = None) -> None:
        """Bind each param in `values`: to what is given, read where that is written, else to its default, read in `scope`."""
        given = given or {}
        for param in self._in_order(given.keys(), scope):
            try:
                if param.name in given:
                    values[param.name] = self._given(param, *given[param.name], scope)
                else:
                    values[param.name] = self._value(param, scope)
            except (ExpressionError, StopExpansion) as error:
                self.report.take(scope.graph, error)
        for param in self.params:  # once all are there, since a bound may be another param
            try:
                self._within_bounds(param, values[param.name], scope)
            except (ExpressionError, StopExpansion) as error:
                self.report.take(scope.graph, error)
                values[param.name] = Broken(param.span)

    def _given(self, param: Param, node: YamlNode, place: Scope, scope: Scope) -> Binding:
        """Return a param's value in one use of its block; a short param takes what is of the type of its default."""
        kind, listed = (param.type, param.listed) if param.type else self._type_of_default(param, scope)
        return self._value(replace(param, type=kind, listed=listed, default=node), place, itself=False)

    def _type_of_default(self, param: Param, scope: Scope) -> tuple[ParamType | None, bool]:
        """Return the type that a short param has by its default, and whether it is a list."""
        expression = self._param_expression(param)
        if expression is not None and (kind := type_of_default(expression, scope.values)):
            return kind, False
        bound = self._value(param, scope) if param.default is not None else None
        if not isinstance(bound, Listed):
            return (type_of_value(bound.value) if isinstance(bound, Bound) else None), False
        first = bound.items[0] if bound.items else None
        return (type_of_value(first.value) if isinstance(first, Bound) else None), True

    def _in_order(self, given: Set[str], scope: Scope) -> list[Param]:
        """Return the params, each after those that its default names; without those of a cycle, which is reported."""
        declared = {param.name: param for param in self.params}
        needs = {
            name: self._needs(param, declared.keys()) if name not in given or param.type is None else []
            for name, param in declared.items()
        }
        while True:
            try:
                return [declared[name] for name in TopologicalSorter(needs).static_order()]
            except CycleError as error:
                path = error.args[1][::-1]  # each names the next
                start = path.index(min(path[:-1], key=list(declared).index))
                path = [*path[start:-1], *path[: start + 1]]
                self.report.error(
                    "param-cycle", scope.graph, declared[path[0]].span, f"params depend on each other: {' → '.join(path)}"
                )
                for name in path:
                    needs.pop(name, None)
                needs = {name: [other for other in others if other in needs] for name, others in needs.items()}

    def _needs(self, param: Param, known: Set[str]) -> list[str]:
        items = param.default.items if isinstance(param.default, YamlList) else (param.default,)
        several = isinstance(param.default, YamlList)
        expressions = [self._param_expression(replace(param, default=item) if several else param) for item in items]
        found = [names(expression) for expression in expressions if not _is_its_own_word(param, expression)]
        return sorted(frozenset().union(*found) & known)

    def _param_expression(self, param: Param) -> Expression | None:
        if param.type in ("block", "mask") or not isinstance(param.default, YamlScalar):
            return None
        return self.values.parsed_scalar(param.default)

    def _value(self, param: Param, scope: Scope, *, itself: bool = True) -> Binding:
        """Return a param's value, read in `scope`: that of its declaration (`itself`), or of the use that gives it."""
        if not param.listed:
            return self._param(param, self._param_expression(param), scope, itself=itself)
        if isinstance(param.default, YamlList):
            return self._list(param, param.default, scope, itself=itself)
        if isinstance(param.default, YamlScalar) and (expression := self.values.parsed_scalar(param.default)) is not None:
            taken = self.values.branch(expression, scope)
            held = self.values.held(taken, scope)
            if isinstance(held, Broken):
                raise StopExpansion
            if isinstance(held, Listed):
                self._same_type(param, held, scope)
                return held
        elif param.default is None:
            return self._param(param, None, scope)
        self.report.error(
            "not-a-list", scope.graph, param.default.span, f"`{param.name}` takes a list", hint=f"{param.name}: [first, second]"
        )
        raise StopExpansion

    def _list(self, param: Param, node: YamlList, scope: Scope, *, itself: bool) -> Listed:
        """Return a list, with what is wrong in each of its items reported."""
        items: list[Binding] = []
        for written in node.items:
            item = replace(param, default=written, listed=False)
            read = partial(self._param, item, self._param_expression(item), scope, itself=itself)
            held = self.report.attempt(scope.graph, read) or Broken(written.span)
            if isinstance(held, Listed):
                hint = f"one item of it is `{written.text}(0)`" if isinstance(written, YamlScalar) else ""
                self.report.error("param-form", scope.graph, written.span, "an item of a list is a single value", hint=hint)
                raise StopExpansion
            items.append(held)
        found = Listed(tuple(items), node.span)
        self._same_type(param, found, scope)
        return found

    def _same_type(self, param: Param, items: Listed, scope: Scope) -> None:
        """Check that the items of a list are of the type of the param, or of one where it has none."""
        kinds = [(type_of_value(item.value), item) for item in items.items if isinstance(item, Bound)]
        wanted = {"int": "float", "choice": "str"}.get(param.type or "", param.type) or next((kind for kind, _ in kinds), None)
        for kind, item in kinds:
            if kind != wanted:
                first = next((each for each, _ in kinds if each == wanted), None)
                message = f"the items of a list are of one type, and {describe_value(item.value)}"
                labels = (Label(kinds[0][1].span, f"{describe_value(kinds[0][1].value)}"),) if first else ()
                self.report.error("param-form", scope.graph, item.span, message, labels=labels)
                raise StopExpansion

    def _param(self, param: Param, expression: Expression | None, scope: Scope, *, itself: bool = True) -> Binding:
        """Return a single value."""
        if param.type in ("block", "mask"):
            return Deferred(param.default, scope, param.default.span if param.default else param.span)
        if param.default is None:
            self.report.error(
                "missing-param", scope.graph, param.span, f"`{param.name}` has no value", hint=f"set it: --set {param.name}=…"
            )
            raise StopExpansion
        if not isinstance(param.default, YamlScalar):
            if not itself:  # which is reported where it is declared
                message = f"`{param.name}` takes a single value"
                self.report.error("param-form", scope.graph, param.default.span, message)
            raise StopExpansion
        if expression is None:
            raise StopExpansion
        span = param.default.span
        if itself and _is_its_own_word(param, expression):
            return Bound(_word(param, evaluate_word(expression, {}, param.of or (param.name,))), span)
        if param.type in ("str", "choice"):
            return Bound(_word(param, self.values.word(expression, scope, param.of or (param.default.text,))), span)
        if (
            param.type is None
            and isinstance(expression, RefPath)
            and len(expression.steps) == 1
            and expression.steps[0].arguments is None
        ):
            name = expression.steps[0].name
            if name in BOOLEANS:
                return Bound(BOOLEANS[name], span)
            if name in scope.values:
                return scope.values[name]
            return Bound(name, span)
        if param.type == "bool":
            return Bound(self.values.boolean(expression, scope, span), span)
        if self.values.is_sized(expression, scope):  # known once sizes are
            return Deferred(ExpressionValue(expression, span), scope, span)
        return Bound(self.values.evaluate_as(partial(_typed, param), expression, scope, span), span)

    def _within_bounds(self, param: Param, binding: Binding, scope: Scope) -> None:
        if isinstance(binding, Listed):
            for item in binding.items:
                self._within_bounds(param, item, scope)
        if not isinstance(binding, Bound) or isinstance(binding.value, bool | str):
            return
        for bound, wrong, words in ((param.minimum, lt, "at least"), (param.maximum, gt, "at most")):
            if bound is None:
                continue
            limit = self.values.evaluate_as(as_real, bound.expression, scope, bound.span)
            if wrong(binding.value, limit):
                what = f"an item of {param.name}" if param.listed else param.name
                message = f"{what} must be {words} {limit}, not {binding.value}"
                labels = (Label(bound.span, "declared here"),)
                self.report.error("out-of-range", scope.graph, binding.span, message, labels=labels)
                raise StopExpansion

    def unused(self, root: YamlMapping, own: Source) -> None:
        """Report the params that nothing under `root` reads: an error in the recipe `own`, else a warning."""
        if not self.params:
            return
        read = names_read(root)
        for param in self.params:
            if param.name not in read and param.name != CONTEXT:
                found = Diagnostic(UNUSED_PARAM, f"nothing uses `{param.name}`", param.span)
                if param.span.source == own:
                    found = replace(found, hint="remove it, or use it in the graph")
                else:  # what extends its recipe has taken the place of what used it
                    found = replace(found, severity="warning")
                self.report.add(found)


def _is_its_own_word(param: Param, expression: Expression | None) -> bool:
    """Return whether a default is a word that the param happens to be called: `{gelu: gelu}`."""
    return param.type in (None, "str", "choice") and isinstance(expression, RefPath) and expression.text == param.name


def _word(param: Param, word: str) -> str:
    """Return the word that a param is, with the others where it has a choice of them."""
    return ChoiceWord(word, param.of) if param.of else word


def _typed(param: Param, value: Value, span: Span) -> Value:
    """Return the value as the param's type wants it."""
    match param.type:
        case "int":
            return as_int(value, span)
        case "float":
            return as_real(value, span)
    return value
