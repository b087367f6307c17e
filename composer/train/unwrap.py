"""The compiled recipe in what other packages wrap around it."""

from __future__ import annotations

import re

from torch import nn

from composer.train.errors import TrainingError

HELD_AS = ("_orig_mod", "module", "_checkpoint_wrapped_module", "_fsdp_wrapped_module", "base_model", "model")
"""The attributes in which wrappers hold a model: those of `torch.compile`; of DDP, FSDP, DataParallel and averaged models; of
activation checkpointing; of PEFT; and of PEFT's tuners and of most LightningModules."""
INSIDE = re.compile(r"(?:^|(?<=\.))(?:_orig_mod|_checkpoint_wrapped_module|_fsdp_wrapped_module|base_layer)\.")
"""What wrappers of modules inside a model put into the names of its parameters."""
ADAPTER = re.compile(r"\.lora_[A-Za-z_]+\.|\.lora_[A-Za-z_]+$")
"""The parameters that PEFT adds."""


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the compiled recipe in a model: the model itself, or what is in wrappers around it.

    Raises:
        TrainingError: There is none.
    """
    found, seen = model, [type(model).__name__]
    while not _is_recipe(found):
        alone = [*found._modules.values()][:1] if len(found._modules) == 1 else []
        held = [*(vars(found).get(name) or found._modules.get(name) for name in HELD_AS), *alone]
        inner = next((each for each in held if isinstance(each, nn.Module)), None)
        if inner is None:
            inside = " in ".join(reversed(seen))
            raise TrainingError(
                f"{inside} is not a compiled recipe", hint="compile a recipe, or wrap one with torch's own wrappers"
            )
        found = inner
        seen.append(type(found).__name__)
    return found


def _is_recipe(module: nn.Module) -> bool:
    """Return whether a module is a compiled recipe; each step asks several times."""
    own, kind = module.__dict__, type(module)
    return "recipe" in own or "roles" in own or hasattr(kind, "recipe") or hasattr(kind, "roles")


def own_name(name: str) -> str:
    """Return the name that a parameter has in the compiled recipe, without what wrappers inside of it add."""
    name = INSIDE.sub("", name)
    return re.sub(r"\.(?:modules_to_save\.[^.]+|original_module)\.", ".", name)
