"""What a published `config.json` sets in a recipe, against transformers' own models of that configuration."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MixtralConfig,
    MixtralForCausalLM,
    SwitchTransformersForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)
from transformers import PreTrainedModel as Published

import composer
from composer.diagnostics import RecipeError
from composer.graph.parameters import parameters
from composer.package_data import zoo
from composer.weights import load_published
from tests.parity.reference import REFERENCE, perturbed

LLAMA31 = {
    "rope_type": "llama3", "rope_theta": 300.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 4,
}  # fmt: skip
LINEAR = {"rope_type": "linear", "rope_theta": 90.0, "factor": 3.0}
WIDTHS = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6}
TINY: dict[str, tuple[str, Any]] = {
    "gpt2": ("gpt2", GPT2Config(vocab_size=53, n_positions=16, n_embd=24, n_layer=3, n_head=3, bos_token_id=1, eos_token_id=1)),
    "llama": ("llama3", LlamaConfig(vocab_size=53, intermediate_size=40, num_key_value_heads=2, **WIDTHS)),
    "llama 3.1": (
        "llama3",
        LlamaConfig(
            vocab_size=53, intermediate_size=40, tie_word_embeddings=True, rms_norm_eps=0.1, rope_parameters=LLAMA31, **WIDTHS
        ),
    ),
    "linear": ("llama3", LlamaConfig(vocab_size=53, intermediate_size=40, rope_parameters=LINEAR, **WIDTHS)),
    "mixtral": (
        "mixtral",
        MixtralConfig(
            vocab_size=53, intermediate_size=20, num_key_value_heads=3, num_local_experts=5, num_experts_per_tok=3,
            rope_parameters={"rope_type": "default", "rope_theta": 70.0}, **WIDTHS,
        ),
    ),
    "gemma3": (
        "gemma3",
        Gemma3TextConfig(
            vocab_size=53, intermediate_size=40, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8, sliding_window=4,
            **{**WIDTHS, "num_hidden_layers": 7},
        ),
    ),
    "albert": (
        "albert",
        AlbertConfig(
            vocab_size=53, embedding_size=10, intermediate_size=40, max_position_embeddings=16, layer_norm_eps=0.1,
            hidden_dropout_prob=0, attention_probs_dropout_prob=0, **WIDTHS,
        ),
    ),
    "mamba": ("mamba", MambaConfig(vocab_size=53, hidden_size=24, num_hidden_layers=2, state_size=4, layer_norm_epsilon=0.1)),
    "mamba2": (
        "mamba2",
        Mamba2Config(
            vocab_size=53, hidden_size=24, num_hidden_layers=2, state_size=4, num_heads=6, head_dim=8, n_groups=2, chunk_size=4,
            layer_norm_epsilon=0.1,
        ),
    ),
    "bert": ("bert", BertConfig(vocab_size=53, intermediate_size=40, max_position_embeddings=16, layer_norm_eps=0.1, **WIDTHS)),
}  # fmt: skip
MODELS: dict[str, type[Published]] = {
    "gpt2": GPT2LMHeadModel,
    "llama3": LlamaForCausalLM,
    "mixtral": MixtralForCausalLM,
    "gemma3": Gemma3ForCausalLM,
    "mamba": MambaForCausalLM,
    "mamba2": Mamba2ForCausalLM,
    "bert": BertForMaskedLM,
    "albert": AlbertForMaskedLM,
    "vit": ViTForImageClassification,
    "t5": T5ForConditionalGeneration,
    "switch": SwitchTransformersForConditionalGeneration,
}


def with_config(recipe: str, config: Any) -> composer.Recipe:
    """Return the recipe as a configuration of transformers sets it."""
    return composer.load(recipe).with_config(config if isinstance(config, dict) else config.to_dict())


def set_in(recipe: str, config: dict[str, Any]) -> dict[str, str]:
    """Return what a `config.json` sets, by path."""
    pairs = (str(override).partition("=") for override in with_config(recipe, config).overrides)
    return {path: value for path, _, value in pairs}


@torch.no_grad()
@pytest.mark.parametrize("case", TINY)
def test_a_configured_recipe_is_the_model_of_that_configuration(case: str, tmp_path: Path) -> None:
    """From the folder that transformers wrote: its `config.json` makes the model, and its weights fill it."""
    name, config = TINY[case]
    reference = perturbed(MODELS[name](config))
    reference.save_pretrained(tmp_path)
    model = composer.load(name).with_config(tmp_path).compile(seed=0).eval()
    load_published(model, tmp_path)
    tokens = torch.randint(53, (2, 11), generator=torch.Generator().manual_seed(2))
    theirs = reference(tokens).logits
    torch.testing.assert_close(model(tokens).logits, theirs, rtol=0, atol=1e-5 * theirs.abs().max().item())


@pytest.mark.parametrize("name", MODELS)
def test_the_published_model_sets_what_the_recipe_has_by_default(name: str) -> None:
    """Value by value; `to_dict` has every key that transformers knows for the model, and the recipe speaks of each."""
    with torch.device("meta"):
        reference = REFERENCE[name]({})
    recipe = composer.load(name)
    found = with_config(name, reference.config)
    assert found.program.untyped.params == recipe.program.untyped.params
    assert shapes(found) == shapes(recipe)


def shapes(recipe: composer.Recipe) -> dict[str, tuple[int, ...]]:
    """Return every parameter's."""
    return {one.name: one.parameter.shape for one in parameters(recipe.program) if not one.tied_to}


