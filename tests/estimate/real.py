"""Training steps that really run, and what the allocator gave them."""

from __future__ import annotations

from collections.abc import Mapping

import torch

import composer
from composer.estimate.estimating import batch_of
from composer.train import TrainSettings
from composer.train.loop import build_optimizer, update, with_logits_chunk
from composer.train.starts import freeze
from composer.train.techniques.recompute import recomputing


def peak_of(recipe: composer.Recipe, lengths: Mapping[str, int], settings: TrainSettings) -> int:
    """Return the most bytes that the second training step holds: what lives before it, and what torch's allocator then gives."""
    model = recipe.compile(seed=0).train()
    freeze(model, settings.freeze)
    optimizer = build_optimizer(model, settings)
    settings = with_logits_chunk(settings, model)
    batch = batch_of(model.program, lengths)
    batch = {name: torch.randn_like(value) if value.is_floating_point() else value for name, value in batch.items()}

    def step() -> None:
        update(model, optimizer, [batch] * settings.grad_accum, settings, rate=settings.learning_rate)

    with recomputing(model, settings.recompute):
        step()  # it makes the state of the optimizer
        assert optimizer.state, "the gradient is not finite"
        state = [value for each in optimizer.state.values() for value in each.values() if isinstance(value, torch.Tensor)]
        lives = {value.untyped_storage() for value in (*model.parameters(), *model.buffers(), *batch.values(), *state)}
        before = sum({each.data_ptr(): each.nbytes() for each in lives}.values())
        with torch.profiler.profile(profile_memory=True) as profile:
            step()
    return before + most_held(profile)


def most_held(profile: torch.profiler.profile) -> int:
    """Return the most bytes that torch's allocator had given at a time while it was profiled with its memory."""
    held = most = 0
    events = profile.profiler.kineto_results.events()
    for event in sorted((each for each in events if each.name() == "[memory]"), key=lambda each: each.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most
