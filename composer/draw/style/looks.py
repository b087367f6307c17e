"""What each block looks like, as its class declares it, at its place in a model."""

from __future__ import annotations

from collections.abc import Sequence

from blocks.core import BlockView, Look, Piece, look_with_icon
from composer.graph.describe import edge_names, phrases
from composer.graph.typed import TypedBlock
from composer.graph.types import TensorType


def look(block: TypedBlock, head: str = "") -> Look:
    """Return the look of a block; `head` is its title where it gives the model's logits."""
    return look_with_icon(block.part, block_view(block, head))


def inside(block: TypedBlock) -> Sequence[Piece]:
    """Return the pieces of a block in the order in which they compute; nothing for one that is not drawn from inside."""
    return block.part.inside(block_view(block))


def block_view(block: TypedBlock, head: str = "") -> BlockView:
    """Return what the look of a block may depend on."""
    return BlockView(
        name=block.name,
        sizes=block.sizes,
        settings=tuple(phrases(block)),
        edges=edge_names(block),
        optional=frozenset(port for port, given in block.inputs.items() if isinstance(given, TensorType) and given.optional),
        learns=bool(block.parameters),
        modules=block.modules,
        slots={
            name: look(filled) if isinstance(filled, TypedBlock) else None
            for name, filled in block.slots.items()
            if filled is not None
        },
        head=head,
    )