@pytest.mark.parametrize(
    ("name", "config", "count"),
    [
        ("gpt2", GPT2Config(n_embd=1600, n_layer=48, n_head=25), 1_557_611_200),  # GPT-2 XL
        ("llama3", LlamaConfig(), 6_738_415_616),  # Llama 2 7B
        ("mixtral", MixtralConfig(num_local_experts=4), 24_153_690_112),
        ("t5", T5Config(), 60_506_624),  # T5 small
        ("bert", BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096), 335_174_458),
        ("vit", ViTConfig(patch_size=32, num_labels=10), 87_462_922),
        ("mamba", MambaConfig(hidden_size=2560, num_hidden_layers=64), 2_768_345_600),
        ("mamba2", Mamba2Config(num_heads=128, n_groups=8), 7_285_403_648),  # Mamba-Codestral 7B
    ],
)
def test_other_sizes_have_the_parameters_of_their_models(name: str, config: Any, count: int) -> None:
    """Counted by both."""
    with torch.device("meta"):
        theirs = MODELS[name](config)
    assert sum(parameter.numel() for parameter in theirs.parameters()) == count
    assert with_config(name, config).summary().costs.parameters == count


def test_bert_base_uncased_is_the_recipe_as_it_stands() -> None:
    """Its `config.json` as published in 2019."""
    first = {
        "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": False,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
        "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
        "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "position_embedding_type": "absolute",
        "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache": True, "vocab_size": 30522,
    }  # fmt: skip
    assert with_config("bert", first).program.untyped.params == composer.load("bert").program.untyped.params


def test_files_of_older_versions_are_read_too() -> None:
    """As meta-llama/Llama-3.2-1B has it, with `rope_scaling` beside `rope_theta`; a base that is absent is 10000."""
    old = {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000,
        "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
        "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "llama",
        "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
        "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                         "original_max_position_embeddings": 8192, "rope_type": "llama3"},
        "rope_theta": 500000.0, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0",
        "use_cache": True, "vocab_size": 128256,
    }  # fmt: skip
    assert with_config("llama3", old).summary().costs.parameters == 1_235_814_400
    assert set_in("llama3", old)["scaling.factor"] == "32.0"
    without = {key: value for key, value in old.items() if key not in ("rope_scaling", "rope_theta", "num_key_value_heads")}
    found = with_config("llama3", without)
    assert (found.program.untyped.params["theta"], found.program.untyped.params["n_kv_heads"]) == (10000, 32)
    assert set_in("llama3", {**old, "rope_scaling": None})["scaling"] == "none"


def test_mamba_is_read_with_the_keys_of_its_first_version() -> None:
    """Those of the original are beside those of transformers, and must agree with them."""
    first = {
        "architectures": ["MambaForCausalLM"], "bos_token_id": 0, "conv_kernel": 4, "d_inner": 1536, "d_model": 768,
        "eos_token_id": 0, "expand": 2, "fused_add_norm": True, "hidden_act": "silu", "hidden_size": 768,
        "initializer_range": 0.1, "intermediate_size": 1536, "layer_norm_epsilon": 1e-05, "model_type": "mamba", "n_layer": 24,
        "num_hidden_layers": 24, "pad_token_id": 0, "pad_vocab_size_multiple": 8, "rescale_prenorm_residual": False,
        "residual_in_fp32": True, "rms_norm": True, "ssm_cfg": {}, "state_size": 16, "time_step_floor": 0.0001,
        "time_step_init_scheme": "random", "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 48,
        "time_step_scale": 1.0, "torch_dtype": "float32", "transformers_version": "4.39.0.dev0", "use_bias": False,
        "use_cache": True, "use_conv_bias": True, "vocab_size": 50280,
    }  # fmt: skip
    assert with_config("mamba", first).program.untyped.params == composer.load("mamba").program.untyped.params
    for key, value in (("d_inner", 3072), ("n_layer", 25), ("rms_norm", False), ("ssm_cfg", {"d_state": 8})):
        with pytest.raises(RecipeError, match=key):
            with_config("mamba", {**first, key: value})


