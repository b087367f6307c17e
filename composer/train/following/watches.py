"""What can be measured of a model while it trains, beside its loss: a callback for each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from composer.lower.model import Model
from composer.train.device import device_of
from composer.train.errors import TrainingError
from composer.train.following.callbacks import Callback, RunStart
from composer.train.settings import TrainSettings

BACKWARD = 3
"""The FLOPs of a step, in those of a forward pass: the backward pass computes two products for each of the forward pass."""


def layers_by_name(model: nn.Module) -> dict[str, nn.Module]:
    """Return the outermost layers of repeats, and what lies beside them: `embed`, `layers.0`, `layers.1`, `head`."""
    found: dict[str, nn.Module] = {}
    for name, module in model.named_children():
        inner = {f"{name}.{index}": each for index, each in module.named_children()} if isinstance(module, nn.ModuleList) else {}
        found |= inner or {name: module}
    return {name: module for name, module in found.items() if next(module.parameters(), None) is not None}


class GradientNorms(Callback):
    """Watches the gradients: for each layer the Euclidean norm of its gradient, before clipping, as `gradient_norm/LAYER`.

    A tied parameter counts where it stands first.

    Examples:
        >>> from composer.train import GradientNorms
        >>> GradientNorms().metrics({"step": 1})
        {}
    """

    def __init__(self) -> None:
        self._layers: dict[str, list[nn.Parameter]] = {}
        self._wanted = False
        self._found: dict[str, Tensor] = {}

    def begin(self, run: RunStart) -> None:
        taken: set[nn.Parameter] = set()
        self._layers = {}
        for name, module in layers_by_name(run.model).items():
            own = [each for each in module.parameters() if each.requires_grad and each not in taken]
            taken.update(own)
            if own:
                self._layers[name] = own
        if rest := [each for each in run.model.parameters() if each.requires_grad and each not in taken]:
            self._layers["rest"] = rest

    def before_step(self, step: int, *, logged: bool) -> None:
        self._wanted, self._found = logged, {}

    def after_backward(self, step: int) -> None:
        if not self._wanted:
            return
        for name, parameters in self._layers.items():
            gradients = [each.grad.float() for each in parameters if each.grad is not None]
            if gradients:
                self._found[name] = torch.stack(torch._foreach_norm(gradients)).norm()

    def metrics(self, line: Mapping[str, float | int]) -> Mapping[str, float]:
        return {f"gradient_norm/{name}": float(value) for name, value in self._found.items()}


class _Hooked(Callback):
    """The base of watches that look into the forward pass of logged steps."""

    def __init__(self) -> None:
        self._wanted = False
        self._handles: list[Callable[[], None]] = []

    def check(self, model: nn.Module, settings: TrainSettings) -> None:
        if settings.compile not in ("off", "auto"):  # auto leaves off what it may not compile
            raise TrainingError(
                f"what happens inside a model cannot be watched while torch.compile runs it: compile is {settings.compile}",
                hint="train with --compile off, or watch gradients and memory only",
            )

    def begin(self, run: RunStart) -> None:
        self._handles = list(self._hooks(run.model))

    def _hooks(self, model: nn.Module) -> Iterator[Callable[[], None]]:
        """Place hooks, and yield what removes each."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Forget the values of the step before."""
        raise NotImplementedError

    def before_step(self, step: int, *, logged: bool) -> None:
        self._wanted = logged
        self._forget()

    def after_backward(self, step: int) -> None:
        self._wanted = False  # a validation may follow before the line is written

    def end(self) -> None:
        for remove in self._handles:
            remove()
        self._handles = []


class ActivationSizes(_Hooked):
    """Watches the activations: for each layer the root of the mean square of what it returns, as `activation/LAYER`.
    Where logits are computed in chunks, that of the layer that computes them is of one position.

    Examples:
        >>> from composer.train import ActivationSizes
        >>> ActivationSizes().metrics({"step": 1})
        {}
    """

    def __init__(self) -> None:
        super().__init__()
        self._squares: dict[str, list[Tensor]] = {}

    def _hooks(self, model: nn.Module) -> Iterator[Callable[[], None]]:
        for name, module in layers_by_name(model).items():

            def seen(module: nn.Module, given: Any, returned: Any, name: str = name) -> None:
                first = returned[0] if isinstance(returned, tuple) and returned else returned
                if self._wanted and isinstance(first, Tensor) and first.is_floating_point():
                    self._squares.setdefault(name, []).append(first.detach().float().square().mean())

            handle: RemovableHandle = module.register_forward_hook(seen)
            yield handle.remove

    def _forget(self) -> None:
        self._squares = {}

    def metrics(self, line: Mapping[str, float | int]) -> Mapping[str, float]:
        return {f"activation/{name}": float(torch.stack(each).mean().sqrt()) for name, each in self._squares.items()}


