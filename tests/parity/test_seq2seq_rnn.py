"""The translator of Bahdanau, Cho and Bengio against its equations, one word after the other, with the same weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import composer
from composer.decode import GREEDY, Request, Sampling, Search, beam_search, cached, generate
from composer.decode.session import session

VOCAB, EMBED, HIDDEN, ALIGN, MAXOUT = 13, 5, 6, 7, 4
B, S, T = 3, 5, 4


@pytest.fixture
def model() -> Any:
    """Every parameter moved at random, in float64."""
    sizes = {"vocab": VOCAB, "d_embed": EMBED, "hidden": HIDDEN, "align": ALIGN, "maxout": MAXOUT}
    made = composer.load("seq2seq_rnn", overrides=sizes).compile(seed=0).double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=1.5)
    return made


def words(rows: int, length: int, seed: int) -> torch.Tensor:
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed))


def by_loop(model: Any, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Compute the logits sentence by sentence, word by word, with torch's own recurrent layer and cell."""
    w = dict(model.named_parameters())
    encoder = nn.GRU(EMBED, HIDDEN, bidirectional=True).double()
    encoder.load_state_dict({k.removeprefix("encoder.states."): v for k, v in w.items() if k.startswith("encoder.states.")})
    cell = nn.GRUCell(EMBED + 2 * HIDDEN, HIDDEN).double()
    cell.load_state_dict({k.removeprefix("decoder.new."): v for k, v in w.items() if k.startswith("decoder.new.")})
    rows = []
    for sentence, written in zip(source, target, strict=True):
        memory, _ = encoder(w["encoder.embed.weight"][sentence])  # [S, 2 H]
        state = torch.tanh(w["bridge.weight"] @ memory[0, HIDDEN:])
        logits = []
        for word in written:
            vector = w["embed.weight"][word]
            energies = [
                w["decoder.look.v.weight"][0]
                @ torch.tanh(w["decoder.look.q.weight"] @ state + w["decoder.look.k.weight"] @ place)
                for place in memory
            ]
            shares = torch.stack(energies).exp()
            read = (shares / shares.sum()) @ memory
            state = cell(torch.cat([vector, read])[None], state[None])[0]
            pairs = w["pairs.weight"] @ torch.cat([state, vector, read]) + w["pairs.bias"]
            larger = torch.stack([pairs[2 * n : 2 * n + 2].max() for n in range(MAXOUT)])
            logits.append(w["head.weight"] @ larger + w["head.bias"])
        rows.append(torch.stack(logits))
    return torch.stack(rows)


def test_logits_are_those_of_the_equations(model: Any) -> None:
    """And the gradients of every parameter."""
    source, target = words(B, S, 2), words(B, T, 3)
    expected = by_loop(model, source, target)
    torch.testing.assert_close(model(source, target).logits, expected, rtol=0, atol=1e-12)
    copied = {name for name, _ in model.named_parameters() if "states" in name or "new" in name}
    expected.sin().sum().backward()
    own = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if name not in copied}
    model.zero_grad()
    model(source, target).logits.sin().sum().backward()
    for name, gradient in own.items():
        torch.testing.assert_close(model.get_parameter(name).grad, gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("side", ["right", "left"])
@torch.no_grad()
def test_a_padded_sentence_is_the_sentence_alone(model: Any, side: str) -> None:
    """Read in both directions, from its last word back to its first, and attended to."""
    source, target = words(B, S, 2), words(B, T, 3)
    valid = torch.arange(S) < torch.tensor([[3], [S], [1]])
    valid = valid if side == "right" else valid.flip(1)
    alone = [by_loop(model, one[real][None], it[None]) for one, real, it in zip(source, valid, target, strict=True)]
    torch.testing.assert_close(model(source, target, source_valid=valid).logits, torch.cat(alone), rtol=0, atol=1e-12)
    with session(model):
        pieces = [model(source, piece, source_valid=valid).logits for piece in target.split([1, T - 1], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), torch.cat(alone), rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_sentence_is_continued_at_every_split(model: Any) -> None:
    """What was read of the source is kept, and the state goes on."""
    source, target = words(B, S, 2), words(B, T, 3)
    whole = model(source, target).logits
    for split in range(1, T):
        with session(model):
            pieces = [model(source, piece).logits for piece in target.split([split, T - split], dim=1)]
        torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=0.9)])
def test_translations_are_written_with_a_cache_and_without(model: Any, sampling: Sampling) -> None:
    """Each of its own source, sampled or by beams."""
    encoder_inputs, prompts = {"source": words(B, S, 2)}, [[1]] * B
    request = Request(max_new_tokens=10, sampling=sampling)
    plain = generate(model, prompts, request, encoder_inputs=encoder_inputs, seed=3)
    assert generate(model, prompts, request, encoder_inputs=encoder_inputs, seed=3, reading=cached) == plain
    assert len({tuple(answer) for answer in plain}) > 1
    search = Search(num_beams=3, max_new_tokens=8, stop=frozenset({2, 5}))
    several = beam_search(model, prompts, search, encoder_inputs=encoder_inputs)
    again = beam_search(model, prompts, search, encoder_inputs=encoder_inputs, reading=cached)
    assert [[text.tokens for text in each] for each in again] == [[text.tokens for text in each] for each in several]
