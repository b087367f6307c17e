"""How a mask is executed: chosen from its structure, once, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import NodeRef, Part, PositiveInt, append_to_cache, torch
from blocks.masks.mask import Mask, Pair, Structure
from blocks.masks.position_masks import Full
from blocks.masks.views import CausalView, ChunkView, DenseView, DocumentsView, FullView, WindowView, matrix


class Plan(Part):
    """How a mask is executed. `prepare` runs once per call and per distinct mask; every attention with the mask gets what it
    returns, which has `attend(q, k, v, scale, dropout)` and `dense()`.

    Beside its fields a plan knows, when it runs, `counted`: positions are counted from 0, and `grows`: the keys are the
    queries' own sequence, so that in a session those of earlier calls come before them.
    """

    mask: Mask
    """What is executed."""

    cache_slots = {"position_ids": "int[..., key]"}

    def prepare(self, position_ids: Any, key_position_ids: Any, **edges: Any) -> Any:
        """Return the view of the queries at positions `at`, [T] or [B, T], of the keys at `keys_at`, [S] or [B, S].

        Each edge arrives under the name that the mask's field holds, or as None where its optional input is absent.
        """
        raise NotImplementedError


class FullPlan(Plan):
    """Nothing is hidden."""

    cache_slots = {}

    def prepare(self, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        return FullView()


class CausalPlan(Plan):
    """The kernel's own causal mask where positions are counted."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        if self.counted and self.grows and position_ids.shape[-1] == key_position_ids.shape[-1]:
            return CausalView(self.mask, position_ids, {})
        if self.counted and self.grows and position_ids.shape[-1] == 1:  # the latest position sees all there are
            return FullView()
        return dense_view(self.mask, position_ids, key_position_ids, {})


class WindowPlan(Plan):
    """Chunks of queries against the keys around them, where positions are counted and there are more than two chunks."""

    width: PositiveInt
    """A query sees keys less than this far away."""
    causal: bool
    """Whether it sees none after its own position."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        time = position_ids.shape[-1]
        if not self.counted or not self.grows or time != key_position_ids.shape[-1]:
            return dense_view(self.mask, position_ids, key_position_ids, {})
        if time <= self.width:
            return CausalView(self.mask, position_ids, {}) if self.causal else FullView()
        if time <= 2 * self.width:
            return dense_view(self.mask, position_ids, key_position_ids, {})
        return WindowView(self.mask, position_ids, self.width, 0 if self.causal else 1)


class ChunkPlan(Plan):
    """Each chunk by itself, where positions are counted and there is more than one."""

    length: PositiveInt
    """Positions in a chunk."""
    causal: bool
    """Whether a query sees none after its own position."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        time = position_ids.shape[-1]
        if not self.counted or not self.grows or time != key_position_ids.shape[-1]:
            return dense_view(self.mask, position_ids, key_position_ids, {})
        if time <= self.length:
            return CausalView(self.mask, position_ids, {}) if self.causal else FullView()
        return ChunkView(self.mask, position_ids, self.length, self.causal)


class DocumentsPlan(Plan):
    """Each packed document by itself."""

    ids: NodeRef
    """The number of the document at each position."""
    causal: bool
    """Whether a query sees none after its own position."""

    node_refs = {"ids": "int[batch, key]"}

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        pairs = {name: pair(self, name, value, key_position_ids.shape[-1]) for name, value in edges.items()}
        ids = edges[self.ids]
        if ids is None:
            alone = self.counted and self.grows and position_ids.shape[-1] == key_position_ids.shape[-1]
            return (
                CausalView(self.mask, position_ids, pairs)
                if self.causal and alone
                else dense_view(self.mask, position_ids, key_position_ids, pairs)
            )
        if not self.grows or position_ids.shape[-1] != key_position_ids.shape[-1] or torch.compiler.is_compiling():
            return dense_view(self.mask, position_ids, key_position_ids, pairs)
        lengths = document_lengths(ids, position_ids)
        if lengths is None or ids.numel() < SHORT * len(lengths):
            return dense_view(self.mask, position_ids, key_position_ids, pairs)
        return DocumentsView(self.mask, position_ids, pairs, lengths, self.causal)


