"""A larger model that starts from a smaller one computes the same, and learns in what is new."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import composer
from composer.train import TrainingError, grow

GPT = {"vocab": 20, "d_model": 16, "n_layers": 2, "n_heads": 2}
LLAMA = {"vocab": 20, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 24}
BERT = {"vocab": 20, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 24, "context": 16}
EXPERTS = {**LLAMA, "n_experts": 4, "layers.moe.body.router.bias": True}
MIXED = {"vocab": 20, "d_model": 16, "n_layers": 2, "n_heads": 2, "context": 16}
GEMMA = {**LLAMA, "n_layers": 2, "n_kv_heads": 1, "head_dim": 8, "period": 2}
TOKENS = torch.randint(20, (3, 11), generator=torch.Generator().manual_seed(5))


def perturbed(name: str, sizes: dict[str, Any], dtype: torch.dtype = torch.float64) -> Any:
    """Return a model none of whose weights is where it starts."""
    model = composer.load(name, sizes).compile(dtype=dtype, seed=0)
    chance = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=chance, dtype=dtype))
    return model.eval()


def logits(model: Any) -> torch.Tensor:
    """Return what a model computes of tokens that the function has not seen."""
    with torch.no_grad():
        return model.eval()(TOKENS).logits[..., :20]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "larger", "bits"),
    [
        ("gpt_mini", GPT, {"n_layers": 4}, True),
        ("gemma3", GEMMA, {"n_layers": 4, "hidden": 40}, False),
        ("gpt_mini", GPT, {"layers.ffn.body.hidden": 70, "n_heads": 3, "layers.attn.body.head_dim": 8, "vocab": 23}, False),
        ("gpt_mini", GPT, {"d_model": 48, "n_heads": 6, "head.tie": None}, False),
        ("llama3", LLAMA, {"n_heads": 6, "n_kv_heads": 2, "layers.attn.body.head_dim": 4}, False),
        ("llama3", LLAMA, {"d_model": 32, "n_heads": 8, "n_kv_heads": 4, "hidden": 40, "n_layers": 3, "context": 99}, False),
        ("gpt2", MIXED, {"n_layers": 3, "context": 32}, True),
        ("bert", BERT, {"hidden": 40, "vocab": 31, "context": 30}, False),
        ("gptj", {**GPT, "hidden": 32, "rotary_dim": 8}, {"n_layers": 3}, True),
        ("mixtral", EXPERTS, {"n_experts": 7, "d_model": 32, "n_heads": 8, "hidden": 30, "n_layers": 3}, False),
    ],
)
def test_a_larger_model_computes_what_the_smaller_one_does(name, sizes, larger, bits):
    """Bit for bit where sums have the same terms; every weight is told of once, and none of the fresh ones is lost."""
    small = perturbed(name, sizes)
    large = composer.load(name, {**sizes, **larger}).compile(dtype=torch.float64, seed=1)
    growth = grow(large, small)
    before, after = logits(small), logits(large)
    assert torch.equal(before, after) if bits else torch.allclose(before, after, rtol=0, atol=1e-12 * float(before.abs().max()))
    told = [*growth.kept, *growth.widened, *growth.new, *growth.silent]
    assert sorted(told) == sorted(large.state_dict())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "larger", "new", "old"),
    [
        ("gpt_mini", GPT, {"n_layers": 5}, ["layers.0", "layers.[34]"], {0: 1, 1: 2}),
        ("llama3", LLAMA, {"n_layers": 4, "d_model": 32, "n_heads": 8, "n_kv_heads": 4}, ["layers.[02]"], {0: 1, 1: 3}),
        ("gemma3", GEMMA, {"n_layers": 4}, ["layers.0", "layers.1"], {0: 2, 1: 3}),
    ],
)
def test_new_layers_come_anywhere(name, sizes, larger, new, old):
    """Before the first one too, also in a wider model, and where layers are of two kinds."""
    small = perturbed(name, sizes)
    large = composer.load(name, {**sizes, **larger}).compile(dtype=torch.float64, seed=1)
    fresh = {key: value.clone() for key, value in large.state_dict().items()}
    growth = grow(large, small, new_layers=new)
    before, after = logits(small), logits(large)
    assert torch.allclose(before, after, rtol=0, atol=1e-12 * float(before.abs().max()))
    told = [*growth.kept, *growth.widened, *growth.new, *growth.silent]
    assert sorted(told) == sorted(large.state_dict())
    assert {int(key.split(".")[1]) for key in (*growth.new, *growth.silent)} == {*range(larger["n_layers"])} - {*old.values()}
    assert all(torch.equal(large.state_dict()[key], fresh[key]) for key in growth.new)
    if "d_model" not in larger:
        for was, now in old.items():
            for key, value in small.layers[was].state_dict().items():
                assert torch.equal(value, large.layers[now].state_dict()[key])


def test_what_is_new_learns():
    """After two steps of plain gradient descent, every tensor has moved, and the copies of a channel have parted."""
    large = composer.load("gpt_mini", {**GPT, "d_model": 32, "n_heads": 4, "n_layers": 3, "head.tie": None}).compile(seed=1)
    small = perturbed("gpt_mini", GPT, torch.float32)
    grow(large, small)  # float32 shares add up exactly too
    fresh = {name: value.clone() for name, value in large.state_dict().items()}
    optimizer = torch.optim.SGD(large.parameters(), lr=0.1)
    for _ in range(2):
        found = composer.loss(large.train(), {"tokens": TOKENS, "targets": TOKENS.roll(-1, 1)})
        optimizer.zero_grad()
        found.total.backward()
        optimizer.step()
    still = [name for name, value in large.state_dict().items() if value.equal(fresh[name])]
    assert still == []
    one, other = large.layers[0].ffn.body.down.weight.unflatten(0, (2, 16))
    assert not torch.allclose(one, other, atol=1e-6)


def test_an_expert_that_is_not_chosen_stays_out_until_its_bias_is_raised():
    """A step of AdamW leaves −∞ where it is, and the loss finite; then the expert takes part."""
    small = perturbed("mixtral", EXPERTS, torch.float32)
    large = composer.load("mixtral", {**EXPERTS, "n_experts": 5}).compile(seed=1)
    grow(large, small)
    assert torch.equal(logits(large), logits(small))
    bias = large.layers[0].moe.body.gate.bias
    optimizer = torch.optim.AdamW(large.parameters(), lr=1e-3)
    composer.loss(large.train(), {"tokens": TOKENS, "targets": TOKENS.roll(-1, 1)}).total.backward()
    optimizer.step()
    before = logits(large)
    assert bias[4] == -torch.inf and torch.isfinite(before).all()
    with torch.no_grad():
        bias[4] = 50.0
    assert not torch.allclose(logits(large), before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "larger", "message"),
    [
        ("gpt_mini", GPT, {"d_model": 24, "n_heads": 3}, r"gpt_mini.yaml:20: `dim` of `embed` would grow from 16 to 24"),
        ("gpt_mini", GPT, {"d_model": 32, "n_heads": 4}, r"yaml:35: `head.weight` is tied to `embed.weight`"),
        ("gpt_mini", GPT, {"d_model": 32}, r"yaml:28: `layers.0.attn.body` has head_dim 16, and 8 in"),
        ("gpt_mini", GPT, {"n_layers": 1}, r"yaml:21: `layers` has 1 passes, and had 2"),
        ("gpt_mini", GPT, {"layers.attn.body.positions.theta": 500}, r"`layers.0.attn.body` has positions rotary"),
        ("gpt_mini", GPT, {"dropout": 0.1}, r"the smaller model has no `layers.0.attn.dropout`"),
        ("llama3", LLAMA, {"n_kv_heads": 4}, r"`heads` of `layers.0.attn.body` would be 4 in groups of 1"),
        ("bert", BERT, {"n_layers": 3}, r"bert.yaml:\d+: `layers.2.ffn.post_norm` stands on the stream"),
        ("albert", {**BERT, "d_embed": 8}, {"n_layers": 3}, r"albert.yaml:\d+: the passes of `layers` share their weights"),
        ("mixtral", {**EXPERTS, "layers.moe.body.router.bias": False}, {"n_experts": 5}, r"`layers.0.moe.body.gate` has no bias"),
    ],
)
def test_what_would_not_be_equal_is_refused_at_its_place(name, sizes, larger, message):
    """Nothing is approximated."""
    large = composer.load(name, {**sizes, **larger}).compile(dtype=torch.float64, seed=1)
    with pytest.raises(TrainingError, match=message):
        grow(large, perturbed(name, sizes))


@pytest.mark.parametrize(
    ("name", "sizes", "new", "message"),
    [
        ("gpt_mini", GPT, ["layers.0", "layers.2"], r"yaml:21: 1 of the 3 passes of `layers` are new, and 2 are named"),
        ("gpt_mini", GPT, ["layer.0"], r"`new_layers`: no layer is called `layer.0`"),
        ("gemma3", GEMMA, ["layers.0"], r"gemma3.yaml:\d+: `layers.1.* has "),
        ("bert", BERT, ["layers.0"], r"bert.yaml:\d+: `layers.0.ffn.post_norm` stands on the stream"),
    ],
)
def test_new_layers_that_are_not_so_many_or_change_others_are_refused(name, sizes, new, message):
    """Such as one in front of local and global layers, which shifts their kinds."""
    large = composer.load(name, {**sizes, "n_layers": 3}).compile(dtype=torch.float64, seed=1)
    with pytest.raises(TrainingError, match=message):
        grow(large, perturbed(name, sizes), new_layers=new)


def test_another_function_of_the_same_weights_is_found_by_its_outputs():
    """Such as an edge that leads elsewhere, which no weight shows."""
    graph = "graph: {a: {type: linear, out: 4, in: x}, b: {type: linear, out: 4, in: x}}"
    text = f"recipe: r\nlanguage: 1\ninputs: {{x: 'float[batch, 4]'}}\n{graph}\n"
    outputs = ("{y: a, z: b}", "{y: b, z: a}")
    small, large = (composer.load(f"{text}outputs: {each}\n").compile(dtype=torch.float64, seed=0) for each in outputs)
    with pytest.raises(TrainingError, match="the outputs of the larger model differ"):
        grow(large, small)
