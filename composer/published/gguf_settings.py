"""What a GGUF file says of its model, as the `config.json` of a published folder, and the other way around."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composer.diagnostics import Source
from composer.weights.gguf.architectures import ARCHITECTURES, REAL
from composer.weights.gguf.file import read_as, read_header

NOT_A_MODELS = ("general.", "tokenizer.", "quantize.")
"""How keys begin that are about the file, the tokenizer and the way in which numbers were rounded."""


def gguf_config(file: Path) -> Source:
    """Return the settings of a file as a `config.json`; what it has no name for keeps its own, and is refused by it.

    Raises:
        RecipeError: It is no GGUF file, or one of an architecture that is not read.
    """
    header = read_header(file)
    kind, architecture = header.architecture, read_as(header, file)
    config: dict[str, Any] = {}
    if "token_embd.weight" in header.tensors:
        config["vocab_size"] = header.tensors["token_embd.weight"].shape[0]
    for key, value in header.settings.items():
        own = architecture.keys.get(key.removeprefix(f"{kind}."), "")
        if own:
            if config.setdefault(own, _short(value)) != _short(value):
                config[key] = _short(value)  # refused by its name, since two disagree
        elif not key.startswith(NOT_A_MODELS):
            config[key] = value
    config = {"model_type": architecture.model_type, **architecture.implied(config), **config}
    config["tie_word_embeddings"] = "output.weight" not in header.tensors
    for name in ("bos", "eos"):
        if isinstance(token := header.settings.get(f"tokenizer.ggml.{name}_token_id"), int):
            config[f"{name}_token_id"] = token
    return Source(f"{file} (settings)", json.dumps(config, indent=2))


def settings_of(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a file by the values of a `config.json`, those that it has a key for.

    Args:
        name: The architecture, such as `llama`.
        config: The values.
    """
    found: dict[str, Any] = {"general.architecture": name}
    for key, own in ARCHITECTURES[name].keys.items():
        if (value := config.get(own)) is not None:
            found[f"{name}.{key}"] = float(value) if key.endswith(REAL) else value
    return found


def _short(value: Any) -> Any:
    """Return a number of 32 bits as the shortest one that rounds to it, as it was before it was stored."""
    if not isinstance(value, float):
        return value
    import numpy

    return float(str(numpy.float32(value)))
