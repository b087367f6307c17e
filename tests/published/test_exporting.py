"""Models written as published folders: plain classes of transformers load them, and what such a folder cannot hold is refused."""

from __future__ import annotations

import json
import math
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM, AutoTokenizer

import composer
from composer.diagnostics import RecipeError
from composer.published import export_folder
from composer.published.importing import imported
from composer.published.tokenizer_files import tokenizer_files
from composer.train import (
    ByteTokenizer,
    MarkedTokenizer,
    Tokenizer,
    TrainSettings,
    characters_of,
    marked,
    tokenize,
    train,
    train_bpe,
)
from tests.cli.conftest import Arco, arco
from tests.parity.test_transformers import TINY, close
from tests.published.folders import CHAT, TEXT, save, tokenizer

__all__ = ["arco"]
SEQ2SEQ = {"vocab": 53, "d_model": 24, "n_layers": 2, "n_heads": 3, "head_dim": 8, "hidden": 40, "buckets": 8}
IMAGE = {"size": 8, "patch": 4}
ZOO: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: ("CausalLM" if composer.load(name).task == "causal_lm" else "MaskedLM", sizes) for name, sizes in TINY.items()},
    "t5": ("Seq2SeqLM", SEQ2SEQ),
    "switch": ("Seq2SeqLM", {**SEQ2SEQ, "n_experts": 3}),
    "vit": ("ImageClassification", {**IMAGE, "n_classes": 5, "d_model": 24, "n_layers": 2, "n_heads": 3, "hidden": 40}),
    "captioner": ("ImageTextToText", {
        **IMAGE, "vocab": 53, "context": 16, "d_model": 24, "n_layers": 2, "n_heads": 3, "d_image": 24, "n_image_layers": 2,
        "n_image_heads": 3,
    }),
}  # fmt: skip
FEW = {"albert", "gemma3", "gpt2", "switch", "vit", "captioner", "llama3 scaled"}
"""A folder of every task, and of every kind of rule and key."""
GPT2 = {"vocab": 53, "context": 16, "d_model": 12, "n_layers": 2, "n_heads": 3}
SCALED = "{type: llama3, factor: 8, original_max_position_embeddings: 4}"


def perturbed(recipe: composer.Recipe, **options: Any) -> Any:
    """Return the model of a recipe with every parameter moved at random, ready to be compared."""
    model = recipe.compile(seed=0, **options).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter.dtype), alpha=0.1)
    return model


def assert_same_weights(folder: Path, model: Any) -> None:
    """Assert that a folder loads as the model, bit for bit."""
    again = composer.load(folder).pretrained(dtype=next(model.parameters()).dtype)
    assert again.recipe.diff(model.recipe).equal
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in model.state_dict().items())


@torch.no_grad()
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name if name in FEW else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in (*ZOO, "llama3 tied", "llama3 scaled")
    ],
)
def test_the_zoo_goes_out_and_comes_in(name: str, tmp_path: Path) -> None:
    """Logits equal transformers', and the folder is the same model again, with the recipe in it and without."""
    name, _, variant = name.partition(" ")
    kind, sizes = ZOO[name]
    changes = {"": {}, "tied": {"tied": True}, "scaled": {"scaling": SCALED}}[variant]
    model = perturbed(composer.load(name, {**sizes, **changes}))
    folder = tmp_path / name
    export_folder(model, folder, "switch_transformers" if name == "switch" else None)
    assert_same_weights(folder, model)
    (folder / "recipe.yaml").unlink()
    assert_same_weights(folder, model)
    theirs, report = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(folder, output_loading_info=True)
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"] == [type(theirs).__name__]
    assert {each for each in report["missing_keys"] if "pooler" not in each} == set() == set(report["unexpected_keys"])
    tokens = torch.randint(53, (2, 7), generator=torch.Generator().manual_seed(2))
    image = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))
    ours, given = {
        "Seq2SeqLM": (
            lambda: model(source=tokens, target=tokens[:, :5]),
            {"input_ids": tokens, "decoder_input_ids": tokens[:, :5]},
        ),
        "ImageClassification": (lambda: model(image), {"pixel_values": image}),
        "ImageTextToText": (lambda: model(image, tokens), {"pixel_values": image, "decoder_input_ids": tokens}),
    }.get(kind, (lambda: model(tokens), {"input_ids": tokens}))
    close(ours().logits, theirs(**given).logits)


