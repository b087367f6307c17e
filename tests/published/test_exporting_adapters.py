"""Adapters for PEFT, which computes with them what the model does."""

from __future__ import annotations

import json

import pytest
import torch

import composer
from composer import RecipeError
from composer.cli import main
from composer.published import export_adapters, export_folder
from composer.weights import AdapterError

TINY = {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 20, "context": 16}
ADAPTERS = """
adapters:
  "*.(q|v)": {rank: 4, alpha: 8}
  "layers.1.*.(up|down)": {rank: 2, alpha: 3}
  head: full
"""


def tuned(base: str = "llama2", adapters: str = ADAPTERS, params=TINY):
    """Return a model whose adapters and output layer are no longer as they start."""
    model = composer.load(f"extends: {base}\nrecipe: tuned\n{adapters}", params).compile(seed=0).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("base", ["llama2", "llama1"])
def test_peft_computes_the_same(base, tmp_path):
    """On the base model in transformers: of two ranks, with an output layer that is trained as a whole."""
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    params = {**TINY, "n_kv_heads": 4} if base == "llama1" else TINY
    model = tuned(base, params=params)
    export_folder(model.recipe.without_adapters().compile(seed=0), tmp_path / "base")
    export_adapters(model, tmp_path / "adapters")
    export_folder(model, tmp_path / "merged")
    plain = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    tokens = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        ours, before = model(tokens).logits, plain(tokens).logits
        merged = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
        torch.testing.assert_close(merged(tokens).logits, ours, rtol=1e-4, atol=1e-5)
        adapted = peft.PeftModel.from_pretrained(plain, tmp_path / "adapters").eval()
        torch.testing.assert_close(adapted(tokens).logits, ours, rtol=1e-4, atol=1e-5)
    assert (ours - before).abs().max() > 0.1


def test_what_the_published_model_keeps_as_one_matrix_is_refused(tmp_path, capsys):
    """GPT-2's queries, keys and values; a recipe without adapters or rules, and a folder that is there already."""
    gpt = {"vocab": 11, "context": 16, "d_model": 12, "n_layers": 2, "n_heads": 2}
    model = tuned("gpt2", 'adapters: {"*.q": {rank: 2}}', gpt)
    with pytest.raises(AdapterError, match=r"keeps layers.0.attn.body.q.weight as a part of h.0.attn.c_attn.weight") as caught:
        export_adapters(model, tmp_path / "one")
    assert caught.value.hint.startswith("merge the adapters")
    with pytest.raises(AdapterError, match="this recipe has no adapters"):
        export_adapters(composer.load("gpt2", gpt).compile(), tmp_path / "one")
    with pytest.raises(RecipeError):
        export_adapters(tuned("gpt_mini", 'adapters: {"*.q": {rank: 2}}', {"n_layers": 1}), tmp_path / "one")
    assert not (tmp_path / "one").exists()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "mine.txt").write_text("mine")
    with pytest.raises(RecipeError, match="something here already"):
        export_adapters(tuned(), tmp_path / "one")
    (tmp_path / "a.yaml").write_text('extends: gpt2\nrecipe: a\nadapters: {"*.q": {rank: 2}}\n')
    sizes = [word for name, value in gpt.items() for word in ("--set", f"{name}={value}")]
    assert main(["export", str(tmp_path / "a.yaml"), *sizes, "--to", "peft", "-o", str(tmp_path / "two")]) == 2
    assert "keeps layers.0.attn.body.q.weight as a part of" in capsys.readouterr().err


def test_the_command_writes_the_folder(tmp_path, capsys):
    """With the ranks of all modules."""
    (tmp_path / "a.yaml").write_text(f"extends: llama2\nrecipe: a\n{ADAPTERS}")
    sizes = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
    assert main(["export", str(tmp_path / "a.yaml"), *sizes, "--to", "peft", "-o", str(tmp_path / "two")]) == 0
    config = json.loads((tmp_path / "two" / "adapter_config.json").read_text())
    assert config["r"] == 4
    assert config["lora_alpha"] == 8
    assert config["rank_pattern"] == {"model.layers.1.mlp.up_proj": 2, "model.layers.1.mlp.down_proj": 2}
    assert config["modules_to_save"] == ["lm_head"]
    assert "wrote" in capsys.readouterr().out
