"""Random block attention."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from annotated_types import Ge, Le

from blocks.core import NonNegativeInt, Paper, PositiveInt
from blocks.masks.areas import AreaShape, MaskArea
from blocks.masks.mask import Mask


class Random(Mask, kind="random"):
    """Random block attention (Big Bird), in which the queries of a block see a few randomly drawn blocks of keys:
    `⌊k / block⌋ ∈ drawn(⌊q / block⌋)`.

    For block b, `count` blocks are drawn uniformly without replacement from blocks 0 … b (Floyd's algorithm on a hash of seed,
    b and the number of the draw); if there are fewer, all of them are seen. No draw depends on later blocks, so a longer
    sequence changes none, and the mask can be used in generation.

    Big Bird draws among all blocks of a sequence of fixed length, including later ones.
    """

    count: Annotated[int, Ge(1), Le(32)]
    """Number of blocks of keys that a query sees."""
    block: PositiveInt
    """Positions in a block."""
    seed: NonNegativeInt
    """Seed of the random draw."""

    paper = Paper("Big Bird: Transformers for Longer Sequences", "arXiv:2007.14062")
    shrinks = {"count": 2, "block": 2}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: "random(2, 16, 0) or local(8)", in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        if not isinstance(q, int):
            q = q.long()  # positions may have 32 bits, but the hash needs 64
        key, seen = k // self.block, False
        for block in drawn(self.count, q // self.block, self.seed):
            seen = (key == block) | seen
        return seen

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Drawn(self.count, self.block, self.seed, 0, 0)


def drawn(count: int, b: Any, seed: int) -> list[Any]:
    """Return the blocks drawn for block b, elementwise: `count` different ones of 0 … b, or all of them if there are fewer,
    padded with negative numbers.
    """
    found: list[Any] = []
    for number in range(count):
        last = b + 1 - count + number  # draw among 0 … last; if the block is already drawn, take `last`, which is new
        block = mixed(mixed(seed + number * 0x9E3779B9) + b) % (last * (last > 0) + 1)
        taken = False
        for other in found:
            taken = (block == other) | taken
        found.append(block + (last - block) * taken)
    return found


def mixed(number: Any) -> Any:
    """Return a 32-bit hash, elementwise; no product exceeds 64 bits."""
    number = number & 0xFFFFFFFF
    number = ((number ^ (number >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    number = ((number ^ (number >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    return number ^ (number >> 16)


@dataclass(frozen=True, slots=True)
class Drawn(AreaShape):
    """The block of `k + first_k` is among those drawn for the block of `q + first_q`."""

    count: int
    block: int
    seed: int
    first_q: int
    first_k: int

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        block, q, k = self.block, q + self.first_q, k + self.first_k
        blocks = range(q // block, (q + height - 1) // block + 1)
        first, last = k // block, (k + width - 1) // block
        reached = len(blocks) > MANY or any(
            first <= one <= last for b in blocks for one in _blocks_drawn(self.count, b, self.seed)
        )
        if not reached or (first == last and len(blocks) == 1):
            return reached
        return Drawn(self.count, block, self.seed, q, k)


MANY = 256
"""Number of blocks of queries from which on their draws are not enumerated: some of them see a part of the rectangle."""


@lru_cache(maxsize=64)
def _blocks_drawn(count: int, b: int, seed: int) -> list[int]:
    return drawn(count, b, seed)
