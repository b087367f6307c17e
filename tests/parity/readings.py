"""Logits as the papers and the lectures say them, one position and one head at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor

Weights = dict[str, Tensor]
"""A model's parameters by name; a linear map's is `[out, in]`."""


def transformer(
    w: Weights, source: Tensor, target: Tensor, source_valid: Tensor | None = None, valid: Tensor | None = None
) -> Tensor:
    """Compute the Transformer of Vaswani et al. 2017, https://arxiv.org/abs/1706.03762.

    Two layers and four heads. The projections have no biases, as the paper writes them; LayerNorm's epsilon, which it does not
    give, is 1e-5.
    """
    source_valid = torch.ones_like(source, dtype=torch.bool) if source_valid is None else source_valid
    valid = torch.ones_like(target, dtype=torch.bool) if valid is None else valid
    sentences = zip(source, target, source_valid, valid, strict=True)
    return torch.stack([translation(w, *sentence, heads=4) for sentence in sentences])  # [B, T, V]


def universal_transformer(
    w: Weights, source: Tensor, target: Tensor, source_valid: Tensor | None = None, valid: Tensor | None = None
) -> Tensor:
    """Compute the Universal Transformer of Dehghani et al. 2019, https://arxiv.org/abs/1807.03819, for a fixed number of steps.

    Three steps and two heads. The rest is as in the Transformer above.
    """
    source_valid = torch.ones_like(source, dtype=torch.bool) if source_valid is None else source_valid
    valid = torch.ones_like(target, dtype=torch.bool) if valid is None else valid
    heads, logits = 2, []
    for read, written, may_read, may_look in zip(source, target, source_valid, valid, strict=True):
        E = w["embed.weight"]
        memory = E[read] * E.shape[1] ** 0.5  # H^0
        for t in range(1, 4):
            memory = memory + coordinates(*memory.shape, t)  # equation 4: A^t = LayerNorm((H + P^t) + Attention(H + P^t))
            looked = multi_head(w, "encoder.attn.body", memory, memory, may_read.expand(len(read), -1), heads)
            memory = add_norm(w, "encoder.attn.post_norm", memory, looked)
            memory = add_norm(w, "encoder.ffn.post_norm", memory, feed_forward(w, "encoder.ffn.body", memory))  # equation 5
        steps = torch.arange(len(written))
        past = (steps[None] <= steps[:, None]) & may_look
        h = E[written] * E.shape[1] ** 0.5
        for t in range(1, 4):
            h = h + coordinates(*h.shape, t)
            h = add_norm(w, "decoder.attn.post_norm", h, multi_head(w, "decoder.attn.body", h, h, past, heads))
            crossed = multi_head(w, "decoder.cross.body", h, memory, may_read.expand(len(written), -1), heads)
            h = add_norm(w, "decoder.cross.post_norm", h, crossed)
            h = add_norm(w, "decoder.ffn.post_norm", h, feed_forward(w, "decoder.ffn.body", h))
        logits.append(h @ E.T)
    return torch.stack(logits)


def coordinates(length: int, dim: int, t: int) -> Tensor:
    """Compute the coordinate embeddings, equations 6 and 7: sin(i / 10000^(2j/d)) + sin(t / 10000^(2j/d)), and cosines."""
    rates = [10000 ** (-2 * j / dim) for j in range(dim // 2)]
    rows = [[wave(i * rate) + wave(t * rate) for rate in rates for wave in (math.sin, math.cos)] for i in range(length)]
    return torch.tensor(rows, dtype=torch.float64)


def translation(w: Weights, source: Tensor, target: Tensor, source_valid: Tensor, valid: Tensor, *, heads: int) -> Tensor:
    """Map one sentence and what is written of its translation, `[S]` and `[T]`, to logits `[T, V]`."""
    may_read = source_valid.expand(len(source), -1)  # [S, S]
    memory = placed(w["embed.weight"], source)
    for layer in range(2):  # 3.1, encoder: two sub-layers
        name = f"encoder.{layer}"
        looked = multi_head(w, f"{name}.attn.body", memory, memory, may_read, heads)
        memory = add_norm(w, f"{name}.attn.post_norm", memory, looked)
        memory = add_norm(w, f"{name}.ffn.post_norm", memory, feed_forward(w, f"{name}.ffn.body", memory))
    steps = torch.arange(len(target))
    may_look = (steps[None] <= steps[:, None]) & valid  # 3.2.3: no leftward flow of information, [T, T]
    may_read = source_valid.expand(len(target), -1)  # [T, S]
    y = placed(w["embed.weight"], target)
    for layer in range(2):  # 3.1, decoder: a third sub-layer, over the output of the encoder, between the two
        name = f"decoder.{layer}"
        y = add_norm(w, f"{name}.attn.post_norm", y, multi_head(w, f"{name}.attn.body", y, y, may_look, heads))
        y = add_norm(w, f"{name}.cross.post_norm", y, multi_head(w, f"{name}.cross.body", y, memory, may_read, heads))
        y = add_norm(w, f"{name}.ffn.post_norm", y, feed_forward(w, f"{name}.ffn.body", y))
    return y @ w["embed.weight"].T  # 3.4: the matrix of both embeddings is that of the pre-softmax linear map


def placed(embedding: Tensor, tokens: Tensor) -> Tensor:
    """Place the vectors (3.4 and 3.5): vectors times sqrt(d_model), plus the encoding of their positions."""
    dim = embedding.shape[1]
    rows = []
    for pos, token in enumerate(tokens.tolist()):
        angles = [pos / 10000 ** (2 * i / dim) for i in range(dim // 2)]
        encoding = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]  # PE(pos, 2i) and PE(pos, 2i + 1)
        rows.append(embedding[token] * dim**0.5 + torch.tensor(encoding, dtype=embedding.dtype))
    return torch.stack(rows)


def multi_head(w: Weights, name: str, x: Tensor, memory: Tensor, mask: Tensor, heads: int) -> Tensor:
    """Compute multi-head attention (3.2.2): Concat(head_1, …, head_h) W^O, where head_i = Attention(Q W_i^Q,
    K W_i^K, V W_i^V).
    """
    q, k, v = x @ w[f"{name}.q.weight"].T, memory @ w[f"{name}.k.weight"].T, memory @ w[f"{name}.v.weight"].T
    per_head = zip(q.chunk(heads, -1), k.chunk(heads, -1), v.chunk(heads, -1), strict=True)
    return torch.cat([attention(*head, mask) for head in per_head], -1) @ w[f"{name}.out.weight"].T


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Compute attention by equation 1, softmax(Q K^T / sqrt(d_k)) V, a query at a time; `mask` is true where it may look."""
    rows = []
    for query, seen in zip(q, mask, strict=True):
        weights = (k[seen] @ query / q.shape[1] ** 0.5).exp()
        rows.append((weights / weights.sum()) @ v[seen])
    return torch.stack(rows)


