"""Attention, masks and positions as running code, without the composer: fields, weights and methods on one object each."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import torch
from torch import nn

from blocks.core import LinearWeights, NodeRef, Part, Slot, Tensor, declares, fields, lazy
from blocks.masks.plans import kept, plan


def plain(part: Part, **known: Any) -> Any:
    """Return a part that is no node, as the object that runs: its fields as attributes, its own methods,
    what its holder knows.
    """
    _use_real_torch()
    holder = type(part.kind or type(part).__name__, (), {**_methods(part), "cache": None})()
    for name, value in {**dict(part), **known}.items():
        # A source writes the name of a node as plain text.
        setattr(holder, name, plain(value) if isinstance(value, Part) else str(value) if isinstance(value, NodeRef) else value)
    return holder


def module(part: Part, *, wired: Iterable[str] = (), requested_outputs: Iterable[str] = (), **sizes: Any) -> nn.Module:
    """Return a part as the module that runs; `sizes` binds the axes of its ports."""
    _use_real_torch()
    wired = frozenset(wired)
    part.check(sizes, wired)
    scope = {**{axis: sizes[other] for axis, other in part.axis_defaults.items() if other in sizes}, **sizes, **dict(part)}
    for name, field in fields(type(part)).items():
        if field.derived and scope[name] is None:
            scope[name] = _value(field.derived, scope)
    part = part.model_copy(update={name: scope[name] for name in fields(type(part))})
    own = part.build(scope)
    if own is not None:
        keywords = {name: _value(value, scope) for name, value in own.keywords.items()}
        return getattr(nn, own.function.removeprefix("nn."))(*[_value(value, scope) for value in own.arguments], **keywords)
    holder = type(part.kind, (nn.Module,), {**_methods(part), "cache": None, "requested_outputs": frozenset(requested_outputs)})()
    for name, value in scope.items():
        if not isinstance(value, Part):
            setattr(holder, name, value)
    weights = part.weights(scope, wired) if callable(part.weights) else part.weights
    for name, weight in weights.items():
        setattr(holder, name, _built(weight, part, scope))
    for name, value in dict(part).items():
        if isinstance(value, Part) and name not in weights:
            setattr(holder, name, plain(plan(value)) if name == "mask" else plain(value))
    return holder


class Attend(nn.Module):
    """An attention with what is prepared for it, called by port names; mask edges under the names that the mask's fields hold."""

    def __init__(self, part: Part, *, wired: Iterable[str] = (), requested_outputs: Iterable[str] = (), **sizes: Any):
        super().__init__()
        self.block = module(part, wired=wired, requested_outputs=requested_outputs, **sizes)
        self.ports = {name: slot.ports for name, slot in part.per_call(frozenset(wired)).items()}
        self.per_call = {
            name: plain(plan(part.mask), grows="memory" not in wired)
            if name == "mask"
            else plain(part.positions, head_dim=self.block.head_dim)
            for name in self.ports
        }
        self.plan = plan(part.mask)

    def forward(
        self,
        *,
        edges: Mapping[str, Any] | None = None,
        position_ids: Any = None,
        memory_position_ids: Any = None,
        indices: Any = None,
        **inputs: Any,
    ) -> Any:
        x = inputs.get("x", inputs.get("q"))
        source = inputs.get("memory", x)
        position_ids = torch.arange(x.shape[1]) if position_ids is None else position_ids
        there = {
            "position_ids": position_ids,
            "memory_position_ids": torch.arange(source.shape[1]) if memory_position_ids is None else memory_position_ids,
            "source_position_ids": position_ids,
        }
        counted = there if indices is None else {**there, "position_ids": indices}
        ready = {}
        for name, ports in self.ports.items():
            given = dict(edges or {}) if name == "mask" else {}
            places = counted if name == "mask" else there
            ready[name] = self.per_call[name].prepare(*(places[port] for port in ports), **given)
        return self.block(**inputs, **ready)

    def start_session(self) -> None:
        """Start a session: from now on, keys, values and key positions stay for later calls."""
        self.block.cache = Cache({name: _axis(text, "source") for name, text in self.block.cache_slots.items()})
        self.per_call["mask"].cache = Cache(dict.fromkeys(kept(self.plan), -1))


class Cache:
    """What one holder keeps, by name, with the axis along which it grows."""

    is_preallocated = False

    def __init__(self, axes: Mapping[str, int]) -> None:
        self.axes, self.values = axes, {}

    def get(self, name: str) -> torch.Tensor | None:
        return None  # nothing is kept whole here: a memory comes with every call

    def append(self, name: str, value: torch.Tensor) -> torch.Tensor:
        earlier = self.values.get(name)
        self.values[name] = value if earlier is None else torch.cat([earlier, value], dim=self.axes[name])
        return self.values[name]


def _axis(text: str, axis: str) -> int:
    return [name.strip() for name in text[text.index("[") + 1 : -1].split(",")].index(axis)


def _methods(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {"cache_slots": type(part).cache_slots}
    for cls in reversed(type(part).__mro__[: type(part).__mro__.index(Part)]):
        found |= {
            name: value for name, value in vars(cls).items() if inspect.isfunction(value) and not declares(type(part), name)
        }
    return {name: value for name, value in found.items() if not name.startswith("__") and not name.startswith("model_")}


def _built(weight: Any, part: Part, scope: Mapping[str, Any]) -> Any:
    match weight:
        case LinearWeights():
            return nn.Linear(_value(weight.inputs, scope), _value(weight.outputs, scope), weight.bias)
        case Slot():
            inner = getattr(part, weight.field)
            width = weight.given[weight.given.rindex(",") + 1 : -1]
            return None if inner is None else module(inner, dim=_value(width.strip(), scope))
        case Tensor():
            if weight.when and not scope[weight.when]:
                return None
            return nn.Parameter(torch.randn([_value(size, scope) for size in weight.shape]))
    raise TypeError(weight)


def _value(text: Any, scope: Mapping[str, Any]) -> Any:
    return eval(text, {"sqrt": lambda x: x**0.5}, dict(scope)) if isinstance(text, str) else text


_REPLACED: list[tuple[ModuleType, str, Any]] = []


def use_lazy_torch() -> None:
    """Give every block its lazy modules back: the source of a block is exported with those."""
    while _REPLACED:
        setattr(*_REPLACED.pop())


def _use_real_torch() -> None:
    """Replace the lazy modules of every block by the real ones until the test ends, since what is traced must not import."""
    real = {id(lazy.torch): torch, id(lazy.nn): nn, id(lazy.F): nn.functional}
    for name, loaded in list(sys.modules.items()):
        if name.startswith("blocks.") and name not in ("blocks.core", "blocks.core.lazy"):
            for attribute in ("torch", "nn", "F"):
                if id(getattr(loaded, attribute, None)) in real:
                    _REPLACED.append((loaded, attribute, getattr(loaded, attribute)))
                    setattr(loaded, attribute, real[id(getattr(loaded, attribute))])
