"""Which parameters weight decay pulls on."""

from __future__ import annotations

from typing import Any, cast

from torch import nn

DECAYED = frozenset({"matrix", "experts", "embedding"})
"""Roles that decay. GPT-2's embeddings decay with its matrices (nanoGPT, transformers), being its output matrix too."""


def param_groups(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """Return a model's parameters in groups for an optimizer, with and without weight decay.

    Each block declares the role of its parameters: matrices, experts and embeddings decay; biases and gains do not. A tied
    parameter is listed once, a frozen one is left out.

    Args:
        model: A compiled recipe.
        weight_decay: The decay of the group that decays.

    Examples:
        >>> import composer
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> groups = composer.param_groups(composer.load("gpt2", tiny).compile(), weight_decay=0.1)
        >>> [group["weight_decay"] for group in groups]
        [0.1, 0.0]
    """
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
