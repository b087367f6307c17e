"""`torch.compile` for each repeated block, or for the whole model."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from composer.lower.model import Model
from composer.lower.passes.shared_weights import shared_modules

SPARE_COMPILATIONS = 8
"""The least limit for one module: lengths change, and training and evaluation differ."""


def accelerate(model: Model, *, whole: bool = False, **options: Any) -> Model:
    """Compile a model in place and return it; `options` go to `torch.compile`.

    Each module of a repeat is compiled by itself, so that equal passes share one program: of 32 equal layers torch traces one.
    With `whole`, the model is one program, which takes longer to compile and is sometimes faster. The number of compilations
    that torch allows is set to what the model needs, which is known before it runs.
    """
    settings = {"fullgraph": True, **options}
    if whole:
        model.compile(**settings)
        return model
    for modules in model.modules():
        if isinstance(modules, nn.ModuleList):
            limit = max(SPARE_COMPILATIONS, 2 * len(modules))
            for module in modules:
                module.compile(**_limited(settings, limit))
    for path in shared_modules(model.program.root):
        model.get_submodule(path).compile(**_limited(settings, SPARE_COMPILATIONS))
    return model


def _limited(settings: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the settings with a limit of recompilations, which older versions of torch have as a global setting."""
    if "recompile_limit" in inspect.signature(torch.compile).parameters:
        return {"recompile_limit": limit, **settings}
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, limit)
    return settings
