"""Noise and masks of chance: what is drawn, when, and that a seed repeats it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import composer
from composer.decode import GREEDY, Request, cached, generate, session, uncached
from composer.verify.verification import verify
from tests.blocks.alone import recipe, refusal

STREAM = "float[batch, time, 64]"
KINDS = {
    "type: normal, mean: 2, std: 0.5": (2.0, 0.5, 2.0),
    "type: uniform, low: -1, high: 3": (1.0, 4 / 12**0.5, 1.0),
    "type: bernoulli, p: 0.3": (0.3, 0.21**0.5, 1.0),
    "type: bernoulli, p: 0.3, otherwise: false": (0.3, 0.21**0.5, 0.0),
}


@pytest.mark.parametrize("node", KINDS)
def test_numbers_have_their_distribution(node: str) -> None:
    """Mean and standard deviation of 64,000 of them, in the dtype of the stream."""
    mean, std, _ = KINDS[node]
    model = recipe(node, x=STREAM).compile(seed=0, dtype=torch.float64).train()
    torch.manual_seed(0)
    y = model(torch.zeros(20, 50, 64, dtype=torch.float64))[0]
    assert y.dtype == (torch.bool if "bernoulli" in node else torch.float64)
    assert y.double().mean().item() == pytest.approx(mean, abs=0.02)
    assert y.double().std().item() == pytest.approx(std, rel=0.02)
    assert (y[0] != y[1]).any()
    if "uniform" in node:
        assert -1 <= y.min() < -0.99 and 2.99 < y.max() < 3


@pytest.mark.parametrize("node", KINDS)
def test_a_seed_repeats_them(node: str) -> None:
    """As it repeats dropout; without one, every call draws anew."""
    model = recipe(node, x=STREAM).compile(seed=0).train()
    x = torch.zeros(2, 3, 64)

    def drawn(seed: int | None) -> torch.Tensor:
        if seed is not None:
            torch.manual_seed(seed)
        return model(x)[0]

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    assert not torch.equal(drawn(None), drawn(None))


@pytest.mark.parametrize("node", KINDS)
def test_in_evaluation_they_are_off(node: str) -> None:
    """Unless they are always drawn: then two calls differ there too."""
    x = torch.zeros(2, 3, 64)
    model = recipe(node, x=STREAM).compile(seed=0).eval()
    assert torch.equal(model(x)[0].double(), torch.full((2, 3, 64), KINDS[node][2], dtype=torch.float64))
    always = recipe(f"{node}, during: always", x=STREAM).compile(seed=0).eval()
    assert not torch.equal(always(x)[0], always(x)[0])


@pytest.mark.parametrize(
    ("axes", "shape"), [("[batch]", (2,)), ("[time]", (3,)), ("[last, batch]", (64, 2)), ("[]", ())], ids=str
)
def test_they_have_the_axes_that_are_named(axes: str, shape: tuple[int, ...]) -> None:
    """In training and where nothing is drawn."""
    for node in KINDS:
        model = recipe(f"{node}, axes: {axes}", x=STREAM).compile(seed=0)
        for training in (True, False):
            assert model.train(training)(torch.zeros(2, 3, 64))[0].shape == shape


def test_a_mask_of_chance_hides_keys() -> None:
    """Attention reads only the keys that are drawn, in training alone."""
    text = f"""recipe: forgetful
inputs: {{x: "{STREAM}"}}
graph:
  seen: {{type: bernoulli, p: 0.5, axes: [batch, time], in: x}}
  attn: {{type: attention, heads: 2, mask: valid(seen), in: x}}
outputs: {{weights: attn.weights, seen: seen, y: attn}}
"""
    model = composer.load(text).compile(seed=0)
    x = torch.randn(4, 9, 64)
    torch.manual_seed(1)
    weights, seen, _, _ = model.train()(x)
    assert torch.equal(weights.sum((1, 2)) > 0, seen)
    assert seen.any() and not seen.all()
    assert (model.eval()(x).weights > 0).all()


TEXT = """recipe: noisy
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  noise: {type: normal, std: 2, during: WHEN}
  noisy: {type: add, in: [embed, noise]}
  row: {type: uniform, low: 0.5, axes: [batch], during: WHEN}
  scaled: {type: multiply, in: [noisy, row]}
  body:
    type: residual
    norm: rmsnorm
    body:
      graph:
        drawn: {type: bernoulli, p: 0.5, during: WHEN, axes: [batch, time]}
        attn: {type: attention, heads: 2, mask: causal and valid(drawn), in: input}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


@pytest.mark.parametrize("when", ["training", "always"])
def test_while_a_text_is_written_they_are_off(when: str) -> None:
    """With a cache and without: the same text, and the logits of the model without noise."""
    model = composer.load(TEXT.replace("WHEN", when)).compile(seed=0).eval()
    still = composer.load(TEXT.replace("WHEN", "training")).compile(seed=0).eval()
    still.load_state_dict(model.state_dict())
    request = Request(max_new_tokens=8, sampling=GREEDY)
    readings: list[Callable] = [cached, uncached]  # type: ignore[type-arg]  # a protocol
    written = [generate(model, [[1, 2, 3]], request, reading=reading) for reading in readings]
    assert written[0] == written[1] == generate(still, [[1, 2, 3]], request)
    tokens = torch.randint(0, 11, (2, 6))
    with torch.no_grad(), session(model):
        logits = torch.cat([model(tokens=tokens[:, :2]).logits, model(tokens=tokens[:, 2:]).logits], 1)
    torch.testing.assert_close(logits, still(tokens=tokens).logits, rtol=1e-4, atol=1e-5)
    assert torch.equal(model(tokens=tokens).logits, model(tokens=tokens).logits) == (when == "training")


@pytest.mark.parametrize("when", ["training", "always"])
def test_what_is_declared_of_them_is_true(when: str) -> None:
    """Every property of a model that can be tried, with the numbers of one seed."""
    verified = verify(composer.load(TEXT.replace("WHEN", when)))
    assert verified.ok, verified
    assert {"cached", "causal", "repeatable"} <= {*verified.held}


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("type: normal, std: 0", "0: `std` must be above 0, not 0"),
        ("type: uniform, low: 2, high: 1", "1: no number is from 2 to 1"),
        ("type: bernoulli, p: 1.5", "1.5: `p` must be at most 1, not 1.5"),
        ("type: normal, axes: [batch, width]", "width: [batch, time, 64] has no axis `width`"),
        ("type: normal, axes: [time, time]", "time: the axis `time` is named twice"),
        ("type: normal, during: night", "night: `night` is not one of training, always"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_stands(node: str, said: str) -> None:
    """The field that is wrong."""
    assert refusal(node, "x", x=STREAM) == said
