"""Convolution, pooling and interpolation over images and positions, against torch's own modules and plain loops."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import composer
from composer.cost.costs import costs
from composer.decode import session
from composer.lower import Model
from tests.blocks.alone import recipe, refusal

CONFIGURATIONS = range(60)
IMAGE, STREAM = "float[batch, {channels}, {height}, {width}]", "float[batch, time, {channels}]"


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fields(**given: Any) -> str:
    """Return fields as a recipe writes them."""
    words = {True: "true", False: "false", None: "none"}
    return ", ".join(
        f"{name}: {words.get(value, value) if isinstance(value, bool | None) else value}" for name, value in given.items()
    )


def drawn(random: Random, low: int, high: int, axes: int) -> int | list[int]:
    """Return a number, or a list with one for each axis."""
    several = [random.randint(low, high) for _ in range(axes)]
    return random.choice([several[0], several])


def sound(node: str, axis: str, **inputs: str) -> Model | None:
    """Return the model of a block in float64; None where it is refused, which the composer has to say by itself."""
    loaded = recipe(node, "", **inputs)
    if any(found.severity == "error" for found in loaded.check()):
        return None
    model = loaded.compile(seed=0, dtype=torch.float64).eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(numbers(*parameter.shape, seed=number))
    return model


def agree(model: Model | None, theirs: nn.Module, x: torch.Tensor, lengths: dict[str, int]) -> bool:
    """Compare a model with torch's module, which raises where the model is refused; return whether there is one."""
    if model is None:
        with pytest.raises(RuntimeError):
            theirs(x)
        return False
    theirs.load_state_dict(model.block.state_dict() if isinstance(model.block, nn.Module) else {})
    given = x.clone().requires_grad_()
    expected = theirs(given)
    torch.testing.assert_close(model(x)[0], expected, rtol=0, atol=1e-12)
    assert tuple(int(size) for size in expected.shape) == shape(model, lengths)
    with FlopCounterMode(display=False) as counter:
        model(x)
    assert costs(model.program, lengths).flops.dense == counter.get_total_flops()
    return True


def shape(model: Model, lengths: dict[str, int]) -> tuple[int, ...]:
    """Return the shape that the model declares."""
    from composer.graph.dims import substitute

    (out,) = model.program.root.outputs.values()
    return tuple(substitute(size, lengths) for size in out.sizes)  # type: ignore[union-attr]  # one value


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "names"])
@torch.no_grad()
def test_conv2d_is_torch_s(symbolic: bool) -> None:
    """Kernels, strides, paddings, dilations and groups of many kinds; where torch refuses one, so does the composer."""
    random, held = Random(1), 0
    for _ in CONFIGURATIONS:
        groups = random.choice([1, 1, 2, 3])
        kernel, stride, gaps = drawn(random, 1, 5, 2), drawn(random, 1, 3, 2), drawn(random, 1, 2, 2)
        padding = random.choice([None, 0, drawn(random, 0, 3, 2)])
        bias, height, width = random.random() < 0.5, random.randint(1, 9), random.randint(1, 9)
        written = fields(kernel_size=kernel, stride=stride, dilation=gaps, padding=padding, groups=groups, bias=bias)
        node = f"type: conv2d, out: 6, {written}"
        sizes = {"height": height, "width": width}
        type_ = IMAGE.format(channels=6, **({"height": "height", "width": "width"} if symbolic else sizes))
        theirs = nn.Conv2d(6, 6, kernel, stride, padding or 0, gaps, groups, bias, dtype=torch.float64)
        model = sound(node, "", x=type_)
        if symbolic and model is not None and any(size < 1 for size in shape(model, {"batch": 2, **sizes})[2:]):
            continue  # what a length that is not known refuses when it runs
        held += agree(model, theirs, numbers(2, 6, height, width), {"batch": 2, **sizes})
    assert held > 20


