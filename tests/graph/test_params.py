"""Params: what their defaults mean."""

import pytest

import composer

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
        "{relu: {type: word, default: relu}, post: {type: choice, of: [pre, post], default: post}}",
    ],
)
def test_a_param_may_be_called_like_the_word_that_it_holds(params: str) -> None:
    """The model is that of the words themselves."""
    assert written(params, "post", "relu") == written("{}", "post", "relu")
