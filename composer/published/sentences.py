"""Texts as vectors: the pooling and the normalization that a published folder declares for its sentence encoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from composer.published.folder import CONFIG
from composer.published.heads import HIDDEN
from composer.published.tokenizer import PublishedTokenizer
from composer.weights.other_formats import refuse
from composer.weights.published_files import read_json

if TYPE_CHECKING:
    from torch import Tensor

    from composer.lower import Model

POOLINGS = {
    "cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken",
}  # fmt: skip
"""The ways to make one vector of those of all tokens, each with the end of its key in `1_Pooling/config.json`."""
PARTS = ("Transformer", "Pooling", "Normalize")
"""Parts of a sentence encoder that are known, by the last word of their type."""
WITHOUT_HEAD = "a model with a head has none: `AutoModel.from_pretrained(…).save_pretrained(…)` of transformers writes it without"


@dataclass(frozen=True)
class Pooling:
    """How the vectors of a text's tokens become one."""

    ways: tuple[str, ...]
    """Several are concatenated."""
    normalize: bool
    max_length: int | None
    """Tokens of a text beyond these are cut off."""


def pooling_of(folder: Path) -> Pooling:
    """Return the pooling that a folder declares; without a declaration, the mean of all tokens.

    Raises:
        RecipeError: It has a part that is not known.
    """
    import json

    modules = folder / "modules.json"
    if folder.is_file() or not modules.is_file():
        return Pooling(("mean",), False, None)
    try:
        parts = json.loads(modules.read_bytes()[: 1 << 20])
    except ValueError as error:
        refuse("unreadable-file", f"this is not a JSON file: {error}", modules)
    known = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    kinds = {str(part.get("type", "")).rpartition(".")[2]: part for part in known}
    if other := [kind for kind in kinds if kind not in PARTS]:
        refuse("unreadable-file", f"this encoder has a part that is not known here: {other[0]}", modules)
    length = (
        read_json(folder / name).get("max_seq_length") if (folder / (name := "sentence_bert_config.json")).is_file() else None
    )
    ways: tuple[str, ...] = ("mean",)
    if "Pooling" in kinds:
        ways = _ways(folder / str(kinds["Pooling"].get("path", "1_Pooling")).rpartition("/")[2] / CONFIG)
    return Pooling(ways, "Normalize" in kinds, length if isinstance(length, int) else None)


def _ways(file: Path) -> tuple[str, ...]:
    settings = read_json(file)
    named = settings.get("pooling_mode")
    ways = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    ways = ways or [way for way, key in POOLINGS.items() if settings.get(f"pooling_mode_{key}") is True]
    if not ways or any(way not in POOLINGS for way in ways):
        refuse("unreadable-file", f"this pooling is not known here; known are {', '.join(POOLINGS)}", file)
    return tuple(ways)


def embed(model: Model, tokenizer: PublishedTokenizer, pooling: Pooling, texts: Sequence[str]) -> Tensor:
    """Return a vector for each text, [N, D].

    Args:
        model: A model without its head, that is one with the output `hidden` [B, T, D].
        tokenizer: Its tokenizer.
        pooling: How the vectors of tokens become one.
        texts: The texts.

    Raises:
        RecipeError: The model has no such output.
    """
    import torch

    device = next(model.parameters()).device
    found = []
    with torch.no_grad():
        for text in texts:  # one by one: no padding, so that no text changes another
            tokens = torch.tensor([_cut(tokenizer.encode(text), pooling.max_length)], device=device)
            hidden = getattr(model(tokens), HIDDEN, None)
            if hidden is None or hidden.dim() != 3:
                message = f"the model has no output `{HIDDEN}` with a vector for each token"
                refuse("missing-file", message, str(tokenizer.folder), hint=WITHOUT_HEAD)
            found.append(torch.cat([pooled(hidden[0], way) for way in pooling.ways]))
        vectors = torch.stack(found) if found else torch.empty(0, 0)
        return torch.nn.functional.normalize(vectors, dim=-1) if pooling.normalize else vectors


def pooled(hidden: Tensor, way: str) -> Tensor:
    """Return one vector of those of a text's tokens, [T, D]."""
    import torch

    match way:
        case "cls":
            return hidden[0]
        case "max":
            return hidden.amax(0)
        case "mean_sqrt_len_tokens":
            return hidden.sum(0) / math.sqrt(len(hidden))
        case "weightedmean":
            weights = torch.arange(1, len(hidden) + 1, device=hidden.device, dtype=hidden.dtype)
            return torch.mv(hidden.mT, weights) / weights.sum()
        case "lasttoken":
            return hidden[-1]
    return hidden.mean(0)


def _cut(tokens: list[int], length: int | None) -> list[int]:
    """Return the first tokens of a text, and its last, which ends it."""
    return tokens if length is None or len(tokens) <= length else [*tokens[: length - 1], tokens[-1]]
