"""Prefix language models: the tokens of a prefix see each other, and what follows is predicted (Raffel et al. 2019)."""

from __future__ import annotations

import torch

from blocks.masks.mask import Mask
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.visit import walk
from composer.train.losses import IGNORED, Batch


def prefix_input(program: TypedProgram) -> str | None:
    """Return the input with the lengths of prefixes, as `prompt_length` in `causal or prefix(prompt_length)`; None without."""
    for visit in walk(program.root):
        mask = getattr(visit.node.part, "mask", None) if isinstance(visit.node, TypedBlock) else None
        if isinstance(mask, Mask) and isinstance(visit.node, TypedBlock):
            sources = {wire.port: wire.refs for wire in visit.node.node.wires}
            for length in mask.prefixes():
                for ref in sources.get(str(length), ()):
                    if ref.node in program.inputs:
                        return ref.node
    return None


def with_prefixes(batch: Batch, name: str, generator: torch.Generator) -> Batch:
    """Return windows of text with a random prefix each, of at least a token, after which the targets begin."""
    rows, length = batch["tokens"].shape
    lengths = torch.randint(1, length + 1, (rows,), generator=generator)
    before = torch.arange(length) < lengths[:, None] - 1  # the last token of the prefix predicts the first after it
    return {**batch, "targets": batch["targets"].masked_fill(before, IGNORED), name: lengths}
