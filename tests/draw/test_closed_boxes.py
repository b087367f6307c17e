"""What boxes say of what is in them, what inputs are, and where parameters start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import composer
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.levels import Depth
from composer.draw.diagram import Leaf
from composer.draw.layout.frames import header_lines
from composer.draw.series import from_first_to_last
from composer.draw.style.line_breaks import LINE, with_ends
from composer.draw.style.typography import Typography
from composer.graph.passes.roll_layers.roll_layers import as_written
from tests.draw.read_back import DrawnBox, Model, Place, closed, lies, loose, read, whole
from tests.draw.read_names import misnamed_titles

UNIT = """recipe: unit
inputs: {image: "float[batch, 3, 40, 40]", flags: "bool[batch]"}
blocks:
  separable:
    doc: Depthwise, then over channels.
    params: {out: 8, stride: 1}
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      deep: {type: conv2d, out: channels, kernel_size: 5, stride: stride, padding: 2, groups: channels}
      norm: batchnorm2d
      act: relu
      point: {type: conv2d, out: out, kernel_size: 1}
  zero:
    doc: Silent at first.
    inputs: {x: "float[batch, channels, height, width]"}
    graph: {conv: {type: conv2d, out: channels, kernel_size: 1}}
    init: {"conv.*": {constant: 0}}
graph:
  stem: {type: separable, out: 16, stride: 2, in: image}
  quiet: zero
  gate: {type: parameter, shape: [], init: zeros}
  factor: {type: parameter, shape: []}
  open: {compute: "tanh(gate) * factor * quiet"}
  flat: {type: rearrange, pattern: "b c h w -> b (h w) c"}
  scale: {type: layer_scale, init: 1.0e-6}
  norm: layernorm
  door: {type: linear, out: 7}
outputs: {y: door, flags: flags}
init:
  "door.bias": {constant: -3}
  "norm.weight": {constant: 1}
"""
STACK = """recipe: stack
inputs: {{tokens: "int[batch, time]", source: "int[batch, source_time]"}}
graph:
  read: {{type: embedding, vocab: 11, dim: 64, in: source}}
  embed: {{type: embedding, vocab: 11, dim: 64, in: tokens}}
  layers:
    repeat: 4
    graph:
      attn: {{type: residual, norm: layernorm, body: {{type: attention, heads: 4, kv_heads: 2, mask: causal}}}}
{more}
outputs: {{y: layers, seen: read}}
"""
CROSS = "      cross: {type: residual, norm: layernorm, body: {type: attention, heads: 8, in: {memory: read}}}\n"
FFN = "      ffn: {type: residual, body: {type: ffn, hidden: 96, activation: gelu_tanh}}"


def lines(text: str, path: str, level: composer.draw.build.levels.Level = "block") -> list[str]:
    """Return what is in a box, which is so."""
    recipe = composer.load(text)
    picture = read(recipe.draw(level).svg())
    assert not [*lies(picture, Model(recipe.program))]
    return next(whole(box) for box in picture.boxes if box.path == path)


def test_box_of_a_block_says_kernels_strides_and_channels_and_no_doc() -> None:
    """The sentence stands in the recipe, and in a box that says nothing else."""
    assert lines(UNIT, "stem")[1].startswith("depthwise conv 5 × 5 (3 → 3), stride 2 · BN · ReLU · conv 1 × 1 (3 → 16)")
    assert lines(UNIT, "quiet")[1].removesuffix(" · 272") == "conv 1 × 1 (16 → 16), starts at 0"


def test_box_of_layers_says_heads_and_widths_and_shortens_the_longest_first() -> None:
    """Where several lines have no room; a decoder that also looks elsewhere says which attention is causal."""
    assert lines(STACK.format(more=FFN), "layers", "overview")[1].startswith("LN · GQA 4 Q, 2 KV · GELU (tanh) FFN 96")
    (said,) = [line for line in lines(STACK.format(more=CROSS + FFN), "layers", "overview") if "cross" in line]
    assert said == "LN · causal GQA 4 Q, 2 KV · LN · cross-attention 8 heads · GELU (tanh) FFN 96"


def test_layers_that_differ_in_a_number_have_rows() -> None:
    """With all that tells them apart."""
    wide = FFN.replace("96", "(48 if layer < 3 else 80)")
    said = lines(STACK.format(more=wide), "layers", "overview")
    assert "first 3: LN · GQA 4 Q, 2 KV · GELU (tanh) FFN 48" in said
    assert "last: LN · GQA 4 Q, 2 KV · GELU (tanh) FFN 80" in said


def test_mixture_says_how_many_experts_are_chosen_first() -> None:
    """Closed, inside of a closed repeat and in the router's box."""
    moe = "{type: moe, experts: 16, expert: {type: gated_ffn, hidden: 24}, router: {type: top_k_router, top_k: 3}"
    text = STACK.format(more=f"      moe: {{type: residual, body: {moe}, shared: {{type: gated_ffn, hidden: 48}}}}}}")
    assert "MoE top-3 of 16 + shared, hidden 24" in lines(text, "layers", "overview")[1]
    assert lines(text, "layers.moe.body.router")[1].startswith("64 → 16 · top-3 · softmax")


@pytest.mark.parametrize("level", ["overview", "block", "full"])
def test_inputs_say_what_they_are(level: composer.draw.build.levels.Level) -> None:
    """Their shape and dtype, at every level; nothing in a figure without shapes."""
    assert lines(UNIT, "image", level) == ["Image", "B × 3 × 40 × 40 · float"]
    assert lines(UNIT, "flags", level) == ["Flags", "B · bool"]
    bare = read(composer.load(UNIT).draw(level, shapes=False).svg())
    assert [box.lines for box in bare.boxes if box.path == "image"] == [["Image"]]


def test_parameters_that_start_at_an_unusual_number_say_so() -> None:
    """Zeros of a gate, of a convolution in a closed box and a bias; what is drawn, and a gain of 1, say nothing."""
    assert "starts at 0" in lines(UNIT, "gate")[1]
    assert lines(UNIT, "scale")[1] == "starts at 1e-06"
    assert lines(UNIT, "door")[1] == "16 → 7 + bias · bias starts at -3"
    assert "start" not in " ".join(lines(UNIT, "factor") + lines(UNIT, "norm"))


@pytest.mark.parametrize(
    ("there", "planted"),
    [
        ("conv 5 × 5 (3 → 3)", "conv 7 × 7 (3 → 3)"),
        ("conv 1 × 1 (3 → 16)", "conv 5 × 5 (3 → 16)"),
        ("bias starts at -3", "bias starts at 3"),
        ("(16 → 16), starts at 0", "(16 → 16), starts at 1"),
        ("B × 3 × 40 × 40 · float", "B × 3 × 40 × 20 · float"),
        ("B · bool", "B · int"),
    ],
)
def test_a_lie_about_what_is_inside_is_found(there: str, planted: str) -> None:
    """Numbers of two blocks as those of one, another start, another shape or dtype."""
    recipe = composer.load(UNIT)
    svg = recipe.draw().svg()
    assert f">{there}" in svg or there in svg
    assert [*lies(read(svg.replace(there, planted)), Model(recipe.program))]


def test_ends_of_a_series_say_once_what_they_share() -> None:
    """Only within words."""
    assert from_first_to_last("conv 3 × 3 (16 → 96)", "conv 3 × 3 (96 → 960)") == "conv 3 × 3 (16 → 96 … 96 → 960)"
    assert from_first_to_last("3 → 64", "256 → 512") == "3 → 64 … 256 → 512"


