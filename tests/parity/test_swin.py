"""Swin, written as a recipe: shifted windows are axes in front of attention, with a bias of relative positions and regions that
do not see each other.
"""

from __future__ import annotations

import torch
from transformers import PreTrainedModel, SwinConfig, SwinModel

import composer
from composer.cost.costs import costs
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from tests.parity.reference import perturbed, published

WINDOW = 4
SWIN = """recipe: swin
task: encoder
blocks:
  roll_high:
    params: {by: {type: int, required: true}, high: {type: int, required: true}}
    inputs: {x: "float[batch, high, wide, dim]"}
    graph:
      named: {type: rearrange, pattern: batch high wide dim -> batch high wide dim}
      cut: {type: split, into: [first, last], sizes: [by, high - by], axis: high}
      y: {type: concat, axis: high, in: [cut.last, cut.first]}
  roll_wide:
    params: {by: {type: int, required: true}, wide: {type: int, required: true}}
    inputs: {x: "float[batch, high, wide, dim]"}
    graph:
      named: {type: rearrange, pattern: batch high wide dim -> batch high wide dim}
      cut: {type: split, into: [first, last], sizes: [by, wide - by], axis: wide}
      y: {type: concat, axis: wide, in: [cut.last, cut.first]}
  window_attention:
    params: {heads: {type: int, required: true}, shifted: {type: bool, default: false}, tall: 1, broad: 1}
    inputs: {x: "float[batch, high, wide, dim]", offset: "int[n, n]", regions: "int[p, q, n]"}
    graph:
      up: {type: roll_high, by: shift, high: tall, in: x, when: shifted}
      left: {type: roll_wide, by: shift, wide: broad, when: shifted}
      cut:
        type: rearrange
        pattern: b (p i) (q j) c -> b p q (i j) c
        sizes: [tall // window, broad // window]
        in: left if shifted else x
      table: {type: embedding, vocab: (2 * window - 1) ** 2, dim: heads, in: offset}
      bias: {type: rearrange, pattern: "q k h -> h q k"}
      attn: {type: attention, heads: heads, bias: true, mask: documents(regions) if shifted else full, in: {x: cut, bias: bias}}
      back: {type: rearrange, pattern: "b p q (i j) c -> b (p i) (q j) c", sizes: [window]}
      down: {type: roll_high, by: tall - shift, high: tall, when: shifted}
      right: {type: roll_wide, by: broad - shift, wide: broad, when: shifted}
      y: {type: identity, in: right if shifted else back}
  stage:
    params: {heads: {type: int, required: true}, tall: 1, broad: 1}
    inputs: {x: "float[batch, high, wide, dim]", offset: "int[n, n]", regions: "int[p, q, n]"}
    graph:
      blocks:
        repeat: 2
        in: x
        graph:
          norm: {type: layernorm, eps: 1e-5}
          attn:
            type: window_attention
            heads: heads
            shifted: layer % 2 == 1
            tall: tall
            broad: broad
            in: {offset: offset, regions: regions}
          sum: {type: add, in: [input, attn]}
          ffn: {type: residual, norm: {type: layernorm, eps: 1e-5}, body: {type: ffn, hidden: 2 * dim}}
params: {window: 4, shift: 2, tall: 16, broad: 24}
inputs:
  image: float[batch, 3, 4 * tall, 4 * broad]
  offset: int[window ** 2, window ** 2]
  regions: int[tall // window, broad // window, window ** 2]
  fewer: int[tall // (2 * window), broad // (2 * window), window ** 2]
graph:
  patches: {type: conv2d, out: 16, kernel_size: 4, stride: 4, in: image}
  last: {type: rearrange, pattern: batch dim high wide -> batch high wide dim}
  norm: {type: layernorm, eps: 1e-5}
  first: {type: stage, heads: 2, tall: tall, broad: broad, in: {x: norm, offset: offset, regions: regions}}
  four: {type: rearrange, pattern: "b (h i) (w j) c -> b h w (j i c)", sizes: [tall // 2, broad // 2]}
  merged: {type: layernorm, eps: 1e-5}
  reduced: {type: linear, out: 32, bias: false}
  second: {type: stage, heads: 4, tall: tall // 2, broad: broad // 2, in: {x: reduced, offset: offset, regions: fewer}}
  end: {type: layernorm, eps: 1e-5}
outputs: {hidden: end}
"""
RULES = """checkpoints:
  swin:
    rules:
      patches.*: embeddings.patch_embeddings.projection.*
      norm.*: embeddings.norm.*
      merged.*: encoder.layers.0.downsample.norm.*
      reduced.*: encoder.layers.0.downsample.reduction.*
      end.*: layernorm.*
"""
BLOCK = """      STAGE.blocks.<i>.norm.*: encoder.layers.NUMBER.blocks.<i>.layernorm_before.*
      STAGE.blocks.<i>.attn.attn.(q|k|v).*: encoder.layers.NUMBER.blocks.<i>.attention.self.(query|key|value).*
      STAGE.blocks.<i>.attn.attn.out.*: encoder.layers.NUMBER.blocks.<i>.attention.output.dense.*
      STAGE.blocks.<i>.attn.table.weight: encoder.layers.NUMBER.blocks.<i>.attention.self.relative_position_bias_table
      STAGE.blocks.<i>.ffn.norm.*: encoder.layers.NUMBER.blocks.<i>.layernorm_after.*
      STAGE.blocks.<i>.ffn.body.up.*: encoder.layers.NUMBER.blocks.<i>.intermediate.dense.*
      STAGE.blocks.<i>.ffn.body.down.*: encoder.layers.NUMBER.blocks.<i>.output.dense.*
"""


