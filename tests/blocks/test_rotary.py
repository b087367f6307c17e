"""Rotary positions and learned positions, against the models they come from."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as neox_turn
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj_turn
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama_turn

from blocks.core import BlockError
from blocks.positions.learned import LearnedPositions
from blocks.positions.rotary import Rotary
from blocks.positions.scaling import LinearScaling, Llama3Scaling, Scaling
from tests.blocks.build import module, plain

HEAD = 16
AT = torch.tensor([[0, 1, 2, 3, 4], [7, 8, 900, 100_000, 3]])  # [B, T]: any positions


def turned(rotary: Rotary, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    run = plain(rotary, head_dim=x.shape[-1])
    return run.rotate(x, run.prepare(at))


def llama_config(**rope: float | str) -> LlamaConfig:
    return LlamaConfig(
        hidden_size=4 * HEAD, num_attention_heads=4, max_position_embeddings=2**17, rope_parameters={"rope_theta": 5e5, **rope}
    )


SCALINGS: list[tuple[Scaling | None, dict[str, float | str]]] = [
    (None, {"rope_type": "default"}),
    (LinearScaling(factor=4), {"rope_type": "linear", "factor": 4.0}),
    (
        Llama3Scaling(factor=32, low_freq_factor=1, high_freq_factor=4, original_max_position_embeddings=64),
        {
            "rope_type": "llama3",
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ),
]


@pytest.mark.parametrize(("scaling", "rope"), SCALINGS)
def test_halves_turn_as_in_llama(scaling: Scaling | None, rope: dict[str, float | str]) -> None:
    """With the scalings of Llama's configuration, at positions of every row's own."""
    torch.manual_seed(0)
    q = torch.randn(2, 3, 5, HEAD)
    cos, sin = LlamaRotaryEmbedding(llama_config(**rope))(q, AT)
    expected, _ = llama_turn(q, q, cos, sin)
    assert torch.equal(turned(Rotary(theta=5e5, scaling=scaling), q, AT), expected)


def test_llama3_scaling_has_slow_fast_and_blended_frequencies() -> None:
    """All three kinds occur in the comparison with transformers, each as it defines them."""
    scaling, rope = SCALINGS[2]
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](llama_config(**rope), device="cpu")
    plain_frequencies = 5e5 ** -(torch.arange(0, HEAD, 2) / HEAD)
    ratio = frequencies / plain_frequencies
    assert scaling is not None
    torch.testing.assert_close(plain(scaling).scale(plain_frequencies), frequencies, rtol=1e-6, atol=0)
    assert {round(value, 4) for value in ratio.tolist()} >= {1.0, round(1 / 32, 4)}
    assert ((ratio > 0.04) & (ratio < 0.99)).any()


def test_interleaved_turns_as_in_gptj() -> None:
    """Neighboring channels pair up."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, HEAD)
    at = torch.tensor([0, 1, 2, 3, 40])
    sin, cos = create_sinusoidal_positions(41, HEAD)[at].expand(2, -1, -1).chunk(2, dim=-1)
    expected = gptj_turn(x.transpose(1, 2), sin, cos).transpose(1, 2)
    torch.testing.assert_close(turned(Rotary(layout="interleaved"), x, at), expected, rtol=0, atol=1e-6)


def test_a_fraction_of_the_channels_turns_as_in_gpt_neox() -> None:
    """The first quarter turns, with the frequencies of its own width; the rest stays, bit for bit."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 32)
    angles = AT[..., None] * 10000.0 ** -(torch.arange(0, 8, 2) / 8)
    table = torch.cat([angles, angles], dim=-1)
    expected, _ = neox_turn(x, x, table.cos(), table.sin())
    found = turned(Rotary(partial_rotary_factor=0.25), x, AT)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert torch.equal(found[..., 8:], x[..., 8:])


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_scores_depend_on_distance_alone(layout: str) -> None:
    """Moving queries and keys together changes nothing."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 3, 6, HEAD, dtype=torch.float32)
    rotary, at = Rotary(theta=100, layout=layout), torch.arange(6)
    here, there = (turned(rotary, q, at + shift) @ turned(rotary, k, at + shift).mT for shift in (0, 50))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-4)


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_bfloat16_is_turned_in_float32(layout: str) -> None:
    """The only rounding is that of the result, far from position 0 as well."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, HEAD, dtype=torch.bfloat16)
    rotary = Rotary(layout=layout)
    assert torch.equal(turned(rotary, x, AT), turned(rotary, x.float(), AT).to(torch.bfloat16))


@pytest.mark.parametrize(("head_dim", "fraction"), [(9, 1.0), (16, 0.2), (16, 0.05), (16, 0.3), (1, 1.0)])
def test_an_odd_number_of_channels_cannot_turn(head_dim: int, fraction: float) -> None:
    """Nor can none, nor a part of one."""
    with pytest.raises(BlockError, match="cannot be rotated in pairs"):
        Rotary(partial_rotary_factor=fraction).check({"head_dim": head_dim}, frozenset())


def test_learned_positions_are_rows_of_a_table() -> None:
    """At any positions, shifted by the offset, as in OPT."""
    block = module(LearnedPositions(max_length=7, offset=2), dim=4)
    x, at = torch.randn(2, 3, 4), torch.tensor([[0, 1, 2], [6, 0, 3]])
    expected = torch.stack([torch.stack([x[b, t] + block.weight[at[b, t] + 2] for t in range(3)]) for b in range(2)])
    assert block.weight.shape == (9, 4)
    assert torch.equal(block(x, at), expected)
    assert torch.equal(block(x, at[1]), x + block.weight[at[1] + 2])


def test_a_position_beyond_the_table_is_named() -> None:
    """Also where the offset's rows would still have room for it."""
    block = module(LearnedPositions(max_length=7, offset=2), dim=4)
    with pytest.raises(IndexError, match="position 7 has no learned vector: there are 7"):
        block(torch.zeros(1, 2, 4), torch.tensor([6, 7]))
