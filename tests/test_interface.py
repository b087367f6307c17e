"""The Python interface: what others build on, pinned by name and signature."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
import torch

import composer
from blocks.core import Block

TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
FUNCTIONS = {
    "composer.load": "(source: str | Path, overrides: Overrides = None, blocks: Blocks | Path = ()) -> Recipe",
    "composer.loss": "(model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0, logits_chunk: int = 0) -> BatchLoss",
    "composer.param_groups": "(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]",
    "composer.train.train": (
        "(model: nn.Module, tokenizer: Tokenizer, data: TrainingData, settings: TrainSettings, run: StrPath, *, recipe: str, "
        "reference: ReferenceModel | None = None, show: Display | None = None, callbacks: Sequence[Callback] = ()) -> Result"
    ),
    "composer.train.resume": (
        "(run: StrPath, *, build: Build = compiled, steps: int | None = None, settings: TrainSettings | None = None, "
        "recipe: str | None = None, data: StrPath | Sequence[StrPath] | None = None, max_data_bytes: int = 1073741824, "
        "cache: StrPath = default, checkpoint: str | None = None, reference: StrPath | None = None, "
        "show: Display | None = None, callbacks: Sequence[Callback] = ()) -> Result"
    ),
    "composer.train.prepare": (
        "(sources: StrPath | Sequence[StrPath], tokenizer: Tokenizer | str = characters, *, vocab_size: int | None = None, "
        "folder: StrPath | None = None, max_bytes: int = 1073741824, cache: StrPath = default, show: Preparing | None = None) "
        "-> PreparedText"
    ),
    "composer.train.open_prepared": "(folder: StrPath, *, cache: StrPath = default) -> PreparedText",
    "composer.train.freeze": "(model: nn.Module, patterns: Sequence[str]) -> None",
    "composer.train.grow": "(model: Model[Any], smaller: Model[Any], *, new_layers: Sequence[str] = ()) -> Growth",
    "composer.train.mixed": "(data: D, weights: Sequence[float], *, documents: Sequence[int] | None = None) -> D",
    "composer.train.start_from": (
        "(model: nn.Module, run: StrPath, *, checkpoint: str | None = None, tokenizer: Tokenizer | None = None) -> Start"
    ),
    "composer.train.load_vectors": "(model: nn.Module, tokenizer: Tokenizer, path: StrPath) -> Vectors",
    "composer.train.open_reference_model": (
        "(path: StrPath, *, build: Build | None = None, checkpoint: str | None = None) -> ReferenceModel"
    ),
    "composer.train.open_run": "(path: StrPath, *, build: Build | None = None, checkpoint: str | None = None) -> Trained",
    "composer.estimate.estimate": (
        "(recipe: Recipe, lengths: Mapping[str, int] | None = None, *, device: DeviceSpec | None = None, "
        "settings: TrainSettings | None = None) -> Estimate"
    ),
    "composer.estimate.largest_batch": (
        "(recipe: Recipe, memory: int, lengths: Mapping[str, int] | None = None, *, settings: TrainSettings | None = None, "
        "on_gpu: bool = True) -> int"
    ),
    "composer.estimate.measure_device": "(device: str = cpu) -> DeviceSpec",
    "composer.estimate.read_device": "(path: StrPath) -> DeviceSpec",
    "composer.estimate.write_device": "(spec: DeviceSpec, path: StrPath) -> None",
    "composer.compare.read_experiment": "(path: StrPath) -> Experiment",
    "composer.compare.plan": (
        "(experiment: Experiment, *, vocabulary: int | Tokenizer | None = None, blocks: Blocks = ()) "
        "-> tuple[PlannedVariant, ...]"
    ),
    "composer.compare.compare": (
        "(experiment: Experiment, folder: StrPath, *, blocks: Blocks = (), device: str | None = None, "
        "max_data_bytes: int = 1073741824, tell: Callable[[str], None] | None = None, "
        "show: Callable[[], Display] | None = None) -> ExperimentResult"
    ),
    "composer.compare.paired_difference": "(values: Sequence[float], reference: Sequence[float]) -> PairedDifference | None",
    "composer.evaluate.evaluate_answers": (
        "(run: StrPath, task: str, lengths: Sequence[int], *, examples: int = 200, seed: int = 0, "
        "build: Build | None = None, checkpoint: str | None = None) -> tuple[AnswerScore, ...]"
    ),
    "composer.evaluate.evaluate_needle": (
        "(run: StrPath, lengths: Sequence[int], depths: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0), *, examples: int = 20, "
        "seed: int = 0, build: Build | None = None, checkpoint: str | None = None) -> NeedleEvaluation"
    ),
    "composer.evaluate.evaluate_published": (
        "(published: PublishedModel, data: StrPath | Sequence[StrPath], *, batch_size: int | None = None, "
        "seq_len: int | None = None, max_data_bytes: int = 1073741824, calibration: bool = False) -> Evaluation"
    ),
    "composer.evaluate.synthetic_text": "(task: str, lengths: Sequence[int], *, lines: int, seed: int = 0) -> str",
    "composer.evaluate.evaluate": (
        "(run: StrPath, data: StrPath | Sequence[StrPath] | None = None, *, build: Build | None = None, "
        "checkpoint: str | None = None, batch_size: int | None = None, seq_len: int | None = None, "
        "max_data_bytes: int = 1073741824, translate: bool = False, calibration: bool = False, season: int | None = None) -> "
        "Evaluation | TableEvaluation"
    ),
    "composer.decode.generate": (
        "(model: nn.Module, prompts: Sequence[Sequence[int]], request: Request, *, "
        "encoder_inputs: EncoderInputs | None = None, seed: int | Sequence[int] = 0, reading: Reading = uncached, "
        "batch_size: int | None = None, draft: Draft | None = None) -> list[list[int]]"
    ),
    "composer.decode.stream": (
        "(model: nn.Module, prompt: Sequence[int], request: Request, *, "
        "encoder_inputs: EncoderInputs | None = None, seed: int = 0, reading: Reading = uncached, "
        "draft: Draft | None = None) -> Iterator[int]"
    ),
    "composer.decode.beam_search": (
        "(model: nn.Module, prompts: Sequence[Sequence[int]], search: Search, *, "
        "encoder_inputs: EncoderInputs | None = None, reading: Reading = uncached) -> list[list[Hypothesis]]"
    ),
    "composer.decode.attention_maps": "(model: Model, **inputs: Tensor) -> list[AttentionMap]",
    "composer.decode.logit_lens": "(model: Model, **inputs: Tensor) -> list[tuple[str, Tensor]]",
    "composer.decode.prepacked": "(model: nn.Module, rows: int = 1) -> Iterator[int]",
    "composer.decode.session": (
        "(model: nn.Module, initial_length: int = 256, *, max_length: int | None = None, last_only: bool = False, "
        "prompt_cache: StrPath | None = None) -> Session"
    ),
    "composer.decode.compiled": "(model: nn.Module, **options: Any) -> Reading",
    "composer.weights.load_published": (
        "(model: Model, source: StrPath | Mapping[str, Tensor] | Mapping[str, NDArray[Any]], "
        "model_type: str | None = None, *, allow_nonfinite: bool = False) -> None"
    ),
    "composer.weights.merge_adapters": "(model: Model[R]) -> Model[R]",
    "composer.weights.save_published": "(model: Model, path: StrPath, model_type: str | None = None) -> None",
    "composer.published.export_adapters": "(model: Model[Recipe], path: StrPath, model_type: str | None = None) -> None",
    "composer.published.export_folder": (
        "(model: Model[Recipe], path: StrPath, model_type: str | None = None, *, tokenizer: Tokenizer | None = None, "
        "max_shard_bytes: int = 5000000000) -> None"
    ),
    "composer.published.export_gguf": (
        "(model: Model[Recipe], path: StrPath, model_type: str | None = None, *, dtype: torch.dtype | None = None, "
        "tokenizer: Tokenizer | None = None) -> None"
    ),
    "composer.published.export_onnx": ("(model: Model[Recipe], path: StrPath, lengths: Mapping[str, int] | None = None) -> None"),
    "composer.published.export_program": (
        "(model: Model[Recipe], path: StrPath, lengths: Mapping[str, int] | None = None) -> None"
    ),
    "composer.published.start_from_published": "(model: nn.Module, folder: StrPath, *, blocks: Blocks = ()) -> Start",
    "composer.published.tokenizer_to_train": "(folder: StrPath) -> PiecesTokenizer",
    "composer.Recipe.check": "(self) -> list[Diagnostic]",
    "composer.Recipe.summary": "(self, lengths: Mapping[str, int] | None = None) -> Summary",
    "composer.Recipe.draw": "(self, level: Level | None = None, *, sheet: StrPath | None = None, **options: Unpack[Options])"
    " -> Figure",
    "composer.Recipe.expand": "(self) -> str",
    "composer.Recipe.diff": "(self, other: Recipe) -> Difference",
    "composer.Recipe.to_networkx": "(self) -> nx.MultiDiGraph[str]",
    "composer.Recipe.export": "(self) -> str",
    "composer.Recipe.overridden": "(self, param: str) -> bool",
    "composer.Recipe.with_overrides": "(self, overrides: Overrides) -> Recipe",
    "composer.Recipe.verify": "(self) -> Verification",
    "composer.Recipe.without_adapters": "(self) -> Recipe",
    "composer.Recipe.with_config": "(self, config: StrPath | Mapping[str, Any]) -> Recipe",
    "composer.Recipe.pretrained": (
        "(self, weights: StrPath | Mapping[str, torch.Tensor] | Mapping[str, NDArray[Any]] | None = None, *, "
        "device: torch.device | str | None = None, dtype: torch.dtype | None = None, int8: bool = False, "
        "allow_nonfinite: bool = False) -> Model[Recipe]"
    ),
    "composer.weights.to_int8": "(model: M) -> M",
    "composer.weights.weight_bytes": "(model: nn.Module) -> int",
    "composer.decode.fill": "(model: nn.Module, tokens: Sequence[int], mask: int, *, vocabulary: int | None = None) -> list[int]",
    "composer.Recipe.compile": (
        "(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None, seed: int | None = None, *, "
        "allow_large: bool = False) -> Model[Recipe]"
    ),
}


def named(path: str) -> object:
    """Return what a dotted path leads to."""
    home, _, name = path.rpartition(".")
    return getattr(composer.Recipe if home == "composer.Recipe" else import_module(home), name)


def signature(function: object) -> str:
    """Return the signature as it is written: annotations without quotes, functions by their names."""
    text = str(inspect.signature(function))  # type: ignore[arg-type]  # every pinned name is a function
    return re.sub(r"<function (\w+) at \w+>", r"\1", text).replace("'", "")


@pytest.mark.parametrize("path", FUNCTIONS)
def test_signatures_stay_as_they_are(path: str) -> None:
    """A change here breaks somebody's program: it belongs in the changelog."""
    assert signature(named(path)) == FUNCTIONS[path]
    assert inspect.getdoc(named(path))


