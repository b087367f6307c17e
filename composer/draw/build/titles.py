"""What a drawing says about the whole model, and how it calls inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blocks.core import grouped, spoken
from composer.cost.active import active_parameters
from composer.cost.cached import CacheCounter, CachedNumbers, cached_words
from composer.cost.lengths import lengths_of
from composer.cost.units import short
from composer.draw.build.descriptions import described
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.build.repeats import LAYERS
from composer.draw.build.walks import by_place, outside_repeats
from composer.draw.diagram import Titles
from composer.draw.wording import printable
from composer.graph.anatomy import Region
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.task_signature import growing
from composer.graph.typed import TypedGraph, TypedProgram, TypedRepeat
from composer.graph.visit import Visit, walk

MAX_NAME_WORDS = 3
"""Words of a name."""
NAME = re.compile(r"[^\W\d_]+[A-Z\d]")
"""How a name begins that does not begin with a capital, such as `mBART` or `wav2vec 2.0`."""
ABBREVIATIONS = {
    "cnn": "CNN", "gpt": "GPT", "gru": "GRU", "lm": "LM", "lstm": "LSTM", "mlp": "MLP", "moe": "MoE", "rnn": "RNN", "vl": "VL",
    "xl": "XL",
}  # fmt: skip
"""Words of the names of recipes that are not written as others are."""
BF16_BYTES = 2
"""Bytes of a number."""


def titles(model: RolledProgram, title: str = "") -> Titles:
    """Return the head of a drawing."""
    typed = model.program
    recipe = typed.untyped.recipe
    first = recipe.doc.split(",")[0].strip()
    is_name = (first[:1].isupper() or NAME.match(first)) and len(first.split()) <= MAX_NAME_WORDS
    named = first if is_name else recipe_title(recipe.name)
    inputs = {one.name: input_title(one.name, one.type.dtype) for one in typed.untyped.inputs}
    outputs = {name: spoken(name) for name, _ in typed.root.graph.outputs}
    return Titles(printable(title or named), facts(model), inputs, outputs, described(typed))


def recipe_title(name: str) -> str:
    """Return the name of a recipe as a title.

    >>> recipe_title("rnn_lm"), recipe_title("show_attend_tell")
    ('RNN LM', 'Show attend tell')
    """
    return " ".join(ABBREVIATIONS.get(word.lower(), word) for word in spoken(name).split(" "))


def input_title(name: str, dtype: str) -> str:
    """Return an input by the words of the field."""
    words = {"tokens": "Token ids", "source": "Source tokens", "target": "Target tokens"}
    return words[name] if dtype == "int" and name in words else spoken(name)


def facts(model: RolledProgram) -> tuple[str, ...]:
    """Return the parameters, layers and widths, and what a token leaves behind."""
    typed = model.program
    params = typed.untyped.params
    counts = ParameterCounts(model.parameters)
    total = counts.owned.get("", 0)
    said = [f"{short(total)} parameters"] if total else []
    if frozen := counts.frozen.get("", 0):
        said.append(f"{short(total - frozen)} trained")
    if (active := active_parameters(typed)) < total:
        said.append(f"{short(active)} active")
    if layers := passes(typed.root):
        said.append(f"{' + '.join(map(str, layers))} layer{'s' * (layers != [1])}")
    for name in ("d_model", "context", "vocab"):
        if isinstance(value := params.get(name), int) and not isinstance(value, bool):
            said.append(f"{name} {grouped(value)}")
    kept = cached(typed)
    if words := cached_words(BF16_BYTES * kept.per_token, BF16_BYTES * kept.in_windows):
        said.append(f"KV cache {words} (bf16)")
    return tuple(said)


def passes(graph: TypedGraph) -> list[int]:
    """Return how many layers each stack has: those in each stage, where there are stages; what is repeated inside of a layer does
    not count.
    """
    repeats = [visit for visit in walk(graph, _outside_layers) if isinstance(visit.node, TypedRepeat) and not visit.in_slot]
    stages = {".".join(steps[:end]) for visit in repeats for steps in [visit.path.split(".")] for end in range(1, len(steps))}
    return [len(visit.node.passes) for visit in repeats if visit.path not in stages and isinstance(visit.node, TypedRepeat)]


def _outside_layers(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the graphs inside of what is no stack of layers: every pass of stages."""
    if not isinstance(visit.node, TypedRepeat):
        yield from outside_repeats(visit)
    elif not LAYERS.fullmatch(visit.node.name):
        yield from by_place(visit)


def cached(typed: TypedProgram) -> CachedNumbers:
    """Return how many numbers are cached while a text is written."""
    axis = growing(typed.untyped.recipe.task, typed.inputs)
    return CachedNumbers() if axis is None else CacheCounter(axis, lengths_of(typed, {})).graph(typed.root)
