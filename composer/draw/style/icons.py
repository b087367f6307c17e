"""The small pictures in blocks: what a mask lets be seen, and the curve of an activation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from blocks.activations.rectifiers import Relu, ReluSquared, Softplus
from blocks.activations.self_gated import ClampedSilu, Gelu, GeluTanh, QuickGelu, Silu
from blocks.activations.squashing import Sigmoid, Tanh
from blocks.activations.xielu import Xielu
from blocks.core import Activation, fields
from blocks.masks.by_data import Chosen, Documents, Given, Prefix, Valid
from blocks.masks.mask import Mask, Pair
from composer.draw.scene import Cells, Curve

CELLS = 8
"""Positions to a side of a mask's picture."""
LARGEST: Mapping[str, int] = {
    "causal": 0,
    "window": 3,
    "near": 2,
    "lookahead": 2,
    "first": 1,
    "last": 1,
    "prefix": 3,
    "chunk": 4,
    "strided": 3,
    "dilated": 2,
    "block_window": 2,
    "random": 2,
}
"""What the numbers of a mask shrink to, so that its form is seen in so few positions; smaller ones stay."""
SAMPLES: Mapping[type[Mask], Callable[[int, int], Pair]] = {
    Valid: lambda q, k: Pair(q < CELLS - 2, k < CELLS - 2),  # padding at the end
    Documents: lambda q, k: Pair(q // 3, k // 3),  # packed documents
    Prefix: lambda q, k: Pair(3, 3),
    Chosen: lambda q, k: Pair(q in (1, 5), k in (1, 5)),
    Given: lambda q, k: Pair(None, (3 * q + 5 * k) % 7 < 4),
}
"""Data for masks that the data decides."""


@cache
def mask_icon(mask: Mask, absent: frozenset[str] = frozenset()) -> Cells:
    """Who sees whom among a few positions, by the mask's own predicate; `absent` are the ports of edges that may be left out."""
    small = shrunk(mask)
    return Cells(tuple(tuple(sees(small, q, k, absent) for k in range(CELLS)) for q in range(CELLS)))


def sees(mask: Mask, q: int, k: int, absent: frozenset[str]) -> bool:
    """Whether a query sees a key, where edges carry the samples."""
    carried = {port: None if port in absent else sample(q, k) for port, sample in samples(mask).items()}
    return bool(mask.allows(q, k, ends=Pair(CELLS - 1, CELLS - 1), **carried))


def samples(mask: Mask) -> dict[str, Callable[[int, int], Pair]]:
    """What each edge of a mask carries in its picture, by port."""
    found: dict[str, Callable[[int, int], Pair]] = {}
    for name in fields(type(mask)):
        match getattr(mask, name):
            case Mask() as inner:
                found |= samples(inner)
            case str() as port if type(mask) in SAMPLES:
                found[port] = SAMPLES[type(mask)]
    return found


def shrunk(mask: Mask) -> Mask:
    """The mask with its numbers made small."""
    changed: dict[str, Any] = {}
    for name in fields(type(mask)):
        match getattr(mask, name):
            case Mask() as inner:
                changed[name] = shrunk(inner)
            case int() as value if name not in ("seed", "radius") or mask.kind == "near":
                changed[name] = min(value, LARGEST.get(mask.kind, CELLS // 2))
            case value:
                changed[name] = min(value, 1) if name == "radius" else value
    return type(mask).model_construct(**changed)


STEPS = 24
"""Straight pieces of a curve."""
REACH = 3.0
"""A curve is drawn from minus to plus this."""
GELU_SLOPE = math.sqrt(2 / math.pi)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _xielu(x: float) -> float:
    return (0.8 * x * x if x > 0 else 0.8 * (math.expm1(x) - x)) + x / 2


CURVES: Mapping[type[Activation], Callable[[Any, float], float]] = {
    Relu: lambda _, x: max(x, 0.0),
    ReluSquared: lambda _, x: max(x, 0.0) ** 2,
    Softplus: lambda _, x: math.log1p(math.exp(x)),
    Gelu: lambda _, x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    GeluTanh: lambda _, x: x / 2 * (1 + math.tanh(GELU_SLOPE * (x + 0.044715 * x**3))),
    QuickGelu: lambda _, x: x * _sigmoid(1.702 * x),
    Silu: lambda _, x: x * _sigmoid(x),
    ClampedSilu: lambda part, x: min(x, part.limit) * _sigmoid(part.alpha * min(x, part.limit)),
    Sigmoid: lambda _, x: _sigmoid(x),
    Tanh: lambda _, x: math.tanh(x),
    Xielu: lambda _, x: _xielu(x),  # where its two learned numbers start
}
"""Activations without torch, which a drawing does not load; a test holds each against the activation itself."""


@cache
def curve_icon(activation: Activation) -> Curve | None:
    """The curve of an activation; none where its formula is not known here."""
    formula = CURVES.get(type(activation))
    if formula is None:
        return None
    places = [2 * step / STEPS - 1 for step in range(STEPS + 1)]
    heights = [formula(activation, REACH * place) for place in places]
    low, high = min(heights), max(heights)
    return Curve(tuple(((place + 1) / 2, (height - low) / (high - low)) for place, height in zip(places, heights, strict=True)))
