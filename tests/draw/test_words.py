"""What a drawing writes: numbers, shapes, names and paths, and what stands at one place for several."""

from __future__ import annotations

from dataclasses import replace

import pytest

import composer
from blocks.core import BlockView, NodeRef, grouped, size, spoken
from blocks.masks.data_masks import Pairs
from blocks.primitives.pointwise import Scale
from composer.cost.units import short
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.levels import Depth
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.build.texts.titles import name, stacks
from composer.draw.diagram import Leaf
from composer.draw.export.marks import TextLine
from composer.draw.export.outlines import flatten_marks
from composer.draw.export.paint import paint_scene
from composer.draw.layout.fragment import straightened
from composer.draw.passes.overview import fold_norms
from composer.draw.passes.side_inputs import split_side_inputs
from composer.draw.paths import above, belongs, lies_in
from composer.draw.wording import printable, shape
from composer.graph.parameters import parameters
from composer.graph.passes.roll_layers.roll_layers import folded
from tests.draw.cases import FORMS, PAPERS
from tests.draw.checks import overlaps
from tests.draw.flows import flow
from tests.draw.read_back import read
from tests.draw.test_drawings import assert_every_edge
from tests.draw.test_read_back import wrong


@pytest.mark.parametrize(
    ("value", "said"), [(4096, "4096"), (14336, "14\u00a0336"), (1234567, "1\u00a0234\u00a0567"), (0.5, "0.5")]
)
def test_long_numbers_are_grouped_by_thousands(value: float, said: str) -> None:
    """From five digits on."""
    assert grouped(value) == said


def test_axes_are_written_as_letters_of_the_field() -> None:
    """A sum in brackets."""
    recipe = 'recipe: r\ninputs: {x: "float[batch, time + 1, 8]"}\ngraph: {a: relu}\n'
    assert shape(composer.load(recipe).program.inputs["x"]) == "B × (T + 1) × 8"


def test_titles_have_the_capitals_of_the_texts_about_them() -> None:
    """Of a block, a loss and the model, each compared without spaces, hyphens and capitals."""
    text = """recipe: ple
doc: Two critics of one kind, trained by the NT-Xent loss.
paper: Somebody 2020, Progressive Layered Extraction (PLE), RecSys 2020
inputs: {x: "float[batch, 8]", wanted: "float[batch, 1]?"}
blocks:
  patchgan: {doc: The PatchGAN., inputs: {x: "float[batch, dim]"}, graph: {a: {type: linear, out: 8}, b: {type: linear, out: 1}}}
graph:
  critic: {type: patchgan, in: x}
outputs: {y: critic}
losses: {nt_xent: {type: mse, in: critic, target: wanted}}
"""
    said = [line for box in read(composer.load(text).draw().svg()).boxes for line in box.lines]
    assert {"PatchGAN", "NT-Xent loss"} <= {*said}
    assert name("ple", "Two critics of one kind.", "Progressive Layered Extraction (PLE)") == "PLE"
    assert name("ple", "Two critics of one kind.") == "Ple"


@pytest.mark.parametrize("name", ["powers", "raised_to_what_another_map_gives"])
def test_name_that_a_formula_reads_stands_beside_a_long_title(name: str) -> None:
    """In a box that is as wide as both."""
    recipe = composer.load(f"""recipe: r
inputs: {{x: "float[batch, time, 8]"}}
graph:
  shifted: {{type: linear, out: 8, in: x}}
  gamma: {{type: linear, out: 8, in: x}}
  {name}: {{compute: (shifted + 1e-6) ** (1 + softplus(gamma))}}
  total: {{type: sum, axis: last}}
  weights: {{compute: {name} / total, axes: {{{name}: b t n, total: b t}}}}
""")
    (box,) = (one for one in read(recipe.draw().svg()).boxes if one.path == name)
    assert (box.name, box.lines[-1]) in {(name, name), (name, "(shifted + 1e-6)^(1 + softplus(gamma))")}
    assert wrong(recipe, "block") == []