def test_options_of_drawings_stay_as_they_are() -> None:
    """Their names, and what holds where they are left out."""
    from composer.draw.figure import DEFAULTS, Options

    assert {**DEFAULTS} == {
        "direction": "up",
        "theme": "light",
        "open": (),
        "details": ("auto",),
        "unroll": False,
        "highlight": (),
        "width": "",
        "title": "",
        "params": True,
        "shapes": True,
        "engine": "structured",
        "color": "kind",
        "legend": False,
        "caption": "",
        "flops": False,
        "cache": False,
        "names": True,
        "dropout": True,
        "optional_inputs": True,
        "hide": (),
        "merge": {},
        "labels": {},
        "break_after": (),
    }
    assert {name: kind.__forward_arg__ for name, kind in Options.__annotations__.items()} == {
        "direction": "Direction",
        "theme": "ThemeName",
        "open": "Sequence[str]",
        "details": "Sequence[str]",
        "unroll": "bool | str | Sequence[str] | Mapping[str, str]",
        "highlight": "Sequence[str]",
        "width": "str",
        "title": "str",
        "params": "bool",
        "shapes": "bool",
        "engine": "Engine",
        "color": "Coloring",
        "legend": "bool",
        "caption": "str",
        "flops": "bool",
        "cache": "bool",
        "names": "bool",
        "dropout": "bool",
        "optional_inputs": "bool",
        "hide": "Sequence[str]",
        "merge": "Mapping[str, Sequence[str]]",
        "break_after": "Sequence[str]",
        "labels": "Mapping[str, str]",
    }


