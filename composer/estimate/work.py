"""What the operators of a program compute and move, and how long a device takes for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from composer.estimate.devices import DeviceSpec, at_size

MATMUL, ATTENTION, FUNCTIONS, MEMORY, LAUNCHES = "matrix products", "attention", "functions", "memory traffic", "launches"
"""What time is spent on."""


class Operation(NamedTuple):
    """One operator, without its name: operators alike in all of this take equally long."""

    phase: str
    kind: str
    """Of those with FLOPs, matrix products (also convolutions) or attention; memory traffic for all others."""
    precision: str
    flops: int
    functions: int
    """Values of functions such as exp."""
    read: int
    """Bytes."""
    written: int
    """Bytes; of neither for views."""
    allocated: int
    """Bytes of new storages."""


Work: TypeAlias = Counter[Operation]
"""How often each operator runs."""


@dataclass(frozen=True, slots=True)
class Duration:
    """An estimated time, and what it is spent on."""

    seconds: float
    parts: Mapping[str, float]
    """Seconds by what they are spent on; they sum to the whole."""

    @property
    def bottleneck(self) -> str:
        """What most of it is spent on."""
        return max(self.parts, key=self.parts.__getitem__)


def duration(work: Work, device: DeviceSpec, repeated: Mapping[str, float] | None = None) -> Duration:
    """Return how long a device takes.

    Each operator takes as long as the slower of its arithmetic and its memory traffic; a GPU computes while the processor starts
    further operators, a CPU does one after the other.

    Args:
        work: The operators.
        device: The device.
        repeated: How often each phase runs, if more than once.
    """
    parts = dict.fromkeys((MATMUL, ATTENTION, FUNCTIONS, MEMORY), 0.0)
    launches = 0.0
    for operation, count in work.items():
        times = count * (repeated or {}).get(operation.phase, 1)
        launches += times * device.launch
        moved = operation.read + operation.written
        moving = moved / at_size(device.bandwidth, moved) if moved else 0.0
        if operation.allocated and device.allocation:
            allocating = times * operation.allocated / at_size(device.allocation, operation.allocated)
            parts[MEMORY] += allocating
        if operation.flops:
            computing = operation.flops / device.matmul_rate(_kind(operation), operation.precision, operation.flops)
            parts[operation.kind if computing >= moving else MEMORY] += times * max(computing, moving)
            continue
        parts[MEMORY] += times * moving
        if operation.functions and device.functions:
            parts[FUNCTIONS] += times * operation.functions / at_size(device.functions, operation.functions)
    busy = sum(parts.values())
    parts[LAUNCHES] = max(launches - busy, 0.0) if device.overlaps else launches
    return Duration(busy + parts[LAUNCHES], {name: seconds for name, seconds in parts.items() if seconds})


def _kind(operation: Operation) -> str:
    return "attention" if operation.kind == ATTENTION else "matmul"
