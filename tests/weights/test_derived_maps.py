"""Maps of published weights that change another one, lists of what is ignored that add up, and what is ignored in part."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import composer
from composer.diagnostics import RecipeError
from composer.language.yaml.nodes import YamlMapping
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from composer.weights.written_config import config_in

BASE = """
recipe: base
params: {n_layers: 2, width: 8}
inputs: {x: "float[batch, time, width]"}
graph:
  layers:
    repeat: n_layers
    graph: {ffn: {type: residual, norm: layernorm, body: {type: ffn, hidden: 2 * width}}}
  norm: batchnorm
checkpoints:
  first:
    config:
      params: {n_layers: num_layers, width: hidden}
      ignore: [one]
    rules:
      layers.<layer>.ffn.norm.*: h.<layer>.ln.*
      layers.<layer>.ffn.body.(up|down).*: h.<layer>.mlp.(c_fc|c_proj).*
      norm.(weight|bias|running_mean|running_var): out.(weight|bias|mean|var)
    ignore: ["*.num_batches_tracked"]
"""
CHANGED = """
recipe: changed
extends: base.yaml
checkpoints:
  first: {ignore: [lm_head.weight], config: {ignore: [two]}}
  second:
    like: first
    config: {params: {width: d_model}, ignore: [three]}
    rules:
      layers.<layer>.ffn.norm.*: h.<layer>.norm.*
      norm.(weight|bias|running_mean|running_var): null
      norm.(weight|bias): last.(scale|shift)
      norm.(running_mean|running_var): last.(mean|var)
    ignore: [{from: h.<layer>.*, when: layer >= n_layers}]
"""


def written(folder: Path, changed: str = CHANGED) -> composer.Recipe:
    (folder / "base.yaml").write_text(BASE, encoding="utf-8")
    (folder / "changed.yaml").write_text(changed, encoding="utf-8")
    return composer.load(folder / "changed.yaml")


def errors(recipe: composer.Recipe) -> list[str]:
    return [each.code for each in recipe.check() if each.severity == "error"]


def published(recipe: composer.Recipe, kind: str) -> dict[str, torch.Tensor]:
    checkpoints = recipe.checkpoints
    assert checkpoints is not None
    shapes = shapes_of(recipe.compile("meta").state_dict())
    found = mapping(checkpoints, kind, shapes, recipe.program.untyped.params).published
    return {name: torch.randn(shape) for name, shape in found.items()}


def test_a_map_changes_another(tmp_path: Path) -> None:
    """Rules one by one; buffers are mapped as parameters are."""
    recipe = written(tmp_path)
    assert errors(recipe) == []
    assert {"h.0.ln.weight", "h.1.mlp.c_fc.bias", "out.mean"} <= published(recipe, "first").keys()
    theirs = published(recipe, "second")
    assert {"h.0.norm.weight", "h.1.mlp.c_fc.bias", "last.scale", "last.var"} <= theirs.keys()
    assert not any(name.startswith("out.") for name in theirs)
    model = recipe.compile()
    load_published(model, theirs, model_type="second")
    assert torch.equal(model.state_dict()["norm.running_var"], theirs["last.var"])
    assert torch.equal(model.state_dict()["layers.1.ffn.norm.weight"], theirs["h.1.norm.weight"])


def test_what_is_ignored_adds_up(tmp_path: Path) -> None:
    """Of tensors and of keys, under `extends` and under `like`."""
    recipe = written(tmp_path)
    model = recipe.compile()
    theirs = published(recipe, "first")
    load_published(model, {**theirs, "lm_head.weight": torch.ones(1), "x.num_batches_tracked": torch.ones(1)}, model_type="first")
    kept = {"model_type": "second", "num_layers": 3, "d_model": 16, "one": 1, "two": 2, "three": 3}
    assert recipe.with_config(kept).program.untyped.params["width"] == 16
    with pytest.raises(RecipeError, match="three"):
        recipe.with_config({"model_type": "first", "num_layers": 3, "hidden": 16, "three": 3})


def test_indices_are_ignored_by_a_condition(tmp_path: Path) -> None:
    """The layers beyond those of the model, and no other."""
    recipe = written(tmp_path)
    model = recipe.compile()
    theirs = published(recipe, "second")
    more = {"h.2.norm.weight": torch.ones(1), "h.17.anything.weight": torch.ones(1)}
    load_published(model, {**theirs, **more}, model_type="second")
    for name in ("h.1.anything.weight", "g.2.norm.weight"):
        with pytest.raises(RecipeError, match=name):
            load_published(model, {**theirs, name: torch.ones(1)}, model_type="second")
    assert "when: layer >= 2" in recipe.expand()
    assert "like" not in recipe.expand()
    assert errors(composer.load(recipe.expand())) == []


@pytest.mark.parametrize(
    ("was", "now", "code"),
    [
        ("like: first", "like: frist", "unknown-recipe"),
        ("like: first", "like: second", "uses-cycle"),
        ("like: first", "like: changed.yaml", "uses-cycle"),
        ("like: first", "like: gpt_mini", "checkpoints-unknown-type"),
        ("like: first", "like: [first]", "value-form"),
        ("norm.(weight|bias|running_mean|running_var): null", "norm.(weight|bias): null", "nothing-to-delete"),
    ],
    ids=str,
)
def test_what_a_map_is_like_must_be_there(tmp_path: Path, was: str, now: str, code: str) -> None:
    assert code in errors(written(tmp_path, CHANGED.replace(was, now)))


def test_a_map_may_be_like_that_of_the_recipe_which_it_replaces() -> None:
    """Where the type of the base is called like the base, and the extending recipe has no map for it."""
    text = "recipe: mine\nextends: gpt2\ncheckpoints:\n  gpt2: null\n  other: {like: gpt2, copies: null}\n"
    recipe = composer.load(text)
    assert recipe.check() == []
    assert recipe.checkpoints is not None
    assert [each.key.text for each in recipe.checkpoints] == ["other"]
    base = composer.load("gpt2")
    assert published(recipe, "other").keys() == published(base, "gpt2").keys()


ALONE = (
    BASE
    + """  second:
    like: first
    RULE
    ignore: [IGNORED]
