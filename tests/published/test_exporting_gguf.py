"""Models written as GGUF files: the package of the format and transformers read them, they come in again, and what they lack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import tokenizers
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import composer
from composer.diagnostics import RecipeError
from composer.published import export_folder, export_gguf
from composer.published.tokenizer import published_tokenizer
from composer.published.tokenizer_files import tokenizer_files
from composer.train import ByteTokenizer, characters_of, marked, train_bpe
from composer.weights.gguf.architectures import ARCHITECTURES
from composer.weights.gguf.file import read_header
from tests.cli.conftest import Arco, arco
from tests.conformance.cases import TINY
from tests.parity.test_transformers import close
from tests.published.folders import CHAT, TEXT, tokenizer
from tests.published.test_exporting import TEXTS, perturbed

__all__ = ["arco"]
SMALL = {"d_model": 24, "n_layers": 2, "n_heads": 6, "n_kv_heads": 2, "hidden": 40, "vocab": 53, "context": 16}
WIDE = {**SMALL, "head_dim": 256, "n_heads": 3, "n_kv_heads": 1}
"""With the width of a head that transformers takes for granted in a file of Gemma."""
ZOO: dict[str, dict[str, Any]] = {
    "llama3": SMALL,
    "llama3 tied": {**SMALL, "tied": True},
    "mistral": {**SMALL, "sliding_window": 0},
    "mistral wide": {**SMALL, "sliding_window": 0, "head_dim": 6},
    "qwen2": SMALL,
    "qwen3": {**SMALL, "head_dim": 128},
    "gemma": {**SMALL, "head_dim": 8},
    "gemma2": {**WIDE, "n_layers": 3, "sliding_window": 4},
    "gemma3": {**WIDE, "n_layers": 7, "sliding_window": 4},
    "gpt2": {"d_model": 24, "n_layers": 2, "n_heads": 3, "vocab": 50257, "context": 1024},
}
"""The sizes of GPT-2's tables are those that transformers takes for granted."""
FEW = {"llama3 tied", "mistral wide", "gemma", "gemma3", "gpt2"}
"""Every kind of rule, and of key, that there is for an architecture."""
NOT_IN_TRANSFORMERS = ("gemma",)


def equal(model: Any, other: Any) -> None:
    """Assert that two models have the same weights, bit for bit."""
    assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in model.state_dict().items())


@torch.no_grad()
@pytest.mark.slow
@pytest.mark.parametrize("name", [name if name in FEW else pytest.param(name, marks=pytest.mark.exhaustive) for name in ZOO])
def test_the_zoo_goes_out_and_comes_in(name: str, tmp_path: Path) -> None:
    """The same model, bit for bit, and from then on the same file; transformers computes the same logits."""
    model = perturbed(composer.load(name.split()[0], ZOO[name]))
    file = tmp_path / "tiny.gguf"
    export_gguf(model, file)
    again = composer.load(file).pretrained()
    if name.startswith("gemma"):  # whose gains are written with 1 more, in which the last bits of small ones are lost
        assert all(
            torch.allclose(tensor, again.state_dict()[key], rtol=0, atol=2e-7) for key, tensor in model.state_dict().items()
        )
    else:
        equal(model, again)
    export_gguf(again, tmp_path / "second.gguf")
    equal(again, composer.load(tmp_path / "second.gguf").pretrained())
    if name in NOT_IN_TRANSFORMERS:
        return
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=file.name, dtype=torch.float32).eval()
    tokens = torch.randint(53, (2, 9), generator=torch.Generator().manual_seed(2))
    close(again.eval()(tokens).logits, theirs(input_ids=tokens).logits)
    close(model(tokens).logits, theirs(input_ids=tokens).logits)


