"""How fast padded rows are beside rows of the same shape without padding: `python -m tests.bench.bench_padding [--train]`.

Attention as a compiled model has it, with lengths drawn between half and all of the positions, and torch's kernel with the dense
matrix, which is ready; 8 heads of 64 channels. They are run in turn, call by call, in one process with one thread. Speeds are
multiples of torch's kernel's without padding; that of this kernel beside itself says how far the machine can be believed.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.nn.functional as F

import composer
from tests.bench.bench_masks import CHANNELS, HEADS, speeds

RECIPE = """
recipe: one
inputs: {{x: "float[batch, time, {width}]", valid: "bool[batch, time]?"}}
graph: {{y: {{type: attention, heads: {heads}, mask: "{mask}", in: x}}}}
"""
SHAPES = ((32, 64), (16, 256), (8, 512), (4, 1024))
"""Rows and positions."""


def main() -> None:
    """Print the speeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help="forward and backward")
    parser.add_argument("--calls", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    kind = "forward and backward" if options.train else "forward"
    print(f"torch {torch.__version__}, one thread, {kind}, {options.calls} calls each, in turn")
    for mask in ("causal and valid(valid)", "valid(valid)"):
        model: Any = composer.load(RECIPE.format(width=HEADS * CHANNELS, heads=HEADS, mask=mask)).compile(seed=0)
        for rows, length in SHAPES:
            torch.manual_seed(0)
            valid = torch.arange(length) < torch.randint(length // 2, length + 1, (rows, 1))
            q, k, v = (torch.randn(rows, HEADS, length, CHANNELS, requires_grad=True) for _ in range(3))
            at = torch.arange(length)
            view = model.mask.prepare(at, at, valid_valid=valid)
            matrix = view.dense()
            plain = lambda: F.scaled_dot_product_attention(q, k, v, is_causal="causal" in mask)  # noqa: B023, E731
            ours = lambda: view.attend(q, k, v, CHANNELS**-0.5, 0.0)  # noqa: B023, E731
            dense = lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=matrix)  # noqa: B023, E731
            torch.testing.assert_close(ours(), dense())
            found = speeds([plain, ours, dense, plain], train=options.train, calls=options.calls)
            print("{}, {} rows of {}: ours {:.2f}, dense {:.2f}, control {:.2f}".format(mask, rows, length, *found), flush=True)


if __name__ == "__main__":
    main()