def feed_forward(w: Weights, name: str, x: Tensor) -> Tensor:
    """Compute the feed-forward layer by equation 2, max(0, x W_1 + b_1) W_2 + b_2."""
    return affine(w, f"{name}.down", affine(w, f"{name}.up", x).clamp(min=0))


def add_norm(w: Weights, name: str, x: Tensor, sublayer: Tensor) -> Tensor:
    """Compute a residual (3.1), LayerNorm(x + Sublayer(x))."""
    return layer_norm(w, name, x + sublayer)


def layer_norm(w: Weights, name: str, x: Tensor) -> Tensor:
    """Compute the layer normalization of Ba et al. 2016, https://arxiv.org/abs/1607.06450, equation 4; its variance divides
    by the width H.
    """
    centered = x - x.mean(-1, keepdim=True)
    variance = (centered**2).mean(-1, keepdim=True)
    return w[f"{name}.weight"] * centered / (variance + 1e-5).sqrt() + w.get(f"{name}.bias", 0)


def affine(w: Weights, name: str, x: Tensor) -> Tensor:
    """Return a linear map and its bias."""
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def palm(w: Weights, tokens: Tensor, valid: Tensor) -> Tensor:
    """Compute PaLM of Chowdhery et al. 2022, https://arxiv.org/abs/2204.02311, with two layers and three heads.

    Section 2: no biases, also none in the norms; parallel layers; one key and one value for all heads; SwiGLU; RoPE; the matrix
    of the embedding is also that of the output. Section 5: the logits are scaled by 1 / sqrt(n).
    """
    rows = []
    for row, real in zip(tokens, valid, strict=True):
        x = w["embed.weight"][row]  # [T, D]
        for layer in range(2):
            name = f"layers.{layer}"
            normed = layer_norm(w, f"{name}.norm", x)  # y = x + MLP(LayerNorm(x)) + Attention(LayerNorm(x))
            x = x + swiglu(w, f"{name}.ffn", normed) + multi_query(w, f"{name}.attn", normed, real, heads=3)
        rows.append(layer_norm(w, "norm", x) @ w["embed.weight"].T / x.shape[1] ** 0.5)
    return torch.stack(rows)


