"""The residual connection, with a place for every norm."""

from __future__ import annotations

from typing import Literal

from blocks.core import Block, BlockError, Norm, Paper, Probability, Sizes


class Residual(Block, kind="residual"):
    """Add what a body makes of the input to the input:
    `y = post_norm(skip_scale · x + scale · branch_norm(body(norm(x))))`.

    A norm is there only where it is written. The branch may also have a learned factor for each channel, and dropout.
    """

    body: Block
    """What computes the branch; its output has the type of its input."""
    norm: Norm | None = None
    """The norm before the body, or wherever `placement` puts it."""
    branch_norm: Norm | None = None
    """A norm after the body, before the sum."""
    post_norm: Norm | None = None
    """A norm after the sum."""
    placement: Literal["pre", "post", "sandwich", "reordered"] = "pre"
    """Where the one `norm` goes: before the body, after the sum, before and after the body (two norms), after the body."""
    scale: float = 1.0
    """A fixed factor of the branch."""
    skip_scale: float = 1.0
    """A fixed factor of the input in the sum."""
    layer_scale: float | None = None
    """Where a learned factor for each channel of the branch starts; without it, there is none."""
    dropout: Probability = 0.0
    """Probability of a zero in the branch, before the sum."""

    dissolved = True
    paper = Paper("Deep Residual Learning for Image Recognition", "arXiv:1512.03385")
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}
    graph = """
        norm: norm if placement == pre or placement == sandwich else none
        body: body
        branch_norm: norm if placement == sandwich or placement == reordered else branch_norm
        layer_scale: {type: layer_scale, init: layer_scale, when: layer_scale != none}
        scale: {type: scale, by: scale, when: scale != 1}
        dropout: {type: dropout, p: dropout, when: dropout > 0}
        skip: {type: scale, by: skip_scale, in: input, when: skip_scale != 1}
        add: {type: add, in: [skip, dropout]}
        post_norm: norm if placement == post else post_norm
    """

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if self.placement == "pre":
            return
        if self.norm is None:
            raise BlockError(
                f"placement {self.placement} moves a norm, and there is none", field="placement", hint="write `norm`"
            )
        for name in ("branch_norm", "post_norm"):
            if getattr(self, name) is not None:
                raise BlockError(
                    f"{name} is written beside placement {self.placement}, which says where the one norm goes",
                    field=name,
                    hint=f"leave out `placement` or `{name}`",
                )
