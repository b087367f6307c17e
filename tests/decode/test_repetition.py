"""Penalties on repetition and the smallest probability, against the processors of transformers and plain loops."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

import composer
from composer.decode import GREEDY, DecodeError, Request, Sampling, Slide, cached, draw, generate, next_token, probabilities

VOCAB = 23
TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": VOCAB, "context": 64}


@pytest.fixture(scope="module")
def model():
    """A GPT-2 with large weights, so that its tokens differ in probability."""
    made = composer.load("gpt2", TINY).compile(seed=0).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(3)
    return made


def processed(logits, text, sampling):
    """Return the probabilities that transformers draws from, with its own processors in its own order."""
    logits_process = pytest.importorskip("transformers.generation.logits_process")
    chain = logits_process.LogitsProcessorList()
    if sampling.repetition_penalty != 1:
        chain.append(logits_process.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    if sampling.no_repeat_ngram is not None:
        chain.append(logits_process.NoRepeatNGramLogitsProcessor(sampling.no_repeat_ngram))
    chain.append(logits_process.TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k is not None:
        chain.append(logits_process.TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1:
        chain.append(logits_process.TopPLogitsWarper(sampling.top_p))
    if sampling.min_p:
        chain.append(logits_process.MinPLogitsWarper(sampling.min_p))
    return chain(text, logits.double()).softmax(-1)


@pytest.mark.parametrize("penalty", [1.0, 1.7, 0.6])
@pytest.mark.parametrize("ngram", [None, 1, 2, 3])
@pytest.mark.parametrize("kept", [{}, {"min_p": 0.2}, {"top_k": 7, "top_p": 0.8, "min_p": 0.3, "temperature": 0.7}])
def test_the_distribution_is_that_of_transformers(penalty, ngram, kept):
    """Each alone and all together, on texts with and without repetitions."""
    random = torch.Generator().manual_seed(4)
    logits = 2 * torch.randn(5, VOCAB, generator=random)
    text = torch.randint(9, (5, 14), generator=random)
    text[2] = torch.arange(14)
    text[3, -4:] = torch.tensor([3, 4, 3, 4])
    sampling = Sampling(repetition_penalty=penalty, no_repeat_ngram=ngram, **({"temperature": 1.0} | kept))
    found = probabilities(logits, sampling, text)
    torch.testing.assert_close(found, processed(logits, text, sampling), atol=1e-6, rtol=0)
    drawn = draw(logits, sampling, torch.Generator().manual_seed(1), text)
    assert (found.gather(1, drawn[:, None]) > 0).all()


@pytest.mark.parametrize(
    ("sampling", "theirs"),
    [(Sampling(temperature=0, repetition_penalty=1.5), {"repetition_penalty": 1.5}),
     (Sampling(temperature=0, no_repeat_ngram=2), {"no_repeat_ngram_size": 2}),
     (Sampling(temperature=0, no_repeat_ngram=3, repetition_penalty=1.1),
      {"no_repeat_ngram_size": 3, "repetition_penalty": 1.1})],
)  # fmt: skip
@pytest.mark.slow
def test_a_whole_text_is_that_of_transformers(model, sampling, theirs, tmp_path):
    """Token by token, of the same model as a published folder; without the penalty it is another text."""
    transformers = pytest.importorskip("transformers")
    composer.published.export_folder(model, tmp_path / "gpt2")
    published = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gpt2")
    wanted = published.generate(
        torch.tensor([[1, 2, 3]]), max_new_tokens=30, do_sample=False, eos_token_id=None, pad_token_id=0, **theirs
    )
    found = generate(model, [[1, 2, 3]], Request(max_new_tokens=30, sampling=sampling), reading=cached)
    assert found == wanted[:, 3:].tolist()
    assert found != generate(model, [[1, 2, 3]], Request(max_new_tokens=30, sampling=GREEDY), reading=cached)


def test_no_sequence_occurs_twice(model):
    """In the whole text, also where the window has moved on from its beginning."""
    sampling = Sampling(temperature=0.2, no_repeat_ngram=2)
    request = Request(max_new_tokens=60, sampling=sampling, limit=Slide(8))
    text = [1, 2, 3, *generate(model, [[1, 2, 3]], request, reading=cached, seed=2)[0]]
    pairs = [*pairwise(text)]
    assert len({*pairs}) == len(pairs) == 62


def test_tokens_beyond_the_vocabulary_are_no_reason_to_fail(model):
    """A prompt may begin with a mark that is never drawn."""
    sampling = Sampling(repetition_penalty=2.0, no_repeat_ngram=1)
    request = Request(max_new_tokens=9, sampling=sampling, vocabulary=12)
    (text,) = generate(model, [[20, 3]], request, reading=cached)
    assert len({*text}) == 9 and not {*text} & {3, *range(12, VOCAB)}


def test_what_cannot_be_done_is_refused(model):
    """No token left, no text given, and numbers that mean nothing."""
    with pytest.raises(DecodeError, match="every token that the model allows would repeat a sequence of 1 tokens"):
        generate(model, [[1]], Request(max_new_tokens=VOCAB, sampling=Sampling(no_repeat_ngram=1)), reading=cached)
    with pytest.raises(DecodeError, match="need the text so far"):
        draw(torch.zeros(1, 3), Sampling(repetition_penalty=2), torch.Generator())
    for wrong in ({"min_p": 1.1}, {"min_p": -0.1}, {"repetition_penalty": 0}, {"no_repeat_ngram": 0}):
        with pytest.raises(DecodeError, match=f"`{next(iter(wrong))}` is "):
            Sampling(**wrong)


def test_the_next_token_is_drawn_from_the_table(model):
    """The model's own softmax, and what sampling leaves of it; a long prompt is cut as in generation."""
    tokens = [1, 5, 5, 2]
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[:, -1]
    torch.testing.assert_close(next_token(model, tokens), logits[0].double().softmax(-1))
    sampling = Sampling(top_k=4, repetition_penalty=1.3)
    assert torch.equal(next_token(model, tokens, sampling), probabilities(logits, sampling, torch.tensor([tokens]))[0])
    assert torch.equal(next_token(model, [7, 7, *tokens], limit=Slide(5)), next_token(model, tokens[-2:]))
    assert next_token(model, tokens, vocabulary=6).shape == (6,)
    with pytest.raises(DecodeError, match="prompt is empty"):
        next_token(model, [])
