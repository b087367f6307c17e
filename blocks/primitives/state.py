"""A buffer that calls of the model update."""

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
    nn,
    torch,
)


class State(Block, kind="state"):
    """Buffer that a node of the graph updates at each call, such as a running mean: `yₙ₊₁ = next(…, yₙ)`.

    A call reads the value that the previous call left, so `next` may come after the nodes that read the state. No gradient
    flows through it. A decoding session leaves it unchanged, so that a sequence may be passed in pieces.
    """

    shape: tuple[PositiveInt, ...]
    """Sizes of its axes; `[]` is a scalar."""
    next: NodeRef
    """The node whose value the state has in the next call."""
    init: Literal["zeros", "ones"] = "zeros"
    """Initial value."""
    update: Literal["training", "always"] = "training"
    """When it is updated: by calls in `training` mode, or `always`."""
    dtype: Literal["float32"] | None = None
    """The dtype that it keeps where the model is converted to another one, such as bfloat16, in which small updates are lost; by
    default, that of the model.
    """

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph:
  level: {type: state, shape: [], next: next}
  next: {compute: 0.9 * level + 0.1}
  y: {compute: x * level}
"""
    outputs = {"y": "float[...]"}
    renewed_by = "next"

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, str]:
        return {"y": f"float[{', '.join(map(str, self.shape))}]"}

    def always_renewed(self) -> bool:
        return self.update == "always"

    def buffers(self, sizes: Sizes) -> Mapping[str, Tensor]:
        return {"value": Tensor(self.shape, "state", ONES if self.init == "ones" else ZEROS)}

    def look(self, view: BlockView) -> Look:
        when = () if self.update == "training" else ("renewed by every call",)
        what = " × ".join(map(grouped, self.shape)) or "one number"
        return Look(self.called(), (what if self.dtype is None else f"{what} in {self.dtype}", *when), "rec")

    def icon(self) -> LoopIcon:
        return LoopIcon()

    def forward(self: Any) -> Any:
        return self.value.clone()  # the backward pass needs the value of this call

    def renew(self: Any, value: torch.Tensor) -> None:
        if self.cache is None and (self.training or self.update == "always"):
            self.value.copy_(value.detach())

    def _apply(self: Any, convert: Any, recurse: bool = True) -> Any:
        kept = self.value
        nn.Module._apply(self, convert, recurse)  # type: ignore[no-untyped-call]  # torch's
        if self.dtype is not None and self.value.dtype != kept.dtype:
            self.value = kept.to(self.value.device)  # moved, and not converted
        return self
