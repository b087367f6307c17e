"""What `verify` says of models and of blocks with a mistake; the page shows more of them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import composer
from blocks.core import Block, Init, LinearWeights, Tensor, torch
from blocks.primitives.state import State
from composer.cost.costs import costs
from composer.graph.typed import TypedBlock
from composer.verify.alone import alone, in_language_model
from composer.verify.computing import SMALL_STEP, TRIED, gradients_reach, influence, rows_are_apart_in_a_model
from composer.verify.declarations import TESTS
from composer.verify.properties import PROPERTIES
from composer.verify.shrink import shrunk
from composer.verify.subject import DoesNotApply, Subject
from composer.verify.texts import documents_are_apart
from composer.verify.verification import Verification
from tests.blocks.test_state import COUNTED as ALWAYS_COUNTED
from tests.docs.pages import ROOT

STREAM = {"x": "float[batch, time, dim]"}


class Sound(Block, kind="sound"):
    """A linear map of each position."""

    inputs, outputs = STREAM, {"y": "float[batch, time, dim]"}
    weights = {"map": LinearWeights("dim", "dim")}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.map(x)


class Centered(Block, kind="centered"):
    """Subtracts the mean of the batch."""

    inputs, outputs = STREAM, {"y": "float[batch, time, dim]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0, keepdim=True)


class Halved(Block, kind="halved"):
    """Returns half of the channels."""

    inputs, outputs = STREAM, {"y": "float[batch, time, dim]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x[..., ::2]


class Rounded(Block, kind="rounded"):
    """Returns whole numbers."""

    inputs, outputs = STREAM, {"y": "float[batch, time, dim]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.round().long()


class Idle(Block, kind="idle"):
    """Declares a gain that it does not use."""

    inputs, outputs = STREAM, {"y": "float[batch, time, dim]"}
    weights = {"gain": Tensor(("dim",), "gain", Init("constant", 1.0))}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x + 0 * self.gain


class Noisy(Block, kind="noisy"):
    """Adds noise when it is evaluated, too."""

    inputs, outputs = STREAM, {"y": "float[batch, time, dim]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x)


class BatchMean(Block, kind="batch_mean"):
    """Subtracts the mean of the batch in training alone."""

    inputs, outputs = STREAM, {"y": "float[batch, time, dim]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0, keepdim=True) if self.training else x


class Padded(Block, kind="padded"):
    """Takes `valid` and ignores it."""

    inputs = {"x": "float[batch, time, dim]", "valid?": "bool[batch, time]"}
    outputs = {"y": "float[batch, dim]"}

    def forward(self: Any, x: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        return x.sum(1)

    def mixed_axes(self, sizes: Any) -> Any:
        return (sizes["time"],)


class Apart(Block, kind="apart"):
    """Returns the mean of both inputs as what it says is made of the second."""

    inputs = {"x": "float[batch, time, dim]", "other": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, time, dim]", "second": "float[batch, time, dim]"}

    def reads(self, wired: frozenset[str]) -> Any:
        return {"second": ("other",)}

    def forward(self: Any, x: torch.Tensor, other: torch.Tensor) -> Any:
        return x * other, (x + other) / 2


class Peeking(Block, kind="peeking"):
    """Reads in evaluation what it says it reads in training alone."""

    inputs = {"x": "float[batch, time, dim]", "other": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, time, dim]"}
    training_inputs = ("other",)

    def forward(self: Any, x: torch.Tensor, other: torch.Tensor) -> Any:
        return x * other


class Broken(Block, kind="broken"):
    """Adds tensors whose shapes do not go together."""

    inputs, outputs = STREAM, {"y": "float[batch, time, dim]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x + x[:, 1:]


RECIPE = """
recipe: example
inputs: {x: "float[batch, time, 8]"}
graph:
  up: {type: linear, out: 16}
  own: KIND
  down: {type: linear, out: 8}
