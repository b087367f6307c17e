"""Mask plans: how a mask is computed, chosen from its structure before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from blocks.core import NodeRef, Part, PositiveInt, append_to_cache, is_preallocated, torch
from blocks.masks.block_sparse import SHORTEST, SHORTEST_ON_GPU, block_sparse_view
from blocks.masks.mask import Mask, Pair, Structure
from blocks.masks.operators import And
from blocks.masks.position_masks import Full
from blocks.masks.views import (
    CausalView,
    ChunkView,
    DenseView,
    DocumentsView,
    FullView,
    PaddingView,
    RowsView,
    WindowView,
    is_traced,
    matrix,
)


class Plan(Part):
    """How a mask is computed. `prepare` runs once per call and per distinct mask; every attention with the mask receives its
    result, which has `attend(q, k, v, scale, dropout)` and `dense()`.

    Besides its fields, a plan has one attribute at run time: `grows`, whether the keys belong to the sequence of the queries, so
    that in a session those of earlier calls precede them. Positions are always counted: a mask compares indices.
    """

    mask: Mask
    """The mask."""

    cache_slots = {"position_ids": "int[..., key]"}

    def prepare(self, position_ids: Any, key_position_ids: Any, **edges: Any) -> Any:
        """Return the mask for queries at positions `position_ids`, [T], and keys at `key_position_ids`, [S].

        Each edge is passed under the name in the mask's field, or as None if its optional input is absent.
        """
        raise NotImplementedError


class FullPlan(Plan):
    """The plan of a mask that hides nothing."""

    cache_slots = {}

    def prepare(self, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        return FullView()


class CausalPlan(Plan):
    """The causal mask of the fused kernel."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        if self.grows and position_ids.shape[-1] == key_position_ids.shape[-1]:
            return CausalView(self.mask, position_ids, {})
        if self.grows and position_ids.shape[-1] == 1 and not is_preallocated(self):  # the latest position sees all keys
            return FullView()
        return dense_view(self.mask, position_ids, key_position_ids, {})


class WindowPlan(Plan):
    """Chunks of queries with the keys around them, if there are more than two chunks."""

    width: PositiveInt
    """Distance from which on keys are hidden."""
    causal: bool
    """Whether keys after the query are hidden."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        time, keys = position_ids.shape[-1], key_position_ids.shape[-1]
        if self.grows and self.causal and time == 1 and keys <= self.width and not is_preallocated(self):
            return FullView()  # the latest position sees the keys just before it
        if not self.grows or time != keys:
            return dense_view(self.mask, position_ids, key_position_ids, {})
        if time <= self.width:
            return CausalView(self.mask, position_ids, {}) if self.causal else FullView()
        if time <= 2 * self.width or (position_ids.is_cuda and time < WINDOWS_ON_GPU):
            return dense_view(self.mask, position_ids, key_position_ids, {})
        return WindowView(self.mask, position_ids, self.width, 0 if self.causal else 1)


WINDOWS_ON_GPU = 4096
"""Length from which a window is computed by chunks on a GPU: on an H100, dense is faster at 2,048, and slower at 8,192."""


class ChunkPlan(Plan):
    """Each chunk separately, if there is more than one."""

    length: PositiveInt
    """Positions in a chunk."""
    causal: bool
    """Whether keys after the query are hidden."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        time = position_ids.shape[-1]
        if not self.grows or time != key_position_ids.shape[-1]:
            return dense_view(self.mask, position_ids, key_position_ids, {})
        if time <= self.length:
            return CausalView(self.mask, position_ids, {}) if self.causal else FullView()
        return ChunkView(self.mask, position_ids, self.length, self.causal)


class DocumentsPlan(Plan):
    """Each packed document separately."""

    ids: NodeRef
    """The edge with the document id of each position."""
    causal: bool
    """Whether keys after the query are hidden."""

    node_refs = {"ids": "int[batch, key]"}

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        pairs = {name: pair(self, name, value, key_position_ids.shape[-1]) for name, value in edges.items()}
        ids = edges[self.ids]
        if ids is None:
            alone = self.grows and position_ids.shape[-1] == key_position_ids.shape[-1]
            return (
                CausalView(self.mask, position_ids, pairs)
                if self.causal and alone
                else dense_view(self.mask, position_ids, key_position_ids, pairs)
            )
        if not self.grows or position_ids.shape[-1] != key_position_ids.shape[-1] or torch.compiler.is_compiling():
            return dense_view(self.mask, position_ids, key_position_ids, pairs)
        lengths = document_lengths(ids)
        if lengths is None or ids.numel() < (SHORT_ON_GPU if ids.is_cuda else SHORT) * len(lengths):
            return dense_view(self.mask, position_ids, key_position_ids, pairs)
        return DocumentsView(self.mask, position_ids, pairs, lengths, self.causal)


