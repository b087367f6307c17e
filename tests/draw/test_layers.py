"""Layers that a recipe writes one by one are drawn as the repeat that they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import composer
from composer.diff.figure import comparison
from composer.draw.build.levels import Level
from composer.draw.export.node_facts import facts
from composer.draw.scene import Box, Frame, Scene
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.passes.roll_layers.roll_layers import as_written, folded
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram, TypedRepeat
from tests.conformance.generator import generated
from tests.diff.rewritings import Unfit, unrolled
from tests.draw.browser import data_of
from tests.zoo import REPRESENTATIVES

SIZES = "{vocab: 61, d_model: 32}"
HEAD = f"""recipe: decoder
task: causal_lm
params: {SIZES}
inputs: {{tokens: "int[batch, time]"}}
graph:
  embed: {{type: embedding, vocab: vocab, dim: d_model}}
"""
FOOT = """  norm: layernorm
  head: {type: linear, out: vocab}
outputs: {logits: head}
"""
SEEDS = 900
"""Generated recipes that are looked through for repeats of equal passes."""
NODES = """norm{a}: {{type: layernorm, in: {x}}}
attn{n}: {{type: attention, heads: 4, mask: causal}}
add{a}: {{type: add, in: [{x}, attn{n}]}}
norm{b}: layernorm
ffn{n}: {{type: ffn, hidden: 48}}
add{b}: {{type: add, in: [add{a}, ffn{n}]}}
"""


def of_nodes(count: int, change: Callable[[int, str], str] = lambda number, text: text) -> str:
    """Return a decoder whose layers are written node by node, each of them changed."""
    layers = ""
    for number in range(1, count + 1):
        x = f"add{2 * number - 2}" if number > 1 else "embed"
        text = change(number, NODES).format(a=2 * number - 1, b=2 * number, n=number, x=x)
        layers += "".join(f"  {line}\n" for line in text.splitlines())
    return HEAD + layers + FOOT


def of_groups(count: int, layer: Callable[[int], str]) -> str:
    """Return a decoder with a group for each layer."""
    return HEAD + "".join(f"  layer{number}: {layer(number)}\n" for number in range(1, count + 1)) + FOOT


def layer(mask: str = "causal", more: str = "") -> str:
    """Return a group of a decoder."""
    attn = f"attn: {{type: residual, norm: layernorm, body: {{type: attention, heads: 4, mask: {mask}}}}}"
    return f"{{graph: {{{attn}, ffn: {{type: residual, norm: layernorm, body: {{type: ffn, hidden: 48}}}}}}{more}}}"


def repeated(count: int) -> str:
    """Return the decoder with its layers in a repeat."""
    lines = NODES.format(a="_a", b="_b", n="", x="input").splitlines()
    graph = "".join(f"      {line}\n" for line in lines)
    return f"{HEAD}  layers:\n    repeat: {count}\n    graph:\n{graph}{FOOT}"


def picture(scene: Scene) -> tuple[object, ...]:
    """Return all that is seen, whatever things are called by their paths."""
    boxes = [(b.x, b.y, b.width, b.height, b.hue, b.texts, b.icons, b.dashed, b.double) for b in scene.boxes]
    frames = [(f.x, f.y, f.width, f.height, f.texts, f.pill, f.strip) for f in scene.frames]
    wires = [(w.points, w.style, w.arrow, w.partial) for w in scene.wires]
    merges = [(m.x, m.y, m.sign) for m in scene.merges]
    return scene.texts, boxes, frames, wires, merges, [reference.text for reference in scene.references], scene.dots


def drawn(text: str, level: Level = "block") -> Scene:
    """Return the drawing of a recipe."""
    return composer.load(text).draw(level).scene


@pytest.mark.parametrize("level", ["overview", "block", "full"])
def test_layers_written_as_nodes_are_drawn_as_their_repeat(level: Level) -> None:
    """Frame, pill, parameters, names of what a layer is: the same picture."""
    assert picture(drawn(of_nodes(5), level)) == picture(drawn(repeated(5), level))


@cache
def plain_repeats() -> tuple[tuple[str, composer.Recipe, composer.Recipe], ...]:
    """Return the recipes of the zoo and generated ones whose passes are all alike, with the same written pass by pass."""
    return tuple(_plain_repeats())


def _plain_repeats() -> Iterator[tuple[str, composer.Recipe, composer.Recipe]]:
    for name, source in [*((name, name) for name in REPRESENTATIVES), *((f"generated {n}", generated(n)) for n in range(SEEDS))]:
        recipe = composer.load(source)
        try:
            written = unrolled(recipe)
        except Unfit:
            continue
        expanded = composer.load(recipe.expand())  # which writes residuals as the groups that they are
        if alike(expanded.program):
            yield name, expanded, composer.load(written)


def alike(typed: TypedProgram) -> bool:
    """Return whether every repeat at the top has equal passes, worth a frame, of which only the last is read."""
    repeats = [node for node in typed.root.nodes if isinstance(node, TypedRepeat)]
    read = [ref for node in typed.root.nodes for wire in wires_of(node.node) for ref in wire.refs if ref.node != node.name]
    read += [ref for _, ref in typed.root.graph.outputs]
    return all(
        len({id(one) for one in repeat.passes}) == 1 and (len(repeat.passes) - 1) * blocks(repeat.passes[0]) >= 4
        for repeat in repeats
    ) and all(ref.index is None or last(ref, typed.root) for ref in read)


def last(ref: Ref, graph: TypedGraph) -> bool:
    """Return whether a reference names the last pass."""
    node = graph[ref.node]
    return isinstance(node, TypedRepeat) and ref.index == len(node.passes) - 1


def blocks(graph: TypedGraph) -> int:
    """Return how many there are, repeats folded."""
    count = 0
    for node in graph.nodes:
        if isinstance(node, TypedBlock):
            count += 1
        else:
            count += blocks(node.passes[0] if isinstance(node, TypedRepeat) else node.graph)
    return count


@pytest.mark.exhaustive
@pytest.mark.parametrize("level", ["block", "full"])
def test_repeats_written_out_are_drawn_as_before(level: Level) -> None:
    """By the rewriting that holds the comparison of models to account."""
    assert len(plain_repeats()) >= 25
    for name, recipe, written in plain_repeats():
        assert picture(written.draw(level).scene) == picture(recipe.draw(level).scene), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hidden: 48", "hidden: 40"),
        ("mask: causal", "mask: causal and window(4)"),
        ("heads: 4", "heads: 2"),
        ("ffn{n}: {{type: ffn", "ffn{n}: {{type: gated_ffn"),
        ("norm{b}: layernorm", "norm{b}: rmsnorm"),
        ("in: [add{a}, ffn{n}]", "in: [embed, ffn{n}]"),
        ("attn{n}]", "attn{n}, norm{a}]"),
    ],
)
def test_a_difference_in_one_layer_is_seen(old: str, new: str) -> None:
    """Each layer that may be the odd one gives a picture of its own, and so does none."""
    assert old in NODES

    def odd(at: int) -> str:
        return of_nodes(7, lambda number, text: text.replace(old, new) if number == at else text)

    pictures = [repr(picture(drawn(odd(at)))) for at in range(8)]
    assert len(set(pictures)) == len(pictures)


def frames(text: str) -> list[tuple[str, Frame]]:
    """Return what the pills of a drawing say."""
    return [(frame.pill.text, frame) for frame in drawn(text).frames if frame.pill]


def test_layers_of_a_few_kinds_are_one_frame_with_a_map() -> None:
    """Rows in the block that differs, a cell for each layer."""
    scene = drawn(of_groups(8, lambda number: layer("causal" if number % 4 == 0 else "causal and window(4)")))
    (frame,) = scene.frames
    assert frame.pill is not None
    assert frame.pill.text == "× 8"
    assert frame.kinds == (0, 0, 0, 1, 0, 0, 0, 1)
    (attention,) = (box for box in scene.boxes if "attention" in box.texts[0].text)
    assert {"6 of 8: causal, window 4", "2 of 8: causal"} <= {text.text for text in attention.texts}


def test_a_layer_that_something_else_reads_ends_the_frame() -> None:
    """What a pass gives to others than the next is drawn as what it is."""
    text = of_nodes(8).replace("{logits: head}", "{logits: head, middle: add8}")  # of the fourth layer
    assert [pill for pill, _ in frames(text)] == ["× 4", "× 4"]
    assert [pill for pill, _ in frames(of_nodes(8))] == ["× 8"]


def test_too_little_is_not_folded() -> None:
    """Two layers of three blocks: a frame saves less than it costs."""
    body = "".join(f"  map{n}: {{type: linear, out: d_model}}\n  norm{n}: layernorm\n  bend{n}: relu\n" for n in (1, 2))
    assert not frames(HEAD + body + FOOT)
    assert [pill for pill, _ in frames(HEAD + body + body.replace("1:", "3:").replace("2:", "4:") + FOOT)] == ["× 4"]


def test_branches_of_one_kind_are_no_layers() -> None:
    """They read the same value, not each other."""
    maps = "".join(f"  map{n}: {{type: linear, out: d_model, in: embed}}\n" for n in range(1, 7))
    join = "  join: {type: add, in: [map1, map2, map3, map4, map5, map6]}\n"
    assert not frames(HEAD + maps + join + FOOT)
    longer = "".join(
        f"  map{n}: {{type: linear, out: d_model, in: embed}}\n  norm{n}: layernorm\n  bend{n}: relu\n" for n in range(1, 7)
    )
    assert not frames(HEAD + longer + join.replace("map", "bend") + FOOT)


def test_layers_with_the_weights_of_the_first_are_shared() -> None:
    """As the passes of a repeat with `share` are, whose picture it is."""
    tied = of_groups(4, lambda number: layer(more="" if number == 1 else ", tie: layer1"))
    shared = HEAD + f"  layer: {{repeat: 4, share: true, {layer()[1:]}\n" + FOOT
    assert picture(drawn(tied)) == picture(drawn(shared))


def test_a_tie_in_one_layer_is_seen() -> None:
    """Which of them has another's weights."""
    texts = [of_groups(6, lambda number, at=at: layer(more="" if number != at else ", tie: layer1")) for at in (4, 5)]  # type: ignore[misc]
    assert len({repr(picture(drawn(text))) for text in texts}) == 2


