"""Published folders read as models: of every recipe with checkpoints, with its head and without, in each kind of file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    GPT2Config,
    MT5Config,
    MT5ForConditionalGeneration,
    PreTrainedModel,
    SwitchTransformersConfig,
    T5Config,
    ViTConfig,
)

import composer
from composer.published.exporting import export_folder
from composer.published.importing import imported
from composer.published.writing import write_folder
from tests.parity.reference import of_t5, perturbed
from tests.weights.test_config import MODELS, TINY

T5 = of_t5({"vocab": 53, "d_model": 24, "n_layers": 2, "n_heads": 3, "head_dim": 8, "hidden": 20})
SPARSE = {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_experts": 4, "expert_capacity": 64}
VIT: dict[str, Any] = {
    "image_size": 12,
    "patch_size": 4,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
}
CASES: dict[str, tuple[str, Any]] = {
    **TINY,
    "vit": ("vit", ViTConfig(num_labels=5, **VIT)),
    "t5": ("t5", T5Config(**T5)),
    "switch": ("switch", SwitchTransformersConfig(**T5, **SPARSE)),
}
TIED = {"gpt2", "llama 3.1", "gemma3", "t5", "switch", "mamba"}
"""Those whose head has no tensor of its own, so that a body has all of them."""


def as_bin(folder: Path) -> None:
    """Replace the safetensors of a folder by what `torch.save` writes."""
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def as_npz(folder: Path) -> None:
    """Replace the safetensors of a folder by what `numpy.savez` writes."""
    numpy.savez(
        folder / "model.npz", **{name: tensor.numpy() for name, tensor in load_file(folder / "model.safetensors").items()}
    )
    (folder / "model.safetensors").unlink()


KINDS: dict[str, Callable[[Path], None]] = {"safetensors": lambda _: None, "bin": as_bin, "npz": as_npz}


COMMON = ("albert", "gpt2")
"""Cases that are read from every kind of file each time; the others from safetensors alone, unless all is asked for."""
each_case_and_kind = pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(case, kind, marks=() if kind == "safetensors" or case in COMMON else pytest.mark.exhaustive)
        for case in CASES
        for kind in KINDS
    ],
)


def inputs_of(model: PreTrainedModel, recipe: composer.Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the same inputs for transformers' model and for ours."""
    generator = torch.Generator().manual_seed(2)
    if recipe.program.inputs.keys() & {"image"}:
        image = torch.randn(2, 3, 12, 12, generator=generator)
        return {"pixel_values": image}, {"image": image}
    tokens = torch.randint(53, (2, 11), generator=generator)
    if recipe.program.inputs.keys() & {"source"}:
        target = torch.randint(53, (2, 7), generator=generator)
        theirs = {"input_ids": tokens, "decoder_input_ids": target}
        return theirs, {"source": tokens, "target": target}
    return {"input_ids": tokens}, {"tokens": tokens}


def assert_same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * max(1.0, theirs.abs().max().item()))


@torch.no_grad()
@each_case_and_kind
def test_a_published_folder_is_the_model(case: str, kind: str, tmp_path: Path) -> None:
    """With its head: loaded in one call, and again from what an import wrote, of which the weights are the same bits."""
    name, config = CASES[case]
    reference = perturbed(MODELS[name](config))
    reference.save_pretrained(tmp_path / "theirs")
    KINDS[kind](tmp_path / "theirs")
    recipe = composer.load(tmp_path / "theirs")
    assert [each for each in recipe.check() if each.severity == "error"] == []
    given, ours = inputs_of(reference, recipe)
    theirs = reference(**given).logits
    model = recipe.pretrained()
    assert_same(model(**ours).logits, theirs)
    found = imported(tmp_path / "theirs")
    assert found.findings.cut is None and found.findings.beside == ()
    write_folder(found, tmp_path / "ours")
    again = composer.load(str(tmp_path / "ours")).pretrained()
    assert all(torch.equal(tensor, model.state_dict()[key]) for key, tensor in again.state_dict().items())
    assert again.state_dict().keys() == model.state_dict().keys()


@torch.no_grad()
@each_case_and_kind
def test_a_body_is_the_model_without_its_head(case: str, kind: str, tmp_path: Path) -> None:
    """As `AutoModel` saves it: without a prefix, and without what follows the last layer."""
    name, config = CASES[case]
    perturbed(MODELS[name](config)).save_pretrained(tmp_path / "whole")
    body = AutoModel.from_pretrained(tmp_path / "whole").eval()
    body.save_pretrained(tmp_path / "body")
    KINDS[kind](tmp_path / "body")
    found = imported(tmp_path / "body")
    model = found.recipe.pretrained()
    if case in TIED:
        reference = MODELS[name].from_pretrained(tmp_path / "whole").eval()
        given, ours = inputs_of(reference, found.recipe)
        assert found.findings.cut is None
        assert_same(model(**ours).logits, reference(**given).logits)
        return
    given, ours = inputs_of(body, found.recipe)
    hidden = body(**given).last_hidden_state
    assert found.findings.cut is not None and found.recipe.task == "encoder"
    assert [each.severity for each in found.recipe.check()] == []
    assert_same(model(**ours).hidden, hidden[:, 0] if case == "vit" else hidden)
    write_folder(found, tmp_path / "ours")
    again = composer.load(tmp_path / "ours").pretrained()
    assert_same(again(**ours).hidden, hidden[:, 0] if case == "vit" else hidden)


