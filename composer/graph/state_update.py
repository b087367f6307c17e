"""The update of a state: a node after all others, which has no outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import Block, BlockError, PositiveInt, Sizes
from blocks.primitives.state import State

SUFFIX = ".next"
"""What follows the name of a state in the name of its update."""


class Renewal(Block, kind=State.kind):  # so that messages name it as recipes do
    """The value that a state has in the next call. It is no block of the library: `next` of a state makes it."""

    shape: tuple[PositiveInt, ...]
    """The shape of the state."""

    inputs = {"next": "float[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        if inputs["next"].sizes != self.shape:
            kept = f"float[{', '.join(map(str, self.shape))}]"
            raise BlockError(f"a state of {kept} cannot become {inputs['next']}", code="type-mismatch")
        return {}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {}
