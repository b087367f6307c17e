"""Latent attention against plain loops, whole and in steps that leave its keys and values in the latent."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import composer
from composer.decode import session
from tests.blocks.test_attention import by_loops

B, T, DIM, H, R, N, P, V = 2, 9, 12, 3, 10, 6, 4, 5
SIZES = f"heads: {H}, kv_rank: {R}, nope_dim: {N}, rope_dim: {P}, value_dim: {V}"
ROTARY = "{type: rotary, theta: 30, layout: interleaved}"
MASKS = {
    "causal": lambda b, t, s: s <= t,
    "causal and window(3)": lambda b, t, s: t - 2 <= s <= t,
    "causal and valid(valid)": lambda b, t, s: s <= t and (s >= 2 or b == 0),
    "causal and documents(documents)": lambda b, t, s: s <= t and s // 4 == t // 4,
}
VALID = torch.ones(B, T, dtype=torch.bool)
VALID[1, :2] = False
GIVEN = {"valid": VALID, "documents": torch.arange(T).expand(B, T) // 4}


def model_of(mask: str = "causal", more: str = "", *, share: str = "false", layers: int = 1) -> Any:
    """Return a model that writes vectors, in float64, whose layers are latent attention alone."""
    edges = "".join(f"  {name}: {'bool' if name == 'valid' else 'int'}[batch, time]\n" for name in GIVEN if name in mask)
    text = f"""recipe: latent
task: causal_lm
inputs:
  tokens: int[batch, time]
{edges}graph:
  embed: {{type: embedding, vocab: 31, dim: {DIM}}}
  layers:
    repeat: {layers}
    share: {share}
    graph:
      attn: {{type: latent_attention, {SIZES}, mask: "{mask}", {more}}}
  head: {{type: linear, out: 31}}
outputs: {{logits: head, y: layers}}
"""
    model = composer.load(text).compile(seed=0).double().eval()
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, mean=float("norm" in name), std=0.4)
    return model


def tokens() -> torch.Tensor:
    return torch.randint(31, (B, T), generator=torch.Generator().manual_seed(1))


def given(mask: str) -> dict[str, torch.Tensor]:
    return {name: value for name, value in GIVEN.items() if name in mask}


def turned(x: torch.Tensor) -> torch.Tensor:
    """Rotate the channels 2i and 2i + 1 of x [B, T, H, P] by angles of their own, one number at a time."""
    y = torch.empty_like(x)
    for t in range(x.shape[1]):
        for i in range(0, x.shape[-1], 2):
            angle = torch.tensor(t / 30 ** (i / x.shape[-1]), dtype=torch.float32)
            a, b = x[:, t, :, i], x[:, t, :, i + 1]
            y[:, t, :, i], y[:, t, :, i + 1] = a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()
    return y


@torch.no_grad()
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("more", [f"positions: {ROTARY}, q_rank: 7", "norm: none, scale: 0.3"], ids=["rotary", "bare"])
def test_it_is_the_loop_over_keys_that_are_multiplied_out(mask: str, more: str) -> None:
    """Of each head: its own channels beside those that all heads share, which alone are rotated."""
    model = model_of(mask, more)
    block = model.layers[0].attn
    x = model.embed(tokens())
    encoded = turned if "rotary" in more else torch.clone
    normed = (lambda z: nn.functional.rms_norm(z, z.shape[-1:], eps=1e-6)) if "rotary" in more else torch.clone
    if "q_rank" in more:
        q = (normed(x @ block.q_down.weight.T) * block.q_norm.weight) @ block.q_up.weight.T
    else:
        q = x @ block.q.weight.T
    q_nope, q_rope = q.unflatten(-1, (H, N + P)).split([N, P], dim=-1)
    latent, k_rope = (x @ block.kv_down.weight.T).split([R, P], dim=-1)
    latent = normed(latent) * (block.kv_norm.weight if "rotary" in more else 1)
    k_nope, v = (latent @ block.kv_up.weight.T).unflatten(-1, (H, N + V)).split([N, V], dim=-1)
    k_rope = encoded(k_rope[:, :, None]).expand(-1, -1, H, -1)
    scale = 0.3 if "scale" in more else (N + P) ** -0.5
    q, k = torch.cat([q_nope, encoded(q_rope)], dim=-1), torch.cat([k_nope, k_rope], dim=-1)
    expected = by_loops(q, k, v, scale=scale, sees=MASKS[mask]) @ block.out.weight.T
    torch.testing.assert_close(model(tokens(), **given(mask)).y, expected, rtol=0, atol=1e-6)  # angles are of float32


@torch.no_grad()
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("share", ["false", "true"])
def test_steps_that_absorb_the_maps_are_the_whole_call(mask: str, share: str) -> None:
    """To rounding, though no step computes a key or a value; each pass of shared weights has latents of its own."""
    model = model_of(mask, f"positions: {ROTARY}, q_rank: 7", share=share, layers=2)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        model.to(dtype)
        whole = model(tokens(), **given(mask)).logits
        with session(model):
            first, *later = zip(*(x.split([4, 1, 1, 3], dim=1) for x in (tokens(), *given(mask).values())), strict=True)
            steps = [model(first[0], **dict(zip(given(mask), first[1:], strict=True))).logits]
            with pytest.MonkeyPatch.context() as patch:
                for name, module in model.named_modules():
                    if name.endswith("kv_up"):
                        patch.setattr(module, "forward", None)
                steps += [model(part[0], **dict(zip(given(mask), part[1:], strict=True))).logits for part in later]
        torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=tolerance)


@torch.no_grad()
@pytest.mark.parametrize(("rank", "queries"), [(10, 1), (10, 5), (64, 1), (64, 20), (64, 60), (3, 1), (3, 20)])
def test_a_step_takes_the_form_of_fewer_flops(rank: int, queries: int) -> None:
    """Of those that torch counts, but for the other maps, which either form has."""
    text = f"""recipe: one
