"""GPT-2 and Llama as a careful person writes them: the yardstick for generated code."""

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


Table = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of rotary positions, each [T, D]."""


class GroupedAttention(nn.Module):
    """Causal self-attention whose queries share keys, with rotary positions."""

    def __init__(self, dim: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.width = dim // heads
        self.q, self.out = (nn.Linear(dim, dim, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(dim, kv_heads * self.width, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor, table: Table) -> torch.Tensor:
        q = self.q(x).unflatten(-1, (-1, self.width)).transpose(1, 2)  # [B, H, T, D]
        k = self.k(x).unflatten(-1, (-1, self.width)).transpose(1, 2)
        v = self.v(x).unflatten(-1, (-1, self.width)).transpose(1, 2)
        y = F.scaled_dot_product_attention(rotated(q, table), rotated(k, table), v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))


def rotated(x: torch.Tensor, table: Table) -> torch.Tensor:
    """Turn pairs of channels, each half of a head apart."""
    cos, sin = table
    wide = x.float()
    a, b = wide.chunk(2, dim=-1)
    return (wide * cos + torch.cat([b, a], dim=-1) * sin).to(x.dtype)


class GatedFeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LlamaLayer(nn.Module):
    """Attention and feed-forward, each normed before and added."""

    def __init__(self, dim: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.norm_1, self.attention = nn.RMSNorm(dim, eps=1e-5), GroupedAttention(dim, heads, kv_heads)
        self.norm_2, self.feed_forward = nn.RMSNorm(dim, eps=1e-5), GatedFeedForward(dim, hidden)

    def forward(self, x: torch.Tensor, table: Table) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x), table)
        return x + self.feed_forward(self.norm_2(x))


class Llama(nn.Module):
    """The whole model; its table of rotary positions is computed once per call."""

    def __init__(self, *, vocab: int, dim: int, layers: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.width = dim // heads
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(LlamaLayer(dim, heads, kv_heads, hidden) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(dim, eps=1e-5), nn.Linear(dim, vocab, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x, table = self.embed(tokens), self.table(tokens.shape[1], tokens.device)
        for layer in self.layers:
            x = layer(x, table)
        return self.head(self.norm(x))

    def table(self, count: int, device: torch.device) -> Table:
        frequencies = 500_000 ** (-torch.arange(0, self.width, 2, device=device).float() / self.width)
        angles = torch.arange(count, device=device)[:, None] * frequencies  # [T, D/2]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)
