"""Devices as a roofline sees them: the rates of matrix products and of memory, and the time to start an operator."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import exp, log
from pathlib import Path
from typing import Any, TypeAlias, cast

from composer.atomic_files import StrPath, save
from composer.errors import ComposerError

Rate: TypeAlias = tuple[tuple[float, float], ...]
"""How much is done in a second, by how much is done at a time; ascending."""
PRECISIONS = ("fp32", "bf16")
LIMIT = 1 << 20
"""The largest size of a device file that is read, in bytes."""
HIGHEST = 1e30
"""All numbers of a device file are below it."""


class EstimateError(ComposerError, ValueError):
    """Something cannot be estimated; the message says why in one line, and `hint` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(" ".join(message.splitlines()))
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """What is known of a device.

    Examples:
        >>> from composer.estimate import DEVICES
        >>> DEVICES["h200"].memory
        141000000000
    """

    name: str
    memory: int | None = None
    """Bytes; None if that is not known."""
    matmul: Mapping[str, Rate]
    """FLOPs per second of matrix products, by precision (`fp32`, `bf16`) and by FLOPs of one product."""
    attention: Mapping[str, Rate] = field(default_factory=dict)
    """The same of fused attention; as of matrix products where nothing is said."""
    bandwidth: Rate
    """Bytes per second that are read and written, by bytes of one operator."""
    allocation: Rate = ()
    """Bytes per second of new tensors, beside writing them; without any, they cost nothing."""
    functions: Rate = ()
    """Values per second of functions such as exp, by values of one operator; without any, they cost nothing beside memory."""
    launch: float
    """Seconds that the processor needs to start one operator."""
    overlaps: bool = True
    """Whether the processor starts operators while the device computes, as with a GPU."""
    precision: str = "fp32"
    """The precision in which `arco train` trains on it."""
    measured: bool = False
    """Whether the rates were measured; those of a data sheet are peaks, so that times are lower bounds."""

    def matmul_rate(self, kind: str, precision: str, flops: float) -> float:
        """Return the FLOPs per second of an operator of a kind, `attention` or another."""
        rates = self.attention if kind == "attention" and self.attention else self.matmul
        return at_size(rates.get(precision) or rates["fp32"], flops)


def at_size(rate: Rate, size: float) -> float:
    """Return a rate for an operator of some size: between two that are known, in proportion on logarithmic scales."""
    place = bisect_right(rate, size, key=lambda pair: pair[0])
    if place in (0, len(rate)):
        return rate[min(place, len(rate) - 1)][1]
    (low, slow), (high, fast) = rate[place - 1], rate[place]
    return exp(log(slow) + (log(fast) - log(slow)) * (log(size) - log(low)) / (log(high) - log(low)))


def _peak(name: str, gigabytes: int, *, fp32: float, bf16: float, bandwidth: float) -> DeviceSpec:
    """Return a GPU from its data sheet: TFLOPS without sparsity, TB/s."""
    return DeviceSpec(
        name=name,
        memory=gigabytes * 10**9,
        matmul={"fp32": ((1.0, fp32 * 1e12),), "bf16": ((1.0, bf16 * 1e12),)},
        bandwidth=((1.0, bandwidth * 1e12),),
        launch=4e-6,  # what torch needs of a processor for a small operator with autograd; no data sheet says it
        precision="bf16",
    )


DEVICES: Mapping[str, DeviceSpec] = {
    "b200": _peak("NVIDIA B200", 180, fp32=75, bf16=2250, bandwidth=7.7),
    "h200": _peak("NVIDIA H200 SXM", 141, fp32=67, bf16=989, bandwidth=4.8),
    "h100": _peak("NVIDIA H100 SXM", 80, fp32=67, bf16=989, bandwidth=3.35),
    "a100": _peak("NVIDIA A100 SXM 80 GB", 80, fp32=19.5, bf16=312, bandwidth=2.039),
    "a100-40gb": _peak("NVIDIA A100 SXM 40 GB", 40, fp32=19.5, bf16=312, bandwidth=1.555),
    "l40s": _peak("NVIDIA L40S", 48, fp32=91.6, bf16=362, bandwidth=0.864),
    "l4": _peak("NVIDIA L4", 24, fp32=30.3, bf16=121, bandwidth=0.3),
    "rtx4090": _peak("NVIDIA GeForce RTX 4090", 24, fp32=82.6, bf16=165.2, bandwidth=1.008),
    "rtx3090": _peak("NVIDIA GeForce RTX 3090", 24, fp32=35.6, bf16=71, bandwidth=0.936),
    "t4": _peak("NVIDIA T4", 16, fp32=8.1, bf16=8.1, bandwidth=0.32),
    "mi300x": _peak("AMD Instinct MI300X", 192, fp32=163.4, bf16=1307, bandwidth=5.3),
}
"""GPUs by their data sheets, which give peaks without sparsity; T4 has no bfloat16 of its own, so fp32 stands for it."""


