"""Masks prepared for one call, as attention uses them."""

from __future__ import annotations

from typing import Any

from blocks.core import F, torch
from blocks.masks.mask import Ends, Pair


def is_traced() -> bool:
    """Return whether the call becomes a program, for other data and perhaps other lengths."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]


def biased_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    allowed: torch.Tensor | None,
    bias: torch.Tensor,
    *,
    scale: float,
    dropout: float,
) -> torch.Tensor:
    """Return `dot_product_attention` with a bias, [H, T, S] or [B, H, T, S], added to the scores of keys that a query sees."""
    return dot_product_attention(q, k, v, scale=scale, mask=masked_bias(bias.to(q.dtype), allowed), dropout=dropout)


def masked_bias(bias: torch.Tensor, allowed: torch.Tensor | None) -> torch.Tensor:
    """Return the bias of the scores, [H, T, S] or [B, H, T, S], with -inf where a query does not see a key."""
    return bias if allowed is None else torch.where(allowed, bias, -torch.inf)


def dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> torch.Tensor:
    """Return softmax(scale · q kᵀ) v for q [B, H, T, D] and k, v [B, K, S, D], each key head serving H / K query heads.

    A query that sees no key yields zeros. `causal` compares indices, so the first query is aligned with the first key.
    """
    grouped = False
    if q.shape[1] != k.shape[1]:  # a branch, since `torch.compile` may compare symbols, and the kernel takes no symbol
        grouped = True
    if grouped and q.is_cuda and (mask is not None or not in_16_bits(q)):  # else a GPU computes whole matrices of scores
        k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)  # [B, H, S, D]
        v = v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)
        grouped = False
    if q.is_cuda and not torch.compiler.is_compiling():  # which sees to it itself
        q, k, v = aligned(q), aligned(k), aligned(v)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout, scale=scale, enable_gqa=grouped
    )


def in_16_bits(q: torch.Tensor) -> bool:
    """Return whether attention is computed in 16 bits."""
    return q.element_size() == 2 or torch.is_autocast_enabled(q.device.type)


def aligned(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor each of whose rows begins at a multiple of 16 bytes, of which kernels on CUDA load that many at once.

    Torch looks at the length of rows only, and a kernel then reads at a misaligned address, which ends the process's use of CUDA.
    """
    step = 16 // x.element_size()
    if all(count % step == 0 for count in (x.storage_offset(), *x.stride()[:-1])):
        return x
    return x.clone(memory_format=torch.contiguous_format)


def matrix(mask: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, pairs: dict[str, Pair | None]) -> Any:
    """Return the mask as bools that broadcast to [B, 1, T, S], or None if nothing is hidden, for positions [T] or [B, T]."""
    q, k = position_ids[..., :, None], key_position_ids[..., None, :]
    allowed = mask.allows(q, k, ends=Ends(q, k), **pairs)  # [T, S] or [B, T, S]
    if isinstance(allowed, bool):
        return None if allowed else position_ids.new_zeros(position_ids.shape[-1], key_position_ids.shape[-1], dtype=torch.bool)
    return allowed if allowed.dim() == 2 else allowed[:, None]


class FullView:
    """A mask that hides nothing."""

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        return dot_product_attention(q, k, v, scale=scale, dropout=dropout)

    def dense(self) -> None:
        return None


class RowsView:
    """A view that does without flags, which are true everywhere, but not for other rows than theirs."""

    def __init__(self, view: Any, rows: set[int]) -> None:
        self.view, self.rows = view, rows

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        if not self.rows <= {1, q.shape[0]}:
            raise RuntimeError(f"flags of {max(self.rows)} rows do not fit {q.shape[0]} rows of queries")
        y: torch.Tensor = self.view.attend(q, k, v, scale, dropout)
        return y

    def dense(self) -> Any:
        return self.view.dense()


class DenseView:
    """A mask as a matrix of bools."""

    def __init__(self, allowed: torch.Tensor) -> None:
        self.allowed = allowed  # broadcasts to [B, 1, T, S]

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        return dot_product_attention(q, k, v, scale=scale, mask=self.allowed, dropout=dropout)

    def dense(self) -> torch.Tensor:
        return self.allowed


