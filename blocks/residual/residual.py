"""The residual connection, with norms at all usual places."""

from __future__ import annotations

from typing import Literal

from blocks.core import Block, BlockError, Norm, Paper, Probability, Sizes


class Residual(Block, kind="residual"):
    """Residual (skip) connection around a body, pre-norm or post-norm:
    `y = post_norm(skip_scale · x + scale · branch_norm(body(norm(x))))`.

    A norm is applied only where one is set. The branch may also have LayerScale and dropout.
    """

    body: Block
    """The block or graph of the branch; its output has the type of its input."""
    norm: Norm | None = None
    """Norm before the body (pre-norm), or wherever `placement` puts it."""
    branch_norm: Norm | None = None
    """Norm of the branch, after the body."""
    post_norm: Norm | None = None
    """Norm after the sum (post-norm)."""
    placement: Literal["pre", "post", "sandwich", "reordered"] = "pre"
    """Where `norm` is applied: before the body (`pre`), after the sum (`post`), both before and after the body (`sandwich`, two
    norms), or after the body (`reordered`, as in OLMo 2). Its parameters are named by the place: after the body,
    `branch_norm`; after the sum, `post_norm`.
    """
    scale: float = 1.0
    """Constant factor of the branch."""
    skip_scale: float = 1.0
    """Constant factor of the skip connection."""
    layer_scale: float | None = None
    """Initial value of a learned factor for each channel of the branch (LayerScale); without it, there is none."""
    dropout: Probability = 0.0
    """Dropout probability of the branch, before the sum, in training."""

    dissolved = True
    paper = Paper("Deep Residual Learning for Image Recognition", "arXiv:1512.03385")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 24}, in: x}}
"""
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
            raise BlockError(f"placement {self.placement} needs a norm, and none is set", field="placement", hint="set `norm`")
        for name in ("branch_norm", "post_norm"):
            if getattr(self, name) is not None:
                raise BlockError(
                    f"{name} cannot be combined with placement {self.placement}, which places the only norm",
                    field=name,
                    hint=f"leave out `placement` or `{name}`",
                )
