"""Attention, against plain loops, torch's own module and published models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import GptOssConfig, Qwen3Config, Qwen3NextConfig
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention

from blocks.activations.squashing import Sigmoid
from blocks.attention.attention import Attention, CrossAttention
from blocks.attention.scaled_dot_product import ScaledDotProduct
from blocks.core import BlockError, NodeRef, Part
from blocks.masks.data_masks import Documents, Valid
from blocks.masks.mask import Mask
from blocks.masks.operators import And
from blocks.masks.position_masks import Causal, Window
from blocks.norms.rmsnorm import RMSNorm
from blocks.positions.rotary import Rotary
from blocks.primitives.linear import Linear
from tests.blocks.build import Attend

B, T, S, DIM = 2, 5, 7, 24
LOCAL = And(left=Causal(), right=Window(width=3))


def by_loops(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    sees: Any = lambda b, t, s: True,
    bias: torch.Tensor | None = None,
    softcap: float | None = None,
    sinks: Sequence[float] | None = None,
) -> torch.Tensor:
    """Compute the attention of q [B, T, H, D] over k, v [B, S, K, D], one score at a time: [B, T, H · Dv]."""
    q, k, v, bias = (None if x is None else x.detach() for x in (q, k, v, bias))
    batch, time, heads, _ = q.shape
    y = torch.zeros(batch, time, heads, v.shape[-1], dtype=q.dtype)
    for b in range(batch):
        for t in range(time):
            for h in range(heads):
                shared = h * k.shape[2] // heads
                weights = {}
                for s in range(k.shape[1]):
                    if sees(b, t, s):
                        score = scale * sum(float(q[b, t, h, d]) * float(k[b, s, shared, d]) for d in range(q.shape[-1]))
                        score = softcap * math.tanh(score / softcap) if softcap else score
                        weights[s] = math.exp(score + (0 if bias is None else float(bias.expand(batch, -1, -1, -1)[b, h, t, s])))
                total = sum(weights.values()) + (math.exp(sinks[h]) if sinks else 0)
                for s, weight in weights.items():
                    y[b, t, h] += weight / total * v[b, s, shared]
    return y.flatten(2)


def projected(block: nn.Module, x: torch.Tensor, memory: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
    """Return the queries, keys and values by head: [B, T, H, D] and [B, S, K, D]."""
    source = x if memory is None else memory
    q, k, v = block.q(x), block.k(source), block.v(source)
    return q.unflatten(-1, (block.heads, -1)), k.unflatten(-1, (block.kv_heads, -1)), v.unflatten(-1, (block.kv_heads, -1))


def attend(part: Part, **more: Any) -> Attend:
    torch.manual_seed(0)
    return Attend(part, **{"dim": DIM, **more}).double().eval()


def stream(*shape: int) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_torch(causal: bool) -> None:
    """Full and causal, with biases, against `nn.MultiheadAttention`."""
    mine = attend(Attention(heads=3, bias=True, **({"mask": Causal()} if causal else {})))
    torchs = nn.MultiheadAttention(DIM, 3, batch_first=True).double()
    torchs.in_proj_weight.data = torch.cat([mine.block.q.weight, mine.block.k.weight, mine.block.v.weight])
    torchs.in_proj_bias.data = torch.cat([mine.block.q.bias, mine.block.k.bias, mine.block.v.bias])
    torchs.out_proj.load_state_dict(mine.block.out.state_dict())
    x = stream(B, T, DIM)
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1) if causal else None
    torch.testing.assert_close(mine(x=x), torchs(x, x, x, attn_mask=hidden)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [Attention, CrossAttention])
def test_a_memory_gives_keys_and_values(kind: type[Part]) -> None:
    """Of another width and length, against `nn.MultiheadAttention`; hidden where it is padding."""
    mine = attend(kind(heads=4, bias=True, mask=Valid(flags=NodeRef("real"))), wired=("memory",), memory_dim=10)
    torchs = nn.MultiheadAttention(DIM, 4, kdim=10, vdim=10, batch_first=True).double()
    for name in "qkv":
        getattr(torchs, f"{name}_proj_weight").data = getattr(mine.block, name).weight
    torchs.in_proj_bias.data = torch.cat([mine.block.q.bias, mine.block.k.bias, mine.block.v.bias])
    torchs.out_proj.load_state_dict(mine.block.out.state_dict())
    x, memory = stream(B, T, DIM), stream(B, S, 10)
    real = torch.tensor([[True] * 7, [True] * 3 + [False] * 4])
    expected, _ = torchs(x, memory, memory, key_padding_mask=~real)
    torch.testing.assert_close(mine(x=x, memory=memory, edges={"real": real}), expected, rtol=0, atol=1e-12)


def test_shared_key_heads_equal_repeated_ones() -> None:
    """Six query heads on two key heads: as if every key head stood there three times."""
    shared, repeated = attend(Attention(heads=6, kv_heads=2)), attend(Attention(heads=6))
    repeated.block.q.load_state_dict(shared.block.q.state_dict())
    repeated.block.out.load_state_dict(shared.block.out.state_dict())
    for name in "kv":
        rows = getattr(shared.block, name).weight.unflatten(0, (2, -1)).repeat_interleave(3, dim=0)
        getattr(repeated.block, name).weight.data = rows.flatten(0, 1)
    x = stream(B, T, DIM)
    torch.testing.assert_close(shared(x=x), repeated(x=x), rtol=0, atol=1e-12)


FORMULA: dict[str, dict[str, Any]] = {
    "heads of their own width": {"head_dim": 6, "value_dim": 5, "kv_heads": 2},
    "a scale": {"scale": 0.7},
    "a softcap": {"softcap": 1.5, "scale": 2.0},
    "sinks": {"sinks": True, "kv_heads": 1},
    "all of them": {"kv_heads": 2, "value_dim": 5, "softcap": 1.5, "scale": 2.0, "sinks": True},
}


@pytest.mark.parametrize("mask", ["full", "local", "hidden"])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("name", FORMULA)
def test_every_field_does_what_the_formula_says(name: str, biased: bool, mask: str) -> None:
    """Score by score, with and without a bias from outside; `hidden` leaves a row without any key."""
    fields = FORMULA[name]
    real = torch.tensor([[True, True, False, True, False], [False] * 5])
    masks: dict[str, tuple[dict[str, Mask], Any, Mapping[str, torch.Tensor]]] = {
        "full": ({}, lambda b, t, s: True, {}),
        "local": ({"mask": LOCAL}, lambda b, t, s: s in (t - 2, t - 1, t), {}),
        "hidden": ({"mask": Valid(flags=NodeRef("real"))}, lambda b, t, s: real[b, s], {"real": real}),
    }
    given, sees, edges = masks[mask]
    mine = attend(Attention(heads=4, out=None, **given, **fields))
    x = stream(B, T, DIM)
    bias = {"bias": stream(4, T, T)} if biased else {}
    block = mine.block
    expected = by_loops(
        *projected(block, x),
        scale=block.scale,
        sees=sees,
        softcap=block.softcap,
        sinks=block.sink_scores.tolist() if block.sinks else None,
        **bias,
    )
    assert math.isclose(block.scale, fields.get("scale", block.head_dim**-0.5))
    torch.testing.assert_close(mine(x=x, edges=edges, **bias), expected, rtol=0, atol=1e-12)


def test_a_bias_of_each_row_and_gradients_to_it() -> None:
    """[B, H, T, S] beside a mask: the gradient of what is hidden is zero."""
    mine = attend(Attention(heads=4, out=None, mask=Causal()))
    x, bias = stream(B, T, DIM), stream(B, 4, T, T).requires_grad_()
    y = mine(x=x, bias=bias)
    expected = by_loops(*projected(mine.block, x), scale=6**-0.5, sees=lambda b, t, s: s <= t, bias=bias)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    y.square().sum().backward()
    assert bias.grad is not None
    assert (bias.grad.triu(1) == 0).all()
    assert (bias.grad.tril()[:, :, 1:, 0] != 0).all()


def rotary_table(config: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return LlamaRotaryEmbedding(config)(x, torch.arange(x.shape[1])[None])


def additive(sees: Any) -> torch.Tensor:
    return torch.tensor([[[[0.0 if sees(t, s) else -math.inf for s in range(T)] for t in range(T)]]])


SHAPE = {"hidden_size": DIM, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "attn_implementation": "eager"}
OURS = {"heads": 4, "kv_heads": 2, "head_dim": 8, "positions": Rotary(theta=100.0)}


def load(mine: nn.Module, theirs: nn.Module) -> None:
    """Load the projections of a published attention, each with a bias where it has one."""
    for name, other in {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "o_proj"}.items():
        getattr(mine, name).load_state_dict(getattr(theirs, other).state_dict())


def test_norms_of_queries_and_keys_come_before_the_turn_as_in_qwen3() -> None:
    """Grouped heads, a norm for queries and one for keys, rotary positions, causal."""
    config = Qwen3Config(**SHAPE, rope_parameters={"rope_type": "default", "rope_theta": 100.0})
    torch.manual_seed(0)
    theirs = Qwen3Attention(config, 0)
    theirs.q_norm.weight.data.normal_()
    theirs.k_norm.weight.data.normal_()
    mine = Attend(Attention(**OURS, mask=Causal(), qk_norm=RMSNorm(eps=config.rms_norm_eps)), dim=DIM)
    load(mine.block, theirs)
    mine.block.q_norm.load_state_dict(theirs.q_norm.state_dict())
    mine.block.k_norm.load_state_dict(theirs.k_norm.state_dict())
    x = torch.randn(B, T, DIM)
    expected, _ = theirs(x, rotary_table(config, x), additive(lambda t, s: s <= t))
    torch.testing.assert_close(mine(x=x), expected, rtol=0, atol=1e-5)


def test_sinks_are_those_of_gpt_oss() -> None:
    """A learned score for each head, biases, a causal window."""
    config = GptOssConfig(
        **SHAPE, attention_bias=True, num_hidden_layers=1, rope_parameters={"rope_type": "default", "rope_theta": 100.0}
    )
    torch.manual_seed(0)
    theirs = GptOssAttention(config, 0).eval()
    theirs.sinks.data.normal_()
    mine = Attend(Attention(**OURS, mask=LOCAL, sinks=True, bias=True), dim=DIM)
    load(mine.block, theirs)
    mine.block.sink_scores.data = theirs.sinks.data
    x = torch.randn(B, T, DIM)
    expected, _ = theirs(x, tuple(table[..., :4] for table in rotary_table(config, x)), additive(lambda t, s: t - 3 < s <= t))
    torch.testing.assert_close(mine(x=x), expected, rtol=0, atol=1e-5)


def test_the_output_gate_is_that_of_qwen3_next() -> None:
    """A sigmoid of the input, before the output projection, all with biases; their queries and gates lie in one matrix, head by
    head.
    """
    config = Qwen3NextConfig(
        **SHAPE,
        attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 1.0},
    )
    torch.manual_seed(0)
    theirs = Qwen3NextAttention(config, 0)
    norm = RMSNorm(eps=config.rms_norm_eps, unit_offset=True)
    mine = Attend(Attention(**OURS, mask=Causal(), output_gate=Sigmoid(), qk_norm=norm, bias=True), dim=DIM)
    for name in ("q_norm", "k_norm"):
        getattr(theirs, name).weight.data.normal_()
        getattr(mine.block, name).load_state_dict(getattr(theirs, name).state_dict())
    for name, both in theirs.q_proj.named_parameters():
        query, gate = both.data.unflatten(0, (4, 2, 8)).unbind(1)  # [H, D, dim], or [H, D] of the bias
        getattr(mine.block.q, name).data = query.flatten(0, 1)
        getattr(mine.block.gate, name).data = gate.flatten(0, 1)
    for name, other in {"k": "k_proj", "v": "v_proj", "out": "o_proj"}.items():
        getattr(mine.block, name).load_state_dict(getattr(theirs, other).state_dict())
    x = torch.randn(B, T, DIM)
    cos_sin = LlamaRotaryEmbedding(Qwen3Config(**SHAPE, rope_parameters={"rope_type": "default", "rope_theta": 100.0}))
    expected, _ = theirs(x, cos_sin(x, torch.arange(T)[None]), additive(lambda t, s: s <= t))
    torch.testing.assert_close(mine(x=x), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("flags", [False, True, {"q": True, "v": True}, {"out": True}])
def test_biases_are_where_they_are_written(flags: Any) -> None:
    """All four projections, none, or one by one."""
    block = attend(Attention(heads=4, bias=flags)).block
    asked = dict.fromkeys(("q", "k", "v", "out"), flags) if isinstance(flags, bool) else flags
    for name in ("q", "k", "v", "out"):
        assert (getattr(block, name).bias is not None) == asked.get(name, False)


def test_the_output_map_may_be_left_out_or_replaced() -> None:
    """Without one the heads stay joined, as wide as all values together."""
    x = stream(B, T, DIM)
    joined = attend(Attention(heads=4, value_dim=5, out=None))
    other = attend(Attention(heads=4, value_dim=5, out=Linear(out=DIM, bias=True)))
    for name in "qkv":
        getattr(other.block, name).load_state_dict(getattr(joined.block, name).state_dict())
    assert joined(x=x).shape == (B, T, 20)
    assert Attention(heads=4, out=None).output_types({}, {}) == {
        **Attention.outputs,
        "y": "float[batch, time, heads * value_dim]",
    }
    assert not any(name.startswith("out") for name in joined.block.state_dict())
    torch.testing.assert_close(other(x=x), joined(x=x) @ other.block.out.weight.T + other.block.out.bias, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "requested_outputs", [("k",), ("v", "weights"), ("scores",), ("k", "v", "scores", "weights", "logsumexp")]
)
def test_what_is_read_comes_beside_y_in_order(requested_outputs: tuple[str, ...]) -> None:
    """The fused kernel and the formula give one y; weights are a distribution over what is seen."""
    part = Attention(heads=4, kv_heads=2, mask=Causal(), out=None)
    x = stream(B, T, DIM)
    y, *read = attend(part, requested_outputs=requested_outputs)(x=x)
    plain = attend(part)
    found = dict(zip(requested_outputs, read, strict=True))
    torch.testing.assert_close(y, plain(x=x), rtol=0, atol=1e-12)
    q, k, v = projected(plain.block, x)
    scores = torch.einsum("bthd,bshd->bhts", q, k.repeat_interleave(2, dim=2)) / 6**0.5
    weights = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf).softmax(-1)
    total = torch.stack([scores[:, :, t, : t + 1].exp().sum(-1).log() for t in range(T)], -1)  # [B, H, T]
    for name, value in {"k": k, "v": v, "scores": scores, "weights": weights, "logsumexp": total}.items():
        if name in requested_outputs:
            torch.testing.assert_close(found[name], value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sinks", [False, True])
def test_attention_to_two_memories_is_joined_by_their_logsumexp(sinks: bool) -> None:
    """Also for a row that sees nothing of one of them; of a sink, which is no memory's own, one has the whole."""
    memory, valid = stream(B, S, DIM), torch.arange(S) < torch.tensor([[S], [4]])
    seen = Valid(flags=NodeRef("valid"))

    def made(*read: str, sinks: bool) -> Attend:
        part = CrossAttention(heads=4, mask=seen, out=None, sinks=sinks)
        return attend(part, wired=("memory",), requested_outputs=read, memory_dim=DIM)

    both, near, far = made(sinks=sinks), made("logsumexp", sinks=sinks), made("logsumexp", sinks=False)
    near.block.load_state_dict(both.block.state_dict())
    far.block.load_state_dict({name: tensor for name, tensor in both.block.state_dict().items() if name != "sink_scores"})
    x = stream(B, T, DIM)
    a, of_a = near(x=x, memory=memory[:, :4], edges={"valid": valid[:, :4]})
    b, of_b = far(x=x, memory=memory[:, 4:], edges={"valid": valid[:, 4:]})
    a, b = (y.unflatten(-1, (4, -1)) for y in (a, b))
    joined = a + torch.sigmoid(of_b - of_a).transpose(1, 2)[..., None] * (b - a)
    torch.testing.assert_close(joined.flatten(2), both(x=x, memory=memory, edges={"valid": valid}), rtol=0, atol=1e-12)