@pytest.mark.parametrize(("kernel", "stride", "gaps"), [(3, 1, 1), (4, 1, 1), ([2, 5], 2, 1), (4, [1, 3], 2)])
@torch.no_grad()
def test_conv2d_is_its_formula(kernel: Any, stride: Any, gaps: int) -> None:
    """With `same`, number by number: as many pixels as there are, divided by the stride and rounded up."""
    model = sound(
        f"type: conv2d, out: 4, {fields(kernel_size=kernel, stride=stride, dilation=gaps)}, padding: same, groups: 2",
        "",
        x=IMAGE.format(channels=2, height=5, width=6),
    )
    assert model is not None
    x, weight, bias = numbers(2, 2, 5, 6), model.block.weight, model.block.bias
    kernels, strides = ((n, n) if isinstance(n, int) else tuple(n) for n in (kernel, stride))
    before = [(k - 1) * gaps // 2 for k in kernels]
    y = model(x)[0]
    assert y.shape == (2, 4, -(-5 // strides[0]), -(-6 // strides[1]))
    for b, out, r, c in product(*map(range, y.shape)):
        total = bias[out]
        for i, j in product(range(kernels[0]), range(kernels[1])):
            row, column = r * strides[0] + i * gaps - before[0], c * strides[1] + j * gaps - before[1]
            if 0 <= row < 5 and 0 <= column < 6:
                total = total + weight[out, 0, i, j] * x[b, out // 2, row, column]
        torch.testing.assert_close(y[b, out, r, c], total, rtol=0, atol=1e-12)


@torch.no_grad()
def test_each_side_of_an_image_may_have_a_padding_of_its_own() -> None:
    """At the top, at the bottom, at the left and at the right."""
    theirs = nn.Sequential(nn.ZeroPad2d((2, 1, 0, 3)), nn.Conv2d(3, 4, 3, 2, dtype=torch.float64))
    model = sound("type: conv2d, out: 4, kernel_size: 3, stride: 2, padding: [0, 3, 2, 1]", "", x="float[batch, 3, height, 7]")
    assert model is not None
    theirs[1].load_state_dict(model.block.state_dict())
    x = numbers(2, 3, 6, 7)
    torch.testing.assert_close(model(x)[0], theirs(x), rtol=0, atol=1e-12)
    assert shape(model, {"batch": 2, "height": 6}) == tuple(theirs(x).shape)


@pytest.mark.parametrize("axes", [1, 2])
@torch.no_grad()
def test_transposed_convolutions_are_torch_s(axes: int) -> None:
    """With what is added to the output where the stride leaves a choice."""
    random, held = Random(2), 0
    for _ in CONFIGURATIONS:
        groups = random.choice([1, 1, 2, 3])
        kernel, stride, gaps = drawn(random, 1, 4, axes), drawn(random, 1, 3, axes), drawn(random, 1, 2, axes)
        padding, extra = random.choice([None, drawn(random, 0, 2, axes)]), random.choice([None, drawn(random, 0, 2, axes)])
        height, width, bias = random.randint(1, 6), random.randint(1, 6), random.random() < 0.5
        numbers_of = {"kernel_size": kernel, "stride": stride, "dilation": gaps, "padding": padding, "output_padding": extra}
        node = f"type: conv_transpose{axes}d, out: 6, {fields(**numbers_of, groups=groups, bias=bias)}"
        if axes == 2:
            theirs: nn.Module = nn.ConvTranspose2d(
                6, 6, kernel, stride, padding or 0, extra or 0, groups, bias, gaps, dtype=torch.float64
            )  # type: ignore[arg-type]  # lists too
            model = sound(node, "", x=IMAGE.format(channels=6, height=height, width=width))
            held += agree(model, theirs, numbers(2, 6, height, width), {"batch": 2})
            continue
        one = [n[0] if isinstance(n, list) else n for n in (kernel, stride, padding or 0, extra or 0, gaps)]
        theirs = Turned(nn.ConvTranspose1d(6, 6, *one[:4], groups, bias, one[4], dtype=torch.float64))
        model = sound(node, "", x=f"float[batch, {height}, 6]")
        held += agree(model, theirs, numbers(2, height, 6), {"batch": 2})
    assert held > 20


class Turned(nn.Module):
    """One of torch's modules, with the channels last."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._of = [module]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._of[0](x.mT).mT

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self._of[0].load_state_dict(*args, **kwargs)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("kind", ["max", "mean"])
@torch.no_grad()
def test_pools_are_torch_s(kind: str, axes: int) -> None:
    """The stride is that of the kernel unless one is written."""
    random, held = Random(3), 0
    modules = {("max", 1): nn.MaxPool1d, ("max", 2): nn.MaxPool2d, ("mean", 1): nn.AvgPool1d, ("mean", 2): nn.AvgPool2d}
    for _ in CONFIGURATIONS:
        kernel, stride = drawn(random, 1, 4, axes), random.choice([None, drawn(random, 1, 3, axes)])
        padding, last = (
            random.choice([None, drawn(random, 0, 2, axes)]),
            random.choice([1, 2]) if kind == "max" else random.random() < 0.5,
        )
        height, width = random.randint(1, 9), random.randint(1, 9)
        others: dict[str, Any] = {"dilation": last} if kind == "max" else {"count_include_pad": last}
        sizes, steps, pads = (n if isinstance(n, list) else [n] * axes for n in (kernel, stride or kernel, padding or 0))
        if all(step + pad <= size for size, step, pad in zip(sizes, steps, pads, strict=True)):
            others["ceil_mode"] = random.random() < 0.7
        written = {"kernel_size": kernel, "padding": padding, **({"stride": stride} if stride else {}), **others}
        node = f"type: {kind}_pool{axes}d, {fields(**written)}"
        of_torch: dict[str, Any] = {"kernel_size": kernel, "stride": stride, "padding": padding or 0, **others}
        if axes == 1:
            of_torch = {name: value[0] if isinstance(value, list) else value for name, value in of_torch.items()}
            theirs: nn.Module = Turned(modules[kind, axes](**of_torch))
            x, type_ = numbers(2, height, 3), f"float[batch, {height}, 3]"
        else:
            theirs = modules[kind, axes](**of_torch)
            x, type_ = numbers(2, 3, height, width), IMAGE.format(channels=3, height=height, width=width)
        held += agree(sound(node, "", x=type_), theirs, x, {"batch": 2})
    assert held > 20


@pytest.mark.parametrize(("kind", "empty"), [("max", float("-inf")), ("mean", 0.0)])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (4, 1), ([2, 5], 2), (4, [1, 3])])
@torch.no_grad()
def test_pools_with_an_odd_padding_are_their_formula(kind: str, empty: float, kernel: Any, stride: Any) -> None:
    """With `same`, what is odd comes after; a mean counts pixels that exist, or all."""
    kernels, strides = ((n, n) if isinstance(n, int) else tuple(n) for n in (kernel, stride))
    x = numbers(2, 3, 5, 6)
    for counted in (True, False) if kind == "mean" else (True,):
        more = "" if kind == "max" else f", {fields(count_include_pad=counted)}"
        model = sound(
            f"type: {kind}_pool2d, {fields(kernel_size=kernel, stride=stride)}, padding: same{more}",
            "",
            x=IMAGE.format(channels=3, height=5, width=6),
        )
        assert model is not None
        y = model(x)[0]
        assert y.shape == (2, 3, -(-5 // strides[0]), -(-6 // strides[1]))
        for r, c in product(range(y.shape[2]), range(y.shape[3])):
            rows = [r * strides[0] + i - (kernels[0] - 1) // 2 for i in range(kernels[0])]
            columns = [c * strides[1] + j - (kernels[1] - 1) // 2 for j in range(kernels[1])]
            there = torch.stack([x[:, :, i, j] for i, j in product(rows, columns) if 0 <= i < 5 and 0 <= j < 6])
            expected = there.amax(0) if kind == "max" else there.sum(0) / (len(rows) * len(columns) if counted else len(there))
            torch.testing.assert_close(y[:, :, r, c], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "node",
    [
        "max_pool1d, kernel_size: 3",
        "max_pool1d, kernel_size: 2, dilation: 2",
        "mean_pool1d, kernel_size: 3",
        "mean_pool1d, kernel_size: 4, count_include_pad: false",
    ],
)
@torch.no_grad()
def test_causal_pools_see_what_is_earlier(node: str) -> None:
    """Position by position; and in a session of a language model, however its tokens are split."""
    model = sound(f"type: {node}, causal: true", "", x="float[batch, time, 3]")
    assert model is not None
    x = numbers(2, 7, 3)
    kind, gap = node.partition("_")[0], 2 if "dilation" in node else 1
    kernel = int(node.partition("kernel_size: ")[2][0])
    y = model(x)[0]
    for t in range(7):
        seen = torch.stack([x[:, t - k * gap] for k in range(kernel) if t - k * gap >= 0])
        count = len(seen) if "false" in node else kernel
        torch.testing.assert_close(y[:, t], seen.amax(0) if kind == "max" else seen.sum(0) / count, rtol=0, atol=1e-12)
    text = f"""recipe: pooling
task: causal_lm
inputs: {{tokens: "int[batch, time]"}}
graph:
  embed: {{type: embedding, vocab: 11, dim: 6}}
  pool: {{type: {node}, causal: true}}
  head: {{type: linear, out: 11}}
outputs: {{logits: head}}
"""
    language = composer.load(text).compile(seed=0, dtype=torch.float64).eval()
    tokens = torch.randint(0, 11, (2, 7), generator=torch.Generator().manual_seed(0))
    whole = language(tokens=tokens).logits
    for step in (1, 2, 3, 7):
        with session(language):
            pieces = [language(tokens=tokens[:, start : start + step]).logits for start in range(0, 7, step)]
        torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=0, atol=1e-12)
    looks_ahead = composer.load(text.replace("causal: true", "stride: 1, padding: same")).check()
    assert [found.code for found in looks_ahead if found.severity == "error"] == ["not-causal"]


@pytest.mark.parametrize("axes", [1, 2])
@torch.no_grad()
def test_interpolation_is_torch_s(axes: int) -> None:
    """To a size, or by a factor, also of lengths that are known only when the model runs."""
    random = Random(4)
    for _ in range(120):
        mode = random.choice(["nearest", "linear", "area", "cubic"][: 2 + axes])
        height, width = random.randint(2, 9), random.randint(2, 9)
        symbolic = random.random() < 0.3
        by_size = random.random() < 0.5
        several = (
            [random.randint(1, 12) for _ in range(axes)]
            if by_size
            else [random.choice([0.5, 0.75, 1.5, 2, 3]) for _ in range(axes)]
        )
        value: Any = random.choice([several[0], several])
        linear = mode in ("linear", "cubic")
        corners, smooth = linear and random.random() < 0.5, linear and axes == 2 and random.random() < 0.5
        written = {
            "size" if by_size else "scale": value,
            "mode": mode,
            "align_corners": corners,
            **({"antialias": smooth} if axes == 2 else {}),
        }
        sizes = {"batch": 2, "time": height, "height": height, "width": width}
        type_ = (
            f"float[batch, {'time' if symbolic else height}, 3]"
            if axes == 1
            else IMAGE.format(channels=3, height="height" if symbolic else height, width=width)
        )
        model = sound(f"type: interpolate{axes}d, {fields(**written)}", "", x=type_)
        assert model is not None
        x = numbers(2, height, 3) if axes == 1 else numbers(2, 3, height, width)
        of_torch = {"linear": {1: "linear", 2: "bilinear"}, "cubic": {2: "bicubic"}}.get(mode, {}).get(axes, mode)
        sides: Any = value if isinstance(value, list) else [value] * axes
        given: Any = {"size": sides} if by_size else {"scale_factor": [float(side) for side in sides]}
        stream = x.mT if axes == 1 else x
        expected = nn.functional.interpolate(
            stream, mode=of_torch, align_corners=corners if linear else None, antialias=smooth, **given
        )
        expected = expected.mT if axes == 1 else expected
        torch.testing.assert_close(model(x)[0], expected, rtol=0, atol=1e-12)
        assert tuple(expected.shape) == shape(model, sizes)


def test_batchnorm2d_is_torch_s() -> None:
    """In training, where the running statistics move, and in evaluation."""
    for affine, momentum in product((True, False), (0.1, 0.3)):
        model = recipe(
            f"type: batchnorm2d, {fields(affine=affine)}, momentum: {momentum}", x=IMAGE.format(channels=3, height=4, width=5)
        ).compile(seed=0, dtype=torch.float64)
        theirs = nn.BatchNorm2d(3, momentum=momentum, affine=affine, dtype=torch.float64)
        theirs.load_state_dict({**model.block.state_dict(), "num_batches_tracked": torch.tensor(0)})
        for seed in range(3):
            x = numbers(2, 3, 4, 5, seed=seed)
            torch.testing.assert_close(model(x)[0], theirs(x), rtol=0, atol=1e-12)
        model.eval(), theirs.eval()
        torch.testing.assert_close(model(x)[0], theirs(x), rtol=0, atol=1e-12)
        torch.testing.assert_close(model.block.running_var, theirs.running_var)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_groupnorm2d_is_torch_s(groups: int) -> None:
    """Also with the channels of each image last in memory."""
    model = recipe(f"type: groupnorm2d, groups: {groups}", x=IMAGE.format(channels=6, height=4, width=5))
    ours, theirs = model.compile(seed=0, dtype=torch.float64), nn.GroupNorm(groups, 6, dtype=torch.float64)
    ours.block.load_state_dict({"weight": numbers(6, seed=1), "bias": numbers(6, seed=2)})
    theirs.load_state_dict(ours.block.state_dict())
    for x in (numbers(2, 6, 4, 5), numbers(2, 6, 4, 5).to(memory_format=torch.channels_last)):
        torch.testing.assert_close(ours(x)[0], theirs(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["conv2d", "conv_transpose2d", "conv_transpose1d"])
def test_initial_values_are_torch_s(kind: str) -> None:
    """Uniform, with the bounds of torch's modules."""
    one = kind.endswith("1d")
    model = recipe(
        f"type: {kind}, out: 64, kernel_size: 3, groups: 4", x=f"float[batch, {'time, 32' if one else '32, 8, 8'}]"
    ).compile(seed=0)
    torch.manual_seed(0)
    classes: Any = {"conv2d": nn.Conv2d, "conv_transpose2d": nn.ConvTranspose2d, "conv_transpose1d": nn.ConvTranspose1d}
    theirs = classes[kind](32, 64, 3, groups=4)
    for name, tensor in theirs.state_dict().items():
        ours = model.block.state_dict()[name]
        assert ours.shape == tensor.shape
        bound, other = ours.abs().max().item(), tensor.abs().max().item()
        assert bound == pytest.approx(other, rel=0.1)
        assert ours.std().item() == pytest.approx(bound / 3**0.5, rel=0.15)


BIG, SMALL = IMAGE.format(channels=6, height=8, width=8), IMAGE.format(channels=6, height=2, width=8)


@pytest.mark.parametrize(
    ("node", "type_", "said"),
    [
        ("type: conv2d, out: 4, kernel_size: 3", SMALL, "3: a kernel that spans 3 does not fit in a height of 2"),
        ("type: conv2d, out: 4, kernel_size: 3, dilation: 3, padding: 2", SMALL,
         "3: a kernel that spans 7 does not fit in a height of 2 with 4 added around it"),
        ("type: max_pool2d, kernel_size: [2, 9]", BIG, "[2, 9]: a kernel that spans 9 does not fit in a width of 8"),
        ("type: conv2d, out: 4, kernel_size: 3, groups: 4", BIG, "4: 6 channels of the input cannot be split into 4 groups"),
        ("type: conv_transpose2d, out: 4, kernel_size: 3, groups: 3", BIG,
         "3: 4 channels of the output cannot be split into 3 groups"),
        ("type: conv_transpose2d, out: 4, kernel_size: 2, padding: 3", SMALL, "3: a height of -3 is left of the output"),
        ("type: conv_transpose2d, out: 4, kernel_size: 2, stride: 2, output_padding: 2", BIG,
         "2: an output padding of 2 is not less than the stride 2 or the dilation 1"),
        ("type: conv2d, out: 4, kernel_size: [3, 3, 3]", BIG, "[3, 3, 3]: `kernel_size` has 3 numbers for 2 axes"),
        ("type: conv2d, out: 4, kernel_size: 3, padding: []", BIG, "[]: `padding` has 0 numbers for 2 axes"),
        ("type: conv2d, out: 4, kernel_size: 3, stride: [1]", BIG, "[1]: `stride` has one number for 2 axes"),
        ("type: conv2d, out: 4, kernel_size: 0", BIG, "0: `kernel_size` must be at least 1, not 0"),
        ("type: conv2d, out: 4, kernel_size: [3, 0]", BIG, "0: `kernel_size` must be at least 1, not 0"),
        ("type: conv2d, out: 4, kernel_size: 3, padding: sane", BIG, "sane: there is no name called `sane`"),
        ("type: mean_pool2d, kernel_size: 2, padding: 2", BIG, "2: a padding of 2 is more than half of a kernel of 2"),
        ("type: max_pool1d, kernel_size: 2, causal: true, stride: 2", "float[batch, time, 4]",
         "2: a causal pooling gives a value for each position, so its stride is 1"),
        ("type: max_pool1d, kernel_size: 2, causal: true, padding: 1", "float[batch, time, 4]",
         "1: a causal pooling has its padding on the left, as much as the kernel spans"),
        ("type: interpolate2d", BIG, "block: takes either `size` or `scale`"),
        ("type: interpolate2d, size: 4, scale: 2", BIG, "2: takes either `size` or `scale`"),
        ("type: interpolate2d, scale: 0.25", SMALL, "0.25: nothing is left of a height of 2"),
        ("type: interpolate2d, scale: 2, align_corners: true", BIG, "true: only `linear` and `cubic` can align corners"),
        ("type: interpolate2d, scale: 2, antialias: true", BIG, "true: only `linear` and `cubic` can be smoothed"),
        ("type: interpolate1d, scale: 1 / 3", "float[batch, time, 4]", "1 / 3: 0.333 times `time` is not exact"),
        ("type: conv2d, out: 4, kernel_size: 3", "float[batch, time, 4]",
         "x: port x of conv2d takes float[batch, channels, height, width], not float[batch, time, 4]: it has 3 axes"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_where_it_stands(node: str, type_: str, said: str) -> None:
    """The field that is wrong, and the numbers that do not go together."""
    assert refusal(node, "x", x=type_) == said


def test_numbers_of_axes_may_be_params() -> None:
    """A word too; a list of equal numbers is the number."""
    text = """recipe: params
params: {kernel: 3, pads: {type: choice, of: [same, wide], default: same}}
inputs: {image: "float[batch, 3, 8, 8]"}
graph: {conv: {type: conv2d, out: 4, kernel_size: KERNEL, padding: pads}}
"""
    one, listed = (
        composer.load(text.replace("KERNEL", "kernel")),
        composer.load(text.replace("KERNEL", "[kernel, 2 * kernel - 3]")),
    )
    assert [str(one.program.root.outputs["conv"]), str(listed.program.root.outputs["conv"])] == ["float[batch, 4, 8, 8]"] * 2
    assert not one.diff(listed).changes
