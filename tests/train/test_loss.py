"""The loss against plain sums over targets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import composer
from composer.train.errors import TrainingError
from composer.train.losses import cross_entropy, loss, target_count
from composer.train.validation import classes_told


class Fixed(nn.Module):
    """Says the same, whatever it is asked."""

    def __init__(self, logits, losses=None, task="causal_lm"):
        super().__init__()
        self.logits = nn.Parameter(logits)
        self.own = losses or {}
        self.recipe = SimpleNamespace(name="fixed", task=task)

    def forward(self, tokens, valid=None):
        return SimpleNamespace(logits=self.logits, losses=self.own)


@pytest.fixture
def case():
    """Logits [B, T, V] of 2 × 5 positions over 7 tokens, and the tokens [B, T]."""
    torch.manual_seed(0)
    return torch.randn(2, 5, 7, dtype=torch.float64), torch.randint(7, (2, 5))


def nats(logits, token):
    """Return minus the logarithm of softmax, written out."""
    return float(-(logits[token] - logits.exp().sum().log()))


def test_each_position_is_asked_for_the_next_token(case):
    """The mean over the four positions that have a next one."""
    logits, tokens = case
    expected = [nats(logits[b, t], tokens[b, t + 1]) for b in range(2) for t in range(4)]
    assert float(loss(Fixed(logits), {"tokens": tokens}).total.detach()) == pytest.approx(sum(expected) / 8, abs=1e-6)


def test_given_targets_are_taken_where_they_stand(case):
    """Aligned targets are not shifted, and -100 asks for nothing."""
    logits, tokens = case
    targets = tokens.clone()
    targets[0, :3] = -100
    expected = [nats(logits[b, t], tokens[b, t]) for b in range(2) for t in range(5) if (b, t) not in [(0, 0), (0, 1), (0, 2)]]
    batch = {"tokens": tokens, "targets": targets}
    assert target_count(batch, "causal_lm") == 7
    assert float(loss(Fixed(logits), batch).total.detach()) == pytest.approx(sum(expected) / 7, abs=1e-6)


def test_padding_neither_asks_nor_answers(case):
    """Left and right padding: only pairs of real neighbors count."""
    logits, tokens = case
    valid = torch.tensor([[False, False, True, True, True], [True, True, True, False, False]])
    pairs = [(0, 2), (0, 3), (1, 0), (1, 1)]
    expected = sum(nats(logits[b, t], tokens[b, t + 1]) for b, t in pairs) / 4
    assert float(loss(Fixed(logits), {"tokens": tokens, "valid": valid}).total.detach()) == pytest.approx(expected, abs=1e-6)


def test_smoothing_spreads_a_share_of_each_target_evenly(case):
    """(1 - s) of the target's nats and s of the mean over the vocabulary."""
    logits, tokens = case
    expected = 0.0
    for b in range(2):
        for t in range(4):
            every = [nats(logits[b, t], v) for v in range(7)]
            expected += 0.8 * every[tokens[b, t + 1]] + 0.2 * sum(every) / 7
    assert float(loss(Fixed(logits), {"tokens": tokens}, label_smoothing=0.2).total.detach()) == pytest.approx(expected / 8)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("ignored", [0, 3, 10])
def test_a_known_number_of_targets_changes_nothing(case, smoothing, ignored):
    """Neither the loss nor its gradient, to the bit, also of a batch that asks for nothing."""
    logits, targets = case[0].float(), case[1].flatten()
    targets[:ignored] = -100
    found = []
    for count in (None, 10 - ignored):
        scores = logits.clone().requires_grad_()
        total = cross_entropy(scores, targets.view(2, 5), smoothing, count)
        total.backward()
        found.append((total.detach(), scores.grad))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    assert ignored < 10 or float(found[1][0]) == 0


def test_losses_of_the_recipe_are_added_under_their_names(case):
    """The total is the sum of the parts."""
    logits, tokens = case
    model = Fixed(logits, {"balance": torch.tensor(0.25)})
    total, by_name = loss(model, {"tokens": tokens})
    assert set(by_name) == {"causal_lm", "balance"}
    assert float(total.detach()) == pytest.approx(float(by_name["causal_lm"].detach()) + 0.25)