def test_one_stack_is_counted() -> None:
    """Of several, a sum would say little."""
    for several, said in ((1, "2 layers"), (2, "")):
        layers = "".join(
            f"  s{one}: {{repeat: 2, graph: {{f: {{type: residual, body: {{type: ffn, hidden: {8 + one}}}}}}}}}\n"
            for one in range(several)
        )
        text = f'recipe: r\ninputs: {{x: "float[batch, time, 8]"}}\ngraph:\n{layers}outputs: {{y: s{several - 1}}}\n'
        head = " ".join(text for *_, text in read(composer.load(text).draw("overview").svg()).texts)
        assert said in head
        assert ("layers" in head) == bool(said)


STAGES = """recipe: stages
inputs: {image: "float[batch, 3, 64, 64]"}
graph:
  stages:
    repeat: 4
    as: stage
    each: {depth: [3, 4, 6, 3], wide: 8 * 2 ** stage}
    graph:
      layers:
        repeat: depth
        each: {stride: 2 if layer == 0 else 1}
        graph:
          conv: {type: conv2d, out: wide, kernel_size: 3, padding: 1, stride: stride}
          relu: relu
outputs: {y: stages}
"""


def test_closed_repeat_in_passes_lists_its_counts_and_numbers_in_order() -> None:
    """In a closed box around it, and closed alone in an open frame; another order, a count alone and one left out are found."""
    recipe = composer.load(STAGES)
    whole = recipe.draw("overview").svg()
    assert "× 3, 4, 6, 3 Layer" in lines(STAGES, "stages", "overview")[1]
    opened = recipe.draw("overview", open=["stages"]).svg()
    (box,) = [one for one in read(opened).boxes if one.path == "stages.layers"]
    assert box.lines[0] == "× 3, 4, 6, 3 Layer"
    assert "4 of 16: conv 3 × 3 (3, 8, 16, 32 → 8, 16, 32, 64), stride 2 · ReLU" in box.lines
    assert "12 of 16: conv 3 × 3 (8, 16, 32, 64 → 8, 16, 32, 64) · ReLU" in box.lines
    model = Model(recipe.program)
    for svg in (whole, opened):
        assert not [*lies(read(svg), model)]
        for planted in ("× 3 Layer", "× 3, 4, 6 Layer", "× 3, 6, 4, 3 Layer"):
            assert [*lies(read(svg.replace("× 3, 4, 6, 3 Layer", planted)), model)], planted


EXPERTS = """recipe: experts
inputs: {x: "float[batch, 24]"}
graph:
  stem: {type: linear, out: 12}
  experts:
    repeat: 5
    as: expert
    graph:
      fc: {type: linear, out: 16, in: stem}
      relu: relu
  mean: {type: stack, axis: first, in: "experts(:)"}
outputs: {y: mean}
"""


def test_passes_that_do_not_read_each_other_are_parallel() -> None:
    """In the pill, in a closed box and in the head; what they share comes in from below, and what all of them give goes straight
    up, as it is said there.
    """
    recipe = composer.load(EXPERTS)
    figure, model = recipe.draw(), Model(recipe.program)
    (frame,) = figure.scene.frames
    assert frame.pill is not None
    assert frame.pill.text == "5 in parallel"
    assert "5 parallel experts" in " ".join(text for *_, text in read(figure.svg()).texts)
    assert lines(EXPERTS, "experts", "overview")[0] == "5 parallel experts"
    wires = read(figure.svg()).wires
    assert [wire.target for wire in wires if wire.source == "experts.relu"] == ["experts"]
    (up,) = (wire for wire in wires if wire.target == "mean")
    assert up.source == "experts"
    assert len({x for x, _ in up.corners}) == 1
    assert "all 5 experts" in [text for *_, text in read(figure.svg()).texts]
    assert "experts.fc" in [wire.target for wire in wires if wire.tip is not None and wire.source in ("stem", "experts")]
    for there, planted in (("5 in parallel", "× 5"), ("5 in parallel", "4 in parallel")):
        assert [*lies(read(figure.svg().replace(there, planted)), model)], planted
    layers = EXPERTS.replace(", in: stem}", "}")  # each reads the one before
    assert lines(layers, "experts", "overview")[0] == "× 5 Expert"


INCEPTION = """recipe: inception
inputs: {image: "float[batch, 3, 64, 64]"}
blocks:
  conv_relu:
    doc: A convolution and a ReLU.
    params: {out: {type: int, required: true}, kernel: 1}
    inputs: {x: "float[batch, channels, height, width]"}
    graph: {conv: {type: conv2d, out: out, kernel_size: kernel, padding: kernel // 2}, relu: relu}
  module:
    doc: Where ways of several sizes meet.
    params: {wide: 8}
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      one: {type: conv_relu, out: wide, in: x}
      before: {type: conv_relu, out: 4, in: x}
      three: {type: conv_relu, out: wide, kernel: 3}
      pool: {type: max_pool2d, kernel_size: 3, stride: 1, padding: 1, in: x}
      pooled: {type: conv_relu, out: wide}
      concat: {type: concat, axis: -3, in: [one, three, pooled]}
  residual_block:
    doc: Two and one.
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      a: {type: conv_relu, out: 6, kernel: 3, in: x}
      b: {type: conv2d, out: 6, kernel_size: 3, padding: 1}
      skip: {type: conv2d, out: 6, kernel_size: 1, in: x}
      sum: {type: add, in: [b, skip]}
graph:
  stem: {type: conv_relu, out: 16, kernel: 3}
  module3a: module
  module3b: {type: module, wide: 5}
  last: residual_block
outputs: {y: last}
"""


def test_closed_box_says_which_blocks_are_parallel_and_what_joins_them() -> None:
    """With what is before and behind in each branch; a branch that is left out is found, and a shortcut for no shortcut."""
    assert lines(INCEPTION, "module3a")[1] == "1 × 1 | 1 × 1 → 3 × 3 | pool → 1 × 1, concatenated · 8 | 4 → 8 | 8 channels"
    assert lines(INCEPTION, "last")[1] == "conv 3 × 3 (15 → 6) · ReLU · conv 3 × 3 (6 → 6) + shortcut 1 × 1 (15 → 6)"
    recipe = composer.load(INCEPTION)
    svg = recipe.draw().svg()
    plants = {"1 × 1 | 1 × 1 → 3 × 3": "1 × 1 → 3 × 3", "shortcut 1 × 1": "shortcut 1 × 7", ", concatenated": ", summed"}
    for there, planted in plants.items():
        assert there in svg
        assert [*lies(read(svg.replace(there, planted)), Model(recipe.program))], planted


def test_doc_that_only_repeats_what_a_box_says_is_left_out() -> None:
    """`A convolution and a ReLU` beside `Conv ReLU` and `conv 3 × 3`."""
    assert lines(INCEPTION, "stem")[1] == "conv 3 × 3 (3 → 16)"


def test_boxes_of_one_title_have_the_names_of_their_nodes() -> None:
    """Though these begin with the title, which begins with a name that says what for; a block that is alone has none."""
    boxes = read(composer.load(INCEPTION).draw().svg()).boxes
    named = {box.path: box.name for box in boxes if box.name and "." not in box.path}
    assert named == {"module3a": "module3a", "module3b": "module3b", "last": "last"}
    assert "Stem · Conv ReLU" in {line for box in boxes for line in box.lines}
    alone = composer.load(INCEPTION.replace("  module3b: {type: module, wide: 5}\n", ""))
    assert "module3a" not in {box.name for box in read(alone.draw().svg()).boxes}


