"""Diagnostics of names that do not exist, with the nearest that do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from composer.diagnostics import Diagnostic, Label, Span
from composer.language.suggestions import did_you_mean, suggest
from composer.language.yaml.events import UNREADABLE
from composer.language.yaml.nodes import AmbiguousBlocks

MAX_FITTING = 8
"""Blocks that are listed of those that fit a slot."""
OWN_BLOCK = "a block of your own needs its file: --blocks FILE.py"
OTHER_NAMES = {
    "attn": "attention", "swish": "silu", "mha": "attention", "mlp": "ffn", "rope": "rotary",
    "relu2": "relu_squared", "length": "size",
    "dense": "linear", "fc": "linear", "lin": "linear", "mul": "multiply", "cat": "concat", "matmul": "einsum", "bmm": "einsum",
    "flatten": "rearrange", "reshape": "rearrange", "view": "rearrange", "permute": "rearrange", "transpose": "rearrange",
    "squeeze": "select", "unsqueeze": "new_axis",
    "avg_pool1d": "mean_pool1d", "avg_pool2d": "mean_pool2d", "upsample": "interpolate2d", "deconv2d": "conv_transpose2d",
    "lookup": "embedding", "sdpa": "scaled_dot_product", "glu": "gated_ffn", "swiglu": "gated_ffn", "geglu": "gated_ffn",
    "positional_encoding": "sinusoidal_positions", "cross_attn": "cross_attention", "mla": "latent_attention",
    "mae": "l1_loss", "l1": "l1_loss", "smooth_l1": "huber", "smooth_l1_loss": "huber", "bce": "binary_cross_entropy",
    "nll_loss": "cross_entropy", "l2": "mse", "l2_loss": "mse", "info_nce": "contrastive", "lrelu": "leaky_relu",
    "n_heads": "heads", "num_heads": "heads", "if": "when", "otherwise": "else",
}  # fmt: skip
"""What some blocks, fields and keys are called elsewhere."""
OTHER_FIELDS = {"causal": "mask: causal", "is_causal": "mask: causal"}
"""Fields of blocks elsewhere, with what is written for them here."""


def unknown(
    code: str, span: Span, what: str, name: str, known: Iterable[str], *, of: str = "", meant: Sequence[str] = ()
) -> Diagnostic:
    """Diagnose an unknown name, with what is `meant`, or else the nearest known ones; if none is near and few are known, with all
    of them. `of` is what would have it, for a key, a field or a port.
    """
    names = list(dict.fromkeys(known))
    if OTHER_FIELDS.get(name, "").partition(":")[0] in names:
        hint = f"write {OTHER_FIELDS[name]}"
    elif offered := meant or meanings(name, names):
        hint = did_you_mean(offered)
    else:
        hint = f"known here: {', '.join(names)}" if 0 < len(names) <= 12 else ""
    message = f"{of} has no {what} {quoted(name)}" if of else f"there is no {what} called {quoted(name)}"
    return Diagnostic(code, message, span, hint=hint)


def meanings(name: str, known: Sequence[str]) -> list[str]:
    """Return the known names that an unknown one may mean: what it is called here, or else the nearest."""
    return [OTHER_NAMES[name]] if OTHER_NAMES.get(name) in known else suggest(name, known)


def unknown_block(
    span: Span, name: str, known: Iterable[str], ambiguous_blocks: AmbiguousBlocks, fitting: Sequence[str] = ()
) -> list[Diagnostic]:
    """Return a block that does not exist, with some of those that are `fitting` in a slot; or one that two files define."""
    if UNREADABLE in name:
        return []
    if name not in ambiguous_blocks:
        found = unknown("unknown-block", span, "block", name, known, meant=meanings(name, fitting))
        more = ", …" * (len(fitting) > MAX_FITTING)
        rest = f"this slot takes {', '.join(fitting[:MAX_FITTING])}{more}" if fitting else OWN_BLOCK
        if name == "null":
            found = replace(found, hint="in what extends a recipe, `null` in place of a whole node deletes it")
        return [found if found.hint else replace(found, hint=rest)]
    labels = tuple(Label(place, "defined here") for place in ambiguous_blocks[name])
    message = f"two of the files that are used here define `{name}` differently"
    return [Diagnostic("ambiguous", message, span, labels=labels, hint="rename one of them")]


def missing_field(span: Span, kind: str, missing: Mapping[str, str]) -> Diagnostic:
    """Diagnose a block without fields that it needs, each with the form of its value."""
    wanted = " and ".join(f"`{name}`" for name in missing)
    hint = f"{{type: {kind}, {', '.join(f'{name}: {form}' for name, form in missing.items())}}}"
    return Diagnostic("missing-field", f"{kind} needs {wanted}", span, hint=hint)


def quoted(text: str) -> str:
    """Quote what an author wrote, cut where it is long."""
    return f"`{text}`" if len(text) <= 40 else f"`{text[:40]}…`"
