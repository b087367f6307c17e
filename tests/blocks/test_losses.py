"""Losses, by themselves and in recipes, against torch, transformers and sums written out."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers.models.clip.modeling_clip import image_text_contrastive_loss
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

import composer
from composer.decode.session import session
from composer.lower import Model
from composer.train.optimization.accumulation import shares

B, T, D, V = 2, 5, 6, 7


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same numbers in every run."""
    torch.manual_seed(0)


def compiled(losses: str, **inputs: str) -> Model:
    """Return a model of nothing but losses, in float64."""
    declared = ", ".join(f'{name}: "{type_}"' for name, type_ in inputs.items())
    text = f"recipe: r\ninputs: {{{declared}}}\ngraph: {{y: {{type: identity}}}}\nlosses: {losses}\n"
    return composer.load(text).compile(seed=0).double()


SCORES, IDS, NUMBERS = f"float[batch, time, {V}]", "int[batch, time]", f"float[batch, time, {D}]"


@pytest.mark.parametrize(("shift", "ignored"), [(0, -100), (1, 3), (2, -100)])
def test_cross_entropy_is_the_mean_of_nats_written_out(shift: int, ignored: int) -> None:
    """Each target by its own position, `shift` places back; ignored ones count for nothing."""
    model = compiled(
        f"{{l: {{type: cross_entropy, in: x, target: t, shift: {shift}, ignore_index: {ignored}}}}}", x=SCORES, t=IDS
    )
    x, t = torch.randn(B, T, V, dtype=torch.float64), torch.randint(V, (B, T))
    t[0, 3] = t[1, 2] = ignored
    nats = [
        -math.log(x[b, i, t[b, i + shift]].exp() / x[b, i].exp().sum())
        for b in range(B)
        for i in range(T - shift)
        if t[b, i + shift] != ignored
    ]
    assert float(model(x, t).losses["l"]) == pytest.approx(sum(nats) / len(nats), abs=1e-12)


@pytest.mark.parametrize("shift", [0, 2])
def test_padding_neither_asks_nor_is_asked_for(shift: int) -> None:
    """Only pairs of real tokens count, on the left and on the right; without `valid`, all do."""
    losses = f"{{l: {{type: cross_entropy, in: x, target: t, shift: {shift}, valid: v}}}}"
    model = compiled(losses, x=SCORES, t=IDS, v="bool[batch, time]?")
    x, t = torch.randn(B, T, V, dtype=torch.float64), torch.randint(V, (B, T))
    valid = torch.tensor([[False, True, True, True, True], [True, True, True, True, False]])
    pairs = [(b, i) for b in range(B) for i in range(T - shift) if valid[b, i] and valid[b, i + shift]]
    nats = [float(F.cross_entropy(x[b, i], t[b, i + shift])) for b, i in pairs]
    assert float(model(x, t, valid).losses["l"]) == pytest.approx(sum(nats) / len(nats), abs=1e-12)
    assert float(model(x, t).losses["l"]) == float(model(x, t, torch.ones_like(valid)).losses["l"])


