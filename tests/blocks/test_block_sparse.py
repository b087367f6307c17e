"""Attention over the blocks of pairs that a mask does not hide as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import composer
from blocks.core import NodeRef
from blocks.masks import block_sparse, plans
from blocks.masks.block_masks import BlockWindow, Chunk, Dilated, Strided
from blocks.masks.data_masks import Documents, GlobalTokens, Pairs, Prefix, Valid
from blocks.masks.mask import Mask, Pair
from blocks.masks.operators import And, Not, Or
from blocks.masks.position_masks import Causal, GlobalFirst, GlobalLast, Lookahead, Window
from blocks.masks.random_mask import Random
from composer.decode import session
from tests.blocks.test_masks import matches_formula, view

DOCUMENTS, REAL, LENGTH = Documents(ids=NodeRef("doc")), Valid(flags=NodeRef("real")), Prefix(length=NodeRef("n"))
SINKS = And(left=Causal(), right=Or(left=Window(width=5), right=GlobalFirst(count=2)))
MASKS = {
    "window or sinks": SINKS,
    "dilated": And(left=Causal(), right=Dilated(width=3, step=2)),
    "strided": And(left=Causal(), right=Strided(step=8)),
    "blocks": BlockWindow(block=3, radius=1),
    "random": Random(count=2, block=4, seed=1),
    "first and last": Or(left=Window(width=2), right=Or(left=GlobalFirst(count=1), right=GlobalLast(count=3))),
    "few see anything": And(left=GlobalLast(count=2), right=And(left=Not(mask=Causal()), right=Window(width=9))),
    "nothing": And(left=Causal(), right=Not(mask=Lookahead(count=3))),
    "window of documents": And(left=SINKS, right=DOCUMENTS),
    "window and padding": And(left=And(left=Causal(), right=Window(width=6)), right=REAL),
    "chunks and a prefix": And(left=Chunk(length=7), right=Or(left=Causal(), right=LENGTH)),
    "pairs": And(left=BlockWindow(block=4, radius=1), right=Pairs(pairs=NodeRef("pairs"))),
    "important tokens": And(left=Dilated(width=4, step=3), right=Or(left=Causal(), right=GlobalTokens(flags=NodeRef("some")))),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks of four positions, at any length and any density, copied a few at a time."""
    kept = (block_sparse.visible_groups, block_sparse.kept_patterns)
    for place, name, value in (
        (block_sparse, "SIDE", 4), (block_sparse, "DENSEST", 1.0), (block_sparse, "COPIED", 400), (plans, "SHORTEST", 1),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, value)
    for function in kept:
        function.cache_clear()
    yield
    for function in kept:
        function.cache_clear()


