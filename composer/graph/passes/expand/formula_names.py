"""What the names in a formula are: edges, numbers in scope or functions."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import NoReturn

from blocks.core import is_node
from blocks.formulas.functions import CALLABLE
from composer.diagnostics import Diagnostic, Label
from composer.graph.passes.error_report import StopExpansion, text_of
from composer.graph.passes.expand.builders import Extent, Scope
from composer.graph.passes.expand.expansion import Expansion
from composer.graph.passes.expand.name_lookup import has_node
from composer.language.expressions.ast import Binary, Expression, If, PathStep, RefPath, Slice, Unary
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.functions import CONSTANTS, FUNCTIONS
from composer.language.expressions.parser import compared_words, names, paths
from composer.language.other_names import OTHER_NAMES, plain
from composer.language.recipe.ast import RepeatDecl
from composer.language.unknown_names import unknown
from composer.language.wording import BOOLEANS


class FormulaNames:
    """The names in sight of one formula."""

    def __init__(self, expansion: Expansion, scope: Scope, rebound: Container[str]) -> None:
        self.scope, self.report = scope, expansion.report
        self.library = scope.library or expansion.library
        every = {name for item in expansion.recipe.inputs for axis in item.type.axes for name in names(axis)}
        self.axes = every - expansion.params.keys()
        """The axes of the model's inputs that have no number."""
        self.rebound = rebound
        """The names of which `in` says what they read."""

    def reads(self, expression: Expression | Slice | None) -> bool:
        """Return whether an expression reads a value that is known only when the model runs."""
        match expression:
            case RefPath(steps=steps):
                if self.is_edge(expression):
                    return True
                return any(self.reads(argument) for step in steps for argument in step.arguments or ())
            case Unary(operand=operand):
                return self.reads(operand)
            case Binary(left=left, right=right):
                return self.reads(left) or self.reads(right)
            case If(condition=condition, then=then, otherwise=otherwise):
                return self.reads(condition) or self.reads(then) or self.reads(otherwise)
        return False

    def is_edge(self, path: RefPath) -> bool:
        """Return whether a path names a node or an input.

        Raises:
            StopExpansion: where it may also be something else.
        """
        first = path.steps[0]
        if name_in(path) in self.rebound:
            return True
        if len(path.steps) > 1:
            return True
        if first.arguments is not None:
            return self._is_pass(first)
        if first.name in BOOLEANS:
            return False
        named, value = self._names_node(first.name), self.scope.values.get(first.name)
        if named and value is not None:
            message = f"`{first.name}` is a node or an input and a number"
            hint = f"rename one of them, or say which is meant: in: {{{first.name}: {first.name}}}"
            labels = (Label(value.span, "the number is set here"),) if not isinstance(value, Extent) else ()
            self.report.error("ambiguous-name", self.scope.graph, path.span, message, hint=hint, labels=labels)
            raise StopExpansion
        return named

    def _is_pass(self, step: PathStep) -> bool:
        """Return whether a name with brackets is a node; a function has the name otherwise."""
        if step.name not in CALLABLE and step.name not in FUNCTIONS:
            return self._names_node(step.name)
        if isinstance(self._declared(step.name), RepeatDecl):
            message = f"`{step.name}` is a repeat and a function"
            self.report.error("ambiguous-name", self.scope.graph, step.span, message, hint="rename the repeat")
            raise StopExpansion
        return False

    def _names_node(self, name: str) -> bool:
        return has_node(name, self.scope)

    def _declared(self, name: str) -> object:
        return next((place.graph.declared[name] for place in self.scope.around() if name in place.graph.declared), None)

    def check(self, expression: Expression) -> None:
        """Report names that nothing has, which may be meant to be those of nodes."""
        for path in paths(expression):
            self._check_first(path)

    def _check_first(self, path: RefPath) -> None:
        step = path.steps[0]
        if step.name in self.scope.values:
            return
        if step.arguments is not None:
            if step.name not in CALLABLE and step.name not in FUNCTIONS:
                self.no_function(step)
        elif step.name in CALLABLE:
            hint = f"call it: `{CALLABLE[step.name].usage}`"
            self.report.error("not-a-value", self.scope.graph, path.span, f"`{step.name}` is a function", hint=hint)
            raise StopExpansion
        elif step.name not in BOOLEANS and (step.name not in CONSTANTS or step.name in self.axes):
            self._no_value(path)

    def check_skipped(self, expression: Expression) -> None:
        """Report names that nothing has, in the branch of a conditional that is not taken."""
        words = [word for word, _ in compared_words(expression, self.scope.values)]
        for path in paths(expression):
            if path not in words and name_in(path) not in self.rebound and not self._names_node(path.steps[0].name):
                self._check_first(path)

    def no_function(self, step: PathStep) -> NoReturn:
        """Refuse a call of what is no function, and tell the block that is called so."""
        found = unknown("unknown-name", step.name_span, "function", step.name, CALLABLE)
        raise ExpressionError(replace(found, hint=self._block_hint(step.name) or found.hint))

    def _no_value(self, path: RefPath) -> NoReturn:
        name = path.steps[0].name
        if name in self.axes:
            message = f"`{name}` is an axis, which is no number here"
            hint = "its length is known only when the model runs: `mean` divides by it, and `arange` counts along it"
            raise ExpressionError(Diagnostic("not-a-number", message, path.span, hint=hint))
        nodes = [name for place in self.scope.around() for name in [*place.graph.declared, *place.graph.inputs]]
        known = [node for node in [*nodes, *self.scope.values] if node != self.scope.inside]
        found = unknown("unknown-name", path.span, "node, input or number", name, known)
        raise ExpressionError(replace(found, hint=self._block_hint(name) or found.hint))

    def _block_hint(self, name: str) -> str:
        """Return what to do with the block that has a name, here or elsewhere."""
        kinds = (name, *OTHER_NAMES.get(plain(name), ()))
        kind = next((kind for kind in kinds if kind in self.library and is_node(self.library[kind])), "compute")
        if kind == "compute":  # which is what a formula is
            return ""
        return f"`{kind}` is a block: compute it in a node, `{{type: {kind}, …}}`, and read that"


def name_in(path: RefPath) -> str:
    """Return a path as it is written, without spaces: what a formula calls a value."""
    return "".join(text_of(path.span).split())