TURNED = """recipe: turned
inputs: {x: "float[batch, rows, columns, 8]"}
blocks:
  gate:
    inputs: {x: "float[batch, rows, columns, width]"}
    graph: {norm: layernorm, to: {type: linear, out: width}, squash: sigmoid}
  turned:
    inputs: {x: "float[batch, rows, columns, width]"}
    graph:
      turn: {type: rearrange, pattern: b i j c -> b j i c, in: x}
      gate: gate
      back: {type: rearrange, pattern: b j i c -> b i j c}
graph:
  by_rows: {type: residual, body: gate}
  by_columns: {type: residual, body: END}
"""


def test_block_that_another_box_calls_by_its_name_has_that_of_its_node() -> None:
    """Though no other box has its title."""
    text = TURNED.replace("END", "turned")
    assert {box.name for box in read(composer.load(text).draw().svg()).boxes if box.name} == {"by_rows"}
    text = TURNED.replace("END", "{type: linear, out: width}").replace("out: width}}", "out: 8}}")
    assert not {box.name for box in read(composer.load(text).draw().svg()).boxes if box.name}


POOLED = """recipe: pooled
inputs: {x: "float[batch, 4, 32, 32]"}
graph:
  pool1: {type: max_pool2d, kernel_size: 3, stride: 2, padding: 1, in: x}
  conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
  OTHER: {type: max_pool2d, kernel_size: 3, stride: 2, padding: 1}
  flat: {type: rearrange, pattern: b c h w -> b (h w) c}
  NAME: {type: pool, mode: max}
"""


def test_pool_has_the_name_that_its_author_chose() -> None:
    """Where it tells more than its title and its facts, or by a number which of several pools it is."""

    def names(other: str, name: str) -> set[str]:
        figure = composer.load(POOLED.replace("OTHER", other).replace("NAME", name)).draw()
        return {box.name for box in read(figure.svg()).boxes if box.name and box.path != "flat"}

    assert names("pool2", "feature") == {"pool1", "pool2", "feature"}
    assert names("middle", "maximum") == {"pool1", "middle"}


SPECIAL = """recipe: special
inputs: {image: "float[batch, 8, 16, 16]", codes: "int[batch, 5]"}
blocks:
  unit:
    doc: Around two convolutions.
    params: {project: false}
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      relu1: relu
      conv1: {type: conv2d, out: channels, kernel_size: 3, padding: 1}
      relu2: relu
      conv2: {type: conv2d, out: channels, kernel_size: 1}
      shortcut: {type: conv2d, out: channels, kernel_size: 1, in: x, when: project}
      sum: {type: add, in: ["shortcut if project else x", conv2]}
      last: relu
  half:
    doc: A sum that is not all.
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      conv1: {type: conv2d, out: channels, kernel_size: 3, padding: 1}
      sum: {type: add, in: [x, conv1]}
      conv2: {type: conv2d, out: channels, kernel_size: 3, padding: 1}
  larger:
    doc: Twice as large, and changed.
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      conv: {type: conv2d, out: channels, kernel_size: 1}
      up: {type: interpolate2d, scale: 2}
      gain: {type: parameter, shape: [channels]}
      y: {compute: up * (1 + gain), axes: {up: b c h w, gain: c}}
  mixture:
    doc: Mixed by weights.
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      rows: {type: rearrange, pattern: b c h w -> b (h w) c}
      scores: {type: linear, out: 7, bias: false}
      weights: softmax
      values: {type: linear, out: 9, bias: false, in: rows}
      mix: {type: einsum, pattern: "b n e, b n c -> b e c", in: [weights, values]}
graph:
  units: {repeat: 3, as: unit, in: {x: image}, graph: {unit: {type: unit, project: unit == 0, in: x}}}
  again: {repeat: 4, as: turn, share: true, graph: {conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}, relu: relu}}
  alone: unit
  half: half
  larger: larger
  mixture: mixture
outputs: {y: mixture}
"""


def test_closed_box_says_that_its_input_goes_around_it() -> None:
    """Behind all blocks, in the row of the passes in which it does; not where something comes after the sum."""
    assert lines(SPECIAL, "alone")[1] == "ReLU · conv 3 × 3 (8 → 8) · ReLU · conv 1 × 1 (8 → 8) + skip · ReLU"
    said = lines(SPECIAL, "units", "overview")
    assert said[-2:] == ["other 2: ReLU · conv 3 × 3 (8 → 8) · ReLU", "conv 1 × 1 (8 → 8) + skip · ReLU"]
    assert lines(SPECIAL, "half")[1] == "2 × conv 3 × 3 (8 → 8)"
    recipe = composer.load(SPECIAL)
    model = Model(recipe.program)
    whole = recipe.draw("overview").svg()
    assert not [*lies(read(whole), model)]
    for there, planted in (("1 + gain)", "1 + gain) + skip"), ("shortcut 1 × 1 (8 → 8)", "shortcut 1 × 1 (8 → 8) + skip")):
        assert there in whole
        assert [*lies(read(whole.replace(there, planted)), model)], planted


def test_closed_box_says_what_makes_it_special() -> None:
    """A larger picture, a softmax, a product, and the formula whose value it gives; no sentence beside."""
    assert lines(SPECIAL, "larger")[1] == "conv 1 × 1 (8 → 8) · upsample 2 · up·(1 + gain)"
    assert lines(SPECIAL, "mixture")[1] == "Linear 8 → 7 · softmax · Linear 8 → 9 · matrix product"
    narrow = SPECIAL.replace("linear, out: 9", "linear, out: 900000000000").replace("linear, out: 7", "linear, out: 700000000000")
    assert lines(narrow, "mixture")[1].startswith("Linear 8 → 700\u00a0000\u00a0000\u00a0000 · softmax · Linear 8 → 900")


def test_closed_repeat_says_that_its_passes_share_their_weights() -> None:
    """As its frame does."""
    assert "584 shared" in lines(SPECIAL, "again", "overview")
    recipe = composer.load(SPECIAL)
    svg = recipe.draw("overview").svg()
    assert [*lies(read(svg.replace("584 shared", "500 shared")), Model(recipe.program))]
    alone = composer.load(SPECIAL.replace("share: true, ", ""))
    assert [*lies(read(svg), Model(alone.program))]


def test_color_of_a_closed_box_is_that_of_its_largest_part() -> None:
    """Not that of the activation that comes first, nor its icon."""
    (box,) = [one for one in composer.load(SPECIAL).draw().scene.boxes if one.about.path == "alone"]
    assert (box.hue, box.icons) == ("embed", ())


TURNS = """recipe: turns
inputs: {x: "float[batch, time, 8]"}
blocks:
  turn:
    inputs: {x: "float[batch, time, dim]"}
    graph: {one: {type: linear, out: dim}, act: relu, other: {type: linear, out: dim}}
graph:
  outgoing: {type: residual, body: turn}
  incoming: {type: residual, body: turn}
"""


def test_body_of_a_branch_has_the_name_of_this() -> None:
    """Where another box has its title; two of one name have none, and a name that is no node's is found."""
    recipe = composer.load(TURNS)
    svg = recipe.draw().svg()
    assert {box.path: box.lines[0] for box in read(svg).boxes if box.path.endswith("body")} == {
        "outgoing.body": "Outgoing · Turn",
        "incoming.body": "Incoming · Turn",
    }
    planted = svg.replace(">Incoming · Turn<", ">Outgoing · Turn<")
    assert [*misnamed_titles(planted, read(planted), Model(recipe.program), recipe.program)]
    same = TURNS.replace("  outgoing: {type: residual, body: turn}", "  first: {graph: {incoming: {type: residual, body: turn}}}")
    assert not any(box.name for box in read(composer.load(same).draw().svg()).boxes)


