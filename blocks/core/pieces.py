"""Pieces that several blocks consist of."""

from __future__ import annotations

from blocks.core.look import BlockView, Hue, Look, Piece
from blocks.core.part import Activation, Part, look_with_icon
from blocks.core.text import grouped, spoken


def linear_piece(view: BlockView, name: str, title: str, reads: str, hue: Hue, gives: tuple[str, ...] = ()) -> Piece:
    """Return one of a block's linear maps as a piece."""
    inputs, outputs, bias = view.modules[name]
    facts = (f"{grouped(inputs)} → {grouped(outputs)}{' + bias' * bias}",)
    return Piece(name, Look(title, facts, hue), ((reads, ""),), (name,), gives)


def activation_piece(view: BlockView, slot: str, part: Part, reads: str) -> Piece:
    """Return what fills the slot of an activation as a piece."""
    if (filled := view.slots.get(slot)) is not None:
        return Piece(slot, filled, ((reads, ""),), (slot,))
    if isinstance(part, Activation):
        return Piece(slot, look_with_icon(part, BlockView(slot)), ((reads, ""),))
    return Piece(slot, Look(spoken(slot), hue="ffn"), ((reads, ""),), (slot,))
