"""A mask: one predicate of a query position and a key position."""

from __future__ import annotations

from typing import Any

from blocks.core import Part


class Mask(Part):
    """Who may look. Everything else about a mask is derived from `allows`: the dense matrix, the fast path, the number of
    visible pairs, the picture."""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        """Whether the query at position `q` sees the key at position `k`: elementwise on ints or on tensors that broadcast,
        hence `&`, `|` and `^ True`. Each edge arrives as a `Pair`, or as None where its optional input is absent: then the
        predicate is true.
        """
        raise NotImplementedError


class Pair:
    """What an edge carries, at the query and at the key, ready to broadcast to [B, T, S]."""

    def __init__(self, query: Any, key: Any) -> None:
        self.query, self.key = query, key
