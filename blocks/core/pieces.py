"""Pieces of drawings that several blocks share."""

from __future__ import annotations

from blocks.core.look import BlockView, Hue, Look, Piece
from blocks.core.part import Activation, Part, look_with_icon
from blocks.core.text import grouped, spoken


def linear_piece(view: BlockView, name: str, title: str, reads: str, hue: Hue, gives: tuple[str, ...] = ()) -> Piece:
    """Return the piece of a linear map of a block, for its method `inside`.

    Args:
        view: The block's place in a model.
        name: The name of the linear map.
        title: The title of the piece.
        reads: The piece that it reads, or `$port`.
        hue: The color.
        gives: The outputs of the block that it computes.

    Examples:
        >>> from blocks.core import BlockView, linear_piece
        >>> view = BlockView("ffn", modules={"up": (768, 3072, True)})
        >>> linear_piece(view, "up", "Linear up", "$x", "ffn").look.facts
        ('768 → 3072 + bias',)
    """
    inputs, outputs, bias = view.modules[name]
    facts = (f"{grouped(inputs)} → {grouped(outputs)}{' + bias' * bias}",)
    return Piece(name, Look(title, facts, hue), ((reads, ""),), (name,), gives)


def activation_piece(view: BlockView, slot: str, part: Part, reads: str) -> Piece:
    """Return the piece of the activation in a slot, for a block's method `inside`.

    Args:
        view: The block's place in a model.
        slot: The name of the slot.
        part: The part in the slot.
        reads: The piece that it reads, or `$port`.

    Examples:
        >>> from blocks.core import BlockView, activation_piece, standard
        >>> relu = standard()["relu"]()
        >>> activation_piece(BlockView("ffn"), "activation", relu, "up").look.title
        'ReLU'
    """
    if (filled := view.slots.get(slot)) is not None:
        return Piece(slot, filled, ((reads, ""),), (slot,))
    if isinstance(part, Activation):
        return Piece(slot, look_with_icon(part, BlockView(slot)), ((reads, ""),))
    return Piece(slot, Look(spoken(slot), hue="ffn"), ((reads, ""),), (slot,))
