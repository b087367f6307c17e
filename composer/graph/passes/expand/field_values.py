"""A block's fields in one place: numbers, words, masks, and what fills slots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from blocks.core import Block, Builtin, Part, fields, is_node
from blocks.core.fields import (
    AxesForm,
    AxisFormula,
    AxisLength,
    AxisName,
    AxisOrAxes,
    Boolean,
    BooleanMap,
    EachAxis,
    ListOf,
    MapOf,
    OneOf,
    SlotOf,
    String,
)
from blocks.core.fields import Field as FieldSpec
from composer.diagnostics import Span
from composer.graph.ir import Entries, Items, Known, PartValue
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import Listed, NodeBuilder, Scope, Site
from composer.graph.passes.expand.expansion import Expansion, GraphWriter
from composer.graph.passes.expand.field_numbers import axis_formula, axis_length, field_number
from composer.graph.passes.expand.mask_expressions import MaskReader
from composer.language.expressions.ast import Expression, Number, PathStep, RefPath
from composer.language.expressions.errors import ExpressionError
from composer.language.recipe.ast import (
    BlockChoice,
    BoolsValue,
    Conditional,
    ExpressionValue,
    GraphBody,
    GroupDecl,
    ListValue,
    MapValue,
    MaskValue,
    NamedTexts,
    NodeContent,
    NodeDecl,
    NodeOptions,
    RepeatDecl,
    ScanDecl,
    SlotValue,
    TextValue,
    UseDecl,
    WrittenValue,
)


class Fields:
    """Reads what is written for fields."""

    def __init__(self, expansion: Expansion, writer: GraphWriter) -> None:
        self.expansion, self.writer, self.library = expansion, writer, expansion.library
        self.values, self.report = expansion.values, expansion.report

    def field(self, written: WrittenValue, field: FieldSpec, part: type[Part], scope: Scope, node: NodeBuilder | None) -> Any:
        """Return a field's value in one place.

        Raises:
            ExpressionError, StopExpansion: where there is none.
            TooMuch: where there are too many, which is reported.
        """
        form = field.form
        match written:
            case TextValue():
                return Known(None if field.nullable and written.text == "none" else written.text, written.span)
            case MaskValue():
                return MaskReader(self.library, self.values, node, field).mask(written.expression, scope)
            case SlotValue():
                return self._slot(written.what, written.span, form, scope, node, field)
            case ListValue():
                assert isinstance(form, ListOf | EachAxis | AxisOrAxes | AxesForm)
                self.expansion.count_values(len(written.items), scope.graph, written.span)
                inner = String() if isinstance(form, AxesForm) else form.item
                item = FieldSpec(field.name, inner, False, None, "", False)
                return Items(tuple(self.field(one, item, part, scope, node) for one in written.items), written.span)
            case MapValue():
                assert isinstance(form, MapOf)
                item = FieldSpec(field.name, form.item, False, None, "", False)
                return Entries(tuple((n, self.field(one, item, part, scope, node)) for n, one in written.entries), written.span)
            case NamedTexts():
                message = f"`{field.name}` is a list, with one text for each input in order"
                self.report.error("value-form", scope.graph, written.span, message, hint="axes: [batch time dim, dim]")
                raise StopExpansion
            case BoolsValue():
                flags = ((name, self.values.boolean(flag.expression, scope, flag.span)) for name, flag in written.flags)
                return Known(tuple(flags), written.span)
        assert isinstance(written, ExpressionValue)
        if isinstance(form, AxisFormula):
            return axis_formula(self.values, written.expression, scope, written.span)
        look_up = partial(self.values.lookup.field, form=form, part=part)
        expression, place = self.values.follow(written.expression, scope, look_up)
        if isinstance(expression, RefPath) and expression.text == "none":
            if not field.nullable:
                self.report.error("not-optional", scope.graph, written.span, f"`{field.name}` cannot be empty")
                raise StopExpansion
            return Known(None, written.span)
        if isinstance(form, ListOf) or (isinstance(form, EachAxis) and isinstance(self.values.held(expression, place), Listed)):
            return self._items(expression, form, field, part, place, written.span)
        match form:
            case OneOf(of=words):
                with _offering(part.other_choices.get(field.name, "")):
                    return Known(self.values.word(expression, place, words), written.span)
            case AxisLength():
                return axis_length(self.values, expression, place, part, field, written.span)
            case String() | AxisName():  # of a list, whose items are words
                return Known(str(self.values.evaluate(expression, place)), written.span)
            case Boolean() | BooleanMap():
                return Known(self.values.boolean(expression, place, written.span), written.span)
            case EachAxis(item=number, words=words):
                if (word := self._word(expression, place, words)) is not None:
                    return Known(word, written.span)
                return field_number(self.values, expression, place, number, part, field, written.span)
            case _:
                return field_number(self.values, expression, place, form, part, field, written.span)

    def _word(self, expression: Expression, scope: Scope, words: tuple[str, ...]) -> str | None:
        """Return the one of the words that is written, or that a param holds; None for a number."""
        if not isinstance(expression, RefPath):
            return None
        value = self.values.plain(expression, scope)[0].get(expression.text, expression.text)
        return str(value) if isinstance(value, str) and value in words else None

    def _items(
        self, expression: Expression, form: ListOf | EachAxis, field: FieldSpec, part: type[Part], scope: Scope, span: Span
    ) -> Items:
        """Return the items of a list that a param holds, each as if `name(index)` were written."""
        held = self.values.held(expression, scope)
        if not isinstance(held, Listed):
            self.report.error(
                "not-a-list", scope.graph, span, f"`{field.name}` must be a list", hint=f"{field.name}: [first, second]"
            )
            raise StopExpansion
        item = FieldSpec(field.name, form.item, False, None, "", False)
        path = expression.steps[0] if isinstance(expression, RefPath) else None
        assert path is not None
        written = (PathStep(path.name, (Number(index, span),), span, span) for index in range(len(held.items)))
        values = (ExpressionValue(RefPath((step,), span), span) for step in written)
        return Items(tuple(self.field(value, item, part, scope, None) for value in values), span)

    def _slot(self, what: NodeContent, span: Span, form: Any, scope: Scope, node: NodeBuilder | None, field: FieldSpec) -> Any:
        assert isinstance(form, SlotOf)
        place = scope
        target: NodeContent | Part | None = what
        given: tuple[tuple[NodeOptions, Scope], ...] = ()
        if isinstance(what, BlockChoice | Conditional):
            chosen = self.expansion.choices.choose(what, scope)
            target, place, given = chosen.content, chosen.scope, chosen.options
        if target is None:
            return self._nothing(field, scope, span)
        if isinstance(target, Part):
            return self.default_slot(FieldSpec(field.name, form, False, target, "", False), node, span)
        part = target.part if isinstance(target, UseDecl) else None
        if isinstance(target, RepeatDecl | ScanDecl):  # in a graph of its own, which the holder can call
            target = GroupDecl(GraphBody((NodeDecl(field.name, span, target),), (), span), NodeOptions(), span)
        if not _fits(part, form.family):
            self._refuse_family(part, target.type_span if isinstance(target, UseDecl) else span, form, scope, field)
        if is_node(form.family) or (part is not None and is_node(part)) or part is None:
            sealed = self.expansion.graph(node, sealed=True)
            inside = Scope(place.graph, place.values, place.outer, scope.inside, place.library)
            site = Site(field.name, sealed, span, "input", fed=True).with_options(given)
            filled = self.writer.node(target, inside, site)
            return self._nothing(field, scope, span) if filled.elided else filled
        assert isinstance(target, UseDecl)
        if any(options.edges or options.when or options.tie for options in (target.options, *(each for each, _ in given))):
            self.report.error(
                "slot-form",
                scope.graph,
                target.span,
                f"{part.kind} takes only its own fields in a slot",
                hint="remove `in`, `when` and `tie`",
            )
        values = tuple(self._part_fields(target, place, node))
        if any(value is None for _, value in values):
            raise StopExpansion
        return PartValue(part, values, target.span)

    def check_family(self, what: NodeContent, scope: Scope, field: FieldSpec) -> None:
        """Check that what is written for a slot is of its family, where another one says what it is.

        Raises:
            StopExpansion: if it is not, or a choice has a mistake, which is reported.
        """
        content = self.expansion.choices.choose(what, scope).content if isinstance(what, BlockChoice | Conditional) else what
        if isinstance(content, UseDecl) and isinstance(field.form, SlotOf) and not _fits(content.part, field.form.family):
            self._refuse_family(content.part, content.type_span, field.form, scope, field)

    def _refuse_family(self, part: type[Part] | None, at: Span, form: SlotOf, scope: Scope, field: FieldSpec) -> NoReturn:
        offered = ", ".join(sorted(self.library.of(form.family))[:8])
        hint = f"it takes {offered}" if offered else ""
        if part is not None and is_node(part) and is_node(form.family):
            hint += f"; {{graph: {{y: {part.kind}}}}} fills it too"
        message = f"{part.kind if part else 'a graph'} does not fill the slot `{field.name}`"
        self.report.error("slot-family", scope.graph, at, message, hint=hint)
        raise StopExpansion

    def _nothing(self, field: FieldSpec, scope: Scope, span: Span) -> Known:
        """Return the value of an empty slot, where it may be empty."""
        if field.nullable:
            return Known(None, span)
        self.report.error("not-optional", scope.graph, span, f"the slot `{field.name}` cannot be empty")
        raise StopExpansion

    def _part_fields(self, use: UseDecl, scope: Scope, node: NodeBuilder | None) -> Iterable[tuple[str, Any]]:
        """Yield the fields that are written, None for one with a mistake, and the slots that are not."""
        written = {entry.name: entry for entry in use.fields}
        for key, field in fields(use.part).items():
            if key in written:
                entry = written[key]
                value = entry.value
                yield key, value and self.report.attempt(scope.graph, partial(self.field, value, field, use.part, scope, node))
            elif isinstance(field.default, Part):
                value = self.default_slot(field, node, use.span)
                if value is not None:
                    yield key, value
            elif field.required:  # which has been reported
                yield key, None

    def default_slot(self, field: FieldSpec, node: NodeBuilder | None, span: Span) -> Any:
        default = field.default
        assert isinstance(default, Part)
        if isinstance(default, Builtin):
            return None
        if is_node(type(default)):
            return self.expansion.default(default, Site(field.name, self.expansion.graph(node, sealed=True), span, "input"))
        values = ((key, Known(getattr(default, key), span)) for key in type(default).model_fields)
        return PartValue(type(default), tuple(values), span)


def _fits(part: type[Part] | None, family: type[Part]) -> bool:
    """Return whether a part, or a graph where there is none, fills the slots of a family."""
    if part is None:
        return is_node(family) or issubclass(family, Block)
    if issubclass(part, family) or not is_node(part):
        return issubclass(part, family)
    return family is Block or (is_node(family) and issubclass(part, Block))  # which may be a norm or an activation of one's own


@contextmanager
def _offering(other: str) -> Iterator[None]:
    """Add what to write for a word that a field does not have to the hint of the error at one."""
    try:
        yield
    except ExpressionError as error:
        wrong = error.diagnostic
        if not other or wrong.code != "unknown-choice":
            raise
        raise ExpressionError(replace(wrong, hint="; ".join(filter(None, (wrong.hint, other))))) from None
