"""What a block's name stands for: a type, or what a param, an `each` value or a field holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeGuard

from blocks.core import Library, Part, fields
from blocks.core.fields import formula_field
from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import Bound, Broken, Deferred, Listed, Scope
from composer.graph.passes.expand.evaluation import MAX_DEPTH, Evaluator
from composer.language.expressions.ast import Expression, If, PathStep, RefPath
from composer.language.recipe.ast import (
    BlockChoice,
    Conditional,
    ExpressionValue,
    MaskValue,
    NodeContent,
    NodeOptions,
    ParsedRecipe,
    SlotValue,
    UseDecl,
)
from composer.language.recipe.base_parser import BaseParser
from composer.language.recipe.graphs import GraphParser, fitting
from composer.language.unknown_names import missing_field, unknown_block
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar
from composer.memo import Memo


@dataclass(frozen=True, slots=True)
class ChosenBlock:
    """What a block's name stands for."""

    content: NodeContent | Part | None
    """None for `none`."""
    scope: Scope
    """The place where that is written."""
    options: tuple[tuple[NodeOptions, Scope], ...]
    """The options that are written at the names which led to it."""


class Choices:
    """Follows names of blocks."""

    def __init__(self, recipe: ParsedRecipe, values: Evaluator) -> None:
        self.recipe, self.values, self.report = recipe, values, values.report
        self.parsed: Memo[tuple[YamlNode, Library, frozenset[str]], tuple[NodeContent | None, tuple[Diagnostic, ...]]] = Memo()

    def choose(
        self,
        what: BlockChoice | Conditional,
        scope: Scope,
        depth: int = 0,
        options: tuple[tuple[NodeOptions, Scope], ...] = (),
    ) -> ChosenBlock:
        """Return what a block's name, or a choice between blocks, stands for. `depth` names have led to it, with some options.

        Raises:
            StopExpansion: where that is no block, which is reported.
        """
        options = (*options, (what.options, scope))
        if isinstance(what, Conditional):
            taken = self.values.boolean(what.condition.expression, scope, what.condition.span)
            branch, other = (what.then, what.otherwise) if taken else (what.otherwise, what.then)
            self._look_into(other, scope)
            if branch is None:
                raise StopExpansion
            return self.choose(branch, scope, depth, options) if _is_choice(branch) else ChosenBlock(branch, scope, options)
        expression = self.values.branch(what.expression, scope, partial(self._look_up, family=what.family))
        binding = self.values.held(expression, scope)
        if not isinstance(expression, RefPath) or len(expression.steps) != 1:
            self._no_block(scope, expression.span)
        if expression.steps[0].arguments is not None and binding is None:
            self._no_block(scope, expression.span)
        name = expression.steps[0].name
        match binding:
            case Broken():
                raise StopExpansion
            case Deferred():
                return self._held(binding, name, scope, expression.span, depth, options)
            case Bound(value=str() as word):
                name = word
            case Listed(span=span):
                self._no_block(scope, expression.span, f"`{name}` is a list, not a block; `{name}(0)` is its first item", span)
            case Bound(value=value, span=span):
                self._no_block(scope, expression.span, f"`{name}` is {value}, not a block", span)
        if name == "none":
            return ChosenBlock(None, scope, options)
        library = scope.library or self.recipe.library
        if name not in library:
            self.report.add(*self._unknown(name, expression.span, scope, library, what.family))
            raise StopExpansion
        part = library[name]
        missing = [field.name for field in fields(part).values() if field.required]
        if missing:
            self.report.add(missing_field(expression.span, name, dict.fromkeys(missing, "…")))
            raise StopExpansion
        return ChosenBlock(UseDecl(part, expression.span, (), NodeOptions(), what.span), scope, options)

    def _look_into(self, what: NodeContent | None, scope: Scope) -> None:
        """Report the names that nothing has, in what a condition does not choose."""
        lookup, library = self.values.lookup, scope.library or self.recipe.library
        match what:
            case BlockChoice(expression=expression, family=family):
                self._look_up(expression, scope, family)
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                lookup.values(condition.expression, scope)
                self._look_into(then, scope)
                self._look_into(otherwise, scope)
            case UseDecl(part=part, fields=written) if not formula_field(part):
                for entry in written:
                    match entry.value:
                        case SlotValue(what=inner):
                            self._look_into(inner, scope)
                        case MaskValue(expression=expression):
                            lookup.mask(expression, scope, library)
                        case ExpressionValue(expression=expression):
                            lookup.field(expression, scope, fields(part)[entry.name].form, part)

    def _look_up(self, expression: Expression, scope: Scope, family: type[Part] | None) -> None:
        """Report a name that no block has, in the branch of a conditional that is not taken."""
        match expression:
            case If(condition=condition, then=then, otherwise=otherwise):
                self.values.lookup.values(condition, scope)
                self._look_up(then, scope, family)
                self._look_up(otherwise, scope, family)
            case RefPath(steps=(PathStep(name=name, arguments=None),)) if name not in scope.values and name != "none":
                library = scope.library or self.recipe.library
                if name not in library:
                    self.report.once(*self._unknown(name, expression.span, scope, library, family))

    def _unknown(self, name: str, span: Span, scope: Scope, library: Library, family: type[Part] | None) -> list[Diagnostic]:
        known = [*library, *(key for key, value in scope.values.items() if isinstance(value, Deferred))]
        return unknown_block(span, name, known, self.recipe.ambiguous_blocks, fitting(library, family))

    def _held(
        self,
        binding: Deferred,
        name: str,
        scope: Scope,
        span: Span,
        depth: int,
        options: tuple[tuple[NodeOptions, Scope], ...],
    ) -> ChosenBlock:
        """Return what a name holds that is no plain value."""
        held = binding.holds
        match held:
            case None | Part():
                return ChosenBlock(held, binding.scope, options)
            case SlotValue():
                what: NodeContent | None = held.what
            case YamlScalar() | YamlMapping() | YamlList():
                what = self._parsed(held, binding.scope)
            case _:
                self._no_block(scope, span, f"`{name}` holds a value, not a block", binding.span)
        if what is None:
            raise StopExpansion
        if not _is_choice(what):
            return ChosenBlock(what, binding.scope, options)
        if isinstance(what, Conditional) or isinstance(what.expression, RefPath | If):
            if depth == MAX_DEPTH:
                message = f"more than {MAX_DEPTH} params refer to one another here"
                self.report.error("too-deep", scope.graph, span, message, hint="does a block contain itself?")
                raise StopExpansion
            return self.choose(what, binding.scope, depth + 1, options)
        if isinstance(held, SlotValue):  # the name is a field of a block, and this is what is written for it
            self._no_block(binding.scope, what.expression.span)
        self._no_block(scope, span, f"`{name}` is not a block", binding.span)

    def _parsed(self, node: YamlNode, scope: Scope) -> NodeContent | None:
        library, names = scope.library or self.recipe.library, frozenset(scope.values)

        def parse() -> tuple[NodeContent | None, tuple[Diagnostic, ...]]:
            reader = BaseParser([*self.report.diagnostics])
            content = GraphParser(reader, library, self.recipe.ambiguous_blocks, names).content(node)
            return content, tuple(reader.diagnostics[len(self.report.diagnostics) :])

        content, mistakes = self.parsed.get((node, library, names), parse)
        self.report.once(*mistakes)
        return content

    def _no_block(self, scope: Scope, span: Span, message: str = "", set_here: Span | None = None) -> NoReturn:
        """Report what is written where a block is expected, and raise."""
        if set_here is None:
            self.report.error("slot-form", scope.graph, span, "a block is expected here", hint="name one, or write {type: …}")
        else:
            self.report.error("slot-form", scope.graph, span, message, labels=(Label(set_here, "set here"),))
        raise StopExpansion


def _is_choice(what: NodeContent) -> TypeGuard[BlockChoice | Conditional]:
    """Return whether it is yet to be said which block something is."""
    return isinstance(what, BlockChoice | Conditional)
