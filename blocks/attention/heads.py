"""Splitting channels into heads, and into other parts."""

from __future__ import annotations

from typing import Any

from blocks.core import BlockError, torch


def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Return [B, T, heads · D] as [B, heads, T, D]."""
    return torch.unflatten(x, -1, (heads, -1)).transpose(1, 2)


def join_heads(x: torch.Tensor) -> torch.Tensor:
    """Return [B, heads, T, D] as [B, T, heads · D]."""
    return x.transpose(1, 2).flatten(2)


def nearest_divisors(whole: int, wanted: int) -> str:
    """Return the divisors of a number nearest to the given one, as a hint: `8 and 12 divide 768`."""
    start = min(wanted, whole)
    below = next((n for n in range(start, max(0, start - 1000), -1) if whole % n == 0), 1)
    above = next((n for n in range(wanted + 1, min(whole, wanted + 1000) + 1) if whole % n == 0), None)
    near = [str(n) for n in (below, above) if n is not None]
    return f"{' and '.join(near)} {'divide' if len(near) > 1 else 'divides'} {whole}"


def check_head_counts(heads: int, kv_heads: int | None) -> None:
    """Raise `BlockError` if query heads cannot share the key heads evenly."""
    if kv_heads is not None and heads % kv_heads:
        raise BlockError(
            f"{heads} query heads cannot share {kv_heads} key/value heads evenly",
            field="kv_heads",
            hint=nearest_divisors(heads, kv_heads),
            code="indivisible",
        )


def check_known(channels: Any, parts: str) -> None:
    """Raise `BlockError` if channels are split into parts and their number is known only when the model runs."""
    if not isinstance(channels, int):
        raise BlockError(
            f"whether `{channels}` channels can be split into {parts} is known only when the model runs",
            hint="give that axis a number, in `inputs` or with a node before this one",
        )


def check_split(channels: Any, count: int, parts: str, *, of: str = "", field: str = "", known: bool = False) -> None:
    """Raise `BlockError` if channels, as far as their number is known, cannot be split evenly.

    Args:
        channels: Their number, or an expression of the axes of the model.
        count: How many parts there are.
        parts: What these are called.
        of: What has the channels.
        field: The field with the number of parts; that of their name, if it is not given.
        known: Whether the number of channels must be known before the model runs, if there are several parts.
    """
    if known and count > 1:
        check_known(channels, f"{count} {parts}")
    if isinstance(channels, int) and channels % count:
        raise BlockError(
            f"{channels} channels{f' of {of}' if of else ''} cannot be split into {count} {parts}",
            field=field or parts,
            hint=nearest_divisors(channels, count),
            code="indivisible",
        )