def test_keys_and_values_of_another_attention_are_used_as_they_are() -> None:
    """After their norms and positions; there are no projections of its own then."""
    part = Attention(heads=4, kv_heads=2, mask=Causal(), positions=Rotary(), qk_norm=RMSNorm())
    first, second = attend(part, requested_outputs=("k", "v")), attend(part, wired=("k", "v"))
    second.block.load_state_dict({k: v for k, v in first.block.state_dict().items() if k[:2] not in ("k.", "v.", "k_")})
    x = stream(B, T, DIM)
    y, k, v = first(x=x)
    assert sorted({name.split(".")[0] for name in second.block.state_dict()}) == ["out", "q", "q_norm"]
    torch.testing.assert_close(second(x=x, k=k, v=v), y, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{}, {"sinks": True}])
def test_dropout_is_for_training_alone(fields: dict[str, Any]) -> None:
    """In the kernel and by the formula: about the share that is asked for, and the rest grows to keep the mean."""
    mine = Attend(Attention(heads=1, head_dim=2, value_dim=1, out=None, dropout=0.25, **fields), dim=DIM).double()
    mine.block.q.weight.data.zero_()  # all weights are equal
    x = stream(1, 4000, DIM)
    mine.block.v.weight.data = torch.ones_like(mine.block.v.weight)
    x = torch.ones_like(x) / DIM  # all values are 1
    if fields:
        mine.block.sink_scores.data.fill_(-50.0)
    torch.manual_seed(0)
    y = mine.train()(x=x)[0, :, 0].detach()  # the mean over 4000 keys of 0 or 1 / 0.75
    assert abs(float(y.mean()) - 1) < 0.001
    assert abs(float(y.std()) - (0.25 / 0.75 / 4000) ** 0.5) < 0.001
    assert torch.allclose(mine.eval()(x=x), torch.ones(1, 4000, 1, dtype=torch.float64))


