"""Measuring the rates of the device at hand."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from composer.estimate.devices import DeviceSpec, EstimateError, Rate
from composer.estimate.tracing import tracing
from composer.train.memory import memory_of

SIDES = (32, 64, 128, 256, 512, 1024, 2048)
"""Rows and columns of the matrices that are multiplied; a GPU also multiplies larger ones."""
SIDES_ON_GPU = (256, 1024, 4096, 8192)
BYTES = (1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 25, 1 << 27)
"""Bytes of the tensors that are multiplied by a number; beyond a cache, and beyond what an allocator keeps, it is slower."""
SECONDS = 0.1
"""The least time that each rate is measured for."""


def measure_device(device: str = "cpu") -> DeviceSpec:
    """Return the rates of a device at hand, measured in some seconds with as many threads as torch has.

    Args:
        device: `"cpu"`, or a GPU as torch calls it, such as `"cuda"`.

    Raises:
        EstimateError: torch cannot use the device.

    Examples:
        >>> from composer.estimate import estimate, measure_device
        >>> measure_device().measured  # doctest: +SKIP
        True
    """
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError) as error:
        raise EstimateError(f"the device {device} cannot be used: {str(error).splitlines()[0]}") from None
    on_gpu = place.type != "cpu"
    with torch.no_grad():
        sides = SIDES_ON_GPU if on_gpu else SIDES
        matmul = {name: _matmul(place, dtype, sides) for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16))}
        attention = {name: _attention(place, dtype) for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16))}
        bandwidth = _bandwidth(place)
        allocation = () if on_gpu else _allocation(place, bandwidth)
        functions = () if on_gpu else _functions(place, bandwidth)
    return DeviceSpec(
        name=_name(place),
        memory=memory_of(place),
        matmul=matmul,
        attention=attention,
        bandwidth=bandwidth,
        allocation=allocation,
        functions=functions,
        launch=_launch(place),
        overlaps=on_gpu,
        precision="bf16" if place.type == "cuda" else "fp32",
        measured=True,
    )


def seconds_beyond(run: Callable[[], object], device: torch.device) -> float:
    """Return the time of an operator beyond that of an operator on a single value."""
    one = torch.ones(1, device=device)
    seconds = seconds_of(run, device)
    return max(seconds - seconds_of(lambda: one * 2.0, device), 0.05 * seconds)


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """Return the median time of a call, without the first ones."""

    def timed() -> float:
        began = time.perf_counter()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - began

    timed()
    timed()
    found: list[float] = []
    while len(found) < 3 or (sum(found) < SECONDS and len(found) < 1000):
        found.append(timed())
    return sorted(found)[len(found) // 2]


def _matmul(device: torch.device, dtype: torch.dtype, sides: tuple[int, ...]) -> Rate:
    """Return the rate of products of square matrices; as soon as one takes long, larger ones are left out."""
    found: list[tuple[float, float]] = []
    for side in sides:
        one, other = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
        seconds = seconds_beyond(lambda one=one, other=other: one @ other, device)  # type: ignore[misc]
        found.append((2.0 * side**3, 2.0 * side**3 / seconds))
        if seconds > 0.5:
            break
    return tuple(found)


def _attention(device: torch.device, dtype: torch.dtype) -> Rate:
    """Return the rate of fused causal attention with heads of 64, of which half the pairs are computed."""
    found: list[tuple[float, float]] = []
    for rows in (64, 256, 1024):
        q = torch.randn(4, 8, rows, 64, device=device).to(dtype)
        seconds = seconds_beyond(lambda q=q: F.scaled_dot_product_attention(q, q, q, is_causal=True), device)  # type: ignore[misc]
        flops = 4.0 * 32 * rows * rows * 64 / 2
        found.append((flops, flops / seconds))
    return tuple(found)


def _bandwidth(device: torch.device) -> Rate:
    """Return the rate of reading a tensor and writing another."""
    found: list[tuple[float, float]] = []
    for size in BYTES:
        values, result = (torch.ones(size // 4, device=device) for _ in range(2))
        seconds = seconds_beyond(lambda values=values, result=result: torch.mul(values, 2.0, out=result), device)  # type: ignore[misc]
        found.append((2.0 * size, 2.0 * size / seconds))
    return tuple(found)


def _allocation(device: torch.device, bandwidth: Rate) -> Rate:
    """Return the rate of memory for new tensors: above some size, the system gives new pages each time."""
    found: list[tuple[float, float]] = []
    for size, (moved, rate) in zip(BYTES, bandwidth, strict=True):
        values = torch.ones(size // 4, device=device)
        seconds = seconds_beyond(lambda values=values: values * 2.0, device)  # type: ignore[misc]
        found.append((float(size), size / max(seconds - moved / rate, 0.05 * seconds)))
    return tuple(found)


def _functions(device: torch.device, bandwidth: Rate) -> Rate:
    """Return the rate of functions beyond that of their memory traffic: the mean of some that models have."""
    found: list[tuple[float, float]] = []
    for size, (moved, rate) in zip(BYTES[:-2], bandwidth, strict=False):
        values, result = (torch.randn(size // 4, device=device) for _ in range(2))
        runs = [
            lambda run=run, values=values, result=result: run(values, out=result)
            for run in (torch.exp, torch.tanh, torch.sigmoid, torch.erf)
        ]
        seconds = sum(seconds_beyond(run, device) for run in runs) / len(runs)
        found.append((size / 4, size / 4 / max(seconds - moved / rate, 0.05 * seconds)))
    return tuple(found)


def _launch(device: torch.device) -> float:
    """Return the time of an operator of a model so small that nothing else takes time, forward and backward."""

    def model() -> nn.Module:
        return nn.Sequential(
            *(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)) for _ in range(8)),
        )

    def run(model: nn.Module, values: Tensor) -> None:
        with torch.enable_grad():
            model(values).sum().backward()

    with tracing() as tracer:
        traced, values = model(), torch.zeros(1, 8)
        tracer.work.clear()
        run(traced, values)
        operators = tracer.work.total()
    real, values = model().to(device), torch.zeros(1, 8, device=device)
    return seconds_of(lambda: run(real, values), device) / operators


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type != "cpu":
        return device.type
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread{'s' * (threads != 1)}"


def processor() -> str:
    """Return the name of the processor, as Linux tells it or as Python knows it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"
