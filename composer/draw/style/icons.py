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
from blocks.core import Activation, NodeRef, fields
from blocks.masks.mask import CELLS, Mask, Pair
from composer.draw.scene import Cells, Curve


@cache
def mask_icon(mask: Mask, absent: frozenset[str] = frozenset()) -> Cells:
    """Who sees whom among a few positions, by the mask's own predicate; `absent` are the ports of edges that may be left out."""
    small = mask.shrunk()
    return Cells(tuple(tuple(sees(small, q, k, absent) for k in range(CELLS)) for q in range(CELLS)))


def sees(mask: Mask, q: int, k: int, absent: frozenset[str]) -> bool:
    """Whether a query sees a key, where edges carry the samples."""
    carried = {port: None if port in absent else sample for port, sample in samples(mask, q, k).items()}
    return bool(mask.allows(q, k, ends=Pair(CELLS - 1, CELLS - 1), **carried))


def samples(mask: Mask, q: int, k: int) -> dict[str, Pair | None]:
    """What each edge of a mask carries in its picture, by port."""
    found: dict[str, Pair | None] = {}
    for name in fields(type(mask)):
        match getattr(mask, name):
            case Mask() as inner:
                found |= samples(inner, q, k)
            case NodeRef() as port:
                found[port] = mask.sample(name, q, k)
    return found


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
