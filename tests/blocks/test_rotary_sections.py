"""Rotary positions of several coordinates, against the models they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import PixtralVisionConfig, Qwen2VLTextConfig, Qwen3VLTextConfig, Sam2VideoConfig
from transformers.models.pixtral.modeling_pixtral import PixtralVisionRotaryEmbedding
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import (
    Qwen2VLRotaryEmbedding,
    Qwen2VLVisionRotaryEmbedding,
    apply_rotary_pos_emb,
)
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding
from transformers.models.sam2_video.modeling_sam2_video import Sam2VideoVisionRotaryEmbedding, apply_rotary_pos_emb_2d

import composer
from blocks.positions.rotary import Rotary
from blocks.positions.scaling import LinearScaling
from tests.blocks.build import plain

HEAD, T = 16, 7
Table = tuple[torch.Tensor, torch.Tensor]


def of_text(rope: type[torch.nn.Module], config: type[Any], sections: list[int], **more: Any) -> Callable[..., Table]:
    parameters = {"rope_type": "default", "rope_theta": 300.0, "mrope_section": sections, **more}
    made = rope(config(hidden_size=2 * HEAD, num_attention_heads=2, head_dim=HEAD, rope_parameters=parameters))
    return lambda x, at: made(x, at.movedim(-1, 0))


def of_image(rope: type[torch.nn.Module], config: Any) -> Callable[..., Table]:
    made = rope(config)
    return lambda x, at: tuple(part[None] for part in made(x, at[0]))  # type: ignore[return-value]  # two parts


AXIAL = {"rope_type": "axial", "rope_theta": 300.0}
CASES: dict[str, tuple[Rotary, Callable[..., Table], int]] = {
    "qwen2_vl": (Rotary(sections=(2, 3, 3)), of_text(Qwen2VLRotaryEmbedding, Qwen2VLTextConfig, [2, 3, 3]), 2),
    "qwen2_vl_scaled": (
        Rotary(sections=(2, 3, 3), scaling=LinearScaling(factor=2)),
        of_text(Qwen2VLRotaryEmbedding, Qwen2VLTextConfig, [2, 3, 3], rope_type="linear", factor=2.0),
        2,
    ),
    "qwen3_vl": (
        Rotary(sections=(4, 3, 1), arrangement="interleaved"),
        of_text(Qwen3VLTextRotaryEmbedding, Qwen3VLTextConfig, [4, 3, 1]),
        2,
    ),
    "qwen2_vl_vision": (
        Rotary(sections=(4, 4), arrangement="repeated"),
        of_image(Qwen2VLVisionRotaryEmbedding, Qwen2VLVisionConfig(embed_dim=2 * HEAD, num_heads=2, rope_parameters=AXIAL)),
        1,
    ),
    "pixtral": (
        Rotary(sections=(4, 4), arrangement="alternating"),
        of_image(
            PixtralVisionRotaryEmbedding, PixtralVisionConfig(hidden_size=2 * HEAD, num_attention_heads=2, rope_parameters=AXIAL)
        ),
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sections_turn_by_their_coordinates(name: str) -> None:
    """With the frequencies of the model that arranges them so."""
    rotary, reference, rows = CASES[name]
    torch.manual_seed(0)
    q, at = torch.randn(rows, 3, T, HEAD), torch.randint(60, (rows, T, rotary.coordinates() or 0))
    run = plain(rotary.model_copy(update={"theta": 300.0}), head_dim=HEAD)
    expected, _ = apply_rotary_pos_emb(q, q, *reference(q, at))
    torch.testing.assert_close(run.rotate(q, run.prepare(torch.arange(T), at)), expected, rtol=0, atol=1e-5)


def test_neighboring_channels_turn_by_row_and_column_as_in_sam2() -> None:
    """By numbers that need not be whole."""
    config = Sam2VideoConfig(
        memory_attention_hidden_size=HEAD,
        memory_attention_downsample_rate=1,
        memory_attention_num_attention_heads=1,
        rope_parameters=AXIAL,
    )
    q, at = torch.randn(1, 2, T, HEAD), torch.rand(T, 2) * 9
    cos, sin = Sam2VideoVisionRotaryEmbedding(config)(q, at)
    expected, _ = apply_rotary_pos_emb_2d(q, q, cos, sin)
    run = plain(Rotary(theta=300, layout="interleaved", sections=(4, 4), arrangement="repeated"), head_dim=HEAD)
    torch.testing.assert_close(run.rotate(q, run.prepare(torch.arange(T), at)), expected, rtol=0, atol=1e-5)


def test_without_coordinates_all_sections_turn_by_the_position() -> None:
    """As where all coordinates are the position."""
    for sections, arrangement in (((2, 3, 3), "consecutive"), ((3, 5), "repeated"), ((5, 3), "alternating")):
        run = plain(Rotary(sections=sections, arrangement=arrangement), head_dim=HEAD)
        at = torch.arange(3, 3 + T)
        equal = at[:, None].expand(T, len(sections))
        for ours, theirs in zip(run.prepare(at), run.prepare(at, equal), strict=True):
            assert torch.equal(ours, theirs)


RECIPE = """
recipe: turned
inputs:
  x: float[batch, time, 32]
  place: int[batch, time, 3]
  memory: float[batch, source, 32]
  there: int[batch, source, 3]
graph: {attn: {type: attention, heads: 2, positions: {type: rotary, %s}, in: {x: x%s}}}
"""


@pytest.mark.parametrize(
    ("fields", "wires", "message"),
    [
        ("sections: [2, 3, 2]", ", coordinates: place", "sections of 2 + 3 + 2 pairs are 7, and 8 pairs"),
        ("sections: [4, 4]", ", coordinates: place", "attention encodes 2 coordinates of a token, and is given 3"),
        ("theta: 100", ", coordinates: place", "attention has no positions that are encoded by coordinates"),
        ("arrangement: repeated", "", "there are no sections to arrange"),
        (
            "sections: [2, 3, 3], arrangement: interleaved",
            ", coordinates: place",
            "section 2 has 2 of 8 pairs at most, not 3",
        ),
        ("sections: [2, 3, 3]", ", coordinates: place, memory: memory", "attention is given coordinates of queries alone"),
        ("sections: [2, 3, 3]", ", memory_coordinates: there", "attention computes no keys from a memory"),
    ],
)
def test_coordinates_that_nothing_turns_by_are_refused(fields: str, wires: str, message: str) -> None:
    """Where the recipe is checked."""
    errors = [found for found in composer.load(RECIPE % (fields, wires)).check() if found.severity == "error"]
    assert len(errors) == 1
    assert message in errors[0].message
