"""Rules held against the model when a recipe is checked."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import composer
from composer.graph.parameters import buffers, parameters
from composer.weights import load_published, mapping
from composer.weights.config import text_at
from composer.weights.model_names import names_of, typical_passes
from tests.zoo import each_graph

MODEL = """
recipe: example
params: {{n_layers: 9, wide: false, norm: {{type: block, default: none}}, tied: false, bias: true}}
inputs: {{x: "float[batch, time, 8]"}}
graph:
  layers:
    repeat: n_layers
    each: {{body: [{{type: ffn, hidden: 9}}, {{type: gated_ffn, hidden: 9}}]}}
    graph:
      a: {{type: residual, norm: norm, body: body}}
      b: {{type: linear, out: 8, bias: bias}}
  extra: {{type: linear, out: 8, when: wide}}
  end: norm
  head: {{type: linear, out: 8, bias: false, tie: {{weight: layers(0).b.weight if tied else none}}}}
  mean: {{type: state, shape: [8], next: twice}}
  twice: {{type: scale, by: 2}}
  y: {{type: add, in: [head, mean]}}
checkpoints:
  gpt2:
    copies: {copies}
    rules:
{rules}
"""
RULES = """
layers.<layer>.a.body.(up|down).*: h.<layer>.mlp.(up|down).*
layers.<layer>.a.body.gate.*: h.<layer>.mlp.gate.*
layers.<layer>.a.norm.*: h.<layer>.ln.*
layers.<layer>.b.weight: h.<layer>.b
layers.<layer>.b.bias: {from: h.<layer>.c, when: bias}
extra.*: extra.*
mean.value: mean
end.*: end.*
head.weight: head
""".strip()


def recipe(rules: str = RULES, copies: str = "{}", **params: object) -> composer.Recipe:
    """Return the model with some rules."""
    body = "\n".join(f"      {line}" for line in rules.splitlines())
    return composer.load(MODEL.format(rules=body, copies=copies), params)


def lines(found: composer.Recipe) -> list[str]:
    """Return each error as the text at its place, with what it says."""
    shown = []
    for each in found.check():
        span = each.span
        shown.append(f"{span.source.lines[span.line - 1][span.column - 1 : span.end_column - 1]}: {each.message}")
    return shown


@each_graph
def test_a_model_has_the_names_that_rules_are_held_against(name: str) -> None:
    """Those of its `state_dict`, with their shapes."""
    loaded = composer.load(name)
    shapes = {key: tuple(tensor.shape) for key, tensor in loaded.compile("meta").state_dict().items()}
    names = names_of(loaded.program)
    assert dict(names.owned) == shapes
    assert {row.name: row.tied_to for row in parameters(loaded.program) if row.tied_to} == names.tied
    assert buffers(loaded.program).keys() <= names.owned.keys()
    assert loaded.check() == []


SETTINGS: list[dict[str, object]] = [
    {},
    {"wide": True},
    {"bias": False},
    {"tied": True},
    {"params.norm": "layernorm"},
    {"n_layers": 2},
]


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_rules_for_what_is_left_out_are_no_mistake(params: dict[str, object]) -> None:
    """By `when`, as an empty slot, as an empty node, by a tie; what is expanded is read again, and reads the same tensors."""
    found = recipe(**params)
    assert lines(found) == []
    again = composer.load(found.expand())
    assert lines(again) == []
    assert published(again) == published(found)


BRANCHES = """
recipe: example
params: {kind: {type: choice, of: [dense, experts], default: dense}, wide: true, last: {type: block, default: layernorm}}
inputs: {x: "float[batch, time, 8]"}
graph:
  layers:
    repeat: 2
    graph:
      ffn:
        type: residual
        norm: {type: layernorm if wide else rmsnorm}
        body:
          if: kind == dense
          then: {type: ffn, hidden: 9}
          else: {type: moe, experts: 2, expert: {type: gated_ffn, hidden: 5}}
      mix: {if: wide, then: {type: linear, out: 8}, else: identity}
  end: last