@torch.no_grad()
@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["rows of queries", "gate and up"])
def test_a_mistake_in_the_table_changes_what_transformers_computes(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading by the same table would not show it."""
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    known = ARCHITECTURES["llama"]
    tensors = {**known.tensors, "ffn_gate": known.tensors["ffn_up"], "ffn_up": known.tensors["ffn_gate"]}
    changed = {"rows of queries": replace(known, pairs=False), "gate and up": replace(known, tensors=tensors)}[mistake]
    monkeypatch.setitem(ARCHITECTURES, "llama", changed)
    model = perturbed(composer.load("llama3", SMALL))
    export_gguf(model, tmp_path / "tiny.gguf")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf", dtype=torch.float32).eval()
    tokens = torch.randint(53, (2, 9), generator=torch.Generator().manual_seed(2))
    with pytest.raises(AssertionError):
        close(model(tokens).logits, theirs(input_ids=tokens).logits)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_tensors_have_the_names_that_the_package_of_the_format_gives_them(name: str) -> None:
    """For every published name that is known, in a layer and outside."""
    gguf = pytest.importorskip("gguf")
    kind = next(kind for kind, each in gguf.MODEL_ARCH_NAMES.items() if each == name)
    names, known = gguf.get_tensor_name_map(kind, 4), ARCHITECTURES[name]
    for ours in known.tensors:
        stored = f"{'' if ours in ('token_embd', 'position_embd', 'output', 'output_norm') else 'blk.3.'}{ours}"
        published = known.published(f"{stored}.weight")
        assert names.get_name(published.removesuffix(".weight")) == stored and known.stored(published) == f"{stored}.weight"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matrices_are_rounded_and_vectors_are_not(dtype: torch.dtype, tmp_path: Path) -> None:
    """As the package of the format reads them; a model of that dtype is written in it unasked, and comes in as it was."""
    gguf = pytest.importorskip("gguf")
    model = perturbed(composer.load("llama3", SMALL))
    export_gguf(model, tmp_path / "asked.gguf", dtype=dtype)
    export_gguf(model.to(dtype), tmp_path / "own.gguf")
    for name in ("asked", "own"):
        read = gguf.GGUFReader(tmp_path / f"{name}.gguf")
        found = {each.name: gguf.dequantize(each.data, each.tensor_type) for each in read.tensors}
        kinds = {each.tensor_type.name for each in read.tensors if len(each.shape) > 1}
        assert kinds == {"F16" if dtype == torch.float16 else "BF16"}
        assert {each.tensor_type.name for each in read.tensors if len(each.shape) == 1} == {"F32"}
        embedding = torch.from_numpy(numpy.array(found["token_embd.weight"], "f4"))
        assert torch.equal(embedding, model.state_dict()["embed.weight"].to(dtype).float())
    again = composer.load(tmp_path / "own.gguf").pretrained(dtype=dtype)
    equal(model.to(dtype), again)


def test_a_number_that_a_dtype_cannot_hold_is_refused(tmp_path: Path) -> None:
    """By the name of its tensor, and what is there already stays."""
    model = composer.load("llama3", SMALL).compile(seed=0)
    with torch.no_grad():
        model.state_dict()["layers.1.ffn.body.up.weight"][3, 2] = 70000
    (tmp_path / "tiny.gguf").write_bytes(b"kept")
    with pytest.raises(RecipeError, match=r"model\.layers\.1\.mlp\.up_proj\.weight has numbers that float16 cannot hold"):
        export_gguf(model, tmp_path / "tiny.gguf", dtype=torch.float16)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("tiny.gguf", b"kept")]
    with pytest.raises(RecipeError, match="cannot be written"):
        export_gguf(model, tmp_path / "none" / "tiny.gguf")


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("llama3", {"scaling": "{type: llama3, factor: 8, original_max_position_embeddings: 4}"}, "scaling"),
        ("mistral", {"sliding_window": 4}, "window(4)"),
        ("gemma2", {"query_scale": 64}, "layers.*.attn.body (3×): scale"),
        ("gemma3", {"period": 3, "n_layers": 4}, "layers.2.attn.body: mask"),
        ("llama3", {"graph.layers.graph.ffn.body.activation": "relu"}, "relu"),
        ("gpt2", {"graph.norm": "rmsnorm"}, "rmsnorm"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_at_the_rules(name: str, change: dict[str, Any], says: str, tmp_path: Path) -> None:
    """With the node or the param that it is about, and nothing is left behind."""
    sizes = {**ZOO[name], "vocab": 53, "context": 16, **({"head_dim": 8} if name.startswith("gemma") else {})}
    model = composer.load(name, {**sizes, **change}).compile(seed=0)
    with pytest.raises(RecipeError) as error:
        export_gguf(model, tmp_path / "tiny.gguf")
    (found,) = error.value.diagnostics[:1]
    assert says in found.message + found.hint, found
    assert found.span.line > 1 and found.span.source.name.endswith(".yaml") and not list(tmp_path.iterdir())


def test_a_model_type_that_llama_cpp_lacks_is_refused(tmp_path: Path) -> None:
    """And a recipe without rules."""
    for name, says in (("bert", "models of the type bert are not written"), ("gpt_mini", "no rules for published checkpoints")):
        with pytest.raises(RecipeError, match=says):
            export_gguf(composer.load(name, TINY.get(name, {})).compile(seed=0), tmp_path / "tiny.gguf")


# -- tokenizers


@pytest.mark.slow
@pytest.mark.parametrize("template", [None, CHAT])
def test_the_tokenizer_goes_along(template: str | None, tmp_path: Path) -> None:
    """Of a published folder: the same ids by our reading and by transformers', and the same words for special tokens."""
    model = perturbed(composer.load("llama3", {**SMALL, "vocab": 340}))
    export_folder(model, tmp_path / "plain")
    made = tokenizer("<s>", "</s>", "<|user|>", bos_token="<s>", eos_token="</s>")
    made.chat_template = template
    made.save_pretrained(tmp_path / "plain")
    folder = composer.load(tmp_path / "plain").pretrained()
    file = tmp_path / "tiny.gguf"
    export_gguf(folder, file)
    ours, before = published_tokenizer(file), published_tokenizer(tmp_path / "plain")
    assert (ours.special, ours.chat_template, ours.stop) == (before.special, template, {1})
    for text in [*TEXTS, "<|user|>the cat</s>"]:
        assert ours.encode(text) == before.encode(text) and ours.decode(ours.encode(text)) == before.decode(before.encode(text))
    assert len(read_header(file).settings["tokenizer.ggml.tokens"]) == 340
    export_gguf(composer.load(file).pretrained(), tmp_path / "again.gguf")
    assert read_header(tmp_path / "again.gguf").settings == {**read_header(file).settings, "general.name": "Tiny"}
    pytest.importorskip("gguf")
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file=file.name)
    for text in TEXTS:
        assert theirs(text, add_special_tokens=False).input_ids == before.encode(text, special=False)


