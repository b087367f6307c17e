"""Which recipes of the zoo run through every test, and which through a few: `representatives` has the rule.

A recipe that has something new runs through everything. What another is made of is tested in one of these, and only what is its
own is left: its weights and logits (in `parity` and `weights`), its number of parameters, its drawing, and that it is checked,
expanded and compiled. `make test-all` runs most tests with every recipe; those that draw many changes of each keep to the
representatives, or to the recipes that tests name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

import pytest
import yaml

import composer
from blocks.core import Part, standard
from composer.language.tasks import TASKS
from composer.package_data import zoo
from composer.recipe import zoo_names
from tests.conformance.features import features, wanted

NAMED = (
    "albert", "bert", "captioner", "conv_lm", "gemma3", "gpt2", "gpt_mini", "lecture_block", "llama3", "lstm_lm", "mixtral",
    "mlp_lm", "rnn_lm", "seq2seq_rnn", "switch", "t5", "transformer", "vit",
)  # fmt: skip
"""Recipes that tests and pages name; they are representatives whatever they have."""
COMPUTED = frozenset({"part", "field", "port", "output", "slot", "share", "scan", "state", "loss"})
"""Kinds of features that decide what is computed; the others are ways to write it, which generated recipes have all of."""
OF_A_VARIANT = frozenset({"recipe", "language", "extends", "doc", "paper", "params", "init", "checkpoints"})
"""Keys of a recipe that is another one with other sizes, options, initial values or names of weights."""

PARAMETERS: Mapping[str, int] = {
    "captioner": 238_605_312,
    "conv_lm": 709_443,
    "gpt_mini": 796_160,
    "lecture_block": 54_275,
    "lstm_lm": 947_395,
    "mlp_lm": 301_315,
    "rnn_lm": 41_603,
    "seq2seq_rnn": 80_450_000,
    "transformer": 63_045_632,
    "gpt2": 124_439_808,
    "llama3": 8_030_261_248,
    "gemma3": 999_885_952,
    "mixtral": 46_702_792_704,
    "albert": 11_221_680,
    "bert": 109_514_298,
    "vit": 86_567_656,
    "t5": 222_903_552,
    "switch": 619_339_008,
    "mamba": 129_135_360,
    "mamba2": 128_989_632,
    "llama1": 6_738_415_616,
    "transformer_pp": 123_551_232,
    "llama2": 6_738_415_616,
    "mistral": 7_241_732_096,
    "qwen2": 7_615_616_512,
    "qwen2_vl_text": 7_615_616_512,
    "qwen3": 8_190_735_360,
    "olmo2": 7_298_617_344,
    "phi3": 3_821_079_552,
    "gpt_neox": 20_554_567_680,
    "pythia": 6_857_302_016,
    "gptj": 6_050_882_784,
    "phi2": 2_779_683_840,
    "opt": 6_658_473_984,
    "bloom": 176_247_271_424,
    "falcon": 6_921_720_704,
    "gpt_neo": 2_651_307_520,
    "mpt": 6_649_286_656,
    "gemma": 8_537_680_896,
    "gemma2": 2_614_341_888,
    "qwen3_moe": 30_532_122_624,
    "qwen3_next": 79_674_391_296,
    "jamba": 51_570_323_328,
    "recurrent_gemma": 2_682_862_080,
    "rwkv": 169_342_464,
    "gpt_oss": 20_914_757_184,
    "deepseek_v2": 235_741_434_880,
    "deepseek_v3": 671_026_404_352,
    "llama4": 107_769_861_120,
    "granite": 8_170_864_640,
    "olmoe": 6_919_161_856,
    "smollm3": 3_075_098_624,
    "olmo3": 7_298_011_136,
    "arcee": 4_619_189_760,
    "helium": 2_172_643_840,
    "seed_oss": 36_151_104_512,
    "glm4": 9_400_279_040,
    "gpt3": 174_604_259_328,
    "gpt1": 116_534_784,
    "palm": 540_356_474_880,
    "swin": 28_288_354,
    "whisper": 37_760_640,
    "wav2vec2": 94_395_552,
    "roberta": 124_697_433,
    "minilm": 22_565_376,
    "spanbert": 110_301_480,
    "distilbert": 66_985_530,
    "deit": 87_338_192,
    "mae": 111_907_840,
    "pixtral_vision": 403_489_792,
    "convnext": 28_589_128,
    "resnet": 25_557_032,
    "bart": 406_341_721,
    "mbart": 611_101_867,
    "marian": 73_944_309,
    "mt5": 582_401_280,
    "clip": 151_277_313,
    "fnet": 82_894_592,
    "bigbird": 127_520_694,
    "longformer": 148_711_257,
    "deberta_v2": 184_551_780,
    "xlnet": 360_299_776,
    "perceiver": 201_108_230,
    "linformer": 124_858_496,
    "show_attend_tell": 54_838_697,
    "modernbert": 149_655_232,
    "dit": 674_834_720,
    "uvit": 500_832_016,
    "denseformer": 378_447_816,
    "hyper_connections": 1_177_158_464,
    "early_exit": 6_738_415_616,
    "mixture_of_depths": 224_631_181,
    "hierarchical_moe": 1_085_431_808,
    "task_moe": 533_004_192,
    "transformer_xl": 277_231_820,
    "universal_transformer": 67_268_608,
    "mlp_table": 18_290,
}
"""The number of parameters of each recipe as it is written, for published models as published."""


def has(recipe: composer.Recipe) -> frozenset[str]:
    """Return what a recipe has that may go wrong by itself: the parts of the library with their options, ports and outputs, masks
    among them, and each part that keeps something of a text while it is generated, with the task of the recipe.
    """
    task, library = recipe.program.untyped.recipe.task, standard()
    found = {each for each in features(recipe) & _known() if each.partition(":")[0] in COMPUTED}
    keeping = (each for each in found if each.startswith("part:") and _keeps(library[each.removeprefix("part:")]))
    return frozenset({*found, *(f"{each} in {task}" for each in keeping if task and TASKS[task].text)})


def _keeps(part: type[Part]) -> bool:
    """Return whether a part keeps something from call to call, or asks for the positions of what it is given."""
    return bool(part.cache_slots or part.carry or part.position_inputs)


def _known() -> frozenset[str]:
    """Return what the library and the language have, which blocks that a recipe defines are no part of."""
    return wanted(standard())


def representatives(have: Mapping[str, Set[str]], named: Collection[str]) -> tuple[str, ...]:
    """Return recipes that together have all that any has: those that are named, and then each time the one that adds most, the
    first by name among equals.
    """
    chosen = [name for name in sorted(have) if name in named]
    missing = set().union(*have.values()).difference(*(have[name] for name in chosen))
    while missing:
        chosen.append(max(sorted(have), key=lambda name: len(have[name] & missing)))
        missing -= have[chosen[-1]]
    return tuple(chosen)


def is_variant(text: str) -> bool:
    """Return whether a recipe has no graph of its own."""
    keys = yaml.safe_load(text).keys()
    return "extends" in keys and keys <= OF_A_VARIANT


HAVE = {name: has(composer.load(name)) for name in zoo_names()}
REPRESENTATIVES = representatives(HAVE, NAMED)
"""Run through every test: those that are named in `make test`, the others partly in `make test-all`."""
UNNAMED = tuple(name for name in REPRESENTATIVES if name not in NAMED)
VARIANTS = tuple(
    name for name in HAVE if name not in REPRESENTATIVES and is_variant((zoo() / f"{name}.yaml").read_text(encoding="utf-8"))
)
"""Are checked, counted and compared with their references."""
OTHERS = tuple(name for name in HAVE if name not in REPRESENTATIVES + VARIANTS)
"""Are drawn, expanded and compiled besides."""
REST = (*OTHERS, *VARIANTS)

rest = [pytest.param(name, marks=pytest.mark.exhaustive) for name in REST]
each_representative = pytest.mark.parametrize(
    "name", [*NAMED, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in (*UNNAMED, *REST))]
)
"""A test of the recipes that are named, and of all others where tests are exhaustive."""
each_named = pytest.mark.parametrize("name", NAMED)
"""A test of many changes of each recipe, of which a few recipes show what there is."""
each_graph = pytest.mark.parametrize(
    "name", [*REPRESENTATIVES, *OTHERS, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in VARIANTS)]
)
"""A test of all recipes but variants, and of these too where tests are exhaustive."""
