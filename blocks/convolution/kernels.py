"""Kernels that slide along axes: their numbers for each axis, and how many places they have there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal

from blocks.core import Block, BlockError, PositiveInt, Sizes, declaration

EachNumber = int | tuple[int, ...]
"""One number for all axes, or one for each."""
OTHER_PADDING = {"padding": "what others call `valid` is `padding: 0`"}
"""What is written for words of `padding` that other libraries have."""


class Sliding(Block):
    """A kernel that slides along axes of its input, without what it computes."""

    kernel_size: PositiveInt | tuple[PositiveInt, ...]
    """Places along each axis that the kernel reads."""

    along: ClassVar[tuple[str, ...]]
    """The axes that it slides along, as its input's type calls them."""

    is_primitive = True
    other_choices = OTHER_PADDING

    @declaration
    def slide(self) -> SlidingKernel:
        """Return its numbers for each axis.

        Raises:
            BlockError: A list has another number of numbers than there are axes.
        """
        raise NotImplementedError

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        self.slide().check({name: sizes[name] for name in self.along})

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        slide = self.slide()
        return tuple(sizes[name] for name, kernel in zip(self.along, slide.kernel, strict=True) if kernel > 1)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        slide = self.slide()
        lengths = slide.lengths([sizes[name] for name in self.along])
        first, *others = lengths
        return {
            "taps": prod(slide.kernel),
            "places": prod(others, start=first),
            **{f"kernel_{name}": number for name, number in zip(self.along, slide.kernel, strict=True)},
            **slide.plain(),
        }


@dataclass(frozen=True, slots=True)
class SlidingKernel:
    """The numbers of a kernel for each of its axes."""

    kernel: tuple[int, ...]
    steps: tuple[int, ...]
    """How far it moves from place to place."""
    gaps: tuple[int, ...]
    """Distance between neighboring positions of the kernel."""
    around: tuple[tuple[int, int], ...]
    """What is added before and after the input."""
    ceil: bool = False
    """Whether the last place may reach beyond what is added after the input."""

    @property
    def spans(self) -> tuple[int, ...]:
        """The number of positions from the first to the last that the kernel reads at one place."""
        return tuple((kernel - 1) * gap + 1 for kernel, gap in zip(self.kernel, self.gaps, strict=True))

    @property
    def even(self) -> bool:
        """Whether as much is added after the input as before."""
        return all(before == after for before, after in self.around)

    def lengths(self, lengths: Sequence[Any]) -> tuple[Any, ...]:
        """Return the number of places along each axis: `(length + before + after - span) // step + 1`, rounded up with `ceil`."""
        numbers = zip(lengths, self.around, self.spans, self.steps, strict=True)
        return tuple(
            (length + before + after - span + (step - 1) * self.ceil) // step + 1
            for length, (before, after), span, step in numbers
        )

    def check(self, lengths: Mapping[str, Any]) -> None:
        """Raise `BlockError` if the kernel has no place along an axis."""
        numbers = zip(lengths.items(), self.spans, self.around, self.steps, strict=True)
        for (name, length), span, (before, after), step in numbers:
            if isinstance(length, int) and length + before + after + (step - 1) * self.ceil < span:
                added = f" with {before + after} added around it" if before + after else ""
                raise BlockError(
                    f"a kernel that spans {span} does not fit in a {name} of {length}{added}",
                    field="kernel_size",
                    hint=f"with `padding: {-(-(span - length) // 2)}` it has a place",
                )

    def plain(self) -> dict[str, Any]:
        """Return what `forward` reads: `edges` is what has to be added before the kernel can do so itself."""
        return {
            "kernel": self.kernel,
            "steps": self.steps,
            "gaps": self.gaps,
            "pads": tuple(before for before, _ in self.around) if self.even else (0,) * len(self.around),
            "edges": () if self.even else tuple(number for both in reversed(self.around) for number in both),
        }


def slide(
    axes: int,
    kernel: EachNumber,
    stride: EachNumber | None,
    padding: Literal["same"] | EachNumber | None,
    dilation: EachNumber = 1,
    *,
    causal: bool = False,
    uneven: bool = False,
    ceil: bool = False,
) -> SlidingKernel:
    """Return the numbers of a kernel for each axis; `same` adds what keeps the length at a stride of 1, and what is odd after.

    Args:
        axes: The number of axes.
        kernel: What a recipe says of `kernel_size`.
        stride: What it says of `stride`; by default, `kernel`.
        padding: What it says of `padding`.
        dilation: What it says of `dilation`.
        causal: Whether all is added before the input, as much as keeps the length.
        uneven: Whether `padding` may have two numbers for each axis, those before and after the input.
        ceil: Whether the last place may reach beyond what is added after the input.

    Raises:
        BlockError: A list has another number of numbers than there are axes.
    """
    sizes, gaps = per_axis(kernel, axes, "kernel_size"), per_axis(dilation, axes, "dilation")
    steps = sizes if stride is None else per_axis(stride, axes, "stride")
    reaches = [(size - 1) * gap for size, gap in zip(sizes, gaps, strict=True)]
    if causal:
        around = [(reach, 0) for reach in reaches]
    elif padding == "same":
        around = [(reach // 2, reach - reach // 2) for reach in reaches]
    elif uneven and isinstance(padding, tuple) and len(padding) == 2 * axes:
        around = list(zip(padding[::2], padding[1::2], strict=True))
    else:
        around = [(number, number) for number in per_axis(0 if padding is None else padding, axes, "padding")]
    return SlidingKernel(sizes, steps, gaps, tuple(around), ceil)


def per_axis(value: EachNumber, axes: int, field: str) -> tuple[int, ...]:
    """Return one number for each axis.

    Raises:
        BlockError: A list has another number of numbers.
    """
    numbers = value if isinstance(value, tuple) else (value,) * axes
    if len(numbers) != axes:
        count = "one number" if len(numbers) == 1 else f"{len(numbers)} numbers"
        plural = "axis" if axes == 1 else "axes"
        raise BlockError(
            f"`{field}` has {count} for {axes} {plural}", field=field, hint=f"one number is for all axes: {field}: 3"
        )
    return numbers


def alone(numbers: tuple[int, ...]) -> EachNumber:
    """Return one number for all axes where they are equal."""
    return numbers[0] if len({*numbers}) == 1 else numbers


def shown(numbers: tuple[int, ...]) -> str:
    """Return the numbers of each axis as a caption: `3 × 3`."""
    return " × ".join(map(str, numbers))


def briefly(title: str, facts: Sequence[str]) -> tuple[str, ...]:
    """Return a convolution in a few letters, given its channels, its kernel and its other numbers: `conv 3 × 3 (64 → 128),
    stride 2`, and the same with less.
    """
    channels, kernel, *others = (fact for fact in facts if not fact.startswith("padding"))
    name = f"{title.lower().replace('convolution', 'conv')} {kernel.removeprefix('kernel ') if ' × ' in kernel else kernel}"
    return tuple(dict.fromkeys((", ".join([f"{name} ({channels})", *others]), ", ".join([name, *others]), name)))


def captions(block: Sliding, **defaults: int) -> list[str]:
    """Return the kernel of a block, and its other numbers that are not the default, as captions."""
    found = [f"kernel {shown(block.slide().kernel)}"]
    for name, default in defaults.items():
        value = getattr(block, name, default)
        numbers = value if isinstance(value, tuple) else (value,)
        if value not in (default, None) and set(numbers) != {default}:
            found.append(f"{name} {' × '.join(map(str, numbers))}")
    return found
