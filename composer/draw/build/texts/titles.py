"""What a drawing says about the whole model, and how it calls inputs and outputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from blocks.core import grouped, spoken
from composer.cost.active import active_parameters
from composer.cost.cached import CacheCounter, CachedNumbers, cached_words
from composer.cost.lengths import lengths_of
from composer.cost.units import short
from composer.draw.build.parallel_passes import is_parallel
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.build.repeats import LAYERS, SERIES, pass_name
from composer.draw.build.single_passes import drawn_apart
from composer.draw.build.texts.descriptions import described
from composer.draw.build.walks import by_place, outside_repeats, vocabulary_inputs
from composer.draw.diagram import Titles
from composer.draw.paths import above, lies_in, plain
from composer.draw.wording import called, printable, shape
from composer.graph.anatomy import Region
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.task_signature import growing
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat
from composer.graph.visit import Visit, every_node, walk
from composer.language.wording import counted

MAX_NAME_WORDS, MAX_LISTED_WORDS = 3, 6
"""Words of a name, and of one with commas."""
OTHER_NAME = re.compile(r"^(?!(?:[Aa]n?|[Tt]he) )(?:.* )?[^\W\d_]+-?[A-Z\d]")
"""What has a word with another capital or a digit, `mBART`, `GPT-2`, `wav2vec 2.0`, `Multilingual T5`, and no article."""
STACK_SHARE = 1 / 3
"""Of what a model computes with, how much stacks are whose layers its head counts: smaller ones tell no depth of it."""
BF16_BYTES = 2
"""Bytes of a number."""


def titles(model: RolledProgram, title: str = "") -> Titles:
    """Return the head of a drawing."""
    typed = model.program
    recipe = typed.untyped.recipe
    words = vocabulary_inputs(typed)
    inputs = {one.name: input_title(one.name, of_words=one.name in words) for one in typed.untyped.inputs}
    outputs = {name: spoken(name) for name, _ in typed.root.graph.outputs}
    types = {one.name: " · ".join(filter(None, (shape(typed.inputs[one.name]), one.type.dtype))) for one in typed.untyped.inputs}
    required = frozenset(one.name for one in typed.untyped.inputs if not (one.optional or one.default))
    head = printable(title or name(recipe.name, recipe.doc, recipe.paper))
    return Titles(head, facts(model), inputs, outputs, described(typed), types, required)


def name(recipe: str, doc: str, paper: str = "") -> str:
    """Return what a model is called: what its `doc` calls it before the first comma, if that is a name, as of a product or like
    that of the recipe, or before a later comma, if that of the recipe goes on so; else the recipe's, with the capitals of the
    field, or those that its `doc` or the title of its `paper` has.

    >>> name("gpt2", "GPT-2 small, decoder-only."), name("dense_block", "A dense block, in which each layer reads all.")
    ('GPT-2 small', 'Dense block')
    >>> name("show_attend_tell", "Show, Attend and Tell, an LSTM that looks at an image.")
    'Show, Attend and Tell'
    """
    first = re.split(r"[,:;]|\.$", doc, maxsplit=1)[0].strip()
    if len(in_letters(first)) < len(in_letters(recipe)):
        commas = [comma.start() for comma in re.finditer(",", doc)]
        for said in (doc[:end].strip() for end in commas[1:]):
            if len(said.split()) <= MAX_LISTED_WORDS and in_letters(said).startswith(in_letters(recipe)):
                return said
    short_form = re.split(r" (?:as|for|in|of|with) ", first, maxsplit=1)[0]
    if len(first.split()) <= MAX_NAME_WORDS and (resembles(first, recipe) or OTHER_NAME.search(first)):
        return first
    alike = len(short_form.split()) <= MAX_NAME_WORDS and resembles(short_form, recipe)
    return short_form if alike else called(recipe, (doc, paper))


def in_letters(words: str) -> str:
    """Return a name without what is written in several ways: spaces, signs, capitals, and the word before the last of a list."""
    return re.sub(r"[\W_]|\band\b", "", words.replace("_", " ").lower())


def resembles(words: str, recipe: str) -> bool:
    """Return whether words are those of the name of a recipe, or begin with these or the name with them."""
    plain, own = in_letters(words), in_letters(recipe)
    return words[:1].isupper() and len(plain) > 2 and (plain.startswith(own.rstrip("0123456789")) or own.startswith(plain))


def input_title(name: str, *, of_words: bool) -> str:
    """Return an input by the words of the field, if it consists of ids of a vocabulary; else as its author calls it."""
    words = {"tokens": "Token ids", "source": "Source tokens", "target": "Target tokens"}
    return words[name] if of_words and name in words else spoken(name)


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
    said += stacks(model, counts)
    for name in ("d_model", "context", "vocab"):
        if isinstance(value := params.get(name), int) and not isinstance(value, bool):
            said.append(f"{name} {grouped(value)}")
    kept = cached(typed)
    if words := cached_words(BF16_BYTES * kept.per_token, BF16_BYTES * kept.in_windows):
        said.append(f"KV cache {words} (bf16)")
    return tuple(said)


def stacks(model: RolledProgram, counts: ParameterCounts) -> list[str]:
    """Return how many layers a stack has, and what else passes are called: `12 layers`, `3 hops`, `3 stacks × 4 blocks`; of an
    encoder and its decoder `6 + 6 layers`, and of stages how often these use one block. What is repeated inside of a layer does
    not count, nor does a stack all of whose parameters are another stack's, nor one that is little of the model or of which each
    pass is a box; and one layer is no stack.
    """
    written = {plain(one.name) for one in model.written}
    walked = (visit for visit in walk(model.program.root, _outside_layers) if not visit.in_slot)
    apart = drawn_apart(model.program.root, lambda _: False)
    walked = (visit for visit in walked if apart.isdisjoint(above(plain(visit.path))))
    repeats = {visit.path: visit.node for visit in walked if isinstance(visit.node, TypedRepeat)}
    found = {path: node for path, node in repeats.items() if counts.owned.get(path) or not any(counts.partners.get(path, ()))}
    within: dict[str, list[TypedRepeat]] = {}
    for path, node in found.items():
        around = next((one for one in above(path)[:-1] if one in found), "")
        if not around:
            within[path] = []
        elif any(lies_in(one, plain(path)) for one in written):  # no few nodes that are equal by chance
            within[around].append(node)
    lengths: dict[str, dict[str, list[int]]] = {}
    said: dict[str, str] = {}
    large = large_stacks(model.program, {path: found[path] for path in within}, counts)
    for path, inner in within.items():
        outer, name = found[path], layer_name(found[path])
        if name not in large and not is_parallel(outer):
            continue
        each = [len(node.passes) for node in inner]
        if block := used_in_each(outer, inner):
            said[name] = f"{counted(len(outer.passes), name)} · {counted(*block)}"
        elif inner and len({*each}) == 1 and len(inner) == len(outer.passes) and name != "stage":
            said[name] = f"{counted(len(outer.passes), name)} × {counted(each[0], layer_name(inner[0]))}"
        elif is_parallel(found[path]):
            lengths.setdefault(f"parallel {name}", {})[plain(path)] = [len(outer.passes)]
        elif inner:
            lengths.setdefault(layer_name(inner[0]), {})[plain(path)] = each
        else:
            lengths.setdefault(name, {})[plain(path)] = [len(outer.passes)]
    return [*filter(None, (in_stacks(name, many) for name, many in lengths.items())), *said.values()]


def large_stacks(program: TypedProgram, stacks: Mapping[str, TypedRepeat], counts: ParameterCounts) -> set[str]:
    """Return the names of the layers of stacks that are much of a model by the parameters that it computes with, those of passes
    that share them as often as they are used; stacks of one name count together.
    """
    again = {path: counts.owned.get(path, 0) * (len(one.passes) - 1) for path, one in stacks.items() if one.node.share}
    tables = (visit for visit in walk(program.root, _outside_layers) if isinstance(visit.node, TypedBlock))
    looked_up = counts.total(one.path for one in tables if isinstance(one.node, TypedBlock) and one.node.part.vocab_field)
    used: Counter[str] = Counter()
    for path, one in stacks.items():
        used[layer_name(one)] += counts.owned.get(path, 0) + again.get(path, 0)
    total = counts.owned.get("", 0) - looked_up + sum(again.values())
    return {name for name, number in used.items() if number >= STACK_SHARE * total}


def in_stacks(name: str, lengths: Mapping[str, Sequence[int]]) -> str:
    """Return how many layers of one name stacks have, given those of each of their stages by the paths of the stacks: of one
    stack without stages, or of an encoder and its decoder; nothing for others, as the numbers of a longer sum say little, and
    for one layer.

    >>> in_stacks("layer", {"encoder": [6], "decoder": [6]}), in_stacks("layer", {"stages": [3, 4, 6, 3]})
    ('6 + 6 layers', '')
    """
    many = [number for each in lengths.values() for number in each]
    told = len(many) == 1 or (len(many) == len(lengths) == 2 and are_encoder_and_decoder(*lengths))
    return f"{' + '.join(map(str, many))} {counted(sum(many), name).partition(' ')[2]}" if told and sum(many) > 1 else ""


def are_encoder_and_decoder(first: str, second: str) -> bool:
    """Return whether two stacks are an encoder and its decoder by their names, or by that of the encoder and none of the other.

    >>> are_encoder_and_decoder("encoder.layers", "layers"), are_encoder_and_decoder("encoder.convs", "postnet.convs")
    (True, False)
    """
    other = second.split(".")
    return "encoder" in first.split(".") and "encoder" not in other and ("decoder" in other or bool(LAYERS.fullmatch(second)))


def layer_name(node: TypedRepeat) -> str:
    """Return the word for a pass of a stack: a layer, if its author has no other, as for the one node in it whose name is that of
    the stack without the `s` of many.
    """
    named = node.node.index not in ("", "layer") or node.name in SERIES or LAYERS.fullmatch(node.name)
    only = {graph.nodes[0].name for graph in node.passes if len(graph.nodes) == 1}
    if not named and only == {node.name.removesuffix("s")} and all(len(graph.nodes) == 1 for graph in node.passes):
        return node.name.removesuffix("s").replace("_", " ")
    return pass_name(node).replace("_", " ") if named else "layer"


def used_in_each(stage: TypedRepeat, inner: Sequence[TypedRepeat]) -> tuple[int, str] | None:
    """Return how often stages use the one block of a recipe that is repeated in them and stands there alone too."""
    repeated = {name for node in inner for graph in node.passes for name in defined_blocks(all_in(graph))}
    alone = {*defined_blocks(node for graph in stage.passes for node in graph.nodes)}
    if len(repeated) != 1 or not repeated <= alone:
        return None
    (name,) = repeated
    return sum([*defined_blocks(all_in(graph))].count(name) for graph in stage.passes), spoken(name).lower()


def all_in(graph: TypedGraph) -> Iterator[TypedNode]:
    """Yield every node in a graph, of repeats in every pass."""
    return (visit.node for visit in walk(graph, by_place, every_node))


def defined_blocks(nodes: Iterable[TypedNode]) -> Iterator[str]:
    """Yield the name of the block at each node that is one of those that the recipe defines."""
    for node in nodes:
        part = node.node.part if isinstance(node, TypedGroup) else None
        if part is not None and not part.dissolved:
            yield part.kind


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
