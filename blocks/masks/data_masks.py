"""Masks that what flows through the model decides: padding, packed documents, prefixes."""

from __future__ import annotations

from typing import Any

from blocks.core import NodeRef, NonNegativeInt, Paper
from blocks.masks.areas import Below, MaskArea
from blocks.masks.mask import CELLS, Mask, Pair, Structure


class Valid(Mask, kind="valid"):
    """Only real tokens are seen, padding is not: `flags[k]`."""

    flags: NodeRef
    """True for real tokens, false for padding."""

    node_refs = {"flags": "bool[batch, key]"}
    spoken = False

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        flags = edges[self.flags]
        return True if flags is None else flags.key


class Documents(Mask, kind="documents"):
    """Packed documents do not see each other: `ids[q] = ids[k]`."""

    ids: NodeRef
    """A number for each position: equal within a document, different between the documents of a row."""

    node_refs = {"ids": "int[batch, key]"}
    one_sequence = True

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        ids = edges[self.ids]
        return True if ids is None else ids.query == ids.key

    def structure(self) -> Structure:
        return Structure(documents=self.ids)


class Prefix(Mask, kind="prefix"):
    """All see the first `length` positions: `k < length`. A prefix language model is `causal or prefix(n)`."""

    length: NonNegativeInt | NodeRef
    """How long the prefix is: one number, or one for each row of the batch."""

    paper = Paper("Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", "arXiv:1910.10683")
    node_refs = {"length": "int[batch]"}
    shrinks = {"length": 3}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        if isinstance(self.length, int):
            return k < self.length
        length = edges[self.length]
        return True if length is None else k < length.key

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Below("k", self.length) if isinstance(self.length, int) else unknown


class GlobalTokens(Mask, kind="global_tokens"):
    """Positions that the data picks see all and are seen by all, such as the words of a question: `flags[q]` or `flags[k]`."""

    flags: NodeRef
    """True for the positions that are global."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    node_refs = {"flags": "bool[batch, key]"}
    one_sequence = True

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        flags = edges[self.flags]
        return True if flags is None else flags.query | flags.key

    def sample(self, edge: str, q: int, k: int) -> Pair:
        return Pair(q in (1, CELLS - 3), k in (1, CELLS - 3))


class Pairs(Mask, kind="pairs"):
    """The data says of each pair whether it is seen: `pairs[q, k]`.

    While a text is written, each call is given the rows of its own tokens; columns of keys that are still to come are not read.
    """

    pairs: NodeRef
    """A row for each query: true for the keys that it sees."""

    node_refs = {"pairs": "bool[batch, query, key]"}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        pairs = edges[self.pairs]
        return True if pairs is None else pairs.key
