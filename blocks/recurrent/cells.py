"""Recurrent cells: one step of an RNN, GRU or LSTM, for the body of a `scan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from blocks.activations.squashing import Tanh
from blocks.core import (
    Activation,
    Block,
    BlockView,
    F,
    Init,
    Look,
    Paper,
    Piece,
    PositiveInt,
    Sizes,
    Slot,
    Tensor,
    Weights,
    activation_piece,
    declaration,
    grouped,
    size,
    torch,
)
from blocks.recurrent.gates import gru_pieces, linear, lstm_pieces, rnn_pieces, wired


class Cell(Block):
    """The base of recurrent cells, without gates. Parameters are named as in torch's cells: `weight_ih` maps the input,
    `weight_hh` the state.
    """

    hidden: PositiveInt
    """Width of the hidden state; `hidden_size` in torch."""
    biases: Literal["two", "one"] = "two"
    """`two`: a bias for the input map and one for the state map, as in torch; `one`: only the first."""

    gates: ClassVar[int] = 1
    """Number of stacked maps of the hidden width."""

    example = """
inputs: {x: "float[batch, time, 8]"}
graph:
  nothing: {type: zeros, shape: [12]}
  layer:
    scan: time
    in: {x: x, h: nothing}
    graph:
      new: {type: <kind>, hidden: 12, in: {x: x, h: h}}
    outputs: {y: new, h: new}
"""

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        start, rows = Init("uniform", "1 / sqrt(hidden)"), f"{self.gates} * hidden"
        weights = {
            "weight_ih": Tensor((rows, "dim"), "matrix", start),
            "weight_hh": Tensor((rows, "hidden"), "matrix", start),
            "bias_ih": Tensor((rows,), "bias", start),
        }
        if self.biases == "two":
            weights["bias_hh"] = Tensor((rows,), "bias", start)
        return weights

    def look(self, view: BlockView) -> Look:
        facts = (f"{size(view.sizes['dim'])} → {grouped(self.hidden)}",)
        brief = (f"{self.called()} {facts[0]}", self.called())
        return Look(self.called(), facts, "rec", short=self.called(), brief=brief)

    @declaration
    def linear(self, view: BlockView) -> Piece:
        """Return the piece of the linear maps."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if self.biases == "two" else 3]
        return linear(size(view.sizes["dim"]), self.hidden, self.gates, wired("h", view), names)

    def maps(self: Any, x: torch.Tensor, h: torch.Tensor | None) -> Any:
        """Return the maps of the input and of the previous state, which is zero if not wired."""
        h = x.new_zeros(*x.shape[:-1], self.hidden) if h is None else h
        second = self.bias_hh if self.biases == "two" else None
        return F.linear(x, self.weight_ih, self.bias_ih), F.linear(h, self.weight_hh, second), h


class RNNCell(Cell, kind="rnn_cell"):
    """RNN cell, one step of `rnn`: `y = activation(W_ih x + b_ih + W_hh h + b_hh)`."""

    activation: Activation = Tanh()
    """Activation of the hidden state."""

    title = "RNN cell"
    paper = Paper("Finding Structure in Time", "Cognitive Science 14 (1990)")
    inputs = {"x": "float[..., dim]", "h?": "float[..., hidden]"}
    outputs = {"y": "float[..., hidden]"}

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        return {**super().weights(sizes, wired), "activation": Slot("activation", "float[..., hidden]")}

    def inside(self, view: BlockView) -> Sequence[Piece]:
        return rnn_pieces(self.linear(view), activation_piece(view, "activation", self.activation, "maps"))

    def forward(self: Any, x: torch.Tensor, h: torch.Tensor | None = None) -> torch.Tensor:
        of_x, of_h, _ = self.maps(x, h)
        return self.activation(of_x + of_h)  # type: ignore[no-any-return]  # a module


class GRUCell(Cell, kind="gru_cell"):
    """GRU cell, one step of `gru`: `y = (1 - z) · n + z · h`, with gates r and z and the candidate n.

    The weights of r, z and n are stacked in one matrix, in this order, as in torch.
    """

    title = "GRU cell"
    gates: ClassVar[int] = 3

    paper = Paper("Learning Phrase Representations using RNN Encoder-Decoder", "arXiv:1406.1078")
    inputs = {"x": "float[..., dim]", "h?": "float[..., hidden]"}
    outputs = {"y": "float[..., hidden]"}

    def inside(self, view: BlockView) -> Sequence[Piece]:
        return gru_pieces(self.linear(view), wired("h", view))

    def forward(self: Any, x: torch.Tensor, h: torch.Tensor | None = None) -> torch.Tensor:
        of_x, of_h, h = self.maps(x, h)
        r_x, z_x, n_x = of_x.chunk(3, dim=-1)
        r_h, z_h, n_h = of_h.chunk(3, dim=-1)
        z = torch.sigmoid(z_x + z_h)
        n = torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h)
        return (1 - z) * n + z * h


class LSTMCell(Cell, kind="lstm_cell"):
    """LSTM cell, one step of `lstm`: `c ← f · c + i · g` and `h = o · tanh(c)`, with gates i, f and o and the candidate g.

    The weights of i, f, g and o are stacked in one matrix, in this order, as in torch.
    """

    title = "LSTM cell"
    gates: ClassVar[int] = 4

    paper = Paper("Long Short-Term Memory", "Neural Computation 9 (1997)")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph:
  nothing: {type: zeros, shape: [12]}
  layer:
    scan: time
    in: {x: x, h: nothing, c: nothing}
    graph:
      cell: {type: lstm_cell, hidden: 12, in: {x: x, h: h, c: c}}
    outputs: {y: cell, h: cell, c: cell.c}
"""
    inputs = {"x": "float[..., dim]", "h?": "float[..., hidden]", "c?": "float[..., hidden]"}
    outputs = {"h": "float[..., hidden]", "c?": "float[..., hidden]"}

    def inside(self, view: BlockView) -> Sequence[Piece]:
        return lstm_pieces(self.linear(view), wired("c", view), "h")

    def forward(self: Any, x: torch.Tensor, h: torch.Tensor | None = None, c: torch.Tensor | None = None) -> Any:
        of_x, of_h, h = self.maps(x, h)
        i, f, g, o = (of_x + of_h).chunk(4, dim=-1)
        kept = torch.zeros_like(h) if c is None else c
        c = torch.sigmoid(f) * kept + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return (h, c) if "c" in self.requested_outputs else h
