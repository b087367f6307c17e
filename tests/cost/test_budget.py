"""What is too large to build is refused before anything is built."""

from __future__ import annotations

import pytest

import composer
from composer.cost.budget import budget, modules

WIDE = 'recipe: wide\ninputs: {tokens: "int[batch, time]"}\ngraph: {embed: {type: embedding, vocab: 1048576, dim: 17000}}\n'
DEEP = (
    'recipe: deep\ninputs: {x: "float[batch, time, 8]"}\nparams: {n: 2}\n'
    "graph: {a: {repeat: n, graph: {b: {repeat: 1000, graph: {f: silu}}}}}\n"
)


def test_large_weights_are_refused_at_the_node_that_has_them() -> None:
    """2³⁰ · 17 000 / 2¹⁰ numbers of four bytes, with the figures and a way out."""
    with pytest.raises(composer.RecipeError) as refused:
        composer.load(WIDE).compile()
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.severity) == ("too-large-to-build", "error")
    assert (diagnostic.span.line, diagnostic.span.column, diagnostic.span.end_column) == (3, 9, 14)
    assert diagnostic.message == "wide has 17,825,792,000 parameters, 66.4 GiB in fp32; at most 64.0 GiB are built by default"


def test_large_weights_are_built_where_they_take_no_memory_or_are_asked_for() -> None:
    """On the meta device, or with `allow_large`; up to the limit, without asking."""
    recipe = composer.load(WIDE)
    assert sum(parameter.numel() for parameter in recipe.compile(device="meta").parameters()) == 2**20 * 17_000
    assert budget(recipe.program, allow_large=True) == ()
    limit = composer.load(WIDE, overrides={"embed.dim": 2**34 // 2**20})
    assert budget(limit.program) == ()
    assert budget(composer.load(WIDE, overrides={"embed.dim": 2**34 // 2**20 + 1}).program) != ()


def test_modules_are_counted_as_torch_has_them() -> None:
    """All but the root: each pass, each block, each of a block's linear maps and what fills its slots."""
    for name in ("gpt2", "gemma3"):
        recipe = composer.load(name, overrides={"n_layers": 7, "vocab": 61})
        assert modules(recipe.program.root) >= len(list(recipe.compile(device="meta").modules())) - 1


@pytest.mark.slow
def test_too_many_modules_are_refused_however_small() -> None:
    """A curve and the pass that it stands in, a thousand times, a hundred times."""
    recipe = composer.load(DEEP, overrides={"n": 100})
    for device in ("cpu", "meta"):
        with pytest.raises(composer.RecipeError) as refused:
            recipe.compile(device=device, allow_large=True)
        (diagnostic,) = refused.value.diagnostics
        assert diagnostic.code == "too-many-modules"
        assert (diagnostic.span.line, diagnostic.span.column) == (1, 9)
        assert "200,201 modules" in diagnostic.message and "200,000 are built" in diagnostic.message
    assert budget(composer.load(DEEP, overrides={"n": 99}).program) == ()


def test_the_node_that_is_large_may_stand_in_a_group() -> None:
    """As long as most of the weights do."""
    (diagnostic,) = budget(
        composer.load("""
recipe: nested
inputs: {x: "float[batch, time, 200000]"}
graph:
  small: {type: linear, out: 200000}
  outer:
    graph:
      inner: {graph: {b: {type: linear, out: 400000}, c: {type: linear, out: 200000}}}
      d: relu
""").program
    )
    assert (diagnostic.span.line, diagnostic.span.column) == (8, 7)
