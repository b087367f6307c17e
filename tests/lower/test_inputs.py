"""A call is held against the inputs that the recipe declares."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import session
from composer.lower import Model
from composer.lower.model_inputs import InputError

TOKENS = torch.tensor([[1, 2, 3], [4, 5, 6]])
VALID = torch.ones(2, 3, dtype=torch.bool)
TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "vocab": 11, "context": 16}


@pytest.fixture(scope="module")
def gpt2() -> Model:
    """Return a small model with tokens, int[batch, time], and optional flags, bool[batch, time]."""
    return composer.load("gpt2", TINY).compile(seed=0).eval()


@pytest.mark.parametrize(
    ("tokens", "valid", "says"),
    [
        (TOKENS, VALID.long(), r"`valid` of gpt2 takes bool\[batch, time\], and was given int64\[2, 3\]: pass `valid.bool\(\)`"),
        (TOKENS, VALID.float(), r"was given float32\[2, 3\]: pass `valid.bool\(\)`"),
        (TOKENS[0], None, r"`tokens` .* was given int64\[3\]: .* such as `tokens\[None\]` for one row"),
        (TOKENS, VALID[:1], r"`valid` .* was given bool\[1, 3\]: its batch is 1, and that of `tokens` is 2"),
    ],
)
def test_an_input_that_is_not_as_declared(gpt2: Model, tokens: torch.Tensor, valid: torch.Tensor | None, says: str) -> None:
    """Torch would broadcast it, add it as a bias, or name neither the input nor the recipe."""
    for arguments, named in (((tokens, valid), {}), ((), {"tokens": tokens, "valid": valid})):
        with pytest.raises(InputError, match=says):
            gpt2(*arguments, **named)


def test_a_session_takes_flags_of_the_next_tokens_alone(gpt2: Model) -> None:
    """Its own check of lengths holds; the kind of numbers is held as in any call."""
    with session(gpt2):
        gpt2(TOKENS, valid=VALID)
        gpt2(TOKENS[:, :1], valid=VALID[:, :1])
        with pytest.raises(InputError, match=r"pass `valid\.bool\(\)`"):
            gpt2(TOKENS[:, :1], valid=VALID[:, :1].long())
    with pytest.raises(InputError, match="its time is 1, and that of `tokens` is 3"):
        gpt2(TOKENS, valid=VALID[:, :1])


def test_what_is_held_is_neither_the_width_of_numbers_nor_the_machinery_of_torch(gpt2: Model) -> None:
    """Halves, autocast, transforms, and graphs without breaks are as before."""
    linear = 'recipe: one\nlanguage: 1\ninputs: {x: "float[batch, 8]"}\ngraph: {y: {type: linear, out: 8}}\n'
    halves = composer.load(linear).compile(dtype=torch.bfloat16)
    x = torch.ones(2, 8, dtype=torch.bfloat16)
    assert torch.func.vmap(lambda row: halves(row[None]).y)(x).shape == (2, 1, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        gpt2(TOKENS.int(), valid=VALID)
    expected = gpt2(TOKENS, valid=VALID).logits
    whole = torch.compile(gpt2, backend="eager", fullgraph=True)
    torch.testing.assert_close(whole(TOKENS, valid=VALID).logits, expected)
    with pytest.raises(InputError, match=r"pass `valid\.bool\(\)`"):
        torch.compile(gpt2, backend="eager")(TOKENS, valid=VALID.float())