WIDER = """recipe: wider
inputs: {x: "float[batch, 3, 64, 64]"}
graph:
  layers:
    repeat: 4
    as: block
    each: {out: [4, 8, 16, 32]}
    graph: {conv: {type: conv2d, out: out, kernel_size: 3, padding: 1}, attn: relu}
"""


def test_map_of_layers_stands_where_something_has_its_colors() -> None:
    """Three kinds that differ in more than a series have rows; of a list of values, colors would say nothing. The frame has its
    author's word.
    """
    (listed,) = composer.load(WIDER).draw(open=["layers"]).scene.frames
    assert listed.strip is None
    assert listed.texts[0].text.startswith("Block · ")
    three = WIDER.replace("repeat: 4", "repeat: 3").replace(", 32]", "]")
    assert composer.load(three).draw(open=["layers"]).scene.frames[0].strip is None
    three = three.replace("kernel_size: 3, padding: 1", "kernel_size: 2 * block + 1, padding: block")
    (rows,) = composer.load(three).draw(open=["layers"]).scene.frames
    assert rows.strip is not None


def test_samples_are_no_ids_of_words() -> None:
    """Without a table of the vocabulary, the input is called as in the recipe, and what gives the logits as what it is."""
    samples = """recipe: samples
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  hot: {type: one_hot, classes: 9}
  head: {type: linear, out: 9}
outputs: {logits: head}
"""
    said = {box.path: box.lines[0] for box in read(composer.load(samples).draw().svg()).boxes}
    assert (said["tokens"], said["head"]) == ("Tokens", "Linear")
    words = samples.replace("{type: one_hot, classes: 9}", "{type: embedding, vocab: 9, dim: 4}")
    said = {box.path: box.lines[0] for box in read(composer.load(words).draw().svg()).boxes}
    assert (said["tokens"], said["head"]) == ("Token ids", "LM head")


HEADS = """recipe: heads
inputs: {x: "float[batch, 8, 16, 16]"}
blocks:
  head:
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      layers: {repeat: 4, graph: {conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}, relu: relu}}
      out: {type: conv2d, out: 5, kernel_size: 1}
      back: {type: conv2d, out: 8, kernel_size: 1}
  double:
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      layers:
        repeat: 3
        graph: {wide: {type: conv2d, out: 24, kernel_size: 1}, narrow: {type: conv2d, out: 8, kernel_size: 1}}
graph: {one: head, two: double}
"""


def shut(text: str, *paths: str) -> dict[str, str]:
    """Return what groups say that a page has no room for."""
    flow = build_diagram(as_written(composer.load(text).program), Depth(closed=frozenset(paths)))
    return {leaf.about.path: with_ends(leaf.look.detail) for leaf in flow.leaves() if isinstance(leaf, Leaf)}


def test_repeat_inside_a_closed_box_keeps_its_count() -> None:
    """Of a single block in front of it, of several in front of all; another count and none are found."""
    said, model = shut(HEADS, "one", "two"), Model(composer.load(HEADS).program)
    assert said["one"] == "4 × (conv 3 × 3 (8 → 8) · ReLU) · conv 1 × 1 (8 → 5) · conv 1 × 1 (5 → 8)"
    assert said["two"] == "× 3 Layer (conv 1 × 1 (8 → 24), conv 1 × 1 (24 → 8))"

    def told(path: str, line: str) -> list[str]:
        box = DrawnBox(path, Place(0, 0, 0, 0), "", "", ["Block", line])
        return [*closed(box, box.lines, model)]

    assert not [*told("one", said["one"]), *told("two", said["two"])]
    for planted in ("5 × (conv", "3 × (conv"):
        assert told("one", said["one"].replace("4 × (conv", planted)), planted
    assert told("two", said["two"].replace("× 3 Layer", "× 2 Layer"))


ORDER = """recipe: order
inputs: {x: "float[batch, 8]"}
blocks:
  score:
    inputs: {x: "float[batch, dim]"}
    graph: {a: {type: linear, out: dim}, b: relu, c: {type: linear, out: dim}, d: relu, e: {type: linear, out: dim}}
  noisy:
    inputs: {x: "float[batch, dim]"}
    graph:
      noise: {type: normal, axes: [batch], during: always, in: x}
      sum: {compute: "x + noise", axes: {x: b c, noise: b}}
      map: {type: linear, out: dim}
graph:
  layers: {repeat: 3, graph: {fc: {type: linear, out: 16}}}
  one: score
  two: noisy
  first: {type: linear, out: 5}
  other: {type: linear, out: 5, in: two, tie: first}
outputs: {y: first, z: other}
"""


def test_closed_box_tells_blocks_in_the_order_in_which_they_run() -> None:
    """Blocks of one kind that others stand between are not merged; noise, which reads no value, stands where it runs."""
    said = shut(ORDER, "one", "two")
    assert said["one"] == "2 × (Linear 16 → 16 · ReLU) · Linear 16 → 16"
    assert said["two"].startswith("normal noise; ")


WIDTHS = """recipe: widths
inputs: {x: "float[batch, 8]"}
blocks:
  layer:
    params: {out: {type: int, required: true}}
    inputs: {x: "float[batch, dim]"}
    graph: {fc: {type: linear, out: out}, norm: layernorm, relu: relu}
  tell:
    inputs: {x: "float[batch, dim]"}
    graph:
      REPEATED: {repeat: 3, each: {out: [16, 64, 256]}, graph: {layer: {type: layer, out: out}}}
      fc: {type: layer, out: 4}
graph: {one: tell}
"""


def test_repeat_of_one_map_in_a_closed_box_tells_its_widths() -> None:
    """One that has the name of all its passes is so called, and its passes are counted by their widths."""
    assert shut(WIDTHS.replace("REPEATED", "mlp"), "one")["one"].startswith("MLP 8 → 16 → 64 → 256 · Layer (Linear 256 → 4")
    assert shut(WIDTHS.replace("REPEATED", "layers"), "one")["one"].startswith("× 3 Layer 8 → 16 → 64 → 256 · ")


def test_closed_box_tells_what_it_joins_from_elsewhere() -> None:
    """As on the way up of a U; of what is made in it, branches that meet are told otherwise."""
    text = """recipe: r
inputs: {x: "float[batch, 8, 4, 4]", skip: "float[batch, 8, 4, 4]"}
blocks:
  map: {inputs: {x: "float[batch, channels, height, width]"}, graph: {conv: {type: conv2d, out: 8, kernel_size: 1}, relu: relu}}
  up:
    inputs: {x: "float[batch, 8, height, width]", skip: "float[batch, 8, height, width]"}
    graph:
      join1: {type: concat, axis: -3, in: [x, skip]}
      map1: map
      join2: {type: concat, axis: -3, in: [map1, skip]}
      map2: map
  cell:
    inputs: {x: "float[batch, 8, height, width]", skip: "float[batch, 8, height, width]"}
    graph: {y: {compute: x + skip}, join: {type: concat, axis: -3, in: [x, y]}, map: map}
graph: {one: {type: up, in: {x: x, skip: skip}}, two: {type: cell, in: {x: one, skip: skip}}}
"""
    said = shut(text, "one", "two")
    assert said["one"] == "2 × (concat · Map (conv 1 × 1 (16 → 8), ReLU))"
    assert "concat" not in said["two"]


def test_closed_box_tells_dropout_where_there_is_room() -> None:
    text = """recipe: r
inputs: {x: "float[batch, 8, 4, 4]"}
blocks:
  head:
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      conv: {type: conv2d, out: 4, kernel_size: 1}
      drop: {type: dropout, p: 0.5}
      back: {type: conv2d, out: 8, kernel_size: 1}
graph: {one: head}
"""
    assert shut(text, "one")["one"] == "conv 1 × 1 (8 → 4) · dropout 0.5 · conv 1 × 1 (4 → 8)"


