"""Writes docs/zoo.md as it is now: `python -m tests.docs.zoo_page`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

import composer
from composer.cost.cached import cached_words
from composer.cost.units import short
from composer.recipe import zoo_names
from tests.parity import (
    decoders,
    families,
    readings,
    readings_of_depth,
    readings_of_diffusion,
    readings_of_memories,
    readings_of_mixtures,
    readings_of_tables,
    reference,
)
from tests.train.every_recipe import DATA, command, recipe_of

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
HEAD = """# Zoo

The recipes that come with the package, at their published sizes. `arco summary NAME` tells more of each, `arco show NAME` prints
its text, and the [gallery](gallery.md) has its picture. [Coverage](coverage.md) lists the model types of transformers that are
read by them.

- **active**: the parameters that one token meets, where experts are chosen for it.
- **per token**: what each token of a text leaves in the cache while a model writes, in bfloat16, and what layers with a window
  keep at most, however long the text. Models without a number keep a state of one size, or write nothing.
- **agrees with**: what the tests hold the recipe against, at tiny sizes, in float32, with and without padding and a cache. Of a
  model type of transformers: its logits, gradients, parameters by number and name, `config.json` and weights, both ways. Of a
  paper or a lecture: a reading of it in plain operations. `make test` runs them.

This page is generated: `python -m tests.docs.zoo_page`.
"""
SMALL = """## Trained small

Each of these commands trains a recipe at toy sizes in seconds, on any text, pairs of texts of fewer than 64 characters, or
images of one's own: `make train-all` runs them all, on data that it makes up, and the remaining recipes with a batch of
random numbers, and asks of each that its loss falls.
"""
TASKS: Mapping[str, str] = {
    "causal_lm": "Language models",
    "masked_lm": "Encoders of texts",
    "encoder": "Encoders of sentences, images and speech",
    "denoising": "From text to text, trained to restore it",
    "seq2seq_lm": "From text to text",
    "speech_to_text": "From speech to text",
    "image_to_text": "From images to text",
    "image_classification": "Of images",
    "contrastive": "Of images and texts",
    "": "Without a task: for diffusion, and of tables",
}
YEAR = re.compile(r"\b(19|20)\d\d\b")
READINGS = (readings, readings_of_depth, readings_of_diffusion, readings_of_memories, readings_of_mixtures, readings_of_tables)
BY_OTHER_TESTS: Mapping[str, str] = {
    "captioner": "`vision-encoder-decoder`",
    "minilm": "`bert`, and a reading of its pooling",
    "qwen2_vl_text": "`qwen2_vl_text`, whose head is beside it",
    "spanbert": "`bert`, and a reading of its second head",
    "gpt_mini": "its parts, each by itself",
    "lstm_lm": "its parts, each by itself",
}
"""Recipes that neither a table of families nor a reading has."""


def agrees_with(name: str) -> str:
    """Return what a recipe is held against."""
    if name in decoders.FAMILIES:
        return f"`{decoders.FAMILIES[name].config.model_type}`"
    if name in families.FAMILIES:
        return f"`{families.FAMILIES[name].config.model_type}`"
    if name in reference.REFERENCE:
        with torch.device("meta"):
            return f"`{reference.REFERENCE[name]({}).config.model_type}`"
    if any(hasattr(each, name) for each in READINGS):
        return "a reading of its source"
    return BY_OTHER_TESTS[name]


def page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *tables(), small()])


def small() -> str:
    """Return the commands that train recipes small."""
    lines = [shlex.join(["arco", *command(name)]) for name in zoo_names() if (recipe_of(name).task or "") in DATA]
    return "\n".join([SMALL, "```text", *lines, "```", ""])


def tables() -> Iterator[str]:
    """Yield a heading and a table for each task."""
    found: dict[str, list[str]] = {}
    for name in zoo_names():
        recipe = composer.load(name)
        found.setdefault(recipe.program.untyped.recipe.task or "", []).append(_row(name, recipe))
    for task, heading in TASKS.items():
        head = "| recipe | from | parameters | active | per token | agrees with |\n|---|---|---|---|---|---|"
        yield "\n".join([f"## {heading}", "", head, *found.pop(task), ""])
    assert not found, "every task has a heading"


def _row(name: str, recipe: composer.Recipe) -> str:
    costs = recipe.summary().costs
    active = short(costs.active) if costs.active != costs.parameters else ""
    kept = cached_words(costs.cache_per_token("bf16"), costs.cache_in_windows("bf16")).replace(" per token", "")
    paper = recipe.program.untyped.recipe.paper
    source = paper[: year.end()] if (year := YEAR.search(paper)) else paper
    return f"| [{name}](gallery.md#{name}) | {source} | {costs.parameters:,} | {active} | {kept} | {agrees_with(name)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
