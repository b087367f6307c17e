"""A compiled model as a plain torch module: ties, copies, initial values, sessions."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import composer
from composer.decode import DecodeError
from composer.decode.session import session

TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16, "dropout": 0}
IDS = torch.randint(61, (2, 9), generator=torch.Generator().manual_seed(3))


def tiny(seed: int = 0) -> composer.lower.Model:  # type: ignore[name-defined]  # a lazy attribute
    """Return a small gpt2 in evaluation mode."""
    return composer.load("gpt2", overrides=TINY).compile(seed=seed).eval()


def is_tied(model: torch.nn.Module) -> bool:
    """Return whether head and embedding are one tensor."""
    return model.head.weight is model.embed.weight


def test_a_tied_parameter_has_one_name() -> None:
    """The first in the file owns it, so that safetensors takes the state as it is."""
    state = tiny().state_dict()
    assert "embed.weight" in state and "head.weight" not in state


def test_ties_hold_through_meta_and_materializing() -> None:
    """Torch forgets ties where tensors are replaced; the model does not."""
    model = composer.load("gpt2", overrides=TINY).compile(device="meta")
    assert is_tied(model)
    model.to_empty(device="cpu")
    assert is_tied(model)
    assert is_tied(model.to(torch.float64)) and is_tied(model.half())


@pytest.mark.parametrize("assign", [False, True])
def test_ties_hold_through_loading(assign: bool, tmp_path: Path) -> None:
    """A strict load, by copying or by assigning, from a file that holds each tensor once."""
    model, other = tiny(0), tiny(1)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    keys = other.load_state_dict(load_file(tmp_path / "model.safetensors"), strict=True, assign=assign)
    assert not keys.missing_keys and not keys.unexpected_keys and is_tied(other)
    torch.testing.assert_close(other(IDS).logits, model(IDS).logits, rtol=0, atol=0)


def test_a_copy_shares_nothing_but_its_recipe() -> None:
    """Deepcopy keeps ties inside the copy and leaves the original alone."""
    model = tiny()
    other = copy.deepcopy(model)
    assert is_tied(other) and other.embed.weight is not model.embed.weight and other.recipe is model.recipe
    before = model(IDS).logits
    with torch.no_grad():
        other.embed.weight.zero_()
    torch.testing.assert_close(model(IDS).logits, before, rtol=0, atol=0)


@pytest.mark.slow
def test_a_model_travels_to_another_process(tmp_path: Path) -> None:
    """Pickled as recipe and state, it computes the same there, in the mode it was in, with the same tensors frozen."""
    model = tiny()
    model.positions.weight.requires_grad_(False)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    torch.save({"ids": IDS, "logits": model(IDS).logits.detach()}, tmp_path / "saved.pt")
    script = (
        "import pickle, torch\n"
        "torch.set_num_threads(1)\n"
        "saved = torch.load('saved.pt')\n"
        "model = pickle.load(open('model.pkl', 'rb'))\n"
        "assert not model.training and model.head.weight is model.embed.weight\n"
        "assert not model.positions.weight.requires_grad and model.embed.weight.requires_grad\n"
        "torch.testing.assert_close(model(saved['ids']).logits, saved['logits'], rtol=1e-5, atol=1e-6)\n"
    )
    root = str(Path(composer.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{script}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_initial_values_depend_on_the_name_alone() -> None:
    """One layer more changes no other parameter; another seed changes all that are drawn."""
    two, three = tiny(), composer.load("gpt2", overrides={**TINY, "n_layers": 3}).compile(seed=0)
    more = three.state_dict()
    same = [name for name, value in two.state_dict().items() if not name.endswith(("out.weight", "down.weight"))]
    assert all(torch.equal(two.state_dict()[name], more[name]) for name in same)
    assert not torch.equal(two.embed.weight, tiny(1).embed.weight)


def test_init_follows_the_last_pattern_that_matches() -> None:
    """GPT-2's: 0.02 everywhere, biases 0, gains 1, and what ends a branch smaller by the square root of twice the layers."""
    model = composer.load("gpt2", overrides={**TINY, "d_model": 256, "n_layers": 8}).compile(seed=0)
    layer = model.layers[3]
    assert layer.attn.body.q.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert layer.attn.body.out.weight.std().item() == pytest.approx(0.02 / 4, rel=0.02)
    assert layer.ffn.body.up.bias.abs().max() == 0 and (layer.attn.norm.weight == 1).all()


@pytest.mark.parametrize("biased", [False, True])
def test_an_initializer_may_have_a_condition(biased: bool) -> None:
    """Where it is false, the rule is not there, so that nothing warns of a pattern that matches nothing."""
    text = f"""
recipe: sometimes
params: {{biased: {str(biased).lower()}}}
inputs: {{x: "float[batch, 5]"}}
graph:
  y: {{type: linear, out: 3, bias: biased}}
  z: {{type: linear, out: 2}}
init:
  "*": {{normal: 0.5}}
  y.bias: {{constant: 7, when: biased}}
  z.bias: {{constant: 8, when: not biased}}
"""
    recipe = composer.load(text)
    assert not recipe.check()
    model = recipe.compile(seed=0)
    assert biased == (model.y.bias is not None and bool((model.y.bias == 7).all()))
    assert bool((model.z.bias == 8).all()) != biased


