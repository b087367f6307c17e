"""A part as a module, without the composer: its fields and weights as attributes, its `forward` as the method."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: F401  # the forwards read it here
import yaml
from torch import nn

import blocks.core as core
from blocks.core import Part, standard


def build(part: Part, **sizes: Any) -> nn.Module:
    """Return the module that a part describes; `sizes` binds the axes of its ports."""
    scope = scope_of(part, sizes)
    call = part.build(scope)
    if call is not None:
        arguments = [_value(argument, scope) for argument in call.arguments]
        return getattr(nn, call.function.removeprefix("nn."))(
            *arguments, **{k: _value(v, scope) for k, v in call.keywords.items()}
        )
    weights = weights_of(part, scope)
    module = type(part.kind, (nn.Module,), {"forward": _with_torch(type(part).forward)})()
    for name, value in scope.items():
        if name not in weights:
            setattr(module, name, value)
    for name, weight in weights.items():
        match weight:
            case core.Tensor():
                module.register_parameter(name, _parameter(weight, scope))
            case core.LinearWeights():
                setattr(module, name, nn.Linear(_value(weight.inputs, scope), _value(weight.outputs, scope), weight.bias))
            case core.Slot():
                setattr(module, name, build(getattr(part, weight.field), **sizes))
    return module


def scope_of(part: Part, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes and fields, derived defaults evaluated."""
    scope = {**sizes, **{name: getattr(part, name) for name in type(part).model_fields}}
    for name, field in core.fields(type(part)).items():
        if field.derived and scope[name] is None:
            scope[name] = _value(field.derived, scope)
    return scope


def weights_of(part: Part, scope: Mapping[str, Any]) -> core.Weights:
    """Return what a part declares that it learns."""
    return part.weights(scope, frozenset()) if callable(part.weights) else part.weights


def run_graph(part: Part, x: torch.Tensor, body: nn.Module) -> torch.Tensor:
    """Return what the `graph` of a block computes, node by node; every node but `body` is built anew."""
    scope = {**scope_of(part, {}), "none": None} | {word: word for word in ("pre", "post", "sandwich", "reordered")}
    values, above = {"input": x}, "input"
    for name, node in yaml.safe_load(part.graph).items():
        node = {"type": node} if isinstance(node, str) else node
        reads = node.get("in", above)
        reads = [values[read] for read in (reads if isinstance(reads, list) else [reads])]
        if not eval(str(node.get("when", True)), {}, scope):
            values[name] = reads[0]
        elif name == "body":
            values[name] = body(*reads)
        elif node["type"] in standard():
            fields = {k: scope.get(v, v) for k, v in node.items() if k not in ("type", "in", "when")}
            values[name] = build(standard()[node["type"]](**fields), dim=x.shape[-1])(*reads)
        else:
            slot = eval(node["type"], {}, scope)
            values[name] = reads[0] if slot is None else build(slot, dim=x.shape[-1])(*reads)
        above = name
    return values[above]


def _value(text: Any, scope: Mapping[str, Any]) -> Any:
    return eval(text, {}, dict(scope)) if isinstance(text, str) else text


def _parameter(weight: core.Tensor, scope: Mapping[str, Any]) -> nn.Parameter | None:
    if weight.when and not scope[weight.when]:
        return None
    start = torch.empty([_value(size, scope) for size in weight.shape])
    value = _value(weight.init.value, scope)
    match weight.init.how:
        case "constant":
            return nn.Parameter(start.fill_(value))
        case "normal":
            return nn.Parameter(start.normal_(0, value))
        case "uniform":
            return nn.Parameter(start.uniform_(-value, value))


def _with_torch(forward: types.FunctionType) -> types.FunctionType:
    """Return the function in this module, where `torch` and `F` are the real ones: what the compiler traces."""
    return types.FunctionType(forward.__code__, globals())
