"""A mask as text of the recipe language."""

from __future__ import annotations

from blocks.masks.mask import Mask
from blocks.masks.operators import And, Not, Or


def describe(mask: Mask) -> str:
    """The expression that stands for a mask; an edge under the name that its field holds."""
    match mask:
        case Or(left=left, right=right):
            return f"{describe(left)} or {describe(right)}"
        case And(left=left, right=right):
            return f"{_operand(left, Or)} and {_operand(right, Or)}"
        case Not(mask=inner):
            return f"not {_operand(inner, Or, And)}"
    arguments = ", ".join(str(getattr(mask, name)) for name in type(mask).model_fields)
    return f"{mask.kind}({arguments})" if arguments else mask.kind


def _operand(mask: Mask, *looser: type[Mask]) -> str:
    return f"({describe(mask)})" if isinstance(mask, looser) else describe(mask)