@pytest.mark.parametrize("word", ["Infinity", "-Infinity", "NaN", "three"])
def test_numbers_that_json_lacks_are_read(word: str, tmp_path: Path) -> None:
    """As transformers writes them, and as Python does; the steps of Mamba-2 must not be clamped."""
    file = tmp_path / "config.json"
    plain = TINY["mamba2"][1].to_json_string(use_diff=False)
    assert plain.count('"__float__": "Infinity"') == 1
    file.write_text(plain.replace("Infinity", word), encoding="utf-8")
    if word == "Infinity":
        assert with_config("mamba2", json.loads(json.dumps(TINY["mamba2"][1].to_dict()))).check() == []
        assert composer.load("mamba2").with_config(file).check() == []
        return
    with pytest.raises(RecipeError, match="time_step_limit"):
        composer.load("mamba2").with_config(file)


def test_null_may_mean_something_else_than_a_missing_key() -> None:
    """From version 0.2 on, Mistral 7B has no window, and says so by null; transformers' window without the key is 4096."""
    first = MistralConfig(sliding_window=300).to_dict()
    assert set_in("mistral", first)["sliding_window"] == "300"
    assert set_in("mistral", {**first, "sliding_window": None})["sliding_window"] == "0"
    del first["sliding_window"]
    assert set_in("mistral", first)["sliding_window"] == "4096"
    assert with_config("mistral", {**first, "sliding_window": None}).program.untyped.params["sliding_window"] == 0


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        ({"rope": 3}, "config-unknown", '"rope"'),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1.0, "swing": 2}}, "config-unknown", '"swing"'),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1.0, "mscale": 2}}, "unknown-path", '"mscale"'),
        ({"rope_parameters": {"rope_type": "axial", "rope_theta": 1.0}}, "config-value", '"rope_type"'),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1.0}}, "rejected", '"rope_type"'),
        ({"rope_theta": 2.0}, "config-value", '"rope_theta"'),  # and another inside rope_parameters
        ({"hidden_act": "gelu"}, "config-value", '"hidden_act"'),
        ({"head_dim": 7}, "config-value", '"head_dim"'),
        ({"mlp_bias": True}, "config-value", '"mlp_bias"'),
        ({"attention_dropout": 0.5}, "config-value", '"attention_dropout"'),
        ({"vocab_size": [1]}, "config-value", '"vocab_size"'),
        ({"vocab_size": "{type: linear}"}, "config-value", '"vocab_size"'),
        ({"quantization_config": {"bits": 4}}, "config-unknown", '"bits"'),
    ],
)
def test_what_the_recipe_does_not_do_is_an_error_at_its_line(change: dict[str, Any], code: str, line: str) -> None:
    """Nothing in the file is passed over."""
    with pytest.raises(RecipeError) as error:
        with_config("llama3", {**TINY["llama"][1].to_dict(), **change})
    (wrong,) = error.value.diagnostics
    assert (wrong.code, wrong.span.source.name) == (code, "config.json")
    text = wrong.span.source.lines[wrong.span.line - 1]
    assert text[wrong.span.column - 1 : wrong.span.end_column - 1] == line


@pytest.mark.parametrize(
    "types",
    [["sliding_attention"] * 7, ["sliding_attention"] * 5 + ["full_attention"], "sliding_attention", [1] * 7],
    ids=["none is full", "too short", "no list", "no words"],
)
def test_layers_in_another_order_are_an_error(types: object) -> None:
    """The list of kinds of layer is worked out layer by layer, as in the recipe's `each`."""
    config = TINY["gemma3"][1].to_dict()
    assert config["layer_types"] == [*["sliding_attention"] * 5, "full_attention", "sliding_attention"]
    with pytest.raises(RecipeError) as error:
        with_config("gemma3", {**config, "layer_types": types})
    assert [(wrong.code, wrong.message.partition(" is ")[0]) for wrong in error.value.diagnostics] == [
        ("config-value", "layer_types")
    ]


