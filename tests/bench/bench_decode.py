"""How fast a model writes beside a loop written by hand: `python -m tests.bench --only decode`.

GPT-2 with 6 layers of 512 writes greedily after a prompt of 32 tokens: as `generate` with a cache does it, and as a careful
person writes it, with buffers of keys and values that are allocated before and a forward for one token. Beside both: the products
of all linear maps alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

import composer
from composer.decode import GREEDY, Request, cached, generate, prepacked
from tests.bench.handwritten import GPT2
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import times

TABLE = Table(
    name="decode",
    names=["words", "rows"],
    columns={
        "a token": Column("less", 1, "ms"),
        "loop by hand": Column("more"),
        "prepacked beside the loop": Column("more"),
        "all linear maps": Column("more"),
    },
    about="medians of 9 texts each, text by text in turn; the control is the loop beside itself",
    told=["a token"],
)
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


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each vocabulary and number of rows."""
    new, rounds = (4, 1) if toy else (96, 9)
    for vocab in (997,) if toy else (8_192, 32_768):
        ours, written = models(vocab)
        for count in (1, 8):
            torch.manual_seed(0)
            prompt = torch.randint(vocab, (count, PROMPT))
            loop, request = Loop(written, count), Request(max_new_tokens=new, sampling=GREEDY)
            prompts, all_linears = prompt.tolist(), linears(written, count)

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

            with prepacked(ours, count):
                forwards = {module: vars(module)["forward"] for module in ours.modules() if "forward" in vars(module)}
            if write() != loop(prompt, new):
                raise RuntimeError("the loop by hand writes other tokens")
            found = times(
                {
                    "by hand": lambda: loop(prompt, new),  # noqa: B023
                    "ours": write,
                    "prepacked": write_prepacked,
                    "linears": lambda: [all_linears() for _ in range(new)],  # noqa: B023
                },
                rounds=rounds,
            )
            yield {
                "words": vocab,
                "rows": count,
                "a token": 1000 * found.seconds["ours"] / new,
                "loop by hand": found.speed("ours", beside="by hand"),
                "prepacked beside the loop": found.speed("prepacked", beside="by hand"),
                "all linear maps": found.speed("ours", beside="linears"),
                "control": found.control,
            }