SHORT = 16
"""Documents shorter than this on average, in tokens, are cheaper in one matrix: each has a call of its own. Measured on a CPU."""


class DensePlan(Plan):
    """The whole matrix: any mask."""

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        key_position_ids = with_earlier(self, "position_ids", key_position_ids)
        pairs = {name: pair(self, name, value, key_position_ids.shape[-1]) for name, value in edges.items()}
        return dense_view(self.mask, position_ids, key_position_ids, pairs)


def dense_view(mask: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, pairs: dict[str, Pair | None]) -> Any:
    """Return the view by the matrix, or of all where the matrix would be true everywhere."""
    allowed = matrix(mask, position_ids, key_position_ids, pairs)
    return FullView() if allowed is None else DenseView(allowed)


def with_earlier(plan: Any, name: str, value: torch.Tensor) -> torch.Tensor:
    """Return a value of the key side, [S] or [B, S], after those that earlier calls of the session left."""
    return append_to_cache(plan, name, value) if plan.grows else value


def pair(plan: Any, name: str, value: torch.Tensor | None, keys: int) -> Pair | None:
    """Return what an edge carries, [B], [B, T] or [B, T, S], at queries and at as many keys."""
    if value is None:
        return None
    if value.dim() == 1:  # one number for each row
        return Pair(value[:, None, None], value[:, None, None])
    if value.dim() == 3:
        value = value.narrow(2, 0, keys)  # a row may know of keys that are still to come, but no fewer than there are
        return Pair(value, value)
    return Pair(value[:, :, None], with_earlier(plan, name, value)[:, None, :])


def document_lengths(ids: torch.Tensor, position_ids: torch.Tensor) -> list[int] | None:
    """Return the lengths of the documents in [B, T], row after row; None where a document is not one run of rising positions."""
    starts = torch.ones_like(ids, dtype=torch.bool)
    starts[:, 1:] = ids[:, 1:] != ids[:, :-1]
    grouped = ids.sort(dim=1).values
    distinct = 1 + (grouped[:, 1:] != grouped[:, :-1]).sum(dim=1)
    in_order = starts[:, 1:] | (position_ids[..., 1:] > position_ids[..., :-1])
    if not bool((distinct == starts.sum(dim=1)).all() & in_order.all()):
        return None
    first = starts.flatten().nonzero().flatten()  # where each document starts in [B · T]
    return first.diff(append=first.new_tensor([ids.numel()])).tolist()


class OptionalPlan(Plan):
    """One plan where something optional is given, another where nothing is: a model that may be given padding pays for it
    only then.
    """

    given: Plan
    """How the mask is executed."""
    absent: Plan
    """How what is left of it is executed."""

    cache_slots = {}

    def prepare(self: Any, position_ids: torch.Tensor, key_position_ids: torch.Tensor, **edges: Any) -> Any:
        if all(edges[name] is None for name in edges):
            return self.absent.prepare(position_ids, key_position_ids)
        return self.given.prepare(position_ids, key_position_ids, **edges)


def plan(mask: Mask, optional: frozenset[str] = frozenset()) -> Plan:
    """Return how to execute a mask, some of whose edges may carry nothing."""
    edges = mask.edge_types()
    if edges and optional.issuperset(edges):
        return OptionalPlan(mask=mask, given=_plan(mask), absent=_plan(mask.without_edges() or Full()))
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
    return DensePlan(mask=mask)


def kept(plan: Plan) -> Mapping[str, str]:
    """Return what a plan keeps from call to call, by name: the positions of the keys and what edges carry at them."""
    grows = {name: type for name, type in plan.mask.edge_types().items() if type.endswith("[batch, key]")}
    return {**plan.cache_slots, **grows} if plan.cache_slots else {}
