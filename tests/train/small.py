"""A small GPT written by hand, a small text, and a display that shows nothing."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

TEXT = "".join(f"{n} sheep and {n * n} lambs ran over the hill\n" for n in range(120))


class Output(NamedTuple):
    """What a compiled model returns."""

    logits: Tensor
    losses: dict[str, Tensor]


class SmallGPT(nn.Module):
    """One block of attention and one of feed-forward, with dropout, so that a run depends on every random state."""

    def __init__(self, vocab: int, dim: int = 16, heads: int = 2, context: int = 32, dropout: float = 0.1) -> None:
        super().__init__()
        self.recipe = SimpleNamespace(name="small", task="causal_lm")
        self.heads, self.dropout = heads, dropout
        self.embed = nn.Embedding(vocab, dim)
        self.places = nn.Embedding(context, dim)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(dim) for _ in range(3))
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.roles = {name: self.role(name) for name, _ in self.named_parameters()}

    @staticmethod
    def role(name: str) -> str:
        if name.endswith("bias"):
            return "bias"
        return "gain" if "norm" in name else "embedding" if name in ("embed.weight", "places.weight") else "matrix"

    def forward(self, tokens: Tensor, valid: Tensor | None = None) -> Output:
        batch, time = tokens.shape
        x = self.embed(tokens) + self.places.weight[:time]
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, time, -1)
        x = x + F.dropout(self.out(mixed), self.dropout, self.training)
        x = x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)
        return Output(F.linear(self.norm3(x), self.embed.weight), {})


class Quiet:
    """A display that shows nothing, and lets a test act after each step."""

    def __init__(self, after: Callable[[int], None] = lambda step: None) -> None:
        self.after = after
        self.notes: list[str] = []

    def __enter__(self):
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def step(self, moment, *, logged: bool) -> None:
        self.after(moment.step)

    def validated(self, step: int, validation) -> None:
        return None

    def note(self, text: str) -> None:
        self.notes.append(text)
