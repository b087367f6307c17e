"""A value that outlives a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from blocks.core import (
    ONES,
    ZEROS,
    Block,
    BlockView,
    Look,
    LoopIcon,
    NodeRef,
    PositiveInt,
    Sizes,
    Tensor,
    grouped,
    torch,
)


class State(Block, kind="state"):
    """A value that the model keeps from call to call without learning it, and the node that says what it becomes:
    `yₙ₊₁ = next(…, yₙ)`.

    A call sees what the call before left; `next` may therefore come after what reads the state. No gradient goes back through
    it. While a text is being written (in a session) nothing changes, so that it can be read in pieces.
    """

    shape: tuple[PositiveInt, ...]
    """Sizes of its axes; `[]` is a single number."""
    next: NodeRef
    """The node whose value it has in the next call."""
    init: Literal["zeros", "ones"] = "zeros"
    """What the first call sees."""
    update: Literal["training", "always"] = "training"
    """When it changes: with each call in `training` mode, or `always`."""

    outputs = {"y": "float[...]"}
    renewed_by = "next"

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, str]:
        return {"y": f"float[{', '.join(map(str, self.shape))}]"}

    def buffers(self) -> Mapping[str, Tensor]:
        return {"value": Tensor(self.shape, "state", ONES if self.init == "ones" else ZEROS)}

    def look(self, view: BlockView) -> Look:
        when = () if self.update == "training" else ("renewed by every call",)
        return Look(self.called(), (" × ".join(map(grouped, self.shape)) or "one number", *when), "rec", LoopIcon())

    def forward(self: Any) -> Any:
        return self.value.clone()  # what gradients need of it must not change under them

    def renew(self: Any, value: torch.Tensor) -> None:
        if self.cache is None and (self.training or self.update == "always"):
            self.value.copy_(value.detach())
