"""Published folders read as recipes: what is found, what is refused, and what is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file

import composer
from composer.diagnostics import RecipeError
from composer.published.importing import imported
from composer.published.writing import write_folder
from composer.weights import load_published, save_published

ALBERT: dict[str, Any] = {
    "model_type": "albert", "vocab_size": 11, "max_position_embeddings": 6, "embedding_size": 2, "hidden_size": 4,
    "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12, "type_vocab_size": 2,
}  # fmt: skip
OLD = {"eos_token_ids": 0, "num_labels": 2, "is_decoder": False, "pruned_heads": {}}
TINY = {"vocab": 11, "context": 6, "d_embed": 2, "d_model": 4, "n_layers": 2, "n_heads": 2, "hidden": 6}


def folder(place: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], **config: Any) -> Path:
    """Write a published ALBERT, its tensors changed, with more keys in its configuration."""
    place.mkdir(exist_ok=True)
    save_published(composer.load("albert", TINY).compile(seed=0), place)
    tensors = {name: tensor.clone() for name, tensor in load_file(place / "model.safetensors").items()}
    save_file(change(tensors), place / "model.safetensors")
    (place / "config.json").write_text(json.dumps({**ALBERT, **config}, indent=1), encoding="utf-8")
    return place


def body(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return what is below the head, without its prefix, with a pooler."""
    inner = {name.removeprefix("albert."): tensor for name, tensor in tensors.items() if name.startswith("albert.")}
    return {**inner, "pooler.weight": torch.ones(4, 4), "pooler.bias": torch.ones(4)}


