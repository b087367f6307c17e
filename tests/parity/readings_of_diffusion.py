"""What Transformers for diffusion predict as their papers and the authors' code say it, one image and one patch at a time, from
weights by the names of the authors' files.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.parity.readings import Weights, affine, attention, layer_norm


def dit(w: Weights, latent: Tensor, timestep: Tensor, label: Tensor, *, heads: int, patch: int) -> Tensor:
    """Compute DiT of Peebles and Xie 2023, https://arxiv.org/abs/2212.09748, with adaLN-Zero: for each image `[C, H, W]` the
    noise and what sets the variance, `[2 C, H, W]`.
    """
    return torch.stack([dit_image(w, *row, heads=heads, patch=patch) for row in zip(latent, timestep, label, strict=True)])


def dit_image(w: Weights, latent: Tensor, timestep: Tensor, label: Tensor, *, heads: int, patch: int) -> Tensor:
    """Map one image."""
    rows, columns = latent.shape[1] // patch, latent.shape[2] // patch
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    x = torch.stack([cut(w, "x_embedder.proj", latent, cell, patch) for cell in cells])  # 3.2, patchify
    x = x + torch.stack([torch.cat([sines(column, x.shape[1] // 2), sines(row, x.shape[1] // 2)]) for row, column in cells])
    c = silu(wave_map(w, "t_embedder.mlp", timestep, w["t_embedder.mlp.0.weight"].shape[1]) + class_vector(w, label))
    for layer in range(1 + max(int(name.split(".")[1]) for name in w if name.startswith("blocks."))):
        name = f"blocks.{layer}"
        shift, scale, gate, shift_ffn, scale_ffn, gate_ffn = affine(w, f"{name}.adaLN_modulation.1", c).chunk(6)
        x = x + gate * looked(w, f"{name}.attn", standard(x, 1e-6) * (1 + scale) + shift, heads)  # figure 3, adaLN-Zero
        x = x + gate_ffn * mlp(w, f"{name}.mlp", standard(x, 1e-6) * (1 + scale_ffn) + shift_ffn, gelu_tanh)
    shift, scale = affine(w, "final_layer.adaLN_modulation.1", c).chunk(2)
    y = affine(w, "final_layer.linear", standard(x, 1e-6) * (1 + scale) + shift)  # 3.2, Transformer decoder
    return put_together(y, cells, patch)


def uvit(w: Weights, image: Tensor, timestep: Tensor, label: Tensor, *, heads: int, patch: int) -> Tensor:
    """Compute U-ViT of Bao et al. 2023, https://arxiv.org/abs/2209.12152, figure 1: the noise of each image `[C, H, W]`."""
    return torch.stack([uvit_image(w, *row, heads=heads, patch=patch) for row in zip(image, timestep, label, strict=True)])


def uvit_image(w: Weights, image: Tensor, timestep: Tensor, label: Tensor, *, heads: int, patch: int) -> Tensor:
    """Map one image; all that there is, the class, the time and the patches, is a token."""
    rows, columns = image.shape[1] // patch, image.shape[2] // patch
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    patches = [cut(w, "patch_embed.proj", image, cell, patch) for cell in cells]
    time = waves(timestep, len(patches[0]))
    x = torch.stack([w["label_emb.weight"][label], time, *patches]) + w["pos_embed"][0]
    half = 1 + max(int(name.split(".")[1]) for name in w if name.startswith("in_blocks"))
    branches = []
    for layer in range(half):
        x = uvit_block(w, f"in_blocks.{layer}", x, heads)
        branches.append(x)
    x = uvit_block(w, "mid_block", x, heads)
    for layer in range(half):  # 3.1, Linear(Concat(h_m, h_s)); the shallowest branch goes to the deepest block
        both = torch.cat([x, branches[half - 1 - layer]], dim=1)
        x = uvit_block(w, f"out_blocks.{layer}", affine(w, f"out_blocks.{layer}.skip_linear", both), heads)
    y = put_together(affine(w, "decoder_pred", layer_norm(w, "norm", x))[2:], cells, patch)
    return convolved(w, "final_layer", y) if "final_layer.weight" in w else y


def uvit_block(w: Weights, name: str, x: Tensor, heads: int) -> Tensor:
    """Compute a block of a ViT, whose norms are in front."""
    x = x + looked(w, f"{name}.attn", layer_norm(w, f"{name}.norm1", x), heads)
    return x + mlp(w, f"{name}.mlp", layer_norm(w, f"{name}.norm2", x), gelu)


