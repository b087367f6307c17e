"""What a model computes, as numbers that are the same or are not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import torch

import composer
from composer.decode import Request, cached, generate, uncached
from composer.language.tasks import TASKS
from tests.artifacts.kept import Artifacts
from tests.conformance.cases import TINY
from tests.conformance.inputs import DRAWS, draw

STEPS = 3


def of_zoo(name: str) -> Artifacts:
    """Yield the artifacts of a recipe of the zoo at a tiny size."""
    recipe = composer.load(name, overrides=TINY.get(name, {}))
    yield from of_recipe(recipe)
    yield "training.json", lambda: lines(trained(recipe))


def of_text(text: str) -> Artifacts:
    """Return a recipe that is tiny."""
    return of_recipe(composer.load(text))


def of_recipe(recipe: composer.Recipe) -> Artifacts:
    """Return where the model starts, what it gives, and what it writes where it writes."""
    model = recipe.compile(seed=0).eval()
    yield "start.json", lambda: lines({name: digest(value) for name, value in model.state_dict().items()})
    yield "outputs.json", lambda: lines(outputs(moved(model)))
    if model.cache_layout is not None:
        yield "written.json", lambda: lines(texts(moved(model)))


def lines(values: Mapping[str, Any]) -> str:
    """Return JSON with a line for each value."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items()) + "\n}\n"


def digest(value: torch.Tensor) -> list[Any]:
    """Return its shape, a number to look at, and one that holds every bit."""
    value = value.detach().contiguous()
    bits = sha256(value.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    return [str(value.dtype), list(value.shape), value.double().mean().item() if value.numel() else 0.0, bits[:24]]


@torch.no_grad()
def moved(model: composer.Model) -> composer.Model:
    """Return the model with every parameter away from where it starts, so that none is zero or one."""
    fresh = model.recipe.compile(seed=0).eval()
    for number, parameter in enumerate(fresh.parameters()):
        parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
    return fresh


@torch.no_grad()
def outputs(model: composer.Model) -> dict[str, Any]:
    """Return every output and loss, with and without optional inputs."""
    found = {}
    for number, lengths in enumerate(DRAWS):
        given = draw(model.program, lengths, seed=number, optional=number == 0)
        *values, losses = model(**given)
        names = [name for _, name in model.module.outputs]
        found |= {f"{number} {name}": digest(value) for name, value in zip(names, values, strict=True)}
        found |= {f"{number} loss {name}": digest(value) for name, value in losses.items()}
    return found


def texts(model: composer.Model) -> dict[str, Any]:
    """Return what a model writes with a cache and without."""
    own = TASKS[str(model.recipe.task)].text
    beside = {name: value for name, value in draw(model.program, DRAWS[0], optional=False).items() if name != own}
    request = Request(max_new_tokens=6)
    ways = {"cached": cached, "uncached": uncached}
    return {
        way: generate(model, [[1, 2, 3], [3, 0, 1]], request, encoder_inputs=beside, reading=reading)
        for way, reading in ways.items()
    }


def trained(recipe: composer.Recipe) -> dict[str, Any]:
    """Return the losses of some steps of training, and where they lead."""
    model = recipe.compile(seed=0).train()
    batch = draw(model.program, DRAWS[0])
    batch |= targets(recipe.task, model, batch)
    optimizer = torch.optim.AdamW(composer.param_groups(model, weight_decay=0.1), lr=0.01)
    torch.manual_seed(0)  # for dropout
    found: dict[str, Any] = {}
    for step in range(STEPS):
        loss = composer.loss(model, batch, label_smoothing=0.1 * step)
        found |= {f"{step} total": loss.total.item(), **{f"{step} {name}": value.item() for name, value in loss.by_name.items()}}
        optimizer.zero_grad()
        loss.total.backward()
        optimizer.step()
    return found | {name: digest(value) for name, value in model.state_dict().items()}


def targets(task: str | None, model: composer.Model, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return what a task asks for that does not follow from the inputs: a small class each."""
    if task is None or TASKS[task].text or not TASKS[task].targets:
        return {}
    with torch.no_grad():
        shape = model(**batch)[0].shape[:-1]
    return {TASKS[task].targets: torch.arange(shape.numel()).reshape(shape) % 5}