checkpoints:
  example:
    rules:
      layers.<layer>.ffn.norm.(weight|bias): h.<layer>.ln.(weight|bias)
      layers.<layer>.ffn.body.(up|down).*: h.<layer>.mlp.(up|down).*
      layers.<layer>.ffn.body.gate.weight: h.<layer>.router.weight
      layers.<layer>.ffn.body.expert.(gate|up|down).weight: {from: h.<layer>.e.<e>.(gate|up|down).weight, stack: e}
      layers.<layer>.mix.(weight|bias): h.<layer>.mix.(weight|bias)
      end.(weight|bias): ln.(weight|bias)
"""


@pytest.mark.parametrize("settings", [{}, {"kind": "experts"}, {"wide": False}, {"last": "rmsnorm"}], ids=str)
def test_rules_for_a_block_that_another_setting_puts_there_are_no_mistake(settings: dict[str, object]) -> None:
    """One map is right for either branch of a choice, and covers every parameter of it; names of neither are mistakes."""
    found = composer.load(BRANCHES, settings)
    assert lines(found) == []
    again = composer.load(found.expand())
    assert lines(again) == [] and published(again) == published(found)
    dense = "kind" not in settings
    assert any(".mlp." in name for name in published(found)) == dense
    old, new = ("ffn.body.(up|down)", "ffn.body.(upp|down)") if dense else ("body.expert.(gate", "body.expert.(gat")
    wrong = lines(composer.load(BRANCHES.replace(old, new), settings))
    assert len(wrong) == 1 and "no node or parameter" in wrong[0]


def published(found: composer.Recipe) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the published tensors."""
    assert found.checkpoints is not None
    return dict(mapping(found.checkpoints, None, names_of(found.program).owned, found.program.untyped.params).published)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("mean.value:", "mean.valeu:", ["valeu: `mean` has no node or parameter `valeu`"]),
        ("head.weight:", "haed.weight:", ["haed: there is no node called `haed`"]),
        ("layers.<layer>.b.weight: h.<layer>.b", "layers.b.weight: h.b",
         ["b: the parameters of `layers` have the number of their pass before `b`"]),
        ("layers.<layer>.b.weight: h.<layer>.b", "layers.<layer>.b: h.<layer>.b",
         ["layers.<layer>.b: `layers.<layer>.b` is no parameter; below it are weight, bias"]),
        ("layers.<layer>.b.weight: h.<layer>.b", "layers.<layer>.b.weight.x: h.<layer>.b",
         ["gpt2: no rule covers 9 parameters of the model: layers.<n>.b.weight (9)",
          "x: `layers.<layer>.b.weight` is a parameter and holds none"]),
        ("(up|down).*: h.<layer>.mlp.(up|down)", "(up|donw).*: h.<layer>.mlp.(up|down)",
         ["donw: `layers.<layer>.a.body` has no node or parameter `donw`"]),
        ("end.*: end.*", "end.*: end.*\nhead.<i>.weight: h",
         ["h: `<i>` is on one side only"]),
        ("end.*: end.*", "end.*: end.*\nhead.<i>.weight: h.<i>",
         ["<i>: `head` has no passes with parameters of their own that `<i>` could count"]),
        ("end.*: end.*", "end.*: end.*\nlayers.8.b.weight: h",
         ["layers.8.b.weight: layers.8.b.weight is covered by two rules"]),
        ("end.*: end.*", "end.*: end.*\nlayers.9.b.weight: h", ["9: `layers` has no pass 9"]),
        ("head.weight: head", "head.weight: h.8.b", ["h.8.b: layers.8.b.weight and head.weight both read h.8.b"]),
        ("head.weight: head", "head.weight: h.8.b.c", []),
        ("when: bias", "when: not bias", ["gpt2: no rule covers 9 parameters of the model: layers.<n>.b.bias (9)"]),
        ("mean.value: mean\n", "", ["gpt2: no rule covers 1 parameter of the model: mean.value"]),
        ("{from: h.<layer>.c, when: bias}", "{from: h.<layer>.c, reshape: [7], when: bias}",
         ["layers.<layer>.b.bias: layers.0.b.bias [8] cannot be reshaped to 7"]),
        ("gate.*: h.<layer>.mlp.gate.*", "(gate|up).*: {from: h.<layer>.mlp.both.*, split: 2}",
         ["layers.<layer>.a.body.(gate|up).*: layers.0.a.body.up.weight is covered by two rules"]),
    ],
)  # fmt: skip
def test_a_mistake_is_told_once_at_its_word(old: str, new: str, expected: list[str]) -> None:
    """In whichever pass it is; a slip of the pen takes the parameters with it that are uncovered by it."""
    assert old in RULES
    assert sorted(lines(recipe(RULES.replace(old, new)))) == sorted(expected)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("bias", "wrong"), [("false", True), ("true", False), ("wide", False)])
