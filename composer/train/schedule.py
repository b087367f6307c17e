"""The learning rate at each step."""

from __future__ import annotations

import math

from composer.train.settings import TrainSettings


def learning_rate(settings: TrainSettings, step: int) -> float:
    """Return the learning rate of step 1, 2, … `steps`: linear warm-up to the peak, then a cosine down to the final rate."""
    if step <= settings.warmup_steps:
        return settings.learning_rate * step / settings.warmup_steps
    progress = (step - settings.warmup_steps) / (settings.steps - settings.warmup_steps)
    cosine = (1 + math.cos(math.pi * progress)) / 2  # 1 at the peak, 0 at the last step
    return settings.learning_rate * (settings.min_lr_ratio + (1 - settings.min_lr_ratio) * cosine)