def test_frozen_nodes_are_not_trained() -> None:
    """`trainable: false` reaches the parameters, and they stay without a gradient."""
    model = composer.load("gpt2", overrides={**TINY, "graph.positions.trainable": False}).compile(seed=0)
    assert not model.positions.weight.requires_grad
    model(IDS).logits.sum().backward()
    assert model.positions.weight.grad is None and model.embed.weight.grad is not None


def test_a_session_forgets_what_is_truncated_and_follows_its_rows() -> None:
    """After a truncate it goes on from there; after a reorder, each row has the past of the row it was taken from."""
    model = tiny()
    with session(model, initial_length=2) as past:
        model(IDS[:, :6])
        past.truncate(4)
        assert past.length == 4
        past.reorder(torch.tensor([1, 0, 1]))
        after = model(IDS[[1, 0, 1], 4:]).logits
    torch.testing.assert_close(after, model(IDS[[1, 0, 1]]).logits[:, 4:], rtol=1e-5, atol=1e-6)


def test_a_session_leaves_the_model_as_it_was() -> None:
    """Also where a call in it fails; two at once are refused."""
    model = tiny()
    before = model(IDS).logits
    with pytest.raises(IndexError), session(model):
        model(torch.full((1, 2), 99))
    with session(model), pytest.raises(DecodeError, match="already has an open session"), session(model):
        pass
    torch.testing.assert_close(model(IDS).logits, before, rtol=0, atol=0)


def test_what_shared_passes_keep_is_one_tensor() -> None:
    """Also what is no parameter, such as the number by which a formula knows the dtype of the model, in passes that differ."""
    model = composer.load(
        "recipe: shared\ninputs: {ids: 'int[batch, time, 4]'}\ngraph:\n  a: {compute: float(ids)}\n"
        "  r: {repeat: 2, share: true, each: {by: [0.5, 1.5]}, graph: {m: {compute: float(abs(input))}, "
        "f: {type: residual, body: {type: ffn, hidden: 6}, scale: by}}}\n"
    ).compile(seed=0)
    names = {name for name in model.state_dict() if name.startswith("_r")}
    assert names == set() and "r.m.one" in model.state_dict()
    held = {id(each) for name, each in model.named_buffers(remove_duplicate=False) if name.endswith("m.one")}
    assert len(held) == 1
    model.load_state_dict(model.state_dict(), strict=True)
    assert model.double()(torch.zeros(1, 2, 4, dtype=torch.int64)).r.dtype == torch.float64


@pytest.mark.parametrize(
    ("dtype", "meant"),
    [
        ("float64", "torch.float64"),
        ("bfloat16", "torch.bfloat16"),
        ("nn", "torch.float64"),
        (torch.int64, "torch.float64"),
        (float, "torch.float64"),
    ],
)
def test_a_dtype_that_no_parameter_has_is_refused(dtype: object, meant: str) -> None:
    """Torch would take a name for that of a device."""
    with pytest.raises(TypeError, match=rf"dtype is a floating-point torch.dtype such as {meant}, not {re.escape(repr(dtype))}"):
        composer.load("gpt2", TINY).compile(dtype=dtype)  # type: ignore[arg-type]  # what is refused


@torch.no_grad()
def test_a_default_of_an_input_has_the_dtype_of_the_model() -> None:
    """So that a model whose weights are no longer float32 runs without the input."""
    text = "recipe: shifted\ninputs: {x: 'int[batch]', by: {type: 'float[batch, 4]', default: 0.5}}\n"
    text += "graph:\n  embed: {type: embedding, vocab: 7, dim: 4, in: x}\n  map: {type: linear, out: 4, in: by}\n"
    text += "  sum: {type: add, in: [embed, map]}\n"
    model, x = composer.load(text).compile(seed=0).to(torch.bfloat16), torch.tensor([3, 6])
    assert torch.equal(model(x)[0], model(x, torch.full((2, 4), 0.5, dtype=torch.bfloat16))[0])


def test_a_ninth_model_is_compiled_too() -> None:
    """Torch compiles the same code at most eight times, whosever it is."""
    torch._dynamo.reset()
    for width in range(1, 10):
        text = f'recipe: narrow\ninputs: {{x: "float[batch, 4]"}}\ngraph: {{y: {{type: linear, out: {width}}}}}\n'
        compiled = torch.compile(composer.load(text).compile(), backend="eager", fullgraph=True)
        assert compiled(torch.ones(2, 4)).y.shape == (2, width)
