"""Large numbers with units, and lists of indices as ranges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

THOUSANDS = ("", " K", " M", " B", " T", " P", " E")
"""As papers write counts; a unit has the prefixes of the SI, with a small k."""
FLOPS = (" FLOPs", " kFLOPs", " MFLOPs", " GFLOPs", " TFLOPs", " PFLOPs", " EFLOPs", " ZFLOPs")
BYTES = (" bytes", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")


def short(number: int) -> str:
    """Return three digits and a letter: `124 M`, `8.03 B`."""
    return _scaled(number, 1000, THOUSANDS)


def in_flops(number: int) -> str:
    """Return three digits and a unit: `285 MFLOPs`."""
    return _scaled(number, 1000, FLOPS)


def in_bytes(number: int) -> str:
    """Return three digits and a unit: `474 MiB`."""
    return _scaled(number, 1024, BYTES)


def _scaled(number: int, base: int, units: tuple[str, ...]) -> str:
    value, unit = float(number), 0
    while (shown := round(value, _decimals(value))) >= base and unit < len(units) - 1:
        value, unit = value / base, unit + 1
    return f"{shown:.{_decimals(shown)}f}{units[unit]}" if unit else f"{number}{units[0]}"


def _decimals(value: float) -> int:
    """Return the number of decimals that make three significant digits."""
    return max(0, 3 - len(str(int(value))))


def ranges(indices: Sequence[int]) -> str:
    """Return ascending numbers as ranges: `0-4, 6-10, 12`."""
    runs = ([pair[1] for pair in run] for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]))
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:3], "…", shown[-1]])