def test_names_that_authors_chose_stand_beside_what_is_computed() -> None:
    """The role of a map or an einsum, and of a block of one's own; no name that says what the title does."""
    recipe = composer.load("""recipe: r
inputs: {x: "float[batch, time, 8]"}
blocks:
  pair: {inputs: {x: "float[batch, time, 8]"}, graph: {up: {type: linear, out: 8}, relu: relu, down: {type: linear, out: 8}}}
graph:
  norm1: layernorm
  q: {type: linear, out: 8, in: norm1}
  key: {type: linear, out: 8, in: norm1}
  scores: {type: einsum, pattern: "b t d, b s d -> b t s", in: [q, key]}
  softmax1: {type: softmax, axis: last}
  mix: {type: einsum, pattern: "b t s, b s d -> b t d", in: [softmax1, norm1]}
  linear2: {type: linear, out: 8}
  early: pair
  attn: {type: attention, heads: 2}
  ffn: ffn
outputs: {y: ffn}
""")
    said = {box.about.path: [text.text for text in box.texts if text.role == "name"] for box in recipe.draw().scene.boxes}
    assert {path: name for path, (name,) in ((path, names) for path, names in said.items() if names)} == {
        path: path for path in ("q", "key", "scores", "mix", "early")
    }
    assert not any(text.role == "name" for box in recipe.draw("overview").scene.boxes for text in box.texts)
    column = recipe.draw(width="150pt").scene
    assert any(text.text.startswith("scores · ") for box in column.boxes for text in box.texts)


@pytest.mark.parametrize(("name", "said"), [("cross_attention", "Cross attention"), ("layer12", "Layer 12"), ("ffn_", "FFN")])
def test_names_of_recipes_are_spoken(name: str, said: str) -> None:
    """As titles."""
    assert spoken(name) == said


def test_no_sign_is_written_that_a_page_cannot_hold() -> None:
    """And line ends are spaces."""
    assert printable("a\n\tb\x00c\ud800") == "a b\ufffdc\ufffd"


def test_path_lies_in_what_leads_to_it() -> None:
    """Step by step, and not letter by letter."""
    assert above("layers.attn.q") == ["layers", "layers.attn", "layers.attn.q"]
    assert lies_in("layers.attn.q", "layers.attn") and belongs("layers.attn.q", {"layers"})
    assert not lies_in("layers.attn2", "layers.attn") and not belongs("layers2", {"layers"})


def test_points_on_the_way_are_left_out_and_corners_stay() -> None:
    """Upwards or across."""
    assert straightened(((0, 0), (0, 5), (0, 9), (4, 9), (7, 9))) == ((0, 0), (0, 9), (7, 9))


def test_counts_are_sums_over_the_parameters_below_a_path() -> None:
    """A tied tensor counts where its owner stands, and what is frozen is said."""
    recipe = composer.load("gpt2", overrides={"norm.trainable": False})
    counts = ParameterCounts(parameters(recipe.program))
    sizes = {name: value.numel() for name, value in recipe.compile(device="meta").named_parameters()}
    below = sum(size for name, size in sizes.items() if name.startswith("layers.0.attn."))
    assert counts.total([""]) == sum(sizes.values())
    assert counts.total(["layers.0.attn"]) == below
    assert counts.shown("head") == "tied"
    assert counts.shown("norm") == f"{short(2 * 768)} frozen"


def test_block_that_reads_nothing_of_the_stream_stands_beside_its_reader() -> None:
    """The rest stays in line."""
    written = flow("a: x", "table: ids", "b: a", "sum: b, table", "c: sum")
    found = split_side_inputs(written)
    assert [item.about.path for item in found.flow.items] == ["a", "b", "sum", "c"]
    ((leaf, edge, _),) = found.beside["sum"]
    assert (leaf.about.path, edge.port) == ("table", "x1")


def test_norm_stands_in_the_box_of_its_only_reader() -> None:
    """One that two blocks read stays a box."""

    def drawn(*reads: str) -> list[str]:
        written = flow(*reads)
        first, *others = written.items
        assert isinstance(first, Leaf)
        norm = replace(first, look=replace(first.look, hue="norm"))
        return [item.about.path for item in fold_norms(replace(written, items=(norm, *others))).items]

    assert drawn("norm: x", "a: norm", "b: a") == ["a", "b"]
    assert drawn("norm: x", "a: norm", "b: a, norm") == ["norm", "a", "b"]


@pytest.mark.parametrize(("by", "title"), [(0.25, "× 0.25"), (768**-0.5, "÷ √768"), (-0.3333333, "× -0.3333"), (2.0, "× 2")])
def test_a_factor_is_a_root_only_where_that_is_shorter(by: float, title: str) -> None:
    """A number that four digits tell is drawn as it is written."""
    assert Scale(by=by).look(BlockView("s")).title == title


