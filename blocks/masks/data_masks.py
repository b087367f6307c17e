"""Masks that depend on data: padding, packed documents, prefixes."""

from __future__ import annotations

from typing import Any

from blocks.core import NodeRef, NonNegativeInt, Paper
from blocks.masks.areas import Below, MaskArea
from blocks.masks.mask import CELLS, Mask, Pair, Structure


class Valid(Mask, kind="valid"):
    """Padding mask, in which only real tokens are seen: `flags[k]`."""

    flags: NodeRef
    """True for real tokens, false for padding; `attention_mask` in transformers."""

    usual_data = "valid"
    node_refs = {"flags": "bool[batch, key]"}
    true_hides_nothing = True
    spoken = False
    example = """
inputs: {x: "float[batch, time, 32]", valid: "bool[batch, time]"}
graph: {y: {type: attention, heads: 4, mask: valid(valid), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        flags = edges[self.flags]
        return True if flags is None else flags.key


class Documents(Mask, kind="documents"):
    """Document mask for packed sequences, in which documents do not see each other: `ids[q] = ids[k]`."""

    ids: NodeRef
    """Document id (segment id) of each position: equal within a document, different between the documents of a row."""

    usual_data = "documents"
    node_refs = {"ids": "int[batch, key]"}
    one_sequence = True
    example = """
inputs: {x: "float[batch, time, 32]", document: "int[batch, time]"}
graph: {y: {type: attention, heads: 4, mask: causal and documents(document), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        ids = edges[self.ids]
        return True if ids is None else ids.query == ids.key

    def structure(self) -> Structure:
        return Structure(documents=self.ids)


class Prefix(Mask, kind="prefix"):
    """Prefix that every query sees, as in a prefix language model: `k < length`.

    A prefix language model has `causal or prefix(n)`.
    """

    length: NonNegativeInt | NodeRef
    """Length of the prefix: one number, or one for each row of the batch."""

    paper = Paper("Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", "arXiv:1910.10683")
    node_refs = {"length": "int[batch]"}
    shrinks = {"length": 3}
    example = """
inputs: {x: "float[batch, time, 32]", n: "int[batch]"}
graph: {y: {type: attention, heads: 4, mask: causal or prefix(n), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        if isinstance(self.length, int):
            return k < self.length
        length = edges[self.length]
        return True if length is None else k < length.key

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Below("k", self.length) if isinstance(self.length, int) else unknown

    def continued(self, optional: frozenset[str]) -> Mask:
        return self if self.length in optional else Prefix(length=0)

    def prefixes(self) -> tuple[int | NodeRef, ...]:
        return (self.length,)


class GlobalTokens(Mask, kind="global_tokens"):
    """Global attention of the positions that data marks, such as the tokens of a question: `flags[q]` or `flags[k]`.

    They see all positions and are seen by all; `global_attention_mask` in transformers.
    """

    flags: NodeRef
    """True for global positions."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    node_refs = {"flags": "bool[batch, key]"}
    one_sequence = True
    example = """
inputs: {x: "float[batch, time, 32]", important: "bool[batch, time]"}
graph: {y: {type: attention, heads: 4, mask: local(8) or global_tokens(important), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        flags = edges[self.flags]
        return True if flags is None else flags.query | flags.key

    def sample(self, edge: str, q: int, k: int) -> Pair:
        return Pair(q in (1, CELLS - 3), k in (1, CELLS - 3))


class Pairs(Mask, kind="pairs"):
    """Arbitrary mask given as data, with a flag for each pair of query and key: `pairs[q, k]`.

    While decoding, each call takes the rows of its own tokens; columns of later keys are ignored.
    """

    pairs: NodeRef
    """A row for each query: true for the keys that it sees."""

    usual_data = "pairs"
    node_refs = {"pairs": "bool[batch, query, key]"}
    example = """
inputs: {x: "float[batch, time, 32]", edges: "bool[batch, time, time]"}
graph: {y: {type: attention, heads: 4, mask: pairs(edges), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        pairs = edges[self.pairs]
        return True if pairs is None else pairs.key
