"""The kinds of numbers in a GGUF file: plain ones, and blocks of few bits with their scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Blocks: TypeAlias = NDArray[Any]


class Kind(NamedTuple):
    """A kind of numbers."""

    name: str
    numbers: int
    """Numbers in a block."""
    size: int
    """Bytes of a block."""
    read: Callable[[Blocks], Blocks]
    """Returns the numbers of blocks of bytes, [N, size] to [N, numbers]."""


def _half(raw: Blocks) -> Blocks:
    numbers: Blocks = raw.view("<f2").astype("<f4")
    return numbers


def _bits(packed: Blocks, width: int, shifts: Sequence[int], mask: int) -> Blocks:
    """Return what is packed in bytes, [N, bytes] to [N, …]: `width` bytes hold that many numbers at each of the shifts."""
    import numpy

    places = numpy.array(shifts, dtype="u1")[:, None]
    found: Blocks = ((packed.reshape(len(packed), -1, 1, width) >> places) & numpy.uint8(mask)).reshape(len(packed), -1)
    return found


def _signed(numbers: Blocks, zero: int) -> Blocks:
    """Return unsigned numbers of few bits as those around zero."""
    return (numbers.astype("i1") - zero).astype("<f4")


def _scaled(scales: Blocks, numbers: Blocks) -> Blocks:
    """Return numbers times the scale of their part of a block."""
    parts = numbers.reshape(*scales.shape, -1)
    return (scales[..., None] * parts).reshape(len(numbers), -1)


def _q8_0(raw: Blocks) -> Blocks:
    return raw[:, 2:].view("i1").astype("<f4") * _half(raw[:, :2].copy())


def _q4_0(raw: Blocks) -> Blocks:
    return _half(raw[:, :2].copy()) * _signed(_bits(raw[:, 2:], 16, (0, 4), 15), 8)


def _q4_1(raw: Blocks) -> Blocks:
    numbers: Blocks = _half(raw[:, :2].copy()) * _bits(raw[:, 4:], 16, (0, 4), 15).astype("<f4")
    return numbers + _half(raw[:, 2:4].copy())


def _fifth(raw: Blocks) -> Blocks:
    """Return the fifth bit of each of 32 numbers, in its place."""
    import numpy

    return numpy.unpackbits(raw, axis=1, bitorder="little") << numpy.uint8(4)


def _q5_0(raw: Blocks) -> Blocks:
    return _half(raw[:, :2].copy()) * _signed(_bits(raw[:, 6:], 16, (0, 4), 15) | _fifth(raw[:, 2:6]), 16)


def _q5_1(raw: Blocks) -> Blocks:
    numbers = (_bits(raw[:, 8:], 16, (0, 4), 15) | _fifth(raw[:, 4:8])).astype("<f4")
    found: Blocks = _half(raw[:, :2].copy()) * numbers + _half(raw[:, 2:4].copy())
    return found


def _q2_k(raw: Blocks) -> Blocks:
    scales, numbers = raw[:, :16], _bits(raw[:, 16:80], 32, (0, 2, 4, 6), 3).astype("<f4")
    steps = _half(raw[:, 80:82].copy()) * (scales & 15).astype("<f4")
    least = _half(raw[:, 82:84].copy()) * (scales >> 4).astype("<f4")
    found: Blocks = _scaled(steps, numbers) - least.repeat(16, axis=1)
    return found


def _q3_k(raw: Blocks) -> Blocks:
    import numpy

    low, high = _bits(raw[:, 96:104], 8, (0, 4), 15), _bits(raw[:, 104:108], 4, (0, 2, 4, 6), 3)
    scales = _half(raw[:, 108:110].copy()) * _signed(low | (high << numpy.uint8(4)), 32)
    third = _bits(raw[:, :32], 32, range(8), 1) ^ 1  # a bit that is set subtracts nothing
    numbers = _bits(raw[:, 32:96], 32, (0, 2, 4, 6), 3).astype("i1") - (third << numpy.uint8(2)).astype("i1")
    return _scaled(scales, numbers.astype("<f4"))


def _k_scales(raw: Blocks) -> tuple[Blocks, Blocks]:
    """Return the eight scales and minima of six bits that twelve bytes hold."""
    import numpy

    first, second, third = raw[:, :4], raw[:, 4:8], raw[:, 8:]
    scales = numpy.concatenate([first & 63, (third & 15) | ((first >> 2) & 48)], axis=1)
    return scales.astype("<f4"), numpy.concatenate([second & 63, (third >> 4) | ((second >> 2) & 48)], axis=1).astype("<f4")


def _k(raw: Blocks, numbers: Blocks) -> Blocks:
    scales, least = _k_scales(raw[:, 4:16])
    offsets = _half(raw[:, 2:4].copy()) * least
    found: Blocks = _scaled(_half(raw[:, :2].copy()) * scales, numbers.astype("<f4")) - offsets.repeat(32, axis=1)
    return found


def _q4_k(raw: Blocks) -> Blocks:
    return _k(raw, _bits(raw[:, 16:], 32, (0, 4), 15))


def _q5_k(raw: Blocks) -> Blocks:
    import numpy

    fifth = _bits(raw[:, 16:48], 32, range(8), 1) << numpy.uint8(4)
    return _k(raw, _bits(raw[:, 48:], 32, (0, 4), 15) | fifth)


def _q6_k(raw: Blocks) -> Blocks:
    import numpy

    high = _bits(raw[:, 128:192], 32, (0, 2, 4, 6), 3) << numpy.uint8(4)
    scales = _half(raw[:, 208:].copy()) * raw[:, 192:208].view("i1").astype("<f4")
    return _scaled(scales, _signed(_bits(raw[:, :128], 64, (0, 4), 15) | high, 32))


def _bf16(raw: Blocks) -> Blocks:
    return (raw.view("<u2").astype("<u4") << 16).view("<f4")


KINDS = {
    0: Kind("F32", 1, 4, lambda raw: raw.view("<f4")), 1: Kind("F16", 1, 2, lambda raw: raw.view("<f2")),
    2: Kind("Q4_0", 32, 18, _q4_0), 3: Kind("Q4_1", 32, 20, _q4_1), 6: Kind("Q5_0", 32, 22, _q5_0),
    7: Kind("Q5_1", 32, 24, _q5_1), 8: Kind("Q8_0", 32, 34, _q8_0), 10: Kind("Q2_K", 256, 84, _q2_k),
    11: Kind("Q3_K", 256, 110, _q3_k), 12: Kind("Q4_K", 256, 144, _q4_k), 13: Kind("Q5_K", 256, 176, _q5_k),
    14: Kind("Q6_K", 256, 210, _q6_k), 30: Kind("BF16", 1, 2, _bf16),
}  # fmt: skip
"""The kinds that are read, by their number in a file."""
