"""The architectures of llama.cpp: how each names and lays out what transformers publishes, for reading and for writing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

KEYS = {
    "context_length": "max_position_embeddings", "embedding_length": "hidden_size", "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads", "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta", "attention.key_length": "head_dim", "attention.value_length": "head_dim",
    "rope.dimension_count": "head_dim", "vocab_size": "vocab_size",
}  # fmt: skip
"""The keys of a `config.json` by those of llama.cpp, which begin with the architecture."""
OF_GPT2 = {
    "context_length": "n_positions", "embedding_length": "n_embd", "block_count": "n_layer", "feed_forward_length": "n_inner",
    "attention.head_count": "n_head", "attention.layer_norm_epsilon": "layer_norm_epsilon", "vocab_size": "vocab_size",
}  # fmt: skip
REAL = ("_epsilon", ".freq_base", ".freq_base_swa", "_softcapping")
"""How keys end whose values are floats, whole ones too."""
DECODER = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head", "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
OF_GEMMA = {ours: theirs for ours, theirs in DECODER.items() if ours != "output"}
"""Of which the head is always the embedding."""
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
SANDWICH = {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in a file, compared with how it is published; for arrays and tensors alike."""

    heads: int = 0
    """The number of heads whose rows a file has in pairs, and published tensors have in halves; 0 for other tensors."""
    transposed: bool = False
    more: int = 0
    """What a file has added to each number."""

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of one side by that of the other."""
        return tuple(reversed(shape)) if self.transposed else shape

    def published(self, numbers: Any) -> Any:
        """Return what a file has as it is published."""
        if self.more:
            numbers = numbers - self.more
        return self._rows(numbers.T if self.transposed else numbers, 2)

    def stored(self, numbers: Any) -> Any:
        """Return what is published as a file has it."""
        numbers = self._rows(numbers, self._half(numbers))
        numbers = numbers.T if self.transposed else numbers
        return numbers + self.more if self.more else numbers

    def _half(self, numbers: Any) -> int:
        return len(numbers) // self.heads // 2 if self.heads else 0

    def _rows(self, numbers: Any, inner: int) -> Any:
        """Return the rows of each head, taken as a table of `inner` columns, by its columns."""
        if not self.heads or len(numbers) % (2 * self.heads):
            return numbers
        return numbers.reshape(self.heads, -1, inner, *numbers.shape[1:]).swapaxes(1, 2).reshape(numbers.shape)


PLAIN = Layout()


@dataclass(frozen=True)
class Architecture:
    """What llama.cpp makes of a model type of transformers."""

    model_type: str
    """The model type that a file is read as."""
    tensors: Mapping[str, str]
    """The published names by those of llama.cpp, those of layers without the prefix of a layer."""
    keys: Mapping[str, str]
    """The keys of a `config.json` by those of llama.cpp."""
    also: tuple[str, ...] = ()
    """Further model types that are written as this architecture."""
    layers: str = "model.layers."
    pairs: bool = False
    """Whether the rows of queries and keys lie in pairs."""
    gains: int = 0
    """What is added to the weights of norms."""
    transposed: tuple[str, ...] = ()
    """The matrices, by the names of llama.cpp, that are published as [in, out]."""
    implied: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda config: {}
    """Returns the values of a `config.json` that hold unless a file says otherwise, by those that it has."""

    def published(self, name: str) -> str:
        """Return the published name of a tensor; one without any is named as a part of the body, where nothing is passed over.

        >>> ARCHITECTURES["llama"].published("blk.3.attn_q.weight")
        'model.layers.3.self_attn.q_proj.weight'
        """
        found = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(\w+)", name, re.ASCII)
        known = self.tensors.get(found[2]) if found else None
        if found is None or known is None:
            return f"model.{name}"
        layer = f"{self.layers}{found[1]}." if found[1] is not None else ""
        return f"{layer}{known}.{found[3]}"

    def stored(self, name: str) -> str | None:
        """Return the name of a published tensor in a file; None if the architecture has none for it.

        >>> ARCHITECTURES["gpt2"].stored("h.3.attn.c_attn.bias")
        'blk.3.attn_qkv.bias'
        """
        found = re.fullmatch(rf"(?:{re.escape(self.layers)}(\d+)\.)?(.+)\.(\w+)", name, re.ASCII)
        ours = {theirs: ours for ours, theirs in self.tensors.items()}.get(found[2]) if found else None
        if found is None or ours is None:
            return None
        return f"{'' if found[1] is None else f'blk.{found[1]}.'}{ours}.{found[3]}"

    def layout(self, name: str, heads: object, kv_heads: object) -> Layout:
        """Return how a tensor lies in a file, by its name in it and the numbers of heads that the file gives."""
        part, _, last = name.rpartition(".")
        part = part.rpartition(".")[2]
        if self.pairs and part in ("attn_q", "attn_k"):
            count = heads if part == "attn_q" else kv_heads
            return Layout(heads=count if isinstance(count, int) and count > 0 else 0)
        if last != "weight":
            return PLAIN
        return Layout(transposed=part in self.transposed, more=self.gains if part.endswith("norm") else 0)


def _of_query_scale(deepest: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what divides scores, squared: the width of a head, and in the deepest model that of the stream for each head."""

    def implied(config: Mapping[str, Any]) -> dict[str, Any]:
        width, heads, own = (config.get(key) for key in ("hidden_size", "num_attention_heads", "head_dim"))
        if config.get("num_hidden_layers") == deepest and isinstance(width, int) and isinstance(heads, int) and heads:
            return {"query_pre_attn_scalar": width // heads}
        return {} if own is None else {"query_pre_attn_scalar": own}

    return implied


def _of_llama(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what tells a Mistral without a window, whose heads need not be as wide as the stream together, from a Llama."""
    width, heads, own = (config.get(key) for key in ("hidden_size", "num_attention_heads", "head_dim"))
    if isinstance(heads, int) and isinstance(own, int) and own * heads != width:
        return {"model_type": "mistral", "sliding_window": None}
    return {}


def _of_gemma2(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, **_of_query_scale(46)(config)}


def _of_gemma3(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"rope_local_base_freq": 10000, "sliding_window_pattern": 6, **_of_query_scale(62)(config)}


def _without_dropout(config: Mapping[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0)


WINDOW = {"attention.sliding_window": "sliding_window"}
CAPS = {cap: cap for cap in ("attn_logit_softcapping", "final_logit_softcapping")}
ARCHITECTURES = {
    "llama": Architecture("llama", DECODER, KEYS, also=("mistral",), pairs=True, implied=_of_llama),
    "qwen2": Architecture("qwen2", DECODER, KEYS),
    "qwen3": Architecture("qwen3", {**DECODER, **HEAD_NORMS}, KEYS),
    "gemma": Architecture("gemma", OF_GEMMA, KEYS, gains=1),
    "gemma2": Architecture(
        "gemma2",
        {**OF_GEMMA, **SANDWICH},
        {**KEYS, **WINDOW, **CAPS},
        gains=1,
        implied=_of_gemma2,
    ),
    "gemma3": Architecture(
        "gemma3_text",
        {**DECODER, **SANDWICH, **HEAD_NORMS},
        {**KEYS, **WINDOW, "rope.freq_base_swa": "rope_local_base_freq"},
        gains=1,
        implied=_of_gemma3,
    ),
    "gpt2": Architecture(
        "gpt2",
        {
            "token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f", "output": "lm_head", "attn_norm": "ln_1",
            "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc",
            "ffn_down": "mlp.c_proj",
        },
        OF_GPT2,
        layers="h.",
        transposed=("attn_qkv", "attn_output", "ffn_up", "ffn_down"),
        implied=_without_dropout,
    ),
}  # fmt: skip
"""The architectures that are read and written, by their names in a file."""


def architecture_of(model_type: str) -> str | None:
    """Return the architecture by which a model type is written; None if there is none."""
    return next((name for name, each in ARCHITECTURES.items() if model_type in (each.model_type, *each.also)), None)
