"""The tokenizer of a GGUF file as the files of a published folder, and the other way around."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.weights.gguf.file import GgufHeader, read_header
from composer.weights.other_formats import refuse

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Pieces

CUTS = ("llama-bpe", "qwen2", "gpt-2", "smollm")
"""The names that llama.cpp has for the ways to cut a text that are known."""
PLAIN, CONTROL, OF_USERS, UNUSED = 1, 3, 4, 5
"""Kinds of tokens: plain ones, those that are read as a whole, special ones and words that were added, and places without one."""
ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "mask": "mask"}
"""What special tokens are for, with llama.cpp's word for it."""


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
    kinds = kinds if isinstance(kinds, list) and len(kinds) == len(tokens) else [PLAIN] * len(tokens)
    added = [
        {"id": index, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": kind == CONTROL}
        for index, (token, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind in (CONTROL, OF_USERS)
    ]  # fmt: skip
    whole = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cut}, "post_processor": _around(header, tokens),
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": settings.get("tokenizer.ggml.pre") == "llama-bpe",
                  "vocab": {token: index for index, token in enumerate(tokens) if kinds[index] != UNUSED}, "merges": merges},
    }  # fmt: skip
    special = {f"{name}_token": _token(header, tokens, key) for name, key in ROLES.items()}
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


def _around(header: GgufHeader, tokens: list[str]) -> Mapping[str, Any] | None:
    """Return what puts the first and the last token around every text, if the file asks for them."""
    first, last = (
        _token(header, tokens, name) if header.settings.get(f"tokenizer.ggml.add_{name}_token") is True else None
        for name in ("bos", "eos")
    )
    words = [word for word in (first, last) if word is not None]
    if not words:
        return None

    def around(name: str, kind: int) -> list[Mapping[str, Any]]:
        text = {"Sequence": {"id": name, "type_id": kind}}
        before, after = ([] if word is None else [{"SpecialToken": {"id": word, "type_id": kind}}] for word in (first, last))
        return [*(before if kind == 0 else []), text, *after]

    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": [*around("A", 0), *around("B", 1)],
        "special_tokens": {word: {"id": word, "ids": [tokens.index(word)], "tokens": [word]} for word in words},
    }


def _token(header: GgufHeader, tokens: list[str], name: str) -> str | None:
    index = header.settings.get(f"tokenizer.ggml.{name}_token_id")
    return tokens[index] if isinstance(index, int) and 0 <= index < len(tokens) else None


def tokenizer_settings(
    pieces: Pieces, special: Mapping[str, str], chat_template: str | None, size: int, where: Path
) -> dict[str, Any]:
    """Return a tokenizer as the settings of a file.

    Args:
        pieces: The tokenizer.
        special: The words of special tokens by what they are for: `mask_token`.
        chat_template: How a chat is put.
        size: The number of tokens that the model knows; those that the tokenizer lacks get names that no text has.
        where: The file or folder that the tokenizer is from.

    Raises:
        RecipeError: A file cannot hold this tokenizer.
    """
    whole = json.loads(pieces.to_str())
    model, added = whole["model"], {each["id"]: each for each in whole["added_tokens"]}
    ids = pieces.get_vocab(with_added_tokens=True)
    if wrong := _not_held(whole, max(ids.values(), default=-1), size):
        hint = f"llama.cpp has names for the byte-level BPE of {', '.join(CUTS)}, as this version writes them"
        refuse("unreadable-file", f"a GGUF file cannot hold this tokenizer: {wrong}", where, hint=hint)
    tokens, kinds = [f"[PAD{index}]" for index in range(size)], [UNUSED] * size
    for token, index in ids.items():
        tokens[index] = token
        kinds[index] = PLAIN if index not in added else CONTROL if added[index]["special"] else OF_USERS
    first, last = _ends(pieces)
    roles = {name: special.get(f"{name}_token") for name in ROLES}
    # what is put around every text is the beginning and the end that the file knows, whatever else the settings call so
    roles |= {name: tokens[index] for name, index in (("bos", first), ("eos", last)) if index is not None}
    found = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": _name_of_cut(whole),
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [each if isinstance(each, str) else " ".join(each) for each in model["merges"]],
        **{f"tokenizer.ggml.{ROLES[name]}_token_id": ids[word] for name, word in roles.items() if word in ids},
        "tokenizer.ggml.add_bos_token": first is not None,
        "tokenizer.ggml.add_eos_token": last is not None,
    }
    return found if chat_template is None else {**found, "tokenizer.chat_template": chat_template}


def _not_held(whole: Mapping[str, Any], last: int, size: int) -> str:
    """Return what a file cannot hold of a tokenizer; nothing if it can hold all of it."""
    model, normalizer = whole["model"], whole["normalizer"]
    if model["type"] != "BPE" or model.get("byte_fallback") or (whole["decoder"] or {}).get("type") != "ByteLevel":
        return f"it is {model['type']} of characters" if model["type"] == "BPE" else f"it is {model['type']}"
    name = _name_of_cut(whole)
    if name is None:
        return "it cuts texts by another pattern before their bytes are paired"
    if normalizer is not None and (normalizer["type"], name) != ("NFC", "qwen2"):  # of Qwen 2, readers know it
        return f"it normalizes texts by {normalizer['type']}"
    if model["merges"] and bool(model.get("ignore_merges")) != (name == "llama-bpe"):
        return f"whole words are {'' if model.get('ignore_merges') else 'not '}looked up before their bytes are paired"
    if any(each["lstrip"] or each["rstrip"] or each["single_word"] for each in whole["added_tokens"]):
        return "special tokens take the spaces around them"
    return f"it has {last + 1} tokens, and the model {size}" if last >= size else ""


def _name_of_cut(whole: Mapping[str, Any]) -> str | None:
    """Return the name by which llama.cpp knows how a text is cut; None if it has none."""
    if not whole["model"]["merges"]:
        return "gpt-2"  # bytes alone, which no cut changes
    cut = whole["pre_tokenizer"] or {}
    parts = cut["pretokenizers"] if cut.get("type") == "Sequence" else [cut]
    return next((name for name in CUTS if _bare(_cut(name)) == _bare(parts)), None)


def _bare(parts: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in part.items() if key != "trim_offsets"} for part in parts or ()]


def _ends(pieces: Pieces) -> tuple[int | None, int | None]:
    """Return the tokens that are put before and after every text; None where there are none."""
    plain, ends = (pieces.encode("a", add_special_tokens=special).ids for special in (False, True))
    place = next(start for start in range(len(ends)) if ends[start : start + len(plain)] == plain)
    before, after = ends[:place], ends[place + len(plain) :]
    return before[0] if before else None, after[0] if after else None