EXCHANGE = """recipe: exchange
inputs: {x: "float[batch, 8]", y: "float[batch, 8]"}
blocks:
  branch:
    inputs: {x: "float[batch, dim]"}
    graph:
      units: {repeat: 3, as: unit, graph: {a: {type: linear, out: dim}, act: relu}}
  cross:
    params: {out: 8, times: 1}
    inputs: {x: "float[batch, dim]"}
    graph: {steps: {repeat: times, as: step, graph: {map: {type: linear, out: "out if step == times - 1 else dim"}}}}
graph:
  stage:
    in: {a: x, b: y}
    graph:
      branch1: {type: branch, in: a}
      over: {type: cross, out: 8, in: branch1}
      branch2: {type: branch, in: b}
      back: {type: cross, out: 8, in: branch2}
      sum1: {type: add, in: [branch1, back]}
      sum2: {type: add, in: [branch2, over]}
    outputs: {a: sum1, b: sum2}
  chain:
    in: {a: x}
    graph:
      one: {type: branch, in: a}
      two: {type: cross, out: 8}
      three: branch
  head: {type: linear, out: 3, in: stage.b}
outputs: {u: stage.a, v: head, w: chain}
"""


def test_blocks_of_streams_that_exchange_are_counted_wherever_they_stand() -> None:
    """By their own names; in a chain, the order in which they run is told. Another count is found."""
    said, model = shut(EXCHANGE, "stage", "chain"), Model(composer.load(EXCHANGE).program)
    assert said["stage"] == "2 × Branch (× 3 Unit (Linear 8 → 8, ReLU)) · 2 × Cross (Linear 8 → 8)"
    assert said["chain"] == "× 3 Unit (Linear 8 → 8, ReLU) · Cross (Linear 8 → 8) · × 3 Unit (Linear 8 → 8, ReLU)"
    lines = ["Stage", said["stage"]]
    assert not [*closed(DrawnBox("stage", Place(0, 0, 0, 0), "", "", lines), lines, model)]
    lines = ["Stage", said["stage"].replace("2 × Branch", "3 × Branch")]
    assert [*closed(DrawnBox("stage", Place(0, 0, 0, 0), "", "", lines), lines, model)]


def test_repeat_of_one_pass_in_a_block_repeats_nothing() -> None:
    """The block around it is a box, and open, it has the nodes of the pass; where a use has several passes, these are a frame."""
    recipe = composer.load(EXCHANGE)
    pictures = [read(recipe.draw(**options).svg()) for options in ({}, {"open": ["chain.two.steps"]})]
    assert all(not [*lies(picture, Model(recipe.program))] for picture in pictures)
    boxes, opened = ({box.path: box.lines for box in picture.boxes} for picture in pictures)
    assert boxes["chain.two"][0] == "Cross"
    assert not any(line.startswith("× 1") for lines in boxes.values() for line in lines)
    assert "chain.two.steps.map" in opened
    assert "chain.two.steps" not in {frame.path for frame in pictures[1].frames}
    several = composer.load(EXCHANGE.replace("two: {type: cross, out: 8}", "two: {type: cross, out: 8, times: 2}"))
    assert "chain.two.steps" in {frame.path for frame in read(several.draw().svg()).frames}


def test_values_and_rows_of_kinds_stand_in_the_order_of_passes() -> None:
    """That of the first pass of each, and not the most frequent one first."""
    flow = build_diagram(as_written(composer.load(ORDER).program), Depth("overview"))
    (box,) = (leaf for leaf in flow.leaves() if leaf.about.path == "layers")
    assert isinstance(box, Leaf)
    assert box.look.brief[0] == "× 3 Layer (Linear 8 → 16 → 16 → 16)"
    rows = [line.partition(": ")[0] for line in lines(SPECIAL, "units", "overview") if ": " in line]
    assert rows == ["first", "other 2"]


def test_block_whose_parameters_are_all_another_s_says_whose() -> None:
    """Its bias, too."""
    box = next(
        leaf for leaf in build_diagram(as_written(composer.load(ORDER).program), Depth()).leaves() if leaf.about.path == "other"
    )
    assert isinstance(box, Leaf)
    assert (box.look.detail, box.params) == ("16 → 5 + bias · weights = first", "tied")


TOLD = """recipe: told
inputs: {x: "float[batch, 16, 8, 8]", state: "float[batch, 24]"}
blocks:
  mlp:
    inputs: {x: "float[batch, width]"}
    graph:
      one: {type: linear, out: 24}
      act1: relu
      two: {type: linear, out: 24}
      act2: relu
      last: {type: linear, out: 3}
      gate: sigmoid
  many:
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      wide: {type: conv2d, out: 16, kernel_size: 5, padding: 2}
      up: {type: interpolate2d, scale: 2}
      point: {type: conv2d, out: 32, kernel_size: 1}
      act: tanh
      down: {type: max_pool2d, kernel_size: 2, stride: 2}
      end: {type: conv2d, out: 16, kernel_size: 3, padding: 1}
graph:
  mlp: {type: mlp, in: state}
  many: {type: many, in: x}
  layers: {repeat: 6, in: {x: many}, each: {size: [3, 3, 5, 3, 5, 3]}, graph: {conv: CONV}}
  ends: {repeat: 4, in: {x: layers}, each: {size: [3, 5, 5, 5]}, graph: {conv: CONV}}
  beta: {type: select, axis: last, index: 0, in: state}
  y: {compute: "ends * beta", axes: {ends: b c h w, beta: b}}
outputs: {y: y, mlp: mlp}
""".replace("CONV", "{type: conv2d, out: 16, kernel_size: size, padding: size // 2}")


@pytest.mark.parametrize(
    ("level", "there", "planted"),
    [
        ("block", "2 × (Linear", "3 × (Linear"),
        ("block", "sigmoid", "tanh"),
        ("block", "· tanh", "· sigmoid"),
        ("overview", ">3rd and 5th: ", ">2nd and 5th: "),
        ("overview", ">first: ", ">last: "),
        ("overview", ">other 3: ", ">other 2: "),
    ],
)
def test_lines_of_a_closed_box_and_which_passes_a_row_is_about_are_read(
    level: composer.draw.build.levels.Level, there: str, planted: str
) -> None:
    """What comes in turns, each activation, and the places of passes."""
    recipe = composer.load(TOLD)
    svg, model = recipe.draw(level).svg(), Model(recipe.program)
    assert not [*lies(read(svg), model)]
    assert there in svg
    assert [*lies(read(svg.replace(there, planted)), model)]


def test_closed_box_has_a_few_lines_broken_between_blocks() -> None:
    """No longer than others, with an activation behind what it acts on."""
    said = next(box.lines for box in read(composer.load(TOLD).draw().svg()).boxes if box.path == "many")
    told = [line for line in said[1:] if "·" in line]
    assert len(told) == 3
    assert max(map(len, told)) <= LINE
    assert not any(line.startswith(("tanh", "ReLU")) for line in told)


def test_what_a_formula_reads_by_its_name_has_that_name() -> None:
    """Also in a low box."""
    names = {box.path: box.name for box in read(composer.load(TOLD).draw().svg()).boxes}
    assert names["beta"] == "beta"


def test_widths_of_branches_are_those_that_are_joined() -> None:
    """Another width is found."""
    recipe = composer.load(INCEPTION)
    svg, model = recipe.draw().svg(), Model(recipe.program)
    assert "8 | 4 → 8 | 8 channels" in svg
    assert [*lies(read(svg.replace("8 | 4 → 8 | 8 channels", "8 | 8 → 4 | 8 channels")), model)]


