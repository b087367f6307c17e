"""Swin's shifted windows and its relative bias, up to the attention, against transformers' functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers.models.swin.modeling_swin import SwinLayer, SwinRelativePositionBias, window_partition, window_reverse

import composer
from composer.lower import Model

WINDOWS = """
recipe: windows
inputs: {image: "float[batch, high, wide, 6]"}
params: {window: 4, shift: 2, heads: 3}
blocks:
  windows:
    params: {heads: {type: int, required: true}, window: 7, shift: 0}
    inputs: {x: "float[batch, high, wide, dim]"}
    graph:
      lower: {type: pad, axis: high, multiple: window, in: x}
      filled: {type: pad, axis: wide, multiple: window}
      moved: {type: roll, by: {high: -shift, wide: -shift}}
      cut: {type: rearrange, pattern: "b (p i) (q j) c -> b p q (i j) c", lengths: {i: window, j: window}}
      region:
        type: constant
        over: {r: high, c: wide}
        value: "3 * ((r >= high - window) + (r >= high - shift)) + (c >= wide - window) + (c >= wide - shift)"
        in: {like: filled}
      regions: {type: rearrange, pattern: "(p i) (q j) -> p q (i j)", lengths: {i: window, j: window}}
      offset:
        type: constant
        over: {q: window ** 2, k: window ** 2}
        value: "(q // window - k // window + window - 1) * (2 * window - 1) + q % window - k % window + window - 1"
      table: {type: parameter, shape: [(2 * window - 1) ** 2, heads]}
      bias: {type: gather, axis: first, in: {x: table, index: offset}}
      by_head: {type: rearrange, pattern: "q k h -> h q k"}
      joined: {type: rearrange, pattern: "b p q (high wide) c -> b (p high) (q wide) c", lengths: {wide: window}, in: cut}
      back: {type: roll, by: {high: shift, wide: shift}}
      upper: {type: slice, axis: high, in: {x: back, like: x}}
      y: {type: slice, axis: wide, in: {x: upper, like: x}}
    outputs: {y: y, pieces: cut, places: regions, scores: by_head}
graph:
  w: {type: windows, heads: heads, window: window, shift: shift, in: image}
outputs: {y: w, pieces: w.pieces, places: w.places, scores: w.scores}
"""


def windows(high: str, wide: str, window: int, shift: int) -> Model:
    """Return the model, for images of any size or of one."""
    text = WINDOWS.replace("high, wide, 6", f"{high}, {wide}, 6")
    recipe = composer.load(text, {"window": window, "shift": shift})
    assert not [found for found in recipe.check() if found.severity == "error"]
    return recipe.compile(seed=0).eval()


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("window", "shift"), [(4, 2), (3, 1), (7, 3), (2, 1), (4, 0)])
@torch.no_grad()
def test_windows_are_those_of_transformers(window: int, shift: int, known: bool) -> None:
    """Bit for bit, for several sizes of images, those that windows do not divide among them, and sizes known before or not."""
    layer: Any = SimpleNamespace(window_size=window, shift_size=shift)
    model = None if known else windows("high", "wide", window, shift)
    for high, wide in ((8, 12), (7, 14), (9, 8), (21, 15)):
        model = windows(str(high), str(wide), window, shift) if known else model
        assert model is not None
        image = torch.randn(2, high, wide, 6)
        y, pieces, places, scores, _ = model(image)
        assert torch.equal(y, image)  # there and back
        filled = torch.nn.functional.pad(image, (0, 0, 0, -wide % window, 0, -high % window))
        rows, columns = filled.shape[1:3]
        moved = torch.roll(filled, (-shift, -shift), (1, 2))
        theirs = window_partition(moved, window)
        assert torch.equal(pieces.reshape(theirs.shape), theirs)
        assert torch.equal(window_reverse(pieces.reshape(theirs.shape), window, rows, columns), moved)
        if shift:
            ours = places.reshape(-1, 1, window * window) == places.reshape(-1, window * window, 1)
            mask = SwinLayer.get_attn_mask(layer, rows, columns, torch.float32, image.device)
            assert mask is not None and torch.equal(ours, mask == 0)
        bias = SwinRelativePositionBias(3, (window, window))
        bias.relative_position_bias_table.copy_(model.w.table.weight)
        assert torch.equal(scores, bias()[0])


def test_constants_are_not_saved() -> None:
    """The state has the table, and of each constant the number that tells the dtype; models made on the meta device compute the
    same, whether they are given memory or take the tensors as their own.
    """
    model = windows("high", "wide", 4, 2)
    state = model.state_dict()
    assert {name: tuple(value.shape) for name, value in state.items()} == {
        "w.region.one": (), "w.offset.one": (), "w.table.weight": (49, 3),
    }  # fmt: skip
    filled = model.recipe.compile(device="meta").to_empty(device="cpu")
    filled.load_state_dict(state, strict=True)
    assigned = model.recipe.compile(device="meta")
    assigned.load_state_dict(state, strict=True, assign=True)
    image = torch.randn(1, 8, 4, 6)
    for again in (filled, assigned):
        assert all(torch.equal(a, b) for a, b in zip(model(image)[:-1], again(image)[:-1], strict=True))


@torch.no_grad()
def test_windows_compile_without_a_break() -> None:
    """Into one program, that also takes another size."""
    model = windows("high", "wide", 4, 2)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for image in (torch.randn(1, 8, 12, 6), torch.randn(1, 12, 12, 6)):
        assert all(torch.equal(a, b) for a, b in zip(model(image)[:-1], compiled(image)[:-1], strict=True))