@pytest.mark.parametrize(
    ("recipe", "doc", "said"),
    [
        ("rnn_lm", "The recurrent language model of the lectures, an Elman RNN.", "RNN LM"),
        ("three_towers", "A text, an image and a recording, each in a tower.", "Three towers"),
        ("mlp_mixer", "MLPs across patches and across channels, in turn.", "MLP mixer"),
        ("wavenet", "Dilated convolutions, whose skip connections are summed.", "WaveNet"),
        ("mobilenet_v2", "Inverted residuals, in seven stages.", "MobileNet v2"),
        ("unet", "A U-Net of four levels, for segmentation.", "U-Net"),
        ("early_exit", "LayerSkip, a Llama 2 7B that ends after any layer.", "LayerSkip"),
        ("phi2", "Phi-2 with 2.7 billion parameters, whose halves are parallel.", "Phi-2"),
        ("mt5", "Multilingual T5, of size base.", "Multilingual T5"),
        ("switch", "Switch base, T5 base with experts.", "Switch base"),
        ("isab", "", "ISAB"),
        ("mmoe", "Multi-gate mixture of experts on census data, where each of two tasks mixes shared experts.", "MMoE"),
        ("hed", "Holistically-nested edge detection, a VGG-16 whose stages each give a map of edges.", "HED"),
        ("planet", "The world model of PlaNet, whose recurrent state has two parts.", "PlaNet"),
    ],
)
def test_title_is_a_name_and_no_beginning_of_a_sentence(recipe: str, doc: str, said: str) -> None:
    """That of the `doc` where it begins with one, else the recipe's, with the capitals of the field."""
    assert name(recipe, doc) == said


def test_title_of_a_figure_sheet_stands_above_all() -> None:
    """Where the name is another."""
    recipe = 'recipe: r\nfigure: {title: My net}\ninputs: {x: "float[batch, 4]"}\ngraph: {y: {type: linear, out: 4}}\n'
    assert composer.load(recipe).draw().scene.name == "My net"


HOPS = """recipe: r
inputs: {x: "float[batch, 8]"}
graph:
  hops: {repeat: 3, as: hop, graph: {a: {type: linear, out: 8}}}
"""
STACKS = """recipe: r
inputs: {x: "float[batch, 8]"}
graph:
  stacks: {repeat: 3, as: stack, graph: {blocks: {repeat: 4, graph: {a: {type: linear, out: 8}}}}}
"""
PAIRS_OF_EQUALS = """recipe: r
inputs: {x: "float[batch, 8]"}
graph:
  stacks:
    repeat: 2
    as: stack
    graph:
      a1: {type: residual, norm: layernorm, body: {type: ffn, hidden: 4}}
      b1: {type: residual, norm: layernorm, body: {type: ffn, hidden: 4}}
      a2: {type: residual, norm: layernorm, body: {type: ffn, hidden: 4}}
      b2: {type: residual, norm: layernorm, body: {type: ffn, hidden: 4}}
"""


TWINS = """
recipe: twins
inputs: {left: "float[batch, 8]", right: "float[batch, 8]"}
blocks:
  tower:
    inputs: {x: "float[batch, dim]"}
    graph:
      layers: {repeat: 4, graph: {up: {type: linear, out: 8}, act: relu}}
graph:
  one: {type: tower, in: left}
  other: {type: tower, in: right, tie: one}
  both: {type: add, in: [one, other]}
"""
"""Two towers of the same weights: four layers."""
HEADS = {"raft": ["12 updates"], "stylegan": ["8 resolutions"], "planet": [], "latent_diffusion": [], "vq_vae": ["2 + 2 units"]}
"""What the heads of papers count: no stack that is little of the model, and none of which each pass is a box."""


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (HOPS, ["3 hops"]),
        (STACKS, ["3 stacks × 4 blocks"]),
        (PAIRS_OF_EQUALS, ["2 stacks"]),
        (str(next(path for path in FORMS if path.stem == "inverted_residuals")), ["7 stages · 17 bottlenecks"]),
        ("resnet", []),
        ("clip", []),
        ("whisper", ["4 + 4 layers"]),
        ("early_exit", ["32 layers", "31 parallel exits"]),
        ("transformer", ["6 + 6 layers"]),
        (TWINS, ["4 layers"]),
        *((str(next(path for path in PAPERS if path.stem == name)), said) for name, said in HEADS.items()),
    ],
)
def test_passes_are_counted_by_the_words_of_their_author(recipe: str, said: list[str]) -> None:
    """Over all repeats; a stage whose first block stands alone counts it too."""
    model = folded(composer.load(recipe).program)
    assert stacks(model, ParameterCounts(model.parameters)) == said


