"""Attention with each mask: its kernel, time and memory, beside SDPA and beside FlexAttention.

Attention is that of a compiled model, without its maps: a block whose maps of queries, keys, values and outputs are the identity.
Speeds are multiples of the causal kernel's, `scaled_dot_product_attention(..., is_causal=True)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import composer
from tests.bench.bench_masks import MASKS
from tests.bench.gpu.kernels import traced
from tests.bench.gpu.setting import Row, Setting, mib
from tests.bench.timing import passes

HEADS, CHANNELS, TOKENS = 16, 64, 8192
"""Tokens of a batch: 4 rows of 2,048, or one of 8,192."""
SOFTCAP = 20.0


@dataclass(frozen=True)
class Case:
    """A mask, and what is done to the scores."""

    mask: str
    fields: str = ""
    kv_heads: int = HEADS
    bias: bool = False
    score_mod: str = ""

    @property
    def name(self) -> str:
        """The mask with what is beside it."""
        groups = f"{self.kv_heads} key heads" if self.kv_heads < HEADS else ""
        return ", ".join(filter(None, (self.mask, self.fields, groups, "bias" * self.bias)))


CASES = (
    Case("causal"),
    Case("full"),
    Case("causal", kv_heads=4),
    Case("causal and window(256)"),
    Case("causal and chunk(512)"),
    Case("causal and documents(documents)"),
    Case("causal and valid(valid)"),
    Case("valid(valid)"),
    *(Case(mask) for mask in MASKS),
    Case("causal and window(256) and documents(documents)", kv_heads=4),
    Case("causal", fields=f"softcap: {SOFTCAP}", score_mod="softcap"),
    Case("causal", fields="sinks: true", score_mod="sinks"),
    Case("causal", bias=True, score_mod="bias"),
)


@dataclass
class Prepared:
    """A case with its tensors."""

    case: Case
    model: Any
    x: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    data: dict[str, Tensor] = field(default_factory=dict)
    bias: Tensor | None = None

    def block(self) -> Tensor:
        """Compute the block as a model does, its mask prepared in each call."""
        given = {name: value for name, value in self.data.items() if name in self.case.mask}
        bias = {} if self.bias is None else {"bias": self.bias}
        y: Tensor = self.model(x=self.x, **given, **bias).y
        return y

    @property
    def lowered(self) -> Any:
        """The mask as the generated source has it, without what `torch.compile` does not know."""
        plan = getattr(self.model.mask, "given", self.model.mask)  # of a mask whose data are optional
        (node,) = self.model.program.root.nodes
        return getattr(plan, "mask", node.part.mask)

    def view(self) -> Any:
        """Return the mask as attention has it."""
        places = torch.arange(self.q.shape[2], device=self.q.device)
        return self.model.mask.prepare(places, places, **self.edges())

    def edges(self) -> dict[str, Tensor]:
        """Return what the mask reads, by the names that it has for it."""
        (node,) = self.model.program.root.nodes
        names = node.part.mask.edge_types()
        return {str(name): next(value for key, value in self.data.items() if name.startswith(key)) for name in names}


def prepared(setting: Setting, case: Case, length: int) -> Prepared:
    """Return a case with random tensors, documents of uneven lengths and rows of half to all of the positions."""
    heads, kv_heads, channels = HEADS, case.kv_heads, CHANNELS
    rows = 2 if setting.toy else max(1, TOKENS // length)
    width = heads * channels
    bias = '\n  bias: "float[heads, time, time]"'.replace("heads", str(heads)) if case.bias else ""
    wires = "{x: x, bias: bias}" if case.bias else "x"
    fields = f", {case.fields}" if case.fields else ""
    model: Any = composer.load(f"""
recipe: one
inputs:
  x: "float[batch, time, {width}]"
  documents: "int[batch, time]?"
  valid: "bool[batch, time]?"{bias}
graph:
  y: {{type: attention, heads: {heads}, kv_heads: {kv_heads}, mask: "{case.mask}"{fields}, in: {wires}}}