SHORT = 16
"""Mean length of documents, in tokens, below which one dense matrix is faster than a call for each. Measured on a CPU."""
SHORT_ON_GPU = 1024
"""The same on a GPU, estimated from documents of 300 tokens on an H100, for which starting a call is most of its 57 µs."""


class PaddingPlan(Plan):
    """Each row without its padding, on a CPU; where it cannot be told or the rows are short, the dense matrix."""

    causal: bool
    """Whether keys after the query are hidden."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        pairs = {name: pair(self, name, value, key_position_ids.shape[-1]) for name, value in edges.items()}
        time, keys = position_ids.shape[-1], key_position_ids.shape[-1]
        flags = [pair.key[:, 0] for pair in pairs.values() if pair is not None]
        long = min(time, keys) >= (LONG if self.causal else 2 * LONG)
        alone = self.grows and time == keys
        runs = None
        fits = all(each.shape == flags[0].shape and each.shape[1] == keys and is_known(each) for each in flags)
        if flags and long and (alone or not self.causal) and fits and not is_preallocated(self):
            runs = runs_of(reduce(torch.logical_and, flags))
        if runs is None:
            return dense_view(self.mask, position_ids, key_position_ids, pairs)
        return PaddingView(self.mask, position_ids, key_position_ids, pairs, runs, self.causal)


LONG = 128
"""Length from which a causal call for each row is faster than a dense matrix; twice that if not causal. Measured on a CPU."""


def runs_of(flags: torch.Tensor) -> list[tuple[int, int, int]] | None:
    """Return the runs of true flags in rows [B, S]: the number of neighboring rows that have it, its start and its stop. None if
    the flags of a row are not one run, or the flags cannot be read.
    """
    try:
        count = flags.sum(dim=1)
        start = flags.byte().argmax(dim=1)
        places = torch.arange(flags.shape[1], device=flags.device)
        run = (places >= start[:, None]) & (places < (start + count)[:, None])
        if not bool((run == flags).all()):
            return None
        rows = torch.stack([start, start + count], dim=1).tolist()
    except RuntimeError:  # `vmap` over the flags
        return None
    found: list[tuple[int, int, int]] = []
    for first, last in rows:
        if found and found[-1][1:] == (first, last):
            found[-1] = (found[-1][0] + 1, first, last)
        else:
            found.append((1, first, last))
    return found


class DensePlan(Plan):
    """The dense matrix, for any mask."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        pairs = {name: pair(self, name, value, key_position_ids.shape[-1]) for name, value in edges.items()}
        return dense_view(self.mask, position_ids, key_position_ids, pairs)