def same(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return tensors


def test_what_is_found_is_told_in_plain_lines(tmp_path: Path) -> None:
    """And stands above a recipe of a few lines: what differs, and that there is no head."""
    place = folder(tmp_path / "Albert-Chem", body, **OLD)
    found = imported(place)
    lines = [
        "Albert-Chem: albert, 208 parameters.",
        "Differs from albert: vocab 11, context 6, d_embed 2, d_model 4, n_layers 2, n_heads 2, hidden 6, "
        "activation gelu, dropout 0.1, attention_dropout 0.1.",
        "Passed over 4 old keys of config.json, which change nothing: eos_token_ids, num_labels, is_decoder, pruned_heads.",
        "The names of 25 published tensors lack the prefix `albert.`, which is all that is different.",
        "Left out 2 tensors that the model does not read: albert.pooler.bias, albert.pooler.weight.",
        "There is no head, `predictions` (5 tensors): the model ends at `layers`.",
        "All of the other 23 tensors fit.",
    ]
    assert found.findings.lines == lines
    text = found.recipe.source.text
    assert text.startswith("".join(f"# {line}\n" for line in lines) + "recipe: albert_chem\nextends: albert\n")
    assert len(text.splitlines()) < 40 and {each.severity for each in found.recipe.check()} <= {"warning"}
    assert found.recipe.name == "albert_chem" and found.recipe.task == "encoder"


@pytest.mark.slow
def test_a_folder_is_written_whole(tmp_path: Path) -> None:
    """Recipe, settings and tokenizer as published, and the tensors that are read, bit for bit; and it is loaded in one call."""
    place = folder(tmp_path / "theirs", body)
    for name in ("tokenizer.json", "special_tokens_map.json", "generation_config.json", "chat_template.jinja"):
        (place / name).write_text(f"{name} as it is", encoding="utf-8")
    (place / "1_Pooling").mkdir()
    (place / "1_Pooling" / "config.json").write_text("{}", encoding="utf-8")
    (place / "train.py").write_text("import os", encoding="utf-8")
    write_folder(imported(place), tmp_path / "ours")
    assert {each.relative_to(tmp_path / "ours").as_posix() for each in (tmp_path / "ours").rglob("*") if each.is_file()} == {
        "recipe.yaml", "config.json", "model.safetensors", "tokenizer.json", "special_tokens_map.json", "generation_config.json",
        "chat_template.jinja", "1_Pooling/config.json",
    }  # fmt: skip
    assert (tmp_path / "ours" / "tokenizer.json").read_text(encoding="utf-8") == "tokenizer.json as it is"
    theirs, ours = load_file(place / "model.safetensors"), load_file(tmp_path / "ours" / "model.safetensors")
    assert theirs.keys() - ours.keys() == {"pooler.weight", "pooler.bias"}
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    one, two = composer.load(place).pretrained(), composer.load(str(tmp_path / "ours")).pretrained()
    assert all(torch.equal(tensor, two.state_dict()[name]) for name, tensor in one.state_dict().items())
    assert not one.training and not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_large_weights_are_written_in_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an index, as transformers has them."""
    monkeypatch.setattr("composer.published.writing.MAX_SHARD_BYTES", 300)
    place = folder(tmp_path / "theirs", same)
    write_folder(imported(place), tmp_path / "ours")
    files = sorted(each.name for each in (tmp_path / "ours").glob("*.safetensors"))
    assert len(files) > 2 and files[0] == f"model-00001-of-{len(files):05}.safetensors"
    one, two = composer.load(place).pretrained(), composer.load(tmp_path / "ours").pretrained()
    assert all(torch.equal(tensor, two.state_dict()[name]) for name, tensor in one.state_dict().items())


@pytest.mark.slow
def test_nothing_that_is_there_is_replaced(tmp_path: Path) -> None:
    """An empty folder is filled; any other stays as it is."""
    place = folder(tmp_path / "theirs", same)
    (tmp_path / "empty").mkdir()
    write_folder(imported(place), tmp_path / "empty")
    before = {each.name: each.read_bytes() for each in place.iterdir()}
    with pytest.raises(RecipeError, match="there is something here already"):
        write_folder(imported(place), place)
    assert {each.name: each.read_bytes() for each in place.iterdir()} == before


def without(name: str) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    """Return the change that takes out a tensor."""
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}


LAYER = "albert.encoder.albert_layer_groups.0.albert_layers.0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without(f"{LAYER}.attention.query.weight"), "the checkpoint lacks 1 tensor: " + LAYER),
        (without("albert.embeddings.LayerNorm.weight"), "the checkpoint lacks 1 tensor: albert.embeddings.LayerNorm.weight"),
        (without("predictions.dense.weight"), "the checkpoint lacks 1 tensor: predictions.dense.weight"),
        (without("predictions.bias"), "the checkpoint lacks 1 tensor: predictions.bias"),
        (lambda all: {**all, f"{LAYER}.gate.weight": torch.ones(3)}, f"no rule covers 1 published tensor: {LAYER}.gate.weight"),
        (lambda all: {**all, "albert.gate": torch.ones(3)}, "no rule covers 1 published tensor: albert.gate"),
        (lambda all: {**body(all), "gate": torch.ones(3)}, "no rule covers 1 published tensor: gate"),
        (lambda all: {**all, "predictions.bias": torch.ones(12)}, "predictions.bias is 12 in the checkpoint, but 11 for this"),
        (lambda all: without("embeddings.LayerNorm.bias")(body(all)), "albert.embeddings.LayerNorm.bias"),
    ],
)  # fmt: skip
def test_a_tensor_that_does_not_fit_is_refused_by_name(
    change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], says: str, tmp_path: Path
) -> None:
    """One that is missing in the body or in the head, is in the body in addition, or has another shape."""
    place = folder(tmp_path / "theirs", change)
    for load in (imported, composer.load):
        with pytest.raises(RecipeError) as error:
            load(place)
        assert says in " ".join(each.message for each in error.value.diagnostics)


@pytest.mark.slow
def test_a_head_that_the_configuration_promises_is_no_head_to_leave_out(tmp_path: Path) -> None:
    """Then a file was cut off."""
    place = folder(tmp_path / "theirs", body, architectures=["AlbertForMaskedLM"])
    with pytest.raises(RecipeError) as error:
        imported(place)
    (wrong,) = error.value.diagnostics
    assert "the checkpoint lacks 5 tensors: predictions" in wrong.message and "AlbertForMaskedLM" in wrong.hint
    assert imported(folder(place, body, architectures=["AlbertModel"])).findings.cut is not None


def test_what_is_missing_is_told_beside_what_no_rule_covers(tmp_path: Path) -> None:
    """Tensors of other names may be those that are missing, so they are no head to pass over without a word."""
    own = "recipe: own\nparams: {width: 8}\ninputs: {x: 'float[batch, time, width]'}\ngraph:\n"
    own += "  layers: {repeat: 2, graph: {f: {type: linear, out: width}}}\n  head: {type: linear, out: 3}\n"
    own += "checkpoints:\n  own:\n    config: {params: {width: n_embd}}\n"
    own += "    rules: {layers.<layer>.f.*: h.<layer>.*, head.*: head.*}\n"
    (tmp_path / "own.yaml").write_text(own, encoding="utf-8")
    (tmp_path / "theirs").mkdir()
    named = {name.replace("layers", "blocks"): value for name, value in composer.load(own).compile().state_dict().items()}
    save_file({name.replace(".f.", "."): value for name, value in named.items()}, tmp_path / "theirs" / "model.safetensors")
    (tmp_path / "theirs" / "config.json").write_text('{"model_type": "own", "n_embd": 8}', encoding="utf-8")
    with pytest.raises(RecipeError) as error:
        imported(tmp_path / "theirs", recipe=str(tmp_path / "own.yaml"))
    assert [(each.code, each.message) for each in error.value.diagnostics] == [
        ("checkpoints-missing", "the checkpoint lacks 4 tensors: h.<n>.weight (2), h.<n>.bias (2)"),
        ("checkpoints-unexpected", "no rule covers 4 published tensors: blocks.<n>.bias (2), blocks.<n>.weight (2)"),
    ]


def test_mistakes_of_configuration_and_weights_are_told_at_once(tmp_path: Path) -> None:
    """Each by its name: keys that are not mapped, old ones that change something, values, and tensors."""
    changed = {**OLD, "is_decoder": True, "pruned_heads": {"1": [0]}, "gap_size": 2, "novel": 1, "auto_map": {"AutoModel": "x.Y"}}
    place = folder(tmp_path / "theirs", without("albert.embeddings.LayerNorm.weight"), **changed)
    with pytest.raises(RecipeError) as error:
        imported(place)
    found = [(each.code, each.message) for each in error.value.diagnostics]
    assert found == [
        ("config-unknown", "the recipe does not map 2 keys of this file: novel, auto_map.AutoModel"),
        ("config-value", "is_decoder is true; this recipe needs false"),
        ("config-value", 'pruned_heads is {"1": [0]}; this recipe needs none'),
        ("config-value", "gap_size is 2; this recipe needs 0"),
        ("checkpoints-missing", "the checkpoint lacks 1 tensor: albert.embeddings.LayerNorm.weight"),
    ]
    assert error.value.diagnostics[0].hint == "auto_map: it is computed by code of its own, which is not run"


@pytest.mark.slow
def test_what_is_set_by_hand_wins_over_the_file(tmp_path: Path) -> None:
    """Also over a value that the recipe does not support."""
    place = folder(tmp_path / "theirs", same, hidden_act="gelu_fast")
    with pytest.raises(RecipeError, match="hidden_act is gelu_fast"):
        imported(place)
    found = imported(place, overrides=["activation=gelu", "dropout=0"])
    assert "activation gelu, attention_dropout 0.1" in found.findings.lines[1]


@pytest.mark.slow
def test_a_loaded_recipe_takes_overrides_as_any_other(tmp_path: Path) -> None:
    """Of a size that the weights do not have, it is a model without them."""
    place = folder(tmp_path / "theirs", same)
    write_folder(imported(place), tmp_path / "ours")
    for each in (place, tmp_path / "ours"):
        assert composer.load(each, {"dropout": 0.3}).pretrained().recipe.program.untyped.params["dropout"] == 0.3
        wider = composer.load(each, {"vocab": 12})
        assert wider.summary().costs.parameters > composer.load(each).summary().costs.parameters
        with pytest.raises(RecipeError, match="is 11 × 2 in the checkpoint, but 12 × 2 for this recipe"):
            wider.pretrained()


@pytest.mark.slow
def test_weights_may_lie_elsewhere_or_be_given(tmp_path: Path) -> None:
    """A configuration by itself is a recipe without weights, which tensors and arrays by name fill."""
    place = folder(tmp_path / "theirs", same)
    tensors = load_file(place / "model.safetensors")
    (place / "model.safetensors").rename(tmp_path / "other.safetensors")
    alone = composer.load(place / "config.json")
    assert imported(place).findings.lines[-1] == "There are no weights beside the configuration."
    with pytest.raises(RecipeError, match="was not loaded from a folder with weights"):
        alone.pretrained()
    expected = imported(place, weights=tmp_path / "other.safetensors").recipe.pretrained().state_dict()
    for given in (tmp_path / "other.safetensors", tensors, {name: tensor.numpy() for name, tensor in tensors.items()}):
        model = alone.pretrained(given)
        assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())


@pytest.mark.slow
def test_a_recipe_of_ones_own_may_be_set(tmp_path: Path) -> None:
    """From a file, whose text is then written whole."""
    place = folder(tmp_path / "theirs", same)
    own = tmp_path / "own.yaml"
    own.write_text(composer.load("albert").text.replace("recipe: albert", "recipe: own"), encoding="utf-8")
    found = imported(place, recipe=str(own))
    assert "\nextends:" not in found.recipe.source.text
    write_folder(found, tmp_path / "ours")
    one, two = composer.load(place).pretrained(), composer.load(tmp_path / "ours").pretrained()
    assert all(torch.equal(tensor, two.state_dict()[name]) for name, tensor in one.state_dict().items())


@pytest.mark.slow
def test_names_of_others_stay_remarks(tmp_path: Path) -> None:
    """A folder or a tensor whose name ends a line adds none to the recipe."""
    place = folder(tmp_path / "a\nuses: [b]", same)
    found = imported(place)
    assert [line for line in found.recipe.source.text.splitlines() if line.startswith(("task", "uses"))] == []
    assert found.findings.lines[0].startswith("a\nuses: [b]: albert") and "# a\\nuses: [b]: albert" in found.recipe.source.text
    write_folder(found, tmp_path / "ours")
    assert composer.load(tmp_path / "ours").task == "masked_lm"
    folder(place, lambda tensors: {**tensors, "classifier.x\ntask: causal_lm": torch.ones(3)})
    again = imported(place)
    assert [line for line in again.recipe.source.text.splitlines() if line.startswith(("task", "uses"))] == []
    assert "Left out 1 tensor" in "".join(again.findings.lines)
    write_folder(again, tmp_path / "more")
    assert composer.load(tmp_path / "more").task == "masked_lm"


def as_pickle(place: Path) -> Path:
    torch.save(load_file(place / "model.safetensors"), place / "pytorch_model.bin")
    (place / "model.safetensors").unlink()
    return place / "pytorch_model.bin"


def as_arrays(place: Path) -> Path:
    numpy.savez(place / "model.npz", **{name: tensor.numpy() for name, tensor in load_file(place / "model.safetensors").items()})
    (place / "model.safetensors").unlink()
    return place / "model.npz"


KINDS: dict[str, Callable[[Path], Path]] = {
    "safetensors": lambda place: place / "model.safetensors",
    "bin": as_pickle,
    "npz": as_arrays,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_file_that_was_cut_off_is_refused_before_anything_is_loaded(kind: str, share: float, tmp_path: Path) -> None:
    """At any place, into a new model and into one that is there."""
    place = folder(tmp_path / "theirs", same)
    recipe = composer.load(place)
    file = KINDS[kind](place)
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    model = recipe.compile(seed=5)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for load in (lambda: composer.load(place), lambda: recipe.pretrained(file), lambda: load_published(model, file)):
        with pytest.raises(RecipeError) as error:
            load()
        assert error.value.diagnostics[0].code == "unreadable-file"
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bin", "npz"])
def test_a_number_that_was_changed_is_refused(kind: str, tmp_path: Path) -> None:
    """By the checksums of the archive; a file of safetensors has none."""
    place = folder(tmp_path / "theirs", same)
    recipe = composer.load(place)
    name = "albert.embeddings.word_embeddings.weight"
    numbers = load_file(place / "model.safetensors")[name].numpy().tobytes()
    file = KINDS[kind](place)
    content = bytearray(file.read_bytes())
    content[content.index(numbers)] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(
        RecipeError, match=f"this file is damaged: .*{'' if kind == 'bin' else name}.* does not have its checksum"
    ):
        recipe.pretrained(file)


def test_code_in_a_pickle_is_not_run(tmp_path: Path) -> None:
    """It is refused, and nothing is loaded or written."""
    place = folder(tmp_path / "theirs", same)
    torch.save({"a": torch.ones(1), "b": Runs(tmp_path / "mark")}, as_pickle(place))
    with pytest.raises(RecipeError, match="without running code"):
        composer.load(place)
    assert not (tmp_path / "mark").exists()


class Runs:
    """Runs code when it is unpickled by a reader that allows it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.file,))