def test_package_offers_these_names() -> None:
    """All that `import composer` gives, each found where it lives."""
    offered = [
        "ComposerError", "Diagnostic", "Difference", "Model", "Recipe", "RecipeError", "Summary", "load", "loss", "param_groups",
    ]  # fmt: skip
    packages = ["compare", "decode", "estimate", "evaluate", "published", "train", "weights"]
    assert dir(composer) == sorted([*offered, *packages])
    assert [getattr(composer, name).__name__ for name in offered] == offered
    asked = f"import composer; print(*(getattr(composer, name).__name__ for name in {packages}))"
    said = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout
    assert said.split() == [f"composer.{name}" for name in packages]  # where nothing has imported them
    assert composer.loss is import_module("composer.train.losses").loss
    with pytest.raises(AttributeError, match="has no attribute 'lod'"):
        _ = composer.lod


def test_a_recipe_has_these_properties() -> None:
    """Beside what it can do: what it was given, and what it says of itself."""
    recipe = composer.load("gpt2", overrides=TINY)
    properties = ("source", "overrides", "blocks", "library", "document", "text", "name", "doc", "task", "program")
    assert {name for name in properties if not hasattr(recipe, name)} == set()
    assert (recipe.name, recipe.task) == ("gpt2", "causal_lm")
    assert [str(each) for each in recipe.overrides[:2]] == ["n_layers=2", "d_model=32"]
    assert composer.load(recipe.text).program.untyped.params["d_model"] == 32
    for name in ("text", "name", "doc", "task", "program", "library", "document"):
        assert inspect.getdoc(inspect.getattr_static(composer.Recipe, name))


