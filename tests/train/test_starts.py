"""Runs that start from the weights of another, and parameters that stay as they are."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.train import MarkedTokenizer, TrainingError, characters_of, freeze, open_run, resume, start_from, train
from tests.train.small import SmallGPT
from tests.train.test_resume import RECIPE, same

TINY = {"d_model": 16, "n_heads": 2, "vocab": 31, "context": 16}


@pytest.fixture
def first(build, data, tokenizer, settings, quiet, tmp_path):
    """A finished run."""
    train(build(RECIPE), tokenizer, data, settings, tmp_path / "first", recipe=RECIPE, show=quiet())
    return tmp_path / "first"


def test_what_fits_is_loaded_and_the_rest_is_told(first, build, tokenizer):
    """A tensor of another shape, one that is new and one that is gone."""
    model = build(RECIPE)
    trained = open_run(first, build=build).model.state_dict()
    model.up = torch.nn.Linear(16, 48)
    model.down = torch.nn.Linear(48, 16)
    model.norm4 = model.norm3
    del model.norm3
    before = {name: value.clone() for name, value in model.state_dict().items()}
    start = start_from(model, first)
    assert start.misfits == ("up.weight", "up.bias", "down.weight")
    assert start.new == ("norm4.weight", "norm4.bias")
    assert start.unused == ("norm3.bias", "norm3.weight")
    assert {*start.loaded} == before.keys() - {*start.misfits, *start.new}
    for name, value in model.state_dict().items():
        assert value.equal(trained[name] if name in start.loaded else before[name]), name
    text = str(start)
    assert text.splitlines()[0] == f"loaded {len(start.loaded)} tensors of {first}, step-000012"
    assert "new: norm4.weight, norm4.bias" in text
    assert "of another shape, so new: up.weight, up.bias, down.weight" in text
    assert "left out: norm3.bias, norm3.weight" in text


def test_an_earlier_checkpoint_can_be_named(first, build):
    """And one that does not exist is refused."""
    model, other = build(RECIPE), build(RECIPE)
    start_from(model, first, checkpoint="step-000010")
    start_from(other, first)
    assert not model.qkv.weight.equal(other.qkv.weight)
    with pytest.raises(TrainingError, match="there is no checkpoint step-000006"):
        start_from(model, first, checkpoint="step-000006")


def test_a_run_of_which_nothing_fits_is_refused(first):
    """A model of other names."""
    with pytest.raises(TrainingError, match=r"nothing of .*first, step-000012 fits the recipe") as caught:
        start_from(torch.nn.Linear(2, 3), first)
    assert caught.value.hint == f"its recipe, with its sizes, is {first / 'recipe.yaml'}"


def test_a_damaged_run_starts_nothing(first, build):
    """Its weights are compared with the manifest."""
    path = first / "checkpoints" / "step-000012" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(TrainingError, match="is damaged"):
        start_from(build(RECIPE), first)


def test_frozen_parameters_stay_and_have_no_state():
    """By patterns, and by the name of a tied one."""
    model = composer.load("gpt2", {**TINY, "n_layers": 2}).compile(seed=0)
    freeze(model, ["layers.0.*", "head.weight"])
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen == {"embed.weight", *(name for name, _ in model.named_parameters() if name.startswith("layers.0."))}
    groups = composer.param_groups(model, weight_decay=0.1)
    assert {p for group in groups for p in group["params"]} == {p for p in model.parameters() if p.requires_grad}


@pytest.mark.parametrize(
    ("patterns", "message", "hint"),
    [
        (["layer.*"], "no parameter is called `layer.*`", ""),
        (["embed.wieght"], "no parameter is called `embed.wieght`", "did you mean `embed.weight`?"),
        (["*"], "leaves nothing to be trained", ""),
    ],
)
def test_patterns_that_do_nothing_good_are_refused(patterns, message, hint):
    """A misspelled name would train what should stay."""
    model = composer.load("gpt2", {**TINY, "n_layers": 1}).compile(seed=0)
    with pytest.raises(TrainingError) as caught:
        freeze(model, patterns)
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_a_run_with_frozen_parameters_goes_on_bit_for_bit(build, data, tokenizer, settings, change, quiet, tmp_path):
    """What is frozen is what it was, also after the run stopped."""
    own = change(settings, freeze=("embed.*", "*.bias"))
    train(build(RECIPE), tokenizer, data, own, tmp_path / "whole", recipe=RECIPE, show=quiet())

    def die(step):
        if step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(build(RECIPE), tokenizer, data, own, tmp_path / "run", recipe=RECIPE, show=quiet(die))
    resume(tmp_path / "run", build=build, show=quiet())
    same(tmp_path / "run", tmp_path / "whole")
    fresh, trained = build(RECIPE).state_dict(), open_run(tmp_path / "run", build=build).model.state_dict()
    still = {name for name, value in trained.items() if value.equal(fresh[name])}
    assert still == {name for name in fresh if name == "embed.weight" or name.endswith(".bias")}


def test_a_run_without_anything_to_train_writes_no_folder(build, data, tokenizer, settings, change, quiet, tmp_path):
    """It is refused before."""
    with pytest.raises(TrainingError, match="leaves nothing"):
        train(build(RECIPE), tokenizer, data, change(settings, freeze=("*",)), tmp_path / "run", recipe=RECIPE, show=quiet())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["embed.*", ["embed.*"], ("",), (3,), None])
def test_patterns_are_a_tuple_of_texts(settings, change, value):
    """One text alone would be taken letter by letter."""
    with pytest.raises(TrainingError, match=r"`freeze` is .*; it must be a tuple of patterns"):
        change(settings, freeze=value)


def test_added_special_tokens_leave_the_rows_of_others_as_they_were(first, build, tokenizer):
    """Such as an end token for prompts and answers after a text without; its own row is new."""
    trained = open_run(first, build=build).model.embed.weight
    more, model = MarkedTokenizer(tokenizer, ("<end>",)), SmallGPT(tokenizer.size + 1)
    fresh = model.embed.weight[-1].clone()
    start = start_from(model, first, tokenizer=more)
    assert (start.misfits, start.grown) == ((), ("embed.weight",))
    assert torch.equal(model.embed.weight[:-1], trained) and torch.equal(model.embed.weight[-1], fresh)
    assert "loaded, with new rows for special tokens: embed.weight" in str(start)
    for other in (None, MarkedTokenizer(characters_of("something else"), ("<end>",))):
        assert start_from(SmallGPT(tokenizer.size + 1), first, tokenizer=other).misfits == ("embed.weight",)
