"""Formulas: what each name in one is, which parts are known before the model runs, and the tree of the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from blocks.core.fields import formula_field
from blocks.core.formula import AppliedFunction, FormulaTree, KnownNumber, ReadValue
from blocks.core.matched_axes import ARROW
from blocks.formulas.functions import CALLABLE
from composer.diagnostics import Span
from composer.graph.ir import FormulaValue, Known, Pending
from composer.graph.passes.error_report import StopExpansion, labeled, text_of
from composer.graph.passes.expand.builders import NodeBuilder, PendingEdge, Scope, Site
from composer.graph.passes.expand.expansion import Expansion
from composer.graph.passes.expand.formula_names import FormulaNames, name_in
from composer.language.expressions.arithmetic import bounded, refuse_large
from composer.language.expressions.ast import Binary, Expression, If, Number, PathStep, RefPath, Slice, Unary
from composer.language.expressions.errors import refuse
from composer.language.expressions.evaluator import one_item
from composer.language.expressions.functions import CONSTANTS, FUNCTIONS, RealNumber
from composer.language.recipe.ast import (
    EdgeDecl,
    ExpressionValue,
    FieldEntry,
    ListValue,
    NamedTexts,
    UseDecl,
    WrittenValue,
)
from composer.language.unknown_names import unknown
from composer.language.wording import BOOLEANS, describe_operand, format_value

CHOICE = "where"
"""The function that chooses while the model runs."""
NO_VALUE = "a formula reads at least one node or input"


class FormulaReader:
    """Reads the formula of one node; its names become edges of the node, its numbers values of its own."""

    def __init__(self, expansion: Expansion, node: NodeBuilder, use: UseDecl, scope: Scope, site: Site) -> None:
        self.values, self.report, self.node, self.scope = expansion.values, expansion.report, node, scope
        self.rebound: dict[str, EdgeDecl] = {edge.port: edge for edge in use.options.edges}
        self.known = FormulaNames(expansion, scope, self.rebound)
        self.elsewhere = [edge for options, _, _ in site.given for edge in options.edges]
        """Edges at a name that stands for the node, where nothing says what the formula calls them."""
        self.names: dict[str, Expression] = {}
        """What the formula calls the values that it reads, each with the reference."""
        self.numbers: list[Known | Pending] = []
        self.named_numbers: dict[str, bool | RealNumber] = {}

    def read(self, written: Mapping[str, FieldEntry]) -> None:
        """Record the formula, its edges and the names of its axes in the node.

        Raises:
            ExpressionError, StopExpansion: where there is a mistake.
        """
        assert self.node.part is not None
        field = formula_field(self.node.part)
        entry = written.get(field)
        if entry is None or not isinstance(entry.value, ExpressionValue):
            self.node.broken = True
            return
        self.node.broken = True  # until all of it is read
        whole = entry.value.expression
        expression = self._decided(whole)
        if not self.known.reads(expression):
            self.known.check(expression)
            self._refuse("formula-constant", whole.span, NO_VALUE, "a number alone is a param")
        tree = self._tree(expression)
        for edge in (*self.rebound.values(), *self.elsewhere):
            if edge.port not in self.names or edge in self.elsewhere:
                known = self.names if edge not in self.elsewhere else {}
                self.report.add(unknown("unknown-port", edge.key, "value", edge.port, known, of="the formula"))
                raise StopExpansion
        axes = written.get("axes")
        if axes is not None:
            self.node.fields["axes"] = self._axes(axes.value)
        text = text_of(whole.span)
        named = tuple(self.named_numbers.items())
        self.node.fields[field] = FormulaValue(tree, tuple(self.numbers), tuple(self.names), text, whole.span, named)
        references = tuple(self.names.values())
        self.node.edges["xs"] = PendingEdge("xs", references, self.scope, whole.span, each_one=True)
        self.node.broken = False

    # -- the tree

    def _decided(self, expression: Expression) -> Expression:
        """Return a formula with its conditions decided that read no value of the model."""
        match expression:
            case If(condition=condition, then=then, otherwise=otherwise):
                condition = self._decided(condition)
                if self.known.reads(condition):
                    told = ", ".join(text_of(part.span) for part in (condition, then, otherwise))
                    message = "`if` decides before the model runs, and this condition is known only when it does"
                    self._refuse("not-a-value", condition.span, message, f"write where({told})")
                taken, skipped = (then, otherwise) if self._holds(condition) else (otherwise, then)
                self.known.check_skipped(skipped)
                return self._decided(taken)
            case Unary(operand=operand):
                return replace(expression, operand=self._decided(operand))
            case Binary(left=left, right=right):
                return replace(expression, left=self._decided(left), right=self._decided(right))
            case RefPath(steps=(PathStep(name=name, arguments=arguments) as step,)) if name in CALLABLE and arguments:
                if self.known.is_edge(expression):
                    return expression
                given = self._arguments(step, expression.span)
                if name == CHOICE and not self.known.reads(condition := self._decided(given[0])):
                    taken, skipped = given[1:] if self._holds(condition) else given[:0:-1]
                    self.known.check_skipped(skipped)
                    return self._decided(taken)
                return RefPath((replace(step, arguments=tuple(map(self._decided, given))),), expression.span)
        return expression

    def _holds(self, condition: Expression) -> bool:
        return self.values.boolean(self._folded(condition), self.scope, condition.span)

    def _tree(self, expression: Expression) -> FormulaTree:
        if not self.known.reads(expression):
            return self._constant(expression)
        match expression:
            case Unary(operator=operator, operand=operand):
                return AppliedFunction("not" if operator == "not" else "negative", (self._tree(operand),), expression.span)
            case Binary(operator="in" | "not in"):
                message = "`in` is decided before the model runs, and this is known only when it does"
                self._refuse("not-a-value", expression.span, message, "compare with each item: `x == a or x == b`")
            case Binary(operator=operator, left=left, right=right):
                return AppliedFunction(operator, (self._tree(left), self._tree(right)), expression.span)
            case RefPath() if self.known.is_edge(expression):
                return self._value(expression)
            case RefPath(steps=(step,)):
                return self._call(step, expression.span)
        raise AssertionError(f"{expression} reads no value")

    def _value(self, path: RefPath) -> ReadValue:
        """Return a value of the model, which becomes an edge."""
        if any(isinstance(argument, Slice) for step in path.steps for argument in step.arguments or ()):
            message = f"`{text_of(path.span)}` is a list of values, and a formula reads single ones"
            self._refuse(
                "one-value", path.span, message, "read one of them, such as `layers(-1)`, or merge them by a node before"
            )
        name = name_in(path)
        if name not in self.names:
            edge = self.rebound.get(name)
            references = (path,) if edge is None else edge.references
            if references is None:
                raise StopExpansion  # it could not be read, which has been reported
            if len(references) != 1:
                assert edge is not None
                self._refuse(
                    "one-value", edge.key, f"`{name}` is one value, not {len(references)}", "merge them by a node before"
                )
            self.names[name] = references[0] if edge is None else replace(references[0], span=references[0].span)
        return ReadValue(list(self.names).index(name), path.span)

    def _call(self, step: PathStep, span: Span) -> FormulaTree:
        row = CALLABLE.get(step.name)
        if row is None:
            if step.name in FUNCTIONS:
                message = f"`{step.name}` is a function of numbers, and this is a value that is known only when the model runs"
                self._refuse("not-a-value", span, message, "")
            self.known.no_function(step)
        given = self._arguments(step, span)
        arguments = [self._tree(argument) for argument in given]
        if step.name == "clamp" and any(self.known.reads(bound) for bound in given[1:]):
            low = AppliedFunction("max", (arguments[0], arguments[1]), span)
            return AppliedFunction("min", (low, arguments[2]), span)
        return AppliedFunction(step.name, tuple(arguments), span)

    def _arguments(self, step: PathStep, span: Span) -> list[Expression]:
        row, given = CALLABLE[step.name], step.arguments or ()
        if len(given) != len(row.takes):
            count = f"{len(given)} argument{'s' * (len(given) != 1)}"
            self._refuse("argument-count", span, f"`{step.name}` does not take {count}", f"write `{row.usage}`")
        for argument in given:
            if isinstance(argument, Slice):
                self._refuse("not-a-number", argument.span, "a range is not a number", "")
        return [argument for argument in given if not isinstance(argument, Slice)]

    # -- what is known before the model runs

    def _constant(self, expression: Expression) -> KnownNumber:
        """Return a part of the formula that reads no value of the model: its number, exact until it is used."""
        scope = self.scope
        self.known.check(expression)
        if self.values.is_sized(expression, scope):
            values, origins = self.values.plain(expression, scope)
            sizes = self.values.sizes(expression, scope)
            bindings = tuple(sorted({**values, **sizes}.items()))
            self.numbers.append(Pending(expression, bindings, expression.span, origins))
        else:
            value = self._plain(expression, self._folded(expression))
            if isinstance(expression, RefPath) and expression.steps[0].arguments is None:
                name = name_in(expression)
                if name not in CONSTANTS or name in scope.values:  # which everyone knows
                    self.named_numbers[name] = value
            self.numbers.append(Known(value, expression.span, self.values.plain(expression, scope)[1]))
        return KnownNumber(len(self.numbers) - 1, expression.span)

    def _plain(self, written: Expression, expression: Expression) -> bool | RealNumber:
        """Return what an expression comes to, which has to be a number."""
        value = self.values.evaluate(expression, self.scope)
        if isinstance(value, str) or not isinstance(value, bool | int | float | Fraction):
            message = f"{describe_operand(written, value)}, not a number"
            with labeled(self.values.plain(written, self.scope)[1]):
                refuse("not-a-number", message, written.span, hint=one_item(written, value))
        return value

    def _folded(self, expression: Expression) -> Expression:
        """Return an expression of numbers in which functions that only formulas have are carried out."""
        match expression:
            case Unary(operand=operand):
                return replace(expression, operand=self._folded(operand))
            case Binary(left=left, right=right):
                return replace(expression, left=self._folded(left), right=self._folded(right))
            case RefPath(steps=(PathStep(name=name, arguments=arguments) as step,)) if arguments is not None:
                folded = tuple(one if isinstance(one, Slice) else self._folded(one) for one in arguments)
                if name in CALLABLE and name not in FUNCTIONS:
                    return self._number(replace(step, arguments=folded), expression.span)
                return RefPath((replace(step, arguments=folded),), expression.span)
        return expression

    def _number(self, step: PathStep, span: Span) -> Expression:
        """Return the number that a function of formulas is of numbers."""
        given, function = self._arguments(step, span), CALLABLE[step.name].number
        assert function is not None, "a choice is decided, and arithmetic has the others"
        values = [self._plain(argument, argument) for argument in given]
        try:
            value = function(*values)
        except OverflowError:
            refuse_large(span)
        except (ValueError, ZeroDivisionError, TypeError):
            refuse("no-real-value", f"{step.name}({', '.join(map(format_value, values))}) has no real value", span)
        if isinstance(value, bool):
            word = next(word for word, meant in BOOLEANS.items() if meant is value)
            return RefPath((PathStep(word, None, span, span),), span)
        number = bounded(value, span)
        return Number(float(number) if isinstance(number, Fraction) else number, span)

    # -- axes

    def _axes(self, written: WrittenValue | None) -> Known:
        """Return the names of the axes of each value, in the order of the values."""
        if isinstance(written, ListValue):
            known = ", ".join(f"{name}: …" for name in self.names)
            self._refuse("value-form", written.span, "`axes` maps what a formula reads to names of axes", f"axes: {{{known}}}")
        if not isinstance(written, NamedTexts):
            raise StopExpansion  # it could not be read, which has been reported
        found = dict.fromkeys(self.names, "")
        result: tuple[str, ...] = ()
        for name, key, text in written.texts:
            names = text.text.split()
            if odd := next((axis for axis in names if not re.fullmatch(r"[A-Za-z_]\w*", axis)), None):
                self._refuse("axis-name", text.span, f"`{odd}` cannot be the name of an axis", "axes: {x: batch time dim}")
            if name == ARROW:
                result = (f"{ARROW} {' '.join(names)}",)
                continue
            if "".join(name.split()) not in self.names:
                known_here = [*self.names, ARROW]
                self.report.add(unknown("unknown-port", key, "value", name, known_here, of="the formula"))
                raise StopExpansion
            if clash := next((axis for axis in names if axis in self.names), None):
                message = f"`{clash}` is an axis here and a value in the formula"
                self._refuse("ambiguous-name", text.span, message, "rename the axis, whose name is used only here")
            found["".join(name.split())] = " ".join(names)
        return Known((*found.values(), *result), written.span)

    def _refuse(self, code: str, span: Span, message: str, hint: str) -> NoReturn:
        self.report.error(code, self.scope.graph, span, message, hint=hint)
        raise StopExpansion
