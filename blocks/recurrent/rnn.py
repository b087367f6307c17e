"""The Elman recurrent network."""

from __future__ import annotations

from typing import Any, Literal

from blocks.core import BlockView, Paper, Piece, activation_piece, declaration, standard, store_carry, torch
from blocks.recurrent.gates import rnn_pieces
from blocks.recurrent.recurrent import Recurrent


class RNN(Recurrent, kind="rnn"):
    """Recurrent network (Elman RNN): `h = activation(W_ih x + b_ih + W_hh h' + b_hh)`, with h' the previous state; y is h at
    every position.

    Other activations than tanh and ReLU are those of an `rnn_cell` in a `scan`.

    With `biases: one` there is no b_hh. The input and output `h` hold the states of all layers and directions, those of one
    layer next to each other.

    At padding, where `valid` is false, the state stays and y is zero, wherever in a row it is. The output `h` then holds the
    state after the last valid position and, for the backward direction, that after the first.
    """

    activation: Literal["tanh", "relu"] = "tanh"
    """Activation of the hidden state."""

    other_choices = {"activation": "`rnn_cell` takes any activation: make it the step of a `scan`"}
    title = "RNN"
    paper = Paper("Finding Structure in Time", "Cognitive Science 14 (1990)")
    inputs = {"x": "float[batch, time, dim]", "h?": "float[batch, states, hidden]", "valid?": "bool[batch, time]"}
    outputs = {"y": "float[batch, time, hidden]", "h?": "float[batch, states, hidden]"}
    carry = {"h": "float[batch, states, hidden]"}

    @declaration
    def pieces(self, maps: Piece, view: BlockView) -> tuple[Piece, ...]:
        return rnn_pieces(maps, activation_piece(view, "activation", standard()[self.activation](), maps.name))

    def forward(self: Any, x: torch.Tensor, h: torch.Tensor | None = None, valid: torch.Tensor | None = None) -> Any:
        before = self.before("h", h, x)
        if valid is None:
            y, h = self.all_layers(torch.rnn_relu if self.activation == "relu" else torch.rnn_tanh, x, before)
        else:
            y, h = self.padded(x, valid, before)
        h = h.transpose(0, 1)  # [B, layers · directions, hidden]
        store_carry(self, x.shape[1], h=h)
        return (y, h) if "h" in self.requested_outputs else y

    def one_direction(self: Any, x: torch.Tensor, h: torch.Tensor, weights: list[torch.Tensor], padding: torch.Tensor) -> Any:
        """Run the layer; with `relu`, on one more channel, 1 at padding, which makes the state zero there: in a long padding, it
        could grow to infinity, which times a gradient of zero is NaN.
        """
        if self.activation == "tanh":
            return self.call(torch.rnn_tanh, x, h, weights)
        x = torch.cat([x, padding.to(x.dtype)], dim=-1)
        channel = weights[0].new_full((self.hidden, 1), -1e4)
        weights = [torch.cat([weights[0], channel], dim=1), *weights[1:]]
        return self.call(torch.rnn_relu, x, h, weights)
