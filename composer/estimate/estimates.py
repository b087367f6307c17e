"""The memory and the time that a model is estimated to take, and their text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from composer.cost.units import in_bytes, short
from composer.estimate.devices import DeviceSpec
from composer.estimate.work import Duration

WIDTH = 100


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """The memory of a training step, in bytes."""

    weights: int
    """Parameters and buffers."""
    gradients: int
    optimizer: int
    """State of the optimizer."""
    activations: int
    """What is held at the end of the forward pass for the backward pass, with the batch."""
    by_node: Mapping[str, int]
    """The activations by the node that makes them; `loss` is what is outside of the model."""
    peak: int
    """The most that is held at once."""
    peak_phase: str
    """When it is held: in the forward pass, the backward pass or the optimizer step."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a model is estimated to take, from `composer.estimate.estimate`; `str` renders it as text."""

    name: str
    lengths: Mapping[str, int]
    parameters: int
    precision: str
    """Of matrix products, `fp32` or `bf16`; weights, gradients and the optimizer's state are in fp32."""
    optimizer: str
    device: DeviceSpec | None = None
    tokens: int | None = None
    """Tokens of a training step, of the text that the model generates or classifies word by word; None without one."""
    rows: int = 1
    """Rows of the batches of a training step."""
    training: TrainingMemory | None = None
    """None if nothing says what the model learns: its recipe has no task with a loss, and no losses."""
    step: Duration | None = None
    """The time of a training step; None without a device."""
    forward: Duration | None = None
    """The time of a forward pass alone, as in validation; None without a device."""
    forward_peak: int = 0
    """The most bytes that a forward pass alone holds, with the weights."""
    token: Duration | None = None
    """The time of the next token of each sequence in a session, after a text of full length; None without a device."""
    session: int | None = None
    """The bytes of a session's caches at full length; None if the model does not generate text."""
    largest_batch: int | None = None
    """The largest batch whose training step fits into a budget, if one was given; 0 if none does."""
    budget: int | None = None
    """Bytes."""

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens of a training step by its time."""
        return self.tokens / self.step.seconds if self.tokens is not None and self.step is not None else None

    @property
    def rows_per_second(self) -> float | None:
        """Rows of the batches of a training step by its time."""
        return self.rows / self.step.seconds if self.step is not None else None

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as dicts, lists, strings and numbers: bytes and seconds."""
        memory = self.training
        return {
            "name": self.name,
            "lengths": dict(self.lengths),
            "parameters": self.parameters,
            "precision": self.precision,
            "optimizer": self.optimizer,
            "device": None if self.device is None else {"name": self.device.name, "measured": self.device.measured},
            "training": None
            if memory is None
            else {
                "weights": memory.weights,
                "gradients": memory.gradients,
                "optimizer": memory.optimizer,
                "activations": memory.activations,
                "by_node": dict(memory.by_node),
                "peak": memory.peak,
                "peak_phase": memory.peak_phase,
                "tokens": self.tokens,
                "step": _duration_json(self.step),
                "tokens_per_second": self.tokens_per_second,
                "rows_per_second": self.rows_per_second,
            },
            "forward": {"peak": self.forward_peak, "time": _duration_json(self.forward)},
            "session": None if self.session is None else {"bytes": self.session, "token": _duration_json(self.token)},
            "budget": None if self.budget is None else {"bytes": self.budget, "largest_batch": self.largest_batch},
        }


def _duration_json(duration: Duration | None) -> dict[str, Any] | None:
    return None if duration is None else {"seconds": duration.seconds, "parts": dict(duration.parts)}


def in_seconds(seconds: float) -> str:
    """Return three digits and a unit: `21.3 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            value = seconds / size
            decimals = max(0, 3 - len(str(int(value)))) if value else 0
            return f"{value:,.{decimals}f} {unit}"
    raise AssertionError


def at(lengths: Mapping[str, int]) -> str:
    """Return lengths of axes: `batch 8, time 1,024`."""
    return ", ".join(f"{axis} {length:,}" for axis, length in lengths.items())


def _lines(estimate: Estimate) -> Iterator[str]:
    device, memory = estimate.device, estimate.training
    least = "" if device is None or device.measured else "≥ "
    yield from textwrap.wrap(f"{estimate.name}: {estimate.parameters:,} parameters ({short(estimate.parameters)})", WIDTH)
    if estimate.lengths:
        yield f"  at {at(estimate.lengths)}"
    if device is not None:
        of = f", {device.memory / 10**9:,.3g} GB" if device.memory else ""
        yield f"  on {device.name}{of}{'' if device.measured else ', at the rates of its data sheet'}"
    if memory is None:
        yield from ("", "It has no task with a loss and no losses, so there is no training step.")
    else:
        yield from ("", f"training step, {estimate.optimizer}, matrix products in {estimate.precision}")
        yield from _row("weights", in_bytes(memory.weights))
        yield from _row("gradients", in_bytes(memory.gradients))
        yield from _row("optimizer", f"{in_bytes(memory.optimizer)} of state")
        largest = sorted(memory.by_node.items(), key=lambda item: -item[1])[:4]
        parts = ", ".join(f"{name} {in_bytes(size)}" for name, size in largest if size * 50 > memory.activations)
        yield from _row("activations", in_bytes(memory.activations) + (f": {parts}" if parts else ""))
        share = f", {memory.peak / device.memory:.1%} of the device" if device is not None and device.memory else ""
        fits = " — it does not fit" if device is not None and device.memory and memory.peak > device.memory else ""
        yield from _row("peak", f"{in_bytes(memory.peak)}, in the {memory.peak_phase}{share}{fits}")
        if estimate.step is not None:
            rate, unit = estimate.tokens_per_second, "tokens"
            if rate is None:
                rate, unit = estimate.rows_per_second, "rows"
            speed = (
                f", {'≤ ' if least else ''}{rate:,.3g} {unit}/s"
                if rate is not None and rate < 1000
                else f", {'≤ ' if least else ''}{rate:,.0f} {unit}/s"
            )
            yield from _row("time", f"{least}{in_seconds(estimate.step.seconds)}{speed}; {_spent(estimate.step)}")
    if estimate.budget is not None:
        found = f"{estimate.largest_batch:,}" if estimate.largest_batch else "none: a batch of 1 does not fit"
        yield from _row("largest batch", f"{found}, within {in_bytes(estimate.budget)}")
    yield ""
    time = "" if estimate.forward is None else f", {least}{in_seconds(estimate.forward.seconds)}; {_spent(estimate.forward)}"
    yield from _row("forward pass", f"{in_bytes(estimate.forward_peak)} at most{time}")
    if estimate.session is not None:
        time = (
            "" if estimate.token is None else f", {least}{in_seconds(estimate.token.seconds)} a token; {_spent(estimate.token)}"
        )
        yield from _row("session", f"{in_bytes(estimate.session)} of caches{time}")


def _row(name: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(f"{name:<14}{text}", WIDTH, initial_indent="  ", subsequent_indent=" " * 16)


def _spent(duration: Duration) -> str:
    """Return what time is spent on, from a twentieth on."""
    shares = sorted(((seconds / duration.seconds, name) for name, seconds in duration.parts.items()), reverse=True)
    return ", ".join(f"{name} {share:.0%}" for share, name in shares if share >= 0.05)
