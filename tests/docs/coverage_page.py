"""Writes docs/coverage.md as it is now: `python -m tests.docs.coverage_page`."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import transformers
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import composer
from composer.diagnostics import RecipeError
from composer.published.folder import CONFIG
from composer.published.importing import imported, recipe_of_type
from composer.weights import mapping
from composer.weights.model_names import names_of

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
WIDTH = 125
HEAD = """# Coverage

Does Composer read your checkpoint? Its `config.json` names a `model_type`, and for each task this page goes through the types
that transformers {version} has a class for:

- **Read**: `arco import` turns the default configuration of the type, as transformers writes it, into a recipe that extends the
  one in the table. **parameters** is what Composer then counts; **in transformers** tells whether the model that transformers
  builds from the same configuration has as many, and else which tensors make the difference. A shared one counts once.
- **Read with other settings only**: a recipe reads the type, but refuses its default configuration, with these words.
- **Read for another task only**: a recipe reads the type, but as a model with another head.
- **Not read**: no recipe reads the type.

Only default configurations were tried, and of these only parameters are compared. Another configuration of a type that is read
may set what its recipe does not have, and is then refused with the keys that do not fit. What a model computes and its weights
are tested for the types in the [zoo](zoo.md).

This page is generated: `python -m tests.docs.coverage_page`.
"""


@dataclass(frozen=True)
class Task:
    """A task of transformers."""

    heading: str
    mapping: str
    """The table of its classes by model type."""
    auto: str
    """The class that builds one of them from a configuration."""
    ours: frozenset[str]
    """Tasks of recipes with the same head."""


RESTORING = frozenset({"seq2seq_lm", "denoising"})
TASKS = (
    Task("Causal language models", "CAUSAL_LM", "AutoModelForCausalLM", frozenset({"causal_lm"})),
    Task("Sequence-to-sequence models", "SEQ_TO_SEQ_CAUSAL_LM", "AutoModelForSeq2SeqLM", RESTORING),
    # BART, which restores a text by writing it, is the same class here as above.
    Task("Masked language models", "MASKED_LM", "AutoModelForMaskedLM", RESTORING | {"masked_lm"}),
    Task("Speech to text", "SPEECH_SEQ_2_SEQ", "AutoModelForSpeechSeq2Seq", frozenset({"speech_to_text"})),
    Task("Image classification", "IMAGE_CLASSIFICATION", "AutoModelForImageClassification", frozenset({"image_classification"})),
    Task("Images to text", "IMAGE_TEXT_TO_TEXT", "AutoModelForImageTextToText", frozenset({"image_to_text"})),
    Task(
        "Images and texts compared", "ZERO_SHOT_IMAGE_CLASSIFICATION", "AutoModelForZeroShotImageClassification",
        frozenset({"contrastive"}),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Read:
    """A type whose default configuration a recipe reads."""

    recipe: str
    parameters: int
    theirs: int
    """The parameters of transformers' model."""
    apart: tuple[str, ...]
    """What makes the difference between the two numbers."""


def classes(task: Task) -> Mapping[str, str]:
    """Return the class that transformers has for each model type; of several, the first."""
    found: Mapping[str, str | tuple[str, ...]] = getattr(modeling_auto, f"MODEL_FOR_{task.mapping}_MAPPING_NAMES")
    return {kind: name if isinstance(name, str) else name[0] for kind, name in sorted(found.items())}


def tried(task: Task, kind: str, recipe: str) -> Read | str:
    """Return what becomes of the default configuration of a type, or why it is refused."""
    config = CONFIG_MAPPING[kind]()
    config.architectures = [classes(task)[kind]]
    with TemporaryDirectory() as folder:
        path = Path(folder) / CONFIG
        config.save_pretrained(folder)
        try:
            ours = imported(path).recipe
        except RecipeError as error:
            return "; ".join(each.message.replace(f"{path}", CONFIG) for each in error.diagnostics)
        with torch.device("meta"):
            theirs = getattr(transformers, task.auto).from_config(config)
        counted = ours.summary().costs.parameters
        apart = differences(ours, kind, theirs) if theirs.num_parameters() != counted else ()
        return Read(recipe, counted, theirs.num_parameters(), apart)


