"""Start a larger model from a smaller one, with equal outputs."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from composer.diagnostics import Span
from composer.graph.parameters import parameters
from composer.graph.visit import walk
from composer.language.name_patterns import folded
from composer.language.wording import counted
from composer.lower.model import Model
from composer.train.errors import TrainingError
from composer.train.growing.axes import KEPT, AddedPlaces, AxisGrowth, BlockPair, NotEqual, Repeated
from composer.train.growing.new_passes import silent
from composer.train.growing.pairs import NewPass, OldPass, refused, side_by_side
from composer.verify.inputs import draw, draws

ROUNDING = 1e-9
"""Largest difference of outputs in float64, relative to the largest, that the order of sums explains."""
UNEQUAL = 0.2
"""By how much of a weight the shares of the copies of a channel are unequal at most, so that they learn different things."""


@dataclass(frozen=True)
class Growth:
    """What became of the weights of a larger model."""

    kept: tuple[str, ...]
    """The names of the tensors that are those of the smaller model."""
    widened: tuple[str, ...]
    """Names of those that hold the tensor of the smaller model and more."""
    new: tuple[str, ...]
    """Names that the smaller model lacks, of new layers, which keep the values that they start with."""
    silent: tuple[str, ...]
    """Names of the last maps of residual branches in new layers, and of norms behind them: zero, so that these layers return what
    they are given."""
    difference: float
    """The largest difference of the outputs, relative to the largest of them: what was compared, in float64."""

    def __str__(self) -> str:
        lines = [f"grown with equal outputs: {counted(len(self.kept), 'tensor')} kept"]
        parts = (("widened", self.widened), ("new", self.new), ("new, and zero", self.silent))
        lines += [f"{what}: {folded(names)}" for what, names in parts if names]
        return "\n".join(lines)


@torch.no_grad()
def grow(model: Model[Any], smaller: Model[Any], *, new_layers: Sequence[str] = ()) -> Growth:
    """Give a larger model the weights of a smaller one of the same architecture, such that both compute the same.

    - New layers come behind those that are there, or where `new_layers` says; the last maps of their residual branches are zero,
      or the gain of the norm behind one.
    - New hidden units and heads have weights of zero in the map that adds up what they give.
    - New experts are not chosen until the bias of their logit, which is −∞, is raised.
    - A width of the stream becomes a multiple: all channels are repeated, and what reads them divides its weights among the
      copies, in unequal parts, so that the copies learn different things.
    - A vocabulary and a table of positions have more rows.

    What else is new keeps the values that it starts with, so that it learns. Both models then compute the outputs of two draws of
    inputs in float64, which are compared. Losses of the recipe's own, such as the balance of experts, may differ.

    Args:
        model: The larger model, freshly compiled; only its weights are changed.
        smaller: The smaller model.
        new_layers: Which layers of the larger model are new, as patterns of a shell, such as `layers.0` and `layers.[24]`; of a
            repeat for which none is named, the last ones. The others are those of the smaller model, in their order.

    Raises:
        TrainingError: Something besides sizes differs, a size is one with which the outputs would not be equal, the outputs
            differ, or `new_layers` matches no layer or too many. Some weights may be changed by then.

    Examples:
        >>> import composer
        >>> from composer.train import grow
        >>> tiny = {"vocab": 20, "d_model": 16, "n_layers": 1}
        >>> smaller = composer.load("gpt_mini", tiny).compile(seed=0)
        >>> larger = composer.load("gpt_mini", {**tiny, "n_layers": 2, "layers.ffn.body.hidden": 96}).compile(seed=1)
        >>> print(str(grow(larger, smaller)).splitlines()[0])
        grown with equal outputs: 8 tensors kept
    """
    plans, passes, old, spans = _planned(model, smaller, new_layers)
    silent = {name: value for each in passes.values() for name, value in each.items()}
    before, now = ({each.name: each.owner for each in parameters(one.program)} for one in (smaller, model))
    given, own = smaller.state_dict(), model.state_dict()
    was = {name: _name_before(name, passes, old) for name in {*now, *own}}
    for name, owner in now.items():
        if owner == name or was[name] not in before:
            continue
        if before.get(was[owner] or "") != before[was[name] or ""]:
            raise refused(
                NotEqual(f"`{name}` is tied to `{owner}`, and has weights of its own in the smaller model"), spans[name]
            )
        if plans.get(name) != plans.get(owner):
            message = f"`{name}` is tied to `{owner}`, and would have to grow in another way: what it reads is repeated"
            raise refused(NotEqual(message, "leave out the tie, with which both start from the same weights"), spans[name])
    kept, widened, new = [], [], []
    chance = torch.Generator().manual_seed(0)
    for name, value in own.items():
        earlier = was[name]
        if earlier is None:
            if name not in silent:
                new.append(name)
            continue
        source = before.get(earlier, earlier)
        if source not in given:
            raise TrainingError(f"`{name}` is not in the smaller model", hint="grow in sizes alone")
        axes = plans.get(name, ())
        if value.shape == given[source].shape and all(axis == KEPT for axis in axes):
            value.copy_(given[source])
            kept.append(name)
        else:
            _check_shapes(name, value, given[source], axes)
            value.copy_(_grown(given[source], value, axes, chance))
            widened.append(name)
    for path, values in passes.items():
        for name, number in values.items():
            if not now[name].startswith(f"{path}."):
                message = f"`{name}` would have to be zero, and is tied to `{now[name]}`"
                raise TrainingError(message, hint="leave out the tie in new passes")
            own[name].fill_(number)
    found = _difference(model, smaller)
    if not found <= ROUNDING:
        raise TrainingError(
            f"the outputs of the larger model differ from those of the smaller one, by {found:.1e} of the largest",
            hint="something besides sizes is different: arco diff shows what",
        )
    return Growth(tuple(kept), tuple(widened), tuple(new), tuple(silent), found)


Plans = Mapping[str, tuple[AxisGrowth, ...]]


Silence = Mapping[str, Mapping[str, float]]
"""What makes each new pass silent, by its path."""


def _name_before(name: str, new: Collection[str], old: Mapping[str, str]) -> str | None:
    """Return the name that a tensor has in the smaller model if it is there; None in a new pass.

    Args:
        name: Its name.
        new: The paths of new passes.
        old: For the path of each other pass, that in the smaller model.
    """
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path, rest = ".".join(parts[:count]), parts[count:]
        if path in new:
            return None
        if path in old:
            return ".".join([old[path], *rest])
    return name


def _planned(
    model: Model[Any], smaller: Model[Any], new_layers: Sequence[str]
) -> tuple[Plans, Silence, Mapping[str, str], Mapping[str, Span]]:
    """Return how each parameter grows, what makes each new pass silent, which pass of the smaller model each other one is, and
    where each parameter is declared in the recipe.
    """
    places = {visit.path: visit.node.node.name_span for visit in walk(model.program.root)}
    plans: dict[str, tuple[AxisGrowth, ...]] = {}
    passes: dict[str, Mapping[str, float]] = {}
    spans: dict[str, Span] = {}
    old: dict[str, str] = {}
    for each in side_by_side(smaller.program, model.program, new_layers):
        match each:
            case NewPass():
                passes[each.path] = silent(each)
            case OldPass():
                old[each.path] = each.before
            case BlockPair():
                span = places.get(each.path, each.large.node.name_span)
                try:
                    growth = each.growth()
                except NotEqual as wrong:
                    raise refused(wrong, span) from None
                plans |= {f"{each.path}.{name}": axes for name, axes in growth.items()}
                spans |= {f"{each.path}.{name}": span for name in growth}
    return plans, passes, old, spans


def _check_shapes(name: str, value: Tensor, smaller: Tensor, axes: tuple[AxisGrowth, ...]) -> None:
    """Raise `TrainingError` if a parameter has another shape, and nothing says how it grows, as for adapters."""
    if len(axes) != value.dim():
        raise TrainingError(
            f"`{name}` has the shape {list(value.shape)}, and {list(smaller.shape)} in the smaller model",
            hint="nothing says how it grows with equal outputs",
        )


def _shares(weight: Tensor, parts: int, chance: torch.Generator) -> list[Tensor]:
    """Return tensors that add up to another exactly, in unequal shares: what is at least half of a number can be taken from it
    without rounding (Sterbenz).
    """
    if parts == 1:
        return [weight]
    larger = (parts + 1) // 2
    share = larger / parts + UNEQUAL * torch.rand(weight.shape, generator=chance)
    first = weight * share.to(weight)
    second = weight - first
    if 2 * larger == parts:  # either may be the larger
        swapped = (torch.rand(weight.shape, generator=chance) < 0.5).to(weight.device)
        first, second = torch.where(swapped, second, first), torch.where(swapped, first, second)
    return [*_shares(first, larger, chance), *_shares(second, parts - larger, chance)]


def _grown(smaller: Tensor, start: Tensor, axes: tuple[AxisGrowth, ...], chance: torch.Generator) -> Tensor:
    """Return a weight of the larger model, from that of the smaller one and the values that it started with."""
    found, inner = start.clone(), smaller.to(start)
    for place, axis in enumerate(axes):
        if isinstance(axis, AddedPlaces) and axis.rest != "start":
            rest = sorted({*range(start.shape[place])} - {*axis.places})
            fill = 0.0 if axis.rest == "zeros" else -torch.inf
            found.index_fill_(place, torch.tensor(rest, dtype=torch.int64, device=start.device), fill)
        elif isinstance(axis, Repeated):
            copies = _shares(inner, axis.times, chance) if axis.shared else [inner] * axis.times
            inner = torch.cat(copies, place)
    where = torch.meshgrid(
        *(
            torch.tensor(axis.places, device=start.device)
            if isinstance(axis, AddedPlaces)
            else torch.arange(length, device=start.device)
            for axis, length in zip(axes, start.shape, strict=True)
        ),
        indexing="ij",
    )
    found[where] = inner
    return found


def _difference(model: Model[Any], smaller: Model[Any]) -> float:
    """Return the largest difference of the outputs of two models in float64, relative to the largest; of more scores, those that
    both have.
    """
    both = [copy.deepcopy(each).to("cpu", torch.float64).eval() for each in (smaller, model)]
    worst = 0.0
    for how in draws(smaller.program):
        given = draw(smaller.program, how)
        results = []
        for each in both:
            with torch.random.fork_rng(devices=()):
                torch.manual_seed(0)
                results.append(each(**given))
        for field, _ in smaller.module.outputs:
            one, other = (getattr(result, field) for result in results)
            worst = max(worst, *(_gap(a, b) for a, b in _tensors(one, other)))
    return worst


def _tensors(one: Any, other: Any) -> Iterator[tuple[Tensor, Tensor]]:
    if isinstance(one, Tensor):
        yield one, other
    else:
        for a, b in zip(one, other, strict=False):  # a value of each pass
            yield from _tensors(a, b)


def _gap(one: Tensor, other: Tensor) -> float:
    if one.dim() and one.shape[-1] < other.shape[-1]:
        other = other[..., : one.shape[-1]]
    if one.shape != other.shape:
        return torch.inf
    largest = one.double().abs().max().clamp(min=torch.finfo(torch.float64).tiny)
    gap = (one.double() - other.double()).abs().max() / largest
    return float(gap) if torch.isfinite(gap) else torch.inf