def test_what_is_left_out_has_no_bias_where_none_is_written(bias: str, wrong: bool, wide: bool) -> None:
    """As where it is there; whether a param is true is not known of what is left out."""
    text = f"""
recipe: one
params: {{wide: true}}
inputs: {{x: "float[batch, time, 8]"}}
graph:
  extra: {{type: linear, out: 8, bias: {bias}, when: wide}}
  y: rmsnorm
checkpoints: {{gpt2: {{rules: {{extra.weight: a, extra.bias: b, y.weight: c}}}}}}
"""
    assert [line.split(":")[0] for line in lines(composer.load(text, {"wide": wide}))] == ["bias"] * wrong


def test_what_is_tied_needs_a_rule_for_its_owner() -> None:
    """And a rule for the other name alone says so."""
    wrong = recipe(RULES.replace("layers.<layer>.b.weight: h.<layer>.b\n", "layers.1.b.weight: x\n"), tied=True, n_layers=2)
    assert [each.hint for each in wrong.check()] == [
        "head.weight is tied to layers.0.b.weight: write the rule for layers.0.b.weight"
    ]


def test_a_variant_need_not_be_loadable() -> None:
    """One warning says so, where the rules were written for the model as it was; the text of the variant is without them."""
    text = "recipe: mine\nextends: gpt2\ngraph: {layers: {graph: {ffn: {body: {type: gated_ffn, hidden: 8}}}}}\n"
    (wrong,) = composer.load(text).check()
    assert (wrong.code, wrong.span.source.name) == ("checkpoints-uncovered", "gpt2.yaml") and "`checkpoints: null`" in wrong.hint
    assert wrong.severity == "warning"
    assert "checkpoints" not in composer.load(text).text
    assert [each.code for each in composer.load(composer.load(text).text).check()] == ["vocabulary"]
    assert [each.code for each in composer.load(text + "checkpoints: null\n").check()] == ["vocabulary"]
    (wrong,) = composer.load("gpt2", {"layers.ffn.body": {"type": "gated_ffn", "hidden": 8}}).check()
    assert wrong.severity == "warning" and "`checkpoints: null`" in wrong.hint
    assert "checkpoints:" in composer.load("gpt2", {"n_layers": 2}).text
    changed = composer.load("gpt2", {"layers.attn": None})  # `config` sets a param that is idle now
    assert {each.severity for each in changed.check()} == {"warning"}
    assert not [each for each in composer.load(changed.text).check() if each.severity == "error"]