class CausalView:
    """A causal mask within one sequence whose positions count from 0."""

    def __init__(self, mask: Any, position_ids: torch.Tensor, pairs: dict[str, Pair | None]) -> None:
        self.mask, self.position_ids, self.pairs = mask, position_ids, pairs

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        return dot_product_attention(q, k, v, scale=scale, causal=True, dropout=dropout)

    def dense(self) -> Any:
        return matrix(self.mask, self.position_ids, self.position_ids, self.pairs)


class WindowView:
    """A band along the diagonal: chunks of `width` queries, each with the keys of its own chunk, of the previous one and, if the
    mask looks `ahead`, of the next one. The cost grows with T · width instead of T².

    Chunks with all neighbors share one pattern; the first and the last ones are computed separately.
    """

    def __init__(self, mask: Any, position_ids: torch.Tensor, width: int, ahead: int) -> None:
        self.mask, self.position_ids, self.width, self.ahead = mask, position_ids, width, ahead
        three = torch.arange(3 * width, device=position_ids.device)
        self.band = matrix(mask, three, three, {})  # of any three consecutive chunks

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        width, ahead = self.width, self.ahead
        last = q.shape[2] // width - ahead  # the first chunk that lacks a neighbor; T > 2 · width
        reach = (1 + ahead) * width
        first_q, middle_q, last_q = torch.split(q, [width, (last - 1) * width, q.shape[2] - last * width], dim=2)
        parts = [
            dot_product_attention(
                first_q, k[:, :, :reach], v[:, :, :reach], scale=scale, mask=self.band[:width, :reach], dropout=dropout
            )
        ]
        if last > 1:
            y = dot_product_attention(
                torch.unflatten(middle_q, 2, (last - 1, width)).transpose(1, 2).flatten(0, 1),  # [B · chunks, H, width, D]
                neighbors(k, width, ahead),  # [B · chunks, K, width + reach, D]
                neighbors(v, width, ahead),
                scale=scale,
                mask=self.band[width : 2 * width, : width + reach],
                dropout=dropout,
            )
            parts.append(torch.unflatten(y, 0, (q.shape[0], last - 1)).transpose(1, 2).flatten(2, 3))
        start = (last - 1) * width
        rest = q.shape[2] - last * width
        if rest > 0:
            pattern = self.band[width : width + rest, : width + rest]
            y = dot_product_attention(last_q, k[:, :, start:], v[:, :, start:], scale=scale, mask=pattern, dropout=dropout)
            parts.append(y)
        return torch.cat(parts, dim=2)

    def dense(self) -> Any:
        return matrix(self.mask, self.position_ids, self.position_ids, {})


def neighbors(x: torch.Tensor, width: int, ahead: int) -> torch.Tensor:
    """Return [B, K, T, D] as [B · chunks, K, (2 + ahead) · width, D]: each chunk that has both neighbors, with them."""
    count = x.shape[2] // width
    chunks = torch.unflatten(x[:, :, : count * width], 2, (count, width)).transpose(1, 2)  # [B, count, K, width, D]
    shifted = [chunks[:, shift : count - 1 - ahead + shift] for shift in range(2 + ahead)]
    return torch.cat(shifted, dim=3).flatten(0, 1)


class ChunkView:
    """Chunks of `length` positions, each computed separately, all full ones in one batch; the cost grows with T · length."""

    def __init__(self, mask: Any, position_ids: torch.Tensor, length: int, causal: bool) -> None:
        self.mask, self.position_ids, self.length, self.causal = mask, position_ids, length, causal

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        count, rest = divmod(q.shape[2], self.length)
        whole = [chunks(x[:, :, : count * self.length], count) for x in (q, k, v)]
        y = dot_product_attention(*whole, scale=scale, causal=self.causal, dropout=dropout)  # [B · chunks, H, length, D]
        y = torch.unflatten(y, 0, (q.shape[0], count)).transpose(1, 2).flatten(2, 3)
        if rest == 0:
            return y
        last = [x[:, :, count * self.length :] for x in (q, k, v)]
        return torch.cat([y, dot_product_attention(*last, scale=scale, causal=self.causal, dropout=dropout)], dim=2)

    def dense(self) -> Any:
        return matrix(self.mask, self.position_ids, self.position_ids, {})


