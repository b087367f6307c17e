"""Mamba, Mamba-2 and the recurrences of Qwen3-Next, RecurrentGemma and RWKV, against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import composer
from composer.decode import session
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from tests.parity.reference import REFERENCE, perturbed, published
from tests.parity.test_transformers import PADDING, VOCAB, T, close, real, text

SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "mamba": ("mamba", {"inner": 32, "rank": 3}),
    "mamba with an untied head and every bias": ("mamba", {"inner": 48, "rank": 2, "bias": True, "tied": False}),
    "mamba without a bias of the convolution": ("mamba", {"inner": 16, "rank": 3, "conv_bias": False, "kernel": 2}),
    "mamba2": ("mamba2", {"n_heads": 4, "head_dim": 8, "n_groups": 1}),
    "mamba2 in groups": ("mamba2", {"n_heads": 4, "head_dim": 8, "n_groups": 2, "kernel": 3, "conv_bias": False}),
    "mamba2 with an untied head and every bias": (
        "mamba2",
        {"n_heads": 6, "head_dim": 8, "n_groups": 3, "bias": True, "tied": False},
    ),
}
COMMON = {"vocab": VOCAB, "d_model": 16, "n_layers": 2, "state": 4}


def pair(case: str) -> tuple[Any, Any]:
    """Return the recipe's model and transformers', which computes chunks of four, with one set of weights, all of them moved."""
    name, special = SIZES[case]
    sizes = {**COMMON, **special}
    theirs = perturbed(REFERENCE[name]({**sizes, "chunk_size": 4}))
    model = composer.load(name, overrides=sizes).compile(seed=0).eval()
    load_published(model, published(theirs))
    return model, theirs


@torch.no_grad()
@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("case", SIZES)
def test_logits_are_those_of_transformers(case: str, padding: str) -> None:
    """At the real tokens, wherever the padding is."""
    model, theirs = pair(case)
    tokens, valid = text(), real(PADDING[padding])
    expected = theirs(tokens, attention_mask=valid.long()).logits
    close(model(tokens, valid=valid).logits[valid], expected[valid])
    if valid.all():
        close(model(tokens).logits, expected)


@pytest.mark.parametrize("case", SIZES)
def test_gradients_are_those_of_transformers(case: str) -> None:
    """Of every parameter, by its published name."""
    model, theirs = pair(case)
    for each in (model, theirs):
        each(text()).logits.sin().sum().backward()
    rules = model.program.untyped.recipe.checkpoints
    ours = {key: parameter.grad for key, parameter in model.named_parameters()}
    saved = mapping(rules, theirs.config.model_type, shapes_of(ours), model.program.untyped.params).save(ours)
    expected = {key: parameter.grad for key, parameter in theirs.named_parameters()}
    assert saved.keys() >= expected.keys()
    for key, grad in expected.items():
        torch.testing.assert_close(
            saved[key], grad, rtol=0, atol=1e-5 * float(grad.abs().max()), msg=lambda m, key=key: f"{key}: {m}"
        )


@torch.no_grad()
@pytest.mark.parametrize("case", SIZES)
def test_piece_by_piece_is_the_whole_text(case: str) -> None:
    """With a state of one size, against transformers over the whole text."""
    model, theirs = pair(case)
    expected = theirs(text()).logits
    for sizes in ([1] * T, [3, 3, 3, T - 9], [4, 1, 1, T - 6], [T]):
        with session(model):
            pieces = [model(piece).logits for piece in text().split(sizes, 1)]
        close(torch.cat(pieces, 1), expected)


@pytest.mark.parametrize("case", SIZES)
def test_weights_come_back_bit_for_bit(case: str) -> None:
    model, theirs = pair(case)
    rules, ours, state = model.program.untyped.recipe.checkpoints, model.state_dict(), published(theirs)
    saved = mapping(rules, theirs.config.model_type, shapes_of(ours), model.program.untyped.params).save(ours)
    assert state.keys() - saved.keys() == ({"lm_head.weight"} if theirs.config.tie_word_embeddings else set())
    assert all(torch.equal(tensor, state[key]) for key, tensor in saved.items())


@pytest.mark.parametrize("length", [5, 70])
def test_the_gated_delta_rule_is_that_of_qwen3_next(length: int) -> None:
    """In chunks and step by step: values and last states."""
    from transformers.models.qwen3_next.modeling_qwen3_next import (
        torch_chunk_gated_delta_rule,
        torch_recurrent_gated_delta_rule,
    )

    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, length, 3, size, generator=generator) for size in (4, 4, 5))
    q, k = torch.nn.functional.normalize(q, dim=-1), torch.nn.functional.normalize(k, dim=-1)
    beta, decay = torch.rand(2, 2, length, 3, generator=generator)
    made = composer.load("""recipe: one
