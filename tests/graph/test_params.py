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


READ = """recipe: example
params:
  n: 2
  std: 0.1
  place: pre
  start: 3
  index: 1
  twice: {type: int, default: 2 * n}
  width: {type: float, default: 8}
  channels: 8
inputs: {x: "float[batch, time, channels]", m: {type: "int[batch, time]", default: start}}
graph:
  layers:
    repeat: n
    graph: {a: {type: residual, norm: rmsnorm, placement: place, body: {type: linear, out: twice * 2}}}
  up: {type: linear, out: width, in: layers(index)}
  other: {type: embedding, vocab: 9, dim: 8, in: m}
  add: {type: add, in: [up, other]}
init: {"*.weight": {normal: std}}
"""


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("n=2.5", "2.5 is not an integer"),
        ("n=-1", "a repeat has 1 to 4,000 passes, not -1"),
        ("n=2.25", "4.5 is not an integer"),
        ("std=-1", "a standard deviation must be at least 0, not -1"),
        ("place=middle", "`place` is `middle`, which is not one of pre, post, sandwich, reordered"),
        ("start=2.5", "2.5 is not an integer"),
        ("index=0.5", "0.5 is not an integer"),
        ("index=7", "`layers` has 2 passes, so there is no pass 7"),
        ("channels=-8", "an axis must have a length of at least 1, not -8"),
        ("channels=8.5", "channels = 8.5 is not an integer"),
    ],
)
def test_what_is_set_to_a_wrong_value_is_labeled_where_it_is_set(setting: str, message: str) -> None:
    """Wherever the value is read: as a count, a word, a pass, the number of an initializer, a default, the length of an axis."""
    found = composer.load(READ, overrides=[setting]).check()
    wrong = next(one for one in found if one.message == message)
    assert [(label.span.source.name, label.text) for label in wrong.labels] == [("--set", "set here")]