def test_a_count_of_nothing_known_is_an_error_of_the_recipe() -> None:
    """At its place there."""
    text = (zoo() / "gemma3.yaml").read_text(encoding="utf-8").replace("count: n_layers}", "count: layers}")
    with pytest.raises(RecipeError) as error:
        composer.load(text).with_config(TINY["gemma3"][1].to_dict())
    (wrong,) = error.value.diagnostics
    assert wrong.span.source.lines[wrong.span.line - 1].lstrip().startswith("layer_types:")


def test_a_size_that_the_recipe_refuses_is_an_error_of_the_setting() -> None:
    """As if it had been set by hand."""
    with pytest.raises(RecipeError) as error:
        with_config(
            "llama3", {**TINY["llama"][1].to_dict(), "num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": None}
        )
    assert error.value.diagnostics[0].code == "indivisible"


ODD: list[Any] = [None, True, -1, 0, 3.5, 10**40, float("nan"), "", "x", "{type: linear}", [], [1, [2]], {}, {"a": {"b": 1}}]
DEEP = json.loads("[" * 500 + "]" * 500)


@pytest.mark.parametrize(
    "part", [pytest.param(0, marks=pytest.mark.slow), *(pytest.param(part, marks=pytest.mark.exhaustive) for part in range(1, 8))]
)
def test_a_spoilt_file_never_escapes(part: int) -> None:
    """Whatever stands at any of its keys, it is read or refused; an eighth of all pairs of a key and a value, then the others."""
    plain = {**TINY["llama 3.1"][1].to_dict(), "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}
    for key, odd in [*product([*plain, "", "a.b", "é"], [*ODD, DEEP])][part::8]:
        spoiled = {**plain, key: odd}
        with suppress(RecipeError):
            assert with_config("llama3", spoiled).program
    for key, odd in [*product(LLAMA31, ODD)][part::8]:
        with suppress(RecipeError):
            assert with_config("llama3", {**plain, "rope_parameters": {**LLAMA31, key: odd}}).program


def test_all_mistakes_of_a_file_are_told_in_one_round() -> None:
    """Keys that are not mapped, values that are not taken, constants that do not hold; what depends on a wrong value waits."""
    config = {**TINY["llama"][1].to_dict(), "rope": 3, "hidden_act": "gelu", "mlp_bias": True, "vocab_size": "many"}
    with pytest.raises(RecipeError) as error:
        with_config("llama3", config)
    assert [(each.code, each.message.partition(" ")[0]) for each in error.value.diagnostics] == [
        ("config-value", "vocab_size"), ("config-unknown", "the"), ("config-value", "hidden_act"), ("config-value", "mlp_bias"),
    ]  # fmt: skip
    config = {**TINY["llama"][1].to_dict(), "rope": 3, "num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": 7}
    with pytest.raises(RecipeError) as error:
        with_config("llama3", config)
    assert [each.code for each in error.value.diagnostics] == ["config-unknown", "config-value", "indivisible"]
    config = {**TINY["llama"][1].to_dict(), "hidden_size": "wide", "head_dim": 7}  # d_model is not known, nor what it makes
    with pytest.raises(RecipeError) as error:
        with_config("llama3", config)
    assert [each.message.partition(" ")[0] for each in error.value.diagnostics] == ["hidden_size"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "factor": 8.0}}, "factor"),
        ({"vocab_size": -1}, "vocab_size"),
        ({"num_hidden_layers": 0.5}, "num_hidden_layers"),
        ({"num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": None}, "num_attention_heads"),
    ],
)
def test_a_value_that_the_recipe_refuses_is_marked_in_the_file(change: dict[str, Any], key: str) -> None:
    """At its key, as the mistake or as its cause, and not in an override that nobody wrote."""
    with pytest.raises(RecipeError) as error:
        with_config("llama3", {**TINY["llama"][1].to_dict(), **change})
    (wrong, *_) = error.value.diagnostics
    spans = [wrong.span, *(label.span for label in wrong.labels)]
    assert "--set" not in {span.source.name for span in spans}
    texts = [(span, span.source.lines[span.line - 1]) for span in spans if span.source.name == "config.json"]
    assert f'"{key}"' in {line[span.column - 1 : span.end_column - 1] for span, line in texts}


