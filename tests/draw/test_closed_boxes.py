"""What boxes say of what is in them, what inputs are, and where parameters start."""

from __future__ import annotations

import pytest

import composer
from composer.draw.brief import MAX_LETTERS
from composer.draw.series import from_first_to_last
from tests.draw.read_back import Model, lies, read

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
    return next(box.lines for box in picture.boxes if box.path == path)


def test_box_of_a_block_says_kernels_strides_and_channels_before_its_doc() -> None:
    """The sentence stands behind where there is room, and else alone in the recipe."""
    assert lines(UNIT, "stem")[1].startswith("depthwise conv 5 × 5 (3 → 3), stride 2 · conv 1 × 1 (3 → 16)")
    assert lines(UNIT, "quiet")[1].startswith("conv 1 × 1 (16 → 16), starts at 0 · Silent at first")


def test_box_of_layers_says_heads_and_widths_and_shortens_the_longest_first() -> None:
    """A decoder that also looks elsewhere says which attention is causal."""
    assert lines(STACK.format(more=FFN), "layers", "overview")[1].startswith("GQA 4 Q, 2 KV · GELU (tanh) FFN 96")
    (said,) = [line for line in lines(STACK.format(more=CROSS + FFN), "layers", "overview") if "cross" in line]
    assert said == "causal GQA 4 Q, 2 KV · cross-attention · GELU (tanh) FFN 96"
    assert len(said) <= MAX_LETTERS


def test_layers_that_differ_in_a_number_have_rows() -> None:
    """With all that tells them apart."""
    wide = FFN.replace("96", "(48 if layer < 3 else 80)")
    said = lines(STACK.format(more=wide), "layers", "overview")
    assert "3 of 4: GQA 4 Q, 2 KV · GELU (tanh) FFN 48" in said
    assert "1 of 4: GQA 4 Q, 2 KV · GELU (tanh) FFN 80" in said


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


def test_many_stacks_are_counted_together() -> None:
    """Up to eight one by one."""
    layers = "".join(
        f"  s{one}: {{repeat: 2, graph: {{f: {{type: residual, body: {{type: ffn, hidden: {8 + one}}}}}}}}}\n" for one in range(9)
    )
    recipe = composer.load(f'recipe: r\ninputs: {{x: "float[batch, time, 8]"}}\ngraph:\n{layers}outputs: {{y: s8}}\n')
    assert "18 layers" in " ".join(text for *_, text in read(recipe.draw("overview").svg()).texts)


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
    assert "4 of 16: conv 3 × 3 (3, 8, 16, 32 → 8, 16, 32, 64), stride 2" in box.lines
    assert "12 of 16: conv 3 × 3 (8, 16, 32, 64 → 8, 16, 32, 64)" in box.lines
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
    """In the pill, in a closed box and in the head; what they share comes in from below, and no line ends at the upper border."""
    recipe = composer.load(EXPERTS)
    figure, model = recipe.draw(), Model(recipe.program)
    (frame,) = figure.scene.frames
    assert frame.pill is not None
    assert frame.pill.text == "5 in parallel"
    assert "5 parallel experts" in " ".join(text for *_, text in read(figure.svg()).texts)
    assert lines(EXPERTS, "experts", "overview")[0] == "5 parallel experts"
    wires = read(figure.svg()).wires
    assert [wire.target for wire in wires if wire.source == "experts.relu"] == ["mean"]
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
    assert lines(INCEPTION, "module3a")[1] == "1 × 1 | 1 × 1 → 3 × 3 | pool → 1 × 1, concatenated"
    assert lines(INCEPTION, "last")[1].startswith("conv 3 × 3 (15 → 6) · conv 3 × 3 + shortcut 1 × 1 · Two")
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
    """Though these begin with the title; a block that is alone has none."""
    recipe = composer.load(INCEPTION)
    named = {box.path: box.name for box in read(recipe.draw().svg()).boxes if box.name}
    assert named == {"module3a": "module3a", "module3b": "module3b", "stem": "stem", "last": "last"}
    alone = composer.load(INCEPTION.replace("  module3b: {type: module, wide: 5}\n", ""))
    assert "module3a" not in {box.name for box in read(alone.draw().svg()).boxes}