@torch.no_grad()
def test_a_list_with_infinity_goes_out_as_a_list(tmp_path: Path) -> None:
    """The limits of Mamba-2's steps, as its own class of transformers reads them; a folder with others is refused."""
    sizes = {"vocab": 53, "d_model": 16, "n_layers": 2, "n_heads": 4, "head_dim": 8, "n_groups": 1, "state": 4}
    model = perturbed(composer.load("mamba2", sizes))
    folder = tmp_path / "mamba2"
    export_folder(model, folder)
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["time_step_limit"] == [0.0, math.inf]
    tokens = torch.randint(53, (2, 7), generator=torch.Generator().manual_seed(2))
    theirs = AutoModelForCausalLM.from_pretrained(folder)
    assert tuple(theirs.config.time_step_limit) == (0.0, math.inf)
    close(model(tokens).logits, theirs(input_ids=tokens).logits)
    (folder / "recipe.yaml").unlink()
    assert_same_weights(folder, model)
    for limits in ([0.0, 1.0], [0.0], [0.0, math.inf, math.inf], "[0.0, Infinity]"):
        with pytest.raises(RecipeError, match=r"needs \[0.0, Infinity\]"):
            composer.load("mamba2", sizes).with_config({**theirs.config.to_dict(), "time_step_limit": limits})


CONSTANTS = """
recipe: scaled
params: {{width: 8, n: 2}}
inputs: {{x: "float[batch, time, width]"}}
graph: {{a: {{type: linear, out: width, bias: false}}}}
checkpoints:
  scaled:
    config:
      params: {{width: hidden, n: n}}
      constants: {{key: {constant}}}
    rules: {{a.weight: a.weight}}
"""


