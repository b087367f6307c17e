"""What outlives a call: states, batch norms and what they become, against loops and torch's own modules."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import composer
from composer.decode.session import session
from composer.lower import Model

B, T, D = 3, 4, 6


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same numbers in every run."""
    torch.manual_seed(0)


def compiled(graph: str, outputs: str = "y", **inputs: str) -> Model:
    """Return a model of one graph."""
    declared = ", ".join(f'{name}: "{type_}"' for name, type_ in inputs.items())
    text = f"recipe: r\ninputs: {{{declared}}}\ngraph:\n{graph}outputs: {{y: {outputs}}}\n"
    return composer.load(text).compile(seed=0)


MEAN = """
  old: {type: state, shape: [6], next: new, UPDATE}
  kept: {type: scale, by: 0.75, in: old}
  rows: {type: mean, axis: time, in: x}
  now: {type: mean, axis: batch}
  fresh: {type: scale, by: 0.25}
  new: {type: add, in: [kept, fresh]}
  y: {type: add, in: [x, old]}
"""


def running_mean(update: str = "update: training") -> Model:
    return compiled(MEAN.replace("UPDATE", update)[1:], x="float[batch, time, 6]")


def test_a_state_is_what_the_calls_before_made_of_it() -> None:
    """A running mean written from primitives, against a loop; the value of a call is that of the call before."""
    model, expected = running_mean().double().train(), torch.zeros(D, dtype=torch.float64)
    for _ in range(3):
        x = torch.randn(B, T, D, dtype=torch.float64)
        torch.testing.assert_close(model(x).y, x + expected, rtol=0, atol=1e-12)
        expected = 0.75 * expected + 0.25 * x.mean((0, 1))
    torch.testing.assert_close(model.old.value, expected, rtol=0, atol=1e-12)
    assert set(model.state_dict()) == {"old.value"}


@pytest.mark.parametrize(
    ("update", "training", "changes"), [("training", True, True), ("training", False, False), ("always", False, True)]
)
def test_a_state_changes_when_it_says_so(update: str, training: bool, changes: bool) -> None:
    """In training only, or with every call."""
    model = running_mean(f"update: {update}, init: ones").train(training)
    model(torch.randn(B, T, D))
    assert torch.equal(model.old.value, torch.ones(D)) is not changes


COUNTED = """
recipe: counted
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 7, dim: 6}
  calls: {type: state, shape: [6], next: more, update: always}
  one: {type: parameter, shape: [6], init: ones}
  more: {type: add, in: [calls, one]}
  y: {type: add, in: [embed, calls]}
  head: {type: linear, out: 7}
outputs: {logits: head}
"""


def test_nothing_changes_while_a_text_is_written() -> None:
    """Also where the state changes always: each piece of a text sees what the whole text would see."""
    model = composer.load(COUNTED).compile(seed=0).eval()
    tokens = torch.randint(7, (B, T))
    model(tokens)
    assert model.calls.value.tolist() == [1] * D
    with session(model):
        pieces = [model(tokens[:, :2]).logits, model(tokens[:, 2:]).logits]
    assert model.calls.value.tolist() == [1] * D
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens).logits)


def test_a_state_and_what_it_was_survive_gradients_copies_and_pickling() -> None:
    """A gradient through what reads the state is right although the state has changed since; none goes back through it."""
    text = "  old: {type: state, shape: [6], next: new, init: ones}\n  new: {type: multiply, in: [x, old]}\n"
    model = compiled(text, outputs="new", x="float[6]").train()
    x = torch.randn(D, requires_grad=True)
    first = model(x).y
    second = model(x).y
    torch.testing.assert_close(torch.autograd.grad(second.sum(), x)[0], x.detach())  # the state was x
    torch.testing.assert_close(torch.autograd.grad(first.sum(), x)[0], torch.ones(D))  # the state was one
    again = compiled(text, outputs="new", x="float[6]")
    again.load_state_dict(model.state_dict())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), again, composer.load(model.recipe.expand()).compile()):
        if other.recipe is not model.recipe and other is not again:
            other.load_state_dict(model.state_dict())
        assert torch.equal(other.eval()(x).y, model.eval()(x).y)


PASSES = """layers:
    repeat: 2
    in: x
    graph:
      bias: {type: state, shape: [], next: up}
      up: {compute: bias + 1}
      z: {type: linear, out: 6, in: input}"""