def test_a_recipe_is_found_by_name_path_and_text(tmp_path: Path) -> None:
    """All the same to whoever holds it."""
    text = composer.load("gpt2").source.text
    file = tmp_path / "my.yaml"
    file.write_text(text, encoding="utf-8")
    for source in ("gpt2", file, str(file), text):
        assert composer.load(source, overrides=TINY).text == composer.load("gpt2", overrides=TINY).text
        assert composer.load(source, overrides=["n_layers=2"]).text == composer.load("gpt2", overrides={"n_layers": 2}).text


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, "null"), (True, "true"), (3, "3"), (0.5, "0.5"), ("causal and window(3)", "causal and window(3)"),
     ({"type": "rmsnorm", "eps": 1e-6}, '{type: "rmsnorm", eps: 1e-06}'), (["a, b", 'c"d'], '["a, b", "c\\"d"]')],
)  # fmt: skip
def test_values_are_set_as_they_are_written_on_the_command_line(value: object, written: str) -> None:
    """A setting in Python is one argument of `--set`."""
    (override,) = composer.load("gpt2", overrides={"some.path": value}).overrides
    assert (str(override), override.source.name) == (f"some.path={written}", "overrides")


def test_one_override_and_one_file_of_blocks_need_no_list(tmp_path: Path) -> None:
    """They are not taken letter by letter."""
    assert composer.load("gpt2", "n_layers=2").text == composer.load("gpt2", ["n_layers=2"]).text
    file = tmp_path / "mine.py"
    file.write_text('from blocks.core import Block\n\n\nclass Mine(Block, kind="mine"):\n    """Mine."""\n', encoding="utf-8")
    for blocks in (file, str(file)):
        assert "mine" in composer.load("gpt2", blocks=blocks).library


def test_a_recipe_is_compared_with_a_recipe() -> None:
    """Not with its name."""
    with pytest.raises(TypeError, match=r"diff compares with a recipe, not with 'gpt2'; load it with composer.load"):
        composer.load("gpt2").diff("gpt2")  # type: ignore[arg-type]


def test_a_wrong_recipe_is_loaded_and_says_so_when_it_is_used() -> None:
    """With every mistake, as data and as text."""
    recipe = composer.load("gpt2", overrides={"n_heads": 7, "n_layer": 3})
    assert {each.code for each in recipe.check()} >= {"unknown-path"}
    for use in (recipe.summary, recipe.expand, recipe.export, recipe.compile, lambda: recipe.program):
        with pytest.raises(composer.RecipeError) as raised:
            use()
        assert [each.code for each in raised.value.diagnostics] == [
            each.code for each in recipe.check() if each.severity == "error"
        ]
        assert "overrides:1:1: error[unknown-path]" in str(raised.value)
    with pytest.raises(composer.RecipeError, match="there is no such recipe"):
        composer.load("gpt")