def denseformer(w: Weights, tokens: Tensor, valid: Tensor) -> Tensor:
    """Compute DenseFormer of Pagliardini et al. 2024, https://arxiv.org/abs/2402.02622, with three layers and two heads.

    Equation 1: X_i = B_i(Y_{i-1}) and Y_i = Σ_j α_ij X_j, of the embeddings X_0 and all layers up to the i-th; α_ii is `own`. The
    rest is as in the authors' code: pre-norm, no biases, RoPE, exact GELU, the matrix of the embedding again in the output.
    """
    rows = []
    for row, real in zip(tokens, valid, strict=True):
        y = w["embed.weight"][row]
        given = [y]
        for layer in range(3):
            name = f"layers.{layer}"
            x = y + causal_attention(w, f"{name}.attn.body", layer_norm(w, f"{name}.attn.norm", y), real, heads=2)
            hidden = layer_norm(w, f"{name}.ffn.norm", x) @ w[f"{name}.ffn.body.up.weight"].T
            hidden = hidden * (1 + torch.erf(hidden / 2**0.5)) / 2
            given.append(x + hidden @ w[f"{name}.ffn.body.down.weight"].T)
            alphas = [*w[f"{name}.past.weight"], w[f"{name}.own.weight"]]
            y = torch.stack([alpha * one for alpha, one in zip(alphas, given, strict=True)]).sum(0)
        rows.append(layer_norm(w, "norm", y) @ w["embed.weight"].T)
    return torch.stack(rows)


def causal_attention(w: Weights, name: str, x: Tensor, real: Tensor, *, heads: int) -> Tensor:
    """Compute causal attention with rotated queries and keys of each head."""
    steps = torch.arange(len(x))
    mask = (steps[None] <= steps[:, None]) & real
    parts = zip(*((x @ w[f"{name}.{part}.weight"].T).chunk(heads, -1) for part in "qkv"), strict=True)
    looked = [attention(rotated(q), rotated(k), v, mask) for q, k, v in parts]
    return torch.cat(looked, -1) @ w[f"{name}.out.weight"].T


def swiglu(w: Weights, name: str, x: Tensor) -> Tensor:
    """Compute the feed-forward layer of Shazeer 2020, https://arxiv.org/abs/2002.05202: (Swish(x W) * x V) W_2."""
    gate = x @ w[f"{name}.gate.weight"].T
    return (gate / (1 + (-gate).exp()) * (x @ w[f"{name}.up.weight"].T)) @ w[f"{name}.down.weight"].T


def multi_query(w: Weights, name: str, x: Tensor, real: Tensor, *, heads: int) -> Tensor:
    """Compute causal attention with one key and one value for all heads."""
    steps = torch.arange(len(x))
    mask = (steps[None] <= steps[:, None]) & real
    q, k, v = (x @ w[f"{name}.{part}.weight"].T for part in "qkv")
    looked = [attention(rotated(head), rotated(k), v, mask) for head in q.chunk(heads, -1)]
    return torch.cat(looked, -1) @ w[f"{name}.out.weight"].T


