"""Params: what their defaults mean."""

import pytest

import composer
from composer.graph.parameters import parameters

RECIPE = """recipe: example
params: PARAMS
inputs: {x: "float[batch, time, 8]"}
graph: {a: {type: residual, norm: layernorm, placement: PLACEMENT, body: {type: ffn, activation: ACTIVATION}}, b: relu}
"""


def written(params: str, placement: str, activation: str) -> str:
    recipe = RECIPE.replace("PARAMS", params).replace("PLACEMENT", placement).replace("ACTIVATION", activation)
    return composer.load(recipe).expand()


@pytest.mark.parametrize(
    "params",
    [
        "{relu: relu, post: post}",
        "{relu: {type: str, default: relu}, post: {type: choice, of: [pre, post], default: post}}",
    ],
)
def test_a_param_may_be_called_like_the_word_that_it_holds(params: str) -> None:
    """The model is that of the words themselves."""
    assert written(params, "post", "relu") == written("{}", "post", "relu")


DEFINED = """recipe: example
blocks:
  two:
    params: {a: 8, b: 2 * a}
    inputs: {x: "float[..., dim]"}
    graph: {f: {type: linear, out: b}, g: {type: linear, out: a}}
inputs: {x: "float[batch, time, 8]"}
graph: {first: {type: two, GIVEN}}
"""


@pytest.mark.parametrize(("given", "widths"), [("b: 5", (5, 8)), ("a: 3", (6, 3)), ("a: 3, b: 5", (5, 3))])
def test_what_is_given_takes_the_place_of_a_default_that_needs_others(given: str, widths: tuple[int, int]) -> None:
    """Whichever of the two is given."""
    typed = composer.load(DEFINED.replace("GIVEN", given)).program
    found = {each.name: each.parameter.shape[0] for each in parameters(typed) if each.name.endswith("weight")}
    assert found == {"first.f.weight": widths[0], "first.g.weight": widths[1]}
