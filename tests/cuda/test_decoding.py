"""Writing on a GPU: the texts of the CPU, compiled steps, CUDA graphs, drafts and prompt caches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import composer
from composer.decode import GREEDY, Draft, Request, Sampling, cached, compiled, generate, session
from composer.lower import Model
from tests.decode.test_max_length import EVERY_KIND, MIXTURE

GPT = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 64}
LLAMA = {"n_layers": 2, "d_model": 32, "n_heads": 4, "n_kv_heads": 2, "hidden": 48, "vocab": 61}
PROMPTS = [[1, 2, 3], [7], [4, 4, 9, 11, 2, 5]]


def writer(kind: str, gpu: str) -> Model:
    """Return a model in float64, in which no rounding decides a choice."""
    recipes = {"every kind": (EVERY_KIND, {}), "gpt2": ("gpt2", GPT), "llama3": ("llama3", LLAMA), "jamba": ("jamba", MIXTURE)}
    name, params = recipes[kind]
    return composer.load(name, dict(params)).compile(seed=0).double().to(gpu).eval()


KINDS = ["every kind", "gpt2", "llama3", "jamba"]


def prompts(kind: str) -> list[list[int]]:
    """Return prompts of different lengths, in the model's vocabulary."""
    return [[token % 11 for token in prompt] for prompt in PROMPTS]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_texts_are_those_of_the_cpu(kind: str, gpu: str) -> None:
    """With a cache, without, and with a draft; several prompts of different lengths."""
    request = Request(max_new_tokens=10, sampling=GREEDY)
    expected = generate(writer(kind, "cpu"), prompts(kind), request)
    model = writer(kind, gpu)
    assert generate(model, prompts(kind), request) == expected
    assert generate(model, prompts(kind), request, reading=cached) == expected
    assert (
        generate(model, prompts(kind), request, draft=Draft(writer("gpt2" if kind in ("gpt2", "llama3") else kind, gpu), 3))
        == expected
    )


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_texts_repeat(kind: str, gpu: str) -> None:
    """A seed decides the text, whatever else runs on the GPU."""
    model, request = writer(kind, gpu), Request(max_new_tokens=10, sampling=Sampling(temperature=1.2, top_k=8))
    first = generate(model, prompts(kind), request, seed=3)
    torch.randn(1000, device=gpu)
    assert generate(model, prompts(kind), request, seed=3) == first


@pytest.mark.parametrize("kind", ["every kind", "gpt2", "llama3"])
def test_a_captured_step_writes_the_same(kind: str, gpu: str) -> None:
    """`torch.compile` with CUDA graphs: one program for all steps of two texts. Experts have no kernel in float64."""
    model, request = writer(kind, gpu), Request(max_new_tokens=12, sampling=GREEDY)
    options = {"mode": "reduce-overhead"} if gpu == "cuda" else {"backend": "eager"}
    reading = compiled(model, **options)
    for some in (prompts(kind), prompts(kind)[:1]):
        assert generate(model, some, request, reading=reading) == generate(model, some, request)


@pytest.mark.parametrize("kind", ["every kind", "gpt2", "llama3"])
@torch.no_grad()
def test_a_step_can_be_captured_by_hand(kind: str, gpu: str) -> None:
    """A CUDA graph of one call replays as all that follow: no operator waits for the device, no address changes."""
    if gpu != "cuda":
        pytest.skip("there are no CUDA graphs")
    model = writer(kind, gpu)
    text = torch.randint(11, (2, 18), generator=torch.Generator().manual_seed(2)).to(gpu)
    whole = model(text).logits
    with session(model, max_length=24):
        model(text[:, :4])
        token, stream = text[:, 4:5].clone(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for at in (4, 5, 6):
                token.copy_(text[:, at : at + 1])
                model(token)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        token.copy_(text[:, 7:8])
        with torch.cuda.graph(graph):
            found = model(token).logits
        for at in range(7, 18):
            token.copy_(text[:, at : at + 1])
            graph.replay()
            torch.testing.assert_close(found[:, -1], whole[:, at])


def test_a_prompt_cache_goes_from_gpu_to_cpu_and_back(gpu: str, tmp_path: Path) -> None:
    """The text that follows is that of a session that read the prompt itself."""
    text = torch.randint(61, (1, 30), generator=torch.Generator().manual_seed(2))
    places = {"gpu": gpu, "cpu": "cpu"}
    whole = writer("llama3", "cpu")(text).logits
    for one, two in (("gpu", "cpu"), ("cpu", "gpu")):
        with torch.no_grad():
            giver, taker = writer("llama3", places[one]), writer("llama3", places[two])
            with session(giver) as opened:
                giver(text[:, :20].to(places[one]))
                opened.save(tmp_path / one, text[:, :20].to(places[one]))
            with session(taker, prompt_cache=tmp_path / one):
                found = taker(text[:, 20:].to(places[two])).logits
        torch.testing.assert_close(found.cpu(), whole[:, 20:])
