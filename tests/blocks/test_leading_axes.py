"""Axes in front of attention and positions: windows, rows and columns, frames, each computed by itself."""

from __future__ import annotations

from itertools import product

import pytest
import torch

import composer
from composer.cost.costs import costs
from composer.decode import DecodeError, session
from composer.lower import Model, lower
from tests.blocks.alone import recipe, refusal

B, P, Q, N, D, H = 2, 3, 2, 5, 16, 2
FRONT = f"float[batch, p, q, n, {D}]"
STREAM = f"float[batch, n, {D}]"


def double(node: str, wires: str = "", **inputs: str) -> Model:
    """Return the model of one block in float64, its parameters drawn anew."""
    model = recipe(node, wires, **inputs).compile(seed=0, dtype=torch.float64).eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
    return model


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


ROTARY = "positions: {type: rotary, layout: interleaved}"


@pytest.mark.parametrize(
    ("node", "wires"),
    [
        (f"type: attention, heads: {H}", "x"),
        (f"type: attention, heads: {H}, kv_heads: 1, mask: causal, qk_norm: rmsnorm, {ROTARY}", "x"),
        (f"type: attention, heads: {H}, mask: window(2), sinks: true, output_gate: sigmoid", "x"),
        (f"type: attention, heads: {H}, mask: chunk(2) and causal, softcap: 2, out: {{type: linear, out: {D}}}", "x"),
        (f"type: attention, heads: {H}, mask: strided(2) or local(1)", "x"),
        (f"type: attention, heads: {H}, {ROTARY}", "{x: x, memory: x}"),
        (f"type: cross_attention, heads: {H}, out: none", "{x: x, memory: x}"),
        (f"type: scaled_dot_product, heads: {H}, mask: causal", "{q: x, k: x, v: x}"),
        ("type: learned_positions, max_length: 9", "x"),
        ("type: sinusoidal_positions", "x"),
    ],
)  # fmt: skip
@torch.no_grad()
def test_axes_in_front_are_computed_one_by_one(node: str, wires: str) -> None:
    """What stands in a window is what a model of windows alone gives it."""
    windows, one = double(node, wires, x=FRONT), double(node, wires, x=STREAM)
    one.load_state_dict(windows.state_dict())
    x = numbers(B, P, Q, N, D)
    y = windows(x)[0]
    assert y.shape[:-1] == x.shape[:-1]
    for p, q in product(range(P), range(Q)):
        torch.testing.assert_close(y[:, p, q], one(x[:, p, q])[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "axes", ["n, n", "p, q, h, n, n", "q, h, n, n", "batch, h, n, n", "batch, p, h, n, n", "batch, p, q, h, n, n"]
)
@pytest.mark.parametrize("softcap", ["", ", softcap: 3"])
@torch.no_grad()
def test_masks_and_biases_stand_at_the_first_or_the_last_axes_in_front(axes: str, softcap: str) -> None:
    """A bias of all windows, of each window, of each text; regions of windows; padding of texts."""
    axes = axes if "h" in axes else f"h, {axes}"
    lengths = {"batch": B, "p": P, "q": Q, "n": N, "h": H}
    front = axes.split(", ")[:-3]
    bias = numbers(*(lengths[axis] for axis in axes.split(", ")), seed=1)
    declared = axes.replace("h", str(H)).replace(f"batc{H}", "batch")
    names = {"regions": "int[p, q, n]", "kept": "bool[batch, n]", "rows": "int[q]"}
    node = f"type: attention, heads: {H}, mask: documents(regions) and (valid(kept) or prefix(rows)){softcap}"
    model = double(node, "{x: x, bias: bias}", x=FRONT, bias=f"float[{declared}]", **names)
    x, regions = numbers(B, P, Q, N, D), torch.randint(0, 2, (P, Q, N), generator=torch.Generator().manual_seed(2))
    kept, rows = torch.tensor([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0]]).bool(), torch.tensor([1, 2])
    given = {"x": x, "bias": bias, "regions": regions, "kept": kept, "rows": rows}
    attn = model.block
    q, k, v = (each(x).unflatten(-1, (H, -1)).transpose(-2, -3) for each in (attn.q, attn.k, attn.v))
    scores = q @ k.mT / (D // H) ** 0.5
    scores = scores if not softcap else 3 * torch.tanh(scores / 3)
    whole = ["batch", "p", "q"]
    missing = 3 - len(front)
    place = (*[slice(None)] * len(front), *[None] * missing) if front and front == whole[: len(front)] else (None,) * missing
    scores = scores + bias[place]
    allowed = regions[..., :, None] == regions[..., None, :]  # [P, Q, N, N]
    early = torch.arange(N) < rows[:, None]  # [Q, N]
    allowed = allowed[None] & (kept[:, None, None, None, :] | early[None, None, :, None, :])
    scores = scores.masked_fill(~allowed[:, :, :, None], -torch.inf)
    expected = attn.out((scores.softmax(-1).nan_to_num() @ v).transpose(-2, -3).flatten(-2))
    torch.testing.assert_close(model(**given)[0], expected, rtol=0, atol=1e-12)


@torch.no_grad()
def test_every_output_has_the_axes_in_front() -> None:
    """Keys, values, scores and weights, and the keys of one attention read by another."""
    graph = f"""recipe: several
inputs: {{x: "{FRONT}", columns: "int[q, n]"}}
graph:
  first: {{type: attention, heads: {H}, mask: causal, positions: rotary, in: {{x: x, position_ids: columns}}}}
  again: {{type: attention, heads: {H}, in: {{x: first, k: first.k, v: first.v}}}}
outputs: {{y: again, k: first.k, weights: first.weights}}
"""
    model = composer.load(graph).compile(seed=0, dtype=torch.float64).eval()
    columns = torch.tensor([[0, 2, 3, 5, 8], [1, 2, 4, 4, 6]])
    x = numbers(B, P, Q, N, D)
    y, k, weights = model(x=x, columns=columns)[:3]
    assert [tuple(each.shape) for each in (k, weights)] == [(B, P, Q, N, H, D // H), (B, P, Q, H, N, N)]
    alone = composer.load(graph.replace(FRONT, STREAM).replace("int[q, n]", "int[n]")).compile(dtype=torch.float64).eval()
    alone.load_state_dict(model.state_dict())
    for p, q in product(range(P), range(Q)):
        theirs = alone(x=x[:, p, q], columns=columns[q])
        for ours, other in zip((y, k, weights), theirs, strict=False):
            torch.testing.assert_close(ours[:, p, q], other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("node", ["alibi", "t5_bias"])
@torch.no_grad()
def test_a_bias_of_scores_has_the_axes_of_its_positions(node: str) -> None:
    """None of counted ones, and all where positions are those of windows."""
    counted = double(f"type: {node}, heads: 2", "x", x=FRONT)
    assert counted(numbers(B, P, Q, N, D))[0].shape == (2, N, N)
    wires = "{x: x, position_ids: at, memory_position_ids: at}"
    given = double(f"type: {node}, heads: 2", wires, x=FRONT, at="int[q, n]")
    at = torch.tensor([[0, 1, 2, 3, 4], [3, 1, 4, 1, 5]])
    given.load_state_dict(counted.state_dict())
    y = given(x=numbers(B, P, Q, N, D), at=at)[0]
    assert y.shape == (B, P, Q, 2, N, N)
    torch.testing.assert_close(y[0, 1, 0], counted(numbers(B, P, Q, N, D))[0])
    torch.testing.assert_close(
        y[:, :, :, :, 1, 3], y[:, :, :, :, 1, 1].where(torch.tensor([[False], [True]]), y[:, :, :, :, 1, 3])
    )


def test_the_code_is_what_a_person_writes() -> None:
    """Axes are folded where attention has several in front of it, and nothing is said of them elsewhere."""
    node = f"type: attention, heads: {H}"
    text = lower(recipe(node, x=FRONT).program).text
    assert "self.block(x.flatten(0, 2), mask=mask).unflatten(0, x.shape[:3])" in text
    plain = lower(recipe(node, x=STREAM).program).text
    assert "self.block(x, mask=mask)" in plain
    assert "unflatten(0" not in plain


@pytest.mark.parametrize("mask", ["full", "causal", "causal and window(3)"])
def test_costs_are_those_of_each_window(mask: str) -> None:
    """FLOPs and visible pairs, times the number of windows."""
    node = f"type: attention, heads: {H}, mask: {mask}"
    windows = costs(recipe(node, x=FRONT).program, {"batch": 2, "p": 3, "q": 4, "n": 7}).flops
    alone = costs(recipe(node, x=STREAM).program, {"batch": 24, "n": 7}).flops
    assert (windows.dense, windows.masked) == (alone.dense, alone.masked)
    assert (windows.dense > windows.masked) == (mask != "full")


HEAD = """recipe: axial
task: causal_lm
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?", given: "int[batch, time]"}
positions: {time: given}
graph:
  embed: {type: embedding, vocab: 11, dim: 24}
  rows: {type: rearrange, pattern: "b t (n d) -> b n t d", sizes: [3]}
"""
TAIL = """  back: {type: rearrange, pattern: "b n t d -> b t (n d)"}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""
TURNED = '{type: rearrange, pattern: "b n t d -> b t n d"}'
BACK = '{type: rearrange, pattern: "b t n d -> b n t d"}'
AXIAL = {
    "along the text": "  a: {type: attention, heads: 2, mask: causal and valid(valid), positions: rotary, qk_norm: rmsnorm}\n",
    "window": "  a: {type: attention, heads: 2, kv_heads: 1, mask: causal and window(2), sinks: true}\n",
    "shared": "  s: {type: attention, heads: 2, mask: causal}\n"
    "  a: {type: attention, heads: 2, mask: causal, in: {x: s, k: s.k, v: s.v}}\n",
    "bias": "  p: {type: learned_positions, max_length: 40}\n  bias: {type: t5_bias, heads: 2}\n"
    "  a: {type: attention, heads: 2, mask: causal, in: {x: p, bias: bias}}\n",
    "over the rows": f"  t: {TURNED}\n  m: {{type: attention, heads: 2, positions: rotary, out: {{type: linear, out: 8}}}}\n"
    f"  a: {BACK}\n",
    "primitive": "  a: {type: scaled_dot_product, heads: 2, mask: causal, in: {q: rows, k: rows, v: rows}}\n",
}


def axial(body: str, front: str = "b n") -> str:
    """Return the recipe of a body of `AXIAL`, its rows behind the batch or before it."""
    head = HEAD if "valid(" in AXIAL[body] else HEAD.replace(', valid: "bool[batch, time]?"', "")
    return (head + AXIAL[body] + TAIL).replace("b n t d", f"{front} t d")


@pytest.mark.parametrize("front", ["b n", "n b"])
@pytest.mark.parametrize("body", AXIAL)
@torch.no_grad()
def test_a_session_of_rows_equals_one_call(body: str, front: str) -> None:
    """Attention along the text for each row, and over the rows of a token; rows of the batch change their places on the way."""
    loaded = composer.load(axial(body, front))
    assert not [found for found in loaded.check() if found.severity == "error"]
    model = loaded.compile(dtype=torch.float64, seed=0).eval()
    tokens = torch.randint(0, 11, (3, 7), generator=torch.Generator().manual_seed(0))
    given = {"tokens": tokens, "given": torch.arange(7) + torch.tensor([[0], [1], [3]])}
    if "valid(" in AXIAL[body]:
        given["valid"] = torch.arange(7) >= torch.tensor([[0], [2], [1]])
    whole = model(**given).logits
    order = torch.tensor([2, 0, 1])
    for step in (1, 2, 7):
        found = []
        with session(model) as opened:
            for start in range(0, 7, step):
                rows = torch.arange(3) if start < 3 else order
                if start and start - step < 3 <= start:
                    opened.reorder(order)
                found.append(model(**{name: value[rows, start : start + step] for name, value in given.items()}).logits)
        for piece, start in zip(found, range(0, 7, step), strict=True):
            rows = torch.arange(3) if start < 3 else order
            torch.testing.assert_close(piece, whole[rows, start : start + step], rtol=0, atol=1e-12)


@pytest.mark.parametrize("front", ["b n", "n b"])
@torch.no_grad()
def test_positions_that_are_left_out_are_counted(front: str) -> None:
    """Optional positions that the recipe names are counted from 0 where none are given, in a session too."""
    text = axial("along the text", front).replace('given: "int[batch, time]"', 'given: "int[batch, time]?"')
    model = composer.load(text).compile(dtype=torch.float64, seed=0).eval()
    tokens = torch.randint(0, 11, (3, 7), generator=torch.Generator().manual_seed(0))
    whole = model(tokens).logits
    torch.testing.assert_close(whole, model(tokens, given=torch.arange(7).expand(3, 7)).logits, rtol=0, atol=1e-12)
    with session(model):
        pieces = [model(piece).logits for piece in tokens.split(3, 1)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=0, atol=1e-12)


READ = """recipe: read
task: seq2seq_lm
inputs: {source: "int[batch, length]", target: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 24, in: target}
  other: {type: embedding, vocab: 11, dim: 24, in: source}
  rows: {type: rearrange, pattern: "b t (n d) -> FRONT t d", sizes: [3], in: other}
  seen: {type: attention, heads: 2}
  memory: {type: rearrange, pattern: "FRONT t d -> b t (n d)", sizes: SIZES}
  a: {type: cross_attention, heads: 2, in: {x: embed, memory: memory}}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


@pytest.mark.parametrize(("front", "sizes"), [("b n", "[]"), ("n b", "[]"), ("(n b)", "[3]")])
@torch.no_grad()
def test_rows_of_an_encoder_change_their_places(front: str, sizes: str) -> None:
    """What a session computes once, with axes in front; where these are merged, it is computed again."""
    model = composer.load(READ.replace("FRONT", front).replace("SIZES", sizes)).compile(dtype=torch.float64, seed=0).eval()
    generator = torch.Generator().manual_seed(0)
    tokens, source = (torch.randint(0, 11, (3, length), generator=generator) for length in (6, 5))
    whole, order = model(source, tokens).logits, torch.tensor([2, 0, 0, 1])
    with session(model) as opened:
        model(source, tokens[:, :3])
        opened.reorder(order)
        found = model(source[order], tokens[order, 3:]).logits
    torch.testing.assert_close(found, whole[order, 3:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("node", ["{type: attention, heads: 2, mask: causal}", "{type: gru, hidden: 8}"])
def test_rows_that_are_merged_with_an_axis_keep_their_places(node: str) -> None:
    """In which order they are merged is not in the type, so a session refuses to select some."""
    merged, apart = "(n b) t d", '"(n b) t d -> b t (n d)", sizes: [3]'
    text = HEAD.replace("positions: {time: given}\n", "") + f"  a: {node}\n" + TAIL.replace('"b n t d -> b t (n d)"', apart)
    model = composer.load(text.replace("b n t d", merged)).compile(seed=0).eval()
    tokens = torch.zeros(2, 4, dtype=torch.long)
    with session(model) as opened:
        model(tokens, given=tokens)
        with pytest.raises(DecodeError, match="`a` keeps values in which the rows of the batch are merged with another axis"):
            opened.reorder(torch.tensor([1, 0]))
        assert opened.length == 4


def test_only_the_axis_of_positions_can_look_ahead() -> None:
    """Full attention over rows is none along the text; full attention along the text sees ahead, whatever stands in front."""
    ahead = AXIAL["primitive"].replace("causal", "full")
    text = (
        HEAD.replace(', valid: "bool[batch, time]?"', "")
        .replace("positions: {time: given}\n", "")
        .replace(', given: "int[batch, time]"', "")
    )
    found = composer.load(text + ahead + TAIL).check()
    assert [each.code for each in found if each.severity == "error"] == ["not-causal"]
    rows = composer.load(text + AXIAL["over the rows"] + TAIL).check()
    assert not [each for each in rows if each.severity == "error"]


@pytest.mark.parametrize(
    ("node", "wires", "inputs", "said"),
    [
        (f"type: attention, heads: {H}, mask: valid(m)", "", {"m": "bool[p, n]"},
         "m: the mask valid takes bool[batch, key] with the axes [batch, p, q] in front, all, the first or the "
         "last of them, not bool[p, n]"),
        (f"type: attention, heads: {H}", "{x: x, memory: m}", {"m": "float[batch, q, p, s, 16]"},
         "m: port memory of attention takes float[batch, source, memory_dim] with the axes [batch, p, q] in front, all of them, "
         "not float[batch, q, p, s, 16]"),
        (f"type: attention, heads: {H}", "{x: x, bias: m}", {"m": "float[p, 2, n, n]"},
         "m: port bias of attention takes float[..., heads, time, source] with the axes [batch, p, q] in front, all, the first "
         "or the last of them, not float[p, 2, n, n]"),
        ("type: conv1d, out: 4, kernel_size: 3", "x", {},
         "x: port x of conv1d takes float[batch, time, dim], not float[batch, p, q, n, 16]: it has 5 axes"),
    ],
)  # fmt: skip
def test_other_axes_in_front_are_refused(node: str, wires: str, inputs: dict[str, str], said: str) -> None:
    """Where they stand, with the axes that are wanted."""
    assert refusal(node, wires, x=FRONT, **inputs) == said


def test_what_could_be_the_first_or_the_last_axes_is_refused() -> None:
    """Axes are not matched by their sizes."""
    said = refusal(f"type: attention, heads: {H}, mask: valid(m)", x="float[4, p, 4, n, 16]", m="bool[4, n]")
    assert said.endswith("with the axes [4, p, 4] in front, and bool[4, n] can have the first or the last of them")