SESSIONS: dict[str, dict[str, Any]] = {
    "causal, grouped, turned, normed": {"mask": Causal(), "kv_heads": 2, "positions": Rotary(), "qk_norm": RMSNorm()},
    "a window": {"mask": LOCAL, "positions": Rotary(partial_rotary_factor=0.5, layout="interleaved")},
    "sinks and a softcap": {"mask": LOCAL, "sinks": True, "softcap": 2.0},
    "packed documents": {"mask": And(left=Causal(), right=Documents(ids=NodeRef("doc"))), "positions": Rotary()},
}


@pytest.mark.parametrize("cuts", [[5], [1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 7]])
@pytest.mark.parametrize("name", SESSIONS)
def test_writing_on_equals_reading_at_once(name: str, cuts: list[int]) -> None:
    """With kept keys and values, at every split."""
    fields = SESSIONS[name]
    mine = attend(Attention(heads=4, head_dim=8, **fields))
    x = stream(B, 9, DIM)
    doc = torch.tensor([[1] * 9, [1, 1, 1, 1, 2, 2, 2, 2, 2]])
    edges = {"doc": doc} if name == "packed documents" else {}
    whole = mine(x=x, edges=edges)
    mine.start_session()
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, 9], strict=True):
        some = {edge: value[:, start:stop] for edge, value in edges.items()}
        parts.append(mine(x=x[:, start:stop], position_ids=torch.arange(start, stop), edges=some))
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-12)