@pytest.mark.parametrize(
    ("constant", "written"),
    [
        ("[[width, 2 * width, full-attention, null, true], [x]]", [8, 16, "full-attention", None, True]),
        ("[[], 3]", []),
        ('"{}"', {}),
        ("full-attention if n == 2 else none", "full-attention"),
        ("p2c|c2p", "p2c|c2p"),
        ('"1 / (n - 2)"', None),
    ],
)
def test_a_constant_is_never_the_text_of_an_expression(constant: str, written: Any, tmp_path: Path) -> None:
    """Lists item by item; a computation without a value is an error of the recipe."""
    recipe = composer.load(CONSTANTS.format(constant=constant))
    if written is None:
        with pytest.raises(RecipeError, match="zero"):
            export_folder(recipe.compile(), tmp_path / "out")
        return
    export_folder(recipe.compile(), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["key"] == written


@pytest.mark.parametrize("said", [True, False])
def test_a_list_of_which_one_item_is_read_is_written_by_a_constant(said: bool, tmp_path: Path) -> None:
    """From the item alone, the list cannot be computed back; what is written is read again."""
    text = CONSTANTS.format(constant="3").replace("n: n}", "n: n, width: at(0) - 1}").replace("width: hidden, ", "")
    recipe = composer.load(text.replace("key: 3", "at: {each: width + 1 + 4 * layer, count: n}") if said else text)
    if not said:
        with pytest.raises(RecipeError, match="say what at is under `constants` too"):
            export_folder(recipe.compile(), tmp_path / "out")
        return
    export_folder(recipe.compile(), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["at"] == [9, 13]
    assert composer.load(tmp_path / "out").diff(recipe).equal


TOKENIZERS: dict[str, Tokenizer] = {
    "characters": characters_of(TEXT + "née — 漢字\r\n\t"),
    "bytes": ByteTokenizer(),
    "bpe": train_bpe(TEXT, size=300),
    "one character": characters_of("a"),
}
TEXTS = ["the cat sat on the mat", "the mat\nand ", "  the  \n\n dog ", "", "née — 漢字\r\n\t"]


def written(made: Tokenizer, folder: Path) -> Any:
    """Return a tokenizer of ours as transformers loads it."""
    folder.mkdir()
    for name, text in tokenizer_files(made, 64).items():
        (folder / name).write_text(text, encoding="utf-8")
    return AutoTokenizer.from_pretrained(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["characters", "bytes", "bpe"])
def test_tokenizers_give_the_same_ids(name: str, tmp_path: Path) -> None:
    """And the same text back."""
    ours, theirs = TOKENIZERS[name], written(TOKENIZERS[name], tmp_path / "made")
    assert len(theirs) == ours.size and theirs.model_max_length == 64
    for text in TEXTS:
        assert theirs(text)["input_ids"] == ours.encode(text)
        assert theirs.decode(ours.encode(text)) == text == ours.decode(ours.encode(text))


@pytest.mark.slow
def test_a_tokenizer_of_characters_refuses_others(tmp_path: Path) -> None:
    """As it does here, rather than leave them out."""
    with pytest.raises(Exception, match="WordLevel error"):
        written(TOKENIZERS["one character"], tmp_path / "made")("ab")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["masked_lm", "denoising", "seq2seq_lm"])
@pytest.mark.parametrize("name", ["characters", "bytes", "bpe"])
def test_marks_are_special_tokens(name: str, task: str, tmp_path: Path) -> None:
    """With the ids of ours, in the roles that transformers knows, and an end after what a decoder reads."""
    ours = marked(TOKENIZERS[name], task)
    theirs = written(ours, tmp_path / "made")
    assert isinstance(ours, MarkedTokenizer) and len(theirs) == ours.size
    text = "the <mask> sat" if task == "masked_lm" else "the <0> sat<1>" if task == "denoising" else "the cat"
    end = [ours.mark("<end>")] if task != "masked_lm" else []
    assert theirs(text)["input_ids"] == [*ours.encode_marked(text), *end]
    if task == "masked_lm":
        assert theirs.mask_token_id == ours.mark("<mask>") and theirs.eos_token_id is None
    else:
        assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (ours.mark("<start>"), *end, *end)


def run_of(name: str, made: Tokenizer, sizes: dict[str, Any], folder: Path) -> None:
    """Train a model of the zoo a few steps."""
    recipe = composer.load(name, {**sizes, "vocab": made.size})
    settings = TrainSettings(steps=12, batch_size=4, seq_len=16, learning_rate=0.01, log_every=100)
    assert recipe.task is not None
    data = tokenize(TEXT, made, path="text.txt")
    train(recipe.compile(seed=0), made, data, settings, folder, recipe=recipe.text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of characters, trained a little."""
    folder = tmp_path_factory.mktemp("runs") / "gpt2"
    run_of("gpt2", characters_of(TEXT), {**GPT2, "context": 64}, folder)
    return folder


@pytest.mark.slow
def test_a_run_goes_out_and_answers_alike(run: Path, arco: Arco, tmp_path: Path) -> None:
    """With the tokenizer of the run; and the folder that was written goes out as it is."""
    done = arco("export", run, "--to", "transformers", "-o", "mine")
    assert done == (0, "wrote mine\n", "")
    made, theirs = AutoTokenizer.from_pretrained("mine"), AutoModelForCausalLM.from_pretrained("mine")
    answer = theirs.generate(**made("the cat", return_tensors="pt"), max_new_tokens=20, do_sample=False)[0]
    words = ("--prompt", "the cat", "--temperature", 0, "--max-new-tokens", 20, "--device", "cpu")
    assert arco("generate", run, *words).out == arco("generate", "mine", *words).out == f"{made.decode(answer)}\n"
    assert arco("export", "mine", "--to", "transformers", "-o", "again").code == 0
    assert {each.name: each.read_bytes() for each in Path("mine").iterdir()} == {
        each.name: each.read_bytes() for each in Path("again").iterdir()
    }


@torch.no_grad()
@pytest.mark.slow
def test_a_published_model_goes_out_as_it_came(arco: Arco, tmp_path: Path) -> None:
    """In its own dtype, tensors bit-equal, with its tokenizer, its template and what its settings say of generation."""
    made = tokenizer("<|user|>", "<|assistant|>", "<end>", eos_token="<end>", bos_token="<end>")
    made.chat_template = CHAT
    config = transformers.LlamaConfig(
        vocab_size=len(made), hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
        num_key_value_heads=3, max_position_embeddings=64, eos_token_id=2, bos_token_id=2,
    )  # fmt: skip
    save(transformers.LlamaForCausalLM(config).to(torch.bfloat16), made, tmp_path / "theirs", eos_token_id=[2, 5])
    assert arco("export", "theirs", "--to", "transformers", "-o", "ours", "--max-shard-size", "3KB").code == 0
    files = sorted(tmp_path.glob("ours/*.safetensors"))
    theirs = load_file(tmp_path / "theirs" / "model.safetensors")
    ours = {name: tensor for file in files for name, tensor in load_file(file).items()}
    assert len(files) > 2 and theirs.keys() == ours.keys()
    assert all(tensor.dtype == torch.bfloat16 and torch.equal(tensor, ours[name]) for name, tensor in theirs.items())
    index = json.loads((tmp_path / "ours" / "model.safetensors.index.json").read_text(encoding="utf-8"))
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in theirs.values())
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    before, after = (json.loads((tmp_path / name / "config.json").read_text(encoding="utf-8")) for name in ("theirs", "ours"))
    assert {key: after[key] for key in before} == before
    assert after["architectures"] == ["LlamaForCausalLM"] and after["eos_token_id"] == before["eos_token_id"]
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "ours")
    reference = AutoModelForCausalLM.from_pretrained(tmp_path / "theirs")
    assert torch.equal(loaded(torch.arange(9)[None]).logits, reference(torch.arange(9)[None]).logits)


@torch.no_grad()
@pytest.mark.slow
def test_a_body_goes_out_without_a_head(arco: Arco, tmp_path: Path) -> None:
    """As it came in."""
    config = transformers.BertConfig(
        vocab_size=53,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=16,
    )
    made = tokenizer("[MASK]", mask_token="[MASK]")
    save(transformers.BertModel(config, add_pooling_layer=False), made, tmp_path / "theirs")
    assert arco("export", "theirs", "--to", "transformers", "-o", "ours") == (0, "wrote ours\n", "")
    tokens = torch.arange(9)[None]
    ours, theirs = (AutoModel.from_pretrained(tmp_path / name, add_pooling_layer=False) for name in ("ours", "theirs"))
    assert torch.equal(ours(tokens).last_hidden_state, theirs(tokens).last_hidden_state)


ENCODER = {"d_model": 12, "n_layers": 1, "n_heads": 3, "hidden": 20}
WITH_IDS: dict[str, tuple[str, dict[str, Any], str, dict[str, int | None]]] = {
    "roberta": ("roberta", {**ENCODER, "context": 16, "padding": 5}, "MaskedLM", {"pad_token_id": 5}),
    "modernbert": ("modernbert", {**ENCODER, "padding": 3, "reach": 2}, "MaskedLM", {
        "pad_token_id": 3, "bos_token_id": None, "cls_token_id": None, "sep_token_id": None, "local_attention": 4,
    }),
    "deberta_v2": ("deberta-v2", {**ENCODER, "padding": 2}, "MaskedLM", {"pad_token_id": 2}),
    "bigbird": ("big_bird", {**ENCODER, "context": 16, "padding": 4, "attention": "original_full"}, "MaskedLM", {
        "pad_token_id": 4,
    }),
    "bart": ("bart", {**ENCODER, "context": 16, "padding": 1}, "Seq2SeqLM", {
        "pad_token_id": 1, "bos_token_id": 256, "eos_token_id": 257, "decoder_start_token_id": 256,
    }),
}  # fmt: skip
"""Recipes that map ids of special tokens: model type, sizes, class, and what is in `config.json`."""


@torch.no_grad()
@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_IDS)
def test_ids_that_a_recipe_maps_go_out(name: str, tmp_path: Path) -> None:
    """They are the recipe's, with a tokenizer and without; all others are the tokenizer's, and none is a default of transformers.
    Both read the folder alike, padding included.
    """
    kind, sizes, auto, ids = WITH_IDS[name]
    recipe = composer.load(name, {**sizes, "vocab": 270})
    model = perturbed(recipe)
    for made in (None, marked(ByteTokenizer(), recipe.task or "")):
        folder = tmp_path / f"with {made is not None}"
        export_folder(model, folder, kind, tokenizer=made)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        expected = {key: None if made is None and value in (256, 257) else value for key, value in ids.items()}
        assert {key: config[key] for key in expected} == expected
        if (folder / "generation_config.json").is_file():
            written = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
            assert written == {key: value for key, value in expected.items() if value is not None}
        assert_same_weights(folder, model)
    theirs = getattr(transformers, f"AutoModelFor{auto}").from_pretrained(folder).eval()
    tokens = torch.randint(6, 256, (2, 7), generator=torch.Generator().manual_seed(2))
    if auto == "Seq2SeqLM":
        ours, given = model(source=tokens, target=tokens[:, :5]), {"decoder_input_ids": tokens[:, :5]}
    else:
        tokens[1, 5:] = config["pad_token_id"]  # which RoBERTa gives no position
        ours, given = model(tokens), {}
    close(ours.logits, theirs(input_ids=tokens, attention_mask=torch.ones_like(tokens), **given).logits)


def test_code_of_others_does_not_go_out(tmp_path: Path) -> None:
    """A `config.json` that names some is read, since the model is known without; what is written names none."""
    tiny = {"vocab": 53, "d_model": 12, "n_layers": 1, "n_heads": 2}
    recipe = composer.load("mpt", tiny)
    export_folder(recipe.compile(seed=0), tmp_path / "one")
    config = json.loads((tmp_path / "one" / "config.json").read_text(encoding="utf-8"))
    assert "auto_map" not in config
    named = {**config, "auto_map": {"AutoConfig": "configuration_mpt.MPTConfig"}}
    (tmp_path / "one" / "config.json").write_text(json.dumps(named), encoding="utf-8")
    export_folder(composer.load(tmp_path / "one").pretrained(), tmp_path / "two")
    assert "auto_map" not in json.loads((tmp_path / "two" / "config.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_hidden_words_are_filled_alike(arco: Arco, tmp_path: Path) -> None:
    """A masked language model of a run has its mask where transformers looks for it."""
    made = marked(characters_of(TEXT), "masked_lm")
    run_of("bert", made, {**TINY["bert"], "context": 64}, tmp_path / "run")
    assert arco("export", "run", "--to", "transformers", "-o", "mine").code == 0
    theirs, found = AutoTokenizer.from_pretrained("mine"), AutoModelForMaskedLM.from_pretrained("mine")
    given = theirs("the <mask>at sat", return_tensors="pt")
    logits = found(**given).logits.detach()[0, given["input_ids"][0] == theirs.mask_token_id]
    letter = theirs.decode(logits[:, : theirs.mask_token_id].argmax(-1))
    assert arco("generate", "run", "--prompt", "the <mask>at sat", "--device", "cpu").out == f"the {letter}at sat\n"


@pytest.mark.slow
def test_gaps_are_filled_alike(arco: Arco, tmp_path: Path) -> None:
    """An encoder-decoder of a run begins and ends where transformers does."""
    made = marked(characters_of(TEXT), "denoising")
    run_of("t5", made, {**SEQ2SEQ, "context": 64}, tmp_path / "run")
    assert arco("export", "run", "--to", "transformers", "-o", "mine").code == 0
    theirs, found = AutoTokenizer.from_pretrained("mine"), AutoModelForSeq2SeqLM.from_pretrained("mine")
    answer = found.generate(**theirs("the <0> sat on", return_tensors="pt"), max_new_tokens=12, do_sample=False)[0, 1:]
    words = ("--prompt", "the <0> sat on", "--temperature", 0, "--max-new-tokens", 12, "--device", "cpu")
    end = [theirs.eos_token_id]
    assert arco("generate", "run", *words).out == f"{theirs.decode([each for each in answer.tolist() if [each] != end])}\n"


OWN = """\
recipe: own
params: {{width: 8, extra: 2, rate: 0.5}}
inputs: {{x: "float[batch, time, 4]"}}
graph:
  a: {{type: linear, out: width + extra}}
  b: {{type: linear, out: 4}}
checkpoints:
  own-type:
    rules: {{a.*: inner.a.*, b.*: inner.b.*}}
    config:
      params: {{width: {width}, extra: {extra}, rate: rate}}
      constants: {{kinds: {{each: "odd if layer % 2 == 1 else even", count: extra}}, whole: width / 4, name: some-name, no: null}}
"""


def config_of(recipe: composer.Recipe, folder: Path) -> dict[str, Any]:
    """Return the `config.json` that is written for a recipe."""
    export_folder(recipe.compile(seed=0), folder)
    found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("width", "extra", "keys"),
    [
        ("w", "e", {"w": 8, "e": 2}),
        ("w * 4", "e", {"w": 2, "e": 2}),
        ("3 + w / 2 - 1", "e", {"w": 12, "e": 2}),
        ("20 - w", "-(e - 4)", {"w": 12, "e": 2}),
        ("16 / w", "e + w", {"w": 2, "e": 0}),
        ("w - e", "e", {"w": 10, "e": 2}),
        ("w * 2 if e == 2 else w", "e", {"w": 4, "e": 2}),
        ("{from: w if e == 3 else 8, default: 8}", "e", {"e": 2}),
        ("w // 3", "e", {"w": 24, "e": 2}),
        ("a.w / 2", "[e, f]", {"a": {"w": 16}, "e": 2, "f": 2}),
    ],
)
def test_arithmetic_is_computed_back(width: str, extra: str, keys: dict[str, Any], tmp_path: Path) -> None:
    """Keys that another param gives may stand in it; constants are the first of what is allowed."""
    recipe = composer.load(OWN.format(width=width, extra=extra))
    found = config_of(recipe, tmp_path / "own")
    rest = {"kinds": ["even", "odd"], "whole": 2, "name": "some-name", "no": None, "rate": 0.5}
    assert found == {"model_type": "own-type", "dtype": "float32", **keys, **rest}
    assert all(type(found[key]) is type(value) for key, value in (keys | rest).items())
    assert_same_weights(tmp_path / "own", recipe.compile(seed=0))


@pytest.mark.parametrize(
    ("width", "extra", "says"),
    [
        ("w * w", "e", "width is 8, from which w cannot be computed back"),
        ("w % 20", "e", "width is 8, from which w cannot be computed back"),
        ("w + v", "e", "width is 8, from which v and w cannot be computed back"),
        ("0 * w", "e", "width is 8, from which w cannot be computed back"),
        ("w if w > 3 else 2", "e", "width is 8, from which w cannot be computed back"),
        ("w", "w", "w cannot be both 8, for width, and 2, for extra"),
        ("e + 1", "e", "width does not come back from the config.json that is written for it"),
        ("{from: w, values: {a: 3, b: 4}}", "e", "width is 8; w stands for 3, 4"),
        ("{count: w}", "e", "width is 8, and what the 8 entries of w are is not known"),
    ],
)
def test_what_has_no_inverse_is_refused_at_its_rule(width: str, extra: str, says: str, tmp_path: Path) -> None:
    """By the name of the param, and nothing is written."""
    recipe = composer.load(OWN.format(width=width, extra=extra))
    with pytest.raises(RecipeError) as error:
        config_of(recipe, tmp_path / "own")
    (first, *_) = error.value.diagnostics
    assert first.message == says and first.span.line == 11 and not list(tmp_path.iterdir())


CHANGED = {
    "mask": ("gpt2", GPT2, {"layers.attn.body.mask": "window(3) and causal"}, "layers.*.attn.body (2×): mask "),
    "activation": ("gpt2", GPT2, {"layers.ffn.body.activation": "relu"}, "layers.*.ffn.body.activation (2×): gelu_tanh → relu"),
    "dropout of one": ("gpt2", GPT2, {"graph.drop.p": 0.3}, "drop: p 0.1 → 0.3"),
    "tie": (
        "llama3",
        TINY["llama3"],
        {"graph.head.tie": "{weight: embed.weight}"},
        "head.weight: not shared → shared with embed.weight",
    ),
    "norm": ("llama3", TINY["llama3"], {"norm": "{type: rmsnorm, eps: 0.5}"}, "norm: eps 1e-05 → 0.5"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_structure_is_refused_by_the_name_of_the_node(name: str, tmp_path: Path) -> None:
    """Also where the change is part of the recipe's own text, as in the folder of a run."""
    recipe, sizes, change, says = CHANGED[name]
    changed = composer.load(recipe, {**sizes, **change})
    for each in (changed, composer.load(changed.text)):
        with pytest.raises(RecipeError) as error:
            export_folder(each.compile(seed=0), tmp_path / "mine")
        ((found),) = error.value.diagnostics
        assert "of transformers is another model than this recipe" in found.message and says in found.message
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_is_about_training_alone_goes_out(tmp_path: Path) -> None:
    """Other initial values and losses are the same model once it is trained."""
    text = composer.load("gpt2", GPT2).text.replace("normal: 0.02", "normal: 0.5")
    changed = composer.load(text)
    assert not changed.diff(composer.load("gpt2", GPT2)).equal
    model = changed.compile(seed=0)
    export_folder(model, tmp_path / "mine")
    assert_same_weights(tmp_path / "mine", model)


@pytest.mark.slow
def test_rules_that_write_other_names_are_refused(tmp_path: Path) -> None:
    """Shapes alone do not show that two matrices are swapped."""
    text = composer.load("llama3", TINY["llama3"]).text
    swapped = text.replace("body.(gate|up|down).weight: model", "body.(up|gate|down).weight: model")
    assert swapped != text
    with pytest.raises(RecipeError, match=r"the rules write layers\.0.ffn\.body\.gate\.weight where a llama of transformers has"):
        export_folder(composer.load(swapped).compile(seed=0), tmp_path / "mine")


@pytest.mark.slow
def test_a_recipe_of_ones_own_type_is_held_against_itself(tmp_path: Path) -> None:
    """The zoo does not know it; without what is set from outside, it is the model that its rules were written for."""
    plain = OWN.format(width="w", extra="e")
    export_folder(composer.load(plain, {"width": 12}).compile(seed=0), tmp_path / "mine")
    with pytest.raises(RecipeError, match="a own-type of transformers is another model than this recipe: b: bias"):
        export_folder(composer.load(plain, {"b.bias": False}).compile(seed=0), tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("gpt_mini", "--to", "transformers", "-o", "x"), 1, "this recipe has no rules for published checkpoints"),
        (("switch", "--to", "transformers", "-o", "x", "--set", "n_layers=2", "--set", "d_model=8"), 0, "wrote x"),
        (("gpt2", "--to", "transformers"), 2, "--to transformers writes a folder\n  = name a new one with -o FOLDER"),
        (("gpt2", "--to", "transformers", "-o", "-"), 2, "writes a folder"),
        (("gpt2", "--seed", 3), 2, "--seed is for --to transformers or peft or gguf or onnx or torch\n  = add --to transformers"),
        (("gpt2", "--max-shard-size", "1MB"), 2, "--max-shard-size is for --to transformers\n"),
        (("gpt2", "--to", "transformers", "-o", "x", "--max-shard-size", "big"), 2, "big is not a size such as 500MB or 5GB"),
        (("gpt2", "--to", "transformers", "-o", "x", "--max-shard-size", "0"), 2, "0 is not a size"),
        (("gpt2", "--to", "transformers", "-o", "x", "--checkpoint", "a"), 2, "--checkpoint is for run folders"),
        (("gpt2", "--at", "time=8"), 2, "--at is for --to torch or onnx\n  = add --to torch"),
        (("gpt2", "--to", "torch"), 2, "--to torch writes a file\n  = name it with -o FILE.pt2"),
        (("gpt2", "--to", "torch", "-o", "x", "--at", "tim=8"), 2, "there is no axis called `tim`\n  = did you mean time?"),
        (("gpt2", "--to", "torch", "-o", "x", "--at", "time=0"), 2, "a length is an integer of at least 1"),
        (
            ("gpt2", "--to", "torch", "-o", "x", "--model-type", "gpt2"),
            2,
            "--model-type is for --to transformers or peft or gguf\n",
        ),
        (("RUN", "--to", "torch", "-o", "x"), 0, "wrote x"),
        (("RUN", "--to", "torch", "-o", "no/x.pt2"), 2, "no/x.pt2"),
        (("gpt2", "--to", "tensorflow"), 2, "there is no `tensorflow`"),
        (("RUN", "--to", "transformers", "-o", "x", "--set", "n_layers=3"), 2, "--set is not for run folders"),
        (("RUN", "--to", "transformers", "-o", "x", "--seed", 3), 2, "--seed is not for run folders"),
        (("RUN", "--to", "transformers", "-o", "x", "--checkpoint", "a"), 2, "a"),
        (("RUN", "--to", "transformers", "-o", "x", "--model-type", "gpt3"), 1, "gpt3"),
        (("RUN", "--to", "transformers", "-o", "RUN"), 2, "there is something here already"),
    ],
)
def test_usage(words: tuple[Any, ...], code: int, says: str, run: Path, arco: Arco, tmp_path: Path) -> None:
    """Each mistake in one line, and nothing is written."""
    done = arco("export", *(run if word == "RUN" else word for word in words))
    assert done.code == code and says in done.out + done.err
    assert [each.name for each in tmp_path.iterdir()] == (["x"] if code == 0 else [])


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file may grow beyond a few hundred bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_is_left_where_the_disk_is_full(full_disk: None, tmp_path: Path) -> None:
    """Neither the folder nor what was written aside; the weights are the first that does not fit."""
    with pytest.raises(RecipeError, match=r"this folder cannot be written: .*file too large"):
        export_folder(composer.load("gpt2", GPT2).compile(seed=0), tmp_path / "mine")
    assert not list(tmp_path.iterdir())


def test_a_tensor_that_is_not_written_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read again, and nothing is left."""

    def damaged(tensors: dict[str, torch.Tensor], file: Path, **options: Any) -> None:
        name = next(iter(tensors))
        save_file({**tensors, name: tensors[name] + 1}, file, **options)

    monkeypatch.setattr("safetensors.torch.save_file", damaged)
    with pytest.raises(RecipeError, match=r"wte\.weight was not written as it was read"):
        export_folder(composer.load("gpt2", GPT2).compile(seed=0), tmp_path / "mine")
    assert not list(tmp_path.iterdir())


def test_an_import_reads_what_was_written(tmp_path: Path) -> None:
    """Nothing differs but the sizes, and nothing is passed over."""
    export_folder(composer.load("gpt2", GPT2).compile(seed=0), tmp_path / "mine")
    found = imported(tmp_path / "mine")
    assert found.findings.lines == [
        "mine: gpt2, 4,620 parameters.",
        "Differs from gpt2: vocab 53, context 16, d_model 12, n_layers 2, n_heads 3.",
        "All 28 tensors fit.",
    ]
