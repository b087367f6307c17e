"""The worked examples of docs/language.md that stand for ideas of papers, each against the idea as a plain loop."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import composer
from tests.docs.test_language import ALL, PAGE, recipe_text

TITLE = "## What nodes say"
B, T, D = 2, 5, 32


def model(word: str) -> composer.Model:
    """Return the one model of the section whose example has a word, with parameters that are far from their start."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = lines.index(TITLE)
    last = next(number for number in range(first + 1, len(lines)) if lines[number].startswith("## "))
    (example,) = (each for each in ALL if first < each.line <= last and word in each.text)
    made = composer.load(recipe_text(example)).compile(seed=0).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for each in made.parameters():
            each.add_(torch.randn(each.shape, generator=generator), alpha=0.2)
    return made


def numbers() -> Tensor:
    return torch.randn(B, T, D, generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def test_positions_halt_by_themselves() -> None:
    """Each position alone, in a loop that it leaves."""
    ours, x = model("whole:").double(), numbers().double()
    steps, expected, counts = ours.steps, torch.zeros(B, T, D).double(), set()
    for row in range(B):
        for t in range(T):
            h, spent = x[row, t], torch.zeros(()).double()
            for number in range(1, 7):
                h = h + steps.state.body(steps.state.norm(h))
                chance = torch.sigmoid(steps.score(h))[0]
                if spent + chance > 0.99 or number == 6:
                    expected[row, t] += (1 - spent) * h
                    counts.add(number)
                    break
                expected[row, t] += chance * h
                spent = spent + chance
    assert len(counts) > 1, "positions halt at different steps"
    torch.testing.assert_close(ours(x).out, ours.out(expected), rtol=0, atol=1e-10)


@torch.no_grad()
def test_each_head_has_a_gate() -> None:
    """Against one head after another."""
    ours, x = model("gates:").double(), numbers().double()
    q, k, v = (each(x).split(8, dim=-1) for each in (ours.attn.q, ours.attn.k, ours.attn.v))
    heads = [F.scaled_dot_product_attention(*each, is_causal=True) for each in zip(q, k, v, strict=True)]
    gated = torch.cat([head * torch.sigmoid(ours.gates(x)[..., n, None]) for n, head in enumerate(heads)], dim=-1)
    torch.testing.assert_close(ours(x).out, ours.out(gated), rtol=0, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_angles_have_the_dtype_of_the_model(dtype: torch.dtype) -> None:
    """In float32 they are those of `rotary`; in bfloat16, those of a table in bfloat16, which are others."""
    ours, x = model("own_rotary").to(dtype), numbers().to(dtype)
    table = torch.arange(T).to(dtype)[:, None] * torch.tensor([1e4 ** (-2 * f / 8) for f in range(4)]).to(dtype)
    cos, sin = table.cos()[:, None], table.sin()[:, None]  # [T, 1, pairs]

    def turned(of: Tensor) -> Tensor:
        low, high = of.view(B, T, 4, 8).chunk(2, dim=-1)
        return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)

    q, k, v = turned(ours.q(x)), turned(ours.k(x)), ours.v(x).view(B, T, 4, 8)
    attended = F.scaled_dot_product_attention(*(each.transpose(1, 2) for each in (q, k, v)), is_causal=True)
    expected = ours.out(attended.transpose(1, 2).flatten(2))
    torch.testing.assert_close(ours(x).out, expected, rtol=0, atol=1e-5 if dtype is torch.float32 else 0.02)
    block = "{type: attention, heads: 4, mask: causal, positions: rotary}"
    whole = composer.load(f'recipe: whole\ninputs: {{x: "float[batch, time, 32]"}}\ngraph: {{attn: {block}}}\n').compile(seed=0)
    whole.attn.load_state_dict(
        {name: each for name, each in ours.state_dict().items() if name.count(".") == 1 and "one" not in name}
    )
    if dtype is torch.float32:
        torch.testing.assert_close(ours(x).out, whole(x).attn, rtol=0, atol=1e-5)


def test_a_product_of_reflections_is_orthogonal() -> None:
    """Lengths and angles stay, also after a step of training, and the rotation is learned."""
    ours, x = model("reflected").double(), numbers().double()
    target = torch.randn(B, T, 8, generator=torch.Generator().manual_seed(3)).double()
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    matrices = []
    for _ in range(2):
        matrix = torch.eye(D).double()
        for number in range(4):
            v = ours.turned[number].v.weight
            matrix = matrix - 2 * torch.outer(v, matrix.T @ v) / (v @ v)
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(D).double(), rtol=0, atol=1e-10)
        out = ours(x).out
        torch.testing.assert_close(out, ours.out(x @ matrix.T), rtol=0, atol=1e-10)
        matrices.append(matrix.detach())
        optimizer.zero_grad()
        F.mse_loss(out, target).backward()
        optimizer.step()
    assert (matrices[0] - matrices[1]).abs().max() > 1e-4