def test_left_padding_changes_nothing_for_the_real_tokens() -> None:
    """A row of six tokens by itself, and after three of padding, all at once and token by token."""
    part = Attention(heads=4, mask=And(left=LOCAL, right=Valid(flags=NodeRef("real"))), positions=Rotary())
    x = stream(1, 9, DIM)
    alone = attend(part)(x=x[:, 3:], edges={"real": None})
    real, at = torch.tensor([[False] * 3 + [True] * 6]), torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4, 5]])
    padded, indices = attend(part), torch.arange(9)
    whole = padded(x=x, position_ids=at, indices=indices, edges={"real": real})
    torch.testing.assert_close(whole[:, 3:], alone, rtol=0, atol=1e-12)
    padded.start_session()
    parts = [
        padded(x=x[:, t : t + 1], position_ids=at[:, t : t + 1], indices=indices[t : t + 1], edges={"real": real[:, t : t + 1]})
        for t in range(9)
    ]
    torch.testing.assert_close(torch.cat(parts[3:], dim=1), alone, rtol=0, atol=1e-12)


def test_a_memory_does_not_grow_in_a_session() -> None:
    """Its keys and values come whole with every call."""
    mine = attend(CrossAttention(heads=4, positions=Rotary()), wired=("memory",), memory_dim=DIM)
    x, memory = stream(B, T, DIM), stream(B, S, DIM)
    whole = mine(x=x, memory=memory)
    mine.start_session()
    parts = [mine(x=x[:, t : t + 1], position_ids=torch.tensor([t]), memory=memory) for t in range(T)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-12)


