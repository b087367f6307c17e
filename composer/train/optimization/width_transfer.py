"""Maximal update parametrization (muP; Yang et al. 2022, Tensor Programs V, table 3): initial values and learning rates of a wide
model with which it trains as a narrow one does, so that a learning rate found there can be used.

Which axes are widths is told by the two models: those that differ between them. The initial values and the learning rate are the
recipe's own at the narrow widths; at r times the width that a matrix reads,

- a matrix whose outputs are wider too has initial values that are √r times smaller;
- a matrix with as many outputs, such as a head or a router, has initial values that are r times smaller;
- embeddings, biases and gains have the same.

Learning rates depend on the optimizer (`RULES`).

Scores of attention must be scaled by 1 / head_dim: so either the heads keep their width and become more, or `scale` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from blocks.core import Init
from composer.diagnostics import RecipeError, Span
from composer.graph.initial_values import start_of
from composer.graph.parameters import NamedParameter, parameters
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.visit import walk
from composer.lower.model import Model
from composer.train.errors import TrainingError
from composer.train.optimization.decay_groups import hidden_matrices
from composer.train.unwrap import own_name, unwrapped

MATRICES = frozenset({"matrix", "experts"})
SAME = 1e-6
"""The relative difference of scales of scores that rounding explains."""


@dataclass(frozen=True)
class Wider:
    """By which factors a parameter of a wide model is wider."""

    outputs: float
    inputs: float
    """1 for what is no matrix, of which each number is an output."""
    longest: float
    """That of its longer side."""
    is_inside: bool
    """Whether it is a matrix that Muon updates."""


def _adam(wider: Wider) -> float:
    """Return the factor for steps whose size does not depend on the gradient's, as those of all kinds of Adam."""
    return 1 / wider.inputs


def _sgd(wider: Wider) -> float:
    """Return the factor for steps in proportion to the gradient."""
    return wider.outputs / wider.inputs


def _muon(wider: Wider) -> float:
    """Return the factor for orthogonal steps, which torch multiplies by the root of the longer side. By their spectral norm, they
    are to grow as √(outputs / inputs) (Yang, Simon and Bernstein 2023, A Spectral Condition for Feature Learning).
    """
    return float(wider.outputs / wider.inputs / wider.longest) ** 0.5 if wider.is_inside else _adam(wider)


RULES: Mapping[str, Callable[[Wider], float]] = {"adamw": _adam, "adam": _adam, "nadam": _adam, "sgd": _sgd, "muon": _muon}
"""The factor of the learning rate, by optimizer."""


@dataclass(frozen=True)
class WidthScale:
    """How a parameter of a wide model differs from its recipe.

    Examples:
        >>> from composer.train import WidthScale
        >>> WidthScale(start=0.5, rate=0.25).rate
        0.25
    """

    start: float
    """The factor of its initial values."""
    rate: float
    """The factor of its learning rate."""


