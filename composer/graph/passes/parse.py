"""Document to declarations: which blocks, fields and ports there are, and every expression as a tree."""

from __future__ import annotations

from dataclasses import replace

from composer.graph.passes.compilation import Compilation
from composer.language.recipe import parser


def parse(state: Compilation) -> Compilation:
    """Read what a document declares.

    Before:
        graph:
          up: {type: linear, out: 2 * width}
    After:
        up: a use of linear with out
    """
    parsed = parser.parse(state.document, state.library)
    if parsed is None:
        return state.stop(state.document.diagnostics)
    state = replace(state, parsed=parsed)
    return state if parsed.readable else state.stop(parsed.diagnostics)
