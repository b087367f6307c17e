"""Recurrent layers over padded batches, against torch's own over each row alone and over packed sequences."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import composer
from composer.decode import session

D, H, B, T = 5, 4, 4, 6
TORCH = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
SHAPES = [{}, {"layers": 2}, {"bidirectional": True}, {"layers": 3, "bidirectional": True}]
MASKS = {
    "right": [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]],
    "left": [[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]],
    "between": [[1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 1, 1], [0, 0, 1, 0, 0, 0]],
    "nothing": [[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]],
}
each_kind = pytest.mark.parametrize("kind", TORCH)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def pair(kind: str, *, dtype: torch.dtype = torch.float64, **fields: Any) -> tuple[Any, Any]:
    """Return a recipe of one layer with all of its ports, and torch's layer with the same parameters."""
    count = states_of(fields)
    names = ["h", "c"] if kind == "lstm" else ["h"]
    written = "".join(f", {name}: {str(value).lower()}" for name, value in fields.items())
    wires = "".join(f", {name}: {name}" for name in names)
    text = f"recipe: one\ninputs:\n  x: float[batch, time, {D}]\n  valid: bool[batch, time]?\n"
    text += "".join(f"  {name}: float[batch, {count}, {H}]?\n" for name in names)
    text += f"graph:\n  layer: {{type: {kind}, hidden: {H}{written}, in: {{x: x, valid: valid{wires}}}}}\n"
    text += "outputs:\n  y: layer\n" + "".join(f"  {name}: layer.{name}\n" for name in names)
    ours = composer.load(text).compile(seed=0).to(dtype)
    theirs = TORCH[kind](D, H, fields.get("layers", 1), batch_first=True, bidirectional=fields.get("bidirectional", False))
    theirs = theirs.to(dtype)
    ours.layer.load_state_dict(theirs.state_dict(), strict=True)
    return ours, theirs


def states_of(fields: dict[str, Any]) -> int:
    """Return the number of states of one row."""
    return fields.get("layers", 1) * (2 if fields.get("bidirectional") else 1)


