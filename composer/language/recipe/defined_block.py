"""Blocks that a recipe defines, as parts like any other."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from blocks.core import Block, Part
from blocks.core.fields import Boolean, Field, FieldForm, Integer, ListOf, OneOf, Real, SlotOf, String
from blocks.masks.mask import Mask
from composer.language.expressions.evaluator import evaluate
from composer.language.expressions.parser import names
from composer.language.recipe.ast import ExpressionValue, InputDecl, Param


class DefinedBlock(Block):
    """A block whose graph stands in a recipe."""

    whole_recipe: ClassVar[bool] = False
    """Whether it is a whole recipe, of which what only its losses read is left out."""


def define_block(
    name: str, doc: str, params: Sequence[Param], inputs: Sequence[InputDecl], outputs: Sequence[str]
) -> type[DefinedBlock]:
    """Return the part that a definition is: its params are fields, its inputs are ports."""
    part = types.new_class(name, (DefinedBlock,), exec_body=lambda body: body.update(__doc__=doc, __module__=__name__))
    assert issubclass(part, DefinedBlock)
    part.kind = name
    part.declared = {
        param.name: Field(param.name, _form(param), param.required, None, "", nullable=not param.required) for param in params
    }
    part.inputs = {item.name + "?" * item.optional: item.type.text for item in inputs}
    part.outputs = dict.fromkeys(outputs or ("y",), "float[...]")  # what they are follows from its graph
    return part


def _form(param: Param) -> FieldForm:
    """Return what a param accepts; bounds that are more than numbers hold where the block stands."""
    if param.listed:
        return ListOf(_form(replace(param, listed=False)))
    least, most = _number(param.minimum), _number(param.maximum)
    match param.type:
        case "block":
            return SlotOf(Block)
        case "mask":
            return SlotOf(Mask)
        case "bool":
            return Boolean()
        case "str":
            return String()
        case "choice":
            return OneOf(param.of)
        case "int":
            return Integer(least, most)
    return Real(least, most)


def _number(value: ExpressionValue | None) -> Any:
    return None if value is None or names(value.expression) else evaluate(value.expression, {})


def is_defined(part: type[Part] | None) -> bool:
    """Return whether a part is one that a recipe defines."""
    return part is not None and issubclass(part, DefinedBlock)
