"""Masks of which only some blocks of pairs are computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from blocks.core import F, torch
from blocks.masks.mask import Mask, Pair
from blocks.masks.views import dot_product_attention, is_traced, matrix

SIDE = 64
"""Queries, and keys, in a block."""
SHORTEST = 256
"""Sequences below this length are computed with the dense matrix, which is then faster. Measured on a CPU."""
SHORTEST_ON_GPU = 16_384
"""The same on a GPU, where blocks are gathered by many small kernels: on an H100, the dense matrix is faster at 8,192 still."""
DENSEST = 0.5
"""Share of the blocks from which on the dense matrix is faster, on a CPU: it has no copies of keys and values."""
COPIED = 2**20
"""Numbers of keys and values that are copied at a time on a CPU, if a block of queries needs fewer: they stay in its cache."""
ALIKE = 0.8
"""Blocks of queries are computed together if none sees fewer blocks of keys than this share of what the others see."""


class BlockSparseView:
    """Blocks of `SIDE` queries, each with copies of the blocks of keys that any of its queries may see. The cost grows with the
    number of such blocks instead of T².

    Blocks of queries that see about equally many blocks of keys are computed in one batch, in which the lists of all are as long
    as the longest; what is added to a list is hidden.
    """

    def __init__(
        self, mask: Mask, position_ids: torch.Tensor, pairs: dict[str, Pair | None], groups: Any, allowed: list[torch.Tensor]
    ) -> None:
        self.mask, self.position_ids, self.pairs = mask, position_ids, pairs
        self.groups, self.allowed = groups, allowed
        self.matrix: torch.Tensor | None = None

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        batch, time = q.shape[0], q.shape[2]
        rest = -time % SIDE
        if rest:
            q, k, v = (F.pad(x, (0, 0, 0, rest)) for x in (q, k, v))
        parts = []  # blocks of queries [N], of keys [N, M], and what is allowed [B, N, SIDE, M · SIDE]
        for (queries, keys, _), allowed in zip(self.groups, self.allowed, strict=True):
            copied = 2 * batch * k.shape[1] * keys.shape[1] * SIDE * k.shape[3]  # numbers, for a block of queries
            step = max(1, COPIED // copied) if q.device.type == "cpu" else len(queries)
            for start in range(0, len(queries), step):
                part = slice(start, start + step)
                parts.append((queries[part], keys[part], allowed[:, part].expand(batch, -1, -1, -1)))
        if dropout or not may_recompute(q):
            y = part_by_part(q, k, v, parts, scale, dropout)
        else:
            y = attention_with_recomputation()(q, k, v, parts, scale)
        order = torch.cat([queries for queries, _, _ in self.groups]).argsort()
        y = y[:, order]  # [B, N, H, SIDE, D]
        return y.transpose(1, 2).flatten(2, 3)[:, :, :time]

    def dense(self) -> Any:
        if self.matrix is None:
            self.matrix = matrix(self.mask, self.position_ids, self.position_ids, self.pairs)
        return self.matrix


def block_sparse_view(mask: Mask, reach: Any, position_ids: torch.Tensor, pairs: dict[str, Pair | None]) -> Any:
    """Return the view of a mask with the blocks of its `reach`; None if they are so many that the dense matrix is faster."""
    time, device = position_ids.shape[-1], str(position_ids.device)
    groups = visible_groups(reach, time, device)
    if groups is None:
        return None
    allowed = [patterns(mask, group, time, pairs) for group in groups] if pairs else kept_patterns(reach, time, device)
    return BlockSparseView(mask, position_ids, pairs, groups, allowed)


def patterns(mask: Mask, group: Any, time: int, pairs: dict[str, Pair | None]) -> Any:
    """Return which keys the queries of a group see: [1, N, SIDE, M · SIDE], or with data [B, N, SIDE, M · SIDE]."""
    queries, keys, real = group
    q, k = positions(queries)[:, :, None], positions(keys)[:, None, :]  # [N, SIDE, 1], [N, 1, M · SIDE]
    given = {name: None if pair is None else gathered(pair, q, k, time - 1) for name, pair in pairs.items()}
    allowed = mask.allows(q, k, ends=Pair(time - 1, time - 1), **given) & (k < time) & real[:, None, :]
    return allowed if allowed.dim() == 4 else allowed[None]


def positions(blocks: torch.Tensor) -> torch.Tensor:
    """Return the positions in blocks [N] or [N, M]: [N, SIDE] or [N, M · SIDE]."""
    return (blocks[..., None] * SIDE + torch.arange(SIDE, device=blocks.device)).flatten(1)


def gathered(pair: Pair, q: torch.Tensor, k: torch.Tensor, last: int) -> Pair:
    """Return the values of an edge at blocks of queries, [B, N, SIDE, 1], and at keys, [B, N, 1, M · SIDE]; where both depend on
    the pair, both are [B, N, SIDE, M · SIDE]. Positions after the last one have its value.
    """
    q, k = q.clamp(max=last), k.clamp(max=last)
    if pair.query is pair.key and pair.query.shape[1:] != (1, 1):  # a value of each pair
        both = pair.query[:, q, k]
        return Pair(both, both)
    query = pair.query[:, :, 0] if pair.query.shape[1] > 1 else pair.query[:, 0].expand(-1, last + 1)
    key = pair.key[:, 0] if pair.key.shape[2] > 1 else pair.key[:, 0].expand(-1, last + 1)
    return Pair(query[:, q], key[:, k])


def may_recompute(q: torch.Tensor) -> bool:
    """Return whether a call is one of a model in training on a CPU, and nothing looks into it or changes its numbers."""
    alone = not is_traced() and not torch._C._are_functorch_transforms_active()
    return alone and q.device.type == "cpu" and torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


def part_by_part(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, parts: Any, scale: float, dropout: float) -> torch.Tensor:
    """Return the values of blocks of queries, part after part: [B, count, H, SIDE, D]."""
    (of_q, of_k, of_v) = (blocks_in(x) for x in (q, k, v))
    found = []
    for queries, keys, allowed in parts:
        mine, theirs = places_in(q, queries[:, None]), places_in(k, keys)
        y = dot_product_attention(
            copies(of_q, mine),
            copies(of_k, theirs),
            copies(of_v, theirs),
            scale=scale,
            mask=allowed.flatten(0, 1)[:, None],
            dropout=dropout,
        )
        found.append(torch.unflatten(y, 0, (q.shape[0], -1)))
    return torch.cat(found, dim=1)


@lru_cache(maxsize=1)
def attention_with_recomputation() -> Any:
    """Return `part_by_part` without dropout, of which only q, k and v are kept for the backward pass. That copies and computes
    each part again: kept copies would be several times as large as k and v, and each would have a gradient as large as these.
    """

    class AttentionWithRecomputation(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, parts: Any, scale: float) -> torch.Tensor:
            ctx.save_for_backward(q, k, v)
            ctx.parts, ctx.scale = parts, scale
            return part_by_part(q, k, v, parts, scale, 0.0)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            q, k, v = ctx.saved_tensors
            return *gradients_of_parts(q, k, v, ctx.parts, ctx.scale, grad), None, None

    return AttentionWithRecomputation.apply


def gradients_of_parts(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, parts: Any, scale: float, grad: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of q, k and v from that of `part_by_part`, [B, count, H, SIDE, D]."""
    blocks = [blocks_in(x) for x in (q, k, v)]
    totals = [torch.zeros_like(each) for each in blocks]
    start = 0
    for queries, keys, allowed in parts:
        places = [places_in(q, queries[:, None]), *[places_in(k, keys)] * 2]
        with torch.enable_grad():
            given = [copies(each, place).requires_grad_() for each, place in zip(blocks, places, strict=True)]
            y = dot_product_attention(*given, scale=scale, mask=allowed.flatten(0, 1)[:, None])
        of_part = grad[:, start : start + len(queries)].flatten(0, 1)
        start += len(queries)
        for total, place, of_copies in zip(totals, places, torch.autograd.grad(y, given, of_part), strict=True):
            total.index_add_(
                0, place.flatten(), torch.unflatten(torch.unflatten(of_copies, 0, place.shape[:2]), 3, (-1, SIDE)).flatten(0, 3)
            )
    return tuple(total.view(x.shape) for total, x in zip(totals, (q, k, v), strict=True))