""").compile(seed=0, device=setting.device, dtype=setting.dtype)
    block = model.y
    for name in ("q", "out"):
        setattr(block, name, nn.Identity())
    for name in ("k", "v"):
        setattr(block, name, nn.Identity() if kv_heads == heads else First(kv_heads * channels))
    drawn = torch.Generator().manual_seed(length)
    places = torch.arange(length).expand(rows, length)
    cuts = torch.rand(rows, length, generator=drawn) < 1 / 300
    lengths = torch.randint(length // 2, length + 1, (rows, 1), generator=drawn)
    data = {"documents": cuts.long().cumsum(1).to(setting.device), "valid": (places < lengths).to(setting.device)}
    x = torch.randn(rows, length, width, device=setting.device, dtype=setting.dtype, requires_grad=True)
    new = lambda number: torch.randn(  # noqa: E731
        rows, number, length, channels, device=setting.device, dtype=setting.dtype, requires_grad=True
    )
    given = torch.randn(heads, length, length, device=setting.device, dtype=setting.dtype) if case.bias else None
    return Prepared(case, model, x, new(heads), new(kv_heads), new(kv_heads), data, given)


class First(nn.Module):
    """The first channels, in place of a map to fewer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        return x[..., : self.width]


def run(setting: Setting, length: int) -> None:
    """Measure all cases at a length, without FlexAttention."""
    if setting.toy:
        length = length // 16
    for case in CASES:
        works: dict[str, Callable[[], Tensor]] = {}
        about: Row = {}
        for kind, train in (("forward", False), ("forward and backward", True)):
            with setting.case(case.name, length=length, what=kind) as row:
                works = works or works_of(setting, about, prepared(setting, case, length))
                row |= about
                if not train:
                    agree(setting, row, works)
                measure(setting, row, works, train=train)
        del works


def works_of(setting: Setting, row: Row, found: Prepared) -> dict[str, Callable[[], Tensor]]:
    """Return what is compared, by name, all for the tensors of a case."""
    case, q, k, v = found.case, found.q, found.k, found.v
    gqa = case.kv_heads < HEADS
    causal = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=gqa)  # noqa: E731
    works: dict[str, Callable[[], Tensor]] = {"causal kernel": causal}
    view = found.view()
    row["view"] = type(view).__name__
    if not (case.fields or case.bias):
        works["attention"] = lambda: view.attend(q, k, v, CHANNELS**-0.5, 0.0)
        with setting.part(row, "dense"):
            matrix = view.dense()
            if matrix is not None:
                repeat = HEADS // case.kv_heads
                works["dense"] = lambda: F.scaled_dot_product_attention(
                    q,
                    k.repeat_interleave(repeat, 1) if gqa else k,
                    v.repeat_interleave(repeat, 1) if gqa else v,
                    attn_mask=matrix,
                )
    works["block"] = found.block
    return works


def agree(setting: Setting, row: Row, works: Mapping[str, Callable[[], Tensor]]) -> None:
    """Write how far what is compared is from the dense matrix, or else from the causal kernel."""
    if "dense" not in works and row["case"] != "causal":
        return
    with torch.inference_mode():
        wanted = works.get("dense", works["causal kernel"])().float()
        for name in {"attention", "flex"} & {*works}:
            with setting.part(row, f"{name}, compared"):
                row[f"difference of {name}"] = float((works[name]().float() - wanted).norm() / wanted.norm())


def measure(setting: Setting, row: Row, works: Mapping[str, Callable[[], Tensor]], *, train: bool) -> None:
    """Write the speeds, the memory and the kernels of forward, or of forward and backward."""
    running: dict[str, Callable[[], Any]] = {}
    for name, each in works.items():
        with setting.part(row, name):
            one = passes(each, train=train)
            one()
            row[f"MiB of {name}"] = mib(setting.peak(one))
            running[name] = one
    found, apart = setting.times(running, rounds=4)
    row["causal kernel, ms"] = 1000 * found["causal kernel"]
    row |= {name: found["causal kernel"] / seconds for name, seconds in found.items() if name != "causal kernel"}
    row["A/A"] = apart
    for name in ("attention", "block", "dense"):
        if name in running and (not train or name == "attention" or "attention" not in running):
            with setting.part(row, f"kernels of {name}"):
                kinds, largest = traced(running[name], on_card=setting.on_card)
                row[f"kernel of {name}"] = kinds
                if name == "attention" or "attention" not in running:
                    row["largest kernels"] = largest
