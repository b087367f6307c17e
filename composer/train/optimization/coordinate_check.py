"""The coordinate check of muP (Yang et al. 2022, appendix D.1): whether what layers compute changes alike at all widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from composer.train.errors import TrainingError
from composer.train.following.watches import layers_by_name
from composer.train.losses import Batch, loss
from composer.train.optimization.optimizers import OPTIMIZERS
from composer.train.optimization.width_transfer import mup_init
from composer.train.settings import TrainSettings

if TYPE_CHECKING:
    from composer.recipe import Recipe


@dataclass(frozen=True)
class CoordinateCheck:
    """By how much what each layer computes has changed after some steps, at several widths.

    Examples:
        >>> from composer.train import CoordinateCheck
        >>> found = CoordinateCheck((16, 64), {"layers.0": (0.5, 0.52), "head": (0.1, 0.4)})
        >>> {name: round(slope, 2) for name, slope in found.slopes.items()}
        {'layers.0': 0.03, 'head': 1.0}
    """

    widths: tuple[int, ...]
    changes: Mapping[str, tuple[float, ...]]
    """For each layer and width, the root of the mean square of the change."""

    @property
    def slopes(self) -> dict[str, float]:
        """The power of the width with which the change of each layer grows: about 0 with muP; without, up to 1 or more."""
        logs = np.log(self.widths)
        return {name: float(np.polyfit(logs, np.log(each), 1)[0]) for name, each in self.changes.items()}

    def __str__(self) -> str:
        room = max(map(len, (*self.changes, "layer")))
        lines = [f"{'layer':<{room}}" + "".join(f" {width:>9}" for width in self.widths) + "     slope"]
        for name, slope in self.slopes.items():
            cells = "".join(f" {change:>9.3g}" for change in self.changes[name])
            lines.append(f"{name:<{room}}{cells} {slope:>9.2f}")
        return "\n".join(lines)


def coordinate_check(
    recipe: Recipe,
    batch: Batch,
    widths: Mapping[int, Mapping[str, Any]],
    *,
    mup: Sequence[str] = (),
    optimizer: str = "adamw",
    learning_rate: float = 1e-3,
    steps: int = 4,
    seeds: int = 3,
) -> CoordinateCheck:
    """Return by how much the outputs of each layer change in a few steps on one batch, at several widths.

    Args:
        recipe: The recipe.
        batch: The inputs of the model and the targets of its task.
        widths: For each width, at least two, the overrides that give it.
        mup: The values of params in the narrow model, as `PATH=VALUE`, as the setting `mup`; without, the recipe as it is.
        optimizer: The optimizer, as the setting `optimizer`.
        learning_rate: The learning rate.
        steps: The number of steps.
        seeds: How many models of each width the changes are means over.

    Raises:
        TrainingError: There are fewer widths, or as `width_scales`.
        RecipeError: The recipe has errors at a width.

    Examples:
        >>> import composer, torch
        >>> from composer.train import coordinate_check
        >>> recipe = composer.load("gpt_mini", {"vocab": 20, "n_layers": 1, "head.tie": None})
        >>> widths = {width: {"d_model": width, "n_heads": width // 8} for width in (16, 32)}
        >>> batch = {"tokens": torch.arange(20).view(2, 10)}
        >>> found = coordinate_check(recipe, batch, widths, mup=["d_model=8", "n_heads=1"], seeds=1)
        >>> [*found.changes]
        ['embed', 'layers.0', 'norm', 'head']
    """
    if len(widths) < 2:
        raise TrainingError(f"a coordinate check compares widths, and is given {len(widths)}", hint="give two or more")
    settings = TrainSettings(mup=tuple(mup), weight_decay=0.0, optimizer=optimizer, learning_rate=learning_rate)
    changes: dict[str, list[float]] = {}
    for overrides in widths.values():
        of_seeds = [
            _changes(recipe.with_overrides(dict(overrides)).compile(seed=seed), batch, settings, steps) for seed in range(seeds)
        ]
        for name in of_seeds[0]:
            changes.setdefault(name, []).append(float(np.mean([each[name] for each in of_seeds])))
    return CoordinateCheck(tuple(widths), {name: tuple(each) for name, each in changes.items()})


def _changes(model: nn.Module, batch: Batch, settings: TrainSettings, steps: int) -> dict[str, float]:
    if settings.mup:
        mup_init(model, settings.mup)
    optimizer = OPTIMIZERS[settings.optimizer].build(model, settings)
    before = _outputs(model, batch)
    for _ in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * group.get("rate", 1.0)
        loss(model, batch).total.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
        optimizer.zero_grad()
    after = _outputs(model, batch)
    return {name: float((after[name] - value).square().mean().sqrt()) for name, value in before.items()}


@torch.no_grad()
def _outputs(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Return what each layer computes of a batch, in evaluation mode."""
    found: dict[str, Tensor] = {}
    handles = []
    for name, module in layers_by_name(model).items():

        def seen(module: nn.Module, given: Any, returned: Any, name: str = name) -> None:
            first = returned[0] if isinstance(returned, tuple) and returned else returned
            if isinstance(first, Tensor) and first.is_floating_point():
                found[name] = first.detach().clone()

        handles.append(module.register_forward_hook(seen))
    training = model.training
    loss(model.eval(), batch)
    model.train(training)
    for handle in handles:
        handle.remove()
    return found