def test_the_primitive_is_attention_without_projections() -> None:
    """Grouped heads whose values have a width of their own."""
    mine = attend(ScaledDotProduct(heads=4, kv_heads=2, mask=Causal(), scale=0.3), query_dim=12, key_dim=6, values_dim=10)
    q, k, v = stream(B, T, 12), stream(B, T, 6) * 2, stream(B, T, 10) - 1
    expected = by_loops(
        q.unflatten(-1, (4, 3)), k.unflatten(-1, (2, 3)), v.unflatten(-1, (2, 5)), scale=0.3, sees=lambda b, t, s: s <= t
    )
    torch.testing.assert_close(mine(q=q, k=k, v=v), expected, rtol=0, atol=1e-12)


def test_the_primitive_adds_a_bias_to_its_scores() -> None:
    """Of each head, or of each row and head; what the mask hides stays hidden."""
    mine = attend(ScaledDotProduct(heads=4, kv_heads=2, mask=Causal(), scale=0.3), query_dim=12, key_dim=6, values_dim=10)
    q, k, v = stream(B, T, 12), stream(B, T, 6) * 2, stream(B, T, 10) - 1
    heads = q.unflatten(-1, (4, 3)), k.unflatten(-1, (2, 3)), v.unflatten(-1, (2, 5))
    for shape in ((4, T, T), (B, 4, T, T)):
        bias = stream(*shape)
        expected = by_loops(*heads, scale=0.3, sees=lambda b, t, s: s <= t, bias=bias.expand(B, 4, T, T))
        torch.testing.assert_close(mine(q=q, k=k, v=v, bias=bias), expected, rtol=0, atol=1e-12)