def chunks(x: torch.Tensor, count: int) -> torch.Tensor:
    """Return [B, K, T, D] as [B · count, K, T / count, D]."""
    return torch.unflatten(x, 2, (count, -1)).transpose(1, 2).flatten(0, 1)


class DocumentsView:
    """Packed documents, each computed separately; the cost grows with the sum of their squared lengths.

    The lengths depend on data, on which a compiled program cannot branch, so there a dense matrix is used.
    """

    def __init__(
        self, mask: Any, position_ids: torch.Tensor, pairs: dict[str, Pair | None], lengths: list[int], causal: bool
    ) -> None:
        self.mask, self.position_ids, self.pairs, self.lengths, self.causal = mask, position_ids, pairs, lengths, causal

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        if torch.compiler.is_compiling():
            return dot_product_attention(q, k, v, scale=scale, mask=self.dense(), dropout=dropout)
        documents = zip(*(torch.split(one_row(x), self.lengths, dim=2) for x in (q, k, v)), strict=True)
        y = torch.cat([dot_product_attention(*qkv, scale=scale, causal=self.causal, dropout=dropout) for qkv in documents], dim=2)
        return torch.unflatten(y[0], 1, (q.shape[0], q.shape[2])).transpose(0, 1)  # [B, H, T, D]

    def dense(self) -> Any:
        return matrix(self.mask, self.position_ids, self.position_ids, self.pairs)


class PaddingView:
    """Rows whose real tokens are one run of keys, `starts[b] ≤ k < stops[b]`, computed without the padding around it; neighboring
    rows of one run are computed together.
    """

    def __init__(
        self,
        mask: Any,
        position_ids: torch.Tensor,
        key_position_ids: torch.Tensor,
        pairs: dict[str, Pair | None],
        runs: list[tuple[int, int, int]],
        causal: bool,
    ) -> None:
        self.mask, self.position_ids, self.key_position_ids, self.pairs = mask, position_ids, key_position_ids, pairs
        self.runs, self.causal = runs, causal  # of each run, its rows, start and stop
        self.matrix: torch.Tensor | None = None

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, dropout: float) -> torch.Tensor:
        if torch.compiler.is_compiling():
            return dot_product_attention(q, k, v, scale=scale, mask=self.dense(), dropout=dropout)
        rows = [count for count, _, _ in self.runs]
        if rows == [1]:  # one row of flags stands for all
            rows = [q.shape[0]]
        done = []
        for each, keys, values, (_, start, stop) in zip(*(torch.split(x, rows) for x in (q, k, v)), self.runs, strict=True):
            if start == stop:
                nothing = each.new_zeros(each.shape[2], keys.shape[2], dtype=torch.bool)
                done.append(dot_product_attention(each, keys, values, scale=scale, mask=nothing, dropout=dropout))
                continue
            first = start if self.causal else 0  # queries before see nothing
            real = (each[:, :, first:], keys[:, :, start:stop], values[:, :, start:stop])
            y = dot_product_attention(*real, scale=scale, causal=self.causal, dropout=dropout)
            done.append(F.pad(y, (0, 0, first, 0)) if first else y)
        return done[0] if len(done) == 1 else torch.cat(done)

    def dense(self) -> Any:
        if torch.compiler.is_compiling():  # what is stored would be one more program
            return matrix(self.mask, self.position_ids, self.key_position_ids, self.pairs)
        if self.matrix is None:
            self.matrix = matrix(self.mask, self.position_ids, self.key_position_ids, self.pairs)
        return self.matrix


def one_row(x: torch.Tensor) -> torch.Tensor:
    """Return [B, H, T, D] as [1, H, B · T, D]: the rows concatenated."""
    return x.transpose(0, 1).flatten(1, 2)[None]