def test_ids_of_tokens_alone_have_a_token_embedding() -> None:
    """Whatever a group calls what it is given."""
    recipe = composer.load("""recipe: r
inputs: {tokens: "int[batch, time]", user: "int[batch]"}
graph:
  text: {in: tokens, graph: {embed: {type: embedding, vocab: 9, dim: 8}, pool: {type: pool, mode: mean}}}
  person: {in: user, graph: {embed: {type: embedding, vocab: 7, dim: 8}}}
  both: {type: add, in: [text, person]}
""")
    said = {leaf.about.path: leaf.look.title for leaf in build_diagram(folded(recipe.program), Depth()).leaves()}
    assert (said["text.embed"], said["person.embed"]) == ("Token embedding", "Embedding")


def test_blocks_are_called_what_they_compute() -> None:
    """A pattern that only moves axes, one that sums the last axis of both, a convolution of each channel; and names that say
    nothing of an activation are left out.
    """
    recipe = composer.load("""recipe: r
inputs: {x: "float[batch, time, 8]"}
graph:
  turned: {type: rearrange, pattern: b t d -> b d t}
  flat: {type: rearrange, pattern: b d t -> b (d t), in: turned}
  scores: {type: einsum, pattern: "b t d, b s d -> b t s", in: [x, x]}
  mixed: {type: einsum, pattern: "b t s, b s d -> b t d", in: [scores, x]}
  deep: {type: conv1d, out: 8, kernel_size: 3, groups: 8}
  a1: relu
  last_act: relu
  gate: sigmoid
  apart: {compute: abs(gate - deep)}
outputs: {y: apart, flat: flat}
""")
    found = {leaf.about.path: leaf for leaf in build_diagram(folded(recipe.program), Depth()).leaves()}
    assert {path: one.look.title for path, one in found.items() if path[0] in "tfsmd" or path == "apart"} == {
        "turned": "Transpose",
        "flat": "Rearrange",
        "scores": "Inner product",
        "mixed": "Matrix product",
        "deep": "Depthwise convolution",
        "apart": "|gate − deep|",
    }
    assert [found[path].name for path in ("a1", "last_act", "gate")] == ["", "", "gate"]