def test_a_key_that_is_nearly_one_of_those_missing_gets_its_name() -> None:
    """One letter apart."""
    config = {key: value for key, value in TINY["llama"][1].to_dict().items() if key != "hidden_act"}
    with pytest.raises(RecipeError) as error:
        with_config("llama3", {**config, "hidden_acts": "silu"})
    assert [(each.code, each.hint) for each in error.value.diagnostics] == [("config-unknown", "did you mean hidden_act?")]


def test_a_model_type_that_is_mistyped_is_marked_in_the_file(tmp_path: Path) -> None:
    """At its value, not at a key of the same name inside of another one; from a folder that is named as text."""
    text = '{\n  "text": {"model_type": "llama"},\n  "model_type": "lama"\n}\n'
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as error:
        composer.load("llama3").with_config(str(tmp_path))
    (wrong,) = error.value.diagnostics
    assert (wrong.code, wrong.hint) == ("checkpoints-unknown-type", "did you mean llama?")
    assert (wrong.span.line, wrong.span.column, wrong.span.end_column) == (3, 17, 23)


def test_a_folder_may_be_named_as_text(tmp_path: Path) -> None:
    """As everywhere."""
    TINY["gpt2"][1].save_pretrained(tmp_path)
    for given in (tmp_path, str(tmp_path), str(tmp_path / "config.json")):
        assert composer.load("gpt2").with_config(given).program.untyped.params["vocab"] == 53


CONFIG = """
recipe: example
params:
  n_layers: 2
  width: {{default: 8, min: 4}}
  act: {{type: block, default: gelu}}
  kind: {{type: choice, of: [wide, deep], default: wide}}
  flag: false
  most: 9
  part: {{default: 3, max: most}}
inputs: {{x: "float[batch, time, 8]"}}
graph:
  layers:
    repeat: n_layers
    graph: {{a: {{type: residual, body: {{type: ffn, hidden: width, activation: act, bias: flag}}}}}}
  y: {{type: linear, out: 8 if kind == wide else part}}
checkpoints:
  model:
    config:
{config}
    rules: {{layers.<layer>.a.body.*: h.<layer>.*, y.*: y.*}}
"""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("params: {n_layers: layers, width: [w, h]}", []),
        ("params: {n_layers: {from: l, default: 3}, flag: {from: f, default: true}}", []),
        ("params: {kind: {from: k, values: {a: wide, b: deep}}}", []),
        ("params: {n_layer: l}", ["n_layer"]),
        ("params: {params.n_layer: l}", ["n_layer"]),
        ("params: {layers.a.bdy.hidden: l}", ["bdy"]),
        ("params: {layers.a.body.hiden: l}", ["hiden"]),
        ("params: {n_layers.x: l}", ["x"]),
        ("params: {width: {from: w, default: 3}}", ["3"]),
        ("params: {width: {from: w, default: 2 * 1}}", ["2 * 1"]),
        ("params: {part: {from: w, default: 30}}", []),  # the file may set the bound too
        ("params: {width: {from: w, default: wide}}", ["wide"]),
        ("params: {width: {from: w, default: n_layer * 3}}", ["n_layer"]),
        ("params: {width: {from: w, default: n_layers * 3}}", []),
        ("params: {n_layers: {from: w, default: 3 / 2}}", ["3 / 2"]),
        ("params: {n_layers: {from: w, default: 3 *}}", ["*"]),
        ("params: {flag: {from: w, default: 3}}", ["3"]),
        ("params: {kind: {from: w, values: {a: wide, b: dep}}}", ["dep"]),
        ("params: {act: {from: w, values: {a: gelu, b: rellu}}}", ["rellu"]),
        ("params: {act: {from: w, values: {a: gelu, b: relu}}}", []),
        ("params: {act: {from: w, values: {a: none, b: clamped_silu}}, act.alpha: {from: s, optional: true}}", []),
        ("params: {act: {from: w, values: {a: none, b: clamped_silu}}, act.aplha: {from: s, optional: true}}", ["aplha"]),
        ("params: {width: w, params.width: v}", ["params.width"]),
        ("params: {width: w, params.width.default: v}", ["params.width.default"]),
        ("constants: {a: width, b: [2 * width, gelu], c: 3, d: null, e: full-attention, f: silu, g: 1e-5}", []),
        ("constants: {a: 2 * widht}", ["widht"]),
        ("constants: {a: width / n_layer}", ["n_layer"]),
        ("constants: {a: [3, widht]}", ["widht"]),
        ('constants: {a: "widht"}', []),
        ("constants: {a: 3 / 0}", ["0"]),
        ("constants: {a: {each: full if layer == 0 else local, count: n_layers}}", []),
        ("constants: {a: {each: full if layr == 0 else local, count: n_layers}}", ["layr"]),
        ("constants: {a: {each: full if layer else local, count: n_layers}}", ["layer"]),
        ("constants: {a: {each: full, count: n_layrs}}", ["n_layrs"]),
        ("constants: {a: {each: full, count: n_layers - 3}}", ["n_layers - 3"]),
        ("constants: {a: {each: full, count: n_layers / 4}}", ["n_layers / 4"]),
        ("constants: {a: [[0.0, Infinity], [width, gelu]], b: [[2 * n_layers, p2c|c2p]], c: [[]]}", []),
        ("constants: {a: [[3, widht]], b: [[2 * widht]]}", ["widht", "widht"]),
        ("constants: {a: [[3, [4]]]}", ["[4]"]),
        ("constants: {a: 8 *}", ["*"]),
        ('constants: {a: "8 *", b: p2c|c2p, c: gpt-4o, d: a/b-3c}', []),
        ("constants: {a: 3 if width == 8 else slding window}", ["window"]),
        ("constants: {a: {each: full if layer = 0 else local, count: n_layers}}", ["="]),
        ("constants: {a: 3}\n      ignore: [a]", ["a"]),
        ("params: {width: a}\n      ignore: [b, a]", ["a"]),
        ("params: {width: a.b}\n      ignore: [a]", []),  # what else is in a
        ("params: {width: a}\n      constants: {a: 8}", ["a"]),
        ("params: {width: a}\n      constants: {a: [8, 16]}", []),  # these alone
        ("params: {width: a}\n      constants: {a: 2 * round(width / 2)}", []),  # which holds of some
        ("params: {n_layers: {count: a}}\n      constants: {a: full}", []),
        ("params: {width: root(b)}", ["root"]),
        ("params: {width: max(b) + 1}", ["max(b)"]),
        ("params: {width: b(-1) + b.c(0)}", []),
    ],
)  # fmt: skip
def test_what_a_config_names_is_checked_without_a_file(config: str, expected: list[str]) -> None:
    """Paths, values and conditions, each at its word."""
    recipe = composer.load(CONFIG.format(config=f"      {config}"))
    found = [each.span for each in recipe.check()]
    assert [span.source.lines[span.line - 1][span.column - 1 : span.end_column - 1] for span in found] == expected


