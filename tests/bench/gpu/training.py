"""A training step, forward, backward and AdamW in bfloat16, beside transformers and a model written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

import composer
from composer.cost.costs import costs
from composer.estimate import DEVICES, Estimate, estimate
from composer.lower.accelerate import accelerate
from composer.train import TrainSettings
from composer.train.loop import build_optimizer, update, with_logits_chunk
from tests.bench.gpu.machine import SHEET, measured
from tests.bench.gpu.setting import Setting, Work, mib
from tests.bench.gpu.sizes import Sizes, sizes_of
from tests.bench.handwritten import GPT2

SETTINGS = TrainSettings(precision="bf16")
RATE = 1e-4


@dataclass
class Trained:
    """A way to run a step, and what it holds."""

    step: Work
    peak: int


def run(setting: Setting, model: str) -> None:
    """Measure a model, `gpt2` or `llama`."""
    sizes = sizes_of(model, toy=setting.toy)
    recipe = composer.load(sizes.recipe, sizes.overrides)
    tokens = torch.randint(sizes.vocab, (sizes.rows, sizes.length), device=setting.device)
    ways = ways_of(setting, sizes, recipe, tokens)
    flops = 3 * costs(recipe.program, {"batch": 1, "time": sizes.length}).flops.dense * sizes.rows
    peak_flops = max(rate for _, rate in DEVICES[SHEET].matmul["bf16"])
    with setting.case("size") as row:
        row |= {"rows": sizes.rows, "length": sizes.length, "FLOPs of a step": float(flops)}
        row |= {"peak of the data sheet, TFLOP/s": peak_flops / 1e12, "formula of MFU": "FLOPs of a step / (seconds · peak)"}
        predicted = estimated(sizes, setting.folder)
        assert predicted.training is not None and predicted.step is not None
        row |= {"parameters": predicted.parameters, "estimated peak, MiB": mib(predicted.training.peak)}
        row["estimated step, ms"] = 1000 * predicted.step.seconds
    if setting.warm:
        for name in ways:
            if "compiled" in name:
                with setting.case(name):
                    ways_of(setting, sizes, recipe, tokens)[name]()()  # with weights of its own, which are let go
        return
    made: dict[str, Trained] = {}
    for name, make in ways.items():
        try:
            step = make()
            step()
            made[name] = Trained(step, setting.peak(step))
        except Exception as error:
            setting.write({"section": setting.section, "case": name, "error": f"{type(error).__name__}: {str(error)[:300]}"})
    found, apart = setting.times({name: each.step for name, each in made.items()}, rounds=7)
    for name, each in made.items():
        with setting.case(name) as row:
            seconds = found[name]
            row |= {"step, ms": 1000 * seconds, "tokens/s": tokens.numel() / seconds, "MFU": flops / seconds / peak_flops}
            row |= {"A/A": apart, "most beyond weights and optimizer, MiB": mib(each.peak)}
            row["peak, MiB"] = mib(each.peak + held(each.step))


@cache
def estimated(sizes: Sizes, folder: Path) -> Estimate:
    """Return what a step is estimated to take."""
    recipe = composer.load(sizes.recipe, sizes.overrides)
    return estimate(recipe, {"batch": sizes.rows, "time": sizes.length}, device=measured(folder), settings=SETTINGS)


def ways_of(setting: Setting, sizes: Sizes, recipe: composer.Recipe, tokens: torch.Tensor) -> dict[str, Callable[[], Work]]:
    """Return functions that make the steps, by name; those of one model share its weights."""

    @cache
    def ours() -> tuple[Any, torch.optim.Optimizer]:
        model = recipe.compile(seed=0, device=setting.device).train()
        optimizer = build_optimizer(model, SETTINGS)
        return accelerate(model, backend=setting.backend), optimizer

    def eager() -> Work:
        step = model_step(*ours(), tokens)

        def run() -> None:
            with torch.compiler.set_stance("force_eager"):
                step()

        return holding(run, ours()[1])

    def whole() -> Work:
        model = recipe.compile(seed=0, device=setting.device).train()
        optimizer = build_optimizer(model, SETTINGS)
        return holding(model_step(accelerate(model, whole=True, backend=setting.backend), optimizer, tokens), optimizer)

    @cache
    def theirs() -> tuple[Any, torch.optim.Optimizer]:
        with setting.device:
            model = sizes.theirs().train()
        return model, optimizer_of(model)

    def of_theirs(compiled: bool) -> Work:
        model, optimizer = theirs()
        called = torch.compile(model, backend=setting.backend) if compiled else model
        return plain_step(setting, optimizer, lambda: called(input_ids=tokens, labels=tokens, use_cache=False).loss)

    @cache
    def by_hand() -> tuple[GPT2, torch.optim.Optimizer]:
        with setting.device:
            model = GPT2(vocab=sizes.vocab, context=sizes.length, dim=sizes.dim, layers=sizes.layers, heads=sizes.heads)
        return model.train(), optimizer_of(model)

    def of_hand(compiled: bool) -> Work:
        model, optimizer = by_hand()
        called = torch.compile(model, backend=setting.backend) if compiled else model
        targets = torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], -100)], dim=1)
        return plain_step(setting, optimizer, lambda: F.cross_entropy(called(tokens).flatten(0, 1), targets.flatten()))

    ways: dict[str, Callable[[], Work]] = {
        "eager": eager,
        "blocks compiled": lambda: holding(model_step(*ours(), tokens), ours()[1]),
        "transformers": lambda: of_theirs(False),
        "transformers compiled": lambda: of_theirs(True),
    }
    if sizes.recipe == "gpt2":
        ways |= {"compiled whole": whole, "by hand": lambda: of_hand(False), "by hand, compiled": lambda: of_hand(True)}
    return ways


def holding(step: Work, optimizer: torch.optim.Optimizer) -> Work:
    """Return a step that knows the optimizer of what it trains."""
    vars(step)["optimizer"] = optimizer
    return step


def held(step: Work) -> int:
    """Return the bytes of the weights and of the optimizer's state."""
    optimizer: torch.optim.Optimizer = vars(step)["optimizer"]
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state = [value for each in optimizer.state.values() for value in each.values() if isinstance(value, torch.Tensor)]
    return sum(value.numel() * value.element_size() for value in (*weights, *state))


def model_step(model: Any, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> Work:
    """Return a step as `arco train` runs it."""
    settings = with_logits_chunk(SETTINGS, model)

    def step() -> None:
        update(model, optimizer, [{"tokens": tokens}], settings, rate=RATE)

    return step


def optimizer_of(model: torch.nn.Module) -> torch.optim.Optimizer:
    """Return AdamW for all parameters alike."""
    return torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)


def plain_step(setting: Setting, optimizer: torch.optim.Optimizer, loss_of: Callable[[], torch.Tensor]) -> Work:
    """Return a step as a careful person writes it."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]

    def step() -> None:
        with torch.autocast(setting.device.type, dtype=torch.bfloat16):
            loss = loss_of()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    return holding(step, optimizer)
