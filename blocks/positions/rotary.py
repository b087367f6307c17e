"""Rotary position embedding."""

from __future__ import annotations

from math import isclose
from typing import Annotated, Any, Literal, Self

import annotated_types

from blocks.core import BlockError, Paper, PositiveFloat, PositiveInt, SideLook, Sizes, grouped, number, torch
from blocks.positions.positions import Positions
from blocks.positions.scaling import Scaling
from blocks.positions.sections import check_sections, section_of_pair, widths


class Rotary(Positions, kind="rotary"):
    """Rotary position embedding (RoPE), which rotates pairs of query and key channels: `angle = p · theta^(−2i / n)` for pair i
    at position p, with n rotated channels in each head.

    Scores then depend on relative positions only. Angles and rotations are computed in float32, also under bfloat16, which
    represents integers exactly only up to 256.
    """

    theta: PositiveFloat = 10000.0
    """Base of the wavelengths, which run from 2π to 2π · theta positions; `rope_theta` in transformers."""
    partial_rotary_factor: Annotated[float, annotated_types.Gt(0), annotated_types.Le(1)] = 1.0
    """Fraction of each head's channels, from the first on, that is rotated; the others carry no position."""
    layout: Literal["halves", "interleaved"] = "halves"
    """Which channels form a pair: i and i + n/2 (`halves`: GPT-NeoX, Llama), or 2i and 2i + 1 (`interleaved`: the paper,
    GPT-J).
    """
    max_position_embeddings: PositiveInt | None = None
    """Positions that the model is made for, from which some kinds of scaling take what they are not told."""
    sections: tuple[PositiveInt, ...] | None = None
    """How many pairs turn by each of several coordinates, which are wired to the port `coordinates` of attention: by time, row
    and column (M-RoPE), or by row and column (axial RoPE). Where none are wired, all pairs turn by the position, as in a text.
    `mrope_section` in transformers.
    """
    arrangement: Literal["consecutive", "interleaved", "repeated", "alternating"] = "consecutive"
    """Which pairs and frequencies a section has: the next pairs with their frequencies (`consecutive`: Qwen2-VL); every n-th pair
    of n sections, until it has all of its own, and the first section the pairs that are left (`interleaved`: Qwen3-VL); the next
    pairs, with frequencies of its own from 1 down to 1 / theta (`repeated`: the vision tower of Qwen2-VL, EVA-02, SAM 2); or the
    next pairs, with the frequencies of `interleaved` (`alternating`: Pixtral).
    """
    scaling: Scaling | None = None
    """Scaling of the frequencies for contexts longer than in training; `rope_scaling` in transformers."""

    title = "RoPE"
    paper = Paper("RoFormer: Enhanced Transformer with Rotary Position Embedding", "arXiv:2104.09864")
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  y:
    type: attention
    heads: 4
    mask: causal
    positions: {type: rotary, theta: 10000}
    in: x