@pytest.mark.parametrize("params", [{}, {"n_layers": 2}, {"n_layers": 64}, {"tied": True}], ids=str)
def test_some_passes_stand_for_all(params: dict[str, object]) -> None:
    """Every graph of a repeat is among them, and every number that a rule names."""
    typed = recipe(**params).program
    passes, whole = typical_passes(typed, {3, 61}), names_of(typed).owned
    if passes is None:
        assert params == {"n_layers": 2}
        return
    some = names_of(typed, passes).owned
    assert some.items() <= whole.items() and len(passes) <= 8 and {3, 61} <= passes
    assert {name.split(".", 2)[2] for name in some if name.startswith("layers.")} == {
        name.split(".", 2)[2] for name in whole if name.startswith("layers.")
    }


def test_a_check_does_not_import_torch() -> None:
    """Rules and `config` are held against the model in the front half."""
    code = "import composer, sys; assert composer.load('llama3').check() == []; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_rules_are_checked_in_a_recipe_with_mistakes_too() -> None:
    """Their form, and nothing that depends on the model."""
    found = recipe("head.weight: {transpose: true}").check()
    broken = composer.load(
        MODEL.format(rules="      a: {transpose: true}", copies="{}").replace("scale, by", "scael, by")
    ).check()
    assert [each.code for each in found] == ["checkpoints-form"]
    assert sorted(each.code for each in broken) == ["checkpoints-form", "unknown-block"]


