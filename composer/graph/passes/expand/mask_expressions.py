"""Mask expressions as parts."""

from __future__ import annotations

from typing import Any

from blocks.core import Library, Part, fields, is_node
from blocks.core.fields import Field as FieldSpec
from blocks.core.fields import NodeName, NumberOrNodeRef
from blocks.masks.mask import Mask
from blocks.masks.operators import NEUTRAL, And, Not, Or
from composer.diagnostics import Label
from composer.graph.ir import EdgePort, FieldValue, Known, PartValue
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import Bound, Broken, Deferred, Listed, NodeBuilder, PendingEdge, Scope
from composer.graph.passes.expand.evaluation import MAX_DEPTH, Evaluator
from composer.graph.passes.expand.field_numbers import field_number
from composer.language.expressions.ast import Binary, Expression, RefPath, Slice, Unary
from composer.language.expressions.functions import FUNCTIONS
from composer.language.recipe.ast import (
    MaskValue,
)
from composer.language.unknown_names import unknown
from composer.language.yaml.nodes import YamlScalar

MAX_PREDICATES = 1_000
"""Of one mask, those of the masks that it names included."""


class MaskReader:
    """Reads the mask of one field; the nodes that it names become edges of the block that holds it."""

    def __init__(self, library: Library, values: Evaluator, node: NodeBuilder | None, field: FieldSpec) -> None:
        self.library, self.values, self.report, self.node, self.field = library, values, values.report, node, field
        self.predicates = 0
        """How many there are so far."""

    def mask(self, expression: Expression, scope: Scope, depth: int = 0) -> PartValue | Known:
        """Return a mask expression as parts; `depth` names have led to it."""
        expression = self.values.branch(expression, scope, self._look_up)
        match expression:
            case Binary(operator="and" | "or" as operator, left=left, right=right):
                part = And if operator == "and" else Or
                sides = self.mask(left, scope, depth), self.mask(right, scope, depth)
                return PartValue(part, tuple(zip(part.model_fields, sides, strict=True)), expression.span)
            case Unary(operator="not", operand=operand):
                return PartValue(Not, ((next(iter(Not.model_fields)), self.mask(operand, scope, depth)),), expression.span)
            case RefPath(steps=(step,)):
                return self._predicate(expression, step, scope, depth)
        self.report.error(
            "mask-form",
            scope.graph,
            expression.span,
            "a mask consists of predicates, joined by `and`, `or` and `not`",
            hint="such as causal and window(1024)",
        )
        raise StopExpansion

    def _look_up(self, expression: Expression, scope: Scope) -> None:
        self.values.lookup.mask(expression, scope, self.library)

    def _predicate(self, path: RefPath, step: Any, scope: Scope, depth: int) -> PartValue | Known:
        self.predicates += 1
        if self.predicates > MAX_PREDICATES:
            self.report.error("too-many-nodes", scope.graph, path.span, f"a mask has at most {MAX_PREDICATES:,} predicates")
            raise StopExpansion
        binding = scope.values.get(step.name)
        if isinstance(binding, Broken):
            raise StopExpansion
        item = isinstance(binding, Listed) and step.arguments is not None
        held = self.values.held(path, scope) if item or step.arguments is None else None
        if isinstance(held, Deferred):
            return self._held_mask(held, path, scope, depth)
        if isinstance(held, Listed):
            message = f"`{step.name}` is a list, not a mask; `{step.name}(0)` is its first item"
            self.report.error("mask-form", scope.graph, path.span, message, labels=(Label(held.span, "set here"),))
            raise StopExpansion
        name = step.name
        if isinstance(held, Bound) and isinstance(held.value, str):
            name = held.value
        known = self.library.of(Mask)
        if name == "none":
            self.report.error(
                "not-optional",
                scope.graph,
                path.span,
                f"`{self.field.name}` cannot be empty",
                hint="use `full` to let every query see every key",
            )
            raise StopExpansion
        if name not in known:
            self.report.add(unknown("unknown-mask", step.name_span, "mask", name, known))
            raise StopExpansion
        part = known[name]
        parameters = list(fields(part).values())
        arguments = () if item else step.arguments or ()
        if len(arguments) > len(parameters) or any(f.required for f in parameters[len(arguments) :]):
            shape = f"{name}({', '.join(f.name for f in parameters)})" if parameters else name
            self.report.error(
                "mask-arguments",
                scope.graph,
                path.span,
                f"{name} takes {len(parameters)} argument{'s' * (len(parameters) != 1)}, not {len(arguments)}",
                hint=f"write {shape}",
            )
            raise StopExpansion
        pairs = zip(parameters, arguments, strict=False)
        values = tuple((f.name, self._mask_argument(f, argument, part, scope)) for f, argument in pairs)
        if any(isinstance(value, Known) and value.value is None for _, value in values):
            return PartValue(NEUTRAL, (), path.span)  # without the input that it reads, a mask allows every pair
        return PartValue(part, values, path.span)

    def _held_mask(self, binding: Deferred, path: RefPath, scope: Scope, depth: int) -> PartValue | Known:
        held = binding.holds
        expression = held.expression if isinstance(held, MaskValue) else None
        if isinstance(held, YamlScalar):
            expression = self.values.parsed_scalar(held)
            if expression is None:
                raise StopExpansion  # it cannot be read, which has been reported
        if expression is not None:
            if depth == MAX_DEPTH:
                message = f"more than {MAX_DEPTH} params refer to one another here"
                self.report.error("too-deep", scope.graph, path.span, message, hint="does a mask contain itself?")
                raise StopExpansion
            return self.mask(expression, binding.scope, depth + 1)
        if isinstance(held, Part) and not is_node(type(held)):
            return PartValue(
                type(held), tuple((key, Known(getattr(held, key), path.span)) for key in type(held).model_fields), path.span
            )
        self.report.error(
            "mask-form", scope.graph, path.span, f"`{path.text}` is not a mask", labels=(Label(binding.span, "set here"),)
        )
        raise StopExpansion

    def _mask_argument(self, field: FieldSpec, argument: Any, part: type[Part], scope: Scope) -> FieldValue:
        form = field.form
        if isinstance(argument, Slice):
            self.report.error("mask-arguments", scope.graph, argument.span, f"a range cannot be an argument of {part.kind}")
            raise StopExpansion
        expression = self.values.branch(argument, scope)
        if isinstance(form, NumberOrNodeRef):
            is_number = (
                not isinstance(expression, RefPath)
                or expression.steps[0].name in scope.values
                or expression.steps[0].name in FUNCTIONS
            )
            form = form.number if is_number else NodeName()
        if not isinstance(form, NodeName):
            found, place = self.values.follow(expression, scope, self.values.lookup.values)
            return field_number(self.values, found, place, form, part, field, argument.span)
        if isinstance(expression, RefPath) and (expression.text == "none" or scope.lacks(expression.steps[0].name)):
            return Known(None, argument.span)
        if not isinstance(expression, RefPath):
            self.report.error("mask-edge", scope.graph, argument.span, f"{part.kind} takes a node or an input, not a number")
            raise StopExpansion
        if self.node is None:
            self.report.error("mask-edge", scope.graph, argument.span, "a mask that names a node cannot be used here")
            raise StopExpansion
        base = f"{part.kind}_{'_'.join(step.name for step in expression.steps)}"
        port, count = base, 1
        while port in self.node.edges and self.node.edges[port].references != (expression,):
            count += 1
            port = f"{base}_{count}"
        self.node.edges[port] = PendingEdge(port, (expression,), scope, argument.span)
        return Known(EdgePort(port), argument.span)