inputs:
  q: float[batch, time, 3, 4]
  k: float[batch, time, 3, 4]
  v: float[batch, time, 3, 5]
  beta: float[batch, time, 3]
  log_decay: float[batch, time, 3]
graph:
  scaled: {compute: 0.5 * q}
  mix: {type: gated_delta_rule, in: {q: scaled, k: k, v: v, beta: beta, log_decay: log_decay}}
outputs: {y: mix, h: mix.h}
""")
    found = made.compile()(q=q, k=k, v=v, beta=beta, log_decay=-decay)
    for theirs in (torch_chunk_gated_delta_rule, torch_recurrent_gated_delta_rule):
        y, h = theirs(q, k, v, g=-decay, beta=beta, initial_state=None, output_final_state=True)
        torch.testing.assert_close(found.y, y, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(found.h, h, rtol=1e-5, atol=1e-5)


CHANNELS = """recipe: one
inputs: {INPUTS}
graph: {mix: {type: KIND, in: {WIRES}}}
outputs: {OUTPUTS}
"""


def of_channels(kind: str, *given: tuple[str, str, torch.Tensor], outputs: str) -> Any:
    """Return what a recurrence of five channels gives for values of its ports, each with its axes."""
    text = CHANNELS.replace("KIND", kind).replace("OUTPUTS", outputs)
    text = text.replace("INPUTS", ", ".join(f'{name}: "float[{axes}]"' for name, axes, _ in given))
    text = text.replace("WIRES", ", ".join(f"{name}: {name}" for name, _, _ in given))
    return composer.load(text).compile()(**{name: value for name, _, value in given})


@pytest.mark.parametrize("length", [1, 70])
def test_the_diagonal_recurrence_is_that_of_recurrent_gemma(length: int) -> None:
    """From a state on: values and last states."""
    from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru

    generator = torch.Generator().manual_seed(0)
    x, gates = torch.randn(2, 2, length, 5, generator=generator)
    decays, h = -0.3 * gates.sigmoid(), torch.randn(2, 5, generator=generator)
    never = torch.zeros(2, length, 1, dtype=torch.bool)
    expected, last = RecurrentGemmaRglru._rnn_scan(None, x, torch.exp(decays), never, h)  # type: ignore[arg-type]  # reads no module
    along = "batch, time, 5"
    found = of_channels(
        "diagonal_recurrence", ("x", along, x), ("log_decay", along, decays), ("h", "batch, 5", h), outputs="y: mix, h: mix.h"
    )
    torch.testing.assert_close(found.y, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found.h, last, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1, 70])
def test_the_decaying_average_is_the_wkv_of_rwkv(length: int) -> None:
    """From nothing on, and from its state on; keys are so large that their exponentials overflow."""
    from transformers.models.rwkv.modeling_rwkv import rwkv_linear_attention_cpu

    generator = torch.Generator().manual_seed(0)
    k, v = torch.randn(2, 2, length, 5, generator=generator)
    rates, bonus = torch.randn(2, 5, generator=generator)
    k, along = 100 * k, "batch, time, 5"
    ports = [("log_decay", "5", -torch.exp(rates)), ("bonus", "5", bonus)]
    carried: list[tuple[str, str, torch.Tensor]] = []
    state = None
    for _ in range(2):
        given = [("k", along, k), ("v", along, v), *ports, *carried]
        found = of_channels("decaying_average", *given, outputs="y: mix, h: mix.h, log_weight: mix.log_weight")
        expected, state = rwkv_linear_attention_cpu(rates, bonus, k, v, state=state, return_state=True)
        torch.testing.assert_close(found.y, expected, rtol=1e-5, atol=1e-5)
        numerator, denominator, largest = state
        torch.testing.assert_close(found.h, numerator / denominator, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(found.log_weight, largest + torch.log(denominator), rtol=1e-5, atol=1e-5)
        carried = [("h", "batch, 5", found.h), ("log_weight", "batch, 5", found.log_weight)]
