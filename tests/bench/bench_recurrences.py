"""How fast linear recurrences are beside transformers without fused kernels: `python -m tests.bench --only recurrences`.

At the sizes of small published models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from transformers.models.mamba.modeling_mamba import mamba_selective_scan
from transformers.models.mamba2.modeling_mamba2 import mamba2_chunk_scan
from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru
from transformers.models.rwkv.modeling_rwkv import rwkv_linear_attention_cpu

import composer
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import passes, times

Function = Callable[[], torch.Tensor]
TABLE = Table(
    name="recurrences",
    names=["block", "transformers", "positions"],
    columns={"block / transformers": Column("less")},
    about="forward, one row, medians of 8 calls each; the control is transformers' function beside itself",
)


def generated(kind: str, **ports: torch.Tensor) -> Function:
    """Return a function for the block, as a model of its own."""
    inputs, wires = "", ", ".join(f"{name}: {name}" for name in ports)
    for name, value in ports.items():
        axes = ["batch", "time", *value.shape[2:]] if value.dim() > 2 else value.shape
        inputs += f'  {name}: "float[{", ".join(map(str, axes))}]"\n'
    model = composer.load(f"recipe: one\ninputs:\n{inputs}graph: {{y: {{type: {kind}, in: {{{wires}}}}}}}\n").compile(seed=0)
    return lambda: model(**ports).y


def selective_scan(length: int) -> tuple[Function, Function]:
    """Return the recurrence of Mamba at the sizes of mamba-130m: the block, and what transformers has."""
    x, dt = torch.randn(1, length, 1536), 0.1 * torch.rand(1, length, 1536)
    a = -torch.arange(1.0, 17.0).expand(1536, 16).contiguous()
    b, c = torch.randn(2, 1, length, 16)
    for leaf in (x, dt, b, c):
        leaf.requires_grad_()
    turned = [value.transpose(1, 2) for value in (x, dt, b, c)]
    theirs = lambda: mamba_selective_scan(*turned[:2], a, *turned[2:]).transpose(1, 2)  # noqa: E731
    return generated("selective_scan", x=x, dt=dt, a=a, b=b, c=c), theirs


def linear_attention(length: int) -> tuple[Function, Function]:
    """Return the recurrence of Mamba-2 at the sizes of mamba2-130m; transformers' chunks are as long as its config says."""
    x, dt, a = torch.randn(1, length, 24, 64), 0.1 * torch.rand(1, length, 24), -torch.linspace(1, 16, 24)
    b, c = torch.randn(2, 1, length, 1, 128)
    values, decays = (dt[..., None] * x).requires_grad_(), (dt * a).requires_grad_()
    for leaf in (x, b, c):
        leaf.requires_grad_()
    theirs = lambda: mamba2_chunk_scan(x, dt, a, b, c, chunk_size=256)  # noqa: E731
    return generated("linear_attention", q=c, k=b, v=values, log_decay=decays), theirs


def gated_delta_rule(length: int) -> tuple[Function, Function]:
    """Return the gated delta rule with 16 heads of 64 channels."""
    q, k, v = torch.randn(3, 1, length, 16, 64)
    k, (beta, decays) = torch.nn.functional.normalize(k, dim=-1), torch.rand(2, 1, length, 16)
    q, k, v, beta, decays = (value.clone().requires_grad_() for value in (q, k, v, beta, -decays))
    theirs = lambda: torch_chunk_gated_delta_rule(q, k, v, g=decays, beta=beta)[0]  # noqa: E731
    return generated("gated_delta_rule", q=q, k=k, v=v, beta=beta, log_decay=decays), theirs


def diagonal_recurrence(length: int) -> tuple[Function, Function]:
    """Return the recurrence of RecurrentGemma at the size of the 2B model."""
    x, decays = torch.randn(1, length, 2560), -0.1 * torch.rand(1, length, 2560)
    x, decays = x.requires_grad_(), decays.requires_grad_()
    reset = torch.zeros(1, length, 1, dtype=torch.bool)
    theirs = lambda: RecurrentGemmaRglru._rnn_scan(None, x, torch.exp(decays), reset, None)[0]  # noqa: E731
    return generated("diagonal_recurrence", x=x, log_decay=decays), theirs


def decaying_average(length: int) -> tuple[Function, Function]:
    """Return the recurrence of RWKV at the size of rwkv-4-169m."""
    k, v = torch.randn(2, 1, length, 768)
    rates, bonus = torch.linspace(-5, 3, 768), torch.ones(768)
    k, v, rates, bonus = (value.clone().requires_grad_() for value in (k, v, rates, bonus))
    decays = -torch.exp(rates.detach())
    theirs = lambda: rwkv_linear_attention_cpu(rates, bonus, k, v)[0]  # noqa: E731
    return generated("decaying_average", k=k, v=v, log_decay=decays.requires_grad_(), bonus=bonus), theirs


BESIDE: tuple[tuple[Callable[[int], tuple[Function, Function]], str], ...] = (
    (selective_scan, "`mamba_selective_scan`"),
    (linear_attention, "`mamba2_chunk_scan`, chunks of 256 as in its config"),
    (gated_delta_rule, "`torch_chunk_gated_delta_rule`"),
    (diagonal_recurrence, "`_rnn_scan` of RecurrentGemma"),
    (decaying_average, "`rwkv_linear_attention_cpu`"),
)


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each block and length."""
    torch.manual_seed(0)
    for make, name in BESIDE:
        for length in (16,) if toy else (512, 2048):
            ours, theirs = make(length)
            works = {"theirs": passes(theirs, train=False), "ours": passes(ours, train=False)}
            found = times(works, rounds=2 if toy else 8)
            yield {
                "block": f"`{make.__name__}`",
                "transformers": name,
                "positions": length,
                "block / transformers": found.seconds["ours"] / found.seconds["theirs"],
                "control": found.control,
            }