PADDED = """recipe: padded
inputs: {x: "float[batch, time, 8]", valid: "bool[batch, time]"}
blocks:
  mixed:
    doc: Real positions and a share of those before.
    inputs: {x: "float[batch, time, dim]", valid: "bool[batch, time]"}
    graph:
      real: {compute: "where(valid, x, 0.0)"}
      past: {type: shift, by: 1, axis: time}
      both: {compute: "0.5 * real + 0.5 * past"}
      map: {type: linear, out: 8}
graph:
  embed: {type: linear, out: 8, in: x}
  mixed: {type: mixed, in: {x: embed, valid: valid}}
outputs: {y: mixed}
"""


def test_formula_that_leaves_out_padding_says_nothing_of_a_block() -> None:
    """Beside others, which are told."""
    said = next(box.lines for box in read(composer.load(PADDED).draw().svg()).boxes if box.path == "mixed")
    assert "0.5·real + 0.5·past · Linear 8 → 8" in said


TWICE = """recipe: twice
inputs: {x: "float[batch, 8]"}
blocks:
  pair:
    doc: Two maps and the numbers behind them.
    params: {cap: 30}
    inputs: {x: "float[batch, dim]"}
    graph:
      up: {type: linear, out: 16}
      relu: relu
      down: {type: linear, out: dim}
      capped: {compute: "cap * tanh(down / cap)"}
graph:
  one: pair
  two: {type: pair, tie: one}
  shift: {type: parameter, shape: [8]}
  sum: {compute: "two + shift"}
outputs: {y: sum}
"""


def test_box_with_the_parameters_of_another_one_beside_it_says_only_that() -> None:
    """What is in both is told once; a list of numbers tells its length once, and a formula the numbers that it names."""
    assert lines(TWICE, "one")[1:] == ["Linear 8 → 16 · ReLU · Linear 16 → 8 · 30·tanh(down / 30)", "one · 280"]
    assert lines(TWICE, "two")[1:] == ["two · shared with one"]
    assert lines(TWICE, "shift") == ["shift", "learned 8"]


def test_header_of_a_narrow_frame_is_broken_between_words() -> None:
    """Rather than cut."""
    typography = Typography()
    room = typography.width("Reward", "header") + 4
    assert header_lines(("Reward model", "86.6 K"), room, typography) == ["Reward", "model", "86.6 K"]
    assert header_lines(("Reward model", "86.6 K"), 200, typography) == ["Reward model · 86.6 K"]


IN_TURN = """recipe: in_turn
inputs: {image: "float[batch, 64, row, column]"}
blocks:
  dbl:
    doc: A convolution with batch norm and leaky ReLU.
    params: {out: 8, kernel: 3}
    inputs: {x: "float[batch, channels, row, column]"}
    graph:
      conv: {type: conv2d, out: out, kernel_size: kernel, padding: kernel // 2}
      norm: batchnorm2d
      relu: {type: leaky_relu, slope: 0.1}
  five:
    doc: Five convolutions, narrow and wide in turn.
    inputs: {x: "float[batch, channels, row, column]"}
    graph:
      a: {type: dbl, out: 32, kernel: 1}
      b: {type: dbl, out: 64}
      c: {type: dbl, out: 32, kernel: 1}
      d: {type: dbl, out: 64}
      e: {type: dbl, out: 32, kernel: 1}
graph:
  first: five
  layers:
    repeat: 2
    graph:
      narrow: {type: dbl, out: 32, kernel: 1}
      wide: {type: dbl, out: 32}
      sum: {type: add, in: [wide, input]}
"""


def test_blocks_around_one_map_are_that_map_where_several_are_told() -> None:
    """`5 × Dbl` would say that all are alike."""
    said = " ".join(lines(IN_TURN, "first"))
    assert said.count("conv 1 × 1") == 3 and said.count("conv 3 × 3") == 2 and "× Dbl" not in said


def test_maximum_over_an_axis_is_told_beside_a_map() -> None:
    """As pooling is."""
    text = """recipe: letters
inputs: {word: "float[batch, letter, 8]"}
blocks:
  of_word:
    inputs: {x: "float[batch, letter, dim]"}
    graph: {conv: {type: linear, out: 16}, relu: relu, most: {type: max, axis: letter}}
graph: {first: of_word, head: {type: linear, out: 4}}
"""
    assert lines(text, "first")[1] == "Linear 8 → 16 · ReLU · max over letter"


APART = """recipe: apart
inputs: {wide: "float[batch, 6, 8, 8]", flow: "float[batch, 2, 8, 8]"}
blocks:
  encoder:
    inputs: {wide: "float[batch, c, h, w]", flow: "float[batch, 2, h, w]"}
    graph:
      own: {type: conv2d, out: 9, kernel_size: 1, in: wide}
      first: {type: conv2d, out: 7, kernel_size: 7, padding: 3, in: flow}
      second: {type: conv2d, out: 5, kernel_size: 3, padding: 1}
      both: {type: JOIN, in: [own, second]}
      mix: {type: conv2d, out: 4, kernel_size: 3, padding: 1}
      all: {type: concat, axis: -3, in: [mix, flow]}
  near:
    params: {shrink: 1}
    inputs: {x: "float[batch, c, h, w]", other: "float[batch, c, h, w]"}
    graph:
      rows: {compute: "max(0, 1 - abs(x / shrink + other))"}
      columns: {compute: "max(0, 1 - abs(other / shrink + x))"}
      y: {type: einsum, pattern: "b c h w, b c h w -> b c h w", in: [rows, columns]}
graph:
  encoder: {type: encoder, in: {wide: wide, flow: flow}}
  large: {type: near, in: {x: flow, other: flow}}
  small: {type: near, shrink: 4, in: {x: flow, other: flow}}
outputs: {y: encoder, large: large, small: small}
"""


def test_branches_that_start_from_inputs_of_their_own_stand_beside_each_other() -> None:
    """And none of them is a shortcut."""
    joined = APART.replace("JOIN", "concat, axis: -3")
    assert lines(joined, "encoder")[1] == "conv 1 × 1 | conv 7 × 7 → conv 3 × 3, concatenated · conv 3 × 3 (14 → 4) · concat"
    summed = APART.replace("JOIN", "add").replace("out: 9", "out: 5")
    assert lines(summed, "encoder")[1] == "conv 1 × 1 | conv 7 × 7 → conv 3 × 3, summed · conv 3 × 3 (5 → 4) · concat"


def test_branches_that_a_formula_sums_stand_beside_each_other() -> None:
    """Where it does nothing else."""
    text = APART.replace("{type: JOIN, in: [own, second]}", "{compute: own + second}").replace("out: 9", "out: 5")
    assert lines(text, "encoder")[1] == "conv 1 × 1 | conv 7 × 7 → conv 3 × 3, summed · conv 3 × 3 (5 → 4) · concat"
    assert "|" not in lines(text.replace("own + second", "own + 2 * second"), "encoder")[1]


REPEATED = """recipe: repeated
inputs: {image: "float[batch, 8, 16, 16]"}
blocks:
  unit:
    inputs: {x: "float[batch, channels, height, width]"}
    params: {out: {type: int, required: true}}
    graph: {norm: {type: groupnorm2d, groups: 4}, relu: relu, conv: {type: conv2d, out: out, kernel_size: 3, padding: 1}}
graph:
  stages:
    repeat: 3
    as: stage
    graph:
      layers: {repeat: 3, graph: {unit: {type: unit, out: 8 * 2**stage}}}
      last: {type: conv2d, out: 16 * 2**stage, kernel_size: 1}
  first: {type: END, out: 64, in: stages(0)}
  second: {type: linear, out: 64, in: stages(1)}
  third: {type: linear, out: 64, in: stages(2)}
outputs: {first: first, second: second, third: third}
"""


