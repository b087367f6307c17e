"""Ties that lead nowhere, or to a tensor of another shape."""

from __future__ import annotations

from composer.graph.parameters import tie_mistakes
from composer.graph.passes.compilation import Compilation


def check_ties(state: Compilation) -> Compilation:
    """Refuse ties that name what is not there, or what cannot be one tensor.

    Before:
        graph:
          up: {type: linear, out: 16}
          down: {type: linear, out: 8, tie: up}
    After:
        error[tie-shape]: down.weight is [8, 16], and up.weight is [16, 8]
    """
    assert state.typed is not None
    mistakes = tie_mistakes(state.typed)
    return state.stop(mistakes) if mistakes else state
