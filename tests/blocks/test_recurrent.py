"""Recurrent layers against torch's own, against their formulas, and against themselves in pieces."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import composer
from composer.decode import DecodeError, session

D, H, B, T = 5, 4, 3, 6
TORCH = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
SHAPES = [{}, {"layers": 2}, {"bidirectional": True}, {"layers": 3, "bidirectional": True}]


def layer(kind: str, *, states: bool = True, **fields: Any) -> Any:
    """Return a recipe of one layer as a float64 module, with its states wired in and out."""
    count = fields.get("layers", 1) * (2 if fields.get("bidirectional") else 1)
    names = ["h", "c"] if kind == "lstm" else ["h"]
    written = "".join(f", {name}: {str(value).lower()}" for name, value in fields.items())
    wires = "".join(f", {name}: {name}" for name in names) if states else ""
    inputs = "".join(f"  {name}: float[batch, {count}, {H}]\n" for name in names) if states else ""
    text = f"recipe: one\ninputs:\n  x: float[batch, time, {D}]\n{inputs}graph:\n"
    text += f"  layer: {{type: {kind}, hidden: {H}{written}, in: {{x: x{wires}}}}}\n"
    text += "outputs:\n  y: layer\n" + "".join(f"  {name}: layer.{name}\n" for name in names)
    return composer.load(text).compile(seed=0).double()


def given(kind: str, count: int) -> list[torch.Tensor]:
    """Return an input and states, [B, T, D] and [B, layers · directions, H]."""
    generator = torch.Generator().manual_seed(1)
    shapes = [(B, T, D), *[(B, count, H)] * (2 if kind == "lstm" else 1)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", TORCH)
def test_outputs_states_and_gradients_are_those_of_torch(kind: str, shape: dict[str, Any]) -> None:
    """With torch's parameters under the same names, one for one."""
    ours = layer(kind, **shape)
    theirs = TORCH[kind](D, H, shape.get("layers", 1), batch_first=True, bidirectional=shape.get("bidirectional", False)).double()
    ours.layer.load_state_dict(theirs.state_dict(), strict=True)
    x, *states = given(kind, shape.get("layers", 1) * (2 if shape.get("bidirectional") else 1))
    hx = [state.transpose(0, 1).contiguous() for state in states]
    y, after = theirs(x, tuple(hx) if kind == "lstm" else hx[0])
    expected = [y, *(state.transpose(0, 1) for state in (after if kind == "lstm" else [after]))]
    real = list(ours(x, *states)[:-1])
    torch.testing.assert_close(real, expected, rtol=0, atol=1e-12)
    for values in (real, expected):
        sum(value.sin().sum() for value in values).backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(ours.layer.get_parameter(name).grad, parameter.grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", TORCH)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_axis_of_the_states_has_a_name(kind: str, shape: dict[str, Any]) -> None:
    """One for all layers and directions, the same for what is wired in and for what comes out."""
    written = "".join(f", {name}: {str(value).lower()}" for name, value in shape.items())
    text = f"""
recipe: one
inputs: {{x: "float[batch, time, {D}]"}}
graph:
  layer: {{type: {kind}, hidden: {H}{written}, in: x}}
  mean: {{type: mean, axis: states, in: layer.h}}
outputs: {{mean: mean, h: layer.h}}
"""
    model = composer.load(text).compile(seed=0).double()
    found = model(given(kind, 1)[0])
    torch.testing.assert_close(found.mean, found.h.mean(1))


def test_relu_is_the_curve_of_torch() -> None:
    """The other curve of `rnn`."""
    ours, theirs = layer("rnn", activation="relu"), nn.RNN(D, H, batch_first=True, nonlinearity="relu").double()
    ours.layer.load_state_dict(theirs.state_dict(), strict=True)
    x, h = given("rnn", 1)
    torch.testing.assert_close(ours(x, h).y, theirs(x, h.transpose(0, 1))[0], rtol=0, atol=1e-12)


def by_formula(kind: str, p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Return the cells of one layer with one bias, written out; states start at zero."""
    h = c = x.new_zeros(B, H)
    rows = []
    for t in range(x.shape[1]):
        inside, around = x[:, t] @ p["weight_ih_l0"].T + p["bias_ih_l0"], h @ p["weight_hh_l0"].T
        match kind:
            case "rnn":
                h = torch.tanh(inside + around)
            case "gru":
                (r, z, n), (hr, hz, hn) = inside.chunk(3, -1), around.chunk(3, -1)
                z = torch.sigmoid(z + hz)
                h = (1 - z) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + z * h
            case "lstm":
                i, f, g, o = (inside + around).chunk(4, -1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
        rows.append(h)
    return torch.stack(rows, 1)


@pytest.mark.parametrize("kind", TORCH)
def test_one_bias_is_the_formula_with_one_bias(kind: str) -> None:
    """A cell has one vector, and computes what the lectures write."""
    ours = layer(kind, states=False, biases="one")
    parameters = dict(ours.layer.named_parameters())
    assert list(parameters) == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0"]
    x = given(kind, 1)[0]
    torch.testing.assert_close(ours(x).y, by_formula(kind, parameters, x), rtol=0, atol=1e-12)


def test_a_small_cell_has_the_parameters_of_the_lectures() -> None:
    """2 · 3 + 3 · 3 + 3 with one bias, and 3 more with two."""
    text = "recipe: cell\ninputs: {x: 'float[batch, time, 2]'}\ngraph: {cell: {type: rnn, hidden: 3, biases: BIASES}}"
    counts = {biases: composer.load(text.replace("BIASES", biases)).compile(device="meta") for biases in ("one", "two")}
    assert {biases: sum(p.numel() for p in model.parameters()) for biases, model in counts.items()} == {"one": 18, "two": 21}


def test_the_cell_of_the_lectures_can_be_read_off_the_summary() -> None:
    """W_xh, W_hh and b, W_hy and b_y at widths 2 and 3: 6 + 9 + 3 + 6 + 2."""
    rows = composer.load("rnn_lm", overrides={"d_model": 2, "hidden": 3}).summary().rows
    cell = next(row for row in rows if row.name == "cell")
    assert (cell.total, [(row.name, row.total) for row in cell.children]) == (26, [("hidden", 18), ("out", 8)])


WRITER = """
recipe: writer
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 5}
  first: {type: lstm, hidden: 6, layers: 2}
  then: {type: gru, hidden: 5}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


@torch.no_grad()
def test_a_state_cannot_go_back() -> None:
    """But to the beginning, or not at all; a session says so and goes on as before."""
    model = composer.load(WRITER).compile(seed=0).eval()
    tokens = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(0))
    whole = model(tokens).logits
    with session(model) as past:
        model(tokens[:, :4])
        assert past.length == 4
        with pytest.raises(DecodeError, match=r"after 4 tokens .* cannot go back to 2"):
            past.truncate(2)
        past.truncate(4)
        torch.testing.assert_close(model(tokens[:, 4:]).logits, whole[:, 4:])
        past.truncate(0)
        torch.testing.assert_close(model(tokens).logits, whole)


