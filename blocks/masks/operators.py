"""`and`, `or` and `not` of masks."""

from __future__ import annotations

from typing import Any

from blocks.masks.mask import Mask


class And(Mask):
    """Both allow it."""

    left: Mask
    right: Mask

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return self.left.allows(q, k, **edges) & self.right.allows(q, k, **edges)


class Or(Mask):
    """At least one allows it."""

    left: Mask
    right: Mask

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return self.left.allows(q, k, **edges) | self.right.allows(q, k, **edges)


class Not(Mask):
    """The mask does not allow it."""

    mask: Mask

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return self.mask.allows(q, k, **edges) ^ True  # `~True` would be -2


def conjuncts(mask: Mask) -> list[Mask]:
    """What all must allow: `a and b and c` as a list."""
    if isinstance(mask, And):
        return conjuncts(mask.left) + conjuncts(mask.right)
    return [mask]
