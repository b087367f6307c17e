"""Adapters: merged into the weights of every model of the zoo, counted as torch counts, and read by PEFT."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import composer
from composer.cost.costs import costs
from composer.cost.lengths import axes
from composer.graph.parameters import parameters
from composer.graph.passes.adapt import linear_maps
from composer.graph.typed import TypedBlock
from composer.graph.visit import walk
from composer.weights import AdapterError, load_published, merge_adapters, save_published
from composer.weights.adapters import adapters_of
from tests.conformance.cases import CASES, each_of, models
from tests.conformance.inputs import DRAWS, draw


def adapted(case):
    """Return copies of the models of a case in float64 whose linear maps all have adapters that change something; those of tied
    weights, which cannot be merged, are left out.
    """
    for model in models(case):
        typed = model.program
        maps = [
            f"{visit.path}.{name}" if name else visit.path
            for visit in walk(typed.root)
            if isinstance(visit.node, TypedBlock)
            for name, each in linear_maps(visit.node).items()
            if each.adaptable
        ]
        tied = {name for entry in parameters(typed) if entry.tied_to for name in (entry.name, entry.tied_to)}
        maps = [name for name in maps if f"{name}.weight" not in tied]
        if not maps:
            continue
        named = "".join(f"  {name!r}: {{rank: 2, alpha: 3}}\n" for name in maps)
        recipe = composer.load(f"{model.recipe.text}\nadapters:\n{named}", blocks=model.recipe.blocks)
        made = recipe.compile(dtype=torch.float64, seed=0).eval()
        assert [*adapters_of(made.program)] == maps
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for name, parameter in made.named_parameters():
                if name.endswith("lora_b"):
                    parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
        yield made


def flops(model, given):
    """Return the FLOPs of a forward pass, as torch counts them."""
    model.requires_grad_(False)
    with FlopCounterMode(display=False) as counted:
        model(**given)
    return counted.get_total_flops()


@each_of(CASES, every=12)
def test_merged_adapters_compute_the_same(case):
    """In every model of the suite, with an adapter on each linear map: no block computes around one. Of what they add, torch
    counts as many FLOPs as the summary tells.
    """
    for model in adapted(case):
        given = draw(model.program, DRAWS[0], dtype=torch.float64)
        merged = merge_adapters(model)
        assert not adapters_of(merged.program)
        torch.manual_seed(0)
        ours = model(**given)
        torch.manual_seed(0)
        torch.testing.assert_close(ours, merged(**given))
        lengths = {name: DRAWS[0].get(name, 3) for name in axes(model.program)}
        more, less = (costs(each.program, lengths).flops.dense for each in (model, merged))
        assert more - less == flops(model, given) - flops(merged, given)


GPT = {"d_model": 16, "n_layers": 3, "n_heads": 2, "vocab": 11}


def tuned(adapters: str, base: str = "gpt_mini", **params) -> composer.Recipe:
    """Return a recipe over another one with adapters."""
    return composer.load(f"extends: {base}\nrecipe: tuned\nadapters: {adapters}\n", {**GPT, **params})


def test_only_adapters_and_what_is_named_is_trained():
    """A tied tensor under either of its names; B starts with zeros whatever `init` says, so that nothing changes at first."""
    patterns = [
        '"*.(q|v)": {rank: 2}',
        '"*.up": {rank: 1}',
        '"layers.1.*.up": {rank: 3, alpha: 6}',
        "head: full",
        '"*.1.*norm": full',
    ]
    recipe = tuned(f"{{{', '.join(patterns)}}}")
    assert recipe.check() == []
    model = recipe.compile(seed=0).eval()
    trained = {name: tuple(one.shape) for name, one in model.named_parameters() if one.requires_grad}
    assert trained.pop("embed.weight") == (11, 16)
    assert trained.pop("layers.1.attn.norm.weight") == trained.pop("layers.1.ffn.norm.weight") == (16,)
    ranks = {name: shape[0] for name, shape in trained.items() if name.endswith("lora_a")}
    widths = {name: shape[1] for name, shape in trained.items() if name.endswith("lora_b")}
    assert len(ranks) + len(widths) == len(trained)
    expected = {f"layers.{layer}.attn.body.{name}": 2 for layer in range(3) for name in "qv"}
    expected |= {"layers.0.ffn.body.up": 1, "layers.1.ffn.body.up": 3, "layers.2.ffn.body.up": 1}
    assert ranks == {f"{name}.lora_a": rank for name, rank in expected.items()}
    assert widths == {f"{name}.lora_b": rank for name, rank in expected.items()}
    assert recipe.summary().costs.trainable == sum(one.numel() for one in model.parameters() if one.requires_grad)
    first, second, third = recipe.program.root["layers"].passes
    assert first is third is not second
    plain = composer.load("gpt_mini", GPT).compile(seed=0).eval()
    tokens = torch.arange(10)[None]
    assert torch.equal(model(tokens).logits, plain(tokens).logits)
    assert {name for name, _ in plain.named_parameters()} < {name for name, _ in model.named_parameters()}


def test_what_is_written_out_is_the_same_recipe():
    """By `expand` with its numbers computed; a change of a rank is a difference, in the block that has it."""
    adapters = 'adapters: {"*.q": {rank: 2 * rank, alpha: rank / 4, dropout: 0.5}}'
    recipe = composer.load(f"extends: gpt_mini\nrecipe: tuned\nparams: {{rank: 2}}\n{adapters}\n", GPT)
    again = composer.load(recipe.expand())
    assert again.diff(recipe).equal
    assert '"*.q": {rank: 4, alpha: 0.5, dropout: 0.5}' in recipe.expand()
    other = recipe.with_overrides({"rank": 3})
    assert "adapter of q LoRA of rank 4, alpha 0.5, dropout 0.5 → LoRA of rank 6" in " ".join(str(recipe.diff(other)).split())
    assert other.without_adapters().diff(composer.load("gpt_mini", GPT)).equal
    assert "rank" not in other.without_adapters().text


def test_published_weights_fit_with_adapters_and_merged_ones_are_written(tmp_path):
    """The names of all other parameters are those of the model without."""
    sizes = {"d_model": 12, "n_layers": 2, "n_heads": 2, "vocab": 11, "context": 16}
    base = composer.load("gpt2", sizes).compile(seed=3).eval()
    save_published(base, tmp_path / "base.safetensors")
    model = tuned('{"*.(q|k|v|down)": {rank: 2, alpha: 5}}', "gpt2", **sizes).compile(seed=0).eval()
    load_published(model, tmp_path / "base.safetensors")
    tokens = torch.arange(9)[None]
    assert torch.equal(model(tokens).logits, base(tokens).logits)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("lora_b"):
                parameter.fill_(0.1)
    save_published(model, tmp_path / "merged.safetensors")
    load_published(base, tmp_path / "merged.safetensors")
    torch.testing.assert_close(base(tokens).logits, model(tokens).logits)
    load_published(base, tmp_path / "base.safetensors")
    assert not torch.equal(base(tokens).logits, model(tokens).logits)


def test_an_adapter_of_a_tied_weight_cannot_be_merged():
    """Since the embedding would change too."""
    model = tuned("{head: {rank: 2}}").compile(seed=0)
    with pytest.raises(AdapterError, match=r"the adapter of head cannot be merged: head.weight is embed.weight"):
        merge_adapters(model)
