"""FlexAttention, compiled with the predicate of each mask, beside the causal kernel and the dense matrix.

It says whether the composer should use it: the speeds are multiples of the causal kernel's, as those of the masks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from blocks.masks.mask import Pair
from tests.bench.gpu.masks import CASES, HEADS, SOFTCAP, Prepared, agree, measure, prepared, works_of
from tests.bench.gpu.setting import Row, Setting
from tests.bench.timing import passes

LEFT_OUT = ("full", "causal and chunk(512)", "valid(valid)", "causal and dilated(64, 4)", "causal and random(8, 64, 1)")
"""Masks that show nothing that others do not show, since each is compiled."""
BESIDE = ("causal kernel", "dense", "block")
"""What it is measured beside."""


def run(setting: Setting, length: int) -> None:
    """Measure the cases at a length."""
    if setting.toy:
        length = length // 16
    for case in CASES:
        if case.mask in LEFT_OUT:
            continue
        torch._dynamo.reset()
        works: dict[str, Callable[[], Tensor]] = {}
        about: Row = {}
        for kind, train in (("forward", False), ("forward and backward", True)):
            if train and not setting.on_card:
                continue  # it has no backward pass there
            with setting.case(case.name, length=length, what=kind) as row:
                if not works:
                    found = prepared(setting, case, length)
                    works = {"flex": flex(setting, about, found)}
                    if not setting.warm:
                        works = {name: each for name, each in works_of(setting, {}, found).items() if name in BESIDE} | works
                row |= about
                if setting.warm:
                    passes(works["flex"], train=train)()
                    continue
                if not train:
                    agree(setting, row, works)
                measure(setting, row, works, train=train)
        del works


def flex(setting: Setting, row: Row, found: Prepared) -> Callable[[], Tensor]:
    """Return compiled FlexAttention with the predicate of the mask, and the blocks that it leaves out."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    case, (rows, _, length, _), mask = found.case, found.q.shape, found.lowered
    data = found.edges()

    def allowed(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        pairs = {name: Pair(value[b, q], value[b, k]) for name, value in data.items()}
        seen = mask.allows(q, k, ends=Pair(length - 1, length - 1), **pairs)
        return (q >= 0) & seen

    blocks = create_block_mask(allowed, rows if data else None, None, length, length, device=str(setting.device))
    row["share of blocks of 128"] = 1 - float(blocks.sparsity()) / 100
    score_mod = None
    if case.score_mod == "softcap":
        score_mod = lambda score, b, h, q, k: SOFTCAP * torch.tanh(score / SOFTCAP)  # noqa: E731
    elif case.score_mod == "bias":
        bias = found.bias
        assert bias is not None
        score_mod = lambda score, b, h, q, k: score + bias[h, q, k]  # noqa: E731
    program: Any = torch.compile(flex_attention, dynamic=False, fullgraph=True, backend=setting.backend)
    q, k, v = (x if setting.on_card else x.detach() for x in (found.q, found.k, found.v))
    options: dict[str, Any] = {"block_mask": blocks, "score_mod": score_mod, "enable_gqa": case.kv_heads < HEADS}
    if case.score_mod != "sinks":
        return lambda: program(q, k, v, **options)
    sinks: Any = found.model.y.sink_scores

    def with_sinks() -> Tensor:
        y, total = program(q, k, v, return_lse=True, **options)
        return (y * torch.sigmoid(total - sinks[:, None])[..., None]).to(y.dtype)

    return with_sinks
