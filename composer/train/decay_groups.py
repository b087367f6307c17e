"""Which parameters weight decay pulls on."""

from __future__ import annotations

from typing import Any, cast

from torch import nn

DECAYED = frozenset({"matrix", "experts", "embedding"})
"""Roles that decay. GPT-2's embeddings decay with its matrices (nanoGPT, transformers), being its output matrix too."""


def param_groups(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """The optimizer's groups, by the role each block declares: decayed and not; tied ones once, frozen ones not at all."""
    roles = cast("dict[str, str]", model.roles)
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.requires_grad:
            names.setdefault(parameter, []).append(name)
    role_of = {parameter: next(roles[name] for name in tied if name in roles) for parameter, tied in names.items()}
    decayed = [parameter for parameter, role in role_of.items() if role in DECAYED]
    kept = [parameter for parameter, role in role_of.items() if role not in DECAYED]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": kept, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]
