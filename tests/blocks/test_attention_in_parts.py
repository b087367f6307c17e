"""Attention by its formula, or with a bias, of which not all scores are there at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import composer
from blocks.attention import explicit
from blocks.attention.attention import Attention
from blocks.attention.scaled_dot_product import ScaledDotProduct
from blocks.core import NodeRef
from blocks.masks.data_masks import Valid
from blocks.masks.operators import And
from blocks.masks.position_masks import Causal, Window
from tests.blocks.build import Attend

B, T, H, DIM = 2, 11, 4, 24
WHOLE = 10**9
VALID = Valid(flags=NodeRef("real"))
REAL = torch.tensor([[True] * 8 + [False] * 3, [False] * 11])
CASES: dict[str, dict[str, Any]] = {
    "softcap": {"softcap": 1.5, "scale": 2.0},
    "causal softcap": {"softcap": 1.5, "mask": Causal()},
    "window and sinks": {"sinks": True, "kv_heads": 2, "mask": And(left=Causal(), right=Window(width=3))},
    "padding and sinks": {"sinks": True, "kv_heads": 1, "mask": VALID},
    "hidden rows": {"softcap": 3.0, "value_dim": 5, "mask": And(left=Causal(), right=VALID)},
    "bias": {"bias": True},
    "causal bias": {"bias": True, "kv_heads": 2, "mask": Causal()},
    "bias and padding": {"bias": True, "mask": VALID},
    "all of them": {"bias": True, "kv_heads": 2, "softcap": 1.5, "sinks": True, "mask": And(left=Causal(), right=VALID)},
}


@pytest.fixture(params=[1, 200, 300])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Parts of one query, of two and of three: the last is not divided evenly by any but the first."""
    monkeypatch.setattr(explicit, "AT_A_TIME", request.param)
    yield monkeypatch


def made(name: str, **more: Any) -> tuple[Attend, dict[str, Any]]:
    """Return the attention of a case, and what it is called with."""
    fields = dict(CASES[name])
    torch.manual_seed(0)
    given: dict[str, Any] = {"x": torch.randn(B, T, DIM, dtype=torch.float64, requires_grad=True)}
    if fields.pop("bias", False):
        given["bias"] = torch.randn(H, T, T, dtype=torch.float64, requires_grad=True)
    if "real" in str(fields.get("mask")):
        given["edges"] = {"real": REAL}
    return Attend(Attention(heads=H, **fields, **more), dim=DIM).double(), given


def gradients(attention: Attend, given: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the output, and its gradients to the inputs and the parameters."""
    y = attention(**given)
    sought = [*(value for value in given.values() if isinstance(value, torch.Tensor)), *attention.parameters()]
    weights = torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view_as(y)
    return (y.detach(), *torch.autograd.grad((weights * y).sum(), sought))


@pytest.mark.parametrize("name", CASES)
def test_parts_are_the_whole(few, name):
    """The output and all gradients, with rows that see no key, and with nothing kept for a backward pass."""
    attention, given = made(name)
    found = gradients(attention, given)
    with torch.no_grad():
        torch.testing.assert_close(attention(**given), found[0], rtol=0, atol=1e-12)
    few.setattr(explicit, "AT_A_TIME", WHOLE)
    torch.testing.assert_close(found, gradients(attention, given), rtol=0, atol=1e-12)


def test_the_primitive_too(few):
    """`scaled_dot_product` with a bias for each row."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(B, T, 8, dtype=torch.float64) for _ in range(3))
    attention = Attend(ScaledDotProduct(heads=H, mask=Causal()), query_dim=8, key_dim=8, values_dim=8)
    given = {"q": q, "k": k, "v": v, "bias": torch.randn(B, H, T, T, dtype=torch.float64)}
    found = attention(**given)
    few.setattr(explicit, "AT_A_TIME", WHOLE)
    torch.testing.assert_close(found, attention(**given), rtol=0, atol=1e-12)


def test_the_backward_pass_drops_what_the_forward_dropped(monkeypatch):
    """Numerical gradients, with the same random numbers in each call."""
    monkeypatch.setattr(explicit, "AT_A_TIME", 2 * H * 5)
    attention, given = made("causal softcap", dropout=0.4)

    def run(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        y: torch.Tensor = attention(x=x)
        return y

    assert torch.autograd.gradcheck(run, given["x"][:1, :5].detach().requires_grad_(), fast_mode=True)


def test_gradients_have_gradients(monkeypatch):
    """Through what is computed again."""
    monkeypatch.setattr(explicit, "AT_A_TIME", 2 * H * 5)
    attention, given = made("window and sinks")
    x = given["x"][:1, :5].detach().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: attention(x=x), x, fast_mode=True)


def test_functional_transforms_compute_the_whole(few):
    """`torch.func.grad`, which cannot compute again, and `vmap`, which cannot read masks."""
    attention, given = made("hidden rows")
    x = given["x"].detach()
    loss = lambda x, real: attention(x=x, edges={"real": real}).square().sum()  # noqa: E731
    found = torch.func.grad(loss)(x, REAL)
    rows = torch.func.vmap(torch.func.grad(lambda x, real: loss(x[None], real[None])))(x, REAL)
    torch.testing.assert_close(rows, found, rtol=0, atol=1e-12)


class Largest(TorchDispatchMode):
    """The most numbers in a tensor that an operator returned."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        sizes = [each.untyped_storage().nbytes() // each.element_size() for each in tree_leaves(found) if torch.is_tensor(each)]
        self.most = max(self.most, *sizes, 0)
        return found


@pytest.mark.slow
@pytest.mark.parametrize("fields", ["softcap: 2", "sinks: true", "softcap: 2, sinks: true, mask: causal"])
def test_no_matrix_of_all_scores_is_made(fields):
    """Neither by the forward nor by the backward pass of a generated model: 4 · 1,000 · 1,000 scores, in parts of 2²⁰."""
    graph = f"graph: {{y: {{type: attention, heads: 4, {fields}}}}}\noutputs: {{y: y}}\n"
    text = f'recipe: a\nlanguage: 1\ninputs: {{x: "float[batch, time, 16]"}}\n{graph}'
    model = composer.load(text).compile(seed=0)
    x = torch.randn(1, 1000, 16, requires_grad=True)
    with Largest() as seen:
        model(x).y.sum().backward()
    assert 10**6 <= seen.most <= 1.01 * explicit.AT_A_TIME  # a mask of all pairs, or the scores of a part with the sinks


def test_a_part_has_the_keys_that_it_sees(monkeypatch):
    """A causal window of three: two queries see at most four keys."""
    attention, given = made("window and sinks")
    monkeypatch.setattr(explicit, "AT_A_TIME", 2 * B * H * T)
    seen = []
    formula = explicit.attention_by_formula
    spy = lambda q, k, *args, **named: seen.append((q.shape[2], k.shape[2])) or formula(q, k, *args, **named)  # noqa: E731
    monkeypatch.setattr("blocks.attention.attention.attention_by_formula", spy)
    with torch.no_grad():
        attention(**given)
    assert seen == [(2, 2), (2, 4), (2, 4), (2, 4), (2, 4), (1, 3)]