def test_a_recipe_survives_pickling() -> None:
    """Its settings with it, and all that follows from them."""
    recipe = composer.load("gpt2", overrides=TINY)
    recipe.check()
    for other in (pickle.loads(pickle.dumps(recipe)), copy.deepcopy(recipe)):
        assert other.text == recipe.text
        assert list(map(str, other.overrides)) == list(map(str, recipe.overrides))
        assert other.overridden("n_layers") and not other.overridden("vocab_of_another")
        assert other.check() == []
        assert str(other.summary()) == str(recipe.summary())
        ours, theirs = recipe.compile(seed=5).state_dict(), other.compile(seed=5).state_dict()
        assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize(
    ("overrides", "set_by_hand"),
    [
        (None, False),
        ({"n_layers": 2}, False),
        ({"vocab": 99}, True),
        (["vocab=99"], True),
        (["params.vocab=99"], True),
        (["vocab.default=99"], True),
        (["vocab.doc=how many"], False),
        (["vocab"], False),
    ],
)
def test_a_recipe_knows_which_params_were_set_from_outside(
    overrides: dict[str, int] | list[str] | None, set_by_hand: bool
) -> None:
    """However it was written, and whatever else of the param."""
    recipe = composer.load("gpt2", overrides=overrides)
    assert recipe.overridden("vocab") is set_by_hand
    assert recipe.with_overrides({"vocab": 5}).overridden("vocab")


class Halve(Block, kind="halve"):
    """Half of the input."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / 2


def test_a_block_class_is_handed_over_as_it_is() -> None:
    """It computes what its forward says."""
    text = 'recipe: halved\ninputs: {x: "float[batch, time, 8]"}\ngraph: {half: halve}\n'
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(composer.load(text, blocks=[Halve]).compile()(x)[0], x / 2, rtol=0, atol=0)


def test_a_model_is_called_by_order_or_name_and_returns_a_named_tuple() -> None:
    """One field per output in the recipe's order, and the recipe's own losses, of which there are none."""
    recipe = composer.load("gpt2", overrides=TINY)
    model = recipe.compile(seed=0).eval()
    ids = torch.arange(10).view(2, 5)
    output = model(ids)
    assert output._fields == ("logits", "losses")
    assert output.logits.shape == (2, 5, 61)
    assert isinstance(output.losses, Mapping) and not output.losses
    assert torch.equal(model(tokens=ids).logits, output.logits)
    assert isinstance(model, composer.Model) and isinstance(model, torch.nn.Module)
    assert model.recipe is recipe
    assert f"class {type(model).__name__}(Tied):" in model.source
    assert model.roles.keys() == model.state_dict().keys()
    assert (model.roles["embed.weight"], model.roles["norm.weight"]) == ("embedding", "gain")
    total, by_name = composer.loss(model, {"tokens": ids})
    assert list(by_name) == ["causal_lm"] and torch.equal(total, by_name["causal_lm"])


def test_models_of_a_seed_are_equal_and_leave_torchs_generator_alone() -> None:
    """Dtype and device are the caller's."""
    recipe = composer.load("gpt2", overrides=TINY)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, two = (recipe.compile(seed=7, dtype=torch.float64) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) and a.dtype == torch.float64 for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert {parameter.device.type for parameter in recipe.compile(device="meta").parameters()} == {"meta"}


def test_results_are_their_text_in_notebooks() -> None:
    """IPython asks for `_repr_pretty_`; what it prints is what `print` prints, and what is large has a short name."""

    class Printer:
        shown = ""

        def text(self, text: str) -> None:
            self.shown += text

    recipe = composer.load("gpt_mini", TINY)
    other = composer.load("gpt_mini", {**TINY, "n_layers": 3})
    for result in (recipe.summary(), recipe.diff(other)):
        printer = Printer()
        result._repr_pretty_(printer, False)
        assert printer.shown == str(result) and "\n" in printer.shown
    assert repr(composer.load("gpt_mini", {"n_layers": 2})) == "Recipe('gpt_mini.yaml', ['n_layers=2'])"
    assert repr(recipe.program) == "TypedProgram('gpt_mini')"
