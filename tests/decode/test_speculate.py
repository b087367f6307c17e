"""Drafted tokens: the text is that of the model alone, whatever the draft is."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

import composer
from composer.decode import GREEDY, DecodeError, Draft, Refuse, Request, Sampling, Slide, cached, generate, stream
from composer.decode.speculate import accepted_of
from tests.decode.test_batches import PROMPTS, TEXT, written

PLAIN = TEXT.replace("  states: {type: residual, body: {type: gru, hidden: 8}}\n", "").replace(
    "  mix: {type: residual, body: {type: conv1d, out: 8, kernel_size: 3, causal: true}}\n", ""
)


def plain(mask="causal", seed=0):
    """A model whose keys alone are kept."""
    return composer.load(PLAIN.replace("MASK", mask)).compile(seed=seed).double().eval()


MODELS = {"plain": plain, "window": lambda: plain("causal and window(4)"), "states": written}


PENALIZED = Sampling(temperature=0, repetition_penalty=1.3, no_repeat_ngram=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "limit", "sampling", "count"),
    [
        ("plain", Refuse(40), PENALIZED, 4),
        ("window", Slide(9), GREEDY, 4),
        ("states", Refuse(40), GREEDY, 3),
        pytest.param("plain", Slide(9), GREEDY, 1, marks=pytest.mark.exhaustive),
        pytest.param("window", Refuse(40), PENALIZED, 6, marks=pytest.mark.exhaustive),
        pytest.param("states", Slide(9), PENALIZED, 1, marks=pytest.mark.exhaustive),
    ],
)
def test_greedy_text_is_that_of_the_model_alone(kind, limit, sampling, count):
    """With drafts that agree seldom, often and always; whatever either model keeps of a text."""
    model = MODELS[kind]()
    request = Request(max_new_tokens=14, sampling=sampling, limit=limit)
    prompts = [PROMPTS[0], PROMPTS[3], PROMPTS[1]]
    alone = generate(model, prompts, request, reading=cached)
    for other in (plain(seed=1), MODELS["window"](), written(), MODELS[kind]()):
        draft = Draft(other, count)
        assert generate(model, prompts, request, draft=draft) == alone
        assert 0 <= draft.accepted <= draft.proposed
        assert draft.rounds + draft.accepted == 3 * 14
    assert draft.accepted == draft.proposed > 0  # a draft with the same weights


def test_a_draft_with_the_same_distributions_is_always_accepted():
    """Where tokens are sampled, each distribution of the draft has to be held against that of the model at its place."""
    model, draft = written(), Draft(written(), 3)
    (found,) = generate(model, [[1, 2]], Request(max_new_tokens=20, sampling=Sampling(temperature=1.5)), draft=draft)
    assert len(found) == 20 and draft.accepted == draft.proposed == 15


@pytest.mark.slow
def test_what_is_accepted_and_drawn_anew_has_the_distribution_of_the_model():
    """Whatever the distribution of the draft, the first token has that of the model at its place, and so has the second."""
    generator, count = torch.Generator().manual_seed(0), 4000
    logits = torch.tensor([[0.0, 1.0, -1.0, 2.0, -9.0], [1.0, 1.0, 0.5, -9.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    p, q = logits.softmax(-1), torch.tensor([[0.3, 0.1, 0.3, 0.1, 0.2], [0.0, 0.4, 0.3, 0.2, 0.1]], dtype=torch.float64)
    found = [Counter(), Counter()]
    for _ in range(count):
        drafted = torch.multinomial(q, 1, generator=generator).T
        text = torch.cat([torch.tensor([[2, 3]]), drafted], dim=1)
        tokens = accepted_of(logits, list(q), text, Sampling(), text[:, :0], generator)
        for place, token in enumerate(tokens[:2]):
            found[place][token] += 1
    for place in (0, 1):
        total = found[place].total()
        assert total > count / 4
        expected = [total * chance for chance in p[place].tolist()]
        assert sum((found[place][token] - each) ** 2 / each for token, each in enumerate(expected)) < 18.5  # 4 degrees of freedom


def test_a_draft_that_does_not_fit_is_refused():
    """Another vocabulary, the model itself, no tokens."""
    model, request = plain(), Request(max_new_tokens=3)
    larger = composer.load(PLAIN.replace("MASK", "causal").replace("13", "17")).compile(seed=0).eval()
    with pytest.raises(DecodeError, match="the draft chooses among 17 tokens, and the model among 13"):
        generate(model, [[1]], request, draft=Draft(larger))
    assert len(generate(model, [[1]], Request(max_new_tokens=3, vocabulary=13), draft=Draft(larger.double()))[0]) == 3
    with pytest.raises(DecodeError, match="a model cannot draft for itself"):
        generate(model, [[1]], request, draft=Draft(model))
    with pytest.raises(DecodeError, match="the draft has 0 tokens at a time"):
        Draft(model, 0)


def test_a_text_ends_at_its_stop_token_and_leaves_both_models_as_they_were():
    """Also where it is not the last of a round."""
    model, draft = plain().train(), Draft(plain())
    request = Request(max_new_tokens=20, sampling=GREEDY)
    (whole,) = generate(model, [[1, 2]], request)
    stop = next(token for token in whole if whole.index(token) > 1)
    ended = Request(max_new_tokens=20, sampling=GREEDY, stop=frozenset({stop}))
    assert list(stream(model, [1, 2], ended, draft=draft)) == whole[: whole.index(stop)]
    assert model.training and not draft.model.training
    assert generate(model, [[1, 2]], request) == [whole]