def edges(time: int) -> dict[str, torch.Tensor]:
    """Return data for two rows: padding, documents of which one comes back, lengths of prefixes, and pairs."""
    torch.manual_seed(time)
    return {
        "doc": torch.randint(3, (2, time)),
        "real": torch.rand(2, time) < 0.7,
        "some": torch.rand(2, time) < 0.2,
        "n": torch.tensor([time // 2, 1]),
        "pairs": torch.rand(2, time, time) < 0.5,
    }


def pair_by_pair(mask: Mask, time: int, data: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the matrix of a mask [B, 1, T, T] from its predicate on plain numbers."""
    seen = torch.zeros(2, 1, time, time, dtype=torch.bool)
    for row in range(2):
        for q in range(time):
            for k in range(time):
                given = {
                    name: Pair(value[row].item(), value[row].item()) if value.dim() == 1
                    else Pair(value[row, q].item(), value[row, k].item()) if value.dim() == 2
                    else Pair(value[row, q, k].item(), value[row, q, k].item())
                    for name, value in data.items()
                }  # fmt: skip
                seen[row, 0, q, k] = bool(mask.allows(q, k, ends=Pair(time - 1, time - 1), **given))
    return seen


@pytest.mark.parametrize("alike", [0.3, 1.0])
@pytest.mark.parametrize("time", [3, 8, 13, 26])
@pytest.mark.parametrize("name", MASKS)
def test_blocks_equal_the_formula(name: str, time: int, alike: float, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs and gradients, for two rows with groups of heads, at lengths that are no multiple of a block."""
    monkeypatch.setattr(block_sparse, "ALIKE", alike)
    mask = MASKS[name]
    data = {edge: value for edge, value in edges(time).items() if edge in mask.edge_types()}
    found = view(mask, time, time, **data)
    assert type(found).__name__ == "BlockSparseView"
    allowed = pair_by_pair(mask, time, data)
    assert found.dense().expand_as(allowed).equal(allowed)
    matches_formula(found, allowed, time, time)


def test_data_that_is_absent_hides_nothing(small: None) -> None:
    """Of two edges, one."""
    mask = And(left=MASKS["window of documents"], right=REAL)
    data = edges(13)
    found = view(mask, 13, 13, doc=data["doc"], real=None)
    matches_formula(found, pair_by_pair(MASKS["window of documents"], 13, {"doc": data["doc"]}), 13, 13)


@pytest.mark.parametrize(
    ("mask", "time", "name"),
    [
        (And(left=Chunk(length=64), right=Window(width=9)), 256, "BlockSparseView"),
        (And(left=Chunk(length=64), right=Window(width=9)), 255, "DenseView"),  # short
        (SINKS, 256, "DenseView"),  # more than half of sixteen blocks
        (And(left=Causal(), right=Strided(step=2)), 512, "DenseView"),  # in every block there is something to be seen
        (Or(left=Causal(), right=Prefix(length=3)), 512, "DenseView"),  # half of all blocks, and those that the diagonal cuts
        (And(left=SINKS, right=REAL), 512, "BlockSparseView"),
        (Or(left=SINKS, right=REAL), 512, "DenseView"),  # any pair may be seen
    ],
)
def test_blocks_are_computed_where_they_are_few(mask: Mask, time: int, name: str) -> None:
    """Of long sequences."""
    data = {"real": torch.ones(1, time, dtype=torch.bool)} if mask.edge_types() else {}
    assert type(view(mask, time, time, **data)).__name__ == name


def test_hidden_blocks_are_not_computed() -> None:
    """The products that torch counts are those of the blocks."""
    q, k, v = (torch.randn(1, 1, 1024, 8) for _ in range(3))
    found = view(SINKS, 1024, 1024)
    with FlopCounterMode(display=False) as counted:
        found.attend(q, k, v, 1.0, 0.0)
    blocks = sum(queries.numel() * keys.shape[1] for queries, keys, _ in found.groups)
    assert blocks <= 3 * 16  # the diagonal, the one before, and the first
    assert counted.get_total_flops() in (0, blocks * 64 * 64 * 8 * 4)  # the CPU's kernel is not counted by every torch


def test_no_copy_is_kept_for_the_backward_pass() -> None:
    """Nothing but queries, keys and values, which lie in memory as they are and are not counted here."""
    given = [torch.randn(1, 1024, 2, 8).transpose(1, 2).requires_grad_() for _ in range(3)]
    kept: list[int] = []

    def keep(x: torch.Tensor) -> torch.Tensor:
        if all(x.untyped_storage().data_ptr() != each.untyped_storage().data_ptr() for each in given):
            kept.append(x.numel())
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        y = view(SINKS, 1024, 1024).attend(*given, 1.0, 0.0)
    assert sum(kept) <= 1024 // 64  # the order of the blocks
    y.sum().backward()
    assert all(each.grad is not None for each in given)


@pytest.mark.parametrize("name", ["window or sinks", "window of documents"])
def test_functions_of_torch_func_see_the_same(name: str, small: None) -> None:
    """Gradients of functions, which are not computed again, and those of tensors."""
    data = {edge: value for edge, value in edges(26).items() if edge in MASKS[name].edge_types()}
    found = view(MASKS[name], 26, 26, **data)
    given = tuple(torch.randn(2, 2, 26, 4, requires_grad=True) for _ in range(3))
    weights = torch.randn(2, 2, 26, 4)
    loss = lambda *given: (found.attend(*given, 0.5, 0.0) * weights).sum()  # noqa: E731
    of_function = torch.func.grad(loss, argnums=(0, 1, 2))(*given)
    of_tensors = torch.autograd.grad(loss(*given), given)
    for one, other in zip(of_function, of_tensors, strict=True):
        torch.testing.assert_close(one, other)


def test_only_what_is_trained_has_a_gradient(small: None) -> None:
    """Queries alone, as where keys and values come from a frozen encoder."""
    q, k, v = (torch.randn(1, 2, 26, 4) for _ in range(3))
    view(SINKS, 26, 26).attend(q.requires_grad_(), k, v, 0.5, 0.0).sum().backward()
    assert q.grad is not None
    assert k.grad is v.grad is None


def test_what_is_kept_in_inference_serves_training() -> None:
    """The first call may be made where gradients are forbidden."""
    block_sparse.visible_groups.cache_clear()
    block_sparse.kept_patterns.cache_clear()
    with torch.inference_mode():
        view(SINKS, 320, 320).attend(*(torch.randn(1, 2, 320, 4) for _ in range(3)), 1.0, 0.0)
    matches_formula(view(SINKS, 320, 320), view(SINKS, 320, 320).dense(), 320, 320)


def test_the_blocks_are_known_without_numbers() -> None:
    """On the meta device, for a shape alone."""
    with torch.device("meta"):
        found = view(SINKS, 448, 448)
        assert type(found).__name__ == "BlockSparseView"
        assert found.attend(*(torch.randn(2, 4, 448, 6) for _ in range(3)), 1.0, 0.0).shape == (2, 4, 448, 6)


RECIPE = """
recipe: long
language: 1
task: causal_lm
inputs:
  tokens: int[batch, time]
  documents: int[batch, time]?
graph:
  embed: {type: embedding, vocab: 50, dim: 16}
  layers:
    repeat: 2
    graph:
      attn:
        type: residual
        norm: rmsnorm
        body: {type: attention, heads: 4, kv_heads: 2, mask: causal and (window(20) or global_first(3)) and documents(documents)}
  head: {type: linear, out: 50}
outputs: {logits: head}
"""


@pytest.mark.parametrize("given", [False, True])
def test_a_long_text_equals_a_session_over_its_parts(given: bool) -> None:
    """One call computes blocks, and the calls of a session the dense matrix."""
    model: Any = composer.load(RECIPE).compile(seed=0, dtype=torch.float64).eval()
    torch.manual_seed(0)
    tokens = torch.randint(50, (2, 300))
    ids = torch.tensor([[0] * 100 + [1] * 200, [3] * 290 + [4] * 10])
    data = [{"documents": ids[:, part]} if given else {} for part in (slice(None), slice(0, 140), slice(140, None))]
    whole = model(tokens=tokens, **data[0]).logits
    with session(model):
        parts = [model(tokens=tokens[:, :140], **data[1]).logits, model(tokens=tokens[:, 140:], **data[2]).logits]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-12)