"""

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if "head_dim" not in sizes:  # the attention calls again once it is known
            return
        width, wanted = sizes["head_dim"], sizes["head_dim"] * self.partial_rotary_factor
        turned = round(wanted)
        if not isclose(turned, wanted, rel_tol=1e-6) or turned % 2 or turned == 0:
            pairs = int(wanted / 2)
            near = [count for count in (2 * pairs, 2 * pairs + 2) if 0 < count <= width]
            raise BlockError(
                f"{wanted:.6g} of {width} channels in a head cannot be rotated in pairs",
                field="partial_rotary_factor",
                hint=" and ".join(f"{_share(count, width)} rotates {count}" for count in near)
                or "a head needs 2 channels or more",
            )
        check_sections(self.sections, self.arrangement, turned // 2)
        if self.scaling is not None:
            try:
                for pairs in widths(self.sections, self.arrangement, turned // 2):
                    self.scaling.check_fit(pairs, self.theta, self.max_position_embeddings)
            except BlockError as error:
                where = "scaling" if error.field is None else f"scaling.{error.field}"
                raise BlockError(error.message, field=where, hint=error.hint, code=error.code) from None

    def coordinates(self) -> int | None:
        return None if self.sections is None else len(self.sections)

    def settled(self) -> Self:
        takes = self.scaling is not None and self.scaling.takes_longest()
        return self if takes else self.model_copy(update={"max_position_embeddings": None})

    def length_class(self, length: int) -> int | None:
        return None if self.scaling is None else self.scaling.length_class(length, self.max_position_embeddings)

    def look_beside(self) -> SideLook:
        facts = [f"θ = {grouped(self.theta)}"]
        facts += [f"{self.partial_rotary_factor:.0%} of d_head"] if self.partial_rotary_factor != 1 else []
        if self.sections is not None:
            how = "" if self.arrangement == "consecutive" else f" {self.arrangement}"
            facts.append(f"sections {' + '.join(map(str, self.sections))}{how}")
        facts += [self.scaling.fact()] if self.scaling else []
        return SideLook("positions", self.called(), tuple(facts))

    def prepare(
        self: Any, position_ids: torch.Tensor, coordinates: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        pairs, device = round(self.head_dim * self.partial_rotary_factor) // 2, position_ids.device
        farthest = position_ids if coordinates is None or self.scaling is None else coordinates.amax(-1)  # [T] or [B, T]
        falling = []
        for count in widths(self.sections, self.arrangement, pairs):
            exponents = torch.arange(0, 2 * count, 2, dtype=torch.float32, device=device) / (2 * count)
            frequencies = 1 / self.theta**exponents  # radians per position
            if self.scaling is not None:
                frequencies = self.scaling.scale(frequencies, self.theta, self.max_position_embeddings, farthest)
            falling.append(frequencies)
        frequencies = falling[0] if len(falling) == 1 else torch.cat(falling, dim=-1)  # [n/2], [1, n/2] or [B, 1, n/2]
        places = position_ids[..., None]
        if coordinates is not None or self.arrangement == "alternating":
            section = section_of_pair(self.sections, self.arrangement, device)  # [n/2]
            if self.arrangement == "alternating":
                order = section.argsort(stable=True)
                section, frequencies = section[order], frequencies[..., order]
            places = places if coordinates is None else coordinates[..., section]  # [T, n/2] or [B, T, n/2]
        angles = places.float() * frequencies  # [T, n/2] or [B, T, n/2]
        cos, sin = angles.cos(), angles.sin()
        amplitude = 1.0 if self.scaling is None else self.scaling.amplitude(self.max_position_embeddings)
        if amplitude != 1:
            cos, sin = cos * amplitude, sin * amplitude
        cos, sin = self.of_channels(cos, cos), self.of_channels(-sin, sin)  # [T, n] or [B, T, n]
        return (cos, sin) if cos.dim() == 2 else (cos[:, None], sin[:, None])

    def of_channels(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return values of the first and the second channel of each pair, [..., n/2], in the order of the channels: [..., n]."""
        if self.layout == "halves":
            return torch.cat([first, second], dim=-1)
        return torch.stack([first, second], dim=-1).flatten(-2)

    def rotate(self, x: torch.Tensor, table: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        cos, sin = table  # [T, n] or [B, 1, T, n]
        turned = cos.shape[-1]
        wide = (x if turned == x.shape[-1] else x[..., :turned]).float()
        if self.layout == "halves":
            a, b = wide.chunk(2, dim=-1)
            other = torch.cat([b, a], dim=-1)  # the other channel of each one's pair
        else:
            other = torch.unflatten(wide, -1, (-1, 2)).flip(-1).flatten(-2)
        y = (wide * cos).add_(other * sin).to(x.dtype)
        return y if turned == x.shape[-1] else torch.cat([y, x[..., turned:]], dim=-1)


def _share(count: int, width: int) -> str:
    """Return a fraction as a recipe may write it: `0.25`, or `2 / 12` where that is shorter."""
    return min(number(count / width), f"{count} / {width}", key=len)
