"""What a GGUF file says of its model and its tokenizer, as the files that a published folder has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composer.diagnostics import Source
from composer.weights.gguf_file import NAMES, GgufHeader, read_header
from composer.weights.other_formats import refuse

KEYS = {
    "context_length": "max_position_embeddings", "embedding_length": "hidden_size", "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads", "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta", "rope.dimension_count": "head_dim", "vocab_size": "vocab_size",
    "attention.key_length": "head_dim", "attention.value_length": "head_dim",
}  # fmt: skip
"""The keys of a `config.json` by those of llama.cpp, which begin with the architecture."""
NOT_A_MODELS = ("general.", "tokenizer.", "quantize.")
"""How keys begin that are about the file, the tokenizer and the way in which numbers were rounded."""
CONTROL, OF_USERS = 3, 4
"""Kinds of tokens that are read as a whole: special ones, and words that were added."""


def gguf_config(file: Path) -> Source:
    """Return the settings of a file as a `config.json`; what it has no name for keeps its own, and is refused by it.

    Raises:
        RecipeError: It is no GGUF file, or one of an architecture that is not read.
    """
    header = read_header(file)
    kind = header.architecture
    if kind not in NAMES:
        refuse(
            "unreadable-file",
            f"GGUF files of the architecture {kind or 'none'} are not read",
            file,
            hint=f"known are {', '.join(NAMES)}",
        )
    config: dict[str, Any] = {"model_type": kind}
    if "token_embd.weight" in header.tensors:
        config["vocab_size"] = header.tensors["token_embd.weight"].shape[0]
    for key, value in header.settings.items():
        own = KEYS.get(key.removeprefix(f"{kind}."), "")
        if own:
            if config.setdefault(own, _short(value)) != _short(value):
                config[key] = _short(value)  # refused by its name, since two disagree
        elif not key.startswith(NOT_A_MODELS):
            config[key] = value
    config["tie_word_embeddings"] = "output.weight" not in header.tensors
    for name in ("bos", "eos"):
        if isinstance(token := header.settings.get(f"tokenizer.ggml.{name}_token_id"), int):
            config[f"{name}_token_id"] = token
    return Source(f"{file} (settings)", json.dumps(config, indent=2))


def gguf_tokenizer(file: Path) -> dict[str, str]:
    """Return the tokenizer of a file as the files of a published folder by name; none if it is of a kind that is not read."""
    header = read_header(file)
    settings = header.settings
    tokens, kinds = settings.get("tokenizer.ggml.tokens"), settings.get("tokenizer.ggml.token_type")
    merges, cut = settings.get("tokenizer.ggml.merges"), _cut(str(settings.get("tokenizer.ggml.pre", "default")))
    if (
        settings.get("tokenizer.ggml.model") != "gpt2"
        or cut is None
        or not isinstance(tokens, list)
        or not isinstance(merges, list)
    ):
        return {}
    kinds = kinds if isinstance(kinds, list) and len(kinds) == len(tokens) else [1] * len(tokens)
    added = [
        {"id": index, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": kind == CONTROL}
        for index, (token, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind in (CONTROL, OF_USERS)
    ]  # fmt: skip
    whole = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cut}, "post_processor": _beginning(header, tokens),
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": settings.get("tokenizer.ggml.pre") == "llama-bpe",
                  "vocab": {token: index for index, token in enumerate(tokens)}, "merges": merges},
    }  # fmt: skip
    special = {f"{name}_token": _token(header, tokens, key) for name, key in
               (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))}  # fmt: skip
    words: dict[str, Any] = {name: token for name, token in special.items() if token is not None}
    if isinstance(template := settings.get("tokenizer.chat_template"), str):
        words["chat_template"] = template
    return {"tokenizer.json": json.dumps(whole), "tokenizer_config.json": json.dumps(words, indent=2)}


def _cut(name: str) -> list[dict[str, Any]] | None:
    """Return how a text is cut before its bytes are paired; None if the name is not known."""
    from composer.train.data.tokenizer_files import PATTERNS

    bytes_alone: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    as_gpt2: dict[str, Any] = {**bytes_alone, "use_regex": True}
    patterns = {"llama-bpe": PATTERNS[0], "qwen2": PATTERNS[1]}
    if name in patterns:
        return [{"type": "Split", "pattern": {"Regex": patterns[name]}, "behavior": "Isolated", "invert": False}, bytes_alone]
    return {"gpt-2": [as_gpt2], "smollm": [{"type": "Digits", "individual_digits": True}, as_gpt2]}.get(name)


def _beginning(header: GgufHeader, tokens: list[str]) -> Mapping[str, Any] | None:
    """Return what puts the first token before every text, if the file asks for it."""
    word = _token(header, tokens, "bos")
    if header.settings.get("tokenizer.ggml.add_bos_token") is not True or word is None:
        return None
    first = {"SpecialToken": {"id": word, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {word: {"id": word, "ids": [tokens.index(word)], "tokens": [word]}},
    }


def _token(header: GgufHeader, tokens: list[str], name: str) -> str | None:
    index = header.settings.get(f"tokenizer.ggml.{name}_token_id")
    return tokens[index] if isinstance(index, int) and 0 <= index < len(tokens) else None


def _short(value: Any) -> Any:
    """Return a number of 32 bits as the shortest one that rounds to it, as it was before it was stored."""
    if not isinstance(value, float):
        return value
    import numpy

    return float(str(numpy.float32(value)))