@pytest.mark.parametrize(
    ("image", "node", "said"),
    [
        ("batch, 3, 8, 8", "{type: concat, axis: -3, in: [conv, conv]}", "along channels"),
        ("batch, channels, height, width", "{type: concat, axis: -3, in: [conv, conv]}", "along channels"),
        ("batch, colors, height, width", "{type: concat, axis: -3, in: [conv, conv]}", "along channels"),
        ("batch, 3, 8, 8", "{type: concat, axis: -3, in: [image, image]}", "along the third-to-last axis"),
        ("batch, 3, 8, 8", "{type: select, axis: -3, index: 0, in: turned}", "index 0 of the third-to-last axis"),
        ("batch, 3, high, wide", "{type: mean, axis: -2, in: conv}", "over high"),
    ],
)
def test_axes_are_called_by_their_names(image: str, node: str, said: str) -> None:
    """Where it is certain what they are: by the name that they have, but for that of features that
    others have taken the place of, and the maps of a convolution channels.
    """
    params = "".join(f"params: {{{name}: 3}}\n" for name in ("channels", "colors") if name in image)
    text = f"recipe: r\n{params}inputs: {{image: 'float[{image}]'}}\ngraph:\n"
    text += "  conv: {type: conv2d, out: 4, kernel_size: 3, padding: 1, in: image}\n"
    text += "  turned: {type: rearrange, pattern: b c h w -> b w c h, in: conv}\n"
    recipe = composer.load(f"{text}  y: {node}\noutputs: {{y: y, turned: turned}}\n")
    leaf = build_diagram(folded(recipe.program), Depth()).by_path["y"]
    assert isinstance(leaf, Leaf)
    assert leaf.look.detail == said


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("{type: new_axis, name: head}", ("Unsqueeze", "new axis head")),
        ("{type: new_axis, name: head, size: 3}", ("Expand", "3 × along head")),
        ("{type: mean, axis: [batch, time]}", ("Mean", "over batch and time")),
        ("{type: mean, axis: [-1, -2]}", ("Mean", "over the last axis and time")),
        ("{type: max, axis: [-2, last, -3]}", ("Max", "over all axes")),
        ("{type: logsumexp, axis: [first, time, -1]}", ("Log-sum-exp", "over all axes")),
        ("{type: sum, axis: [-1, batch, -2]}", ("Sum", "over all axes")),
        ("{type: sum, axis: [-1, -2], in: m}", ("Sum", "over the last two axes")),
        ("{type: min, axis: [last]}", ("Minimum", "over the last axis")),
        ("{type: sum, axis: -2}", ("Sum", "over time")),
        ("{type: sum, axis: first}", ("Sum", "over batch")),
        ("{type: sum, axis: last}", ("Sum", "over the last axis")),
        ("{type: select, axis: last, index: 2}", ("Select", "index 2 of the last axis")),
        ("{type: select, axis: -1, index: 0, in: one}", ("Squeeze", "the last axis")),
        ("{type: sum, axis: -1, in: k}", ("Sum", "over the last axis")),
        ("{type: roll, by: {-2: 1}}", ("Roll", "time by 1")),
        ("{type: slice, axis: time, start: 1}", ("Slice", "time from 1 on")),
        ("{type: slice, axis: time, stop: 4}", ("Slice", "first 4 of time")),
        ("{type: slice, axis: last, start: -3}", ("Slice", "last 3 of the last axis")),
        ("{type: slice, axis: last, stop: -1}", ("Slice", "all but the last of the last axis")),
        ("{type: slice, axis: time, stop: -2}", ("Slice", "all but the last 2 of time")),
        ("{type: slice, axis: last, start: 1, stop: 7, step: 2}", ("Slice", "1:7:2 of the last axis")),
        ("{type: bernoulli, p: 0.9, axes: [batch, time]}", ("Bernoulli", "p 0.9 · B × T")),
        ("{type: stack, in: [x, x], axis: time}", ("Stack", "along a new axis before time")),
        ("{type: stack, in: [x, x]}", ("Stack", "")),
        ("{type: einsum, pattern: 'b t d -> b t', in: [x]}", ("Sum", "b t d → b t")),
        ("{type: einsum, pattern: 'b t d, b t d -> b t d', in: [x, x]}", ("Product", "b t d, b t d → b t d")),
        ("{type: einsum, pattern: 'b t d, k -> b t d', in: [x, k]}", ("Sum of products", "b t d, k → b t d")),
        ("{type: einsum, pattern: 'b t d, k -> b t d k', in: [x, k]}", ("Outer product", "b t d, k → b t d k")),
        ("{compute: 'x * sigmoid(1.7 * x) - x ** 2'}", ("x · σ(1.7 · x) − x²", "")),
        ("{compute: -x / sqrt(1 + float32(x) * x)}", ("−x / √(1 + x · x)", "")),
        ("{compute: k * parts.a - parts.b}", ("k · a − b", "")),
        ('{compute: "where(x == 1, x, 0)"}', ("where(x = 1, x, 0)", "")),
        ("{type: constant, over: {i: 4}, value: exp(-2 * i)}", ("y", "exp(−2 · i) · for i < 4")),
        ("{compute: k * parts.a - others.a}", ("k · parts.a − others.a", "")),
    ],
)
def test_primitives_are_told_as_a_paper_writes_them(node: str, said: tuple[str, str]) -> None:
    """In words of the field, without places of axes, casts, or outputs of nodes."""
    given = "x: 'float[batch, time, 8]', k: 'float[4]', m: 'float[batch, 4, 6]', one: 'float[batch, 1]'"
    text = f"recipe: r\ninputs: {{{given}}}\ngraph:\n"
    text += "".join(f"  {name}: {{type: split, into: [a, b], in: x}}\n" for name in ("parts", "others"))
    text += f"  y: {node}\n" if "in: " in node or "compute" in node else f"  y: {node[:-1]}, in: x}}\n"
    leaf = build_diagram(folded(composer.load(text + "outputs: {y: y, a: parts.a, b: others.a}\n").program), Depth()).by_path["y"]
    assert isinstance(leaf, Leaf) and (leaf.look.title, leaf.look.detail) == said


