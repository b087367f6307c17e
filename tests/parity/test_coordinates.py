"""Models whose rotary positions have several coordinates, against transformers."""

from __future__ import annotations

import torch
from transformers import PixtralVisionConfig, PixtralVisionModel, Qwen2VLTextConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLTextModel

import composer
from composer.decode.session import session
from composer.weights import load_published
from tests.parity.reference import perturbed
from tests.parity.test_transformers import close

TEXT = """
recipe: qwen2_vl_text
extends: qwen2
params: {vocab: 31, d_model: 32, n_layers: 2, n_heads: 2, n_kv_heads: 1, hidden: 40, theta: 300, tied: true}
inputs: {place: "int[batch, time, 3]?"}
graph:
  layers:
    graph:
      attn: {body: {positions: {sections: [2, 3, 3]}, in: {coordinates: place}}}
"""
IMAGE = """
recipe: pixtral_vision
params: {d_model: 32, n_layers: 2, patch_size: 4, rows: 3, columns: 5}
inputs: {image: "float[batch, 3, patch_size * rows, patch_size * columns]"}
graph:
  patches: {type: patch_embedding, patch_size: patch_size, dim: d_model, bias: false, in: image}
  pre: {type: rmsnorm, eps: 1e-5}
  place:
    type: constant
    over: {patch: rows * columns, coordinate: 2}
    value: patch // columns * (coordinate < 1) + patch % columns * coordinate
  layers:
    repeat: n_layers
    in: pre
    graph:
      attn:
        type: residual
        norm: {type: rmsnorm, eps: 1e-5}
        body:
          type: attention
          heads: 2
          positions: {type: rotary, theta: 300, sections: [4, 4], arrangement: alternating}
          in: {coordinates: place}
      ffn: {type: residual, norm: {type: rmsnorm, eps: 1e-5}, body: {type: gated_ffn, hidden: 40}}
outputs: {y: layers}
checkpoints:
  pixtral:
    rules:
      patches.weight: patch_conv.weight
      pre.weight: ln_pre.weight
      layers.<layer>.attn.norm.weight: transformer.layers.<layer>.attention_norm.weight
      layers.<layer>.attn.body.(q|k|v|out).weight: transformer.layers.<layer>.attention.(q|k|v|o)_proj.weight
      layers.<layer>.ffn.norm.weight: transformer.layers.<layer>.ffn_norm.weight
      layers.<layer>.ffn.body.(gate|up|down).weight: transformer.layers.<layer>.feed_forward.(gate|up|down)_proj.weight
"""


@torch.no_grad()
def test_a_text_with_an_image_is_placed_as_in_qwen2_vl() -> None:
    """By time, row and column, also token by token; without coordinates, as a text alone."""
    config = Qwen2VLTextConfig(
        vocab_size=31,
        hidden_size=32,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        rms_norm_eps=1e-6,
        bos_token_id=None,
        eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 300.0, "mrope_section": [2, 3, 3]},
    )
    reference = perturbed(Qwen2VLTextModel(config))
    weights = {f"model.{name}": tensor for name, tensor in reference.state_dict().items()}
    model = composer.load(TEXT).compile(seed=0).eval()
    load_published(model, {**weights, "lm_head.weight": weights["model.embed_tokens.weight"]}, "qwen2")
    tokens = torch.randint(31, (2, 9), generator=torch.Generator().manual_seed(0))
    # two tokens of text, an image of two rows and three columns, and one more token of text
    image = [[2, 2 + row, 2 + column] for row in range(2) for column in range(3)]
    place = torch.tensor([[0, 0, 0], [1, 1, 1], *image, [5, 5, 5]]).expand(2, -1, -1)
    place = torch.stack([place[0], place[1] + 4])

    def logits(**given: torch.Tensor) -> torch.Tensor:
        return reference(input_ids=tokens, **given).last_hidden_state @ weights["model.embed_tokens.weight"].T

    expected = logits(position_ids=place.movedim(-1, 0))
    close(model(tokens, place=place).logits, expected)
    close(model(tokens).logits, logits())
    for length in (None, 12):
        with session(model, max_length=length):
            parts = zip(tokens.split([5, 1, 3], dim=1), place.split([5, 1, 3], dim=1), strict=True)
            close(torch.cat([model(some, place=at).logits for some, at in parts], dim=1), expected)


@torch.no_grad()
def test_patches_are_placed_as_in_pixtral() -> None:
    """By row and column, which have frequencies in turn."""
    config = PixtralVisionConfig(
        hidden_size=32,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=20,
        patch_size=4,
        hidden_act="silu",
        rope_parameters={"rope_type": "axial", "rope_theta": 300.0},
    )
    reference = perturbed(PixtralVisionModel(config))
    model = composer.load(IMAGE).compile(seed=0).eval()
    load_published(model, reference.state_dict(), "pixtral")
    image = torch.randn(1, 3, 12, 20, generator=torch.Generator().manual_seed(0))
    close(model(image).y, reference(image).last_hidden_state)