def test_loading_takes_what_the_check_passed() -> None:
    """Bit for bit, from tensors of the names and shapes that the rules give."""
    for params in SETTINGS:
        found = recipe(**params)
        model = found.compile(seed=0)
        assert found.checkpoints is not None
        made = mapping(found.checkpoints, None, names_of(found.program).owned, found.program.untyped.params)
        theirs = {name: torch.randn(shape) for name, shape in made.published.items()}
        load_published(model, theirs)
        saved = made.save(model.state_dict())
        assert saved.keys() == theirs.keys() and all(torch.equal(saved[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("pieces", ["[extra]", "[head]", "[extra, head]"])
@pytest.mark.parametrize("source", ["(e|h).w", "{from: (e|h).w}", "{from: (e|h).(p|q|r|s), concat: 4}"])
def test_words_of_what_is_left_out_are_not_expanded(wide: bool, pieces: str, source: str) -> None:
    """What is left reads the same tensors in the same way, and copies of what nothing reads are gone."""
    rule = source.replace("}", f", permute_rotary: {{head_dim: 4, of: {pieces}}}}}")
    text = RULES.replace("extra.*: extra.*\n", "extra.bias: e.bias\n").replace(
        "head.weight: head", f"(extra|head).weight: {rule}"
    )
    found = recipe(text, copies="{old.bias: e.bias}", wide=wide)
    again = composer.load(found.expand())
    assert (lines(found), lines(again)) == ([], [])
    theirs = {name: torch.randn(shape) for name, shape in published(found).items()}
    assert ("e.bias" in theirs) == wide == ("copies" in again.text and "old.bias" in again.text)
    models = [each.compile("cpu", seed=0) for each in (found, again)]
    for model in models:
        load_published(model, theirs)
    first, second = (model.state_dict() for model in models)
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("scaled", ["1e-4", "none"])
def test_rules_for_what_a_library_block_leaves_out_are_no_mistake(scaled: str) -> None:
    """A LayerScale that a residual connection does not have; a name that it never has is one."""
    text = f"""
recipe: scaled
inputs: {{x: "float[batch, time, 8]"}}
graph:
  ffn: {{type: residual, norm: layernorm, layer_scale: {scaled}, body: {{type: ffn, hidden: 16}}}}
checkpoints:
  one:
    rules:
      ffn.norm.*: ln.*
      ffn.layer_scale.weight: lambda_1
      ffn.body.(up|down).*: mlp.(fc1|fc2).*
"""
    assert lines(composer.load(text)) == []
    assert len(lines(composer.load(text.replace("layer_scale.weight", "layer_scael.weight")))) == 1


LEFT_OUT = """
recipe: example
inputs: {{x: "float[batch, time, 8]"}}
graph:
  layers:
    repeat: 3
    each: {each}
    graph:
      a: {{type: residual, body: {body}, when: layer == 0}}
      b: {{type: linear, out: 8, bias: false}}
checkpoints:
  one:
    rules:
      layers.<layer>.a.body.(up|down).*: h.<layer>.(up|down).*
      layers.<layer>.b.weight: h.<layer>.b
      layers.<layer>.a.{wrong}: h.<layer>.c
"""


@pytest.mark.parametrize(("each", "body"), [("{}", "{type: ffn, hidden: 9}"), ("{inner: {type: ffn, hidden: 9}}", "inner")])
@pytest.mark.parametrize("wrong", ["bodyy.utter.nonsense", "zzz", "body.upp.weight", "body.up.nonsense"])
def test_a_node_that_some_passes_leave_out_hides_no_mistake(each: str, body: str, wrong: str) -> None:
    """Whether its names are known as it is written, or only as they are in other passes."""
    word = next(part for part in wrong.split(".") if part not in ("body", "up"))
    (found,) = lines(composer.load(LEFT_OUT.format(each=each, body=body, wrong=wrong)))
    assert found.startswith(f"{word}: ")


def test_a_rule_that_two_maps_share_is_told_once() -> None:
    """The map that is like another has the same rule in the same place."""
    shared = MODEL.format(rules="      hed.(weight|bias): h.(w|b)", copies="{}") + "  gpt3: {like: gpt2}\n"
    wrong = [each for each in lines(composer.load(shared)) if each.startswith("hed")]
    assert wrong == ["hed: there is no node called `hed`"]


PLACED = """
recipe: placed
params: {{placement: {{type: choice, of: [pre, post, reordered], default: reordered}}, wide: false}}
inputs: {{x: "float[batch, time, 16]"}}
graph:
  a: {node}
  b: {{type: scale, by: 2, when: wide and placement == pre}}
checkpoints:
  t:
    config: {{params: {config}}}
    rules:
      a.{rule}: nothing.here
      a.branch_norm.weight: n.weight
      a.body.weight: w.weight
"""
BODY = "body: {type: linear, out: 16, bias: false}"


@pytest.mark.parametrize(
    ("node", "config", "rule", "wrong"),
    [
        ("placement: reordered, norm: rmsnorm", "{}", "norm.weight", "norm"),
        ("placement: reordered, norm: rmsnorm", "{}", "norm.wieght", "norm"),
        ("placement: reordered, norm: rmsnorm", "{}", "post_norm.weight", "post_norm"),
        ("branch_norm: rmsnorm", "{}", "norm.weight", "norm"),
        ("branch_norm: {type: rmsnorm, eps: 1e-5}", "{}", "post_norm.weight", "post_norm"),
        ("placement: placement, norm: rmsnorm", "{}", "norm.weight", None),
        ("placement: placement, norm: rmsnorm", "{}", "post_norm.weight", None),
        ("placement: reordered if not wide else pre, norm: rmsnorm", "{}", "norm.weight", None),
        ("branch_norm: rmsnorm, norm: {if: wide, then: rmsnorm, else: none}", "{}", "norm.weight", None),
        ("placement: reordered, norm: rmsnorm", "{a.placement: {from: p, values: {x: pre, y: post}, default: pre}}",
         "norm.weight", None),
    ],
)  # fmt: skip
def test_a_rule_for_a_slot_that_nothing_fills_is_a_mistake(node: str, config: str, rule: str, wrong: str | None) -> None:
    """Unless a param, or a key of the published file, decides whether it is filled."""
    recipe = composer.load(PLACED.format(node=f"{{type: residual, {node}, {BODY}}}", config=config, rule=rule))
    found = [(each.code, text_at(each.span)) for each in recipe.check()]
    assert found == ([] if wrong is None else [("checkpoints-unknown-name", wrong)])