def test_long_formula_has_the_numbers_that_it_names() -> None:
    """Below the name of its node, where there is no room to tell what each is."""
    text = """recipe: r
params: {apps: 100000, crossed: 1000000}
inputs: {installed: "int[batch]", impression: "int[batch]"}
graph: {cross: {compute: (installed * apps + impression) % crossed}}
"""
    leaf = build_diagram(folded(composer.load(text).program), Depth()).by_path["cross"]
    assert isinstance(leaf, Leaf)
    assert leaf.look.detail.replace("\u00a0", " ") == "(installed · 100 000 + impression) % 1 000 000"


def test_long_formula_of_a_constant_stands_in_lines_below_its_name() -> None:
    """With the axes in a line of their own; beside a sum, what is written above that has room too."""
    text = """recipe: r
inputs: {x: "float[batch, 6, 512]"}
graph:
  waves: {type: constant, over: {t: 6, c: 512}, value: cos((t + 1) / 10000 ** (2 * (c // 2) / 512))}
  moved: {compute: x + waves, axes: {x: b t c, waves: t c}}
  back: {type: linear, out: 512}
"""
    scene = composer.load(text).draw().scene
    (said,) = ([one.text for one in box.texts] for box in scene.boxes if box.about.path == "waves")
    assert said == ["waves", "cos((t + 1) / 10000^(2 · (c // 2) / 512))", "for t < 6, c < 512"]
    assert [*overlaps(scene)] == []


def test_mask_of_data_that_has_its_name_says_it_once() -> None:
    said = [Pairs(pairs=NodeRef("pairs")).words(), Pairs(pairs=NodeRef("seen")).words()]
    assert said == ["pairs", "pairs seen"]


def test_frame_of_a_branch_has_the_name_of_the_branch() -> None:
    """And none has that of its slot."""
    recipe = composer.load("""recipe: r
inputs: {x: "float[batch, time, 8]"}
graph:
  tokens: {type: residual, body: {graph: {a: {type: linear, out: 4}, b: {type: linear, out: 8}}}}
""")
    assert [frame.texts[0].text.split(" · ")[0] for frame in recipe.draw().scene.frames] == ["Tokens"]


@pytest.mark.parametrize(
    ("written", "said"),
    [("(frames + 1) // 2", "ceil(frames / 2)"), ("(time + 3) // 4", "ceil(T / 4)"), ("(time + 2) // 4", "(T + 2) // 4")],
)
def test_lengths_that_are_rounded_up_say_so(written: str, said: str) -> None:
    """And no others."""
    assert size(written) == said


def test_boxes_tell_numbers_that_formulas_name_widths_of_experts_and_groups() -> None:
    """A whole number with all of its digits; a router with its factor, but not one of 1."""
    text = """
recipe: told
params: {cap: 1234567, half: 0.5}
inputs: {x: "float[batch, time, 12]"}
graph:
  norm: {type: groupnorm, groups: 3}
  experts:
    type: moe
    experts: 5
    expert: {type: gated_ffn, hidden: 17}
    shared: {type: gated_ffn, hidden: 29}
    router: {type: top_k_router, top_k: 2, scoring: sigmoid, scaling: 1.7}
  capped: {compute: cap * tanh(experts / cap) + half}
"""
    svg = composer.load(text).draw("overview").svg().replace("\u00a0", " ")
    experts = "5 experts, hidden 17 · top-2 · shared expert, hidden 29 · sigmoid · weights × 1.7"
    assert "cap = 1 234 567 · half = 0.5" in svg and experts in svg
    assert "3 groups" in composer.load(text).draw("block").svg()
    plain = composer.load(text, {"graph.experts.router.scaling": 1.0}).draw("overview").svg()
    assert "weights ×" not in plain


FORMULAS = """recipe: formulas
inputs: {text: "float[batch, words]", image: "float[batch, places]", gate: "float[batch, words]"}
graph:
  fusion: {compute: text * image, axes: {text: b t, image: b i}}
  same: {compute: text * gate}
  gated: {compute: tanh(text + gate * 0.5) * sigmoid(gate - text) + sigmoid(text)}
  longer:
    compute: tanh(of_the_first_one + of_the_second) * of_the_first_one + of_the_second * 2
    in: {of_the_first_one: text, of_the_second: gate}
  longest: {compute: "tanh(text) * tanh(text + 1) * tanh(text + 2) * tanh(text + 3) * tanh(text + 4) * tanh(text + 5)"}
outputs: {f: fusion, s: same, g: gated, l: longer, m: longest}
"""