def rotated(x: Tensor) -> Tensor:
    """Rotate the pairs of neighboring channels, as complex numbers, as Su et al. 2021 do, https://arxiv.org/abs/2104.09864."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())  # [T, D / 2]
    angles = torch.arange(len(x), dtype=x.dtype)[:, None] * 10000 ** (
        -2 * torch.arange(pairs.shape[1], dtype=x.dtype) / x.shape[1]
    )
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def lecture_block(w: Weights, tokens: Tensor) -> Tensor:
    """Compute one block of the Transformer with one head, whose values are summed without a map after them."""
    x = w["embed.weight"][tokens]  # [B, T, D]
    q, k, v = (x @ w[f"attn.{name}.weight"].T for name in "qkv")
    causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
    looked = torch.stack([attention(*row, causal) for row in zip(q, k, v, strict=True)])
    x = add_norm(w, "attn_norm", x, looked)
    x = add_norm(w, "ffn_norm", x, feed_forward(w, "ffn", x))
    return affine(w, "head", x)


def rnn_lm(w: Weights, tokens: Tensor) -> Tensor:
    """Compute a recurrent language model: h_t = tanh(W_xh x_t + W_hh h_{t-1} + b), o_t = W_hy h_t + b_y, from h_0 = 0,
    and logits of o_t.
    """
    h = w["embed.weight"].new_zeros(len(tokens), w["cell.hidden.weight_hh_l0"].shape[0])  # [B, d_h]
    logits = []
    for step in tokens.T:
        x = w["embed.weight"][step]
        h = torch.tanh(x @ w["cell.hidden.weight_ih_l0"].T + h @ w["cell.hidden.weight_hh_l0"].T + w["cell.hidden.bias_ih_l0"])
        o = affine(w, "cell.out", h)
        logits.append(affine(w, "head", o))
    return torch.stack(logits, 1)


def mlp_lm(w: Weights, tokens: Tensor) -> Tensor:
    """Compute the language model of Bengio et al. 2003, equation 1 without W, the direct connections: y = b + U tanh(d + H x)."""
    window = w["window.weight"]  # H, [hidden, dim, reach], the oldest word first
    reach = window.shape[2]
    C = w["embed.weight"]
    logits = []
    for t in range(tokens.shape[1]):
        x = [C[tokens[:, t - ago]] if ago <= t else C.new_zeros(len(tokens), C.shape[1]) for ago in reversed(range(reach))]
        H = window.permute(0, 2, 1).flatten(1)  # beside the words one after another, [hidden, reach * dim]
        hidden = torch.tanh(w["window.bias"] + torch.cat(x, -1) @ H.T)
        logits.append(affine(w, "head", hidden))
    return torch.stack(logits, 1)


def conv_lm(w: Weights, tokens: Tensor) -> Tensor:
    """Compute WaveNet's layers, van den Oord et al. 2016, https://arxiv.org/abs/1609.03499, each x + Sublayer(LayerNorm(x))."""
    x = w["embed.weight"][tokens]  # [B, T, D]
    for layer in range(3):
        name = f"layers.{layer}.conv"
        y = layer_norm(w, f"{name}.norm", x)
        filtered = causal_convolution(w, f"{name}.body.filter", y, dilation=2**layer)
        gate = causal_convolution(w, f"{name}.body.gate", y, dilation=2**layer)
        z = torch.tanh(filtered) * torch.sigmoid(gate)  # equation 2
        x = x + affine(w, f"{name}.body.out", z)  # figure 4: 1 × 1, then the sum
    return affine(w, "head", layer_norm(w, "norm", x))