@pytest.mark.parametrize(
    ("node", "returned", "dead"),
    [
        ("y: {type: linear, out: 6, in: x}", "y", ["level"]),
        ("y: {compute: x * level}", "y", []),
        ("y: {type: linear, out: 6, in: x}", "y, level: moved", []),  # which shows what it was
        ("y: {type: linear, out: 6, in: x}\n  gap: {compute: y * level}", "y", ["gap"]),  # the one mistake
        (f"{PASSES}\n  y: {{compute: x * level * layers}}", "y", ["bias"]),
        ("y: {in: x, graph: {z: {compute: input * level}}}", "y", []),
        (f"{PASSES}\n  y: {{compute: layers(0).bias * level * layers}}", "y", []),
    ],
)
def test_a_state_that_only_its_next_value_reads_is_dead(node: str, returned: str, dead: list[str]) -> None:
    """Whatever else depends on it, in another pass too, is a reader."""
    text = (
        'recipe: r\ninputs: {x: "float[batch, 6]"}\ngraph:\n'
        "  level: {type: state, shape: [], next: moved}\n  moved: {compute: 0.9 * level + 0.1}\n"
        f"  {node}\noutputs: {{y: {returned}}}\n"
    )
    found = composer.load(text).check()
    assert [(one.code, one.message.split("`")[1]) for one in found] == [("dead-node", name) for name in dead]


def test_each_pass_has_a_state_of_its_own() -> None:
    """Two counters in two passes, one of which counts twice as fast."""
    model = compiled(
        "  layers:\n    repeat: 2\n    each: {pace: layer + 1}\n    graph:\n"
        "      count: {type: state, shape: [6], next: more}\n"
        "      one: {type: parameter, shape: [6], init: ones}\n"
        "      step: {type: scale, by: pace}\n"
        "      more: {type: add, in: [count, step]}\n"
        "      y: {type: add, in: [input, count]}\n",
        outputs="layers",
        x="float[batch, 6]",
    ).train()
    x = torch.zeros(1, D)
    assert [float(model(x).y[0, 0]) for _ in range(3)] == [0, 3, 6]
    assert [float(layer.count.value[0]) for layer in model.layers] == [3, 6]


def test_a_compiled_state_changes_without_a_break() -> None:
    """One program, which leaves what eager code leaves."""
    torch._dynamo.reset()  # what other tests compiled counts towards the limit
    eager = running_mean().train()
    traced = copy.deepcopy(eager)
    fast = torch.compile(traced, fullgraph=True, backend="aot_eager")
    for _ in range(3):
        x = torch.randn(B, T, D)
        torch.testing.assert_close(fast(x).y, eager(x).y)
    torch.testing.assert_close(traced.old.value, eager.old.value)


# -- DeepSeek's balance without a loss