def given(kind: str, count: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return an input and the states to start from."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(B, T, D, generator=generator, dtype=dtype)
    names = ["h", "c"] if kind == "lstm" else ["h"]
    return x, {name: torch.randn(B, count, H, generator=generator, dtype=dtype) for name in names}


def row_by_row(theirs: Any, x: torch.Tensor, valid: torch.Tensor, states: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Return what torch's layer gives for each row alone, without its padding: the output, zero at padding, and the states."""
    rows = []
    for n, real in enumerate(valid):
        before = [state[n, :, None] for state in states.values()]  # [states, 1, H]
        y = x.new_zeros(T, H * (2 if theirs.bidirectional else 1))
        if real.any():
            found, after = theirs(x[n, real][None], tuple(before) if len(before) > 1 else before[0])
            y = y.index_put((real,), found[0])
            before = list(after) if len(before) > 1 else [after]
        rows.append([y, *(state[:, 0] for state in before)])
    return [torch.stack(values) for values in zip(*rows, strict=True)]


def assert_same(ours: Any, theirs: Any, real: list[torch.Tensor], expected: list[torch.Tensor], tolerance: float = 1e-12) -> None:
    """Assert that the values are the same, and the gradients of all parameters."""
    torch.testing.assert_close(real, expected, rtol=0, atol=tolerance)
    for values in (real, expected):
        sum(value.sin().sum() for value in values).backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(ours.layer.get_parameter(name).grad, parameter.grad, rtol=0, atol=tolerance)


@pytest.mark.parametrize("mask", MASKS)
@each_shape
@each_kind
def test_a_row_is_what_it_is_without_its_padding(kind: str, shape: dict[str, Any], mask: str) -> None:
    """Wherever the padding is: outputs, last states and gradients are those of torch's layer over the row alone."""
    ours, theirs = pair(kind, **shape)
    x, states = given(kind, states_of(shape))
    valid = torch.tensor(MASKS[mask], dtype=torch.bool)
    real = list(ours(x, valid, **states)[:-1])
    assert_same(ours, theirs, real, row_by_row(theirs, x, valid, states))


@each_shape
@each_kind
def test_padding_on_the_right_is_a_packed_sequence(kind: str, shape: dict[str, Any]) -> None:
    """As torch packs and pads, from states of zero."""
    ours, theirs = pair(kind, **shape)
    x, _ = given(kind, 1)
    valid = torch.tensor(MASKS["right"], dtype=torch.bool)
    packed = pack_padded_sequence(x, valid.sum(1), batch_first=True, enforce_sorted=False)
    y, after = theirs(packed)
    states = after if kind == "lstm" else [after]
    expected = [pad_packed_sequence(y, batch_first=True)[0], *(state.transpose(0, 1) for state in states)]
    assert_same(ours, theirs, list(ours(x, valid)[:-1]), expected)


@each_kind
def test_padding_has_no_influence(kind: str) -> None:
    """Not even as NaN, neither on values nor on gradients; in float32, for which torch has kernels of its own."""
    ours, theirs = pair(kind, dtype=torch.float32, layers=2, bidirectional=True)
    x, states = given(kind, 4, torch.float32)
    valid = torch.tensor(MASKS["nothing"], dtype=torch.bool)
    expected = row_by_row(theirs, x, valid, states)
    x = x.masked_fill(~valid[..., None], torch.nan).requires_grad_()
    assert_same(ours, theirs, list(ours(x, valid, **states)[:-1]), expected, 1e-5)
    assert x.grad.isfinite().all()
    assert not x.grad[~valid].any()


@torch.no_grad()
@each_shape
@each_kind
def test_without_padding_nothing_changes(kind: str, shape: dict[str, Any]) -> None:
    """With the input given and all of it valid, and without it."""
    ours, _ = pair(kind, **shape)
    x, states = given(kind, states_of(shape))
    whole = ours(x, torch.ones(B, T, dtype=torch.bool), **states)
    torch.testing.assert_close(list(ours(x, **states)[:-1]), list(whole[:-1]), rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_long_padding_keeps_the_state() -> None:
    """To the last bit, in float32 and in bfloat16: a thousand positions of padding do not wear it off."""
    for kind in TORCH:
        for dtype in (torch.float32, torch.bfloat16):
            ours, _ = pair(kind, dtype=dtype)
            x, states = given(kind, 1, dtype)
            valid = torch.arange(1006) < torch.tensor([[6], [3], [1], [5]])
            after = ours(torch.cat([x, 3 * torch.ones(B, 1000, D, dtype=dtype)], 1), valid, **states)
            short = ours(x, valid[:, :T], **states)
            for name in states:
                assert torch.equal(getattr(after, name), getattr(short, name)), (kind, dtype, name)


def test_relu_does_not_grow_in_padding() -> None:
    """With weights that would reach infinity there, the gradients are those of the rows alone."""
    ours, theirs = pair("rnn", dtype=torch.float32, activation="relu")
    theirs.nonlinearity = theirs.mode = "RNN_RELU"
    with torch.no_grad():
        for layer in (ours.layer, theirs):
            layer.weight_hh_l0.copy_(2 * torch.eye(H))
    x, states = given("rnn", 1, torch.float32)
    valid = torch.arange(T) < torch.tensor([[6], [3], [1], [0]])
    expected = row_by_row(theirs, x, valid, states)
    real = ours(torch.cat([x, torch.ones(B, 200, D)], 1), torch.cat([valid, torch.zeros(B, 200, dtype=torch.bool)], 1), **states)
    assert_same(ours, theirs, [real.y[:, :T], real.h], expected, 1e-4)


def test_dropout_stands_between_layers() -> None:
    """In training, where nothing reads it after the last layer."""
    ours, _ = pair("gru", layers=2)
    x, states = given("gru", 2)
    valid = torch.tensor(MASKS["between"], dtype=torch.bool)
    dropping, _ = pair("gru", layers=2, dropout=0.5)
    dropping.load_state_dict(ours.state_dict())
    torch.testing.assert_close(dropping.eval()(x, valid, **states).y, ours(x, valid, **states).y)
    torch.manual_seed(0)
    some = dropping.train()(x, valid, **states)
    assert not torch.allclose(some.y, ours(x, valid, **states).y)
    torch.testing.assert_close(some.h[:, 0], ours(x, valid, **states).h[:, 0])  # of the first layer, before dropout
    assert some.y[valid].all()


WRITER = """
recipe: writer
task: causal_lm
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 11, dim: 5}
  first: {type: lstm, hidden: 6, layers: 2, in: {valid: valid}}
  then: {type: gru, hidden: 5, in: {valid: valid}}
  last: {type: rnn, hidden: 5, in: {valid: valid}}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


@pytest.mark.parametrize("mask", MASKS)
@torch.no_grad()
def test_a_text_in_pieces_is_the_text(mask: str) -> None:
    """Where a piece has padding anywhere, or is nothing else."""
    model = composer.load(WRITER).compile(seed=0).double().eval()
    tokens = torch.randint(11, (B, T), generator=torch.Generator().manual_seed(0))
    valid = torch.tensor(MASKS[mask], dtype=torch.bool)
    whole = model(tokens, valid).logits
    for size in (1, 2, 4):
        with session(model):
            pieces = zip(tokens.split(size, 1), valid.split(size, 1), strict=True)
            found = torch.cat([model(*piece).logits for piece in pieces], dim=1)
        torch.testing.assert_close(found, whole, rtol=0, atol=1e-12)


@pytest.mark.slow
@each_kind
def test_a_padded_batch_trains_compiled(kind: str) -> None:
    """Without a break, in float32: gradients are those of the layer itself."""
    model, _ = pair(kind, dtype=torch.float32, layers=2, bidirectional=True)
    x, states = given(kind, 4, torch.float32)
    valid = torch.tensor(MASKS["nothing"], dtype=torch.bool)
    grads = []
    for run in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        model.zero_grad()
        sum(value.sin().sum() for value in run(x, valid, **states)[:-1]).backward()
        grads.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(grads[0], grads[1])


def test_the_backward_direction_depends_on_later_positions() -> None:
    """Also with padding: such a layer cannot be in a text that is being written."""
    text = WRITER.replace("hidden: 5, in", "hidden: 5, bidirectional: true, in")
    assert "not-causal" in {found.code for found in composer.load(text).check()}
    assert not composer.load(WRITER).check()


CLASSIFIER = """
recipe: classifier
task: sequence_classification
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 11, dim: 5}
  states: {type: gru, hidden: 6, bidirectional: true, in: {valid: valid}}
  POOL
  head: {type: linear, out: 3}
outputs: {logits: head}
"""


POOLS = [f"pool: {{type: pool, mode: {mode}, in: {{valid: valid}}}}" for mode in ("first", "last", "mean", "max")]
POOLS.append('ends: {type: rearrange, pattern: "batch states hidden -> batch (states hidden)", in: states.h}')


@pytest.mark.parametrize("pool", POOLS)
@torch.no_grad()
def test_a_row_of_a_classifier_is_the_row_alone(pool: str) -> None:
    """Whatever the batch around it is padded to."""
    model = composer.load(CLASSIFIER.replace("POOL", pool)).compile(seed=0).double().eval()
    tokens = torch.randint(11, (B, T), generator=torch.Generator().manual_seed(0))
    for name in ("right", "left", "between"):
        valid = torch.tensor(MASKS[name], dtype=torch.bool)
        alone = torch.cat([model(row[real][None]).logits for row, real in zip(tokens, valid, strict=True)])
        torch.testing.assert_close(model(tokens, valid).logits, alone, rtol=0, atol=1e-12)
