"""A mask: one predicate of a query position and a key position."""

from __future__ import annotations

from typing import Any, ClassVar

from blocks.core import Part


class Mask(Part):
    """Who may look. Everything else about a mask is derived from `allows`: the dense matrix, the fast path, the number of
    visible pairs, the picture."""

    needs_ends: ClassVar[bool] = False
    """Whether it asks for the `ends`, which are not known while a text is written."""

    one_sequence: ClassVar[bool] = False
    """Whether an edge of it is read at queries and at keys, which then are positions of one sequence."""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        """Whether the query at position `q` sees the key at position `k`: elementwise on ints or on tensors that broadcast,
        hence `&`, `|` and `^ True`. Each edge arrives as a `Pair`, or as None where its optional input is absent: then the
        predicate is true. `ends` is the last position of the queries and of the keys, a `Pair` too.
        """
        raise NotImplementedError


class Pair:
    """What is known at the query and at the key, such as what an edge carries there, ready to broadcast to [B, T, S]."""

    def __init__(self, query: Any, key: Any) -> None:
        self.query, self.key = query, key


class Ends:
    """The last position of queries [..., T, 1] and of keys [..., 1, S], looked for only where a mask asks."""

    def __init__(self, q: Any, k: Any) -> None:
        self.q, self.k = q, k

    @property
    def query(self) -> Any:
        return self.q.amax(dim=-2, keepdim=True)

    @property
    def key(self) -> Any:
        return self.k.amax(dim=-1, keepdim=True)
