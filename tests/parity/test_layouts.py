"""A layout of published tensors that no recipe of the zoo reads so, against transformers' implementation."""

from __future__ import annotations

import torch
from transformers import GemmaConfig, GemmaForCausalLM

import composer
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from tests.parity.reference import perturbed, published

GEMMA = """
recipe: gemma
doc: Gemma, whose gains are stored less 1, with plain norms.
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 53, dim: 48, scale: sqrt(48)}
  layers:
    repeat: 2
    graph:
      attn:
        type: residual
        norm: rmsnorm
        body: {type: attention, heads: 3, kv_heads: 1, head_dim: 8, mask: causal, positions: rotary}
      ffn: {type: residual, norm: rmsnorm, body: {type: gated_ffn, hidden: 56, activation: gelu_tanh}}
  norm: rmsnorm
  head: {type: linear, out: 53, bias: false, tie: {weight: embed.weight}}
outputs: {logits: head}
checkpoints:
  gemma:
    strip_prefix: model.
    rules:
      embed.weight: embed_tokens.weight
      layers.<layer>.attn.norm.weight: {from: layers.<layer>.input_layernorm.weight, offset: 1}
      layers.<layer>.attn.body.(q|k|v|out).weight: layers.<layer>.self_attn.(q|k|v|o)_proj.weight
      layers.<layer>.ffn.norm.weight: {from: layers.<layer>.post_attention_layernorm.weight, offset: 1}
      layers.<layer>.ffn.body.(gate|up|down).weight: layers.<layer>.mlp.(gate|up|down)_proj.weight
      norm.weight: {from: norm.weight, offset: 1}
    copies: {lm_head.weight: embed_tokens.weight}
"""
WIDTHS = {"vocab_size": 53, "hidden_size": 48, "num_hidden_layers": 2}
CONFIG = GemmaConfig(
    vocab_size=53, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=8,
    intermediate_size=56,
)  # fmt: skip


@torch.no_grad()
def test_a_model_with_this_layout_loads_and_comes_back() -> None:
    """The logits are those of transformers; the weights come back bit for bit, gains with an offset to the last place of 1."""
    reference = perturbed(GemmaForCausalLM(CONFIG))
    theirs = published(reference)
    recipe = composer.load(GEMMA)
    assert [str(wrong) for wrong in recipe.check() if wrong.severity == "error"] == []
    model = recipe.compile(seed=0).eval()
    load_published(model, theirs)
    tokens = torch.randint(53, (2, 11), generator=torch.Generator().manual_seed(2))
    expected = reference(tokens).logits
    torch.testing.assert_close(model(tokens).logits, expected, rtol=0, atol=1e-5 * expected.abs().max().item())

    assert recipe.checkpoints is not None
    made = mapping(recipe.checkpoints, None, shapes_of(model.state_dict()), recipe.program.untyped.params)
    saved, found = made.save(model.state_dict()), made.found(theirs)
    assert found.keys() - saved.keys() <= {copy.name for copy in made.rules.copies} and saved.keys() <= found.keys()
    for key, tensor in saved.items():
        if key.endswith("norm.weight"):
            torch.testing.assert_close(tensor, theirs[found[key]], rtol=0, atol=2.0**-24)
        else:
            assert torch.equal(tensor, theirs[found[key]]), key
