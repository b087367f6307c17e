"""Layers that a recipe writes one by one: a change in all of them is listed once, under the names that the recipe has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import composer
from composer.diff.changes import Altered, LearnedChange, Nodes, Removed, Replaced, Rewired
from composer.diff.find_changes import paired
from tests.diff.test_same import small

LAYERS = range(12)


def residual(number: int, norm: str = "rmsnorm") -> str:
    """Return one layer, a residual block."""
    return f"  h{number}: {{type: residual, norm: {norm}, body: {{type: ffn, hidden: 32}}}}"


def group(number: int, read: str = "norm") -> str:
    """Return one layer, a group; its last sum adds what `read` names."""
    nodes = f"norm: rmsnorm, up: {{type: linear, out: 8}}, curve: silu, out: {{type: add, in: [curve, {read}]}}"
    return f"  h{number}: {{graph: {{{nodes}}}}}"


def stack(number: int, bias: str = "false") -> str:
    """Return one layer, a group that holds a repeat."""
    linear = f"{{type: linear, out: 8, bias: {bias}}}"
    return f"  h{number}: {{graph: {{inner: {{repeat: 2, graph: {{up: {linear}, curve: silu, down: {linear}}}}}}}}}"


def written(layer: Callable[[int], str], last: int = 12) -> composer.Recipe:
    """Return a model of layers that are written one by one."""
    return small("\n".join(map(layer, range(last))))


def repeated(norm: str = "rmsnorm") -> composer.Recipe:
    """Return the model of residual blocks as a repeat."""
    body = residual(0, norm).strip().removeprefix("h0: ")
    return small(f"  layers: {{repeat: 12, graph: {{h: {body}}}}}")


def layernorm_in(numbers: set[int]) -> composer.Recipe:
    """Return a model in which some layers have another norm."""
    return written(lambda number: residual(number, "layernorm" if number in numbers else "rmsnorm"))


def test_a_change_in_all_written_layers_is_listed_once() -> None:
    """By the first and the last of the nodes, and how many they are."""
    difference = written(residual).diff(layernorm_in({*LAYERS}))
    (change,) = difference.changes
    assert isinstance(change, Replaced)
    assert change.before.name == change.after.name == "h0.norm … h11.norm"
    assert change.before.paths == change.after.paths == tuple(f"h{number}.norm" for number in LAYERS)
    assert "~ h0.norm … h11.norm (12×)  rmsnorm → layernorm" in str(difference).splitlines()


def test_it_reads_as_that_of_a_repeat() -> None:
    """But for the names."""
    one, other = str(written(residual).diff(layernorm_in({*LAYERS}))), str(repeated().diff(repeated("layernorm")))
    assert [line.split() for line in one.replace("h0.norm … h11.norm", "layers.*.h.norm").splitlines()] == [
        line.split() for line in other.splitlines()
    ]


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ({5}, "h5.norm"),
        ({0, 1}, "h0.norm / h1.norm"),
        ({2, 3, 4}, "h2.norm … h4.norm"),
        ({2, 3, 4, 5, 8, 9, 10, 11}, "h2.norm … h5.norm / h8.norm … h11.norm"),
        ({0, 2, 4, 6, 8}, "h0.norm / h2.norm / h4.norm / …"),
    ],
)
def test_a_change_in_some_written_layers_names_them(numbers: set[int], name: str) -> None:
    """As ranges, where they follow one another; from three on."""
    (change,) = written(residual).diff(layernorm_in(numbers)).changes
    assert isinstance(change, Replaced) and change.before.name == name
    assert change.before.paths == tuple(f"h{number}.norm" for number in sorted(numbers))


def test_layers_that_are_missing_are_listed_once() -> None:
    """As passes of a repeat are."""
    (change,) = written(residual).diff(written(residual, last=8)).changes
    assert isinstance(change, Removed) and (change.before.name, change.before.kind) == ("h8 … h11", "residual")


def test_what_every_layer_reads_is_told_once() -> None:
    """What is read in the same layer is named as the nodes are."""
    difference = written(group).diff(written(lambda number: group(number, "up")))
    (change,) = difference.changes
    assert isinstance(change, Rewired) and change.before.name == "h0.out … h11.out"
    (port,) = change.ports
    assert (port.before, port.after) == (("h0.norm … h11.norm",), ("h0.up … h11.up",))


def test_what_every_layer_reads_from_outside_is_named_once() -> None:
    """An input of the model is the same one for all."""
    (change,) = written(group).diff(written(lambda number: group(number, "x"))).changes
    assert isinstance(change, Rewired)
    (port,) = change.ports
    assert (port.before, port.after) == (("h0.norm … h11.norm",), ("x",))


def test_layers_may_hold_repeats() -> None:
    """Their passes are stars, below each layer's own name."""
    up, down = written(stack).diff(written(lambda number: stack(number, "true"))).changes
    assert isinstance(up, Altered) and isinstance(down, Altered)
    assert up.before.name == "h0.inner.*.up … h11.inner.*.up"
    assert down.before.name == "h0.inner.*.down … h11.inner.*.down"


