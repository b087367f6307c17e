"""The learning rate against torch's own schedulers."""

from __future__ import annotations

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from composer.train import TrainSettings
from composer.train.schedule import learning_rate


def test_the_rate_is_torchs_linear_then_cosine():
    """Every step of a run of 30 with 6 of warm-up."""
    settings = TrainSettings(steps=30, warmup_steps=6, learning_rate=0.2, min_lr_ratio=0.1)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
    up = LinearLR(optimizer, start_factor=1 / 6, total_iters=5)
    down = CosineAnnealingLR(optimizer, T_max=24, eta_min=0.02)
    scheduler = SequentialLR(optimizer, [up, down], milestones=[5])
    for step in range(1, 31):
        assert learning_rate(settings, step) == pytest.approx(scheduler.get_last_lr()[0]), step
        optimizer.step()
        scheduler.step()


def test_without_warm_up_the_rate_only_falls():
    """The last step is at the floor."""
    settings = TrainSettings(steps=9, warmup_steps=0, learning_rate=1.0, min_lr_ratio=0.25)
    rates = [learning_rate(settings, step) for step in range(1, 10)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(0.25)


def test_a_run_shorter_than_its_warm_up_only_rises():
    """No division by what is left."""
    settings = TrainSettings(steps=3, warmup_steps=3, learning_rate=0.6)
    assert [learning_rate(settings, step) for step in (1, 2, 3)] == pytest.approx([0.2, 0.4, 0.6])