def test_ties_inside_of_each_layer_leave_the_layers_equal() -> None:
    """As in the passes of a repeat in which one map has the weights of another."""
    maps = "graph: {up: {type: linear, out: 8}, bend: gelu, down: {type: linear, out: 8, tie: up}, last: silu}"
    written = HEAD + "".join(f"  layer{number}: {{{maps}}}\n" for number in range(1, 5)) + FOOT
    assert picture(drawn(written)) == picture(drawn(HEAD + f"  layer: {{repeat: 4, {maps}}}\n" + FOOT))


def test_a_written_layer_is_found_by_its_name() -> None:
    """It opens, stays bright, and is called what it is where every layer is drawn."""
    recipe = composer.load(of_nodes(5))
    opened = recipe.draw(open=["attn3"])
    assert "layers.attn.q" in paths(opened.scene.boxes)
    bright = recipe.draw(highlight=["ffn2"]).svg().splitlines()
    assert not [line for line in bright if 'data-id="layers.ffn"' in line and 'opacity=".35"' in line]
    assert [line for line in bright if 'data-id="layers.attn"' in line and 'opacity=".35"' in line]
    assert {"attn1", "attn5"} <= paths(recipe.draw(unroll=True).scene.boxes)


def test_the_page_opens_what_is_folded() -> None:
    """Everything that it shows has facts, those of a written layer."""
    recipe = composer.load(of_nodes(5))
    assert "block+layers.attn" in data_of(recipe.draw().html())["views"]
    told = facts(folded(recipe.program))
    assert told["layers.attn"] == facts(as_written(recipe.program))["attn3"]
    assert {box.about.path for box in recipe.draw().scene.boxes} - set(told) == {"tokens", "outputs/logits"}


