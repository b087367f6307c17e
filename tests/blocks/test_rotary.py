"""Rotary positions and learned positions, against the models they come from."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as neox_turn
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj_turn
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama_turn

import composer
from blocks.core import BlockError
from blocks.positions.learned import LearnedPositions
from blocks.positions.rotary import Rotary
from blocks.positions.scaling import LinearScaling, Llama3Scaling, ProportionalScaling, Scaling
from blocks.positions.scaling_by_length import DynamicScaling, LongRope
from blocks.positions.yarn import Yarn
from tests.blocks.build import module, plain

HEAD = 16
AT = torch.tensor([[0, 1, 2, 3, 4], [7, 8, 900, 100_000, 3]])  # [B, T]: any positions


def turned(rotary: Rotary, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    run = plain(rotary, head_dim=x.shape[-1])
    return run.rotate(x, run.prepare(at))


LONGEST = 2**17


def llama_config(**rope: Any) -> LlamaConfig:
    return LlamaConfig(
        hidden_size=4 * HEAD, num_attention_heads=4, max_position_embeddings=LONGEST, rope_parameters={"rope_theta": 5e5, **rope}
    )


SCALINGS: list[tuple[Scaling | None, dict[str, Any]]] = [
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
    torch.testing.assert_close(scaled(scaling, plain_frequencies, 5), frequencies, rtol=1e-6, atol=0)
    assert {round(value, 4) for value in ratio.tolist()} >= {1.0, round(1 / 32, 4)}
    assert ((ratio > 0.04) & (ratio < 0.99)).any()


YARN = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}
SHORT, LONG = [1.0 + 0.25 * pair for pair in range(HEAD // 2)], [2.0 + 3 * pair for pair in range(HEAD // 2)]
LONGROPE = {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 64}
ALL_SCALINGS: list[tuple[Scaling, dict[str, Any], int]] = [
    *((scaling, rope, 5) for scaling, rope in SCALINGS if scaling is not None),
    (Yarn(factor=32, original_max_position_embeddings=4096), YARN, 5),
    (Yarn(original_max_position_embeddings=4096), {**YARN, "factor": None}, 5),
    (
        Yarn(factor=32, original_max_position_embeddings=4096, beta_fast=8, beta_slow=2, truncate=False),
        {**YARN, "beta_fast": 8.0, "beta_slow": 2.0, "truncate": False},
        5,
    ),
    (Yarn(factor=32, original_max_position_embeddings=4096, attention_factor=0.7), {**YARN, "attention_factor": 0.7}, 5),
    (
        Yarn(factor=32, original_max_position_embeddings=4096, mscale=0.7, mscale_all_dim=0.3),
        {**YARN, "mscale": 0.7, "mscale_all_dim": 0.3},
        5,
    ),
    (Yarn(factor=32, original_max_position_embeddings=4096, mscale=0.7, mscale_all_dim=0), {**YARN, "mscale": 0.7}, 5),
    (Yarn(factor=0.5, original_max_position_embeddings=9), {**YARN, "factor": 0.5, "original_max_position_embeddings": 9}, 5),
    *(
        (LongRope(short_factor=tuple(SHORT), long_factor=tuple(LONG), original_max_position_embeddings=64), LONGROPE, length)
        for length in (5, 64, 65)
    ),
    (
        LongRope(
            short_factor=tuple(SHORT),
            long_factor=tuple(LONG),
            original_max_position_embeddings=64,
            factor=4,
            attention_factor=1.5,
        ),
        {**LONGROPE, "factor": 4.0, "attention_factor": 1.5},
        65,
    ),
    (ProportionalScaling(), {"rope_type": "proportional"}, 5),
    (
        ProportionalScaling(partial_rotary_factor=0.7, factor=3),
        {"rope_type": "proportional", "partial_rotary_factor": 0.7, "factor": 3.0},
        5,
    ),
    *((DynamicScaling(factor=3), {"rope_type": "dynamic", "factor": 3.0}, length) for length in (5, LONGEST, LONGEST + 1, 10**6)),
]


def scaled(scaling: Scaling, frequencies: torch.Tensor, length: int) -> torch.Tensor:
    """Return the frequencies that a scaling makes of these in a text of so many tokens."""
    return plain(scaling).scale(frequencies, 5e5, LONGEST, torch.tensor([0, length - 1])).view(-1)


@pytest.mark.parametrize(("scaling", "rope", "length"), ALL_SCALINGS)
def test_frequencies_are_scaled_as_in_transformers(scaling: Scaling, rope: dict[str, Any], length: int) -> None:
    """By each kind, with what it takes from the embedding where it is not told, and with the factor of queries and keys."""
    scaling.check_fit(HEAD // 2, 5e5, LONGEST)
    frequencies, amplitude = ROPE_INIT_FUNCTIONS[rope["rope_type"]](llama_config(**rope), device="cpu", seq_len=length)
    plain_frequencies = 1 / 5e5 ** (torch.arange(0, HEAD, 2).float() / HEAD)
    torch.testing.assert_close(scaled(scaling, plain_frequencies, length), frequencies, rtol=1e-6, atol=0)
    assert plain(scaling).amplitude(LONGEST) == pytest.approx(amplitude, rel=1e-12)


@pytest.mark.parametrize("index", [8, 9, 12, 13])
def test_a_text_is_turned_by_the_length_of_its_row(index: int) -> None:
    """A row among longer ones is turned as alone."""
    scaling = ALL_SCALINGS[index][0]
    torch.manual_seed(0)
    q, rotary = torch.randn(2, 3, 5, HEAD), Rotary(theta=5e5, max_position_embeddings=50, scaling=scaling)
    at = torch.tensor([[0, 1, 2, 3, 4], [3, 40, 900, 2, 70]])
    together = turned(rotary, q, at)
    for row in range(2):
        torch.testing.assert_close(turned(rotary, q[row : row + 1], at[row]), together[row : row + 1], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("scaling", "longest", "message"),
    [
        (Yarn(original_max_position_embeddings=4096), None, "^factor is not known"),
        (Yarn(factor=2), None, "^original_max_position_embeddings is not known"),
        (ProportionalScaling(partial_rotary_factor=0.1), None, "0.1 of 8 pairs of channels is less than one"),
        (DynamicScaling(factor=2), None, "the length up to which nothing is scaled is not known"),
        (LongRope(short_factor=(1.0,), long_factor=tuple(LONG), factor=2), 64, "short_factor has 1 number, and 8 pairs"),
        (LongRope(short_factor=tuple(SHORT), long_factor=(1.0, 2.0), factor=2), 64, "long_factor has 2 numbers, and 8 pairs"),
        (
            LongRope(short_factor=tuple(SHORT), long_factor=tuple(LONG), factor=2),
            1,
            "a text of 1 token has no positions to scale",
        ),
    ],
)
def test_a_scaling_that_cannot_be_is_refused(scaling: Scaling, longest: int | None, message: str) -> None:
    """At the field of the scaling."""
    with pytest.raises(BlockError, match=message) as error:
        Rotary(max_position_embeddings=longest, scaling=scaling).check({"head_dim": HEAD}, frozenset())
    assert error.value.field is not None and error.value.field.startswith("scaling")


@pytest.mark.parametrize("scaling", [Yarn(), LongRope(short_factor=tuple(SHORT), long_factor=tuple(LONG))])
def test_a_scaling_that_changes_nothing_is_refused(scaling: Scaling) -> None:
    """It has neither a factor nor the length of pretraining."""
    with pytest.raises(BlockError, match="how much longer the context becomes is not known"):
        scaling.check({}, frozenset())


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


@pytest.mark.parametrize(
    ("scaling", "takes"),
    [
        ("none", False),
        ("{type: linear_scaling, factor: 2}", False),
        ("{type: yarn, factor: 2, original_max_position_embeddings: 8}", False),
        ("{type: yarn, factor: 2}", True),
        ("{type: dynamic_scaling, factor: 2}", True),
    ],
)
def test_a_length_that_has_no_effect_makes_no_difference(scaling: str, takes: bool) -> None:
    """Models that compute the same are the same, though one of them says for how many positions it is made."""
    text = "recipe: one\ninputs: {x: 'float[batch, time, 16]'}\n"
    text += "graph: {attn: {type: attention, heads: 2, positions: {type: rotary, max_position_embeddings: %s, scaling: %s}}}"
    first, second = (composer.load(text % (length, scaling)) for length in (16, 32))
    assert bool(first.diff(second).changes) == takes
