"""Passes of a repeat, as its own body reads them."""

import pytest

import composer

RECIPE = """recipe: example
inputs: {x: "float[batch, time, 8]"}
graph:
  a: {repeat: 4, graph: {sum: {type: weighted_sum, in: [input, "RANGE"]}, n: rmsnorm}}
"""


def code(recipe: composer.Recipe) -> list[str]:
    """Return the lines of an exported file that do not tell of which recipe it is."""
    return [line for line in recipe.export().splitlines() if not line.startswith("# recipe:")]


@pytest.mark.parametrize("range_", ["a(:)", "a(:4)", "a(0:)"])
def test_a_range_of_its_own_passes_ends_before_the_pass_that_reads_it(range_: str) -> None:
    """Each pass weighs its input and all that earlier passes returned: one number more from pass to pass."""
    recipe = composer.load(RECIPE.replace("RANGE", range_))
    model = recipe.compile()
    assert [tuple(model.a[index].sum.weight.shape) for index in range(4)] == [(1,), (2,), (3,), (4,)]
    assert code(recipe) == code(composer.load(RECIPE.replace("RANGE", "a(:layer)")))