def differences(ours: composer.Recipe, kind: str, theirs: PreTrainedModel) -> tuple[str, ...]:
    """Return which tensors are parameters of only one of two models, by their published names."""
    assert ours.checkpoints is not None
    made = mapping(ours.checkpoints, kind, names_of(ours.program).owned, ours.program.untyped.params)
    parameters = _as_saved(theirs, theirs.named_parameters())
    match = made.match(parameters)
    alone = {name: parameters[match.found[name]] for name in (*match.strange, *match.passed_over)}
    numbers = sum(tensor.numel() for tensor in alone.values()) - sum(math.prod(made.published[name]) for name in match.missing)
    assert numbers == theirs.num_parameters() - ours.summary().costs.parameters, "the names account for the difference"
    buffers = made.match(_as_saved(theirs, theirs.named_buffers())).found
    shared = made.match(_as_saved(theirs, theirs.named_parameters(remove_duplicate=False))).found
    found: dict[str, list[str]] = {}
    for name in match.missing:
        why = "a buffer there" if name in buffers else "shared there" if name in shared else "not there"
        found.setdefault(why, []).append(name)
    for name, tensor in alone.items():
        found.setdefault("not in the recipe" if tensor.requires_grad else "fixed there, computed by the recipe", []).append(name)
    return tuple(f"{', '.join(f'`{name}`' for name in sorted(names))} ({why})" for why, names in found.items())


def _as_saved(model: PreTrainedModel, tensors: Iterable[tuple[str, torch.Tensor]]) -> Mapping[str, torch.Tensor]:
    """Return tensors by their names in published files, which for DeiT are not those in the model."""
    saved: Mapping[str, torch.Tensor] = revert_weight_conversion(model, dict(tensors))
    return saved


def page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD.format(version=transformers.__version__), *map(section, TASKS)])


def version() -> str:
    """Return the version of transformers that the page names."""
    found = re.search(r"transformers (\d[\w.]*\w)", PAGE.read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def section(task: Task) -> str:
    """Return what the page says of a task."""
    kinds = classes(task)
    recipes = {kind: name for kind in kinds if (name := recipe_of_type(kind)) is not None}
    ours = {kind: name for kind, name in recipes.items() if composer.load(name).task in task.ours}
    found = {kind: tried(task, kind, name) for kind, name in ours.items()}
    read = {kind: result for kind, result in found.items() if isinstance(result, Read)}
    refused = {kind: (ours[kind], result) for kind, result in found.items() if isinstance(result, str)}
    elsewhere = [kind for kind in recipes if kind not in ours]
    left = [kind for kind in kinds if kind not in recipes]
    parts = [f"## {task.heading}", f"Read: {len(read)} of {len(kinds)} types."]
    parts += filter(None, [_table(read), _refusals(refused)])
    parts += _list("Read for another task only", elsewhere)
    parts += _list("Not read", left)
    return "\n\n".join(parts) + "\n"


def _table(read: Mapping[str, Read]) -> str:
    head = ["| type | recipe | parameters | in transformers |", "|---|---|---|---|"]
    rows = [f"| `{kind}` | {_link(each.recipe)} | {each.parameters:,} | {_compared(each)} |" for kind, each in read.items()]
    return "\n".join([*head, *rows]) if rows else ""


def _compared(read: Read) -> str:
    if (more := read.theirs - read.parameters) == 0:
        return "as many"
    return f"{abs(more):,} {'more' if more > 0 else 'fewer'}: {'; '.join(read.apart)}"


def _refusals(refused: Mapping[str, tuple[str, str]]) -> str:
    head = ["Read with other settings only:", "", "| type | recipe | what the default configuration is told |", "|---|---|---|"]
    rows = [f"| `{kind}` | {_link(name)} | {words} |" for kind, (name, words) in refused.items()]
    return "\n".join([*head, *rows]) if rows else ""


def _link(recipe: str) -> str:
    return f"[{recipe}](gallery.md#{recipe})"


def _list(title: str, kinds: Iterable[str]) -> Iterator[str]:
    if names := ", ".join(f"`{kind}`" for kind in kinds):
        yield textwrap.fill(f"{title}: {names}.", WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
