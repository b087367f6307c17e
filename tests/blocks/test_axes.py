"""Operations along an axis that is named, against loops and torch's own modules."""

import pytest
import torch
from torch import nn

import composer
from tests.blocks.alone import alone, refusal

B, T, D = 2, 7, 6
STREAM = f"float[batch, time, {D}]"


@pytest.fixture(autouse=True)
def seed():
    """The same numbers in every run."""
    torch.manual_seed(0)


def x():
    """Return a stream [B, T, D]."""
    return torch.randn(B, T, D)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("type: softmax", lambda x: x.exp() / x.exp().sum(2, keepdim=True)),
        ("type: softmax, axis: time", lambda x: x.exp() / x.exp().sum(1, keepdim=True)),
        ("type: l2norm", lambda x: x / (x * x).sum(2, keepdim=True).sqrt()),
        ("type: l2norm, axis: time, eps: 1000", lambda x: x / 1000),
        ("type: mean, axis: time", lambda x: sum(x[:, t] for t in range(T)) / T),
        ("type: max, axis: last", lambda x: x.sort(dim=2).values[:, :, -1]),
        ("type: select, axis: time, index: 2", lambda x: x[:, 2]),
        ("type: select, axis: batch, index: -1", lambda x: x[-1]),
        ("type: rearrange, pattern: b t (h d) -> b h t d, sizes: [2]", lambda x: x.view(B, T, 2, D // 2).transpose(1, 2)),
        ("type: rearrange, pattern: b t (h d) -> b (d t) h, sizes: [3]",
         lambda x: torch.stack([x[:, :, d::2].mT for d in range(2)], 1).mT.reshape(B, 2 * T, 3)),
        ("type: einsum, pattern: b t d -> b t", lambda x: x.sum(2)),
    ],
)  # fmt: skip
def test_an_operation_along_an_axis_is_its_formula(node, expected):
    """Axes by their names, and the last."""
    stream = x()
    torch.testing.assert_close(alone(node, "x", x=STREAM)(stream)[0], expected(stream))


def test_einsum_sums_over_what_the_output_does_not_have():
    """Scores of queries and keys, number by number."""
    model = alone("type: einsum, pattern: 'b q d, b k d -> b k q'", "[x, m]", x=STREAM, m=f"float[batch, source, {D}]")
    q, k = x(), torch.randn(B, 4, D)
    y = model(q, k)[0]
    assert y.shape == (B, 4, T)
    torch.testing.assert_close(y[1, 3, 2], sum(q[1, 2, d] * k[1, 3, d] for d in range(D)))


@pytest.mark.parametrize(("axis", "place"), [("last", 3), ("time", 1), (str(D), 2), ("batch", 0)])
def test_stacked_inputs_come_back_by_their_place(axis, place):
    """The new axis stands before the one that is named, or last."""
    first, second = x(), x()
    y = alone(f"type: stack, axis: {axis}", "[x, m]", x=STREAM, m=STREAM)(first, second)[0]
    assert torch.equal(y.select(place, 0), first)
    assert torch.equal(y.select(place, 1), second)


def test_split_gives_each_piece_its_name():
    """Of one length, or of those that are written; reading one piece or several."""
    nodes = "a: {type: split, into: [up, gate], in: x}, b: {type: split, into: [l, m, r], sizes: [1, 3, 2], in: x}"
    text = f'recipe: split\ninputs: {{x: "{STREAM}"}}\ngraph: {{{nodes}}}\noutputs: {{gate: a.gate, up: a.up, m: b.m}}\n'
    gate, up, m = composer.load(text).compile()(stream := x())[:3]
    assert torch.equal(torch.cat([up, gate], dim=-1), stream)
    assert torch.equal(m, stream[..., 1:4])