STAGES = """
recipe: staged
params:
  depths: [1, 2]
  widths: {type: [int], default: [8, 16]}
  kinds: {type: [choice], of: [near, far], default: [near, far]}
  context: 12
  theta: 1e4
inputs: {x: "float[batch, time, 8]"}
graph:
  stages:
    repeat: len(depths)
    as: stage
    each: {width: widths, look: causal and window(3) if kinds(stage) == near else causal}
    graph:
      widen: {type: linear, out: width}
      layers:
        repeat: depths(stage)
        graph:
          attn: {type: attention, heads: 2, positions: {type: rotary, theta: theta}, mask: look}
  places: {type: learned_positions, max_length: context}
checkpoints:
  staged:
    config:
      params:
        depths: {from: depths, times: n_stages}
        widths: hidden_sizes
        kinds: {from: layer_types, values: {sliding_attention: near, full_attention: far}, default: [far, near]}
        context: max_position_embeddings - 2
        theta: {from: rope.base * len(depths) / hidden_sizes(-1), optional: true}
      constants: {sizes: widths}
    rules:
      stages.<stage>.widen.*: s.<stage>.w.*
      stages.<stage>.layers.<layer>.attn.*: s.<stage>.l.<layer>.*
      places.weight: wpe
"""
PUBLISHED = {"model_type": "staged", "depths": [2, 1, 3], "hidden_sizes": [8, 12, 24], "max_position_embeddings": 22}


