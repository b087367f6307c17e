"""Initial values: those of the recipe's patterns, else of each block; every parameter has a random generator of its own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from blocks.along_axes.axis_formulas import evaluated, parsed
from composer.graph.initial_values import DRAWN, LAYER, PLACES, layer_of, start_of
from composer.graph.parameters import buffers

if TYPE_CHECKING:
    from composer.graph.parameters import NamedParameter
    from composer.graph.typed import TypedProgram


@torch.no_grad()
def initialize(tensors: Mapping[str, torch.Tensor], table: Sequence[NamedParameter], typed: TypedProgram, seed: int) -> None:
    """Fill every buffer, and every parameter of the table that is not tied to another.

    The numbers depend on nothing but the seed and the parameter's name, so that a further node changes no other parameter.
    """
    for name, buffer in buffers(typed).items():
        tensors[name].fill_(float(buffer.init.value))
    for entry in table:
        if entry.tied_to:
            continue
        tensor = tensors[entry.name]
        init = start_of(typed.untyped, entry) or entry.parameter.init
        value = float(init.value)
        generator = torch.Generator(device="cpu").manual_seed(_seed(seed, entry.name))
        low = -value if init.low is None else init.low
        fresh = torch.empty(tensor.shape, dtype=torch.float32)
        if init.how == "normal":
            fresh.normal_(0.0, value, generator=generator)
        elif init.how == "uniform":
            fresh.uniform_(low, value, generator=generator)
        elif init.how == "sinusoids":
            fresh.copy_(_sinusoids(*fresh.shape, base=value))
        elif init.how == "grid_sinusoids":
            fresh.copy_(_grid_sinusoids(*fresh.shape, base=value))
        else:
            fresh.fill_(value)
        if init.formula:
            fresh.copy_(_computed(init.formula, fresh, layer_of(entry.name)))
        if entry.parameter.zero_row is not None:
            fresh[entry.parameter.zero_row] = 0.0
        tensor.copy_(fresh)


def _computed(formula: str, drawn: torch.Tensor, layer: int | None) -> torch.Tensor:
    """Return what a formula of initial values comes to, in float64."""
    values: dict[str, Any] = {DRAWN: drawn.double(), LAYER: layer}
    for axis, (name, length) in enumerate(zip(PLACES, drawn.shape, strict=False)):
        behind = (1,) * (drawn.dim() - 1 - axis)
        values[name] = torch.arange(length, dtype=torch.float64).reshape(-1, *behind)
    computed: torch.Tensor = torch.zeros(drawn.shape, dtype=torch.float64) + evaluated(parsed(formula), values)
    return computed


def _sinusoids(positions: int, dim: int, *, base: float) -> torch.Tensor:
    """Return sines of each position in the first half of the channels and cosines in the second, of wavelengths of 2π to
    2π · base.
    """
    frequencies = base ** (-torch.arange(dim // 2) / max(dim // 2 - 1, 1))
    angles = torch.arange(positions)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def _grid_sinusoids(positions: int, dim: int, *, base: float) -> torch.Tensor:
    """Return sines and cosines of the column of each place of a square grid, then those of its row, of wavelengths from 2π up to
    but without 2π · base. Positions in front of the largest square that there is are zeros.
    """
    side, waves = math.isqrt(positions), dim // 4
    frequencies = base ** (-torch.arange(waves, dtype=torch.float64) / waves)
    angles = torch.arange(side)[:, None] * frequencies
    line = torch.cat([angles.sin(), angles.cos()], dim=1)
    table = torch.zeros(positions, dim)
    table[positions - side**2 :] = torch.cat([line.repeat(side, 1), line.repeat_interleave(side, 0)], dim=1)
    return table


def _seed(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "little") >> 1