@pytest.mark.parametrize(("stride", "dilation", "groups"), [(1, 1, 1), (1, 2, 3), (2, 1, 2), (3, 2, 1)])
@pytest.mark.parametrize("kernel", [1, 3, 4])
def test_conv1d_is_torch_s(kernel, stride, dilation, groups):
    """Padded to the same length, or on the left only; with the weights of `nn.Conv1d`."""
    span = (kernel - 1) * dilation
    for causal, padding in ((False, (span // 2, span - span // 2)), (True, (span, 0))):
        fields = f"out: 12, kernel_size: {kernel}, stride: {stride}, dilation: {dilation}, groups: {groups}"
        ours = alone(f"type: conv1d, {fields}, causal: {str(causal).lower()}", x=STREAM)
        theirs = nn.Conv1d(D, 12, kernel, stride, 0, dilation, groups)
        theirs.load_state_dict(ours.block.state_dict())
        stream = x()
        expected = theirs(nn.functional.pad(stream.mT, padding)).mT
        torch.testing.assert_close(ours(stream)[0], expected)
        assert expected.shape[1] == -(-T // stride)


@pytest.mark.parametrize("groups", [1, 2, D])
def test_groupnorm_is_torch_s(groups):
    """Which has the channels second."""
    ours, theirs = alone(f"type: groupnorm, groups: {groups}", x=STREAM), nn.GroupNorm(groups, D)
    theirs.load_state_dict(ours.block.state_dict())
    stream = x()
    torch.testing.assert_close(ours(stream)[0], theirs(stream.mT).mT)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("type: mean, axis: width", "width: [batch, time, 6] has no axis `width`"),
        ("type: mean, axis: tiem", "tiem: [batch, time, 6] has no axis `tiem`"),
        ("type: concat, axis: tiem", "tiem: [batch, time, 6] has no axis `tiem`"),
        ("type: select, axis: last, index: 6", "6: index 6 is out of range for an axis of 6"),
        ("type: split, into: [a, b, c, d]", "[a, b, c, d]: an axis of 6 cannot be split into 4 equal pieces"),
        ("type: split, into: [a, b], sizes: [1, 2]", "[1, 2]: the sizes add up to 3, and the axis has 6"),
        ("type: split, into: [a, b], axis: time", "time: `time` is known only when the model runs"),
        ("type: split, into: [a]", "[a]: a split needs at least two pieces"),
        ("type: split, into: [a, a]", "[a, a]: two pieces are called `a`"),
        ("type: conv1d, out: 6, kernel_size: 2, groups: 4", "4: 6 channels of the input cannot be split into 4 groups"),
        ("type: groupnorm, groups: 4", "4: 6 channels cannot be split into 4 groups"),
        ("type: rearrange, pattern: b t -> t b", "b t -> t b: the pattern takes 2 axes, and the input has 3: [batch, time, 6]"),
        ("type: rearrange, pattern: b t d -> b t", "b t d -> b t: `d` must occur once on each side of `->`"),
        ("type: rearrange, pattern: b t b -> b t", "b t b -> b t: two axes are called `b`"),
        ("type: rearrange, pattern: b t (h d) -> b t h d, sizes: [4]", "[4]: 6 is not a multiple of 4, for `h d`"),
        ("type: rearrange, pattern: b t (h d) -> b t h d",
         "block: `sizes` needs an entry for each new axis of the pattern: 1, not 0"),
        ("type: rearrange, pattern: 'b (t d'",
         "'b (t d': a pattern lists names of axes on both sides of `->`, in parentheses where several are one axis"),
        ("type: einsum, pattern: b t -> t", "x: einsum takes b t, not float[batch, time, 6]"),
        ("type: einsum, pattern: b t d -> e", "b t d -> e: no input has an axis `e`"),
        ("type: einsum, pattern: b t t -> b", "b t t -> b: `t` occurs twice in `b t t`"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_where_it_stands(node, said):
    """The field that is wrong, and the numbers that do not go together."""
    assert refusal(node, "x", x=STREAM) == said


def test_a_misspelled_piece_of_a_split_is_refused():
    """A block names its outputs by a field, and only those."""
    nodes = "a: {type: split, into: [up, gate]}, b: {type: relu, in: a.gaet}"
    text = f'recipe: split\ninputs: {{x: "{STREAM}"}}\ngraph: {{{nodes}}}\n'
    assert [found.code for found in composer.load(text).check()] == ["unknown-port"]


@pytest.mark.parametrize("shape", ["[8]", "[1, 8]", "[1, 1, 8]", "[1, 1, 1]", "[1]"])
@pytest.mark.parametrize("kind", ["add", "multiply", "weighted_sum"])
def test_an_axis_of_length_one_is_stretched(kind, shape):
    """By every block that combines values of several shapes, as `torch.broadcast_tensors` does it."""
    model = composer.load(
        "recipe: example\ninputs: {x: 'float[batch, time, 8]'}\n"
        f"graph:\n  p: {{type: parameter, shape: {shape}, std: 1.0}}\n  y: {{type: {kind}, in: [p, x]}}\n"
    ).compile(seed=1)
    x = torch.randn(2, 3, 8)
    both = torch.stack(torch.broadcast_tensors(model.p.weight, x))
    expected = {"add": both.sum(0), "multiply": both.prod(0), "weighted_sum": both.mean(0)}[kind]
    torch.testing.assert_close(model(x).y, expected)
