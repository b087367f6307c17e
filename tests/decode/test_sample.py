"""Sampling against plain loops over small distributions, and at its limits."""

from __future__ import annotations

import math

import pytest
import torch

from composer.decode import GREEDY, DecodeError, Sampling, draw, probabilities

INFINITY = math.inf


def by_hand(scores, temperature, top_k, top_p):
    """Return the documented order, one token at a time: temperature, top-k, top-p, each followed by making the sum 1."""
    chances = {token: math.exp(score / temperature) for token, score in enumerate(scores)}
    order = sorted(chances, key=lambda token: (-scores[token], token))[:top_k]
    total = sum(chances[token] for token in order)
    kept, mass = [], 0.0
    for token in order:
        if kept and mass >= top_p:
            break
        kept.append(token)
        mass += chances[token] / total
    total = sum(chances[token] for token in kept)
    return [chances[token] / total if token in kept else 0.0 for token in range(len(scores))]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("top_k", [None, 1, 3, 50])
@pytest.mark.parametrize("top_p", [0.0, 0.37, 0.9, 1.0])
def test_the_distribution_is_the_loops(temperature, top_k, top_p):
    """All three together, on rows with and without equal scores."""
    logits = torch.tensor([[0.3, -1.2, 2.1, 0.3, 2.1, -4.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [9.0, 0.1, 0.2, 0.4, -9.0, 3.0]])
    found = probabilities(logits, Sampling(temperature=temperature, top_k=top_k, top_p=top_p))
    for row, scores in zip(found.tolist(), logits.double().tolist(), strict=True):
        assert row == pytest.approx(by_hand(scores, temperature, top_k, top_p), abs=1e-12)


def test_temperature_zero_is_the_best_token_and_the_first_of_equals():
    """Exactly, whatever else is asked for."""
    logits = torch.tensor([[1.0, 7.0, 7.0, -2.0], [-math.inf, -3.0, -5.0, -4.0]])
    for sampling in (GREEDY, Sampling(temperature=0, top_k=2, top_p=0.9)):
        assert probabilities(logits, sampling).tolist() == [[0, 1, 0, 0], [0, 1, 0, 0]]


def test_temperature_infinity_is_even_over_what_is_kept():
    """All tokens, the best three, or as many as make the mass; what is forbidden stays forbidden."""
    logits = torch.tensor([[1.0, 700.0, -700.0, 2.0, -math.inf]])
    assert probabilities(logits, Sampling(temperature=INFINITY)).tolist() == [[0.25, 0.25, 0.25, 0.25, 0]]
    thirds = probabilities(logits, Sampling(temperature=INFINITY, top_k=3))[0].tolist()
    assert thirds == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3, 0])
    assert probabilities(logits, Sampling(temperature=INFINITY, top_p=0.5)).tolist() == [[0, 0.5, 0, 0.5, 0]]


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-6, 1e6, 1e300])
def test_temperatures_near_their_limits_do_not_overflow(temperature):
    """They come to the limit's own numbers, also for huge scores."""
    logits = torch.tensor([[3e38, -3e38, 0.0], [2.0, 1.0, 3.0]])
    limit = GREEDY if temperature < 1 else Sampling(temperature=INFINITY)
    rows = slice(None) if temperature != 1e6 else slice(1, 2)  # 3e38 is still far from 1e6
    found = probabilities(logits, Sampling(temperature=temperature))[rows]
    torch.testing.assert_close(found, probabilities(logits, limit)[rows], atol=1e-5, rtol=0)


def test_top_p_keeps_the_fewest_tokens_with_the_mass():
    """Exactly the mass is enough; a hair more takes one more; none at all still keeps the best."""
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    kept = {p: int((probabilities(logits, Sampling(top_p=p)) > 0).sum()) for p in (0.0, 0.4, 0.5, 0.51, 0.75, 0.76, 0.9, 1.0)}
    assert kept == {0.0: 1, 0.4: 1, 0.5: 1, 0.51: 2, 0.75: 2, 0.76: 3, 0.9: 4, 1.0: 4}


def test_drawn_tokens_occur_as_often_as_their_probability_says():
    """20 000 draws within four standard deviations; the same seed draws the same."""
    logits = torch.tensor([2.0, 0.5, -1.0, 1.0]).expand(20_000, 4)
    sampling = Sampling(temperature=0.8, top_k=3)
    drawn = draw(logits, sampling, torch.Generator().manual_seed(6))
    expected = torch.tensor(by_hand([2.0, 0.5, -1.0, 1.0], 0.8, 3, 1.0))
    deviation = (expected * (1 - expected) / 20_000).sqrt()
    assert ((drawn.bincount(minlength=4) / 20_000 - expected).abs() <= 4 * deviation).all()
    assert torch.equal(drawn, draw(logits, sampling, torch.Generator().manual_seed(6)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"temperature": -0.1}, "`temperature` is -0.1"), ({"temperature": math.nan}, "`temperature` is nan"),
     ({"top_k": 0}, "`top_k` is 0"), ({"top_p": 1.1}, "`top_p` is 1.1"), ({"top_p": math.nan}, "`top_p` is nan")],
)  # fmt: skip
def test_a_way_to_sample_that_means_nothing_is_refused(wrong, message):
    """With the number in it."""
    with pytest.raises(DecodeError, match=message):
        Sampling(**wrong)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("sampling", [Sampling(), GREEDY, Sampling(top_k=1), Sampling(top_p=0.5)])
def test_scores_that_are_no_numbers_are_refused(wrong, sampling):
    """A diverged model says so, instead of writing nonsense."""
    logits = torch.tensor([[1.0, 2.0], [1.0, wrong]])
    with pytest.raises(DecodeError, match="not finite"):
        probabilities(logits, sampling)
    with pytest.raises(DecodeError, match="not finite"):
        draw(logits, sampling, torch.Generator())


def by_sorting(logits, sampling):
    """Return the distribution from a stable sort of the whole vocabulary."""
    scores, tokens = logits.double().sort(dim=-1, descending=True, stable=True)
    weights = ((scores - scores[..., :1]) / sampling.temperature).exp()
    weights[..., sampling.top_k :] = 0
    weights /= weights.sum(-1, keepdim=True)
    weights[..., 1:] = weights[..., 1:].where(weights.cumsum(-1)[..., :-1] < sampling.top_p, 0)
    weights /= weights.sum(-1, keepdim=True)
    return torch.zeros_like(weights).scatter(-1, tokens, weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("top_k", [1, 2, 40, 999, 1000, 5000])
@pytest.mark.parametrize("top_p", [0.0, 0.5, 0.99, 1.0])
def test_a_large_vocabulary_with_many_equal_scores(dtype, top_k, top_p):
    """Ties at the last place that is kept, scores of −∞, and more axes than rows."""
    torch.manual_seed(0)
    logits = (torch.randn(3, 2, 1000) * 4).round().div(2).to(dtype)
    logits[:, 1, 10:990] = -math.inf  # fewer tokens than are kept
    sampling = Sampling(temperature=0.7, top_k=top_k, top_p=top_p)
    found = probabilities(logits, sampling)
    torch.testing.assert_close(found, by_sorting(logits, sampling), rtol=0, atol=1e-12)
    assert found.equal(torch.stack([probabilities(row, sampling) for row in logits.flatten(0, 1)]).reshape(3, 2, 1000))
    best = by_sorting(logits, Sampling(top_k=1)).argmax(-1)
    assert draw(logits[:, 0], GREEDY, torch.Generator()).equal(best[:, 0])
    assert probabilities(logits, GREEDY).argmax(-1).equal(best)