"""


def verified(part: type[Block], text: str = RECIPE) -> Verification:
    return composer.load(text.replace("KIND", part.kind), blocks=[part]).verify()


def test_a_block_that_does_what_it_declares_passes() -> None:
    """And it is named, so that one sees that it was tried. What says nothing about this model is not among what holds."""
    found = verified(Sound)
    assert found.ok and found.blocks == ("sound",)
    assert set(found.held) == {each.name for each in PROPERTIES} - {"causal", "cached", "packed"}
    assert str(found).endswith("and every declaration of sound")


@pytest.mark.parametrize(
    ("part", "code", "line"),
    [
        (Centered, "rows", "def forward"),
        (Halved, "types", "inputs, outputs ="),
        (Rounded, "types", "inputs, outputs ="),
        (Idle, "unused", "weights ="),
        (Noisy, "repeatable", "def forward"),
        (BatchMean, "batch", "class BatchMean"),
        (Broken, "types", "return x + x[:, 1:]"),
    ],
)
def test_the_declaration_that_is_not_true_is_named(part: type[Block], code: str, line: str) -> None:
    """One diagnostic, at its line in the file of the block, with the node that uses it."""
    (found,) = verified(part).diagnostics
    assert found.code == code and found.severity == "error" and found.hint
    assert found.span.source.name.endswith("test_verify.py")
    assert found.span.source.lines[found.span.line - 1].strip().startswith(line)
    (label,) = found.labels
    assert label.span.source.lines[label.span.line - 1].strip() == f"own: {part.kind}"


def test_padding_that_counts_is_seen() -> None:
    """A block with a port `valid` must leave out what it marks."""
    text = """
recipe: example
inputs: {x: "float[batch, time, 8]", valid: "bool[batch, time]?"}
graph: {own: {type: KIND, in: {x: x, valid: valid}}}
"""
    assert [each.code for each in verified(Padded, text).diagnostics] == ["padding"]


def test_an_input_that_is_read_in_evaluation_too_is_seen() -> None:
    """`check` lets one look ahead that is read in training alone."""
    text = """
recipe: example
inputs: {x: "float[batch, time, 8]", m: "float[batch, time, 8]"}
graph: {own: {type: KIND, in: {x: x, other: m}}}
"""
    (found,) = verified(Peeking, text).diagnostics
    assert found.code == "evaluation" and "numbers of `other`" in found.message


def test_an_output_that_reads_more_than_it_says_is_seen() -> None:
    """`check` trusts `reads` where it decides what depends on a text."""
    text = """
recipe: example
inputs: {x: "float[batch, time, 8]", m: "float[batch, time, 8]"}
graph: {own: {type: KIND, in: {x: x, other: m}}}
outputs: {y: own, second: own.second}
"""
    (found,) = verified(Apart, text).diagnostics
    assert found.code == "reads" and "`second` changes" in found.message
    assert composer.load(SHARED_KEYS).verify().ok


SHARED_KEYS = """
recipe: example
task: seq2seq_lm
inputs: {source: "int[batch, source]", target: "int[batch, time]"}
graph:
  read: {type: embedding, vocab: 11, dim: 16, in: source}
  embed: {type: embedding, vocab: 11, dim: 16, in: target}
  one: {type: cross_attention, heads: 2, qk_norm: rmsnorm, positions: rotary, in: {x: embed, memory: read}}
  two: {type: cross_attention, heads: 2, in: {x: one, memory: read, k: one.k, v: one.v}}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


def test_a_recipe_with_errors_is_not_verified() -> None:
    """It is refused as by any other stage."""
    with pytest.raises(composer.RecipeError, match="unknown-block"):
        composer.load(RECIPE).verify()


def test_a_large_model_becomes_small() -> None:
    """Every width becomes another one, layers become two, and nothing else changes."""
    small = shrunk(composer.load("llama3")).program
    params = small.untyped.params
    assert small.name == "llama3" and params["n_layers"] == 2
    assert len({params[name] for name in ("vocab", "d_model", "hidden")}) == 3
    assert max(value for value in params.values() if isinstance(value, int)) < 20


def test_the_page_lists_everything_that_is_tried() -> None:
    """In the words of the tables."""
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE)
    assert rows == [*((each.name, each.says) for each in PROPERTIES), *((each.name, each.says) for each in TESTS)]


def test_places_in_files_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the user wrote them, where the file lies below the working folder."""
    monkeypatch.chdir(ROOT)
    (found,) = verified(Centered).diagnostics
    assert found.span.source.name == "tests/verify/test_verify.py"


def test_rows_that_only_later_ones_see_are_found() -> None:
    """A recurrence along the batch: the first row does not see the others, but they see it."""
    text = """