@torch.no_grad()
def test_wired_states_begin_a_session_and_are_not_asked_for_again() -> None:
    """What an encoder hands over is given with each call; only the first one starts from it."""
    text = WRITER.replace("time]", 'time]", h: "float[batch, 2, 6]').replace("layers: 2", "layers: 2, in: {x: embed, h: h}")
    model = composer.load(text).compile(seed=0).eval()
    tokens = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(0))
    h = torch.randn(2, 2, 6, generator=torch.Generator().manual_seed(1))
    whole = model(tokens=tokens, h=h).logits
    assert not torch.allclose(whole, model(tokens=tokens, h=0 * h).logits, atol=1e-4)
    with session(model):
        pieces = [model(tokens=piece, h=h).logits for piece in tokens.split(2, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TORCH)
def test_a_compiled_layer_learns_from_an_input_that_does_not(kind: str) -> None:
    """Its gradients are those of the layer itself, in float32, for which torch has kernels of its own."""
    model = layer(kind, states=False).float()
    x = given(kind, 1)[0].float()
    grads = []
    for run in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        model.zero_grad()
        run(x).y.sin().sum().backward()
        grads.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.slow
def test_training_compiles_without_a_break() -> None:
    """Loss and gradients of the compiled model are those of the model itself."""
    model = composer.load(WRITER).compile(seed=0)
    tokens = torch.randint(11, (2, 5), generator=torch.Generator().manual_seed(0))
    grads = []
    for run in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        model.zero_grad()
        run(tokens).logits.sin().sum().backward()
        grads.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(grads[0], grads[1])
