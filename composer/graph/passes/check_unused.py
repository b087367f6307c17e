"""Params and blocks that a recipe defines and does not use."""

from __future__ import annotations

from composer.diagnostics import Diagnostic
from composer.graph.passes.compilation import Compilation
from composer.graph.passes.expand.params import Params


def check_unused(state: Compilation) -> Compilation:
    """Report params that their definition does not use, and warn of blocks of this recipe that nothing uses.

    Before:
        blocks:
          mlp: {inputs: {x: "float[..., dim]"}, graph: {up: {type: linear, out: 8}}}
        graph:
          up: {type: linear, out: 8}
    After:
        warning[unused-block]: nothing uses the block `mlp`
    """
    parsed, expansion = state.parsed, state.expansion
    assert parsed is not None
    assert expansion is not None
    sound, own = expansion.sound, parsed.name_scalar.span.source
    for definition in parsed.definitions.values():
        Params(definition.params, expansion.values).unused(definition.root, own)
        if sound and definition.part not in expansion.used and definition.span.source == own:
            message = f"nothing uses the block `{definition.part.kind}`"
            expansion.report.add(Diagnostic("unused-block", message, definition.span, "warning"))
    return state.reported()
