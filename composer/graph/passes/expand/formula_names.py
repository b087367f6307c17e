"""What the names in a formula are: edges, numbers in scope or functions."""

from __future__ import annotations

from collections.abc import Container

from blocks.formulas.functions import CALLABLE
from composer.diagnostics import Label
from composer.graph.passes.error_report import ErrorReport, StopExpansion, text_of
from composer.graph.passes.expand.builders import Extent, Scope
from composer.language.expressions.ast import Binary, Expression, If, PathStep, RefPath, Slice, Unary
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.functions import FUNCTIONS
from composer.language.recipe.ast import RepeatDecl
from composer.language.unknown_names import unknown
from composer.language.wording import BOOLEANS


class FormulaNames:
    """The names in sight of one formula."""

    def __init__(self, scope: Scope, report: ErrorReport, rebound: Container[str]) -> None:
        self.scope, self.report = scope, report
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
        graphs = [place.graph for place in self.scope.around()]
        return name == "input" or any(
            graph.names(name) or name in graph.declared or name in graph.failed or name in graph.absent for graph in graphs
        )

    def _declared(self, name: str) -> object:
        return next((place.graph.declared[name] for place in self.scope.around() if name in place.graph.declared), None)

    def check(self, expression: Expression) -> None:
        """Report names that nothing has, which may be meant to be those of nodes."""
        for path in paths_alone(expression):
            name = path.steps[0].name
            if name not in self.scope.values and name in CALLABLE:
                hint = f"call it: `{CALLABLE[name].usage}`"
                self.report.error("not-a-value", self.scope.graph, path.span, f"`{name}` is a function", hint=hint)
                raise StopExpansion
            if name not in self.scope.values and name not in BOOLEANS:
                nodes = [name for place in self.scope.around() for name in [*place.graph.declared, *place.graph.inputs]]
                known = [node for node in [*nodes, *self.scope.values] if node != self.scope.inside]
                raise ExpressionError(unknown("unknown-name", path.span, "node, input or number", name, known))


def name_in(path: RefPath) -> str:
    """Return a path as it is written, without spaces: what a formula calls a value."""
    return "".join(text_of(path.span).split())


def paths_alone(expression: Expression) -> list[RefPath]:
    """Return the paths of an expression without brackets."""
    match expression:
        case RefPath(steps=(PathStep(arguments=None),)):
            return [expression]
        case RefPath(steps=steps):
            given = [one for step in steps for one in step.arguments or () if not isinstance(one, Slice)]
            return [path for one in given for path in paths_alone(one)]
        case Unary(operand=operand):
            return paths_alone(operand)
        case Binary(left=left, right=right):
            return [*paths_alone(left), *paths_alone(right)]
        case If(condition=condition, then=then, otherwise=otherwise):
            return [*paths_alone(condition), *paths_alone(then), *paths_alone(otherwise)]
    return []