def test_a_comparison_marks_what_changed_in_a_written_layer() -> None:
    """In the frame of either model: the rows of the odd layer, and what it was."""
    old, new = "ffn4: {type: ffn, hidden: 48}", "ffn4: {type: ffn, hidden: 40}"
    before, after = composer.load(of_nodes(6)), composer.load(of_nodes(6).replace(old, new))
    scene = comparison.draw(before.diff(after)).scene
    assert {ring.path for ring in scene.rings} >= {"before:layers.ffn", "after:layers.ffn"}


def paths(boxes: tuple[Box, ...]) -> set[str]:
    return {box.about.path for box in boxes}


def test_names_lead_to_parameters() -> None:
    """Every parameter has a name in the folded graph, and no two the same one."""
    for text in (of_nodes(5), of_groups(6, lambda number: layer()), "mixtral"):
        recipe = composer.load(text)
        model = folded(recipe.program)
        names = [entry.name for entry in model.parameters]
        assert len(set(names)) == len(names)
        assert model.names.called(names[0]) == names[0]  # folding twice changes nothing


def test_what_alternatives_read_from_elsewhere_goes_by_its_name() -> None:
    """In frames inside of theirs too; a wire would lead to one of them alone."""
    text = Path("tests/draw/finds/second_output_into_alternatives.yaml").read_text(encoding="utf-8")
    cache = "cache: {type: new_axis, name: group, in: parts.b}"
    assert cache in text
    of_other_nodes = text.replace(cache, f"{cache}, more: {{compute: 2 * cache, when: layer == 1}}")
    found = composer.load(of_other_nodes).draw("full").scene
    read = [(one.text.text, one.target) for one in found.references]
    assert read == [("parts.b", "k.inner.cache")] * 2


def test_a_thousand_layers_take_no_time() -> None:
    """Less than a second of CPU for a chain; more than a frame is not there afterward."""
    text = "recipe: chain\ninputs: {x: 'float[batch, time, 8]'}\ngraph:\n"
    text += "".join(f"  n{n}: {{type: linear, out: 8}}\n" for n in range(1000)) + "outputs: {y: n999}\n"
    assert [node.name for node in folded(composer.load(text).program).program.root.nodes] == ["layers"]