def test_lists_of_a_config_are_read() -> None:
    """Depths, widths and kinds of layers, each item through `values` where these are given; and what is computed from keys."""
    found = composer.load(STAGES).with_config(
        {**PUBLISHED, "layer_types": ["full_attention"] * 3, "rope": {"base": 80}, "sizes": [8, 12, 24]}
    )
    params = found.program.untyped.params
    assert (params["depths"], params["widths"], params["kinds"]) == ((2, 1, 3), (8, 12, 24), ("far", "far", "far"))
    assert (params["context"], params["theta"]) == (20, 10)
    assert [len(stage.graph["layers"].passes) for stage in found.program.root["stages"].passes] == [2, 1, 3]  # type: ignore[union-attr]  # repeats
    even = composer.load(STAGES).with_config({**PUBLISHED, "depths": 2, "n_stages": 3, "layer_types": ["full_attention"] * 3})
    assert even.program.untyped.params["depths"] == (2, 2, 2)
    smaller = composer.load(STAGES).with_config({**PUBLISHED, "depths": [1, 1], "hidden_sizes": [8, 8]})
    assert smaller.program.untyped.params["kinds"] == ("far", "near")
    assert smaller.program.untyped.params["theta"] == 1e4


@pytest.mark.parametrize(
    ("changed", "code", "message"),
    [
        ({"hidden_sizes": 3}, "config-value", "`hidden_sizes` is a value, not a function"),
        ({"depths": 3}, "config-value", "n_stages is missing, but counts how often depths stands in a list, 1 to 10,000 times"),
        (
            {"depths": 3, "n_stages": 10**9},
            "config-value",
            "n_stages is 1000000000, but counts how often depths stands in a list",
        ),
        ({"depths": [2, "one", 3]}, "config-value", 'depths is [2, "one", 3], which is not a list of numbers'),
        ({"depths": [2, 0.5, 3]}, "not-whole", "0.5 is not an integer"),
        ({"hidden_sizes": [8, [12], 24]}, "config-value", "which is not a list of numbers"),
        ({"hidden_sizes": [8, 12.5, 24]}, "not-whole", "12.5 is not an integer"),
        (
            {"layer_types": ["full_attention", "linear", "linear"]},
            "config-value",
            "layer_types has linear, but this recipe supports",
        ),
        ({"layer_types": ["full_attention"]}, "no-such-item", "`kinds` has 1 item, and none with the index 1"),
        ({"hidden_sizes": [8, 12]}, "each-items", "this one has 2 items"),
        ({"sizes": [8, 12]}, "config-value", "sizes is [8, 12]; this recipe needs widths"),
        ({"max_position_embeddings": "many"}, "config-value", "`many` is a string, not a number"),
        ({"max_position_embeddings": None}, "config-missing", "no max_position_embeddings, which context"),
        ({"max_position_embeddings": 2}, "out-of-range", ""),
        ({"stages": 3}, "config-unknown", "stages"),
    ],
    ids=str,
)
def test_lists_that_do_not_fit_are_refused(changed: dict[str, Any], code: str, message: str) -> None:
    """By the key, before anything is loaded."""
    published = {**PUBLISHED, "layer_types": ["full_attention"] * 3, "rope": {"base": 80}, **changed}
    with pytest.raises(RecipeError) as refused:
        composer.load(STAGES).with_config({key: value for key, value in published.items() if value is not None})
    assert code in {each.code for each in refused.value.diagnostics}
    assert message in str(refused.value)


@pytest.mark.parametrize("value", [7, "abc", True, 0.5], ids=str)
def test_what_has_no_entries_is_not_counted(value: Any) -> None:
    """By the key in the file; a list and an object have as many as they have."""
    counted = composer.load(CONFIG.format(config="      params: {width: {count: sizes}}"))
    for sound in ([*range(5)], dict.fromkeys("abcde", 0)):
        values = {"model_type": "model", "sizes": sound}
        assert counted.with_config(values).program.untyped.params["width"] == 5
    with pytest.raises(RecipeError) as refused:
        counted.with_config({"model_type": "model", "sizes": value})
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == (
        "config-value", f"sizes is {json.dumps(value)}, which has no entries that width could count"
    )  # fmt: skip
    assert found.span.source.lines[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1] == '"sizes"'


@pytest.mark.parametrize(
    ("written", "instead", "code"),
    [
        ("sliding_attention: near", "sliding_attention: nearby", "unknown-choice"),
        ("default: [far, near]", "default: [far, away]", "unknown-choice"),
        ("default: [far, near]", "default: far", "not-a-list"),
        ("{from: depths, times: n_stages}", "{count: depths}", "not-a-list"),
        ("{from: depths, times: n_stages}", "layers * 2", "not-a-list"),
        ("times: n_stages", "default: [1, one]", "not-a-number"),
        ("context: max_position_embeddings - 2", "context: {from: n_positions, times: n_stages}", "checkpoints-form"),
        ("depths: {from", "dephts: {from", "unknown-path"),
        ("max_position_embeddings - 2", "(max_position_embeddings - 2", "unclosed-bracket"),
        ("sizes: widths", "sizes: widths(5)", "no-such-item"),
    ],
    ids=str,
)
def test_lists_of_a_config_are_checked_without_a_file(written: str, instead: str, code: str) -> None:
    assert not [each for each in composer.load(STAGES).check() if each.severity == "error"]
    found = [each.code for each in composer.load(STAGES.replace(written, instead)).check() if each.severity == "error"]
    assert found == [code]