def test_block_that_other_boxes_call_by_its_name_is_called_so_in_a_repeat() -> None:
    """Where another box tells the repeat: it reads as another block, else."""
    assert lines(REPEATED.replace("END", "unit"), "stages.1")[1].startswith(
        "× 3 Layer (Unit (GN, ReLU, conv 3 × 3 (16 → 16))) · "
    )
    assert lines(REPEATED.replace("END", "linear"), "stages.1")[1].startswith("× 3 Layer (GN, ReLU, conv 3 × 3 (16 → 16)) · ")


def test_long_formulas_are_told_by_the_numbers_that_they_name() -> None:
    """Which tell uses of a block apart."""
    text = APART.replace("JOIN", "concat, axis: -3")
    assert [lines(text, path)[1].split(" · ")[0] for path in ("large", "small")] == ["shrink 1", "shrink 4"]


def test_sentence_stands_before_the_numbers_that_formulas_name() -> None:
    """Which tell uses of a block apart, of which the first says what for; another number is found."""
    doc = "    doc: How much two pictures meet. Nothing else.\n"
    recipe = composer.load(APART.replace("JOIN", "concat, axis: -3").replace("  near:\n", f"  near:\n{doc}"))
    svg, model = recipe.draw().svg(), Model(recipe.program)
    said = {box.path: box.lines[1] for box in read(svg).boxes if box.path in ("large", "small")}
    assert said == {"large": "How much two pictures meet · shrink 1", "small": "shrink 4"}
    assert not [*lies(read(svg), model)]
    assert [*lies(read(svg.replace("shrink 4", "shrink 5")), model)]


def test_nothing_is_divided_by_one() -> None:
    """In a formula whose numbers are known."""
    short = APART.replace("JOIN", "concat, axis: -3").replace("max(0, 1 - abs(other / shrink + x))", "other + x")
    assert "max(0, 1 − |x + other|)" in lines(short, "large")[1]
    assert "max(0, 1 − |x / 4 + other|)" in lines(short, "small")[1]


LOOKED_UP = """recipe: looked_up
inputs: {{x: "float[batch, time, 16]"}}
blocks:
  nearest:
    doc: {doc}
    inputs: {{x: "float[batch, time, width]"}}
    graph:
      table: {{type: parameter, shape: [40, width]}}
{more}      along: {{type: einsum, pattern: "b t c, k c -> b t k", in: [{read}, table]}}
      index: {{type: argmax, axis: last}}
      row: {{type: gather, axis: first, in: {{x: table, index: index}}}}
graph:
  begin: {{type: linear, out: 12, in: x}}
  nearest: nearest
  end: {{type: linear, out: 3}}
outputs: {{y: end}}
"""
SENTENCE = "The row of a table whose direction is nearest to that of what each position brings. Nothing learns here."


def test_box_of_operations_alone_says_what_they_are_for() -> None:
    """In the words of its author, in lines of about the same length, without the tables beside it; but not where numbers may
    differ, or where maps tell more.
    """
    usual = LOOKED_UP.format(doc=SENTENCE, read="x", more="")
    (box,) = (one for one in read(composer.load(usual).draw().svg()).boxes if one.path == "nearest")
    assert box.lines == [
        "Nearest",
        "The row of a table whose direction is",
        "nearest to that of what each position brings",
    ]
    assert lines(usual, "nearest.table") == ["Table", "learned 40 × 12", "480"]
    for doc, read_there, more in (
        ("The nearest of 40 rows.", "x", ""),
        (SENTENCE.replace("of a table", "of a table that " + "is very long and " * 4), "x", ""),
        (SENTENCE, "mapped", "      mapped: {type: linear, out: width, in: x}\n"),
    ):
        told = lines(LOOKED_UP.format(doc=doc, read=read_there, more=more), "nearest")
        assert any("inner product" in line for line in told)


def test_sentence_of_a_block_stands_in_the_first_of_its_boxes() -> None:
    """In the order of the data; of the others, in those that have nothing else to say."""
    twice = LOOKED_UP.replace("  end: {{", "  again: nearest\n  end: {{").format(doc=SENTENCE, read="x", more="")
    assert lines(twice, "nearest")[1].startswith("The row of a table")
    assert lines(twice, "again")[1] == "table 40 × 12"
    doc = "    doc: How much two pictures meet.\n"
    bare = APART.replace("JOIN", "concat, axis: -3").replace("  near:\n", f"  near:\n{doc}").replace(" / shrink", "")
    bare = bare.replace("    params: {shrink: 1}\n", "").replace("shrink: 4, ", "")
    closed = read(composer.load(bare).draw(details=["none"]).svg())
    said = {box.path: whole(box)[1] for box in closed.boxes if box.path in ("large", "small")}
    assert said == dict.fromkeys(("large", "small"), "How much two pictures meet")


FEW = """recipe: few
inputs: {x: "float[batch, 8, 128, 128]"}
blocks:
  down:
    inputs: {x: "float[batch, channels, high, wide]"}
    params: {times: 3, out: 64}
    graph:
      steps:
        repeat: times
        graph:
          conv: {type: conv2d, out: out if layer == times - 1 else channels, kernel_size: 3, stride: 2, padding: 1}
          relu: {type: relu, when: layer < times - 1}
  mixed:
    inputs: {x: "float[batch, channels, high, wide]"}
    graph:
      layers:
        repeat: 3
        graph:
          pool: {type: max_pool2d, kernel_size: 2, when: layer == 0}
          conv: {type: conv2d, out: channels, kernel_size: 3, padding: 1, when: layer > 0}
          dense: {type: conv2d, out: channels, kernel_size: 1, when: layer == 0}
graph:
  one: down
  two: {type: down, out: 32, times: 2}
  three: mixed
"""


def test_closed_repeat_says_which_passes_its_kinds_are() -> None:
    """In one line where that has room; passes that differ in widths, and in what comes behind all but the last, are a chain."""
    figure = composer.load(FEW).draw("overview")
    said = {box.about.path: [text.text for text in box.texts] for box in figure.scene.boxes}
    assert said["one"][:2] == ["Down · × 3 Step", "conv 3 × 3 (8 → 8 → 8 → 64), stride 2 · ReLU between"]
    assert said["two"][:2] == ["Down · × 2 Step", "conv 3 × 3 (64 → 64 → 32), stride 2 · ReLU between"]
    assert shut(FEW, "three.layers", "three")["three"] == "× 3 Layer (first: Max pooling, conv 1 × 1; other 2: conv 3 × 3)"
    drawn = read(figure.svg())
    assert [*lies(drawn, Model(composer.load(FEW).program)), *loose(drawn)] == []


JOINED_FORMULAS = """recipe: joined
inputs: {x: "float[batch, time, 8]"}
blocks:
  gated:
    doc: A gate between two maps.
    inputs: {x: "float[batch, time, dim]"}
    graph:
      gate: {type: linear, out: 8}
      value: {type: linear, out: 8, in: x}
      both: {compute: gate * value}
      bent: {compute: both + value}
      conv: {type: conv1d, out: 8, kernel_size: 3, padding: 1}
      norm: {type: layernorm}
graph:
  embed: {type: linear, out: 8, in: x}
  one: {type: gated}
outputs: {y: one}
"""


