"""Experiment files: what they say, and where their mistakes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from composer.compare import Budget, Variant, WidthMatch, plan, read_experiment
from composer.diagnostics import RecipeError
from composer.train import TrainingError
from tests.docs.pages import ROOT
from tests.operations import at_most

WHOLE = """experiment: depth
doc: Deep against wide.
data: [texts, more/*.txt]
tokenizer: bpe
vocab_size: 300
variants:
  wide: gpt_mini
  deep: {recipe: deep.yaml, set: {n_layers: 8, layers.ffn.body: {type: ffn, hidden: 2 * d_model}}}
seeds: [3, 1]
budget: {tokens: 2e6}
train: {batch_size: 8, learning_rate: 3e-3, schedule: linear}
match: {what: parameters, by: d_model, multiple_of: 8}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of an experiment."""
    return tmp_path / "depth.yaml"


def test_a_file_says_what_it_says(file):
    """Every key; paths are relative to the file."""
    file.write_text(WHOLE, encoding="utf-8")
    found = read_experiment(file)
    assert (found.name, found.doc, found.tokenizer, found.vocab_size) == ("depth", "Deep against wide.", "bpe", 300)
    assert found.data == (file.parent / "texts", file.parent / "more/*.txt")
    overrides = ("n_layers=8", "layers.ffn.body={type: ffn, hidden: 2 * d_model}")
    assert found.variants == (Variant("wide", "gpt_mini"), Variant("deep", str(file.parent / "deep.yaml"), overrides))
    assert (found.seeds, found.budget) == ((3, 1), Budget("tokens", 2e6))
    assert (found.settings.batch_size, found.settings.learning_rate, found.settings.schedule) == (8, 3e-3, "linear")
    assert found.match == WidthMatch("parameters", "d_model", 8)


def test_what_is_left_out_has_a_usual_value(file):
    """Three seeds, characters, no match."""
    file.write_text("experiment: e\ndata: t\nvariants: {a: gpt2, b: gpt_mini}\nbudget: {steps: 5}\n", encoding="utf-8")
    found = read_experiment(file)
    assert (found.seeds, found.tokenizer, found.match, found.settings.batch_size) == ((0, 1, 2), "characters", None, 32)


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("experiment: depth", "experiment: 2 depths", "1:13: error[bad-name]", "cannot be the name of an experiment"),
        ("doc:", "dco:", "2:1: error[unknown-key]", "an experiment has no key `dco`"),
        ("budget: {tokens: 2e6}\n", "", "1:1: error[missing-key]", "an experiment needs `budget`"),
        ("{tokens: 2e6}", "{tokns: 2e6}", "10:10: error[unknown-key]", "a budget has no key `tokns`"),
        ("{tokens: 2e6}", "{tokens: 2e6, steps: 3}", "10:1: error[value-form]", "a budget has one measure"),
        ("2e6", "0", "10:18: error[out-of-range]", "`tokens` must be above 0, not 0"),
        ("2e6", "many", "10:18: error[not-a-number]", "`tokens` takes a number, not `many`"),
        ("2e6", ".inf", "10:18: error[not-a-number]", "`tokens` takes a number"),
        ("{tokens: 2e6}", "{steps: 2.5}", "10:17: error[not-whole]", "`steps` must be a whole number, not 2.5"),
        ("[3, 1]", "[3, 3]", "9:12: error[out-of-range]", "the seed 3 is used twice"),
        ("[3, 1]", "[]", "9:8: error[empty-list]", "at least one seed"),
        ("[3, 1]", "0", "9:8: error[out-of-range]", "`seeds` must be at least 1, not 0"),
        (
            "tokenizer: bpe",
            "tokenizer: bytes",
            "5:1: error[value-form]",
            "only the tokenizers bpe, wordpiece, words have a vocabulary",
        ),
        ("tokenizer: bpe", "tokenizer: bep", "4:12: error[unknown-choice]", "there is no tokenizer called `bep`"),
        ("batch_size: 8", "batch_size: 0", "11:21: error[out-of-range]", "`batch_size` is 0; it must be at least 1"),
        ("batch_size", "bath_size", "11:9: error[unknown-key]", "`train` has no key `bath_size`"),
        ("schedule: linear", "momentum: 0.5", "11:55: error[out-of-range]", "which adamw does not read"),
        ("schedule: linear", "steps: 5", "11:45: error[unknown-key]", "`train` has no key `steps`"),
        ("what: parameters, ", "", "12:1: error[missing-key]", "`match` needs `what`"),
        ("what: parameters", "what: params", "12:15: error[unknown-choice]", "there is no what called `params`"),
        ("recipe: deep.yaml, ", "", "8:3: error[missing-key]", "a variant needs `recipe`"),
        ("  wide: gpt_mini\n", "", "6:1: error[out-of-range]", "one variant alone"),
        ("wide: gpt_mini", "wide: [gpt_mini]", "7:9: error[value-form]", "a variant is the name or the path of a recipe"),
    ],
)
def test_a_mistake_is_reported_at_its_place(file, old, new, place, said):
    """With its code, and in one report."""
    assert old in WHOLE
    file.write_text(WHOLE.replace(old, new), encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        read_experiment(file)
    assert f"depth.yaml:{place}: " in str(caught.value) and said in str(caught.value)


@pytest.mark.parametrize(("text", "said"), [("", "the experiment is empty"), ("- a\n", "an experiment must be a mapping")])
def test_a_file_without_keys_is_called_an_experiment(file, text, said):
    """Not a recipe."""
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError, match=said):
        read_experiment(file)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE.replace("  wide:", "  ../wide:"),
        WHOLE.replace("experiment: depth", "experiment: ../../depth"),
        WHOLE.replace("experiment: depth", "experiment: /depth"),
        WHOLE.replace("[3, 1]", "1000000000"),
        WHOLE.replace("bpe", "&a [*a, *a]"),
        WHOLE.replace("[3, 1]", "[" * 10_000 + "]" * 10_000),
        "experiment: e\n" * 100_000,
    ],
    ids=["variant", "name", "root", "seeds", "alias", "nesting", "size"],
)
def test_a_hostile_experiment_is_refused_at_once(file, text):
    """It names nothing outside the folder of its runs, and is read like any YAML of a stranger."""
    file.write_text(text, encoding="utf-8")
    with at_most(3_000_000), pytest.raises(RecipeError):
        read_experiment(file)


def experiment(file: Path, variants: str, more: str = "", budget: str = "{steps: 5}"):
    """Return an experiment of these variants."""
    text = (
        f"experiment: e\ndata: t.txt\nvariants: {{{variants}}}\nbudget: {budget}\ntrain: {{batch_size: 3, seq_len: 16}}\n{more}"
    )
    file.write_text(text, encoding="utf-8")
    return read_experiment(file)


TWO = "a: {recipe: gpt_mini, set: {n_layers: 2, d_model: 32}}, b: {recipe: gpt_mini, set: {n_layers: 5%s}}"


@pytest.mark.parametrize("what", ["parameters", "flops"])
def test_widths_are_matched_to_one_percent(file, what):
    """To the width that comes nearest of all multiples."""
    match = f"match: {{what: {what}, by: d_model, multiple_of: 2}}\n"
    first, second = plan(experiment(file, TWO.replace("32", "512").replace("set: {", "set: {n_heads: 1, ") % "", match))
    costs = {}
    for width in range(260, 400, 2):
        recipe = second.recipe.with_overrides({"d_model": width})
        if not any(found.severity == "error" for found in recipe.check()):
            costs_at = recipe.summary({"time": 16, "batch": 3}).costs
            costs[width] = costs_at.parameters if what == "parameters" else 3 * costs_at.flops.dense
    target = getattr(first, what)
    best = min(costs, key=lambda width: abs(costs[width] - target))
    assert (second.width, getattr(second, what)) == (best, costs[best])
    assert abs(costs[best] / target - 1) <= 0.01 and first.width == 512
    assert second.recipe.program.untyped.params["d_model"] == best


def test_a_width_that_cannot_be_matched_is_reported(file):
    """Where `by` is written: the nearest is named; so are a param that is set, and one that is not there."""
    match = "match: {what: parameters, by: d_model, multiple_of: 64}\n"
    with pytest.raises(
        RecipeError, match=r"(?s)depth\.yaml:6:31: error\[out-of-range\]: no `d_model` gives b .* 64 comes nearest"
    ):
        plan(experiment(file, TWO % "", match))
    with pytest.raises(RecipeError, match=r"error\[value-form\]: b sets `d_model`, which `match` chooses"):
        plan(experiment(file, TWO % ", d_model: 8", match))
    with pytest.raises(RecipeError, match=r"error\[unknown-param\]: b has no param `width`"):
        plan(experiment(file, TWO % "", match.replace("d_model", "width")))


def test_a_budget_becomes_steps(file):
    """By its measure: tokens of a step, and three times the FLOPs of the forward passes of a step."""
    flops = 3 * plan(experiment(file, TWO % ""))[0].recipe.summary({"time": 16, "batch": 3}).costs.flops.dense
    assert [each.steps for each in plan(experiment(file, TWO % "", budget="{tokens: 500}"))] == [10, 10]
    first, second = plan(experiment(file, TWO % "", budget=f"{{flops: {60 * flops}}}"))
    assert (first.steps, first.flops) == (60, flops) and 1 <= second.steps == 60 * flops // second.flops < 60
    assert plan(experiment(file, TWO % "", budget="{minutes: 2}"))[0].steps is None
    with pytest.raises(TrainingError, match="a budget of 47 tokens has no step of a, which takes 48 tokens"):
        plan(experiment(file, TWO % "", budget="{tokens: 47}"))


def test_mistakes_of_a_variant_are_in_the_experiment(file):
    """Those of what it sets, and a recipe that is not there; variants are of one task."""
    with pytest.raises(RecipeError, match=r"depth\.yaml:3:103: error\[unknown-choice\]: `pst` is not one of"):
        plan(experiment(file, "a: gpt_mini, b: {recipe: gpt_mini, set: {layers.attn.norm: rmsnorm, layers.attn.placement: pst}}"))
    with pytest.raises(RecipeError, match=r"depth\.yaml:3:53: error\[unknown-path\]: .* `n_layer`"):
        plan(experiment(file, "a: gpt_mini, b: {recipe: gpt_mini, set: {n_layer: 8}}"))
    with pytest.raises(RecipeError, match=r"depth\.yaml:3:28: error\[missing-file\]: .*none\.yaml: there is no such file"):
        plan(experiment(file, "a: gpt_mini, b: ./none.yaml"))
    with pytest.raises(TrainingError, match="a is of causal_lm, b is of masked_lm"):
        plan(experiment(file, "a: gpt_mini, b: bert"))


def test_the_experiment_of_the_page_is_sound():
    """Its variants have as many parameters as the page says they have."""
    found = read_experiment(ROOT / "docs" / "experiments" / "norms.yaml")
    assert [each.name for each in found.variants] == ["pre_rms", "pre_layer", "post_rms", "post_layer"]
    assert all(path.is_file() for path in found.data)
    assert [each.parameters for each in plan(found, vocabulary=67)] == [796160, 796160, 796160, 796160]