def blocks_in(x: torch.Tensor) -> torch.Tensor:
    """Return the blocks of [B, H, count · SIDE, D] one after another, [B · H · count, SIDE, D]; a copy if heads are not apart."""
    return torch.unflatten(x, 2, (-1, SIDE)).flatten(0, 2)


def places_in(x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return where chosen blocks [N, M] of positions are among the blocks of [B, H, count · SIDE, D]: [B, N, H, M]."""
    batch, heads, count = x.shape[0], x.shape[1], x.shape[2] // SIDE
    rows = torch.arange(batch, device=x.device)[:, None, None, None] * heads + torch.arange(heads, device=x.device)[:, None]
    return rows * count + chosen[:, None, :]


def copies(blocks: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return copies of the blocks at places [B, N, H, M], those of positions side by side: [B · N, H, M · SIDE, D]."""
    return torch.unflatten(blocks.index_select(0, places.flatten()), 0, places.shape).flatten(3, 4).flatten(0, 1)


@lru_cache(maxsize=16)
def kept_patterns(mask: Mask, time: int, device: str) -> list[torch.Tensor]:
    """Return `patterns` of a mask that reads no data, for the groups of `visible_groups`."""
    with torch.inference_mode(False):
        return [patterns(mask, group, time, {}) for group in visible_groups(mask, time, device) or ()]


@lru_cache(maxsize=64)
def visible_groups(mask: Mask, time: int, device: str) -> list[tuple[torch.Tensor, ...]] | None:
    """Return the blocks of queries in groups: the blocks [N], the blocks of keys that each sees [N, M], and which positions of
    these are not there only to fill a list, [N, M · SIDE]. None if they are so many that the dense matrix is faster.

    Args:
        mask: A mask that reads no data.
        time: Length of the sequence.
        device: Where the groups are used.
    """
    with torch.inference_mode(False):  # what is kept may be part of a graph later
        seen = visible_blocks(mask, time)
        groups: list[list[int]] = []
        for block in sorted(range(len(seen)), key=lambda each: (-len(seen[each]), each)):
            if not groups or len(seen[block]) < ALIKE * len(seen[groups[-1][0]]):
                groups.append([])
            groups[-1].append(block)
        widths = [max(1, len(seen[group[0]])) for group in groups]
        if sum(width * len(group) for width, group in zip(widths, groups, strict=True)) > DENSEST * len(seen) ** 2:
            return None
        return [listed(seen, group, width, device) for width, group in zip(widths, groups, strict=True)]


def listed(seen: Sequence[list[int]], group: list[int], width: int, device: str) -> tuple[torch.Tensor, ...]:
    """Return a group of `visible_groups`, with lists of `width` blocks of keys."""
    keys = torch.tensor([[*seen[block], *[0] * (width - len(seen[block]))] for block in group])
    real = torch.tensor([[place < len(seen[block]) for place in range(width)] for block in group])
    return tuple(each.to(device) for each in (torch.tensor(group), keys, real.repeat_interleave(SIDE, dim=1)))


def visible_blocks(mask: Mask, time: int) -> list[list[int]]:
    """Return for each block of queries the blocks of keys of which any query sees a key; evaluated row of blocks by row."""
    k = torch.arange(-(-time // SIDE) * SIDE, device="cpu")[None, :]  # whatever the default device: the numbers are read
    found = []
    for start in range(0, time, SIDE):
        q = torch.arange(start, min(start + SIDE, time), device="cpu")[:, None]
        allowed = mask.allows(q, k, ends=Pair(time - 1, time - 1)) & (k < time)
        any_query = allowed.expand(len(q), -1).any(dim=0)
        found.append(torch.unflatten(any_query, 0, (-1, SIDE)).any(dim=1).nonzero().flatten().tolist())
    return found