@pytest.mark.parametrize("width", ["", "150pt"])
def test_no_dot_stands_between_a_formula_and_anything_else(width: str) -> None:
    """It would seem to multiply, as in `x + place · Linear`; also where each text stands in several lines."""
    figure = composer.load(JOINED_FORMULAS).draw(details=["none"], width=width)
    (box,) = (box for box in figure.scene.boxes if box.about.path == "one")
    said = " ".join(text.text for text in box.texts)
    assert "; gate·value; both + value; conv" in said
    assert not re.search(r"· (gate·value|both \+ value)|(gate·value|both \+ value) ·", said)


EVEN = """recipe: even
inputs: {x: "float[batch, 8, 16, 16]"}
blocks:
  unit:
    params: {out: {type: int, required: true}}
    inputs: {x: "float[batch, channels, row, column]"}
    graph:
      conv1: {type: conv2d, out: out, kernel_size: 3, padding: 1}
      relu1: relu
      conv2: {type: conv2d, out: out, kernel_size: 3, padding: 1}
      relu2: relu
  down:
    params: {out: {type: int, required: true}, mixed: false}
    inputs: {x: "float[batch, channels, row, column]"}
    graph:
      pool: {type: max_pool2d, kernel_size: 2}
      unit: {type: unit, out: out}
      tanh: {type: tanh, when: mixed}
graph:
  down1: {type: down, out: 32}
  down2: {type: down, out: 256}
  down3: {type: down, out: 64}
outputs: {y: down3}
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("out: 256", "out: 16", {True}),  # all have room
        ("out: 256", "out: 256", {False}),
    ],
)
def test_uses_of_a_block_leave_out_the_same_words(old: str, new: str, told: set[bool]) -> None:
    """Where one has no room for its activations, no other tells them, and the pool stays."""
    scene = composer.load(EVEN.replace(old, new)).draw().scene
    lines = {box.about.path: " ".join(text.text for text in box.texts) for box in scene.boxes}
    assert {"ReLU" in lines[f"down{number}"] for number in (1, 2, 3)} == told
    assert all("Max pooling 2 × 2" in lines[f"down{number}"] for number in (1, 2, 3))


def test_what_a_use_of_a_block_lacks_is_told_of_others() -> None:
    """An activation that is not there is not left out."""
    scene = composer.load(EVEN.replace("out: 256", "out: 16").replace("out: 64", "out: 64, mixed: true")).draw().scene
    lines = {box.about.path: " ".join(text.text for text in box.texts) for box in scene.boxes}
    assert "ReLU" in lines["down1"] and "tanh" in lines["down3"].lower()


def test_a_recurrence_that_is_written_out_looks_like_one() -> None:
    """Its box has the color and the icon of a recurrent layer, and one pass of it a detail."""
    recipe = composer.load(
        """recipe: written
inputs: {x: "float[batch, time, 8]"}
blocks:
  recurrent:
    inputs: {wx: "float[batch, time, dim]"}
    graph:
      start: {type: zeros, shape: [8], in: wx}
      steps:
        scan: time
        in: {h: start, wx: wx}
        graph:
          u: {type: linear, out: 8, in: h}
          next: {compute: "clamp(wx + u, 0, 20)"}
        outputs: {h: next}
graph:
  first: {type: linear, out: 8, in: x}
  one: recurrent
  two: {type: linear, out: 8}
  three: {type: recurrent, in: two}
"""
    )
    scene = recipe.draw().scene
    boxes = [box for box in scene.boxes if box.about.path == "one"]
    assert boxes and all(box.hue == "rec" and box.icons for box in boxes)
    assert any(detail.texts[0].text == "Recurrent" for detail in scene.details)


def test_a_closed_box_tells_what_goes_around_one_box_in_it_and_what_multiplies_its_input() -> None:
    """A residual around a block that is closed itself, and a matrix for what it is made of."""
    levels = drawn_lines("latent_diffusion")
    assert levels["down.0"][1] == "× 2 Layer (Res block, Spatial Transformer with skip)"
    assert levels["up.3"][1] == "3 × (concat · Res block · Spatial Transformer with skip)"
    assert "matrix product with the input" in " ".join(drawn_lines("pointnet")["input_transform"])


def test_uses_of_a_block_that_differ_in_a_pattern_tell_it() -> None:
    """Sums over other axes; and attention along another axis, how that is turned."""
    boxes = drawn_lines("evoformer")
    assert "matrix product b i k c, b j k c → b i j c" in boxes["blocks.outgoing.body"]
    assert "matrix product b k i c, b k j c → b i j c" in boxes["blocks.incoming.body"]
    assert boxes["blocks.m_column.body"][1] == "transpose · LN · MHA 8 heads · transpose"


def drawn_lines(paper: str) -> dict[str, list[str]]:
    """Return what each box of a paper's figure says."""
    scene = composer.load(Path(__file__).parent / f"papers/{paper}.yaml").draw().scene
    return {box.about.path: [text.text for text in box.texts] for box in scene.boxes}


def test_branches_with_a_skip_around_them_are_told_as_branches() -> None:
    """As in Inception-ResNet: what the branches read goes around all blocks too; a second fork is told as well."""
    text = """recipe: added
inputs: {x: "float[batch, 32, 8, 8]"}
blocks:
  module:
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      a: {type: conv2d, out: 4, kernel_size: 1, in: x}
      b: {type: conv2d, out: 4, kernel_size: 1, in: x}
      c: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
      both: {type: concat, axis: -3, in: [a, c]}
      up: {type: conv2d, out: channels, kernel_size: 1}
      sum: {type: add, in: [x, up]}
  twice:
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      a: {type: conv2d, out: 4, kernel_size: 1, in: x}
      b: {type: conv2d, out: 4, kernel_size: 3, padding: 1, in: x}
      both: {type: concat, axis: -3, in: [a, b]}
      c: {type: conv2d, out: 4, kernel_size: 5, padding: 2, in: both}
      d: {type: conv2d, out: 4, kernel_size: 7, padding: 3, in: both}
      all: {type: concat, axis: -3, in: [c, d]}
graph: {module: module, twice: twice}
outputs: {y: twice}
"""
    first = " ".join(lines(text, "module"))
    assert "1 × 1 | 1 × 1 → 3 × 3, concatenated" in first.replace("conv ", "") and "+ skip" in first
    second = " ".join(lines(text, "twice"))
    assert second.count(", concatenated") == second.count(" | ") == len(["both", "all"])


def test_tables_of_one_title_have_their_names() -> None:
    """Of two embeddings, the names say which is of users; one alone has none."""
    recipe = composer.load("""recipe: factors
inputs: {user: "int[batch]", item: "int[batch]"}
graph:
  users: {type: embedding, vocab: 9, dim: 4, in: user}
  items: {type: embedding, vocab: 7, dim: 4, in: item}
  product: {type: multiply, in: [users, items]}
outputs: {y: product}
""")
    named = {box.path: box.name for box in read(recipe.draw().svg()).boxes if box.name}
    assert named == {"users": "users", "items": "items"}


def test_what_leads_to_an_output_that_nothing_reads_is_in_no_box_of_that_use() -> None:
    """And the other use, whose output is read, tells it all the same."""
    scene = composer.load(Path("tests/draw/papers/pointnet.yaml")).draw().scene
    said = {box.about.path: " · ".join(text.text for text in box.texts) for box in scene.boxes}
    assert "inner product" not in said["input_transform"] and "inner product" in said["feature_transform"]


def test_norms_in_branches_are_told_where_those_behind_them_are() -> None:
    """These would else seem to be all there are."""
    scene = composer.load(Path("tests/draw/papers/latent_diffusion.yaml")).draw().scene
    (box,) = (box for box in scene.boxes if box.about.path == "middle.res1")
    assert "GN → SiLU → conv 3 × 3 | SiLU → Linear, summed · GN · SiLU" in {text.text for text in box.texts}
