"""Sessions with a maximum length, whose steps are all alike: for `torch.compile`, and for CUDA graphs."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import composer
from composer.decode import DecodeError, Request, cached, compiled, generate
from composer.decode.session import session
from tests.decode.test_batches import PROMPTS, written
from tests.decode.test_cached import TRANSLATOR
from tests.decode.test_several import tokens

WAITS = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default, torch.ops.aten.equal.default)
"""Operators that wait for the device, which a CUDA graph cannot capture."""
EVERY_KIND = """
recipe: every_kind
task: causal_lm
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 13, dim: 8}
  places: {type: learned_positions, max_length: 20, in: embed}
  bias: {type: alibi, heads: 2, in: places}
  near:
    type: residual
    body: {type: attention, heads: 4, kv_heads: 2, mask: "causal and window(4)", positions: rotary}
    in: places
  first: {type: residual, body: {type: attention, heads: 2, mask: "causal and (window(3) or global_first(2))"}}
  far: {type: residual, body: {type: attention, heads: 2, mask: causal and valid(valid), in: {bias: bias}}}
  latent:
    type: residual
    body: {type: latent_attention, heads: 2, kv_rank: 6, nope_dim: 4, rope_dim: 2, value_dim: 3, mask: causal}
  states: {type: residual, body: {type: gru, hidden: 8}}
  mix: {type: residual, body: {type: conv1d, out: 8, kernel_size: 3, causal: true}}
  head: {type: linear, out: 13}
outputs: {logits: head}
init: {"*weight": {normal: 0.5}}
"""


MIXTURE = {
    "vocab": 11, "d_model": 8, "n_layers": 4, "attn_period": 3, "attn_offset": 1, "n_heads": 4, "n_kv_heads": 2, "hidden": 10,
    "n_experts": 4, "top_k": 2, "inner": 6, "state": 3, "rank": 2, "kernel": 3,
}  # fmt: skip
"""Sizes of a `jamba`."""


class NoWaiting(TorchDispatchMode):
    """Fails where an operator would wait for the device, and notes the shapes of all results."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[list[int]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func not in WAITS, func
        found = func(*args, **(kwargs or {}))
        self.shapes += [list(each.shape) for each in (found if isinstance(found, tuple) else (found,)) if torch.is_tensor(each)]
        return found


def every_kind():
    """A model with windows, a ring buffer behind first keys, a bias, latents, a state and a kernel."""
    return composer.load(EVERY_KIND).compile(seed=0).double().eval()


@pytest.mark.parametrize("step", [1, 3, 7])
@torch.no_grad()
def test_every_call_has_the_logits_of_one_call(step):
    """Also where several rows come to a ring buffer at once, with padding, and after going back and other rows."""
    model, text, valid = every_kind(), tokens(2, 19), torch.arange(19) >= torch.tensor([[2], [0]])
    whole = model(text, valid).logits
    with session(model, max_length=20) as opened:
        found = [model(text[:, at : at + step], valid[:, at : at + step]).logits for at in range(0, 19, step)]
        torch.testing.assert_close(torch.cat(found, dim=1), whole)
        opened.truncate(0)
        model(text[:, :9], valid[:, :9])
        mark, other = opened.mark(), opened.copy()
        opened.reorder(torch.tensor([1, 1]))
        model(text[:, 9:12].flip(0), valid[:, 9:12])
        opened.rewind(mark)
        torch.testing.assert_close(model(text[:, 9:], valid[:, 9:]).logits, whole[:, 9:])
    with other:
        torch.testing.assert_close(model(text[:, 9:], valid[:, 9:]).logits, whole[:, 9:])


@torch.no_grad()
def test_no_step_waits_for_the_device_and_all_steps_have_the_same_shapes():
    """From the first token behind the prompt to the last that there is room for."""
    model, text, seen = every_kind(), tokens(2, 16), []
    with session(model, max_length=16):
        model(text[:, :2])
        for at in range(2, 16):
            with NoWaiting() as mode:
                model(text[:, at : at + 1])
            seen.append(mode.shapes)
    assert all(shapes == seen[0] for shapes in seen)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["every_kind", "translator", "jamba"])
