"""What a block's name stands for: a type, or what a param, an `each` value or a field holds."""

from __future__ import annotations

from typing import NoReturn

from blocks.core import Library, Part, fields
from composer.diagnostics import Label, Span
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import Bound, Broken, Deferred, Scope
from composer.graph.passes.expand.evaluation import MAX_DEPTH, Evaluator
from composer.language.expressions.ast import If, RefPath
from composer.language.recipe.ast import BlockChoice, NodeContent, ParsedRecipe, SlotValue, UseDecl
from composer.language.recipe.base_parser import BaseParser
from composer.language.recipe.graphs import GraphParser
from composer.language.unknown_names import missing_field, unknown_block
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar
from composer.memo import Memo


class Choices:
    """Follows names of blocks."""

    def __init__(self, recipe: ParsedRecipe, values: Evaluator) -> None:
        self.recipe, self.values, self.report = recipe, values, values.report
        self.parsed: Memo[tuple[YamlNode, Library], NodeContent | None] = Memo()

    def choose(self, what: BlockChoice, scope: Scope, depth: int = 0) -> tuple[NodeContent | Part | None, Scope]:
        """Return what a block's name stands for, and the place where that was written; None for `none`. `depth` names
        have led to it.
        """
        expression = self.values.branch(what.expression, scope)
        if not isinstance(expression, RefPath) or len(expression.steps) != 1 or expression.steps[0].arguments is not None:
            self._no_block(scope, expression.span)
        name = expression.steps[0].name
        match scope.values.get(name):
            case Broken():
                raise StopExpansion
            case Deferred() as binding:
                return self._held(binding, name, scope, expression.span, depth)
            case Bound(value=str() as word):
                name = word
            case Bound(value=value, span=span):
                self._no_block(scope, expression.span, f"`{name}` is {value}, not a block", span)
        if name == "none":
            return None, scope
        library = scope.library or self.recipe.library
        if name not in library:
            known = [*library, *(key for key, value in scope.values.items() if isinstance(value, Deferred))]
            self.report.diagnostics.extend(unknown_block(expression.span, name, known, self.recipe.ambiguous_blocks))
            raise StopExpansion
        part = library[name]
        missing = [field.name for field in fields(part).values() if field.required]
        if missing:
            self.report.diagnostics.append(missing_field(expression.span, name, missing))
            raise StopExpansion
        return UseDecl(part, expression.span, (), what.options, what.span), scope

    def _held(
        self, binding: Deferred, name: str, scope: Scope, span: Span, depth: int
    ) -> tuple[NodeContent | Part | None, Scope]:
        """Return what a name holds that is no plain value."""
        held = binding.holds
        match held:
            case None | Part():
                return held, binding.scope
            case SlotValue():
                what: NodeContent | None = held.what
            case YamlScalar() | YamlMapping() | YamlList():
                what = self._parsed(held, binding.scope.library or self.recipe.library)
            case _:
                self._no_block(scope, span, f"`{name}` holds a value, not a block", binding.span)
        if what is None:
            raise StopExpansion
        if not isinstance(what, BlockChoice):
            return what, binding.scope
        if isinstance(what.expression, RefPath | If):
            if depth == MAX_DEPTH:
                message = f"more than {MAX_DEPTH} params refer to one another here"
                self.report.error("too-deep", scope.graph, span, message, hint="does a block contain itself?")
                raise StopExpansion
            return self.choose(what, binding.scope, depth + 1)
        if isinstance(held, SlotValue):  # the name is a field of a block, and this is what is written for it
            self._no_block(binding.scope, what.expression.span)
        self._no_block(scope, span, f"`{name}` is not a block", binding.span)

    def _parsed(self, node: YamlNode, library: Library) -> NodeContent | None:
        return self.parsed.get((node, library), lambda: GraphParser(BaseParser(self.report.diagnostics), library).content(node))

    def _no_block(self, scope: Scope, span: Span, message: str = "", set_here: Span | None = None) -> NoReturn:
        """Report what is written where a block is expected, and raise."""
        if set_here is None:
            self.report.error("slot-form", scope.graph, span, "a block is expected here", hint="name one, or write {type: …}")
        else:
            self.report.error("slot-form", scope.graph, span, message, labels=(Label(set_here, "set here"),))
        raise StopExpansion
