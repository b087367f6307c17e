"""The learning rate against torch's own schedulers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from transformers import optimization

from composer.train import TrainSettings
from composer.train.optimization.schedule import learning_rate


def test_the_rate_is_torchs_linear_then_cosine():
    """Every step of a run of 30 with 6 of warm-up."""
    settings = TrainSettings(steps=30, warmup_steps=6, learning_rate=0.2, min_lr_ratio=0.1)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
    up = LinearLR(optimizer, start_factor=1 / 6, total_iters=5)
    down = CosineAnnealingLR(optimizer, T_max=24, eta_min=0.02)
    scheduler = SequentialLR(optimizer, [up, down], milestones=[5])
    for step in range(1, 31):
        assert learning_rate(settings, settings.schedule, step) == pytest.approx(scheduler.get_last_lr()[0]), step
        optimizer.step()
        scheduler.step()


def test_without_warm_up_the_rate_only_falls():
    """The last step is at the floor."""
    settings = TrainSettings(steps=9, warmup_steps=0, learning_rate=1.0, min_lr_ratio=0.25)
    rates = [learning_rate(settings, settings.schedule, step) for step in range(1, 10)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(0.25)


def test_a_run_shorter_than_its_warm_up_only_rises():
    """No division by what is left."""
    settings = TrainSettings(steps=3, warmup_steps=3, learning_rate=0.6)
    assert [learning_rate(settings, settings.schedule, step) for step in (1, 2, 3)] == pytest.approx([0.2, 0.4, 0.6])


@pytest.mark.parametrize("warmup", [0, 7])
@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant", "inverse_sqrt", "wsd"])
def test_schedules_are_those_of_transformers(schedule, warmup):
    """Each step of 40, where both end at 0."""
    if schedule == "inverse_sqrt" and not warmup:
        pytest.skip("without warm-up, transformers falls over 10 000 steps of its own")
    decay = {"decay_ratio": 0.25} if schedule == "wsd" else {}
    floor = {} if schedule in ("constant", "inverse_sqrt") else {"min_lr_ratio": 0.0}
    settings = TrainSettings(steps=40, warmup_steps=warmup, learning_rate=0.3, schedule=schedule, **floor, **decay)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    theirs = {
        "cosine": lambda: optimization.get_cosine_schedule_with_warmup(optimizer, warmup, 40),
        "linear": lambda: optimization.get_linear_schedule_with_warmup(optimizer, warmup, 40),
        "constant": lambda: optimization.get_constant_schedule_with_warmup(optimizer, warmup),
        "inverse_sqrt": lambda: optimization.get_inverse_sqrt_schedule(optimizer, warmup),
        "wsd": lambda: optimization.get_wsd_schedule(
            optimizer, warmup, num_decay_steps=10, num_stable_steps=30 - warmup, decay_type="linear"
        ),
    }[schedule]()
    for step in range(41):
        if step:
            assert learning_rate(settings, schedule, step) == pytest.approx(theirs.get_last_lr()[0], abs=1e-12), step
        optimizer.step()
        theirs.step()


def test_the_rate_keeps_its_floor_in_each_schedule_that_has_one():
    """The last rate is the floor, and none is below it after warm-up."""
    for schedule in ("cosine", "linear", "wsd"):
        settings = TrainSettings(steps=20, warmup_steps=3, learning_rate=1.0, min_lr_ratio=0.3, schedule=schedule)
        rates = [learning_rate(settings, schedule, step) for step in range(3, 21)]
        assert rates == sorted(rates, reverse=True)
        assert (rates[0], rates[-1]) == pytest.approx((1.0, 0.3))


def test_wsd_keeps_the_peak_until_its_decay():
    """A decay that would begin in warm-up begins after it; one of no steps never begins."""
    settings = TrainSettings(steps=10, warmup_steps=2, learning_rate=1.0, schedule="wsd", min_lr_ratio=0.0)
    assert [learning_rate(settings, "wsd", step) for step in range(2, 11)] == pytest.approx([1.0] * 7 + [0.5, 0.0])
    assert learning_rate(replace(settings, decay_ratio=1.0), "wsd", 6) == pytest.approx(0.5)
    assert learning_rate(replace(settings, decay_ratio=0.0), "wsd", 10) == 1.0
