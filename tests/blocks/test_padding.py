"""Attention over rows without the padding around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import composer
from blocks.core import NodeRef
from blocks.masks import plans
from blocks.masks.data_masks import Documents, Valid
from blocks.masks.mask import Mask
from blocks.masks.operators import And, Not
from blocks.masks.plans import runs_of
from blocks.masks.position_masks import Causal
from composer.decode import session
from tests.blocks.test_masks import dense, matches_formula, view

REAL, ALSO = Valid(flags=NodeRef("real")), Valid(flags=NodeRef("also"))
ROWS = {
    "right": "111000000 111111100",
    "left": "000000111 001111111",
    "around": "001110000 011111110",
    "one token": "100000000 000000001",
    "none": "000000000 111111111",
    "neighbors alike": "111100000 111100000",
}
"""Flags of two rows with nine positions."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rows of any length."""
    monkeypatch.setattr(plans, "LONG", 1)
    yield


def flags(text: str) -> torch.Tensor:
    """Return flags [B, S] from rows of zeros and ones."""
    return torch.tensor([[each == "1" for each in row] for row in text.split()])


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("mask", [REAL, And(left=Causal(), right=REAL)], ids=["full", "causal"])
def test_rows_without_padding_equal_the_formula(mask: Mask, rows: str, short: None) -> None:
    """Outputs and gradients of all positions, those of the padding too."""
    real = flags(ROWS[rows])
    found = view(mask, 9, 9, real=real)
    assert type(found).__name__ == "PaddingView"
    allowed = dense(mask, 9, 9, real=real)[:, None]
    assert found.dense().expand_as(allowed).equal(allowed)
    matches_formula(found, allowed, 9, 9)


@pytest.mark.parametrize("rows", ROWS)
def test_a_memory_without_padding_equals_the_formula(rows: str, short: None) -> None:
    """Of another length than the queries."""
    real = flags(ROWS[rows])
    found = view(REAL, 4, 9, real=real)
    assert type(found).__name__ == "PaddingView"
    matches_formula(found, real[:, None, None].expand(2, 1, 4, 9), 4, 9)


def test_of_several_flags_all_count(short: None) -> None:
    """And flags that are absent count for nothing."""
    mask = And(left=REAL, right=And(left=Causal(), right=ALSO))
    given = {"real": flags("011111000 111111111"), "also": flags("111100000 000111111")}
    matches_formula(view(mask, 9, 9, **given), dense(mask, 9, 9, **given)[:, None], 9, 9)
    one = And(left=Causal(), right=ALSO)
    found = view(mask, 9, 9, real=None, also=given["also"])
    assert type(found).__name__ == "PaddingView"
    matches_formula(found, dense(one, 9, 9, also=given["also"])[:, None], 9, 9)


@pytest.mark.parametrize(
    ("mask", "given"),
    [
        (And(left=Causal(), right=REAL), {"real": flags("110111000 111111111")}),  # a gap
        (And(left=Causal(), right=Not(mask=REAL)), {"real": flags("110000000 111111111")}),
        (
            And(left=REAL, right=Documents(ids=NodeRef("doc"))),
            {"real": flags("111000000 110000000"), "doc": torch.zeros(2, 9).int()},
        ),
        (And(left=Causal(), right=REAL), {"real": None}),
    ],
)
def test_what_is_more_than_one_run_is_dense(mask: Mask, given: dict[str, Any], short: None) -> None:
    """Gaps, other data, and nothing that is known."""
    assert type(view(mask, 9, 9, **given)).__name__ == "DenseView"


@pytest.mark.parametrize(("mask", "length", "name"), [
    (And(left=Causal(), right=REAL), 127, "DenseView"), (And(left=Causal(), right=REAL), 128, "PaddingView"),
    (REAL, 255, "DenseView"), (REAL, 256, "PaddingView"),
])  # fmt: skip
def test_short_rows_are_computed_together(mask: Mask, length: int, name: str) -> None:
    """One dense matrix is faster than many small calls."""
    real = torch.arange(length) < torch.tensor([[length // 2], [length]])
    assert type(view(mask, length, length, real=real)).__name__ == name


def test_flags_must_fit(short: None) -> None:
    """One row of flags stands for all; other numbers of rows or of keys are mistakes."""
    mask, qkv = And(left=Causal(), right=REAL), [torch.randn(3, 2, 9, 4) for _ in range(3)]
    one = flags("111110000")
    found, all_three = (view(mask, 9, 9, real=real).attend(*qkv, 1.0, 0.0) for real in (one, one.expand(3, -1)))
    assert found.equal(all_three)
    for wrong in (flags("11110000 11111111 11111110"), flags("111111000 111111100")):
        with pytest.raises(RuntimeError):
            view(mask, 9, 9, real=wrong).attend(*qkv, 1.0, 0.0)


def test_neighboring_rows_of_one_run_are_one_call() -> None:
    """A batch that is sorted by length needs few."""
    assert runs_of(flags("1110 1110 0110 1110 0000")) == [(2, 0, 3), (1, 1, 3), (1, 0, 3), (1, 0, 0)]


def test_padding_is_not_computed() -> None:
    """A quarter of the pairs is left where half of each row is padding."""
    real = torch.arange(512).expand(2, -1) < 256
    found = view(REAL, 512, 512, real=real)
    with FlopCounterMode(display=False) as counter:
        found.attend(*(torch.randn(2, 4, 512, 8) for _ in range(3)), 1.0, 0.0)
    assert counter.get_total_flops() in (0, 2 * 2 * 2 * 4 * 512 * 256 * 8)  # the CPU's kernel is not counted by every torch


RECIPE = """
recipe: padded
language: 1
task: causal_lm
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 50, dim: 16}
  layers:
    repeat: 2
    graph:
      attn: {type: residual, norm: rmsnorm, body: {type: attention, heads: 4, kv_heads: 2, mask: causal and valid(valid)}}
  head: {type: linear, out: 50}
outputs: {logits: head}
"""


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # `vmap` over torch's kernel
@pytest.mark.parametrize("left", [False, True])
def test_padded_rows_equal_a_session_the_compiler_and_vmap(left: bool) -> None:
    """A prompt of 140 tokens, then the rest; one traced program; and rows one by one."""
    model: Any = composer.load(RECIPE).compile(seed=0, dtype=torch.float64).eval()
    torch.manual_seed(0)
    tokens = torch.randint(50, (2, 150))
    valid = torch.arange(150) < torch.tensor([[130], [150]])
    valid = valid.flip(1) if left else valid
    whole = model(tokens=tokens, valid=valid).logits
    with session(model):
        parts = [model(tokens=tokens[:, part], valid=valid[:, part]).logits for part in (slice(0, 140), slice(140, None))]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-12)
    compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(tokens=tokens, valid=valid).logits, whole, rtol=0, atol=1e-12)
    apart = torch.vmap(lambda row, real: model(tokens=row[None], valid=real[None]).logits[0])(tokens, valid)
    torch.testing.assert_close(apart, whole, rtol=0, atol=1e-12)
    exported = torch.export.export(model, (), {"tokens": tokens, "valid": valid})
    torch.testing.assert_close(exported.module()(tokens=tokens, valid=valid).logits, whole, rtol=0, atol=1e-12)
