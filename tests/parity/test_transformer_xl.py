"""Transformer-XL against a reading of its paper, one query at a time, segment after segment."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import composer
from composer.decode import session
from tests.parity.readings_of_memories import transformer_xl

VOCAB, KEPT = 11, 5
SIZES = {"vocab": VOCAB, "d_model": 12, "n_layers": 2, "n_heads": 3, "hidden": 10, "n_memory": KEPT, "reach": 4}
B, T = 3, 10


@pytest.fixture
def model() -> Any:
    """Every parameter moved at random, in float64."""
    made = composer.load("transformer_xl", SIZES).compile(seed=0).double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.5)
    return made


def words(rows: int = B) -> Tensor:
    return torch.randint(VOCAB, (rows, T), generator=torch.Generator().manual_seed(2))


def in_segments(model: Any, tokens: Tensor, valid: Tensor, lengths: list[int]) -> tuple[Tensor, Any]:
    """Return the logits of texts, of which each segment is given what the one before returned, and what the last one returns."""
    out, logits = None, []
    for some, real in zip(tokens.split(lengths, 1), valid.split(lengths, 1), strict=True):
        before = {} if out is None else {"memory": out.memory, "remembered": out.remembered}
        out = model(some, valid=real, **before)
        logits.append(out.logits)
    return torch.cat(logits, 1), out


def lengths_of(padding: str) -> Tensor:
    valid = torch.arange(T) < torch.tensor([[T], [8], [5]])
    return {"none": torch.ones(B, T, dtype=torch.bool), "right": valid, "left": valid.flip(1)}[padding]


@torch.no_grad()
@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize("lengths", [[T], [4, 3, 3], [1, 7, 2]], ids=["one", "short", "longer than the memory"])
def test_segments_see_the_memory_of_those_before(model: Any, lengths: list[int], padding: str) -> None:
    """A first segment remembers nothing; the memory holds what each layer read, and may reach over several segments."""
    tokens, valid, w = words(), lengths_of(padding), model.state_dict()
    logits, last = in_segments(model, tokens, valid, lengths)
    for row in range(B):
        read, memory = transformer_xl(w, tokens[row], valid[row], lengths, kept=KEPT)
        torch.testing.assert_close(logits[row][valid[row]], read[valid[row]], rtol=0, atol=1e-10)
        for layer, states in enumerate(memory):
            there = valid[row, -KEPT:]
            torch.testing.assert_close(last.remembered[row], there)
            torch.testing.assert_close(last.memory[row, layer][there], states[there], rtol=0, atol=1e-10)


def test_gradients_end_at_the_memory(model: Any) -> None:
    """Those of every parameter are the ones of the last segment alone."""
    tokens, valid, w = words(1), torch.ones(1, T, dtype=torch.bool), dict(model.named_parameters(remove_duplicate=False))
    read, _ = transformer_xl(w, tokens[0], valid[0], [6, 4], kept=KEPT)
    read[6:].sin().sum().backward()
    wanted = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    logits, last = in_segments(model, tokens, valid, [6, 4])
    logits[:, 6:].sin().sum().backward()
    assert not last.memory.requires_grad
    for name, gradient in wanted.items():
        torch.testing.assert_close(
            model.get_parameter(name).grad, gradient, rtol=0, atol=1e-10, msg=lambda m, name=name: f"{name}: {m}"
        )


@torch.no_grad()
@pytest.mark.parametrize("padding", ["none", "left"])
def test_a_session_remembers_all_of_its_text(model: Any, padding: str) -> None:
    """In pieces, as segments with a memory without end; and behind a memory that it starts with."""
    tokens, valid, w = words(), lengths_of(padding), model.state_dict()
    with session(model):
        pieces = [
            model(some, valid=real).logits
            for some, real in zip(tokens.split([6, 1, 3], 1), valid.split([6, 1, 3], 1), strict=True)
        ]
    wanted = torch.stack([transformer_xl(w, *row, [6, 1, 3], kept=T)[0] for row in zip(tokens, valid, strict=True)])
    torch.testing.assert_close(torch.cat(pieces, 1)[valid], wanted[valid], rtol=0, atol=1e-10)
    first = model(tokens[:, :4], valid=valid[:, :4])
    before = {"memory": first.memory, "remembered": first.remembered}
    with session(model):
        pieces = [model(tokens[:, i : i + 2], valid=valid[:, i : i + 2], **before).logits for i in range(4, T, 2)]
    whole = model(tokens[:, 4:], valid=valid[:, 4:], **before).logits
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "parameters"),
    [({}, 277_231_820), ({"n_layers": 12, "d_model": 512, "hidden": 2048}, 41_055_436)],
    ids=["24 layers", "12 layers"],
)
def test_sizes_are_those_of_the_paper(sizes: dict[str, int], parameters: int) -> None:
    """277 and 41 million, table 2: five square matrices of attention in each layer, u and v once."""
    d, hidden, layers = sizes.get("d_model", 1024), sizes.get("hidden", 3072), sizes.get("n_layers", 24)
    ffn, norms = 2 * d * hidden + hidden + d, 4 * d
    assert composer.load("transformer_xl", sizes).summary().costs.parameters == parameters
    assert parameters == layers * (5 * d * d + ffn + norms) + 204 * (d + 1) + 2 * d
