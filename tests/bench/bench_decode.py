"""How fast a model writes beside a loop written by hand: `python -m tests.bench.bench_decode`.

GPT-2 with 6 layers of 512 writes greedily after a prompt of 32 tokens: as `generate` with a cache does it, and as a careful
person writes it, with buffers of keys and values that are allocated before and a forward for one token. Beside both: the products
of all linear maps alone. They write in turn, text by text, in one process with one thread; the ratio of the medians is printed
beside that of the hand-written loop to itself, which says how far the machine can be believed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

import composer
from composer.decode import GREEDY, Request, cached, generate, prepacked
from tests.bench.handwritten import GPT2

LAYERS, DIM, HEADS, CONTEXT, PROMPT = 6, 512, 8, 256, 32


class Loop:
    """Greedy decoding of the hand-written model, one token at a time."""

    def __init__(self, model: GPT2, rows: int) -> None:
        self.model, self.heads = model, model.layers[0].attention.heads
        weight = model.positions.weight
        context, dim = weight.shape
        size = (len(model.layers), rows, self.heads, context, dim // self.heads)
        self.keys, self.values = weight.new_zeros(size), weight.new_zeros(size)

    def read(self, tokens: Tensor, start: int) -> Tensor:
        """Return the logits of the last of some tokens [B, t], the first of which is at `start`: [B, V]."""
        stop = start + tokens.shape[1]
        x = self.model.embed(tokens) + self.model.positions.weight[start:stop]
        for layer, keys, values in zip(self.model.layers, self.keys, self.values, strict=True):
            y, own = layer.norm_1(x), layer.attention
            q, k, v = (linear(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for linear in (own.q, own.k, own.v))
            keys[:, :, start:stop], values[:, :, start:stop] = k, v
            z = F.scaled_dot_product_attention(q, keys[:, :, :stop], values[:, :, :stop], is_causal=start == 0)
            x = x + own.out(z.transpose(1, 2).flatten(2))
            x = x + layer.feed_forward(layer.norm_2(x))
        return self.model.head(self.model.norm(x[:, -1]))

    @torch.no_grad()
    def __call__(self, prompt: Tensor, new: int) -> list[list[int]]:
        """Return the new tokens of each row."""
        found = [self.read(prompt, 0).argmax(-1)]
        for place in range(prompt.shape[1], prompt.shape[1] + new - 1):
            found.append(self.read(found[-1][:, None], place).argmax(-1))
        return torch.stack(found, dim=1).tolist()


def models(vocab: int) -> tuple[torch.nn.Module, GPT2]:
    """Return the generated model and the hand-written one, with the same weights."""
    sizes = {"n_layers": LAYERS, "d_model": DIM, "n_heads": HEADS, "vocab": vocab, "context": CONTEXT, "dropout": 0}
    ours = composer.load("gpt2", overrides=sizes).compile(seed=0).eval()
    written = GPT2(vocab=vocab, context=CONTEXT, dim=DIM, layers=LAYERS, heads=HEADS).eval()
    names = {"attn.norm": "norm_1", "attn.body": "attention", "ffn.norm": "norm_2", "ffn.body": "feed_forward"}
    state = {}
    for name, value in ours.state_dict().items():
        for given, wanted in names.items():
            name = name.replace(given, wanted)
        state[name] = value
    state = {name: state.get(name, state.get(name.replace("head", "embed"))) for name in written.state_dict()}
    written.load_state_dict(state)
    return ours, written


def linears(model: GPT2, rows: int) -> Callable[[], object]:
    """Return a function that computes all linear maps of one token of each row, and nothing else."""
    maps = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    given = [torch.randn(rows, 1, module.in_features) for module in maps]

    @torch.no_grad()
    def compute() -> None:
        for module, x in zip(maps, given, strict=True):
            module(x)

    return compute


def medians(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median time of each function, called in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(measured) for name, measured in times.items()}


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--new", type=int, default=96)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, {options.new} new tokens, {options.rounds} rounds, in turn")
    for vocab in (8_192, 32_768):
        ours, written = models(vocab)
        for rows in (1, 8):
            torch.manual_seed(0)
            prompt = torch.randint(vocab, (rows, PROMPT))
            loop, request = Loop(written, rows), Request(max_new_tokens=options.new, sampling=GREEDY)
            prompts, all_linears = prompt.tolist(), linears(written, rows)

            def write() -> list[list[int]]:
                return generate(ours, prompts, request, reading=cached)  # noqa: B023

            def write_prepacked() -> list[list[int]]:
                for module, forward in forwards.items():  # noqa: B023
                    vars(module)["forward"] = forward
                try:
                    return write()
                finally:
                    for module in forwards:  # noqa: B023
                        del vars(module)["forward"]

            with prepacked(ours, rows):
                forwards = {module: vars(module)["forward"] for module in ours.modules() if "forward" in vars(module)}
            functions = {
                "ours": write,
                "prepacked": write_prepacked,
                "by hand": lambda: loop(prompt, options.new),  # noqa: B023
                "again": lambda: loop(prompt, options.new),  # noqa: B023
                "linears": lambda: [all_linears() for _ in range(options.new)],  # noqa: B023
            }
            same = functions["ours"]() == functions["by hand"]()
            found = medians(functions, options.rounds)
            print(
                f"{vocab:,} words, {rows} rows: {1000 * found['ours'] / options.new:.2f} ms a token, speed of a loop by hand "
                f"x {found['by hand'] / found['ours']:.3f}, of all linears x {found['linears'] / found['ours']:.3f}; prepacked "
                f"x {found['by hand'] / found['prepacked']:.3f}; control "
                f"{found['again'] / found['by hand']:.3f}; {'the same' if same else 'OTHER'} tokens",
                flush=True,
            )


if __name__ == "__main__":
    main()