class ExpertLoad(_Hooked):
    """Watches mixtures of experts: the share of positions that select each expert, as `load/LAYER/EXPERT`, before any capacity.

    The shares of one layer sum to the number of experts that a position selects.

    Examples:
        >>> from composer.train import ExpertLoad
        >>> ExpertLoad().metrics({"step": 1})
        {}
    """

    def __init__(self) -> None:
        super().__init__()
        self._loads: dict[str, list[Tensor]] = {}

    def check(self, model: nn.Module, settings: TrainSettings) -> None:
        super().check(model, settings)
        if not any(True for _ in mixtures(model)):
            raise TrainingError("the model has no experts whose load could be watched", hint="remove --watch experts")

    def _hooks(self, model: nn.Module) -> Iterator[Callable[[], None]]:
        for name, module in mixtures(model):
            router = module.router

            def seen(*given: Any, name: str = name, route: Any = router.route) -> Any:
                routes = route(*given)
                if self._wanted:
                    self._loads.setdefault(name, []).append(routes.load.detach())
                return routes

            router.__dict__["route"] = seen
            yield lambda router=router: router.__dict__.pop("route", None)  # type: ignore[misc]  # a default binds it

    def _forget(self) -> None:
        self._loads = {}

    def metrics(self, line: Mapping[str, float | int]) -> Mapping[str, float]:
        return {
            f"load/{name}/{expert}": share
            for name, each in self._loads.items()
            for expert, share in enumerate(torch.stack(each).float().mean(0).tolist())
        }


def mixtures(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield the mixtures of experts of a compiled recipe, by name."""
    for name, module in model.named_modules():
        if hasattr(module, "router") and hasattr(module, "experts") and hasattr(module.router, "route"):
            yield name, module


class MemoryUse(Callback):
    """Watches the memory: the most that was in use so far, in bytes, as `memory`: on a GPU what torch has allocated there, on a
    CPU what the process has taken, with everything that it has loaded. On Windows there is none for a CPU.

    Examples:
        >>> from composer.train import MemoryUse
        >>> MemoryUse().metrics({"step": 1})
        {}
    """

    def __init__(self) -> None:
        self._device: torch.device | None = None

    def begin(self, run: RunStart) -> None:
        self._device = device_of(run.model)

    def metrics(self, line: Mapping[str, float | int]) -> Mapping[str, float]:
        if self._device is None:
            return {}
        if self._device.type == "cuda":
            return {"memory": torch.cuda.max_memory_allocated(self._device)}
        if sys.platform == "win32":
            return {}
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {"memory": most if sys.platform == "darwin" else most * 1024}  # in bytes there, in KiB on Linux


class Utilization(Callback):
    """Watches how much of a device is used: the share of its peak, as `mfu`, the model FLOPs utilization of PaLM
    (arXiv:2204.02311): `3 · FLOPs of the forward passes of a step / (seconds per step · peak)`.

    The FLOPs are those of `arco summary` at the length `seq_len`: pairs that a mask hides and padding count, and what is computed
    again for the backward pass does not. Seconds per step are the mean since the line of metrics before.

    Examples:
        >>> from composer.train import Utilization
        >>> Utilization(peak_flops=312e12).metrics({"step": 1, "seconds": 0.1})
        {}
    """

    def __init__(self, *, peak_flops: float) -> None:
        """Give the peak.

        Args:
            peak_flops: What the device computes at most in a second, in FLOPs, in the precision of the run.
        """
        if not 0 < peak_flops < float("inf"):
            raise TrainingError(f"the peak of the device is {peak_flops:g} FLOPs per second; it must be more than 0")
        self.peak_flops = peak_flops
        self._flops: int | None = None
        self._before: tuple[float, float] | None = None

    def check(self, model: nn.Module, settings: TrainSettings) -> None:
        if not isinstance(model, Model):
            raise TrainingError("only of a compiled recipe it is known how many FLOPs a step has", hint="train without a peak")

    def begin(self, run: RunStart) -> None:
        from composer.cost.costs import costs

        assert isinstance(run.model, Model)  # `check`
        program, settings = run.model.program, run.settings
        lengths = {axis: 1 if axis == "batch" else settings.seq_len for axis in costs(program).lengths}
        self._flops = BACKWARD * costs(program, lengths).flops.dense * settings.batch_size * settings.grad_accum
        self._before = None if run.step else (0, 0.0)

    def metrics(self, line: Mapping[str, float | int]) -> Mapping[str, float]:
        before, self._before = self._before, (line["step"], line["seconds"])
        if self._flops is None or before is None or line["seconds"] <= before[1]:
            return {}
        steps, seconds = line["step"] - before[0], line["seconds"] - before[1]
        return {"mfu": self._flops * steps / (seconds * self.peak_flops)}


WATCHES: Mapping[str, type[Callback]] = {
    "gradients": GradientNorms,
    "activations": ActivationSizes,
    "experts": ExpertLoad,
    "memory": MemoryUse,
}
"""What can be watched, by the name that the command line takes."""