def test_the_primitive_drops_weights_in_training_alone() -> None:
    """What a query sees is then scaled up or left out."""
    mine = attend(ScaledDotProduct(heads=1, dropout=0.5), query_dim=3, key_dim=3, values_dim=1)
    q, k, v = stream(B, T, 3) * 0, stream(B, 1, 3), stream(B, 1, 1) * 0 + 1
    assert torch.equal(mine(q=q, k=k, v=v), v.expand(B, T, 1))
    torch.manual_seed(0)
    assert {*mine.train()(q=q, k=k, v=v).flatten().tolist()} == {0, 2}


@pytest.mark.parametrize("fields", [{}, {"softcap": 2.0, "sinks": True}, {"positions": Rotary(), "kv_heads": 2}])
def test_bfloat16_stays_bfloat16(fields: dict[str, Any]) -> None:
    """Whatever is computed in float32 on the way; close to the result in float32."""
    mine = attend(Attention(heads=4, head_dim=8, mask=Causal(), **fields)).float()
    x = stream(B, T, DIM).float()
    wide = mine(x=x)
    narrow = mine.bfloat16()(x=x.bfloat16())
    assert narrow.dtype == torch.bfloat16
    torch.testing.assert_close(narrow.float(), wide, rtol=0, atol=0.02)


