"""Folders that are written as the class of transformers reads them: what it does not load, and what it has defaults for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForImageClassification

import composer
from composer.diagnostics import RecipeError
from composer.published import export_folder
from tests.cli.conftest import Arco, arco
from tests.conformance.cases import TINY
from tests.parity.test_transformers import close
from tests.published.test_exporting import perturbed

__all__ = ["arco"]
STABLELM = """
recipe: own
task: causal_lm
params:
  context: 16
  vocab: 53
  width: 24
  n_layers: 2
  heads: 2
  kv: 1
  hidden: 40
  temperature: 1
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: vocab, dim: width, in: tokens}
  layers:
    repeat: n_layers
    graph:
      attn:
        type: residual
        norm: layernorm
        body:
          type: attention
          heads: heads
          kv_heads: kv
          bias: false
          mask: causal
          positions: {type: rotary, theta: 10000, partial_rotary_factor: 0.5}
      ffn: {type: residual, norm: layernorm, body: {type: gated_ffn, hidden: hidden, bias: false}}
  norm: layernorm
  head: {type: linear, out: vocab, bias: false}
  scaled: {compute: temperature * head}
outputs: {logits: scaled}
checkpoints:
  stablelm:
    config:
      architecture: StableLmForCausalLM
      params:
        context: max_position_embeddings
        vocab: vocab_size
        width: hidden_size
        n_layers: num_hidden_layers
        heads: num_attention_heads
        kv: num_key_value_heads
        hidden: intermediate_size
        temperature: {from: initializer_range, default: 1.0}
      constants:
        hidden_act: silu
        rope_parameters.rope_type: default
        rope_parameters.rope_theta: 10000.0
        rope_parameters.partial_rotary_factor: 0.5
        use_qkv_bias: false
        tie_word_embeddings: false
      ignore: [attention_dropout, hidden_dropout]
    rules:
      embed.weight: model.embed_tokens.weight
      layers.<layer>.(attn|ffn).norm.*: model.layers.<layer>.(input|post_attention)_layernorm.*
      layers.<layer>.attn.body.(q|k|v|out).weight: model.layers.<layer>.self_attn.(q|k|v|o)_proj.weight
      layers.<layer>.ffn.body.(gate|up|down).weight: model.layers.<layer>.mlp.(gate|up|down)_proj.weight
      norm.*: model.norm.*
      head.weight: lm_head.weight
"""
"""A model that the zoo does not have, as a user writes it; the temperature stands for any key that takes floats alone."""


@torch.no_grad()
@pytest.mark.slow
def test_keys_that_no_rule_speaks_of_are_said_with_their_defaults(arco: Arco, tmp_path: Path) -> None:
    """What the class computes with then; a whole number of a key whose default is a float is written as one."""
    (tmp_path / "own.yaml").write_text(STABLELM, encoding="utf-8")
    done = arco("export", tmp_path / "own.yaml", "--to", "transformers", "-o", tmp_path / "out")
    assert done.code == 0
    said = "layer_norm_eps (1e-05), qk_layernorm (false), use_parallel_residual (false)"
    assert done.err == f"arco export: the rules say nothing of these keys, for which transformers has its defaults: {said}\n"
    assert '"initializer_range": 1.0' in (tmp_path / "out" / "config.json").read_text(encoding="utf-8")
    tokens = torch.randint(53, (2, 7), generator=torch.Generator().manual_seed(2))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    close(composer.load(tmp_path / "out").pretrained()(tokens).logits, theirs(input_ids=tokens).logits)
    speaking = STABLELM.replace("[attention_dropout", "[layer_norm_eps, qk_layernorm, use_parallel_residual, attention_dropout")
    (tmp_path / "own.yaml").write_text(speaking, encoding="utf-8")
    assert arco("export", tmp_path / "own.yaml", "--to", "transformers", "-o", tmp_path / "more").err == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("kv: num_key_value_heads", r"has \[.*\] for model\.layers\.0\.self_attn\.k_proj\.weight, which is \[12, 24\] here, and"),
        ("n_layers: num_hidden_layers", r"has model\.layers\.\{?.*too"),
        ("temperature: {from: initializer_range, default: 1.0}", "does not load what is written: .*use_cache"),
    ],
)
def test_what_the_class_of_transformers_does_not_load_is_not_written(line: str, says: str, tmp_path: Path) -> None:
    """Other shapes, or more layers, because of a key that no rule writes; a value of another kind than the class takes."""
    changed = "temperature: use_cache" if "temperature" in line else ""
    recipe = composer.load(STABLELM.replace(f"        {line}\n", f"        {changed}\n" if changed else ""))
    with pytest.raises(RecipeError, match=says):
        export_folder(recipe.compile(seed=0), tmp_path / "out")
    assert not [*tmp_path.iterdir()]


@torch.no_grad()
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("mamba", {}, "MambaForCausalLM of transformers does not load what is written: .*'expand' expected int, got float"),
        ("mamba2", {}, "Mamba2ForCausalLM of transformers does not load what is written: .*'expand' expected int, got float"),
        ("helium", {}, r"has \[16, 16\] for model\.layers\.0\.self_attn\.o_proj\.weight, which is \[16, 24\] here"),
        ("mamba", {"inner": 12}, None),
        ("mamba2", {"n_heads": 4, "head_dim": 3, "d_model": 6}, None),
        ("helium", {"head_dim": 4}, None),
    ],
)
def test_sizes_that_a_class_of_transformers_cannot_have_are_refused(
    name: str, changes: dict[str, int], says: str | None, tmp_path: Path
) -> None:
    """Mamba's inner width is a whole number of widths there, and Helium's heads are as wide as the model."""
    model = composer.load(name, {**TINY[name], **changes}).compile(seed=0)
    if says is not None:
        with pytest.raises(RecipeError, match=says):
            export_folder(model, tmp_path / "out", name)
        return
    export_folder(model, tmp_path / "out", name)
    tokens = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(2))
    close(model.eval()(tokens).logits, AutoModelForCausalLM.from_pretrained(tmp_path / "out")(input_ids=tokens).logits)


@torch.no_grad()
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "auto"),
    [
        ("pixtral_vision", AutoModel),
        ("convnext", AutoModelForImageClassification),
        ("resnet", AutoModelForImageClassification),
    ],
)
def test_models_of_images_of_any_size_go_out(name: str, auto: Any, tmp_path: Path) -> None:
    """Although no key of their `config.json` has a size."""
    model = perturbed(composer.load(name, TINY[name])).eval()
    export_folder(model, tmp_path / "out")
    image = torch.randn(2, 3, 36, 32, generator=torch.Generator().manual_seed(3))
    theirs = auto.from_pretrained(tmp_path / "out")(pixel_values=image)[0]
    assert theirs.std() > 0.01
    close(model(image)[0].view(theirs.shape), theirs)