def offsets() -> torch.Tensor:
    """Return the row of the table for each pair of positions of a window, by a plain loop."""
    rows = torch.zeros(WINDOW**2, WINDOW**2, dtype=torch.long)
    for q in range(WINDOW**2):
        for k in range(WINDOW**2):
            down, right = q // WINDOW - k // WINDOW, q % WINDOW - k % WINDOW
            rows[q, k] = (down + WINDOW - 1) * (2 * WINDOW - 1) + right + WINDOW - 1
    return rows


def regions(high: int, wide: int, shift: int = WINDOW // 2) -> torch.Tensor:
    """Return the part of the shifted image in which each position of each window lies: [p, q, n]."""
    found = torch.zeros(high // WINDOW, wide // WINDOW, WINDOW**2, dtype=torch.long)
    for y in range(high):
        for x in range(wide):
            rows, columns = ((at >= size - WINDOW) + (at >= size - shift) for at, size in ((y, high), (x, wide)))
            found[y // WINDOW, x // WINDOW, y % WINDOW * WINDOW + x % WINDOW] = 3 * rows + columns
    return found


def reference() -> PreTrainedModel:
    """Return transformers' model, with weights that are nowhere zero."""
    config = SwinConfig(
        image_size=64, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=WINDOW, num_channels=3, mlp_ratio=2.0
    )
    return perturbed(SwinModel(config))


@torch.no_grad()
def test_shifted_windows_are_those_of_transformers() -> None:
    """Two stages of two blocks each, on an image that is no square; weights come back bit for bit."""
    torch.manual_seed(0)
    theirs = reference().eval()
    rules = "".join(BLOCK.replace("STAGE", name).replace("NUMBER", str(n)) for n, name in enumerate(("first", "second")))
    recipe = composer.load(SWIN + RULES + rules)
    assert [found for found in recipe.check() if found.code != "head-size"] == []
    model = recipe.compile(seed=0).eval()
    load_published(model, published(theirs))
    given = {"image": torch.randn(2, 3, 64, 96), "offset": offsets(), "regions": regions(16, 24), "fewer": regions(8, 12)}
    expected = theirs(given["image"]).last_hidden_state
    hidden = model(**given).hidden.flatten(1, 2)
    torch.testing.assert_close(hidden, expected, rtol=0, atol=1e-5 * expected.abs().max().item())
    state, ours = published(theirs), model.state_dict()
    assert recipe.program.untyped.recipe.checkpoints is not None
    saved = mapping(recipe.program.untyped.recipe.checkpoints, "swin", shapes_of(ours), recipe.program.untyped.params).save(ours)
    assert saved.keys() <= state.keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in saved.items())


def test_costs_are_those_of_each_window() -> None:
    """Of the attention of the first block: 24 windows of 16 positions."""
    program = composer.load(SWIN).program
    first = program.root["first"]
    windows, positions, dim = 24, WINDOW**2, 16
    maps, pairs = 4 * 2 * positions * dim * dim, 2 * 2 * positions * positions * dim
    small = composer.load('recipe: one\ninputs: {x: "float[batch, p, 16, 16]"}\ngraph: {a: {type: attention, heads: 2}}\n')
    assert first.name == "first"
    assert costs(small.program, {"batch": 3, "p": 8}).flops.dense == windows * (maps + pairs)