recipe: example
inputs: {x: "float[batch, time, 8]"}
graph:
  r: {type: rearrange, pattern: "b t d -> t b d"}
  s: {type: gru, hidden: 8}
  q: {type: rearrange, pattern: "t b d -> b t d"}
"""
    assert [each.code for each in composer.load(text).verify().diagnostics] == ["rows"]


@pytest.mark.parametrize(
    ("inputs", "first", "second", "code", "hint"),
    [
        (
            '{x: "int[batch, n]", k: "int[batch]"}',
            "{compute: x + 1}",
            "{compute: a // k, axes: {a: b n, k: b}}",
            "types",
            "inputs of the declared types",
        ),
        ('{x: "float[batch, n]"}', "{type: cumsum, axis: n}", "{type: cumsum, axis: batch}", "rows", "use another axis"),
    ],
)
def test_of_two_nodes_of_a_type_the_one_that_fails_is_shown(inputs: str, first: str, second: str, code: str, hint: str) -> None:
    """A type may stand in a recipe many times, with other fields each time."""
    text = f"recipe: example\ninputs: {inputs}\ngraph:\n  a: {first}\n  y: {second}\n"
    (found,) = composer.load(text).verify().diagnostics
    assert (found.code, found.span.line) == (code, 5) and found.hint is not None and hint in found.hint


COUNTED = ALWAYS_COUNTED.replace("update: always", "update: WHEN")
MEAN = """
recipe: running
inputs: {x: "float[batch, time, 6]"}
graph:
  old: {type: state, shape: [6], next: new, update: WHEN, init: ones}
  kept: {type: scale, by: 0.75, in: old}
  rows: {type: mean, axis: time, in: x}
  now: {type: mean, axis: batch}
  new: {type: add, in: [kept, now]}
  y: {type: multiply, in: [x, old]}