def convolved(w: Weights, name: str, image: Tensor) -> Tensor:
    """Compute a 3 × 3 convolution, with zeros around the image."""
    channels, rows, columns = image.shape
    padded = image.new_zeros(channels, rows + 2, columns + 2)
    padded[:, 1:-1, 1:-1] = image
    y = torch.empty_like(image)
    for row in range(rows):
        for column in range(columns):
            near = padded[:, row : row + 3, column : column + 3]
            y[:, row, column] = torch.einsum("ocpq, cpq -> o", w[f"{name}.weight"], near) + w[f"{name}.bias"]
    return y


def class_vector(w: Weights, label: Tensor) -> Tensor:
    """Return the vector of a class; the last one is that of no class."""
    return w["y_embedder.embedding_table.weight"][label]


def cut(w: Weights, name: str, image: Tensor, cell: tuple[int, int], patch: int) -> Tensor:
    """Map the patch in a row and a column to a vector, as a convolution does whose stride is its size."""
    row, column = cell
    pixels = image[:, row * patch : (row + 1) * patch, column * patch : (column + 1) * patch]
    return torch.einsum("dcpq, cpq -> d", w[f"{name}.weight"], pixels) + w[f"{name}.bias"]


def put_together(y: Tensor, cells: list[tuple[int, int]], patch: int) -> Tensor:
    """Return the image of which each vector has a patch: row by row, in each row pixel by pixel, of each pixel its channels."""
    rows, columns, channels = cells[-1][0] + 1, cells[-1][1] + 1, y.shape[1] // patch**2
    image = y.new_zeros(channels, rows * patch, columns * patch)
    for vector, (row, column) in zip(y, cells, strict=True):
        for place, number in enumerate(vector):
            pixel, channel = divmod(place, channels)
            down, right = divmod(pixel, patch)
            image[channel, row * patch + down, column * patch + right] = number
    return image


def sines(place: int, width: int) -> Tensor:
    """Return the sines of a row or a column and then its cosines, of frequencies from 1 to 1 / 10000."""
    angles = [place / 10000 ** (i / (width // 2)) for i in range(width // 2)]
    return torch.tensor([math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles], dtype=torch.float64)


def wave_map(w: Weights, name: str, timestep: Tensor, width: int) -> Tensor:
    """Map the waves of a time by two linear maps with a SiLU between them."""
    return affine(w, f"{name}.2", silu(affine(w, f"{name}.0", waves(timestep, width))))


def waves(timestep: Tensor, width: int) -> Tensor:
    """Return the cosines of a time and then its sines.

    The angles are in float32, which has four decimals of the largest.
    """
    frequencies = torch.exp(-math.log(10000) * torch.arange(width // 2, dtype=torch.float32) / (width // 2))
    angles = timestep.float() * frequencies
    return torch.cat([torch.cos(angles), torch.sin(angles)]).double()


def looked(w: Weights, name: str, x: Tensor, heads: int) -> Tensor:
    """Compute attention of every patch to every other; queries, keys and values are below one another in one map."""
    q, k, v = (x @ w[f"{name}.qkv.weight"].T + w.get(f"{name}.qkv.bias", 0)).chunk(3, -1)
    all_of_it = torch.ones(len(x), len(x), dtype=torch.bool)
    per_head = zip(q.chunk(heads, -1), k.chunk(heads, -1), v.chunk(heads, -1), strict=True)
    return affine(w, f"{name}.proj", torch.cat([attention(*head, all_of_it) for head in per_head], -1))


def mlp(w: Weights, name: str, x: Tensor, activation: object) -> Tensor:
    """Compute the feed-forward network."""
    assert callable(activation)
    return affine(w, f"{name}.fc2", activation(affine(w, f"{name}.fc1", x)))


def standard(x: Tensor, eps: float) -> Tensor:
    """Return the vectors with mean 0 and variance 1."""
    centered = x - x.mean(-1, keepdim=True)
    return centered / ((centered**2).mean(-1, keepdim=True) + eps).sqrt()


def silu(x: Tensor) -> Tensor:
    """Return x times its sigmoid."""
    return x / (1 + (-x).exp())


def gelu_tanh(x: Tensor) -> Tensor:
    """Compute the approximation of GELU by Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415."""
    return 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)))


def gelu(x: Tensor) -> Tensor:
    """Compute GELU by the error function."""
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))