"""
)


@pytest.mark.parametrize(
    ("rule", "ignored", "code"),
    [
        ("rules: {norm.(weight|bias|running_mean|running_var): null}", "other", "checkpoints-uncovered"),
        ("rules: {norm.weight: other.weight}", "other", "checkpoints-ambiguous"),
        ("rules: {nrm.weight: other.weight}", "other", "checkpoints-unknown-name"),
        ("copies: {a: b}", "other", "checkpoints-form"),
        ("copies: {}", "out.mean", "checkpoints-ambiguous"),
        ("copies: {}", "{from: h.<layer>.*, when: layer >= n_layers - 1}", "checkpoints-ambiguous"),
        ("copies: {}", "{from: h.<layer>.*, when: lyer >= n_layers}", "unknown-name"),
        ("copies: {}", "{from: h.<layer>.*, when: layer}", "not-a-boolean"),
        ("copies: {}", "{from: h.<layer>.*}", "checkpoints-form"),
        ("copies: {}", "{from: h.<layer>.*, whn: layer >= n_layers}", "unknown-key"),
    ],
    ids=str,
)
def test_a_derived_map_is_held_against_the_model(rule: str, ignored: str, code: str) -> None:
    """As any other, at the place of its change."""
    text = ALONE.replace("RULE", rule).replace("IGNORED", ignored)
    assert errors(composer.load(ALONE.replace("RULE", "copies: {}").replace("IGNORED", "other"))) == []
    found = [each for each in composer.load(text).check() if each.severity == "error"]
    assert code in {each.code for each in found}
    assert found[0].span.line > text[: text.index("  second:")].count("\n")


def test_a_map_of_the_zoo_is_changed() -> None:
    """By the name of its recipe: an `extends` of a few lines maps another type."""
    recipe = composer.load(
        """
recipe: mistral
extends: llama3
params: {vocab: 16, d_model: 16, n_layers: 1, n_heads: 2, n_kv_heads: 1, hidden: 24}
checkpoints:
  llama: null
  mistral: {like: llama3, config: {ignore: [sliding_window]}}
"""
    )
    assert errors(recipe) == []
    assert "model.layers.0.self_attn.q_proj.weight" in published(recipe, "mistral")


def test_another_model_type_has_another_class(tmp_path: Path) -> None:
    """The same type keeps it under `extends`; one that is only like it names its own, or none."""
    (tmp_path / "base.yaml").write_text(BASE.replace("config:\n", "config:\n      architecture: FirstModel\n"), encoding="utf-8")
    third = "  third: {like: first, config: {architecture: ThirdModel}}\n"
    (tmp_path / "changed.yaml").write_text(f"{CHANGED}{third}", encoding="utf-8")
    maps = composer.load(tmp_path / "changed.yaml").checkpoints
    assert maps is not None
    found = {each.key.text: each.value.get("config") for each in maps if isinstance(each.value, YamlMapping)}
    classes = {name: config_in(config).architecture for name, config in found.items()}
    assert classes == {"first": "FirstModel", "second": None, "third": "ThirdModel"}


def test_a_map_of_another_recipe_that_does_not_fit_is_told_at_the_one_that_is_like_it() -> None:
    """Once, with each of its lines; what is written here is told in its own place."""
    recipe = composer.load(
        """
recipe: small
inputs: {x: "float[batch, time, 4]"}
graph:
  layers:
    repeat: 2
    graph: {a: {type: linear, out: 4}}
checkpoints:
  roberta:
    like: bert
    rules: {layer.<layer>.*: encoder.<layer>.*}
"""
    )
    first, second = sorted(recipe.check(), key=lambda each: each.span.line)
    assert {span.span.source.name for span in (first, second)} == {"<text>"}
    assert (first.span.line, second.span.line) == (9, 11)
    assert first.message.endswith("does not fit this recipe: there is no node called `embed`")
    assert len(first.labels) > 10 and {label.span.source.name for label in first.labels} == {"bert.yaml"}