def causal_convolution(w: Weights, name: str, x: Tensor, *, dilation: int) -> Tensor:
    """Compute a causal convolution (2.1): y_t = b + Σ_j W_j x_{t - (kernel - 1 - j) dilation}, where what is
    before the text is zero.
    """
    kernel = w[f"{name}.weight"]  # [out, in, kernel]
    rows = []
    for t in range(x.shape[1]):
        y = w[f"{name}.bias"].expand(len(x), -1)
        for j in range(kernel.shape[2]):
            past = t - (kernel.shape[2] - 1 - j) * dilation
            if past >= 0:
                y = y + x[:, past] @ kernel[:, :, j].T
        rows.append(y)
    return torch.stack(rows, 1)


def seq2seq_rnn(w: Weights, source: Tensor, target: Tensor) -> Tensor:
    """Compute RNNsearch, Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473, appendix A.2, which leaves out the biases.

    The paper says two things of the state that the deep output reads: s_i in equation 4 and in p(y_i | s_i, y_{i-1}, c_i),
    s_{i-1} in the sum of A.2.2. Here it is s_i.
    """
    embedded = w["encoder.embed.weight"][source]  # [B, S, m]
    width = w["decoder.new.weight_hh"].shape[1]
    start = embedded.new_zeros(len(source), width)
    forward: list[Tensor] = []
    backward: list[Tensor] = []
    h = start  # A.2.1
    for j in range(source.shape[1]):
        h = gru(w, "encoder.states.{}_l0", embedded[:, j], h)
        forward.append(h)
    h = start
    for j in reversed(range(source.shape[1])):
        h = gru(w, "encoder.states.{}_l0_reverse", embedded[:, j], h)
        backward.insert(0, h)
    annotations = [torch.cat(both, -1) for both in zip(forward, backward, strict=True)]  # equation 7
    s = torch.tanh(backward[0] @ w["bridge.weight"].T)  # A.2.2: s_0 = tanh(W_s h_1 of the backward layer)
    logits = []
    for step in target.T:
        y = w["embed.weight"][step]  # E y_{i-1}
        energies = torch.stack([alignment(w, s, h) for h in annotations], -1)  # e_ij, [B, S]
        alpha = energies.exp() / energies.exp().sum(-1, keepdim=True)  # equation 6
        c = torch.stack([alpha[:, j, None] * h for j, h in enumerate(annotations)]).sum(0)  # equation 5
        s = gru(w, "decoder.new.{}", torch.cat([y, c], -1), s)
        pairs = affine(w, "pairs", torch.cat([s, y, c], -1))  # U_o s_i + V_o E y_{i-1} + C_o c_i, [B, 2 l]
        t = torch.stack([pairs[:, 2 * j : 2 * j + 2].amax(-1) for j in range(pairs.shape[1] // 2)], -1)  # [B, l]
        logits.append(affine(w, "head", t))  # W_o t_i
    return torch.stack(logits, 1)


def alignment(w: Weights, s: Tensor, h: Tensor) -> Tensor:
    """Compute the alignment (A.1.2): a(s_{i-1}, h_j) = v^T tanh(W_a s_{i-1} + U_a h_j)."""
    return torch.tanh(s @ w["decoder.look.q.weight"].T + h @ w["decoder.look.k.weight"].T) @ w["decoder.look.v.weight"][0]


def gru(w: Weights, name: str, x: Tensor, h: Tensor) -> Tensor:
    """Compute a gated recurrent unit (A.2.2): s_i = (1 - z_i) s_{i-1} + z_i s̃_i; the weights of r, 1 - z and s̃ are below one
    another, as torch has them.
    """
    W_r, W_z, W = w[name.format("weight_ih")].chunk(3)
    U_r, U_z, U = w[name.format("weight_hh")].chunk(3)
    b_r, b_z, b = (w[name.format("bias_ih")] + w[name.format("bias_hh")]).chunk(3)
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    z = 1 - torch.sigmoid(x @ W_z.T + h @ U_z.T + b_z)
    proposal = torch.tanh(x @ W.T + (r * h) @ U.T + b)
    return (1 - z) * h + z * proposal