def test_a_batch_of_nothing_but_padding_adds_nothing(case):
    """Zero, and a gradient of zeros."""
    logits, tokens = case
    model = Fixed(logits)
    value = loss(model, {"tokens": tokens, "valid": torch.zeros(2, 5, dtype=torch.bool)}).total
    value.backward()
    assert float(value.detach()) == 0
    assert torch.equal(model.logits.grad, torch.zeros_like(logits))


def test_half_precision_logits_are_summed_in_full(case):
    """The loss of bf16 logits is the float32 loss of the same numbers."""
    logits, tokens = case
    rounded = logits.bfloat16()
    low, full = (loss(Fixed(x), {"tokens": tokens}).total for x in (rounded, rounded.float()))
    assert low.dtype == torch.float32
    assert torch.equal(low, full)


def test_a_recipe_without_task_or_losses_cannot_be_trained(case):
    """There is nothing to minimize."""
    logits, tokens = case
    with pytest.raises(TrainingError, match="nothing to train"):
        loss(Fixed(logits, task=None), {"tokens": tokens})


HEADS = {"masked_lm": ("labels", (3, 5)), "token_classification": ("labels", (3, 5)), "sequence_classification": ("label", (3,))}


@pytest.mark.parametrize("task", HEADS)
def test_the_loss_of_a_task_is_torchs_cross_entropy_with_its_targets(task):
    """Targets of −100 ask for nothing, and are no input of the model."""
    pooled = "  pool: {type: pool, mode: mean, in: embed}\n" if task == "sequence_classification" else ""
    head = f"recipe: r\ntask: {task}\ninputs: {{tokens: 'int[batch, time]'}}\ngraph:\n"
    embed = "  embed: {type: embedding, vocab: 8, dim: 4}\n"
    model = composer.load(f"{head}{embed}{pooled}  head: {{type: linear, out: 8}}\noutputs: {{logits: head}}\n").compile(seed=0)
    name, shape = HEADS[task]
    tokens, targets = torch.randint(8, (3, 5)), torch.randint(8, shape)
    targets.view(-1)[1] = -100
    found = composer.loss(model, {"tokens": tokens, name: targets})
    expected = F.cross_entropy(model(tokens).logits.reshape(-1, 8), targets.reshape(-1))
    torch.testing.assert_close(found.total, expected)
    assert list(found.by_name) == [task]
    with pytest.raises(TrainingError, match=f"a batch of {task} needs `{name}`"):
        composer.loss(model, {"tokens": tokens})


def test_images_are_classified_too():
    """By their own name."""
    recipe = """
recipe: r
task: image_classification
inputs: {image: "float[batch, channels, height, width]"}
graph:
  patches: {type: patch_embedding, patch_size: 2, dim: 4}
  pool: {type: pool, mode: first}
  head: {type: linear, out: 3}
outputs: {logits: head}
""".replace("channels, height, width", "3, 4, 4")
    model = composer.load(recipe).compile(seed=0)
    image, label = torch.randn(2, 3, 4, 4), torch.tensor([2, 0])
    expected = F.cross_entropy(model(image).logits, label)
    torch.testing.assert_close(composer.loss(model, {"image": image, "label": label}).total, expected)


def test_an_encoder_has_no_loss_of_its_own():
    """It says so."""
    recipe = "recipe: r\ntask: encoder\ninputs: {x: 'float[batch, 4]'}\ngraph: {a: {type: linear, out: 3}}\n"
    with pytest.raises(TrainingError, match="nothing to train"):
        composer.loss(composer.load(recipe).compile(), {"x": torch.randn(2, 4)})


@pytest.mark.parametrize(("target", "told"), [("int[batch]", [("scores", "y")]), ("float[batch, 4]", [])])
def test_a_target_of_probabilities_tells_no_class(target, told):
    """Accuracy is of classes alone."""
    inputs = f'{{x: "float[batch, 8]", y: "{target}"}}'
    graph = "graph: {scores: {type: linear, out: 4, in: x}}\noutputs: {scores: scores}"
    losses = "losses: {loss: {type: cross_entropy, in: scores, target: y}}"
    assert classes_told(composer.load(f"recipe: r\ninputs: {inputs}\n{graph}\n{losses}").compile(seed=0)) == told