WORDS = """
recipe: example
params: PARAMS
inputs: {x: "float[batch, time, 8]"}
graph:
  layers:
    repeat: 2
    graph:
      a: {type: residual, norm: rmsnorm, body: relu, placement: WRITTEN}
checkpoints:
  words:
    config: {params: {kinds: layer_types}}
    rules: {layers.<layer>.*: l.<layer>.*}
"""


@pytest.mark.parametrize(
    ("params", "written", "published", "set_to"),
    [
        ("{kinds: {type: [choice], of: [pre, post], default: [pre, pre]}}", "kinds(layer)", ["post", "pre"], ("post", "pre")),
        ("{kinds: {type: [choice], of: [pre, post]}}", "kinds(layer)", ["post", "pre"], ("post", "pre")),
        ("{kinds: {type: [str], default: [pre, pre]}}", "kinds(layer)", ["post", "pre"], ("post", "pre")),
        ("{kinds: [pre, pre]}", "kinds(layer)", ["post", "pre"], ("post", "pre")),
        ("{kinds: {type: choice, of: [pre, post], default: pre}}", "kinds", "post", "post"),
        ("{kinds: pre}", "kinds", "post", "post"),
    ],
    ids=str,
)
def test_strings_of_a_config_set_params_that_are_words(params: str, written: str, published: Any, set_to: Any) -> None:
    """As they are, where no `values` translate them."""
    recipe = composer.load(WORDS.replace("PARAMS", params).replace("WRITTEN", written))
    assert recipe.with_config({"model_type": "words", "layer_types": published}).program.untyped.params["kinds"] == set_to


@pytest.mark.parametrize(
    ("params", "written", "published", "code", "message"),
    [
        ("{kinds: {type: [choice], of: [pre, post], default: [pre, pre]}}", "kinds(layer)", ["post", "last"], "unknown-choice",
         "`last` is not one of pre, post"),
        ("{kinds: [pre, pre], other: post}", "kinds(layer) if other == post else pre", ["other", "pre"], "config-value",
         'layer_types is ["other", "pre"], which is not a list of words'),
        ("{kinds: pre}", "kinds", "post if true else pre", "config-value", "which is not a word"),
        ("{kinds: pre}", "kinds", 1, "not-a-string", ""),
        ("{kinds: {type: block, default: relu}}", "pre, scale: kinds", "gelu", "config-value", "which is not a number"),
    ],
    ids=str,
)  # fmt: skip
def test_other_strings_of_a_config_are_refused(params: str, written: str, published: Any, code: str, message: str) -> None:
    """By the key; a string is never a block, the name of a param or an expression."""
    recipe = composer.load(WORDS.replace("PARAMS", params).replace("WRITTEN", written))
    with pytest.raises(RecipeError) as caught:
        recipe.with_config({"model_type": "words", "layer_types": published})
    first = caught.value.diagnostics[0]
    assert (first.code, first.span.source.name, first.span.line) == (code, "config.json", 3)
    assert message in first.message


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (
            '{"model_type": "gpt2",\n "a": {"n_layer": 1},\n "n_layer": 3,\n  "n_layer": 4}',
            4,
            3,
            'the key "n_layer" occurs twice',
        ),
        ('{"model_type": "gpt2",\n  "n_layer" 3}', 2, 13, "this is not JSON: expecting ':' delimiter"),
        ('{"a": {"b": 1,\n "b": 2}, ]', 2, 2, 'the key "b" occurs twice'),
        ('{"a": [{"b": 1, "b": 2}]}', 1, 1, 'the key "b" occurs twice'),
    ],
)
def test_what_is_no_json_is_told_where_it_is(text: str, line: int, column: int, message: str, tmp_path: Path) -> None:
    """At the line of the file, and at the second of two keys."""
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as stopped:
        composer.load("gpt2").with_config(tmp_path)
    (wrong,) = stopped.value.diagnostics
    assert (wrong.code, wrong.message, wrong.span.line, wrong.span.column) == ("unreadable-file", message, line, column)
