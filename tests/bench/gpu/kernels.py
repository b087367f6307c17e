"""Which kernels compute something, from a trace of one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

KINDS = {
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_flash_attention_for_cpu": "flash",
    "_scaled_dot_product_efficient_attention": "memory-efficient",
    "_scaled_dot_product_attention_math": "math",
}
"""The operators of torch behind `scaled_dot_product_attention`, and their kernels."""


def traced(work: Callable[[], object], *, on_card: bool) -> tuple[list[str], list[str]]:
    """Return the kinds of attention that a work uses, and the three kernels that take the most time of the card, with shares."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_card else [])]
    work()
    with profile(activities=activities) as found:
        work()
        if on_card:
            torch.cuda.synchronize()
    events: Any = found.key_averages()
    counts = {KINDS[name]: each.count for each in events if (name := each.key.removeprefix("aten::")) in KINDS}
    kinds = [f"{kind} × {count}" if count > 1 else kind for kind, count in counts.items()] or ["products and softmax"]
    times = {each.key: each.self_device_time_total for each in events if "CUDA" in str(each.device_type)}
    whole = sum(times.values()) or 1.0
    largest = sorted(times, key=lambda name: -times[name])[:3]
    return kinds, [f"{times[name] / whole:.0%} {name[:90]}" for name in largest]