def test_products_of_other_axes_are_outer_products() -> None:
    """Drawn as a shape where the font of a page has no such sign."""
    figure = composer.load(FORMULAS).draw()
    titles = {box.about.path: box.texts[0].text for box in figure.scene.boxes}
    assert titles["fusion"] == "text ⊗ image"
    assert titles["same"] == "text · gate"
    marks = [*flatten_marks(paint_scene(figure.scene, "light"))]
    texts = [mark.text for mark in marks if isinstance(mark, TextLine)]
    assert not any("⊗" in text for text in texts)
    assert {"text", "image"} <= {*texts}


def test_long_formula_stands_below_the_name_of_its_node() -> None:
    """With its longest names cut; how it begins, where that does not do."""
    figure = composer.load(FORMULAS).draw()
    said = {box.about.path: [text.text for text in box.texts] for box in figure.scene.boxes}
    assert said["gated"] == ["gated", "tanh(text + gate · 0.5) · σ(gate − text) +", "σ(text)"]
    assert said["longer"] == ["longer", "tanh(of_the_first_o… + of_the_second) · of_the_first_o… +", "of_the_second · 2"]
    assert said["longest"] == ["longest", "tanh(text) · tanh(text + 1) ·", "tanh(text + 2) · tanh(text + 3) · tanh(text …"]


def test_frames_of_one_title_are_told_apart_by_their_names() -> None:
    """As boxes are; a name that holds the title takes its place."""
    text = """recipe: twins
inputs: {image: "float[batch, time, 8]", sound: "float[batch, time, 8]"}
blocks:
  tower:
    inputs: {x: "float[batch, time, channels]"}
    graph:
      inner: {repeat: 3, graph: {fc: {type: linear, out: 8}, act: relu, norm: layernorm}}
graph:
  NAMES
outputs: {y: both}
"""
    for first, second, said in (
        ("eye", "ear", ["Tower · eye", "Tower · ear"]),
        ("eye_tower", "tower2", ["Eye tower", "Tower 2"]),
    ):
        names = f"{first}: {{type: tower, in: image}}\n  {second}: {{type: tower, in: sound}}"
        names += f"\n  both: {{type: add, in: [{first}, {second}]}}"
        svg = composer.load(text.replace("NAMES", names)).draw().svg()
        assert all(f">{words}" in svg for words in said)


def test_padding_at_one_end_tells_what_it_appends() -> None:
    """And both ends, or a multiple, are told as a padding."""
    text = 'recipe: p\ninputs: {x: "float[batch, time, 8]"}\ngraph: {y: {type: pad, axis: last, SET, in: x}}\noutputs: {y: y}\n'
    told = {}
    for given in ("after: 1, value: 1", "before: 3", "before: 1, after: 1", "multiple: 4"):
        (box,) = (one for one in composer.load(text.replace("SET", given)).draw().scene.boxes if one.about.path == "y")
        told[given] = [one.text for one in box.texts][:2]
    assert told["after: 1, value: 1"] == ["Append", "1 along the last axis"]
    assert told["before: 3"] == ["Prepend", "3 × 0 along the last axis"]
    assert {told["before: 1, after: 1"][0], told["multiple: 4"][0]} == {"Padding"}


ONE_BLOCK = """recipe: one_block
inputs: {x: "float[batch, time, 8]"}
blocks:
  mixer:
    doc: Two maps.
    inputs: {x: "float[batch, time, dim]"}
    graph:
      up: {type: linear, out: 16}
      down: {type: linear, out: 8}
graph:
  first: {type: linear, out: 8, in: x}
  same: identity
  mixed:
    type: residual
    norm: layernorm
    body:
      graph:
        inner: {type: mixer, in: input}
  last: {type: add, in: [mixed, same]}
outputs: {y: last}
"""


def test_one_block_of_a_graph_and_an_identity_have_no_frame_and_no_box() -> None:
    """At `block`; at `full` and where an option names them, they are there."""
    recipe = composer.load(ONE_BLOCK)
    scene = recipe.draw().scene
    assert not scene.frames
    assert {"mixed.body.inner", "first"} <= {box.about.path for box in scene.boxes}
    assert "same" not in {box.about.path for box in scene.boxes}
    assert_every_edge("one_block", recipe.program, scene)
    assert "same" in {box.about.path for box in recipe.draw("full").scene.boxes}
    assert [frame.about.path for frame in recipe.draw(labels={"mixed.body": "Mixed"}).scene.frames] == ["mixed.body"]
