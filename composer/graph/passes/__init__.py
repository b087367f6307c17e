"""The passes that turn a recipe into a typed graph, in order, and the one that rewrites it for readers."""

from __future__ import annotations

from blocks.core import Library
from composer.graph.passes.adapt import adapt
from composer.graph.passes.check_init import check_init
from composer.graph.passes.check_sharing import check_sharing
from composer.graph.passes.check_ties import check_ties
from composer.graph.passes.check_unused import check_unused
from composer.graph.passes.compilation import Compilation, GraphPass
from composer.graph.passes.expand.expand import expand
from composer.graph.passes.freeze import freeze
from composer.graph.passes.infer.infer import infer
from composer.graph.passes.lint import lint
from composer.graph.passes.parse import parse
from composer.graph.passes.resolve.resolve import resolve
from composer.graph.passes.unite_passes import unite_passes
from composer.language.yaml.nodes import Document

PASSES: tuple[GraphPass, ...] = (
    parse,
    expand,
    resolve,
    check_unused,
    freeze,
    infer,
    check_sharing,
    check_ties,
    check_init,
    lint,
    unite_passes,
    adapt,
)


def compile_graph(document: Document, library: Library, last: GraphPass | None = None) -> Compilation:
    """Run the passes over a document.

    Args:
        document: a recipe as it was read.
        library: the blocks that it may name.
        last: the pass to end with; without one, all are run.

    Returns:
        What has become of the recipe, up to where mistakes leave nothing for the next pass.
    """
    state = Compilation(document, library)
    for each in PASSES:
        state = each(state)
        if state.stopped or each is last:
            break
    return state
