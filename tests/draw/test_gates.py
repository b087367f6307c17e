"""The gates of recurrent blocks as they are drawn, computed piece by piece and compared with torch."""

from __future__ import annotations

import pytest
import torch

from blocks.core import BlockView, Piece, standard

DIM, HIDDEN = 5, 3
GATES = {"lstm_cell": "ifgo", "gru_cell": "rz", "rnn_cell": ""}
"""The order in which torch stacks the gates, by their names."""


def computed(kind: str, pieces: list[Piece], cell: torch.nn.Module, given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return what each piece gives, from what it is said to read and to be."""
    x, h = given["$x"], given["$h"]
    of_x = torch.nn.functional.linear(x, cell.weight_ih, cell.bias_ih)
    of_h = torch.nn.functional.linear(h, cell.weight_hh, cell.bias_hh)
    found = dict(given)
    for piece in pieces:
        read = [found[name] for name, _ in piece.reads]
        if piece.name == "maps":
            assert [name for name, _ in piece.reads] == ["$x", "$h"]
            found["maps"] = of_x + of_h
        elif piece.name in GATES[kind]:
            at = GATES[kind].index(piece.name) * HIDDEN
            (whole,) = read
            share = whole[..., at : at + HIDDEN]
            found[piece.name] = torch.sigmoid(share) if piece.look.title == "σ" else torch.tanh(share)
        elif piece.name == "reset":  # the share of the state's map that goes into the candidate
            found["reset"] = found["r"] * of_h[..., 2 * HIDDEN :]
        elif kind == "gru_cell" and piece.name == "sum":
            found["sum"] = found["reset"] + of_x[..., 2 * HIDDEN :]
        elif kind == "gru_cell" and piece.name == "y":
            z, n, before = read
            assert piece.look.title == "(1 − z) · n + z · h"
            found["y"] = (1 - z) * n + z * before
        elif piece.look.sign:
            found[piece.name] = read[0] + read[1] if piece.look.sign == "+" else read[0] * read[1]
        else:
            assert piece.look.title.lower() == "tanh"
            found[piece.name] = torch.tanh(read[0])
    return found


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("rnn_cell", torch.nn.RNNCell(DIM, HIDDEN)),
        ("gru_cell", torch.nn.GRUCell(DIM, HIDDEN)),
        ("lstm_cell", torch.nn.LSTMCell(DIM, HIDDEN)),
    ],
)
def test_pieces_compute_what_torch_does(kind: str, cell: torch.nn.Module) -> None:
    """As they are wired and named: each gate with its own share of the maps, products and sums as drawn."""
    given = {f"${name}": torch.randn(2, width) for name, width in (("x", DIM), ("h", HIDDEN), ("c", HIDDEN))}
    ports = ["x", "h", "c"] if kind == "lstm_cell" else ["x", "h"]
    view = BlockView(kind, {"dim": DIM}, edges={port: port for port in ports})
    found = computed(kind, [*standard()[kind](hidden=HIDDEN).inside(view)], cell, given)
    states = (given["$h"], given["$c"]) if kind == "lstm_cell" else given["$h"]
    wanted = cell(given["$x"], states)
    for name, one in zip("yc", wanted if kind == "lstm_cell" else (wanted,), strict=False):
        torch.testing.assert_close(found[name], one)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_a_layer_consists_of_its_cell_with_the_step_before_in_place_of_the_states(kind: str) -> None:
    """In each layer and direction, with the parameters of that."""
    view = BlockView(kind, {"dim": DIM, "time": 7})
    part = standard()[kind](hidden=HIDDEN, layers=2, bidirectional=True)
    cell = standard()[f"{kind}_cell"](hidden=HIDDEN)
    wired = BlockView(kind, {"dim": DIM}, edges={"h": "h", "c": "c"})
    loops = part.steps(view)
    assert [(loop.layer, loop.name) for loop in loops] == [(n, way) for n in (0, 1) for way in ("forward", "backward")]
    for loop in loops:
        assert [piece.look.title for piece in loop.pieces] == [piece.look.title for piece in cell.inside(wired)]
        states = [[(name.replace("@y", "$h").replace("@c", "$c"), port) for name, port in piece.reads] for piece in loop.pieces]
        assert states == [[*piece.reads] for piece in cell.inside(wired)]
        end = f"_l{loop.layer}{'_reverse' if loop.name == 'backward' else ''}"
        assert [*loop.pieces[0].parameters] == [name for name in part.weights({}, frozenset()) if name.endswith(end)]
