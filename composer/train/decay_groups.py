"""Parameter groups with and without weight decay."""

from __future__ import annotations

from typing import Any, cast

from torch import nn

DECAYED = frozenset({"matrix", "experts", "embedding"})
"""Roles with weight decay. Embeddings are included because GPT-2's are also its output matrix (as in nanoGPT, transformers)."""


def param_groups(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """Return the parameters of a model in groups for an optimizer, with and without weight decay.

    The role of a parameter, which its block declares, decides: matrices, experts and embeddings decay; biases and gains do not.
    A tied parameter is listed once, a frozen one is left out.

    Args:
        model: A compiled recipe.
        weight_decay: The decay of the first group; that of the second is 0.

    Returns:
        Dicts with `params` and `weight_decay`, as `torch.optim` takes them; empty groups are left out.

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