@pytest.mark.parametrize(
    ("part", "sizes", "field", "message", "hint"),
    [
        (Attention(heads=10), {"dim": 768}, "heads", "768 channels cannot be split into 10 heads", "8 and 12 divide 768"),
        (Attention(heads=5), {"dim": 7}, "heads", "7 channels cannot be split into 5 heads", "1 and 7 divide 7"),
        (Attention(heads=9), {"dim": 8}, "heads", "8 channels cannot be split into 9 heads", "8 divides 8"),
        (
            Attention(heads=6, kv_heads=4),
            {"dim": 24},
            "kv_heads",
            "6 query heads cannot share 4 key/value heads evenly",
            "3 and 6 divide 6",
        ),
        (
            Attention(heads=2, head_dim=9, positions=Rotary()),
            {"dim": 16},
            "positions.partial_rotary_factor",
            "9 of 9 channels in a head cannot be rotated in pairs",
            "8 / 9 rotates 8",
        ),
        (
            ScaledDotProduct(heads=5),
            {"query_dim": 12, "key_dim": 12, "values_dim": 12},
            "heads",
            "12 channels of the queries cannot be split into 5 heads",
            "4 and 6 divide 12",
        ),
        (
            ScaledDotProduct(heads=2),
            {"query_dim": 12, "key_dim": 8, "values_dim": 12},
            "heads",
            "a head has 6 channels in the queries and 4 in the keys",
            "",
        ),
    ],
)
def test_heads_that_do_not_fit_are_refused(part: Part, sizes: dict[str, int], field: str, message: str, hint: str) -> None:
    """In the user's numbers, with what would fit."""
    with pytest.raises(BlockError) as no:
        part.check(sizes, frozenset())
    assert (no.value.field, no.value.message, no.value.hint) == (field, message, hint)


def test_heads_of_their_own_width_need_not_divide_the_channels() -> None:
    """As in Gemma: 8 heads of 256 on 2304 channels would fit, and so do 10."""
    Attention(heads=10, head_dim=256).check({"dim": 2304}, frozenset())


def test_sound_but_odd_attention_is_remarked_on() -> None:
    """Heads that fast kernels do not like; a causal mask over a memory is none of that."""
    odd = Attention(heads=2, mask=And(left=Causal(), right=Window(width=4)))
    assert [no.field for no in odd.warn({"dim": 20}, frozenset({"memory"}))] == ["heads"]
    assert odd.warn({"dim": 32}, frozenset({"memory"})) == []


@pytest.mark.parametrize("fields", [{}, {"kv_heads": 2, "head_dim": 8, "value_dim": 10}, {"output_gate": Sigmoid(), "out": None}])
def test_the_declared_flops_are_those_that_torch_counts(fields: dict[str, Any]) -> None:
    """Of the full square, by the formula's matrix products, with a memory of its own width."""
    part = Attention(heads=4, **fields)
    mine = attend(part, wired=("memory",), memory_dim=10)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        mine(x=stream(B, T, DIM), memory=stream(B, S, 10))
    sizes = {"batch": B, "time": T, "source": S, "dim": DIM, "memory_dim": 10}
    cost = part.cost(sizes, frozenset({"memory"}))
    scope = {**sizes, **{name: getattr(mine.block, name) for name in ("heads", "kv_heads", "head_dim", "value_dim")}}
    assert eval(cost.dense, {}, scope) == counter.get_total_flops()
    assert eval(cost.pairs, {}, scope) == B * T * S


@pytest.mark.slow
@pytest.mark.parametrize("name", SESSIONS)
def test_attention_compiles_to_one_graph(name: str) -> None:
    """What prepares it included."""
    mine = attend(Attention(heads=4, head_dim=8, **SESSIONS[name]))
    x, edges = stream(B, 9, DIM), {"doc": torch.tensor([[1] * 9, [1, 1, 1, 1, 2, 2, 2, 2, 2]])}
    edges = edges if name == "packed documents" else {}
    torch._dynamo.reset()
    compiled = torch.compile(mine, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x=x, edges=edges), mine(x=x, edges=edges), rtol=0, atol=1e-12)
