"""GPT-2 as a careful person writes it: the yardstick for generated code."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Causal self-attention with four projections."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B, H, T, D]
        k = self.k(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        v = self.v(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Widen, bend, narrow again."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Layer(nn.Module):
    """Attention and feed-forward, each normed before and added."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm_1, self.attention = nn.LayerNorm(dim), Attention(dim, heads)
        self.norm_2, self.feed_forward = nn.LayerNorm(dim), FeedForward(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class GPT2(nn.Module):
    """The whole model with learned positions and a tied head."""

    def __init__(self, *, vocab: int, context: int, dim: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        at = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embed(tokens) + self.positions(at)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
