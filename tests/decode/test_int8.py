"""Weights of 8 bits: what rounding may change, what they take, and what is refused."""

from __future__ import annotations

import copy
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import composer
from composer.decode import GREEDY, Request, cached, generate, session, uncached
from composer.diagnostics import RecipeError
from composer.published import export_folder, export_gguf, export_program
from composer.train import TrainSettings, characters_of, open_run, tokenize, train
from composer.weights import Int8Error, Int8Matrix, load_published, save_published, to_int8, weight_bytes
from composer.weights.transfer import weight_map
from tests.cli.conftest import Arco, arco
from tests.conformance.cases import TINY as SMALL
from tests.estimate.real import most_held

__all__ = ["arco"]
TINY = {"n_layers": 2, "d_model": 64, "n_heads": 4, "vocab": 61, "context": 32}
WIDE = {**TINY, "d_model": 256, "vocab": 3000}


def matrices(model: nn.Module) -> Iterator[tuple[str, Int8Matrix]]:
    """Yield the rounded weights."""
    yield from ((name, each) for name, each in model.named_parameters() if isinstance(each, Int8Matrix))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(70, 300), (5, 1), (3, 7, 20)])
@torch.no_grad()
def test_no_entry_is_wrong_by_more_than_half_a_scale(dtype: torch.dtype, shape: tuple[int, ...], monkeypatch) -> None:
    """Also in rows of very different sizes, in one of zeros, in ones of the smallest numbers, and over several blocks."""
    monkeypatch.setattr("composer.lower.int8.BLOCK_BYTES", {"cpu": 4096})
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(shape, generator=generator, dtype=torch.float64)
    source *= torch.logspace(-9, 4, shape[-2], dtype=torch.float64)[:, None]
    source[..., 0, :] = 0
    source = source.to(dtype)
    matrix = Int8Matrix.empty(shape, dtype, torch.device("cpu"))
    matrix.fill(source)
    wrong = (matrix.integers * matrix.scale.double() - source.double()).abs()
    assert (wrong <= matrix.scale.double() / 2 * (1 + 1e-6)).all()
    largest = source.double().abs().amax(-1, keepdim=True) / 127
    assert (matrix.scale.double() <= largest.clamp(min=torch.finfo(dtype).tiny) * (1 + 2**-8)).all(), "and no larger than needed"
    assert (matrix.integers[..., 0, :] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@torch.no_grad()
def test_a_product_is_that_of_the_rounded_matrix(dtype: torch.dtype, monkeypatch) -> None:
    """Block by block or by torch's own kernel; so it is within max |row| / 254 · ‖x‖₁ of that of the matrix itself."""
    monkeypatch.setattr("composer.lower.int8.BLOCK_BYTES", {"cpu": 4096})
    torch.manual_seed(0)
    layer, x = nn.Linear(96, 200), torch.randn(3, 5, 96)
    exact = layer.double()(x.double())
    matrix = Int8Matrix.empty((200, 96), dtype, torch.device("cpu"))
    matrix.fill(layer.weight)
    x = x.to(dtype)
    y = nn.functional.linear(x, matrix, layer.bias.to(dtype))
    assert y.dtype == dtype
    rounded = nn.functional.linear(x.double(), matrix.integers.double() * matrix.scale.double(), layer.bias)
    torch.testing.assert_close(y.double(), rounded, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)
    if dtype == torch.float64:
        assert ((y - exact).abs() <= matrix.scale[:, 0] / 2 * x.abs().sum(-1, keepdim=True) + 1e-12).all()


@pytest.mark.parametrize(
    ("recipe", "sizes"), [("gpt2", TINY), ("mixtral", SMALL["mixtral"]), ("deepseek_v2", SMALL["deepseek_v2"])]
)
@torch.no_grad()
def test_a_session_computes_what_one_call_computes(recipe: str, sizes: dict[str, int]) -> None:
    """In float64; with a tied head, with experts, and where a block reads a weight itself. Logits are near those of floats."""
    model = composer.load(recipe, sizes).compile(seed=0, dtype=torch.float64).eval()
    tokens = torch.arange(12)[None] * 5 % 11
    plain = model(tokens=tokens).logits
    rounded = to_int8(copy.deepcopy(model))
    whole = rounded(tokens=tokens).logits
    assert 0 < (whole - plain).norm() / plain.norm() < 0.02
    with session(rounded):
        parts = torch.cat([rounded(tokens=each).logits for each in (tokens[:, :5], *tokens[:, 5:].split(1, dim=1))], dim=1)
    torch.testing.assert_close(parts, whole, rtol=1e-9, atol=1e-9)
    request = Request(max_new_tokens=8, sampling=GREEDY)
    assert generate(rounded, [[1, 2, 3]], request, reading=cached) == generate(rounded, [[1, 2, 3]], request, reading=uncached)
    floats = copy.deepcopy(model)
    floats.load_state_dict(rounded.state_dict())  # what the integers stand for
    torch.testing.assert_close(floats(tokens=tokens).logits, whole, rtol=1e-9, atol=1e-9)


def test_what_is_rounded() -> None:
    """Linear maps, tables and experts; neither vectors nor the map of a router. A tie holds."""
    found = {name for name, _ in matrices(to_int8(composer.load("mixtral", {**SMALL["mixtral"], "n_layers": 1}).compile(seed=0)))}
    assert found == {
        "embed.weight", "head.weight", *(f"layers.0.attn.body.{each}.weight" for each in "qkv"), "layers.0.attn.body.out.weight",
        *(f"layers.0.moe.body.expert.{each}.weight" for each in ("gate", "up", "down")),
    }  # fmt: skip
    tied = to_int8(composer.load("gpt2", TINY).compile(seed=0))
    assert tied.head.weight is tied.embed.weight and isinstance(tied.head.weight, Int8Matrix)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published weights of a model whose matrices are most of it."""
    file = tmp_path_factory.mktemp("published") / "model.safetensors"
    save_published(composer.load("gpt2", WIDE).compile(seed=0), file)
    return file


def test_a_quarter_of_the_memory_is_taken_also_while_loading(weights: Path, monkeypatch) -> None:
    """Matrices are rounded one by one, some rows at a time. The numbers are those of a model that was loaded as floats first."""
    monkeypatch.setattr("composer.lower.int8.BLOCK_BYTES", {"cpu": 2**16})
    recipe = composer.load("gpt2", WIDE)
    floats = recipe.pretrained(weights)
    before = weight_bytes(floats)
    with torch.profiler.profile(profile_memory=True) as profile:
        model = recipe.pretrained(weights, int8=True)
    assert weight_bytes(model) < 0.27 * before
    assert most_held(profile) - weights.stat().st_size < 0.35 * before, "beside the file, which is mapped and not copied"
    assert not any(each.requires_grad for each in model.parameters()) and not model.training
    for (name, one), (_, other) in zip(matrices(model), matrices(to_int8(floats)), strict=True):
        assert one.integers.equal(other.integers) and one.scale.equal(other.scale), name


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(wrong: float) -> None:
    """By the name of the parameter, whichever way they come."""
    model = composer.load("gpt2", TINY).compile(seed=0)
    with torch.no_grad():
        model.layers[1].ffn.body.up.weight[3, 5] = wrong
    tensors = {name: each.clone() for name, each in published(model).items()}
    with pytest.raises(Int8Error, match=r"layers\.1\.ffn\.body\.up\.weight: it has numbers that are not finite"):
        to_int8(model)
    with pytest.raises(Int8Error, match=r"layers\.1\.ffn\.body\.up\.weight: it has numbers that are not finite"):
        model.recipe.pretrained(tensors, int8=True)
    rounded = to_int8(composer.load("gpt2", TINY).compile(seed=1).eval())
    before, tokens = copy.deepcopy(rounded), torch.tensor([[1, 2, 3]])
    for allowed in (False, True):
        with pytest.raises(Int8Error, match=r"layers\.1\.ffn\.body\.up\.weight: it has numbers that are not finite"):
            load_published(rounded, tensors, allow_nonfinite=allowed)
    assert rounded(tokens).logits.equal(before(tokens).logits)  # not even what comes before that matrix is filled
    missing = {name: each for name, each in tensors.items() if name != "ln_f.bias"}
    with pytest.raises(RecipeError, match="lacks 1 tensor"):
        model.recipe.pretrained(missing, int8=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_a_matrix_holds_what_it_can_be_filled_with(dtype: torch.dtype) -> None:
    """At the largest number whose scale its dtype has, and just beyond."""
    matrix = Int8Matrix.empty((2, 3), torch.float16, torch.device("cpu"))
    largest = float(torch.finfo(torch.float16).max)
    for top in (1.0, largest, 100 * largest, 200 * largest, math.inf, math.nan):
        source = torch.tensor([[0, -top, 1], [1, 1, 1]], dtype=dtype)
        try:
            matrix.fill(source)
        except Int8Error:
            assert not matrix.holds(source)
        else:
            assert matrix.holds(source)


def published(model: composer.Model) -> dict[str, torch.Tensor]:
    """Return the tensors of a model by their published names."""
    return weight_map(model, None).save(model.state_dict())


def test_a_rounded_model_is_neither_trained_nor_written_as_if_it_were_not(tmp_path: Path) -> None:
    """Each way out says so and leaves nothing behind; a pickle, and a copy of another dtype, keep it as it is."""
    text = "to be or not to be\n" * 20
    tokenizer = characters_of(text)
    model = to_int8(composer.load("gpt2", {**TINY, "vocab": tokenizer.size}).compile(seed=0)).eval()
    settings = TrainSettings(steps=1, batch_size=2, seq_len=8)
    outs = [
        lambda: train(
            model, tokenizer, tokenize(text, tokenizer, path="x"), settings, tmp_path / "run", recipe=model.recipe.text
        ),
        lambda: save_published(model, tmp_path / "model.safetensors"),
        lambda: export_folder(model, tmp_path / "folder"),
        lambda: export_gguf(model, tmp_path / "model.gguf"),
        lambda: export_program(model, tmp_path / "model.pt2"),
        lambda: model.requires_grad_(),
        lambda: setattr(model.head.weight, "data", torch.zeros(1)),
        lambda: model.head.weight.mul_(2),
    ]
    for out in outs:
        with pytest.raises(Int8Error, match="weights of 8 bits cannot be"):
            out()
    with pytest.raises(RuntimeError, match="weights of 8 bits cannot be changed in place"):
        model.load_state_dict(composer.load("gpt2", {**TINY, "vocab": tokenizer.size}).compile(seed=1).state_dict())
    assert not list(tmp_path.iterdir())
    file, tokens = io.BytesIO(), torch.tensor([[1, 2, 3]])
    torch.save(model, file)
    file.seek(0)
    with torch.no_grad():
        for again in (torch.load(file, weights_only=False), copy.deepcopy(model)):
            assert again.head.weight is again.embed.weight and again(tokens=tokens).logits.equal(model(tokens=tokens).logits)
        half = copy.deepcopy(model).to(torch.bfloat16)
        assert half.head.weight is half.embed.weight and half.head.weight.dtype == torch.bfloat16
        torch.testing.assert_close(half(tokens=tokens).logits.float(), model(tokens=tokens).logits, rtol=0.1, atol=0.1)
        load_published(model, published(composer.load("gpt2", {**TINY, "vocab": tokenizer.size}).compile(seed=1)))
        assert not again(tokens=tokens).logits.equal(model(tokens=tokens).logits), "other weights are rounded into it"


@pytest.mark.slow
def test_commands_round_what_they_read(arco: Arco, tmp_path: Path) -> None:
    """A published folder and a run; the perplexity of a text is near that of floats."""
    text = "to be or not to be, that is the question\n" * 40
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    sizes = ("--set", "n_layers=2", "--set", "d_model=32")
    assert arco("train", "gpt_mini", *sizes, "--data", "text.txt", "--steps", 60, "--seq-len", 32, "--run", "run").code == 0
    words = ("--prompt", "to be", "--temperature", 0, "--max-new-tokens", 20, "--device", "cpu")
    done = arco("generate", "run", *words, "--int8")
    trained = open_run("run")
    tokens = trained.tokenizer.encode("to be")
    answer = generate(to_int8(trained.model), [tokens], Request(max_new_tokens=20, sampling=GREEDY), reading=cached)[0]
    assert (done.code, done.out) == (0, f"to be{trained.tokenizer.decode(answer)}\n")
    refused = arco("generate", "run", *words, "--int8", "--prepack")
    assert refused.code == 2 and "--prepack keeps copies of matrices" in refused.err
    assert "--int8 is for published folders" in arco("evaluate", "run", "--int8").err
    sizes = ["d_model=32", "n_layers=2", "n_heads=4", "n_kv_heads=2", "hidden=64", "context=64"]
    llama = (word for size in sizes for word in ("--set", size))
    data = ("--data", "text.txt", "--tokenizer", "bpe", "--vocab-size", 270, "--seq-len", 16)
    assert arco("train", "llama3", *llama, *data, "--steps", 60, "--run", "llama").code == 0
    assert arco("export", "llama", "--to", "transformers", "-o", "published").code == 0
    found = [
        json.loads(arco("evaluate", "published", "--data", "text.txt", "--format", "json", "--device", "cpu", *more).out)["loss"]
        for more in ((), ("--int8",))
    ]
    assert 0 < abs(found[1] - found[0]) < 0.02 * found[0]
    done = arco("generate", "published", *words, "--int8")
    assert done.code == 0 and done.out.startswith("to be")