outputs: {y: y}
"""


@pytest.mark.parametrize("text", [COUNTED, MEAN], ids=["a language model", "a running mean"])
@pytest.mark.parametrize("when", ["always", "training"])
def test_a_running_value_is_judged_by_what_it_declares(text: str, when: str) -> None:
    """Each call begins with the same value. What a row of calls gives is not judged, and that is said."""
    found = composer.load(text.replace("WHEN", when)).verify()
    assert found.diagnostics == () and {"rows", "repeatable", "state", "export"} <= {*found.held}
    assert ("cached" in found.held) is ("causal" in found.held) is (text == COUNTED)
    said = found.not_tried.get("calls in a row", "")
    assert said.startswith("every call renews `") is (when == "always") and ("calls in a row not tried" in str(found)) == bool(
        said
    )


class Forgetful(State, kind="forgetful"):
    """A state that sessions change too, and that says it is renewed in training alone."""

    def renew(self: Any, value: torch.Tensor) -> None:
        self.value.copy_(value.detach())


@pytest.mark.parametrize(("when", "code"), [("always", "cached"), ("training", "repeatable")])
def test_a_state_that_changes_when_it_should_not_is_found(when: str, code: str) -> None:
    """In a session, which must leave it as it is, and in evaluation where that is not declared."""
    text = COUNTED.replace("WHEN", when).replace("type: state", "type: forgetful")
    assert code in [each.code for each in composer.load(text, blocks=[Forgetful]).verify().diagnostics]


@pytest.mark.parametrize(
    "node", ["{type: softmax, axis: batch}", "{type: einsum, pattern: 'b t d, c t d -> b t d', in: [up, up]}"]
)
def test_rows_that_the_recipe_mixes_are_shown_at_the_node(node: str) -> None:
    """The types say so, as to the gradients that are accumulated."""
    found = composer.load(RECIPE.replace("KIND", node)).verify()
    (one,) = found.diagnostics
    assert (
        (one.code, one.span.line) == ("rows", 6)
        and "`own` is " in one.message
        and "which mixes the rows of a batch" in one.message
    )


class Declared(BatchMean, kind="declared"):
    """Subtracts the mean of the batch in training, and says so."""

    batch_dependent = True


def test_a_statistic_of_the_batch_is_no_mistake_where_it_is_declared() -> None:
    """Training mixes rows by the declaration; evaluation does not, and is tried."""
    found = verified(Declared)
    assert found.ok and "rows" in found.held


PACKED = """
recipe: packed
task: causal_lm
inputs: {tokens: "int[batch, time]", documents: "int[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 7, dim: 6}
  other: NODE
  attn: {type: attention, heads: 1, mask: causal and documents(documents)}
  head: {type: linear, out: 7}
outputs: {logits: head}
"""


@pytest.mark.parametrize(
    ("node", "packs"),
    [
        ("layernorm", True),
        ("sinusoidal_positions", False),
        ("{type: conv1d, out: 6, kernel_size: 2, causal: true}", False),
        ("{type: learned_positions, max_length: 16}", False),
        ("{type: gru, hidden: 6}", False),
    ],
)
def test_documents_are_compared_where_only_distances_count(node: str, packs: bool) -> None:
    """What else a position depends on is declared by the class of the block: a cache, a carry, positions, a length."""
    recipe = composer.load(PACKED.replace("NODE", node))
    assert [each.message for each in recipe.check() if each.severity == "error"] == []
    if packs:
        assert [*documents_are_apart(Subject(recipe))] == []
    else:
        with pytest.raises(DoesNotApply):
            next(documents_are_apart(Subject(recipe)), None)


@pytest.mark.parametrize(
    ("mask", "packs"),
    [
        ("causal and window(2) and documents(rows) and valid(valid)", True),
        ("causal and valid(valid)", False),
        ("causal and documents(rows) and global_first(1)", False),
        ("causal and chunk(2) and documents(rows)", False),
    ],
)
def test_documents_may_have_any_name_and_be_padded(mask: str, packs: bool) -> None:
    """What a mask asks for besides must not count from the start of a row."""
    text = PACKED.replace("NODE", "layernorm").replace("documents: ", 'valid: "bool[batch, time]?", rows: ')
    recipe = composer.load(text.replace("causal and documents(documents)", mask))
    assert [each.message for each in recipe.check() if each.severity == "error"] == []
    if packs:
        assert [*documents_are_apart(Subject(recipe))] == []
    else:
        with pytest.raises(DoesNotApply):
            next(documents_are_apart(Subject(recipe)), None)


def test_dropout_in_experts_is_not_taken_for_rows_that_mix() -> None:
    """Which random numbers a row gets depends on how many rows go to an expert."""
    assert [*rows_are_apart_in_a_model(Subject(shrunk(composer.load("switch"))))] == []


def test_a_formula_stands_alone() -> None:
    """With its own names and axes, on inputs and in a language model."""
    recipe = composer.load(
        """
recipe: example
inputs: {x: "float[batch, time, 8]", gate: "float[8]"}
graph:
  gated: {compute: x * sigmoid(gate), axes: {x: b t d, gate: d}}
"""
    )
    (node,) = recipe.program.root.nodes
    assert isinstance(node, TypedBlock)
    (single, embedded) = (wrapped(node, recipe) for wrapped in (alone, in_language_model))
    assert single is not None and "formula: x * sigmoid(gate)" in single.text
    assert embedded is not None and not embedded.check()
    assert single.verify().ok


def test_an_index_out_of_range_is_not_tried() -> None:
    """A table of as many places as the model is meant for is no mistake of the recipe."""
    found = composer.load(
        """
recipe: example
inputs: {x: "float[batch, time, 8]"}
graph:
  place: {type: arange, axis: time, in: {x: x}}
  where: {type: embedding, vocab: 1, dim: 8}
  noisy: {type: dropout, p: 0.5, in: x}
  sum: {type: add, in: [noisy, where]}
"""
    ).verify()
    assert found.ok and "where (<text>:6) has a vocabulary of 1" in str(found)


def test_a_kernel_that_no_machine_holds_is_not_tried() -> None:
    """As far as what it adds at the start takes memory."""
    graph = "graph:\n  n: {type: max_pool1d, kernel_size: 1e12, causal: true, stride: 1}\n"
    found = composer.load(f"recipe: example\ninputs: {{x: 'float[batch, time, 8]'}}\n{graph}").verify()
    assert found.ok and "more memory than there is" in str(found)


def test_a_value_that_no_machine_holds_is_not_tried() -> None:
    """It is no mistake either."""
    graph = "graph:\n  n: {type: constant, over: {i: 1e9, j: 8}, value: j}\n  s: {type: sum, axis: first, in: n}\n"
    found = composer.load(f"recipe: example\ninputs: {{x: 'float[batch, 8]'}}\n{graph}outputs: {{x: x, s: s}}\n").verify()
    assert found.ok and "`n` has " in str(found)


def test_parameters_without_influence_are_tried_together() -> None:
    """As many as there are far from the output, of which one alone cannot be told from none."""
    subject = Subject(
        composer.load(
            "recipe: deep\ninputs: {x: 'float[batch, time, 8]'}\n"
            "graph:\n  r: {repeat: 100, graph: {a: {type: rnn, hidden: 2}}}\n  s: {compute: stop_gradient(r) + r * 0}\n"
        )
    )
    calls = 0
    outputs = Subject.outputs

    def counted(self: Subject, given: Any, model: Any = None) -> Any:
        nonlocal calls
        calls += 1
        return outputs(self, given, model)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Subject, "outputs", counted)
        found = [*gradients_reach(subject)]
    last = {f"`r.99.a.{name}_l0`" for name in ("weight_hh", "weight_ih", "bias_hh", "bias_ih")}
    assert {each.message.split()[0] for each in found} >= last and calls < 400


def test_only_what_has_positions_is_as_short_as_their_table() -> None:
    """An image is at least as high as a patch, however few patches have a vector."""
    found = composer.load(
        """
recipe: example
inputs: {image: "float[batch, 3, height, 4]"}
graph:
  patches: {type: patch_embedding, patch_size: 4, dim: 8}
  positions: {type: learned_positions, max_length: 2}
"""
    ).verify()
    assert found.ok, str(found)


def test_values_that_are_not_finite_are_no_mistake() -> None:
    """There is nothing to compare them with."""
    large = 'recipe: large\ninputs: {x: "float[batch, 4]"}\ngraph: {y: {compute: exp(exp(1000 + x)) - exp(exp(1000 + x))}}\n'
    assert composer.load(large).verify().diagnostics == ()


def test_a_model_that_takes_no_text_is_not_tried() -> None:
    """Two positions have a vector, and a pool takes three."""
    text = """
recipe: short
inputs: {x: "float[batch, time, 8]"}
graph:
  places: {type: learned_positions, max_length: 2}
  pooled: {type: mean_pool1d, kernel_size: 3}
  attn: {type: attention, heads: 2, mask: causal or local(2)}
"""
    recipe = composer.load(text)
    assert recipe.verify().diagnostics == ()
    assert costs(recipe.program, {"batch": 1, "time": 2}).flops.masked >= 0


@pytest.mark.slow
def test_a_row_of_padding_needs_no_gradient() -> None:
    """Also where every position has it; another row that is moved and has none would be reported."""
    text = """
recipe: small
inputs: {tokens: "int[batch, time]"}
graph:
  ones: {compute: tokens * 0 + 1}
  table: {type: embedding, vocab: 4, dim: 8, padding_idx: 1}
  head: {type: linear, out: 3}
"""
    subject = Subject(composer.load(text))
    assert subject.padding_rows == {"table.weight": 1} and not list(gradients_reach(subject))
    assert influence(Subject(composer.load(text.replace(", padding_idx: 1", ""))), ["table.weight"], SMALL_STEP)


@pytest.mark.slow
def test_what_is_cut_off_for_some_inputs_is_no_missing_gradient() -> None:
    """The one unit is below 0 with the inputs that come first, and above with those with which changes are tried."""
    text = """
recipe: small
inputs: {x: "float[1, 4]"}
graph:
  wide: {type: linear, out: 1}
  turned: {compute: -wide}
  cut: relu
  head: {type: linear, out: 2}
outputs: {head: head, cut: cut}
"""
    subject = Subject(composer.load(text))
    first, *_ = subject.draws
    cut = [bool(subject.outputs(subject.draw(replace(first, seed=seed)))["cut"].any()) for seed in (*range(4), TRIED)]
    assert cut == [False] * 4 + [True]
    assert not list(gradients_reach(subject))