@torch.no_grad()
@pytest.mark.parametrize("own", [False, True])
def test_a_head_is_tied_unless_the_checkpoint_has_one(own: bool, tmp_path: Path) -> None:
    """transformers writes `tie_word_embeddings: true` for every mT5, also beside the published head, which is another matrix."""
    config = MT5Config(vocab_size=53, d_model=24, d_kv=10, d_ff=20, num_layers=2, num_heads=3)
    reference = perturbed(MT5ForConditionalGeneration(config))
    if own:
        reference.lm_head.weight = torch.nn.Parameter(2 * reference.lm_head.weight)
    reference.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))["tie_word_embeddings"] is True
    recipe = composer.load(tmp_path)
    given, ours = inputs_of(reference, recipe)
    model = recipe.pretrained()
    assert ("head.weight" in model.state_dict()) == own
    assert_same(model(**ours).logits, reference(**given).logits)


HEADS: dict[str, tuple[str, str, str, set[str]]] = {
    "BertForSequenceClassification": ("bert", "bert", "layers", {"classifier.weight", "classifier.bias"}),
    "BertForTokenClassification": ("bert", "bert", "layers", {"classifier.weight", "classifier.bias"}),
    "AlbertForSequenceClassification": ("albert", "albert", "layers", {"classifier.weight", "classifier.bias"}),
    "LlamaForSequenceClassification": ("llama", "model", "norm", {"score.weight"}),
    "MixtralForSequenceClassification": ("mixtral", "model", "norm", {"score.weight"}),
}


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
def test_a_head_of_another_task_is_left_out_by_saying_so(head: str, tmp_path: Path) -> None:
    """The body is the same, and the recipe names the tensors that it passes over."""
    case, body, end, beside = HEADS[head]
    reference = perturbed(getattr(transformers, head)(CASES[case][1]))
    reference.save_pretrained(tmp_path / "theirs")
    found = imported(tmp_path / "theirs")
    assert found.findings.cut is not None and found.findings.cut.output == end and {*found.findings.beside} == beside
    assert any(name in line for name in beside for line in found.findings.lines)
    given, ours = inputs_of(reference, found.recipe)
    assert_same(found.recipe.pretrained()(**ours).hidden, getattr(reference, body)(**given).last_hidden_state)


@torch.no_grad()
def test_a_head_beside_one_that_is_there_is_left_out(tmp_path: Path) -> None:
    """GPT-2 with a choice of answers has a language model's head too, and answers as one."""
    reference = perturbed(transformers.GPT2DoubleHeadsModel(CASES["gpt2"][1]))
    reference.save_pretrained(tmp_path)
    found = imported(tmp_path)
    assert found.findings.cut is None and {name.partition(".")[0] for name in found.findings.beside} == {"multiple_choice_head"}
    given, ours = inputs_of(reference, found.recipe)
    assert_same(found.recipe.pretrained()(**ours).logits, reference(**given).logits)


@torch.no_grad()
def test_a_head_that_may_be_a_part_of_the_body_is_passed_over_by_a_recipe_that_says_so(tmp_path: Path) -> None:
    """Without the first word that sets the body apart; the error has the lines, and they work."""
    reference = perturbed(transformers.GPT2ForSequenceClassification(CASES["gpt2"][1]))
    reference.save_pretrained(tmp_path)
    weights = {key.removeprefix("transformer."): each for key, each in load_file(tmp_path / "model.safetensors").items()}
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(composer.RecipeError) as error:
        imported(tmp_path)
    (wrong,) = error.value.diagnostics
    over = "checkpoints: {gpt2: {ignore: [score.*]}}"
    assert wrong.hint == f"if the model does not need them, `extends: gpt2` with `{over}` in a file, and that after --recipe"
    (tmp_path / "mine.yaml").write_text(f"recipe: mine\nextends: gpt2\n{over}\n", encoding="utf-8")
    found = imported(tmp_path, recipe=str(tmp_path / "mine.yaml"))
    given, ours = inputs_of(reference, found.recipe)
    theirs = reference.transformer(**given).last_hidden_state @ reference.transformer.wte.weight.T
    assert_same(found.recipe.pretrained()(**ours).logits, theirs)


@torch.no_grad()
def test_an_encoder_without_its_decoder_is_an_encoder(tmp_path: Path) -> None:
    """T5's, as other models read texts with it: the whole decoder is missing, with its inputs."""
    reference = perturbed(transformers.T5EncoderModel(CASES["t5"][1]))
    reference.save_pretrained(tmp_path)
    found = imported(tmp_path)
    assert [*found.recipe.program.inputs] == ["source", "source_valid"] and found.recipe.check() == []
    tokens = torch.randint(53, (2, 11), generator=torch.Generator().manual_seed(2))
    assert_same(found.recipe.pretrained()(source=tokens).hidden, reference(input_ids=tokens).last_hidden_state)


