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
OTHER_NAME = re.compile(r"^(?!(?:[Aa]n?|[Tt]he) )(?:.* )?[^\W\d_]+-?[A-Z\d]")
"""What has a word with another capital or a digit, such as `mBART`, `GPT-2`, `wav2vec 2.0` or `Multilingual T5`, and no article."""
BF16_BYTES = 2
"""Bytes of a number."""


def titles(model: RolledProgram, title: str = "") -> Titles:
    """Return the head of a drawing."""
    typed = model.program
    recipe = typed.untyped.recipe
    inputs = {one.name: input_title(one.name, one.type.dtype) for one in typed.untyped.inputs}
    outputs = {name: spoken(name) for name, _ in typed.root.graph.outputs}
    return Titles(printable(title or name(recipe.name, recipe.doc)), facts(model), inputs, outputs, described(typed))


def name(recipe: str, doc: str) -> str:
    """Return what a model is called: what its `doc` calls it before the first comma, if that is a name, as of a product or like
    that of the recipe; else the recipe's, with the capitals of the field.

    >>> name("gpt2", "GPT-2 small, decoder-only."), name("dense_block", "A dense block, in which each layer reads all.")
    ('GPT-2 small', 'Dense block')
    """
    first = re.split(r"[,:;]|\.$", doc, maxsplit=1)[0].strip()
    short_form = re.split(r" (?:as|for|in|of|with) ", first, maxsplit=1)[0]
    if len(first.split()) <= MAX_NAME_WORDS and (resembles(first, recipe) or OTHER_NAME.search(first)):
        return first
    return short_form if len(short_form.split()) <= MAX_NAME_WORDS and resembles(short_form, recipe) else spoken(recipe)


def resembles(words: str, recipe: str) -> bool:
    """Return whether words are those of the name of a recipe, or begin with these or the name with them."""
    plain, own = re.sub(r"[\W_]", "", words).lower(), re.sub(r"[\W_]", "", recipe).lower()
    return words[:1].isupper() and len(plain) > 2 and (plain.startswith(own.rstrip("0123456789")) or own.startswith(plain))


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
