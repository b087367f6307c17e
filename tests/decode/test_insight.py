"""Attention weights and the logit lens, against transformers and against the model cut off after a layer."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import DecodeError, attention_maps, logit_lens

TOKENS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
SIZES = {"n_layers": 3, "d_model": 12, "n_heads": 3, "vocab": 17, "context": 8}


def test_maps_are_those_that_a_recipe_puts_out():
    """Of each head in each layer; grouped heads, a window and rotary positions included; the model is afterward as before."""
    sizes = {"n_layers": 2, "d_model": 24, "n_heads": 4, "n_kv_heads": 2, "vocab": 17, "hidden": 10}
    recipe = composer.load("llama3", {**sizes, "layers.attn.body.mask": "causal and window(2)"})
    model = recipe.compile(seed=1)
    before = model(TOKENS).logits
    found = attention_maps(model, tokens=TOKENS)
    assert [each.name for each in found] == ["layers.0.attn.body", "layers.1.attn.body"]
    for each in found:
        assert each.weights.shape == (2, 4, 5, 5)
        torch.testing.assert_close(each.weights.sum(-1), torch.ones(2, 4, 5))
        seen = torch.ones(5, 5).tril().triu(-1).bool()
        assert (each.weights[..., ~seen] == 0).all() and (each.weights[..., seen] > 0).all()
    assert torch.equal(model(TOKENS).logits, before) and not model.layers[0].attn.body._forward_hooks


@pytest.mark.slow
def test_maps_are_those_of_transformers():
    """Of GPT-2 with the same weights, bias and all."""
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=3, n_embd=12, n_head=3, vocab_size=17, n_positions=8, attn_implementation="eager", bos_token_id=0, eos_token_id=0
    )
    torch.manual_seed(4)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    model = composer.load("gpt2", SIZES).compile(seed=1)
    composer.weights.load_published(model, theirs.state_dict())
    expected = theirs(TOKENS, output_attentions=True).attentions
    found = attention_maps(model, tokens=TOKENS)
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.weights, other, atol=1e-5, rtol=1e-5)


def test_the_lens_says_what_a_model_of_fewer_layers_says():
    """With the same weights; after the last layer it is the model itself."""
    model = composer.load("gpt2", SIZES).compile(seed=1).eval()
    found = logit_lens(model, tokens=TOKENS)
    assert [name for name, _ in found] == ["layers.0", "layers.1", "layers.2"]
    torch.testing.assert_close(found[-1][1], model(TOKENS).logits)
    short = composer.load("gpt2", {**SIZES, "n_layers": 2}).compile(seed=2).eval()
    short.load_state_dict({name: value for name, value in model.state_dict().items() if not name.startswith("layers.2.")})
    torch.testing.assert_close(found[1][1], short(TOKENS).logits)


def test_models_without_attention_or_layers_are_refused():
    """With what is missing."""
    text = (
        "recipe: a\ntask: causal_lm\ninputs: {tokens: 'int[batch, time]'}\ngraph:\n  embed: {type: embedding, vocab: 9, dim: 4}\n"
    )
    model = composer.load(f"{text}  head: {{type: linear, out: 9}}\noutputs: {{logits: head}}\n").compile(seed=1)
    with pytest.raises(DecodeError, match="no attention"):
        attention_maps(model, tokens=TOKENS % 9)
    with pytest.raises(DecodeError, match="last of its layers"):
        logit_lens(model, tokens=TOKENS % 9)
