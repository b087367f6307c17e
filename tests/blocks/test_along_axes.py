"""Blocks along an axis, each against torch or a loop, over shapes and dtypes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import composer
from composer.lower import Model
from tests.blocks.alone import alone, recipe, refusal

SHAPES = [(1, 1, 1), (2, 7, 6), (3, 1, 4), (1, 9, 2), (4, 5, 1)]
"""Batch, time and width: ordinary ones, and axes of one place."""


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same numbers in every run."""
    torch.manual_seed(0)


def drawn(dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Return values of a dtype, float64 for floats."""
    if dtype == "float":
        return torch.randn(shape, dtype=torch.float64)
    return torch.randint(-3, 4, shape) if dtype == "int" else torch.rand(shape) < 0.5


def wide(node: str, wires: str = "", **inputs: str) -> Model:
    """Return the model of one block, in float64."""
    return alone(node, wires, **inputs).double()


def shifted(x: torch.Tensor, by: int, dim: int) -> torch.Tensor:
    """Return the values `by` places on, place by place."""
    y = torch.zeros_like(x)
    for t in range(x.shape[dim]):
        if 0 <= t - by < x.shape[dim]:
            y.select(dim, t).copy_(x.select(dim, t - by))
    return y


ANY = ("float", "int", "bool")
NUMBER = ("float", "int")
CASES: list[tuple[str, tuple[str, ...], Any]] = [
    ("type: sum, axis: {axis}", NUMBER, lambda x, d: x.sum(d)),
    ("type: min, axis: {axis}", NUMBER, lambda x, d: x.min(d).values),
    ("type: max, axis: {axis}", NUMBER, lambda x, d: x.max(d).values),
    ("type: mean, axis: {axis}", ("float",), lambda x, d: x.mean(d)),
    ("type: argmax, axis: {axis}", NUMBER, lambda x, d: torch.from_numpy(np.argmax(x.numpy(), d))),
    ("type: logsumexp, axis: {axis}", ("float",), lambda x, d: x.exp().sum(d).log()),
    ("type: cumsum, axis: {axis}", NUMBER, lambda x, d: torch.from_numpy(np.cumsum(x.numpy(), d))),
    ("type: cumprod, axis: {axis}", NUMBER, lambda x, d: torch.from_numpy(np.cumprod(x.numpy(), d))),
    ("type: shift, axis: {axis}", ANY, lambda x, d: shifted(x, 1, d)),
    ("type: shift, axis: {axis}, by: 3", ANY, lambda x, d: shifted(x, 3, d)),
    ("type: shift, axis: {axis}, by: -2", ANY, lambda x, d: shifted(x, -2, d)),
    ("type: shift, axis: {axis}, by: 0", ANY, lambda x, d: x),
    ("type: flip, axis: {axis}", ANY, lambda x, d: torch.from_numpy(np.flip(x.numpy(), d).copy())),
    ("type: roll, by: {{{axis}: 2}}", ANY, lambda x, d: torch.from_numpy(np.roll(x.numpy(), 2, d))),
    ("type: roll, by: {{{axis}: -1}}", ANY, lambda x, d: torch.from_numpy(np.roll(x.numpy(), -1, d))),
    ("type: sort, axis: {axis}", NUMBER, lambda x, d: torch.from_numpy(np.sort(x.numpy(), d))),
    ("type: sort, axis: {axis}, descending: true", NUMBER, lambda x, d: torch.from_numpy(-np.sort(-x.numpy(), d))),
    ("type: top_k, k: 1, axis: {axis}", NUMBER, lambda x, d: x.max(d, keepdim=True).values),
    ("type: slice, axis: {axis}, start: -1", ANY, lambda x, d: x.narrow(d, x.shape[d] - 1, 1)),
    ("type: slice, axis: {axis}, start: 0, stop: 1", ANY, lambda x, d: x.narrow(d, 0, 1)),
    ("type: slice, axis: {axis}", ANY, lambda x, d: x),
    ("type: slice, axis: {axis}, step: 2", ANY, lambda x, d: x.index_select(d, torch.arange(0, x.shape[d], 2))),
    ("type: pad, axis: {axis}, before: 2, after: 1", ANY, lambda x, d: padded(x, d, 2, 1, 0)),
    ("type: pad, axis: {axis}, multiple: 4, value: 1", ANY, lambda x, d: padded(x, d, 0, -x.shape[d] % 4, 1)),
    ("type: fft, axis: {axis}", ("float",), lambda x, d: torch.from_numpy(np.fft.fft(x.numpy(), axis=d).real)),
    ("type: fft, axis: {axis}, inverse: true, norm: ortho", ("float",),
     lambda x, d: torch.from_numpy(np.fft.ifft(x.numpy(), axis=d, norm="ortho").real)),
]  # fmt: skip


def padded(x: torch.Tensor, dim: int, before: int, after: int, value: float) -> torch.Tensor:
    """Return the values with others around them."""
    pairs = [(before, after) if axis == dim else (0, 0) for axis in range(x.dim())]
    return torch.from_numpy(np.pad(x.numpy(), pairs, constant_values=value))


@pytest.mark.parametrize("sizes", ["numbers", "names"])
@pytest.mark.parametrize(("node", "dtypes", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_block_along_an_axis_is_its_formula(node: str, dtypes: tuple[str, ...], expected: Any, sizes: str) -> None:
    """Along every axis, in every dtype that it takes, bit for bit for ints; lengths known before the model runs or not."""
    for dtype in dtypes:
        for dim, axis in enumerate(("batch", "time", "last")):
            made: dict[str, Model] = {}
            for shape in SHAPES:
                if sizes == "numbers" and len(set(shape)) < 3 and axis != "last":
                    continue  # an axis is then called by its length, which another one has too
                by_length = str(shape[dim] if shape[dim] >= len(shape) else dim - len(shape))  # a place from the left is refused
                called = axis if sizes == "names" or axis == "last" else by_length
                lengths = "batch, time, wide" if sizes == "names" else ", ".join(map(str, shape))
                written = node.format(axis=called)
                if written not in made or sizes == "numbers":
                    made[written] = wide(written, "x", x=f"{dtype}[{lengths}]")
                x = drawn(dtype, shape)
                y, wanted = made[written](x)[0], expected(x, dim)
                assert y.dtype == wanted.dtype
                torch.testing.assert_close(
                    y, wanted, rtol=1e-12 if dtype == "float" else 0, atol=1e-12 if dtype == "float" else 0
                )


SEVERAL: dict[str, Any] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "logsumexp": lambda x, axis: np.log(np.exp(x).sum(axis)),
}
PLACES = {
    "[height, width]": (2, 3),
    "[width, height]": (2, 3),
    "[-1, batch]": (0, 3),
    "[first, last]": (0, 3),
    "[first, -2, 5]": (0, 1, 2),
    "[last, -3, height]": (1, 2, 3),
    "[-1, -2, -3, -4]": (0, 1, 2, 3),
    "[width]": (3,),
    "width": (3,),
}
"""Axes of images, as a recipe names them, with their places."""


@pytest.mark.parametrize("kind", SEVERAL)
@pytest.mark.parametrize("written", PLACES)
def test_several_axes_are_removed_at_once(kind: str, written: str) -> None:
    """As numpy removes them, whatever they are called, in any order; the others stay as they are."""
    axes, places = ["batch", "5", "height", "width"], PLACES[written]
    for dtype in NUMBER if kind in ("sum", "max", "min") else ("float",):
        model = wide(f"type: {kind}, axis: {written}", "x", x=f"{dtype}[{', '.join(axes)}]")
        for shape in ((2, 5, 3, 4), (1, 5, 1, 1), (3, 5, 2, 1)):
            x = drawn(dtype, shape)
            wanted = torch.from_numpy(np.asarray(SEVERAL[kind](x.numpy(), axis=places)))
            torch.testing.assert_close(model(x)[0], wanted, rtol=1e-12, atol=1e-12)
        left = [axis for place, axis in enumerate(axes) if place not in places]
        (made,) = model.program.root["block"].outputs.values()
        assert str(made) == f"{dtype}[{', '.join(left)}]"


@pytest.mark.parametrize("kind", SEVERAL)
def test_gradients_of_several_axes_are_those_of_the_function(kind: str) -> None:
    """By finite differences; equal extremes share theirs."""
    model = wide(f"type: {kind}, axis: [time, last]", "x", x="float[batch, time, 3]")
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: model(x)[0], (x,))
    alike = torch.ones(1, 2, 3, dtype=torch.float64, requires_grad=True)
    model(alike)[0].sum().backward()
    assert alike.grad is not None
    torch.testing.assert_close(alike.grad, torch.full_like(alike, 1 if kind == "sum" else 1 / 6))


def several(nodes: str, outputs: str, **inputs: str) -> Model:
    """Return the model of a few nodes."""
    declared = "".join(f'  {name}: "{type_}"\n' for name, type_ in inputs.items())
    return (
        composer.load(f"recipe: a\ninputs:\n{declared}graph:\n  {{{nodes}}}\noutputs: {{{outputs}}}\n").compile(seed=0).double()
    )


def test_sorted_values_say_where_they_were() -> None:
    """In `indices`, ints; equal values in their order."""
    model = several("s: {type: sort, axis: time, in: x}, t: {type: top_k, k: 3, axis: time, in: x}",
                    "s: s.indices, v: t, i: t.indices", x="float[batch, time, 4]")  # fmt: skip
    x = torch.randint(4, (2, 6, 4)).double()
    order, values, indices, _ = model(x)
    assert torch.equal(order, torch.sort(x, dim=1, stable=True).indices)
    assert indices.dtype == torch.int64
    assert torch.equal(x.gather(1, indices), values)
    assert torch.equal(values, x.sort(dim=1, descending=True).values[:, :3])


def test_complex_numbers_are_two_tensors() -> None:
    """A transform of two axes and back, as in FNet."""
    nodes = "a: {type: fft, axis: last, in: x}, b: {type: fft, axis: time, in: {x: a, imaginary: a.imaginary}}, "
    nodes += "c: {type: fft, axis: time, inverse: true, in: {x: b, imaginary: b.imaginary}}, "
    nodes += "d: {type: fft, inverse: true, in: {x: c, imaginary: c.imaginary}}"
    model = several(nodes, "mixed: b, imaginary: b.imaginary, back: d", x="float[batch, time, 5]")
    x = torch.randn(2, 6, 5, dtype=torch.float64)
    mixed, imaginary, back, _ = model(x)
    wanted = torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2)
    torch.testing.assert_close(torch.complex(mixed, imaginary), wanted)
    torch.testing.assert_close(back, x)


def test_indices_are_counted() -> None:
    """For each row of the batch, from positions that are given, or over what is valid."""
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    counted = wide("type: arange, axis: time", "x", x="float[batch, time, 3]")(x)[0]
    assert torch.equal(counted, torch.arange(5).expand(2, 5)) and counted.dtype == torch.int64
    assert torch.equal(wide("type: arange, axis: last", "x", x="float[time]")(x[0, :, 0])[0], torch.arange(5))
    valid = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 0, 1, 0]]).bool()
    node, wires = "type: arange, axis: time", "{x: x, valid: v}"
    of_valid = wide(node, wires, x="float[batch, time, 3]", v="bool[batch, time]?")
    assert of_valid(x, valid)[0].tolist() == [[0, 0, 0, 1, 2], [0, 1, 1, 2, 2]]
    assert torch.equal(of_valid(x)[0], counted)
    given = wide(node, "{x: x, position_ids: p}", x="float[batch, time, 3]", p="int[batch, time]?")
    positions = torch.randint(9, (2, 5))
    assert torch.equal(given(x, positions)[0], positions) and torch.equal(given(x)[0], counted)


@pytest.mark.parametrize("before", ["first", "time", "last"])
def test_a_new_axis_repeats_the_values(before: str) -> None:
    """Before an axis, or behind all; as long as is written, or as another tensor."""
    x, like = torch.randn(2, 3, 4, dtype=torch.float64), torch.randn(5, 7)
    place = {"first": 0, "time": 1, "last": 3}[before]
    for size in (1, 6):
        y = wide(f"type: new_axis, name: head, size: {size}, before: {before}", "x", x="float[batch, time, 4]")(x)[0]
        assert torch.equal(y, torch.stack([x] * size, dim=place))
    node = f"type: new_axis, name: rows, before: {before}"
    y = wide(node, "{x: x, like: l}", x="float[batch, time, 4]", l="float[other, rows]")(x, like)[0]
    assert torch.equal(y, torch.stack([x] * 7, dim=place))


def test_what_was_padded_is_cut_to_its_length() -> None:
    """By a slice like the tensor before it, whose length is known only when the model runs."""
    nodes = "p: {type: pad, axis: time, multiple: 4, in: x}, s: {type: slice, axis: time, in: {x: p, like: x}}"
    model = several(nodes, "padded: p, same: s", x="float[batch, time, 3]")
    for length in (1, 4, 5, 8):
        x = torch.randn(2, length, 3, dtype=torch.float64)
        assert torch.equal(model(x).same, x) and model(x).padded.shape[1] == -(-length // 4) * 4


INDEXED = [
    (("a", "b", 5), (), "last", 0),
    (("a", "b", 5), ("k",), "last", 0),
    ((5, "b", "c"), ("k", "m"), "first", 0),
    (("a", 5, "c"), ("a",), "5", 1),
    (("a", 5, "c"), ("a", "k", "m"), "5", 1),
    (("a", "b", "c", 5, "e"), ("a", "b", "k"), "5", 2),
]
LENGTHS = {"a": 2, "b": 3, "c": 4, "e": 2, "k": 6, "m": 1, 5: 5}


@pytest.mark.parametrize(("axes", "of_index", "axis", "shared"), INDEXED)
@pytest.mark.parametrize("dtype", ANY)
def test_gathered_values_are_those_at_the_index(axes: Any, of_index: Any, axis: str, shared: int, dtype: str) -> None:
    """Place by place, over axes that both have and that only one has."""
    x = drawn(dtype, tuple(LENGTHS[name] for name in axes))
    index = torch.randint(5, tuple(LENGTHS[name] for name in of_index))
    types = {"x": f"{dtype}[{', '.join(map(str, axes))}]", "index": f"int[{', '.join(of_index)}]"}
    y = wide(f"type: gather, axis: {axis}, shared: {shared}", "{x: x, index: index}", **types)(x, index)[0]
    place = axes.index(5)
    wanted = torch.empty(*x.shape[:place], *index.shape[shared:], *x.shape[place + 1 :], dtype=x.dtype)
    for at in np.ndindex(*wanted.shape):
        inner = at[place : place + index.dim() - shared]
        chosen = int(index[(*at[:shared], *inner)])
        wanted[at] = x[(*at[:place], chosen, *at[place + index.dim() - shared :])]
    assert torch.equal(y, wanted)


@pytest.mark.parametrize(("axes", "axis", "shared"), [(("k",), "k", 0), (("a", "k", "c"), "k", 1), (("b", "k"), "last", 0)])
@pytest.mark.parametrize("dtype", NUMBER)
def test_scattered_values_are_added_at_the_index(axes: Any, axis: str, shared: int, dtype: str) -> None:
    """Place by place, from zeros and onto another tensor; where several have one place, their sum."""
    x = drawn(dtype, tuple(LENGTHS[name] for name in axes))
    place = axes.index("k")
    index = torch.randint(4, (*x.shape[:shared], x.shape[place]))
    onto = drawn(dtype, (*x.shape[:place], 4, *x.shape[place + 1 :]))
    wanted = onto.clone()
    for at in np.ndindex(*x.shape):
        wanted[(*at[:place], int(index[(*at[:shared], at[place])]), *at[place + 1 :])] += x[at]
    types = {"x": f"{dtype}[{', '.join(axes)}]", "index": f"int[{', '.join((*axes[:shared], 'k'))}]"}
    node = f"type: scatter, axis: {axis}, shared: {shared}"
    torch.testing.assert_close(wide(f"{node}, size: 4", "{x: x, index: index}", **types)(x, index)[0], wanted - onto)
    types["onto"] = f"{dtype}[{', '.join('4' if name == 'k' else name for name in axes)}]"
    torch.testing.assert_close(wide(node, "{x: x, index: index, onto: onto}", **types)(x, index, onto)[0], wanted)


@pytest.mark.parametrize("wrong", [-1, 4, 99])
def test_an_index_outside_of_the_axis_is_an_error(wrong: int) -> None:
    """It is clamped nowhere, and the message names it."""
    index = torch.tensor([0, wrong, 3])
    said = f"index {wrong} is out of range for an axis of 4: indices run from 0 to 3"
    for axis, type_, x in (("last", "float[batch, 4]", torch.randn(2, 4)), ("first", "float[4, wide]", torch.randn(4, 2))):
        model = alone(f"type: gather, axis: {axis}", "{x: x, index: i}", x=type_, i="int[k]")
        with pytest.raises(IndexError, match=said):
            model(x, index)
    rows = alone("type: gather, axis: last, shared: 1", "{x: x, index: i}", x="float[batch, 4]", i="int[batch, k]")
    with pytest.raises(IndexError, match=said):
        rows(torch.randn(1, 4), index[None])
    adding = alone("type: scatter, axis: last, size: 4", "{x: x, index: i}", x="float[batch, k]", i="int[k]")
    with pytest.raises(IndexError, match=said):
        adding(torch.randn(2, 3), index)


def test_lengths_that_are_known_late_are_checked_then() -> None:
    """With the numbers that do not go together."""
    cut = alone("type: slice, axis: time, start: 2, stop: 5", "x", x="float[batch, time]")
    with pytest.raises(IndexError, match="the range 2:5 is not inside of an axis of 4"):
        cut(torch.randn(1, 4))
    most = alone("type: top_k, k: 3, axis: time", "x", x="float[batch, time]")
    with pytest.raises(IndexError, match="3 values cannot be chosen from an axis of 2"):
        most(torch.randn(1, 2))
    for index in (4, -5):
        one = alone(f"type: select, axis: time, index: {index}", "x", x="float[batch, time]")
        with pytest.raises(IndexError, match=f"index {index} is out of range for an axis of 4"):
            one(torch.randn(1, 4))


GRADIENTS = ["sum", "min", "logsumexp", "cumsum", "cumprod", "shift", "flip", "sort", "slice", "pad", "fft"]


@pytest.mark.parametrize("kind", GRADIENTS)
def test_gradients_are_those_of_the_function(kind: str) -> None:
    """By finite differences, in float64."""
    model = wide(f"type: {kind}, axis: time", "x", x="float[batch, time, 3]")
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: model(x)[0], (x,))


def test_gradients_reach_what_is_gathered_and_scattered() -> None:
    """By finite differences, in float64."""
    index = torch.tensor([[0, 2, 2], [1, 0, 1]])
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    types = {"x": "float[batch, k]", "i": "int[batch, k]"}
    for node in ("type: gather, axis: last, shared: 1", "type: scatter, axis: last, shared: 1, size: 4"):
        model = wide(node, "{x: x, index: i}", **types)
        assert torch.autograd.gradcheck(lambda x, model=model: model(x, index)[0], (x,))


@pytest.mark.parametrize("kind", ["cumsum", "cumprod", "logsumexp", "fft"])
def test_sums_are_in_float32_under_bfloat16(kind: str) -> None:
    """Each result is that of float32, rounded once."""
    model = alone(f"type: {kind}, axis: time", "x", x="float[batch, time, 3]").bfloat16()
    x = torch.randn(2, 300, 3).bfloat16()
    y = model(x)[0]
    assert y.dtype == torch.bfloat16
    assert torch.equal(y, alone(f"type: {kind}, axis: time", "x", x="float[batch, time, 3]")(x.float())[0].bfloat16())


STREAM = "float[batch, time, 6]"


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("type: cumsum, axis: tiem", "tiem: [batch, time, 6] has no axis `tiem`"),
        ("type: roll, by: {tiem: 1}", "{tiem: 1}: [batch, time, 6] has no axis `tiem`"),
        ("type: mean, axis: [time, tiem]", "tiem: [batch, time, 6] has no axis `tiem`"),
        ("type: sum, axis: [time, last, time]", "time: the axis `time` is named twice"),
        ("type: max, axis: [time, -2]", "-2: `time` and `-2` are the same axis"),
        ("type: min, axis: [first, -4]", "-4: [batch, time, 6] has no axis `-4`"),
        ("type: logsumexp, axis: []", "[]: takes at least one axis"),
        ("type: mean, axis: [time, [last]]", "[last]: each item of `axis` is one axis, not a list"),
        ("type: mean, axis: [[last]]", "[last]: each item of `axis` is one axis, not a list"),
        ("type: mean, axis: {time: 1}", "{time: 1}: `axis` takes an axis or a list of some, not a mapping"),
        ("type: argmax, axis: [time, last]", "[time, last]: `axis` takes one axis, not a list"),
        ("type: select, axis: [time, last], index: 0", "[time, last]: `axis` takes one axis, not a list"),
        ("type: roll, by: 2", "2: `by` must be a mapping"),
        ("type: roll, by: {}", "{}: takes at least one axis"),
        ("type: slice, axis: last, start: 7", "7: start 7 is out of range for an axis of 6"),
        ("type: slice, axis: last, stop: -7", "-7: stop -7 is out of range for an axis of 6"),
        ("type: slice, axis: last, start: 3, stop: 3", "3: nothing is between start 3 and stop 3 of an axis of 6"),
        ("type: top_k, k: 7", "7: 7 values cannot be chosen from an axis of 6"),
        ("type: new_axis, name: time", "time: float[batch, time, 6] has an axis `time` already"),
        ("type: new_axis, name: 3d", "3d: `3d` is no name of an axis"),
        ("type: scatter, axis: last", "block: needs the length of the result"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_stands(node: str, said: str) -> None:
    """The field that is wrong, and the numbers that do not go together."""
    wires = "{x: x, index: i}" if "scatter" in node else "x"
    inputs = {"x": STREAM, "i": "int[6]"} if "scatter" in node else {"x": STREAM}
    assert refusal(node, wires, **inputs) == said


@pytest.mark.parametrize(
    ("node", "wires", "said"),
    [
        ("type: pad, axis: last, value: 0.5", "i", "0.5: 0.5 is no int"),
        ("type: gather, axis: last", "{x: x, index: x}", "x: port index of gather takes int[*], not float[batch, time, 6]"),
        ("type: gather, axis: last", "{x: x, index: i}",
         "i: gather takes an index of other axes than batch, which x has too"),
        ("type: gather, axis: last, shared: 2", "{x: x, index: i}", "2: axis 1 is time in x and 6 in the index"),
        ("type: gather, axis: time, shared: 2", "{x: x, index: i}",
         "2: float[batch, time, 6] and int[batch, 6] cannot share 2 axes, but 1 at most"),
        ("type: scatter, axis: time, shared: 1, size: 4", "{x: x, index: i}",
         "i: scatter takes an index of [batch, time], a place for each value, not int[batch, 6]"),
        ("type: scatter, axis: last, shared: 1, size: 4", "{x: x, index: i, onto: x}",
         "4: `onto` tells the length, so `size` must be left out"),
        ("type: scatter, axis: first", "{x: x, index: i, onto: i}",
         "i: scatter takes an index of [batch], a place for each value, not int[batch, 6]"),
        ("type: slice, axis: time, stop: 3", "{x: x, like: i}", "3: `like` tells the length, so `stop` must be left out"),
        ("type: new_axis, name: k, size: 3", "{x: x, like: i}", "3: `like` tells the length, so `size` must be left out"),
        ("type: arange, axis: time", "{x: x, position_ids: i}",
         "i: arange takes position_ids of [batch, time], not int[batch, 6]: x has [batch, time]"),
        ("type: fft", "{x: x, imaginary: z}",
         "z: port imaginary of fft takes float[...] with the same leading axes everywhere, not float[batch, time, 5]"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_at_its_edge(node: str, wires: str, said: str) -> None:
    """An index of other axes, a length that is told twice, a port of another type."""
    known = {"x": STREAM, "i": "int[batch, 6]", "z": "float[batch, time, 5]"}
    read = set(re.findall(r"\b([xiz])\b(?!:)", wires))
    inputs = {name: type_ for name, type_ in known.items() if name in read}
    assert said == refusal(node, wires, **inputs)


def test_a_block_takes_the_dtypes_that_it_declares() -> None:
    """And says which."""
    assert (
        refusal("type: cumsum, axis: last", "x", x="bool[batch, 4]")
        == "x: port x of cumsum takes number[...], not bool[batch, 4]"
    )
    assert not recipe("type: rearrange, pattern: b t -> t b", "x", x="bool[batch, time]").check()


def test_axes_of_a_formula_may_be_called_like_keywords_of_python() -> None:
    """And words that are no axes are told as they are written."""
    text = "recipe: one\ninputs: {x: 'float[batch, 3]'}\ngraph:\n  y: {type: constant, over: {del: 3}, value: FORMULA}\n"
    text += "  sum: {compute: x + float(y), axes: {x: b c, y: c, ->: b c}}\n"
    recipe = composer.load(text.replace("FORMULA", "2 * del + 1"))
    for one in (recipe, composer.load(recipe.expand())):
        assert one.compile(seed=0)(torch.zeros(1, 3)).sum.tolist() == [[1, 3, 5]]
    for formula, said in (("del + yield", "number `yield`"), ("await(del)", "`await` is no function")):
        (found,) = composer.load(text.replace("FORMULA", formula)).check()
        assert found.code == "rejected" and said in found.message