BALANCED = """
recipe: balanced
doc: A mixture whose experts are chosen by scores with a bias that grows for those that are visited too little.
paper: Wang et al. 2024, Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts, arXiv:2408.15664
task: causal_lm
params: {experts: 4, rate: 0.05}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 6}
  layers:
    repeat: 2
    graph:
      bias: {type: state, shape: [experts], next: corrected}
      moe:
        type: moe
        experts: experts
        expert: {type: gated_ffn, hidden: 5}
        router: {type: top_k_router, top_k: 2, scoring: sigmoid}
        in: {x: input, correction: bias}
      fair: {type: mean, axis: last, in: moe.load}
      less: {type: scale, by: -1, in: moe.load}
      error: {type: add, in: [fair, less]}
      steep: {type: scale, by: 1e9}
      sign: tanh
      step: {type: scale, by: rate}
      corrected: {type: add, in: [bias, step]}
      y: {type: add, in: [input, moe]}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


def test_the_bias_of_a_router_follows_deepseeks_rule() -> None:
    """Algorithm 1 of the paper as a loop: choose by s + b, weigh by s alone, then b += u · sign(mean load - load)."""
    model = composer.load(BALANCED, overrides={"rate": 0.0625}).compile(seed=0).double().train().requires_grad_(False)
    layer = model.layers[0]
    bias = torch.zeros(4, dtype=torch.float64)
    for _ in range(5):
        tokens = torch.randint(11, (B, T))
        x = model.embed(tokens)
        scores = layer.moe.gate(x).sigmoid()  # [B, T, E]
        expected, counts = torch.zeros_like(x), torch.zeros(4, dtype=torch.float64)
        for b in range(B):
            for t in range(T):
                chosen = sorted(range(4), key=lambda e: -float(scores[b, t, e] + bias[e]))[:2]
                for e in chosen:
                    counts[e] += 1
                    inside = F.silu(x[b, t] @ layer.moe.expert.gate.weight[e].T) * (x[b, t] @ layer.moe.expert.up.weight[e].T)
                    expected[b, t] += scores[b, t, e] / scores[b, t, chosen].sum() * (inside @ layer.moe.expert.down.weight[e].T)
        torch.testing.assert_close(layer(x), x + expected, rtol=0, atol=1e-12)
        bias += 0.0625 * torch.sign(counts.mean() - counts)
        torch.testing.assert_close(layer.bias.value, bias, rtol=0, atol=1e-12)


def test_the_rule_spreads_what_a_router_crowds() -> None:
    """A gate that prefers one expert by far: its load falls toward the fair share while nothing else is trained."""
    model = composer.load(BALANCED, overrides={"rate": 0.01}).compile(seed=0).train()
    moe = model.layers[0].moe
    loads: list[torch.Tensor] = []
    moe.register_forward_hook(lambda _, __, out: loads.append(out[1]))
    with torch.no_grad():
        moe.gate.weight[0] = 3 * model.embed.weight.mean(0)
        model.embed.weight += 2 * model.embed.weight.mean(0)
        for _ in range(200):
            model(torch.arange(11)[None])
    assert float((loads[0] - 0.5).abs().max()) > 0.4
    assert float((torch.stack(loads[-50:]).mean(0) - 0.5).abs().max()) < 0.05


# -- batch norms


@pytest.mark.parametrize("fields", ["affine: true", "affine: false, eps: 0.1", "momentum: 0.3"])
def test_batchnorm_is_torchs(fields: str) -> None:
    """In training and after, values, gradients and running numbers, over batch and time together."""
    model = compiled(f"  y: {{type: batchnorm, {fields}}}\n", x="float[batch, time, 6]").double()
    words: dict[str, Any] = dict(pair.split(": ") for pair in fields.split(", "))
    theirs = nn.BatchNorm1d(
        D, affine=words.get("affine") != "false", eps=float(words.get("eps", 1e-5)), momentum=float(words.get("momentum", 0.1))
    ).double()
    with torch.no_grad():
        for ours, other in zip(model.parameters(), theirs.parameters(), strict=True):
            other.copy_(ours.normal_())
    for training in (True, True, False):
        x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
        y, expected = model.train(training)(x).y, theirs.train(training)(x.mT).mT
        torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
        weights = torch.randn_like(y)
        given, wanted = (torch.autograd.grad((one * weights).sum(), x)[0] for one in (y, expected))
        torch.testing.assert_close(given, wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.y.running_mean, theirs.running_mean)
    torch.testing.assert_close(model.y.running_var, theirs.running_var)


def test_initializers_of_parameters_leave_running_numbers_alone() -> None:
    """A pattern that matches every name starts gains at 2 and no variance."""
    text = 'recipe: r\ninputs: {x: "float[batch, 6]"}\ngraph: {y: {type: batchnorm}}\ninit: {"*": {constant: 2}}\n'
    model = composer.load(text).compile()
    assert model.y.weight.tolist() == [2] * D
    assert model.y.running_var.tolist() == [1] * D


def test_one_hot_has_a_one_where_torchs_has_it() -> None:
    """In the model's own precision; zeros for an id that is no class."""
    model = compiled("  y: {type: one_hot, classes: 5}\n", ids="int[batch, time]").bfloat16()
    ids = torch.randint(5, (B, T))
    assert torch.equal(model(ids).y, F.one_hot(ids, 5).bfloat16())
    assert not model(torch.tensor([[-100, 5]])).y.any()


def test_passes_of_one_set_of_weights_may_hold_a_one_hot_and_no_state() -> None:
    """What stays as it is can be shared; what changes has one value in a call."""
    shared = "  steps:\n    repeat: 2\n    share: true\n    graph:\n"
    hot = "      hot: {type: one_hot, classes: 6, in: ids}\n      y: {type: add, in: [input, hot]}\n"
    kept = "      hot: {type: state, shape: [6], next: hot}\n      y: {type: add, in: [input, hot]}\n"
    inputs = 'inputs: {x: "float[batch, time, 6]", ids: "int[batch, time]"}'
    assert not composer.load(f"recipe: r\n{inputs}\ngraph:\n{shared}{hot}").check()
    assert "share" in {found.code for found in composer.load(f"recipe: r\n{inputs}\ngraph:\n{shared}{kept}").check()}


@pytest.mark.parametrize(("dtype", "expected"), [("", 1.0), (", dtype: float32", 1.01)])
def test_small_updates_are_kept_in_float32(dtype: str, expected: float) -> None:
    """In a model that is converted to bfloat16, in which 1 + 0.001 is 1; also where it is moved from the meta device."""
    graph = f"""
  level: {{type: state, shape: [], init: ones, next: next{dtype}}}
  next: {{compute: level + 0.001}}
  y: {{compute: x * level}}
"""
    model = compiled(graph[1:], x="float[batch, time, 6]").to(torch.bfloat16).train()
    kept = model.level.value.dtype
    for _ in range(10):
        model(torch.randn(B, T, D, dtype=torch.bfloat16))
    assert model.level.value.item() == pytest.approx(expected, abs=1e-5)
    assert model.to("meta").to_empty(device="cpu").half().level.value.dtype == (kept if dtype else torch.float16)
