"""What a block keeps of a text while it is generated, from the types of its ports."""

from __future__ import annotations

from blocks.masks.kept_keys import KeptKeys, kept_keys
from blocks.masks.mask import Mask
from composer.graph.dims import Symbolic, so_far
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedBlock
from composer.graph.types import TensorType
from composer.language.expressions.ast import RefPath


def grown_slots(block: TypedBlock, length: Symbolic) -> dict[str, int]:
    """Return the slots of a block's cache to which each call appends the rows of its tokens, with the axis of these, counted from
    the last. A slot whose port has all rows so far is kept by the block that the port reads, and where tokens are the rows of a
    batch, nothing is kept of them.

    Args:
        block: the block.
        length: the number of tokens in a call.
    """
    found: dict[str, int] = {}
    if block.sizes.get("batch") == length:
        return found
    for name, declared in type(block.part).cache_slots.items():
        axes = slot_axes(declared)
        places = [index - len(axes) for index, axis in enumerate(axes) if axis and block.sizes.get(axis) == length]
        given = block.inputs.get(name)
        if places and not (isinstance(given, TensorType) and so_far(length) in given.sizes):
            found[name] = places[-1]
    return found


def kept_rows(block: TypedBlock, slot: str, length: Symbolic) -> KeptKeys | None:
    """Return which rows of earlier calls a slot needs to keep; None for all of them, as where no mask hides any for good, or
    another block has a value of every row that there is.

    Args:
        block: the block.
        slot: one of its `grown_slots`.
        length: the number of tokens in a call.
    """
    field = type(block.part).masked_slots.get(slot)
    return None if field is None else keys_in_reach(block, field, length)


def keys_in_reach(block: TypedBlock, field: str, length: Symbolic) -> KeptKeys | None:
    """Return which keys of earlier calls a block reads behind the mask in one of its fields; None for all of them.

    Args:
        block: the block.
        field: the field that holds the mask.
        length: the number of tokens in a call.
    """
    mask = getattr(block.part, field)
    if not isinstance(mask, Mask) or field not in type(block.part).masked_slots.values():
        return None
    read = [block.outputs[name] for name in block.node.requested_outputs if name in block.outputs]
    every = (type_ for type_ in (*block.inputs.values(), *read) if isinstance(type_, TensorType))
    return None if any(so_far(length) in type_.sizes for type_ in every) else kept_keys(mask)


def slot_axes(declared: str) -> list[str]:
    """Return the names of the axes of a declared type; an empty one for an expression."""
    return [expression.text if isinstance(expression, RefPath) else "" for expression in pattern(declared).axes]