@pytest.mark.slow
@pytest.mark.parametrize("size", [None, 300])
def test_tokenizers_of_runs_go_along(size: int | None, tmp_path: Path) -> None:
    """Of bytes and of pairs of bytes, with the token that ends a text."""
    made = marked(ByteTokenizer() if size is None else train_bpe(TEXT, size=size), "seq2seq_lm")
    export_gguf(composer.load("llama3", {**SMALL, "vocab": made.size}).compile(seed=0), tmp_path / "tiny.gguf", tokenizer=made)
    ours, before = (
        published_tokenizer(tmp_path / "tiny.gguf"),
        tokenizers.Tokenizer.from_str(tokenizer_files(made, None)["tokenizer.json"]),
    )
    for text in TEXTS:
        assert ours.encode(text) == before.encode(text).ids


@pytest.mark.parametrize(("change", "says"), [("characters", "it is WordLevel"), ("size", "it has 256 tokens, and the model 53")])
def test_a_tokenizer_that_a_file_cannot_hold_is_refused(change: str, says: str, tmp_path: Path) -> None:
    """Rather than left out."""
    made = characters_of(TEXT) if change == "characters" else ByteTokenizer()
    with pytest.raises(RecipeError, match=says):
        export_gguf(composer.load("llama3", SMALL).compile(seed=0), tmp_path / "tiny.gguf", tokenizer=made)


@pytest.mark.slow
def test_the_command_writes_a_file(arco: Arco, tmp_path: Path) -> None:
    """With the dtype that is asked for, which no other format takes."""
    words = [word for key, size in SMALL.items() for word in ("--set", f"{key}={size}")]
    done = arco("export", "llama3", *words, "--to", "gguf", "--dtype", "bfloat16", "-o", "tiny.gguf")
    assert done == (0, "wrote tiny.gguf (initial weights: none come with the recipe)\n", "")
    kinds = {each.kind.name for each in read_header(tmp_path / "tiny.gguf").tensors.values()}
    assert kinds == {"F32", "BF16"}
    assert arco("export", "llama3", *words, "--to", "gguf").err.startswith("arco export: --to gguf writes a file")
    assert "--dtype is for --to gguf" in arco("export", "llama3", *words, "--to", "torch", "--dtype", "float16").err
    done = arco("export", "tiny.gguf", "--to", "gguf", "-o", "again.gguf")
    assert done == (0, "wrote again.gguf\n", "")
