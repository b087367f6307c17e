"""Layouts of published tensors that the zoo has no model of, against transformers' implementations of those that do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    FalconConfig,
    FalconForCausalLM,
    GemmaConfig,
    GemmaForCausalLM,
    GPTJConfig,
    GPTJForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
)

import composer
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from tests.parity.reference import perturbed, published

NEOX = """
recipe: neox
doc: GPT-NeoX, whose queries, keys and values are fused head by head, and whose two branches read the same stream.
task: causal_lm
params: {d_model: 48, n_heads: 3}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 53, dim: d_model}
  layers:
    repeat: 2
    graph:
      attn_norm: {type: layernorm, in: input}
      attn: {type: attention, heads: n_heads, mask: causal, bias: true, positions: {type: rotary, partial_rotary_factor: 0.25}}
      ffn_norm: {type: layernorm, in: input}
      ffn: {type: ffn, hidden: 56, activation: gelu}
      add: {type: add, in: [input, attn, ffn]}
  norm: layernorm
  head: {type: linear, out: 53, bias: false}
outputs: {logits: head}
checkpoints:
  gpt_neox:
    strip_prefix: gpt_neox.
    rules:
      embed.weight: embed_in.weight
      layers.<layer>.attn_norm.*: layers.<layer>.input_layernorm.*
      layers.<layer>.attn.(q|k|v).*: {from: layers.<layer>.attention.query_key_value.*, split: 3, interleave: n_heads}
      layers.<layer>.attn.out.*: layers.<layer>.attention.dense.*
      layers.<layer>.ffn_norm.*: layers.<layer>.post_attention_layernorm.*
      layers.<layer>.ffn.(up|down).*: layers.<layer>.mlp.(dense_h_to_4h|dense_4h_to_h).*
      norm.*: final_layer_norm.*
      head.weight: embed_out.weight
"""
FALCON = """
recipe: falcon
doc: Falcon 40B's kind, whose queries, keys and values are fused group by group.
task: causal_lm
params: {d_model: 48, n_heads: 6, n_kv_heads: 2}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 53, dim: d_model}
  layers:
    repeat: 2
    graph:
      attn_norm: {type: layernorm, in: input}
      attn: {type: attention, heads: n_heads, kv_heads: n_kv_heads, mask: causal, positions: rotary}
      ffn_norm: {type: layernorm, in: input}
      ffn: {type: ffn, hidden: 4 * d_model, activation: gelu, bias: false}
      add: {type: add, in: [input, attn, ffn]}
  norm: layernorm
  head: {type: linear, out: 53, bias: false, tie: {weight: embed.weight}}
outputs: {logits: head}
checkpoints:
  falcon:
    strip_prefix: transformer.
    rules:
      embed.weight: word_embeddings.weight
      layers.<layer>.(attn|ffn)_norm.*: h.<layer>.ln_(attn|mlp).*
      layers.<layer>.attn.(q|k|v).*: {from: h.<layer>.self_attention.query_key_value.*, split: 3, interleave: n_kv_heads}
      layers.<layer>.attn.out.*: h.<layer>.self_attention.dense.*
      layers.<layer>.ffn.(up|down).*: h.<layer>.mlp.(dense_h_to_4h|dense_4h_to_h).*
      norm.*: ln_f.*
    copies: {lm_head.weight: word_embeddings.weight}
"""
GPTJ = """
recipe: gptj
doc: GPT-J, whose rotary positions turn neighboring channels, in the layout of halves.
task: causal_lm
params: {d_model: 48, n_heads: 3, rotated: 12}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 53, dim: d_model}
  layers:
    repeat: 2
    graph:
      norm: layernorm
      attn:
        type: attention
        heads: n_heads
        mask: causal
        positions: {type: rotary, partial_rotary_factor: rotated * n_heads / d_model}
      ffn: {type: ffn, hidden: 4 * d_model, activation: gelu_tanh, in: norm}
      add: {type: add, in: [input, attn, ffn]}
  norm: layernorm
  head: {type: linear, out: 53}
outputs: {logits: head}
checkpoints:
  gptj:
    strip_prefix: transformer.
    rules:
      embed.weight: wte.weight
      layers.<layer>.norm.*: h.<layer>.ln_1.*
      layers.<layer>.attn.(q|k).weight:
        from: h.<layer>.attn.(q|k)_proj.weight
        permute_rotary: {head_dim: d_model // n_heads, rotary_dim: rotated}
      layers.<layer>.attn.(v|out).weight: h.<layer>.attn.(v|out)_proj.weight
      layers.<layer>.ffn.(up|down).*: h.<layer>.mlp.(fc_in|fc_out).*
      norm.*: ln_f.*
      head.*: lm_head.*
"""
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
MODELS: dict[str, tuple[str, Any, Any]] = {
    "neox": (NEOX, GPTNeoXForCausalLM, GPTNeoXConfig(num_attention_heads=3, intermediate_size=56, **WIDTHS)),
    "falcon": (
        FALCON,
        FalconForCausalLM,
        FalconConfig(num_attention_heads=6, num_kv_heads=2, new_decoder_architecture=True, bias=False, **WIDTHS),
    ),
    "gptj": (GPTJ, GPTJForCausalLM, GPTJConfig(vocab_size=53, n_embd=48, n_layer=2, n_head=3, rotary_dim=12)),
    "gemma": (
        GEMMA,
        GemmaForCausalLM,
        GemmaConfig(num_attention_heads=3, num_key_value_heads=1, head_dim=8, intermediate_size=56, **WIDTHS),
    ),
}


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_this_layout_loads_and_comes_back(name: str) -> None:
    """The logits are those of transformers; the weights come back bit for bit, gains with an offset to the last place of 1."""
    text, kind, config = MODELS[name]
    reference = perturbed(kind(config))
    theirs = published(reference)
    recipe = composer.load(text)
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
        if name == "gemma" and key.endswith("norm.weight"):
            torch.testing.assert_close(tensor, theirs[found[key]], rtol=0, atol=2.0**-24)
        else:
            assert torch.equal(tensor, theirs[found[key]]), key
