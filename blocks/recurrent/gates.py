"""What recurrent cells consist of, for drawings of their inside: a linear map, gates and merges, as in textbooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blocks.core import BlockView, Look, Piece, grouped, look_with_icon, standard
from blocks.core.look import Sign


def gate(name: str, kind: str, said: str, reads: str) -> Piece:
    """Return a gate, or a candidate: an activation of one share of what another piece gives.

    Args:
        name: The name of the piece.
        kind: The kind of the activation.
        said: What it is called.
        reads: The piece that it reads.
    """
    seen = look_with_icon(standard()[kind](), BlockView(kind))
    return Piece(name, Look("σ" if kind == "sigmoid" else seen.title.lower(), (said,), "rec", seen.icon), ((reads, ""),))


def merge(name: str, sign: Sign, *reads: tuple[str, str], gives: tuple[str, ...] = ()) -> Piece:
    """Return a product or a sum of pieces, each with the port that it comes in at."""
    return Piece(name, Look("Sum" if sign == "+" else "Product", hue="rec", sign=sign), reads, gives=gives)


def linear(dim: str, hidden: int, gates: int, h: Sequence[str], parameters: tuple[str, ...]) -> Piece:
    """Return the stacked maps of the input and of the state before, which is zero if nothing is read as `h`."""
    rows = f"{gates} × {grouped(hidden)}" if gates > 1 else grouped(hidden)
    facts = (f"{dim} + {grouped(hidden)} → {rows} + bias",)
    return Piece("maps", Look("Linear", facts, "rec"), (("$x", ""), *((one, "h") for one in h)), parameters)


def rnn_pieces(maps: Piece, activation: Piece) -> tuple[Piece, ...]:
    """Return an RNN cell: an activation of the maps, which is the new state."""
    look = replace(activation.look, facts=(*activation.look.facts, "new state"), hue="rec")
    return maps, replace(activation, name="y", look=look, gives=("y",))


def gru_pieces(maps: Piece, h: Sequence[str]) -> tuple[Piece, ...]:
    """Return a GRU cell: the reset gate scales what of the state's map goes into the candidate, and the update gate tells how
    much of the state stays.
    """
    mixed = Look("(1 − z) · n + z · h" if h else "(1 − z) · n", ("new state",), "rec")
    return (
        maps,
        gate("z", "sigmoid", "update gate z", "maps"),
        gate("r", "sigmoid", "reset gate r", "maps"),
        merge("reset", "×", ("r", ""), ("maps", "")),
        merge("sum", "+", ("reset", ""), ("maps", "")),
        gate("n", "tanh", "candidate n", "sum"),
        Piece("y", mixed, (("z", ""), ("n", ""), *((one, "h") for one in h)), gives=("y",)),
    )


def lstm_pieces(maps: Piece, c: Sequence[str], state: str) -> tuple[Piece, ...]:
    """Return an LSTM cell: the forget gate keeps some of the cell state, to which the input gate lets some of the candidate in,
    and the output gate lets some of it out.

    Args:
        maps: The linear maps.
        c: What the cell state before is read as; nothing if it is zero.
        state: The block's output that is the new state.
    """
    kept = [gate("f", "sigmoid", "forget gate f", "maps"), merge("kept", "×", ("f", ""), *((one, "c") for one in c))]
    enters = [gate("i", "sigmoid", "input gate i", "maps"), gate("g", "tanh", "candidate g", "maps")]
    product = (("i", ""), ("g", ""))
    cell = (
        [*kept, *enters, merge("entering", "×", *product), merge("c", "+", ("kept", ""), ("entering", ""), gives=("c",))]
        if c
        else [*enters, merge("c", "×", *product, gives=("c",))]
    )
    return (
        maps,
        *cell,
        gate("curve", "tanh", "of the cell state", "c"),
        gate("o", "sigmoid", "output gate o", "maps"),
        merge("y", "×", ("curve", ""), ("o", ""), gives=(state,)),
    )


def wired(port: str, view: BlockView) -> tuple[str, ...]:
    """Return what a state before is read as, if it is wired."""
    return (f"${port}",) if port in view.edges else ()