@torch.no_grad()
@pytest.mark.parametrize("head", ["DeiTForImageClassification", "DeiTForImageClassificationWithTeacher", "DeiTModel"])
def test_the_class_decides_between_the_heads_of_a_type(head: str, tmp_path: Path) -> None:
    """One or two of them, or none; and what is written of it names the same class, and is the same model again."""
    reference = perturbed(getattr(transformers, head)(transformers.DeiTConfig(num_labels=5, **VIT)))
    reference.save_pretrained(tmp_path / "theirs")
    recipe = composer.load(tmp_path / "theirs")
    given, ours = inputs_of(reference, recipe)
    theirs, model = reference(**given), recipe.pretrained()
    if head == "DeiTModel":
        assert_same(model(**ours).hidden, theirs.last_hidden_state[:, 0])
    else:
        assert_same(model(**ours).logits, theirs.logits)
    export_folder(model, tmp_path / "ours")
    assert class_of(tmp_path / "ours") == head
    again = composer.load(tmp_path / "ours").pretrained()
    assert all(torch.equal(tensor, again.state_dict()[key]) for key, tensor in model.state_dict().items())


@pytest.mark.parametrize("distilled", [True, False])
def test_a_new_model_names_the_class_that_has_its_heads(distilled: bool, tmp_path: Path) -> None:
    """Where no published file has named one."""
    sizes = {"size": 12, "patch": 4, "n_classes": 5, "d_model": 24, "n_layers": 1, "n_heads": 3, "hidden": 20}
    export_folder(composer.load("deit", {**sizes, "distilled": distilled}).compile(seed=0), tmp_path / "new")
    assert class_of(tmp_path / "new") == "DeiTForImageClassification" + ("WithTeacher" if distilled else "")


def class_of(folder: Path) -> str:
    """Return the one class that the `config.json` of a folder names."""
    (name,) = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"]
    return str(name)


@torch.no_grad()
@pytest.mark.parametrize("window", [4, [4, 6]])
def test_one_window_stands_for_that_of_every_layer(window: Any, tmp_path: Path) -> None:
    """Longformer's, which transformers takes both ways, and writes as the list."""
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}
    config = transformers.LongformerConfig(vocab_size=53, max_position_embeddings=40, attention_window=window, **sizes)
    reference = perturbed(transformers.LongformerForMaskedLM(config))
    reference.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"attention_window": window}), encoding="utf-8")
    recipe = composer.load(tmp_path)
    assert recipe.program.untyped.params["windows"] == ((4, 4) if window == 4 else (4, 6))
    tokens = torch.randint(2, 53, (2, 12), generator=torch.Generator().manual_seed(2))
    assert_same(recipe.pretrained()(tokens=tokens).logits, reference(input_ids=tokens).logits)


def captioner(**sizes: Any) -> PreTrainedModel:
    """Return a ViT with a GPT-2 that looks at its patches."""
    given = {"image_size": 12, "patch_size": 4, "num_channels": 3, "num_hidden_layers": 2, "num_attention_heads": 3}
    encoder = ViTConfig(hidden_size=24, intermediate_size=96, **{**given, **sizes})
    decoder = GPT2Config(vocab_size=53, n_positions=16, n_embd=24, n_layer=2, n_head=3, is_decoder=True, add_cross_attention=True)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id = config.pad_token_id = 0
    return perturbed(transformers.VisionEncoderDecoderModel(config))


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_two_parts_is_read_with_the_configurations_of_both(kind: str, tmp_path: Path) -> None:
    """A captioner; keys about the file are passed over in its parts too."""
    reference = captioner()
    reference.save_pretrained(tmp_path)
    KINDS[kind](tmp_path)
    found = imported(tmp_path)
    generator = torch.Generator().manual_seed(2)
    image, tokens = torch.randn(2, 3, 12, 12, generator=generator), torch.randint(53, (2, 7), generator=generator)
    theirs = reference(pixel_values=image, decoder_input_ids=tokens).logits
    assert_same(found.recipe.pretrained()(image=image, tokens=tokens).logits, theirs)


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        (
            "vit",
            [
                "the recipe does not map 1 key of this file: encoder.pruned_heads.0",
                "encoder.hidden_act is relu; this recipe needs gelu",
            ],
        ),
        ("deit", ["encoder.model_type is deit; this recipe needs vit"]),
    ],
)
def test_a_part_of_another_type_or_with_other_values_is_refused(kind: str, messages: list[str], tmp_path: Path) -> None:
    """At its key; what the keys of another type say is not asked."""
    captioner().save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["encoder"] |= {"model_type": kind, "hidden_act": "relu", "pruned_heads": {"0": [1]}}
    file.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(composer.RecipeError) as error:
        imported(tmp_path)
    assert [each.message for each in error.value.diagnostics] == messages
