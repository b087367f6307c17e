"""What a state becomes: a node behind all others, which gives nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import Block, BlockError, PositiveInt, Sizes
from blocks.primitives.state import State

SUFFIX = ".next"
"""Behind the name of a state, the name of its renewal."""


class Renewal(Block, kind=State.kind):  # so that messages say what a recipe says
    """The value that a state has in the next call. It is no block of the library: `next` of a state makes it."""

    shape: tuple[PositiveInt, ...]
    """That of the state."""

    inputs = {"next": "float[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        if inputs["next"].sizes != self.shape:
            kept = f"float[{', '.join(map(str, self.shape))}]"
            raise BlockError(f"a state of {kept} cannot become {inputs['next']}", code="type-mismatch")
        return {}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {}