def test_parameters_of_written_layers_are_told_once() -> None:
    """By the names of the first and the last."""
    text = "\n".join(map(group, LAYERS))
    (change,) = small(text).diff(small(f'{text}\ninit:\n  "*.up.weight": {{normal: 0.5}}')).changes
    assert isinstance(change, LearnedChange)
    assert change.parameters == ("h0.up.weight … h11.up.weight",)


@pytest.mark.parametrize("names", ["written", "repeated"])
def test_written_layers_are_the_repeat_of_the_same_layers(names: str) -> None:
    """What has other names is told layer by layer, not node by node."""
    models = {"written": written(residual), "repeated": repeated()}
    one, other = models.pop(names), *models.values()
    difference = one.diff(other)
    assert difference.equal
    called = [("h0.norm … h11.norm", "layers.*.h.norm"), ("h0.body … h11.body", "layers.*.h.body")]
    assert {pair if names == "written" else pair[::-1] for pair in called} <= {*difference.renamed}


@pytest.mark.parametrize("level", ["overview", "block", "full"])
def test_a_drawing_marks_them_in_its_frame(level: str) -> None:
    """All layers are one frame there; what is read otherwise is its wire."""
    difference = written(group).diff(written(lambda number: group(number, "up")))
    scene = difference.draw(level).scene  # type: ignore[arg-type]
    assert {wire.target for wire in scene.wires if wire.style == "rewired"} <= {"before:h.out", "after:h.out"}
    assert all("h0" not in badge.path for badge in scene.badges)


@pytest.mark.parametrize("layer", [residual, group])
def test_a_drawing_marks_how_many_layers_there_are(layer: Callable[[int], str]) -> None:
    """Where some are missing, and not all that is in the frame."""
    scene = written(layer).diff(written(layer, last=8)).draw().scene
    (frame,) = (one for one in scene.frames if one.about.path.startswith("before:"))
    (ring,) = (one for one in scene.rings if one.path)
    assert (ring.happened, ring.path) == ("removed", frame.about.path)
    assert ring.area.bottom - ring.area.top < 40


def test_every_name_is_one_of_the_recipes() -> None:
    """None is made up: without the signs of ranges and passes, each is a node of its model."""
    pairs = [
        (written(residual), layernorm_in({1, 2, 3, 7})),
        (written(group), written(lambda number: group(number, "up"), last=9)),
        (written(residual), repeated("layernorm")),
    ]
    for one, other in pairs:
        for before, after in ((one, other), (other, one)):
            pairing = paired(before.program, after.program)
            for change in before.diff(after).changes:
                for side, model in (("before", pairing.before), ("after", pairing.after)):
                    found = getattr(change, side, None)
                    names = found.name.replace(" … ", " / ").split(" / ") if isinstance(found, Nodes) else []
                    assert {name.replace("*", "0") for name in names} <= {*model.places}