def test_smoothing_weight_and_several_inputs_are_torchs_losses_put_together() -> None:
    """The mean of two, or their sum; each with a tenth spread over all classes."""
    fields = "type: cross_entropy, in: [x, z], target: t, label_smoothing: 0.1"
    model = compiled(f"{{a: {{{fields}, weight: 0.5}}, b: {{{fields}, reduction: sum}}}}", x=SCORES, z=SCORES, t=IDS)
    x, z, t = torch.randn(B, T, V, dtype=torch.float64), torch.randn(B, T, V, dtype=torch.float64), torch.randint(V, (B, T))
    each = [F.cross_entropy(one.flatten(0, 1), t.flatten(), label_smoothing=0.1) for one in (x, z)]
    found = model(x, z, t).losses
    torch.testing.assert_close(found["a"], 0.5 * (each[0] + each[1]) / 2, rtol=0, atol=1e-12)
    torch.testing.assert_close(found["b"], each[0] + each[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("shift", [0, 2])
def test_a_target_of_probabilities_is_torchs(shift: int) -> None:
    """One number for each class in place of the class: means and sums of several, smoothed, and without padding."""
    fields = f"type: cross_entropy, in: [x, z], target: t, shift: {shift}"
    losses = f"{{a: {{{fields}, label_smoothing: 0.1}}, b: {{{fields}, reduction: sum, weight: 2}}, c: {{{fields}, valid: v}}}}"
    model = compiled(losses, x=SCORES, z=SCORES, t=SCORES, v="bool[batch, time]?")
    x, z, t = (torch.randn(B, T, V, dtype=torch.float64) for _ in range(3))
    t = t.softmax(-1)
    valid = torch.tensor([[False, True, True, True, True], [True, True, True, True, False]])
    found, kept = model(x, z, t, valid).losses, valid[:, shift:] & valid[:, : T - shift]
    scores, wanted = [one[:, : T - shift] for one in (x, z)], t[:, shift:]

    def sum_of(real: torch.Tensor, **options: Any) -> torch.Tensor:
        return torch.stack([F.cross_entropy(one[real], wanted[real], **options) for one in scores]).sum()

    everywhere = torch.ones_like(kept)
    torch.testing.assert_close(found["a"], sum_of(everywhere, label_smoothing=0.1) / 2, rtol=0, atol=1e-12)
    torch.testing.assert_close(found["b"], 2 * sum_of(everywhere), rtol=0, atol=1e-12)
    torch.testing.assert_close(found["c"], sum_of(kept) / 2, rtol=0, atol=1e-12)
    assert float(model(x, z, t, torch.zeros_like(valid)).losses["c"]) == 0


def test_a_target_of_probabilities_is_one_term_for_each_place() -> None:
    """Batches whose gradients are accumulated weigh as many terms as are not padding."""
    losses = "{l: {type: cross_entropy, in: x, target: t, valid: v}}"
    model = compiled(losses, x=SCORES, t=SCORES, v="bool[batch, time]?")
    x, t = torch.randn(B, T, V, dtype=torch.float64), torch.rand(B, T, V, dtype=torch.float64)
    valid = torch.tensor([[True] * T, [True, False, False, False, False]])
    whole = model(x, t, valid).losses["l"]
    parts = [{"x": x[row : row + 1], "t": t[row : row + 1], "v": valid[row : row + 1]} for row in range(B)]
    weights = [each["l"] for each in shares(model, parts, [1, 1], "")]
    assert weights == [5 / 6, 1 / 6]
    summed = sum(weight * model(**part).losses["l"] for weight, part in zip(weights, parts, strict=True))
    torch.testing.assert_close(summed, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        ("mse", F.mse_loss),
        ("l1_loss", F.l1_loss),
        ("huber, delta: 0.5", lambda x, t: 0.5 * F.smooth_l1_loss(x, t, beta=0.5)),
        ("binary_cross_entropy", F.binary_cross_entropy_with_logits),
    ],
)
def test_losses_of_numbers_are_torchs(kind: str, reference: Any) -> None:
    """Over every number of every axis."""
    model = compiled(f"{{l: {{type: {kind}, in: x, target: t, weight: 3}}}}", x=NUMBERS, t=NUMBERS)
    x, t = torch.randn(B, T, D, dtype=torch.float64), torch.rand(B, T, D, dtype=torch.float64)
    torch.testing.assert_close(model(x, t).losses["l"], 3 * reference(x, t), rtol=0, atol=1e-12)


CLIP = """
recipe: two_towers
task: contrastive
inputs: {image: "float[batch, 5]", text: "float[batch, 4]"}
graph:
  seen: {type: linear, out: 6, in: image}
  a: l2norm
  read: {type: linear, out: 6, in: text}
  b: l2norm
  warmth: {type: parameter, shape: [], init: ones}
outputs: {a: a, b: b, scale: warmth}
losses:
  again: {type: contrastive, a: a, b: b, scale: warmth, weight: 0.5}
"""


def test_the_contrastive_loss_is_that_of_transformers_clip() -> None:
    """As the task's loss, and as a loss of the recipe's own."""
    model = composer.load(CLIP).compile(seed=0).double()
    image, text = torch.randn(4, 5, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    out = model(image, text)
    expected = image_text_contrastive_loss(out.scale * out.b @ out.a.T)
    found = composer.loss(model, {"image": image, "text": text})
    assert list(found.by_name) == ["contrastive", "again"]
    torch.testing.assert_close(found.by_name["contrastive"], expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.by_name["again"], 0.5 * expected, rtol=0, atol=1e-12)


def test_half_precision_is_summed_in_full() -> None:
    """In bfloat16 each loss is that of the same numbers in float32."""
    fields = {
        "cross_entropy": (SCORES, IDS),
        **dict.fromkeys(("mse", "l1_loss", "huber", "binary_cross_entropy"), (NUMBERS, NUMBERS)),
    }
    for kind, (given, target) in fields.items():
        model = compiled(f"{{l: {{type: {kind}, in: x, target: t}}}}", x=given, t=target).float()
        x = torch.randn(B, T, V if given == SCORES else D).bfloat16()
        t = torch.randint(V, (B, T)) if target == IDS else torch.rand(B, T, D).bfloat16()
        low, full = model(x, t).losses["l"], model(x.float(), t.float() if t.is_floating_point() else t).losses["l"]
        assert low.dtype == torch.float32
        assert torch.equal(low, full)


# -- in a recipe

TWO_HEADS = """
recipe: two_heads
task: causal_lm
inputs: {tokens: "int[batch, time]", labels: "int[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 7, dim: 6}
  mix: {type: attention, heads: 2, mask: causal}
  head: {type: linear, out: 7}
  only: {type: attention, heads: 3, mask: causal, in: mix}
  guess: {type: linear, out: 7}
outputs: {logits: head}
losses:
  after: {type: cross_entropy, in: guess, target: tokens, shift: 2, weight: 0.3}
  label: {type: cross_entropy, in: guess, target: labels}
"""


def test_losses_are_there_where_what_they_ask_for_is() -> None:
    """In training and in evaluation alike; without labels, all but theirs."""
    model = composer.load(TWO_HEADS).compile(seed=0)
    tokens = torch.randint(7, (B, T))
    for mode in (True, False):
        assert list(model.train(mode)(tokens).losses) == ["after"]
        assert list(model(tokens, tokens).losses) == ["after", "label"]
    found = composer.loss(model, {"tokens": tokens, "labels": tokens})
    assert list(found.by_name) == ["causal_lm", "after", "label"]
    torch.testing.assert_close(found.total, sum(found.by_name.values()))


def test_no_loss_and_nothing_that_only_a_loss_needs_is_computed_while_writing() -> None:
    """A module that would raise is not called within a session, and the logits are those of the whole text."""
    model = composer.load(TWO_HEADS).compile(seed=0).eval()
    tokens = torch.randint(7, (B, T))
    whole = model(tokens).logits

    def fail(*_: Any) -> None:
        raise AssertionError("called")

    model.guess.register_forward_hook(fail)
    model.only.register_forward_hook(fail)
    with session(model):
        pieces = [model(tokens[:, :3]), model(tokens[:, 3:])]
    assert [piece.losses for piece in pieces] == [{}, {}]
    torch.testing.assert_close(torch.cat([piece.logits for piece in pieces], dim=1), whole)
    with pytest.raises(AssertionError, match="called"):
        model(tokens)


MIXTURE = """
recipe: mixture
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 7, dim: 6}
  layers:
    repeat: 2
    graph:
      moe: {type: moe, experts: 4, expert: {type: gated_ffn, hidden: 5}}
  head: {type: linear, out: 7}
outputs: {logits: head}
losses:
  balance: {in: "layers(:).moe.load_balancing", weight: 0.5}
  sum: {in: "layers(:).moe.load_balancing", weight: 0.5, reduction: sum}
  z: {in: "layers(0).moe.router_z"}
"""


def moved(model: Model, loss: torch.Tensor) -> set[str]:
    """Return the parameters to which a loss has a gradient."""
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, retain_graph=True)
    names = [name for name, _ in model.named_parameters()]
    return {name for name, gradient in zip(names, gradients, strict=True) if gradient is not None and gradient.any()}


def test_balance_and_z_loss_reach_the_router() -> None:
    """Those of the first layer move its gate and what comes before it, and no expert; those of all layers every gate."""
    model = composer.load(MIXTURE).compile(seed=0)
    losses = model(torch.randint(7, (B, T))).losses
    assert moved(model, losses["z"]) == {"embed.weight", "layers.0.moe.gate.weight"}
    reached = moved(model, losses["balance"])
    assert {"layers.0.moe.gate.weight", "layers.1.moe.gate.weight"} <= reached
    assert not any(name.startswith("layers.1.moe.expert") for name in reached)


def test_several_layers_are_averaged_or_added_up() -> None:
    """The sum of two layers is twice their mean; one layer's is transformers' loss of its router."""
    model = composer.load(MIXTURE).compile(seed=0)
    tokens = torch.randint(7, (B, T))
    logits: list[torch.Tensor] = []
    for layer in model.layers:
        layer.moe.gate.register_forward_hook(lambda _, __, out: logits.append(out.flatten(0, 1)))
    found = model(tokens).losses
    torch.testing.assert_close(found["sum"], 2 * found["balance"])
    each = [load_balancing_loss_func((one,), num_experts=4, top_k=2) for one in logits]
    torch.testing.assert_close(found["sum"], 0.5 * (each[0] + each[1]))


def test_what_only_losses_read_stays_behind_where_a_recipe_is_a_block(tmp_path: Path) -> None:
    """Its losses are its own: their heads are not computed, and the rest gives what it gives by itself."""
    (tmp_path / "inner.yaml").write_text(TWO_HEADS, encoding="utf-8")
    outer = (
        'recipe: outer\nuses: [inner.yaml]\ninputs: {tokens: "int[batch, time]"}\n'
        "graph: {inside: {type: two_heads}}\noutputs: {logits: inside}\n"
    )
    (tmp_path / "outer.yaml").write_text(outer, encoding="utf-8")
    model, alone = composer.load(tmp_path / "outer.yaml").compile(seed=0), composer.load(TWO_HEADS).compile(seed=0)
    assert sorted(name for name, _ in model.inside.named_children()) == ["embed", "head", "mix"]
    alone.load_state_dict(model.inside.state_dict(), strict=False)
    tokens = torch.randint(7, (B, T))
    assert model(tokens).losses == {}
    torch.testing.assert_close(model(tokens).logits, alone(tokens).logits)


@pytest.mark.parametrize(("given", "node"), [("losses", "last"), ("x", "losses")])
def test_losses_and_nodes_and_inputs_of_one_name_do_not_meet(given: str, node: str) -> None:
    """A loss and the mapping of all losses, called as the input is, or as a node that lives through `forward`."""
    names = ["n0", "n1", "n2", "n3", "n4", node]
    scaled = "".join(f"  {name}: {{type: scale, by: {i + 2}, in: {given}}}\n" for i, name in enumerate(names))
    text = (
        f'recipe: r\ninputs: {{{given}: "float[batch, 4]"}}\ngraph:\n{scaled}'
        f"  map: {{type: linear, out: 4, in: n0}}\n  all: {{type: add, in: [{', '.join(names)}, map]}}\n"
        f"losses: {{losses: {{type: mse, in: [{', '.join(names)}], target: {given}, reduction: sum}}}}\n"
    )
    x = torch.randn(3, 4)
    found = composer.load(text).compile(seed=0)(**{given: x}).losses
    torch.testing.assert_close(found["losses"], sum((i + 1) ** 2 * x.square().mean() for i in range(6)))


CTC = {"x": f"float[batch, frames, {V}]", "t": "int[batch, tokens]", "v": "bool[batch, frames]?", "u": "bool[batch, tokens]?"}


def test_ctc_sums_all_alignments_of_real_frames_and_tokens() -> None:
    """Written out over every way to name a class at each frame; padding may be anywhere, and an empty row counts nothing."""
    model = compiled("{l: {type: ctc, in: x, target: t, valid: v, target_valid: u, blank: 2}}", **CTC)
    x = torch.randn(3, 5, V, dtype=torch.float64, requires_grad=True)
    t = torch.tensor([[1, -100, 1], [4, 0, 6], [3, 3, 3]])  # equal neighbors need a blank between them
    u = torch.tensor([[True, True, True], [False, True, True], [False, False, False]])
    v = torch.tensor([[True] * 5, [False, True, True, False, True], [False] * 5])
    nats = []
    for row, wanted in enumerate([(1, 1), (0, 6)]):
        chances = x[row, v[row]].softmax(-1)
        paths = itertools.product(range(V), repeat=len(chances))
        those = [path for path in paths if tuple(c for c, _ in itertools.groupby(path) if c != 2) == wanted]
        nats.append(-sum(math.prod(chances[i, c] for i, c in enumerate(path)) for path in those).log() / 2)  # type: ignore[union-attr]
    expected = sum(nats) / 2
    found = model(x, t, v, u).losses["l"]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(one, x)[0] for one in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_is_torchs_and_infinite_where_frames_are_too_few(zero_infinity: bool) -> None:
    """A row that cannot be aligned makes the mean infinite, or counts as a row of loss 0 without a gradient."""
    model = compiled(f"{{l: {{type: ctc, in: x, target: t, zero_infinity: {str(zero_infinity).lower()}}}}}", **CTC)
    x = torch.randn(3, 6, V, dtype=torch.float64, requires_grad=True)
    t = torch.tensor([[1, 2, 3, 4], [5, 5, 5, 5], [6, -100, -100, -100]])  # four equal ones need seven frames
    lengths = torch.tensor([4, 4, 1])
    logs = x.log_softmax(-1).transpose(0, 1)
    expected = F.ctc_loss(logs, t, torch.full((3,), 6), lengths, zero_infinity=zero_infinity)
    found = model(x, t).losses["l"]
    assert bool(found.isinf()) is not zero_infinity
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    if zero_infinity:
        torch.testing.assert_close(torch.autograd.grad(found, x)[0], torch.autograd.grad(expected, x)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("valid", ["", ", target_valid: u"])
def test_accumulated_ctc_is_that_of_one_batch(valid: str) -> None:
    """Each batch counts by its rows with tokens."""
    model = compiled(f"{{l: {{type: ctc, in: x, target: t{valid}}}}}", **CTC)
    x, t = torch.randn(5, 6, V, dtype=torch.float64), torch.randint(1, V, (5, 3))
    u = torch.tensor([3, 1, 2, 3, 0])[:, None] > torch.arange(3)
    given = {"x": x, "t": t, "u": u} if valid else {"x": x, "t": t.masked_fill(~u, -100)}
    parts = [{name: value[rows] for name, value in given.items()} for rows in (slice(3), slice(3, 5))]
    weights = shares(model, parts, [3, 2], "")
    total = sum(each["l"] * model(**part).losses["l"] for each, part in zip(weights, parts, strict=True))
    torch.testing.assert_close(total, model(**given).losses["l"], rtol=0, atol=1e-12)