@torch.no_grad()
def test_a_step_is_one_program_in_all_sessions(name):
    """Also with a mixture of experts, and cross-attention whose memory is computed in the first call."""
    text, others = tokens(2, 9) % 11, {"source": tokens(2, 5)} if name == "translator" else {}
    own = {"every_kind": EVERY_KIND, "translator": TRANSLATOR}
    model = composer.load(own.get(name, name), MIXTURE if name == "jamba" else {}).compile(seed=0).eval()
    read = model.program.inputs.keys() & {"tokens", "target"}
    (word,) = read
    whole, programs = model(**{word: text}, **others).logits, []
    fast = torch.compile(model, fullgraph=True, backend=lambda program, _: programs.append(program) or program)
    for _ in range(2):
        with session(fast, max_length=9) as opened:
            found = [model(**{word: text[:, :4]}, **others).logits]
            found += [fast(**{word: text[:, at : at + 1]}, **others).logits for at in range(4, 9)]
            with pytest.raises(DecodeError, match="room for 9 tokens: it has read 9, and this call has 1"):
                fast(**{word: text[:, :1]}, **others)
            assert opened.length == 9
        torch.testing.assert_close(torch.cat(found, dim=1), whole, atol=1e-4, rtol=1e-4)
    assert len(programs) == 1


def test_one_source_compiles_at_several_sizes():
    """For which torch.compile takes numbers of heads to be symbols, in the same process."""
    for heads, width, rows, most in ((2, 16, 1, 12), (4, 32, 2, 16), (2, 32, 3, 20)):
        sizes = {"n_layers": 2, "d_model": width, "n_heads": heads, "vocab": 61, "context": 32}
        model = composer.load("gpt2", sizes).compile(seed=0).eval()
        tokens = torch.arange(6)[None].repeat(rows, 1)
        fast = torch.compile(model, fullgraph=True, backend="eager")
        with torch.no_grad(), session(fast, max_length=most):
            fast(tokens[:, :5])
            found = fast(tokens[:, 5:]).logits
        torch.testing.assert_close(found[:, -1], model(tokens).logits[:, -1])


def test_a_compiled_step_writes_what_a_cache_writes():
    """Prompts of different lengths together."""
    model, request = written("causal"), Request(max_new_tokens=9)
    written_so = generate(model, PROMPTS, request, seed=3, reading=compiled(model, backend="eager"))
    assert written_so == generate(model, PROMPTS, request, seed=3, reading=cached)


def test_what_is_read_other_than_behind_a_mask_is_refused_by_name():
    """A pooling whose state is shorter in the first calls has no fixed shape."""
    text = """
recipe: sums
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 13, dim: 8}
  pooled: {type: max_pool1d, kernel_size: 3, causal: true}
  head: {type: linear, out: 13}
outputs: {logits: head}
"""
    with pytest.raises(DecodeError, match="`pooled` keeps `seen`, which is shorter in the first calls"):
        session(composer.load(text).compile(seed=0), max_length=8)


def test_a_compiled_model_is_told_to_its_session():
    """Otherwise its calls would not be counted: one program of the whole model is refused, and in parts they are counted."""
    model, text = written(), tokens(2, 3)
    with session(model, max_length=8) as opened:
        with pytest.raises(torch._dynamo.exc.TorchDynamoException):
            torch.compile(model, backend="eager", fullgraph=True)(text)
        assert opened.length == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@torch.no_grad()
def test_a_cuda_graph_captures_a_step():
    """And replays it for the rest of the text."""
    tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 13, "context": 20}
    model, text = composer.load("gpt2", tiny).compile(seed=0).double().eval().cuda(), tokens(2, 19).cuda()
    whole, token = model(text).logits, text[:, 5:6].clone()
    with session(model, max_length=20) as opened:
        model(text[:, :5])
        start = opened.mark()
        model(token)  # warms up
        opened.rewind(start)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = model(token).logits
        opened.rewind(start)
        for at in range(5, 19):
            token.copy_(text[:, at : at + 1])
            graph.replay()
            torch.testing.assert_close(logits, whole[:, at : at + 1])