class BlockSparsePlan(Plan):
    """Blocks of queries with the blocks of keys that they may see, if those are few; else the dense matrix."""

    reach: Mask
    """What of the mask needs no data: a pair that it hides is hidden, whatever the data."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        time = position_ids.shape[-1]
        pairs = {name: pair(self, name, value, key_position_ids.shape[-1]) for name, value in edges.items()}
        alone = self.grows and position_ids.dim() == 1 and time == key_position_ids.shape[-1]
        shortest = SHORTEST_ON_GPU if position_ids.is_cuda else SHORTEST
        if not alone or torch.compiler.is_compiling() or time < shortest or type(position_ids) is not torch.Tensor:
            return dense_view(self.mask, position_ids, key_position_ids, pairs)
        view = block_sparse_view(self.mask, self.reach, position_ids, pairs)
        return view or dense_view(self.mask, position_ids, key_position_ids, pairs)


def dense_view(mask: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, pairs: dict[str, Pair | None]) -> Any:
    """Return the mask as a dense matrix, or as `FullView` if it would be true everywhere."""
    allowed = matrix(mask, position_ids, key_position_ids, pairs)
    return FullView() if allowed is None else DenseView(allowed)


def with_earlier(plan: Any, name: str, value: torch.Tensor) -> torch.Tensor:
    """Append values of the keys, [S] or [B, S], to those of earlier calls of the session, and return all of them."""
    return append_to_cache(plan, name, value) if plan.grows else value


def pair(plan: Any, name: str, value: torch.Tensor | None, keys: int) -> Pair | None:
    """Return the values of an edge, [B], [B, T] or [B, T, S], at the queries and at the given number of keys."""
    if value is None:
        return None
    if value.dim() == 1:  # one number for each row
        return Pair(value[:, None, None], value[:, None, None])
    if value.dim() == 3:
        value = value.narrow(2, 0, keys)  # a row may include later keys, but must include all present ones
        return Pair(value, value)
    return Pair(value[:, :, None], with_earlier(plan, name, value)[:, None, :])


def document_lengths(ids: torch.Tensor) -> list[int] | None:
    """Return the lengths of the documents in [B, T], row by row; None if a document is not one run of positions."""
    starts = torch.ones_like(ids, dtype=torch.bool)
    starts[:, 1:] = ids[:, 1:] != ids[:, :-1]
    grouped = ids.sort(dim=1).values
    distinct = 1 + (grouped[:, 1:] != grouped[:, :-1]).sum(dim=1)
    if not bool((distinct == starts.sum(dim=1)).all()):
        return None
    first = starts.flatten().nonzero().flatten()  # where each document starts in [B · T]
    return first.diff(append=first.new_tensor([ids.numel()])).tolist()


class OptionalPlan(Plan):
    """One plan if optional data is passed and another if not, so that support for padding costs nothing without padding."""

    given: Plan
    """The plan of the whole mask."""
    absent: Plan
    """The plan of the mask without its data."""
    flags: bool
    """Whether all its data are flags that hide nothing where they are true, as those of padding."""

    cache_slots = {}

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        given = [value for value in edges.values() if value is not None]
        if not given:
            return self.absent.prepare(position_ids, key_position_ids)
        looks = self.flags and self.given.cache is None  # a session keeps the flags of all calls
        if looks and all(each.shape[1:] == key_position_ids.shape[-1:] and all_true(each) for each in given):
            return RowsView(self.absent.prepare(position_ids, key_position_ids), {len(each) for each in given})
        return self.given.prepare(position_ids, key_position_ids, **edges)


def all_true(flags: torch.Tensor) -> bool:
    """Return whether flags are true everywhere; False where that is not known without waiting for a device, or in a program that
    serves other flags too.
    """
    try:
        return is_known(flags) and bool(flags.all())
    except RuntimeError:  # `vmap` over the flags
        return False


def is_known(flags: torch.Tensor) -> bool:
    """Return whether a program may branch on flags: on a CPU, which does not have to wait for them, and if it is not traced."""
    return flags.device.type == "cpu" and not is_traced() and type(flags) is torch.Tensor


def plan(mask: Mask, optional: frozenset[str] = frozenset()) -> Plan:
    """Return the plan of a mask, some of whose edges may be absent."""
    edges = mask.edge_types()
    if edges and optional.issuperset(edges):
        flags = all(type(each).true_hides_nothing for each in parts_of(mask) if reads_data(each))
        return OptionalPlan(mask=mask, given=_plan(mask), absent=_plan(mask.without_edges() or Full()), flags=flags)
    return _plan(mask)


def _plan(mask: Mask) -> Plan:
    match mask.structure():
        case Structure(causal=causal, width=None, chunk=None, documents=None):
            return CausalPlan(mask=mask) if causal else FullPlan(mask=mask)
        case Structure(causal=causal, width=int(width), chunk=None, documents=None):
            return WindowPlan(mask=mask, width=width, causal=causal)
        case Structure(causal=causal, width=None, chunk=int(length), documents=None):
            return ChunkPlan(mask=mask, length=length, causal=causal)
        case Structure(causal=causal, width=None, chunk=None, documents=str(ids)):
            return DocumentsPlan(mask=mask, ids=ids, causal=causal)
    free = [term for term in mask.conjuncts() if not term.edge_types()]
    reach = reduce(_both, free) if free else Full()
    if reach.structure() not in (Structure(), Structure(causal=True)):
        return BlockSparsePlan(mask=mask, reach=reach)
    if all(type(term).true_hides_nothing for term in mask.conjuncts() if term.edge_types()):
        return PaddingPlan(mask=mask, causal=reach.structure() == Structure(causal=True))
    return DensePlan(mask=mask)  # more than half of the blocks are seen


def parts_of(mask: Mask) -> Iterator[Mask]:
    """Yield a mask and all masks that it is made of."""
    yield mask
    for inner in mask.inner():
        yield from parts_of(inner)


def reads_data(mask: Mask) -> bool:
    """Return whether a mask reads an edge itself, not only in the masks that it is made of."""
    return any(isinstance(value, NodeRef) for _, value in mask)


def _both(left: Mask, right: Mask) -> Mask:
    return And(left=left, right=right)


def kept(plan: Plan) -> Mapping[str, str]:
    """Return the cache slots of a plan by name: the positions of the keys, and the values of edges at them."""
    grows = {name: type for name, type in plan.mask.edge_types().items() if type.endswith("[batch, key]")}
    return {**plan.cache_slots, **grows} if plan.cache_slots else {}