task: causal_lm
inputs: {{tokens: "int[batch, time]"}}
graph:
  embed: {{type: embedding, vocab: 31, dim: {DIM}}}
  attn: {{type: latent_attention, {SIZES.replace(f"rank: {R}", f"rank: {rank}")}, mask: causal}}
  head: {{type: linear, out: 31}}
outputs: {{logits: head}}
"""
    model, before = composer.load(text).compile(seed=0).eval(), 20
    keys = before + queries
    with session(model):
        model(torch.zeros(1, before, dtype=torch.long))
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros(1, queries, dtype=torch.long))
    others = queries * (DIM * H * (N + P) + DIM * (rank + P) + H * V * DIM + DIM * 31)
    absorbed = queries * H * rank * (N + V) + queries * keys * H * (2 * rank + P)
    multiplied = keys * H * rank * (N + V) + queries * keys * H * (N + P + V)
    assert counter.get_total_flops() == 2 * (others + min(absorbed, multiplied))


def test_a_session_keeps_the_latent_and_one_key_alone() -> None:
    """The published number: 60 layers of 512 + 64 numbers, 67.5 KiB a token in bfloat16."""
    assert composer.load("deepseek_v2").summary().to_json()["cache_bytes_per_token"]["bf16"] == 60 * (512 + 64) * 2
    model = model_of(layers=2, more=f"positions: {ROTARY}")
    with session(model) as opened, torch.no_grad():
        model(tokens())
        every = [rows.buffer for cache in opened._contents.caches for run in cache.runs for rows in run.rows.values()]
    kept = [buffer for buffer in every if buffer is not None]
    kept = [buffer for buffer in kept if buffer.is_floating_point()]  # not the positions
    assert [buffer.shape[-1] for buffer in kept] == 2 * [R, P]
    assert {buffer.shape[:-2] for buffer in kept} == {(B,)}
