"""`torch.compile` where it pays: each repeated block once, or the whole model."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from composer.lower.model import Model
from composer.lower.passes.shared_weights import shared_modules

SPARE = 8
"""Compilations allowed beyond one for each variant: changing lengths, training and evaluation."""


def accelerate(model: Model, *, whole: bool = False, **options: Any) -> Model:
    """Compile a model in place and return it; `options` go to `torch.compile`.

    Each module of a repeat is compiled by itself, so that one program serves all passes that agree: for 32 equal layers torch
    traces one. With `whole`, the model is one program: longer to compile, sometimes faster. The number of compilations that
    torch allows is set to what the model needs, which is known before it runs.
    """
    settings = {"fullgraph": True, **options}
    if whole:
        model.compile(**settings)
        return model
    for modules in model.modules():
        if isinstance(modules, nn.ModuleList):
            limit = max(SPARE, 2 * len(modules))
            for module in modules:
                module.compile(**_limited(settings, limit))
    for path in shared_modules(model.program.root):
        model.get_submodule(path).compile(**_limited(settings, SPARE))
    return model


def _limited(settings: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the settings with a limit of recompilations, as this torch takes it."""
    if "recompile_limit" in inspect.signature(torch.compile).parameters:
        return {"recompile_limit": limit, **settings}
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, limit)
    return settings