def width_scales(model: nn.Module, narrow: Sequence[str], *, optimizer: str = "adamw") -> dict[str, WidthScale]:
    """Return how each parameter of a model differs from its recipe, by its name; a tied one is listed once.

    Args:
        model: A compiled recipe, also in wrappers.
        narrow: The values of params in the narrow model, as `PATH=VALUE`.
        optimizer: The optimizer, as the setting `optimizer`: `adamw`, `adam`, `nadam`, `sgd` or `muon`.

    Raises:
        TrainingError: The narrow recipe has errors, or the two models differ in more than widths.

    Examples:
        >>> import composer
        >>> from composer.train import width_scales
        >>> wide = composer.load("gpt_mini", {"vocab": 20, "d_model": 64, "n_heads": 8, "head.tie": None}).compile(seed=0)
        >>> scales = width_scales(wide, ["d_model=16", "n_heads=2"])
        >>> scales["layers.0.ffn.body.up.weight"], scales["embed.weight"], scales["head.weight"].start
        (WidthScale(start=0.5, rate=0.25), WidthScale(start=1.0, rate=1.0), 0.25)
    """
    inner = unwrapped(model)
    if not isinstance(inner, Model):
        raise TrainingError("only a model that was compiled from a recipe has a narrow one", hint="leave out `mup`")
    recipe: Any = inner.recipe
    try:
        other: TypedProgram = recipe.with_overrides([*narrow]).program
    except RecipeError as error:
        raise TrainingError(f"the narrow model has errors: {error.diagnostics[0].message}", hint="see `mup`") from None
    program = inner.program
    spans = {visit.path: visit.node.node.name_span for visit in walk(program.root)}
    _check_attention(program, other, spans)
    wide, small = ({each.name: each for each in parameters(one)} for one in (program, other))
    if different := sorted(wide.keys() ^ small.keys()):
        raise TrainingError(f"`{different[0]}` is in one of the wide and the narrow model alone", hint="differ in widths alone")
    matrices = hidden_matrices(inner) if optimizer == "muon" else set()
    inside = {own_name(name) for name, parameter in inner.named_parameters() if parameter in matrices}
    found: dict[str, WidthScale] = {}
    for name, entry in wide.items():
        before, span = small[name], _span(name, spans)
        if entry.tied_to:
            owner = wide[entry.tied_to]
            if entry.parameter.role != owner.parameter.role and entry.parameter.shape != before.parameter.shape:
                raise _refused(
                    f"`{name}` is tied to `{entry.tied_to}`, which needs other initial values and another learning rate",
                    span,
                    "leave out the tie, with --set NODE.tie=null",
                )
            continue
        starts = _init(program, entry), _init(other, before)
        found[name] = _scale(entry, before, starts, span, RULES[optimizer], is_inside=name in inside)
    return found


def _scale(
    entry: NamedParameter,
    before: NamedParameter,
    inits: tuple[Init, Init],
    span: Span | None,
    rule: Callable[[Wider], float],
    *,
    is_inside: bool,
) -> WidthScale:
    shape, small, role = entry.parameter.shape, before.parameter.shape, entry.parameter.role
    if len(shape) != len(small):
        raise _refused(f"`{entry.name}` has other axes in the narrow model", span, "differ in widths alone")
    if shape == small:
        return WidthScale(1.0, 1.0)
    wider = [length / narrow for length, narrow in zip(shape, small, strict=True)]
    start, factors = 1.0, Wider(max(wider), 1.0, max(wider), is_inside)
    if role in MATRICES and len(shape) >= 2:
        outputs, inputs = wider[1:3] if role == "experts" else wider[:2]
        others = wider[:1] + wider[3:] if role == "experts" else wider[2:]
        if any(other != 1 for other in others):
            raise _refused(f"`{entry.name}` is {[*shape]}, and {[*small]} in the narrow model", span, "differ in widths alone")
        factors = Wider(outputs, inputs, max(shape) / max(small), is_inside)
        start = inputs**-0.5 if outputs != 1 else 1 / inputs
    elif role == "adapter":
        raise _refused(f"`{entry.name}` is of an adapter, which has no widths of its own", span, "leave out `mup`")
    return WidthScale(start * _spread_ratio(entry.name, inits[1], inits[0], span), rule(factors))


def _spread_ratio(name: str, narrow: Init, wide: Init, span: Span | None) -> float:
    """Return by how much the initial values in the narrow model are larger than in the wide one, as their recipe has them."""
    if narrow.how != wide.how or narrow.formula != wide.formula:
        raise _refused(f"`{name}` starts from {wide.text()}, and in the narrow model from {narrow.text()}", span, "see `init`")
    if not wide.is_drawn or wide.formula or not float(wide.value):
        return 1.0
    return float(narrow.value) / float(wide.value)


def _init(program: TypedProgram, entry: NamedParameter) -> Init:
    return start_of(program.untyped, entry) or entry.parameter.init


