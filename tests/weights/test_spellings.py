"""Published names with signs in them, and tensors that different files call differently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import composer
from composer.diagnostics import RecipeError
from composer.language.name_patterns import components_of, escaped
from composer.published import export_folder
from composer.weights import load_published, save_published
from tests.weights.written import named, rules

NORMS = """
recipe: norms
params: {width: 8}
inputs: {x: "float[batch, time, width]"}
graph:
  layers: {repeat: 2, graph: {norm: layernorm, map: {type: linear, out: width}}}
checkpoints:
  own-type:
    config: {params: {width: hidden_size}}
    rules:
      layers.<layer>.norm.*: {from: [h.<layer>.LayerNorm.*, h.<layer>.layer_norm.*]}
      layers.<layer>.map.(weight|bias): {from: [h-<layer>.map.(weight|bias), h.<layer>.dense\\*map.(w-x|b-x)]}
"""


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (r"block-<layer>.conv-1.weight", "block-3.conv-1.weight"),
        (r"h.<layer>.a\*b.*", "h.12.a*b.x-y.z+"),
        (r"(q-a|k.b).\(x\)", "k.b.(x)"),
        (r"\<s\>.w\\", "<s>.w\\"),
    ],
)
def test_signs_are_names_behind_a_backslash(pattern: str, name: str) -> None:
    """And a hyphen is as it stands."""
    made = named(f"'{pattern}'")
    found = made.match(name)
    assert found is not None and made.fill(found) == name
    assert made.match("x" + name) is None


@pytest.mark.parametrize("name", ["a.b_0.c", "a-b.c*", "x.(y|z).<n>", "a\\b", "w [0]"])
def test_a_name_is_a_pattern_of_itself(name: str) -> None:
    """However many signs are in it."""
    assert (found := named(f"'{escaped(name)}'")).match(name) is not None
    assert found.expression.pattern.count("(?P") == 0 and not found.rest


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.b", ["a", "b"]),
        ("", [""]),
        ("a..b.", ["a", "", "b", ""]),
        ("x.(a.b|c).*", ["x", "(a.b|c)", "*"]),
        (r"a.b\).c", ["a", r"b\)", "c"]),
        ("a.(b.c", ["a", "(b", "c"]),
    ],
)
def test_components_are_what_stands_between_dots(text: str, parts: list[str]) -> None:
    """Which a choice may have of its own, and a bracket behind a backslash is no choice."""
    assert components_of(text) == parts


def old_and_new() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Return a checkpoint by the first names of `NORMS`, and the same by the second ones."""
    kinds = {"LayerNorm.weight": (8,), "LayerNorm.bias": (8,), "map.weight": (8, 8), "map.bias": (8,)}
    later = {"LayerNorm.weight": "layer_norm.weight", "LayerNorm.bias": "layer_norm.bias", "map.weight": "dense*map.w-x",
             "map.bias": "dense*map.b-x"}  # fmt: skip
    first, second = {}, {}
    for layer in range(2):
        for kind, shape in kinds.items():
            tensor = torch.randn(shape, generator=torch.Generator().manual_seed(len(first)))
            first[f"h-{layer}.{kind}" if kind.startswith("map") else f"h.{layer}.{kind}"] = tensor
            second[f"h.{layer}.{later[kind]}"] = tensor
    return first, second


def test_a_tensor_may_have_several_names() -> None:
    """Of which a checkpoint has one, in each layer whichever; it is saved under the first."""
    first, second = old_and_new()
    mixed = {
        name: each for name, each in (first | second).items() if ("layer_norm" in name or "h-0" in name or "h.1.dense" in name)
    }
    recipe = composer.load(NORMS)
    states = []
    for tensors in (first, second, mixed):
        model = recipe.compile(seed=0)
        load_published(model, tensors)
        states.append(model.state_dict())
    assert all(torch.equal(each[name], states[0][name]) for each in states for name in each)
    assert torch.equal(states[0]["layers.1.map.weight"], second["h.1.dense*map.w-x"])


def test_both_names_of_a_tensor_are_one_too_many() -> None:
    """None of them is taken for the right one."""
    first, second = old_and_new()
    model = composer.load(NORMS).compile(seed=0)
    with pytest.raises(
        RecipeError, match=r"h\.0\.LayerNorm\.weight and h\.0\.layer_norm\.weight are both h\.0\.LayerNorm\.weight"
    ):
        load_published(model, first | {"h.0.layer_norm.weight": second["h.0.layer_norm.weight"]})
    with pytest.raises(RecipeError, match=r"the checkpoint lacks 1 tensor: h\.1\.LayerNorm\.bias"):
        load_published(model, {name: each for name, each in second.items() if name != "h.1.layer_norm.bias"})


def test_a_model_is_written_by_the_names_that_it_came_by(tmp_path: Path) -> None:
    """By `arco export`, which knows the folder; a file alone has the first ones."""
    first, second = old_and_new()
    own = tmp_path / "own.yaml"
    own.write_text(NORMS, encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.json").write_text(json.dumps({"model_type": "own-type", "hidden_size": 8}), encoding="utf-8")
    (home / "recipe.yaml").write_text(NORMS, encoding="utf-8")
    save_file(second, home / "model.safetensors")
    model = composer.load(home).pretrained()
    export_folder(model, tmp_path / "out")
    save_published(model, tmp_path / "first.safetensors")
    for file, tensors in (("out/model.safetensors", second), ("first.safetensors", first)):
        written = load_file(tmp_path / file)
        assert written.keys() == tensors.keys() and all(torch.equal(tensors[name], each) for name, each in written.items())


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("a.*: {from: [x.*]}", "a list of names has what different files call a tensor"),
        ("a.*: {from: [x.*, y.weight]}", "`*` is on one side only"),
        ("a.(b|c): {from: [x, y.(b|c)], split: 2}", "the published name has other choices than those that name no pieces"),
        ("a.*: {from: [x.*, y..z]}", "`` is not part of a name"),
        ("a-b.*: x.*", "`a-b.*` is no name of ours, which consist of words"),
    ],
)
def test_names_that_do_not_correspond_are_errors(rule: str, says: str) -> None:
    """At the name that is wrong."""
    with pytest.raises(RecipeError) as stopped:
        rules(rule, a__weight=(3,), a__b=(2,), a__c=(2,))
    assert stopped.value.diagnostics[0].message.startswith(says)


@pytest.mark.parametrize(
    ("rule", "there", "hint"),
    [
        (
            "n.*: ln.*",
            {"ln.gamma": (3,), "ln.beta": (3,)},
            "write `legacy_names: {gamma: weight, beta: bias}` beside `rules`, or give the rule",
        ),
        (
            "n.*: ln.*",
            {"ln.weight": (3,), "ln.beta": (3,)},
            "write `legacy_names: {beta: bias}` beside `rules`, or give the rule",
        ),
        (
            "n.(weight|bias): ln.parametrizations.weight.(original0|original1)",
            {"ln.weight_g": (3,), "ln.weight_v": (3,)},
            "give the rule both names: `from: [ln.parametrizations.weight.(original0|original1), …]`",
        ),
    ],
)
def test_names_of_older_files_lead_to_what_reads_them(rule: str, there: dict[str, tuple[int, ...]], hint: str) -> None:
    """Both names are told, and neither again as missing or unexpected."""
    wrong = rules(rule, n__weight=(3,), n__bias=(3,)).check(there)
    assert {each.code for each in wrong} == {"checkpoints-missing"}
    assert wrong[0].message.startswith("the checkpoint lacks ") and "; it has ln." in wrong[0].message
    assert wrong[0].hint.startswith(hint)
