"""The fields of a block, computed once the lengths of its axes are known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from blocks.core import Block, BlockError, Formula, NodeRef, Part, fields
from blocks.core.fields import (
    AxesForm,
    AxisFormula,
    AxisLength,
    AxisOrAxes,
    BooleanMap,
    EachAxis,
    Field,
    ListOf,
    MapOf,
    Real,
    String,
)
from blocks.positions.positions import Positions
from composer.diagnostics import Diagnostic, Span
from composer.graph.dims import Symbolic
from composer.graph.ir import (
    AxisOf,
    BlockNode,
    Computations,
    Computed,
    EdgePort,
    Entries,
    FieldValue,
    FormulaValue,
    Items,
    Known,
    Node,
    PartValue,
    Pending,
    SlotNode,
)
from composer.graph.passes.error_report import StopExpansion, labeled
from composer.graph.passes.expand.evaluation import convert
from composer.graph.passes.infer.formula_text import formula_text
from composer.graph.passes.infer.type_errors import Surroundings
from composer.graph.type_patterns import Mismatch, declared, size
from composer.graph.types import Unknown
from composer.language.expressions.ast import NoValue, RefPath, Value
from composer.language.expressions.evaluator import as_int, evaluate
from composer.language.expressions.parser import ExpressionError, names


class Inline(Block):
    """A graph that fills a slot: to its holder, a block like any other."""


@dataclass(frozen=True, slots=True)
class FieldComputer:
    """Computes the fields of a node."""

    here: Surroundings

    def fields(self, node: BlockNode, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is written for the fields, and the defaults of the others but for those that are derived.

        Raises:
            ExpressionError, StopExpansion: where one has no value.
        """
        known, written = fields(node.part), dict(node.fields)
        axes = [name for value in written.values() if isinstance(value, Entries) for name, _ in value.entries]
        measured = self._measured(node)
        return {
            name: self._formula(value, axes, measured)
            if isinstance(field.form, AxisFormula) and isinstance(value := written.get(name), Pending)
            else self._value(written[name], field, {**sizes, **measured})
            if name in written
            else field.default
            for name, field in known.items()
            if name in written or not field.derived
        }

    def _measured(self, node: BlockNode) -> dict[str, str]:
        """Return the names of the axes whose lengths a block takes from an input of which it reads only the shape."""
        if not {wire.port for wire in node.wires} & set(node.part.shape_only_inputs):
            return {}
        known = fields(node.part)
        sized = {
            name for name, field in known.items() if isinstance(field.form, MapOf) and isinstance(field.form.item, AxisLength)
        }
        values = (value for name, value in node.fields if name in sized and isinstance(value, Entries))
        lengths = (length.expression for value in values for _, length in value.entries if isinstance(length, Pending))
        return {length.text: length.text for length in lengths if isinstance(length, RefPath)}

    def _value(self, value: FieldValue, field: Field, sizes: Mapping[str, Any]) -> Any:
        match value:
            case Known(value=bool() | EdgePort() as plain):
                return NodeRef(plain.port) if isinstance(plain, EdgePort) else plain
            case Known(value=plain) if isinstance(field.form, BooleanMap):
                return {**dict.fromkeys(field.form.names, bool(field.default)), **dict(plain)}
            case Known(value=plain):
                return plain
            case Pending(expression=RefPath() as name) if isinstance(field.form, AxisLength):
                found = self._bound(value.bindings, value.span, symbolic=True)
                return name.text if sizes.get(name.text) == name.text else found.get(name.text, name.text)
            case Pending():
                return self._number(value, field, sizes)
            case Items(items=items):
                assert isinstance(field.form, ListOf | EachAxis | AxisOrAxes | AxesForm)
                form = String() if isinstance(field.form, AxesForm) else field.form.item
                inner = Field(field.name, form, False, None, "", False)
                return tuple(self._value(item, inner, sizes) for item in items)
            case Entries(entries=entries):
                assert isinstance(field.form, MapOf)
                inner = Field(field.name, field.form.item, False, None, "", False)
                return {name: self._value(item, inner, sizes) for name, item in entries}
            case FormulaValue(tree=tree, numbers=numbers, names=called, text=text, named_numbers=named):
                values = (self._value(number, field, sizes) for number in numbers)
                known = tuple((name, formula_number(value)) for name, value in named)
                return Formula(tree, tuple(formula_number(value) for value in values), called, text, known)
            case SlotNode(node=filled):
                return _outside(filled)
            case PartValue():
                return self._part(value, sizes)

    def _part(self, value: PartValue, sizes: Mapping[str, Any]) -> Part:
        written = dict(value.fields)
        values = {
            name: self._value(written[name], field, sizes) if name in written else field.default
            for name, field in fields(value.part).items()
        }
        part = value.part.model_construct(**values)
        try:
            part.check(sizes, frozenset())
        except BlockError as error:
            at = written.get(error.field or "")
            span = at.span if at is not None else value.span
            self.here.report(Diagnostic(error.code or "rejected", error.message, span, hint=error.hint))
            raise StopExpansion from None
        return part.settled() if isinstance(part, Positions) else part

    # -- numbers

    def _formula(self, formula: Pending, axes: Collection[str], measured: Collection[str]) -> str:
        """Return a formula over axes with its numbers; the length of an axis that is known only when the model runs, or that is
        taken from an input, keeps its name.
        """
        with labeled(formula.origins):
            known = self._bound(formula.bindings, formula.span, symbolic=True)
            known = {name: value for name, value in known.items() if name not in measured}
            return formula_text(formula.expression, known, axes)

    def _number(self, pending: Pending, field: Field, sizes: Mapping[str, Any]) -> Any:
        """Return a number that needs the lengths of axes."""
        expression = pending.expression
        bound = self._bound(pending.bindings, expression.span)
        numbers: dict[str, Value] = {name: length for name, length in sizes.items() if isinstance(length, int)}
        for name in sorted(names(expression) - bound.keys() - numbers.keys()):
            if name in sizes:
                length = f"`{name}`" if str(sizes[name]) == name else f"`{name}` is {sizes[name]}, which"
                message = f"{length} is known only when the model runs"
                raise ExpressionError(Diagnostic("not-a-number", message, expression.span, hint="use a number or a param"))
        with labeled(pending.origins):
            form = field.form.item if isinstance(field.form, EachAxis) else field.form
            return convert(evaluate(expression, {**numbers, **bound}), form, field.name, pending.span, expression)

    def _bound(self, bindings: Iterable[tuple[str, Computed]], span: Span, *, symbolic: bool = False) -> dict[str, Value]:
        """Return what the names in a number come to, lengths of axes of the blocks around it included; with `symbolic`, without
        the lengths that are known only when the model runs.
        """
        found = {name: self._come_to(bound, span, symbolic=symbolic) for name, bound in bindings}
        return {name: value for name, value in found.items() if not isinstance(value, NoValue)}

    def _come_to(self, bound: Computed, span: Span, *, symbolic: bool = False) -> Value | NoValue:
        """Return what a name comes to; with `symbolic`, no value for a length that is known only when the model runs."""
        match bound:
            case AxisOf(part=part, name=axis):
                length = next(sizes.get(axis) for holder, sizes in reversed(self.here.extents) if holder is part)
                if isinstance(length, Unknown):
                    raise StopExpansion  # what the block is given has a mistake
                if isinstance(length, int):
                    return length
                if symbolic and length is not None:
                    return NoValue()
                message = f"`{axis}` is {'not given here' if length is None else 'known only when the model runs'}"
                raise ExpressionError(Diagnostic("not-a-number", message, span, hint="use a number or a param"))
            case Pending(expression=inner, bindings=more, span=place):
                return evaluate(inner, self._bound(more, place))
            case Computations(items=items):
                each = (self._come_to(item, span) for item in items)
                return tuple(NoValue() if isinstance(one, tuple) else one for one in each)
            case _:
                return bound

    def derive(self, node: BlockNode, field: Field, known: Mapping[str, Any]) -> Any:
        """Return the value of a field that is not written and follows from others.

        Raises:
            StopExpansion: where it does not, which is reported.
        """
        formula = declared(field.derived)
        unless = f"`{field.name}` of {node.part.kind} is {field.derived} by default, but"
        real = isinstance(field.form, Real)
        try:
            value: Any = evaluate(formula, plain(known)) if real else size(formula, known)
        except (KeyError, Mismatch, ExpressionError) as error:
            message = f"{unless} here that is not known: {error}"
            self.here.report(Diagnostic("derived", message, node.name_span, hint=f"write `{field.name}`"))
            raise StopExpansion from None
        if isinstance(value, Symbolic):
            axis = next(name for name in sorted(names(formula)) if isinstance(known.get(name), Symbolic))
            message = f"{unless} `{axis}` is `{known[axis]}`"
            hint = f"that is known only when the model runs: set `{field.name}`, or give the axis a number"
            self.here.report(Diagnostic("derived", message, node.name_span, hint=hint))
            raise StopExpansion
        return float(value) if real else as_int(value, node.name_span)


def formula_number(value: Any) -> bool | int | float:
    """Return a number of a formula as it is when the model runs: an int where it is whole and no float, and fits one of torch."""
    if isinstance(value, bool):
        return value
    whole = value.denominator == 1 if isinstance(value, Fraction) else isinstance(value, int)
    return int(value) if whole and abs(value) < 2**63 else float(value)


def plain(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an expression can reckon with."""
    return {name: value for name, value in known.items() if isinstance(value, int | float | str)}


def _outside(node: Node) -> Part:
    """Return what fills a slot, as its holder's field sees it."""
    if not isinstance(node, BlockNode):
        return Inline()
    return node.part.model_construct(**{name: value.value for name, value in node.fields if isinstance(value, Known)})