def _check_attention(wide: TypedProgram, narrow: TypedProgram, spans: Mapping[str, Span]) -> None:
    """Raise `TrainingError` if scores of attention are not scaled by 1 / head_dim where heads are wider."""
    before = {visit.path: visit.node for visit in walk(narrow.root)}
    for visit in walk(wide.root):
        node, other = visit.node, before.get(visit.path)
        if not isinstance(node, TypedBlock) or not isinstance(other, TypedBlock):
            continue
        dims = [_head_dim(each.part) for each in (node, other)]
        scales: list[Any] = [getattr(each.part, "scale", None) for each in (node, other)]
        if not all(isinstance(each, int | float) for each in (*dims, *scales)) or dims[0] == dims[1]:
            continue
        needed = scales[1] * dims[1] / dims[0]
        if abs(scales[0] - needed) > SAME * needed:
            raise _refused(
                f"the heads of `{visit.path}` have the width {dims[0]}, and {dims[1]} in the narrow model, so that scores must "
                f"be scaled by {needed:.4g}, and are by {scales[0]:.4g}",
                spans.get(visit.path),
                "make heads more instead of wider, or set the scale to that",
            )


def _head_dim(part: Any) -> Any:
    """Return the width in which a part compares queries with keys; None if it is no attention."""
    nope, rope = getattr(part, "nope_dim", None), getattr(part, "rope_dim", None)
    return getattr(part, "head_dim", None) if nope is None or rope is None else nope + rope


def _span(name: str, spans: Mapping[str, Span]) -> Span | None:
    """Return where the node of a parameter is written: the innermost that its name has."""
    parts = name.split(".")
    return next((spans[path] for count in range(len(parts), 0, -1) if (path := ".".join(parts[:count])) in spans), None)


def _refused(message: str, span: Span | None, hint: str) -> TrainingError:
    place = "" if span is None else f"{span.source.name}:{span.line}: "
    return TrainingError(f"{place}{message}", hint=hint)


@torch.no_grad()
def mup_init(model: nn.Module, narrow: Sequence[str]) -> None:
    """Scale the initial values of a freshly compiled model as muP has them.

    Args:
        model: A compiled recipe; its weights are changed.
        narrow: The values of params in the narrow model, as `PATH=VALUE`.

    Raises:
        TrainingError: As `width_scales`.

    Examples:
        >>> import composer
        >>> from composer.train import mup_init
        >>> wide = composer.load("gpt_mini", {"vocab": 20, "d_model": 64, "n_heads": 8, "head.tie": None}).compile(seed=0)
        >>> before = wide.head.weight.detach().std()
        >>> mup_init(wide, ["d_model=16", "n_heads=2"])
        >>> round(float(before / wide.head.weight.detach().std()), 3)
        4.0
    """
    scales = width_scales(model, narrow)
    for name, parameter in unwrapped(model).named_parameters():
        if (scale := scales.get(own_name(name))) is not None and scale.start != 1:
            parameter.mul_(scale.start)


def by_width(
    model: nn.Module, groups: Sequence[Mapping[str, Any]], narrow: Sequence[str], *, optimizer: str = "adamw"
) -> list[dict[str, Any]]:
    """Return groups of parameters, divided by the factor of their learning rate, which is the entry `rate` of each.

    Weight decay is multiplied by the learning rate, and so is divided by the factor: all widths decay alike.
    """
    scales = width_scales(model, narrow, optimizer=optimizer)
    rates: dict[nn.Parameter, float] = {}
    for name, parameter in unwrapped(model).named_parameters(remove_duplicate=False):
        if (scale := scales.get(own_name(name))) is not None:
            rates[parameter] = scale.rate
    found = []
    for group in groups:
        for rate in dict.fromkeys(rates[parameter] for parameter in group["params"]):
            params = [parameter for parameter in group["params"] if rates[parameter] == rate]
            found.append({**group, "params": params, "rate": rate, "weight_decay": group["weight_decay"] / rate})
    return found
