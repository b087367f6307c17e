"""Long short-term memory."""

from __future__ import annotations

from typing import Any, ClassVar

from blocks.core import BlockView, Paper, Piece, declaration, store_carry, torch
from blocks.recurrent.gates import lstm_pieces, wired
from blocks.recurrent.recurrent import Recurrent


class LSTM(Recurrent, kind="lstm"):
    """Long short-term memory (LSTM): `c = f · c' + i · g` and `h = o · tanh(c)`, with c' and h' the previous cell and hidden
    state, gates `i, f, o = σ(W x + b + U h' + d)`, each with weights of its own, and `g = tanh(W_g x + b_g + U_g h' + d_g)`; y
    is h at every position.

    The weights of i, f, g and o are stacked in one matrix, in this order, as in torch. With `biases: one` there is no d. The
    paper has no forget gate f, which was added in 2000.

    At padding, where `valid` is false, the states stay and y is zero, wherever in a row it is. The outputs `h` and `c` then hold
    the states after the last valid position and, for the backward direction, those after the first.
    """

    title = "LSTM"
    gates: ClassVar[int] = 4

    paper = Paper("Long Short-Term Memory", "Neural Computation 9 (1997)")
    inputs = {
        "x": "float[batch, time, dim]",
        "h?": "float[batch, states, hidden]",
        "c?": "float[batch, states, hidden]",
        "valid?": "bool[batch, time]",
    }
    outputs = {
        "y": "float[batch, time, hidden]",
        "h?": "float[batch, states, hidden]",
        "c?": "float[batch, states, hidden]",
    }
    carry = {"h": "float[batch, states, hidden]", "c": "float[batch, states, hidden]"}

    @declaration
    def pieces(self, maps: Piece, view: BlockView) -> tuple[Piece, ...]:
        return lstm_pieces(maps, ("@c", *wired("c", view)), "y")

    def forward(
        self: Any,
        x: torch.Tensor,
        h: torch.Tensor | None = None,
        c: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
    ) -> Any:
        if torch.compiler.is_compiling() and torch.is_grad_enabled() and not x.requires_grad:
            # The compiler takes an input that needs no gradient for inference, and its CPU kernel then fails in the backward:
            # pytorch/pytorch#158007.
            x = x + 0 * self.bias_ih_l0[0]
        before = self.before("h", h, x), self.before("c", c, x)
        if valid is None:
            y, h, c = self.all_layers(torch.lstm, x, before)
        else:
            y, h, c = self.padded(x, valid, *before)
        h, c = h.transpose(0, 1), c.transpose(0, 1)  # [B, layers · directions, hidden]
        store_carry(self, x.shape[1], h=h, c=c)
        if not self.requested_outputs:
            return y
        return (y, *(state for name, state in (("h", h), ("c", c)) if name in self.requested_outputs))

    def one_direction(
        self: Any, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, weights: list[torch.Tensor], padding: torch.Tensor
    ) -> Any:
        """Run the layer; where c is read, on one more channel, 1 at padding, which closes the input gate and opens the forget
        gate there, so that c stays: of c, unlike of h, the kernel returns only the last value.
        """
        if "c" in self.requested_outputs or self.cache is not None:
            x = torch.cat([x, padding.to(x.dtype)], dim=-1)
            far = weights[0].new_full((self.hidden, 1), 1e4)  # where the sigmoid is exactly 0 or 1, and flat
            channel = torch.cat([-far, far, 0 * far, 0 * far])  # of the gates i, f, g, o
            weights = [torch.cat([weights[0], channel], dim=1), *weights[1:]]
        return self.call(torch.lstm, x, (h, c), weights)