def to_json(spec: DeviceSpec) -> dict[str, Any]:
    """Return a device as its file has it, without the checksum."""
    return asdict(spec)


def write_device(spec: DeviceSpec, path: StrPath) -> None:
    """Write a device to a JSON file, with a checksum.

    Raises:
        EstimateError: The file cannot be written.
    """
    content = to_json(spec)
    content["sha256"] = _checksum(content)
    try:
        save(Path(path), (json.dumps(content, indent=2) + "\n").encode())
    except OSError as error:
        raise EstimateError(f"cannot write {path}: {error.strerror or error}") from None


def read_device(path: StrPath) -> DeviceSpec:
    """Return the device of a JSON file, from `write_device` or written by hand, with a number for a rate that is always the same.

    Raises:
        EstimateError: The file cannot be read, is damaged, or says something else than a device.

    Examples:
        >>> import json
        >>> from pathlib import Path
        >>> from composer.estimate import read_device
        >>> card = {"name": "card", "matmul": {"fp32": 2e13}, "bandwidth": 6e11, "launch": 5e-6}
        >>> _ = Path("card.json").write_text(json.dumps(card))
        >>> read_device("card.json").matmul["fp32"]
        ((1.0, 20000000000000.0),)
    """
    try:
        with Path(path).open("rb") as file:
            content = json.loads(file.read(LIMIT))
    except OSError as error:
        raise EstimateError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise EstimateError(f"{path} is not a JSON file", hint="`arco bench -o FILE` writes one") from None
    if not isinstance(content, dict):
        raise EstimateError(f"{path} does not describe a device", hint="`arco bench -o FILE` writes one")
    sealed = content.pop("sha256", None)
    if sealed is not None and sealed != _checksum(content):
        raise EstimateError(
            f"{path} is damaged: its checksum does not match", hint="remove its `sha256` if you changed it by hand"
        )
    known = {each.name for each in fields(DeviceSpec)}
    if unknown := sorted(content.keys() - known):
        raise EstimateError(f"{path}: there is no `{unknown[0]}` in a device", hint=f"it has {', '.join(sorted(known))}")
    if missing := [name for name in ("name", "matmul", "bandwidth", "launch") if name not in content]:
        raise EstimateError(f"{path}: `{missing[0]}` is missing")
    found: dict[str, Any] = {name: _value(path, name, value) for name, value in content.items()}
    return DeviceSpec(**found)


def _checksum(content: Mapping[str, object]) -> str:
    """Return the checksum of a device without its checksum."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _value(path: StrPath, name: str, value: object) -> object:
    """Return a value of a file as the field has it."""
    match name:
        case "name":
            fits = isinstance(value, str)
        case "precision":
            fits = value in PRECISIONS
        case "overlaps" | "measured":
            fits = isinstance(value, bool)
        case "memory":
            fits = value is None or (_is_positive(value) and isinstance(value, int))
        case "launch":
            fits = _is_positive(value) or (value == 0 and not isinstance(value, bool))
        case "matmul" | "attention":
            if not isinstance(value, dict) or value.keys() - {*PRECISIONS} or (name == "matmul" and "fp32" not in value):
                raise EstimateError(f"{path}: `{name}` must give a rate for fp32, and may give one for bf16")
            return {precision: _rate(path, f"{name}.{precision}", rate) for precision, rate in value.items()}
        case _:
            return () if name in ("allocation", "functions") and value == [] else _rate(path, name, value)
    if not fits:
        raise EstimateError(f"{path}: `{name}` is {value!r:.40}, which it cannot be")
    return value


def _rate(path: StrPath, name: str, value: object) -> Rate:
    """Return a rate that is one number, or several by the size of an operator."""
    if _is_positive(value):
        return ((1.0, float(cast("float", value))),)
    pairs = value if isinstance(value, Sequence) and not isinstance(value, str) else []
    if not pairs or not all(isinstance(pair, Sequence) and len(pair) == 2 and all(map(_is_positive, pair)) for pair in pairs):
        raise EstimateError(f"{path}: `{name}` must be a number above 0, or pairs of a size and a rate")
    found = tuple((float(size), float(rate)) for size, rate in pairs)
    if [size for size, _ in found] != sorted({size for size, _ in found}):
        raise EstimateError(f"{path}: the sizes of `{name}` must ascend")
    return found


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < HIGHEST
