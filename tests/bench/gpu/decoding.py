"""Greedy decoding beside transformers, a loop written by hand, and what reading the weights alone takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import composer
from composer.decode import GREEDY, Request, cached, compiled, generate, session
from composer.decode.reading import DecodeStep, Onward
from tests.bench.bench_decode import Loop
from tests.bench.gpu.machine import measured
from tests.bench.gpu.setting import Setting, Work
from tests.bench.gpu.sizes import Sizes, sizes_of
from tests.bench.handwritten import GPT2

PROMPT, NEW, ROWS = 128, 64, (1, 8)
SAME = {"max_length": "session", "max_length, compiled": "session", "by hand, captured": "by hand"}
"""Ways with the same weights, and so the same tokens as others, up to rounding."""
PROMPT_OF_TOY, NEW_OF_TOY = 8, 6


def run(setting: Setting, model: str) -> None:
    """Measure a model, `gpt2` or `llama`, in bfloat16."""
    sizes = sizes_of(model, toy=setting.toy)
    prompt_length, new = (PROMPT_OF_TOY, NEW_OF_TOY) if setting.toy else (PROMPT, NEW)
    ours = composer.load(sizes.recipe, sizes.overrides).compile(seed=0, device=setting.device, dtype=setting.dtype).eval()
    with setting.device:
        theirs = sizes.theirs().to(setting.dtype).eval()
    weights = sum(each.numel() * each.element_size() for each in ours.parameters())
    bound = weights / measured(setting.folder).bandwidth[-1][1]
    for rows in ROWS:
        torch._dynamo.reset()
        prompt = torch.randint(sizes.vocab, (rows, prompt_length), device=setting.device)
        ways = {**of_ours(setting, ours, prompt, new), **of_theirs(setting, theirs, prompt, new)}
        if model == "gpt2":
            ways |= of_hand(setting, sizes, prompt, new)
        works: dict[str, Work] = {}
        tokens: dict[str, list[list[int]]] = {}
        for name, way in ways.items():
            try:
                tokens[name] = way()
                works[name] = way
            except Exception as error:
                failure = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                setting.write({"section": setting.section, "case": name, "rows": rows, "error": failure})
        if setting.warm:
            continue
        found, apart = setting.times(works, rounds=4)
        for name, seconds in found.items():
            with setting.case(name, rows=rows) as row:
                row |= {"ms a step": 1000 * seconds / new, "tokens/s": rows * new / seconds}
                row |= {"share of the bound": bound * new / seconds, "A/A": apart}
                row |= {"bound, ms": 1000 * bound, "weights, MB": weights / 1e6}
                if name in SAME:
                    row["the same tokens"] = tokens[name] == tokens.get(SAME[name])


def of_ours(setting: Setting, model: Any, prompt: Tensor, new: int) -> dict[str, Callable[[], list[list[int]]]]:
    """Return the ways of the composer."""
    prompts, request = prompt.tolist(), Request(max_new_tokens=new, sampling=GREEDY)

    @contextmanager
    def fixed(model: nn.Module, encoder_inputs: Any, max_length: int) -> Iterator[DecodeStep]:
        with session(model, max_length=max_length, last_only=True) as opened:
            yield Onward(model, encoder_inputs, opened)

    mode = {"mode": "reduce-overhead"} if setting.backend == "inductor" else {"backend": setting.backend}
    by_program = compiled(model, **mode)
    readings: dict[str, Any] = {"session": cached, "max_length": fixed, "max_length, compiled": by_program}
    if setting.warm:
        readings = {"max_length, compiled": by_program}
    return {
        name: lambda reading=reading: generate(model, prompts, request, reading=reading)  # type: ignore[misc]
        for name, reading in readings.items()
    }


def of_theirs(setting: Setting, model: Any, prompt: Tensor, new: int) -> dict[str, Callable[[], list[list[int]]]]:
    """Return the ways of transformers, which compiles a step by itself on a card where the cache is static."""

    def write(**options: Any) -> list[list[int]]:
        found = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=new, min_new_tokens=new, do_sample=False, **options
        )
        return found[:, prompt.shape[1] :].tolist()  # type: ignore[no-any-return]

    ways = {"transformers, static cache": lambda: write(cache_implementation="static")}
    return ways if setting.warm else {"transformers": write, **ways}


def of_hand(setting: Setting, sizes: Sizes, prompt: Tensor, new: int) -> dict[str, Callable[[], list[list[int]]]]:
    """Return loops by hand, with other weights: one that starts each operator, and one that replays a captured graph."""
    if setting.warm:
        return {}
    model = GPT2(vocab=sizes.vocab, context=sizes.length, dim=sizes.dim, layers=sizes.layers, heads=sizes.heads)
    model = model.to(setting.device, setting.dtype).eval()
    loop = Loop(model, prompt.shape[0])
    captured: list[Captured] = []

    def replay() -> list[list[int]]:
        if not captured:
            captured.append(Captured(setting, loop))
        return captured[0](prompt, new)

    return {"by hand": lambda: loop(prompt, new), "by hand, captured": replay}


class Captured:
    """The loop by hand with a step of fixed shapes, of which a card keeps a graph."""

    def __init__(self, setting: Setting, loop: Loop) -> None:
        self.loop = loop
        rows = loop.keys.shape[1]
        self.token = torch.zeros(rows, 1, dtype=torch.long, device=setting.device)
        self.place = torch.zeros(1, dtype=torch.long, device=setting.device)
        self.graph: Any = None
        if setting.on_card:
            with torch.no_grad():
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    self.step()
                    self.step()
                torch.cuda.current_stream().wait_stream(side)
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self.step()

    def step(self) -> None:
        """Read the token at the place, and put the next one there in its stead."""
        loop, model = self.loop, self.loop.model
        x = model.embed(self.token) + model.positions(self.place)
        seen = torch.arange(loop.keys.shape[3], device=x.device) <= self.place  # [S]
        for layer, keys, values in zip(model.layers, loop.keys, loop.values, strict=True):
            y, own = layer.norm_1(x), layer.attention
            q, k, v = (linear(y).unflatten(-1, (loop.heads, -1)).transpose(1, 2) for linear in (own.q, own.k, own.v))
            keys.index_copy_(2, self.place, k)
            values.index_copy_(2, self.place, v)
            z = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen[None, None, None, :])
            x = x + own.out(z.transpose(1, 2).flatten(2))
            x = x + layer.feed_forward(layer.norm_2(x))
        self.token.copy_(model.head(model.norm(x[:, -1])).argmax(-1, keepdim=True))
        self.place.add_(1)

    @torch.no_grad()
    def __call__(self, prompt: Tensor, new: int) -> list[list[int]]:
        """Return the new tokens of each row."""
        self.token.copy_(self.loop.read(prompt, 0).argmax(-1, keepdim=True))
        self.place.fill_(prompt.shape[1])
        found = [self.token.clone()]
        for _ in range(new - 1):
            self.graph.replay() if self.graph is not None else self.step()
            found.append(self.token.clone())
        return torch.cat(found, dim=1).tolist()
