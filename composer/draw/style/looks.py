"""What each block looks like: its title, the facts below it, its color and its icon, in the words of the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Literal

from blocks.attention.additive import AdditiveAttention
from blocks.attention.attention import MultiHead
from blocks.attention.scaled_dot_product import ScaledDotProduct
from blocks.core import Activation, Norm, Part
from blocks.embedding.embedding import Embedding
from blocks.embedding.patch_embedding import PatchEmbedding
from blocks.embedding.pool import Pool
from blocks.embedding.prepend_token import PrependToken
from blocks.experts.moe import MixtureOfExperts
from blocks.feed_forward.ffn import FeedForward
from blocks.feed_forward.gated_ffn import GatedFeedForward
from blocks.losses.loss import Loss
from blocks.masks.mask import Mask
from blocks.positions.learned import LearnedPositions
from blocks.positions.positions import Positions
from blocks.positions.rotary import Rotary
from blocks.positions.score_bias import ScoreBias, T5Bias
from blocks.positions.sinusoidal import SinusoidalPositions
from blocks.primitives.combine import Add, Concat, Multiply, WeightedSum
from blocks.primitives.conv1d import Conv1d
from blocks.primitives.einsum import Einsum
from blocks.primitives.linear import Linear
from blocks.primitives.parameter import Parameter
from blocks.primitives.pointwise import Dropout, Identity, Scale
from blocks.primitives.rearrange import Rearrange
from blocks.primitives.reduce import Reduction, Select
from blocks.primitives.stack_split import Split
from blocks.primitives.state import State
from blocks.recurrent.cells import Cell
from blocks.recurrent.recurrent import Recurrent
from blocks.residual.layer_scale import LayerScale
from composer.draw.scene import Icon, LoopIcon
from composer.draw.style.icons import curve_icon, mask_icon
from composer.draw.style.palette import Hue
from composer.draw.wording import grouped, size, spoken
from composer.graph.describe import edge_names, phrase, phrases
from composer.graph.describe import mask as mask_text
from composer.graph.typed import TypedBlock
from composer.graph.types import TensorType

Sign = Literal["+", "×", "‖"]


@dataclass(frozen=True, slots=True)
class SideLook:
    """What stands beside a block and acts on it: rotary positions, a table that is added."""

    name: str
    """Of the field or the parameter, below the block's path."""
    title: str
    facts: tuple[str, ...] = ()
    hue: Hue = "pos"
    learned: bool = False
    """Whether the block's parameters are here."""

    @property
    def words(self) -> str:
        """The same in a few words: `RoPE θ 10 000`."""
        return " ".join([self.title, *self.facts]).replace(" = ", " ")


@dataclass(frozen=True, slots=True)
class Look:
    """What a block is called, and shown as."""

    title: str
    facts: tuple[str, ...] = ()
    """What is said below the title, the most telling first."""
    hue: Hue = "io"
    icon: Icon | None = None
    mask: str = ""
    """The mask in words, where it is worth a word."""
    sides: tuple[SideLook, ...] = ()
    sign: Sign | None = None
    """For what is drawn as a circle."""
    double: bool = False
    quiet: bool = False
    """Whether a picture of the architecture leaves it out: it does nothing but in training."""
    short: str = ""
    """A few letters for the overview: `GQA`."""
    after: str = ""
    """What happens in training to what it gives."""

    @property
    def spelled(self) -> Look:
        """The same for a box, where there is no room for a circle."""
        if self.sign is None or self.sign == "‖":  # not every font has this one
            return self
        return replace(self, title=f"{self.sign} {self.title.lower()}")

    @property
    def detail(self) -> str:
        """All facts in one line."""
        return " · ".join(self.facts)


def look(block: TypedBlock, head: str = "") -> Look:
    """The look of a block; `head` is its title where it gives the model's logits."""
    found = look_of(block.part, block)
    return Look(head, found.facts, "embed", found.icon) if head and isinstance(block.part, Linear) else found


@singledispatch
def look_of(part: Part, block: TypedBlock) -> Look:
    """What every other block looks like: its kind, and what is set in it."""
    return Look(spoken(part.kind), tuple(phrases(block)), "embed" if block.parameters else "io")


# -- into the stream


@look_of.register
def _(part: Embedding, block: TypedBlock) -> Look:
    facts = [f"{grouped(part.vocab)} × {grouped(part.dim)}"]
    if part.scale != 1:
        root = abs(part.scale - part.dim**0.5) < 1e-6 * part.scale
        facts.append(f"× √{grouped(part.dim)}" if root else f"× {part.scale:.4g}")
    ids = block.node.wires[0].refs[0].node if block.node.wires else ""
    names = {"tokens": "Token", "input": "Token", "source": "Source", "target": "Target", "token_types": "Token-type"}
    return Look(f"{names[ids]} embedding" if ids in names else "Embedding", tuple(facts), "embed")


@look_of.register
def _(part: PatchEmbedding, block: TypedBlock) -> Look:
    return Look("Patch embedding", (f"{part.patch_size} × {part.patch_size} pixels → {grouped(part.dim)}",), "embed")


@look_of.register
def _(part: LearnedPositions, block: TypedBlock) -> Look:
    rows = part.max_length + part.offset
    side = SideLook("weight", "Learned positions", (f"{grouped(rows)} × {size(block.sizes['dim'])}",), learned=True)
    return Look("Add learned positions", sides=(side,), sign="+")


@look_of.register
def _(part: SinusoidalPositions, block: TypedBlock) -> Look:
    base = () if part.base == 10000 else (f"base {grouped(part.base)}",)
    side = SideLook("base", "Sinusoidal positions", base)
    return Look("Add sinusoidal positions", sides=(side,), sign="+", after="".join(_dropout(part)))


@look_of.register
def _(part: PrependToken, block: TypedBlock) -> Look:
    return Look("Prepend a token", ("[CLS], learned",), "embed")


@look_of.register
def _(part: ScoreBias, block: TypedBlock) -> Look:
    names = {"alibi": "ALiBi", "t5_bias": "T5 bias"}
    facts = [f"{part.heads} head{'s' * (part.heads > 1)}"]
    if isinstance(part, T5Bias):
        facts += [f"{part.buckets} buckets", *(["past only"] if not part.bidirectional else [])]
    else:
        facts += [said for said in phrases(block) if not said.startswith("heads")]
    return Look(names.get(part.kind, spoken(part.kind)), tuple(facts), "pos")


@look_of.register
def _(part: Parameter, block: TypedBlock) -> Look:
    return Look("Parameter", (" × ".join(map(grouped, part.shape)) or "one number",), "embed")


# -- norms, curves, and what acts on each number


@look_of.register
def _(part: Norm, block: TypedBlock) -> Look:
    names = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "groupnorm": "GroupNorm", "batchnorm": "BatchNorm"}
    return Look(names.get(part.kind, spoken(part.kind)), hue="norm")


@look_of.register
def _(part: Activation, block: TypedBlock) -> Look:
    return Look(curve_name(part), hue="ffn", icon=curve_icon(part))


@look_of.register
def _(part: LayerScale, block: TypedBlock) -> Look:
    return Look("Layer scale", (f"starts at {part.init:g}",), "embed")


@look_of.register
def _(part: Scale, block: TypedBlock) -> Look:
    square = round(part.by**-2) if part.by > 0 else 0
    root = square > 1 and abs(square * part.by**2 - 1) < 1e-9
    return Look(f"÷ √{grouped(square)}" if root else f"× {part.by:.4g}", hue="merge")


@look_of.register
def _(part: Dropout, block: TypedBlock) -> Look:
    return Look(f"Dropout {part.p:g}", quiet=True)


@look_of.register
def _(part: Identity, block: TypedBlock) -> Look:
    return Look("Identity")


# -- maps


@look_of.register
def _(part: Linear, block: TypedBlock) -> Look:
    bias = " + bias" if part.bias else ""
    return Look("Linear", (f"{size(block.sizes['dim'])} → {grouped(part.out)}{bias}",), "embed")


@look_of.register
def _(part: Conv1d, block: TypedBlock) -> Look:
    facts = [f"{size(block.sizes['dim'])} → {grouped(part.out)}", f"kernel {part.kernel_size}"]
    facts += [f"{name} {value}" for name in ("stride", "dilation", "groups") if (value := getattr(part, name)) != 1]
    return Look("Causal convolution" if part.causal else "Convolution", tuple(facts), "embed")


@look_of.register
def _(part: FeedForward, block: TypedBlock) -> Look:
    return Look(
        "Feed-forward",
        (_widths(part, block), *_curve(part), *_dropout(part)),
        "ffn",
        curve_icon(part.activation),
        short=f"{_short_curve(part)} FFN",
    )


@look_of.register
def _(part: GatedFeedForward, block: TypedBlock) -> Look:
    name = {"silu": "SwiGLU", "gelu": "GeGLU", "gelu_tanh": "GeGLU", "relu": "ReGLU", "sigmoid": "GLU"}.get(part.activation.kind)
    title = f"{name} feed-forward" if name else "Gated feed-forward"
    curve = () if name and part.activation.kind != "gelu_tanh" else _curve(part)
    return Look(title, (_widths(part, block), *curve), "ffn", curve_icon(part.activation), short=name or "GLU")


def _dropout(part: Any) -> tuple[str, ...]:
    return (f"dropout {part.dropout:g}",) if part.dropout else ()


def _widths(part: Any, block: TypedBlock) -> str:
    dim = size(block.sizes["dim"])
    return f"{dim} → {grouped(part.hidden)} → {dim}"


def _curve(part: Any) -> tuple[str, ...]:
    return (curve_name(part.activation),) if isinstance(part.activation, Activation) else ()


def _short_curve(part: Any) -> str:
    return "".join(_curve(part))


def curve_name(part: Part) -> str:
    """An activation by its name in papers."""
    names = {
        "relu": "ReLU",
        "gelu": "GELU",
        "gelu_tanh": "GELU (tanh)",
        "quick_gelu": "QuickGELU",
        "silu": "SiLU",
        "relu_squared": "ReLU²",
        "xielu": "xIELU",
        "clamped_silu": "clamped SiLU",
    }
    return names.get(part.kind, spoken(part.kind))


# -- attention


@look_of.register
def _(part: MultiHead, block: TypedBlock) -> Look:
    wired = {wire.port for wire in block.node.wires}
    cross = "memory" in wired
    kv_heads = part.kv_heads
    name, short = "Multi-head attention", "MHA"
    if part.heads == 1:
        name, short = "Single-head attention", "attention"
    elif kv_heads == 1:
        name, short = "Multi-query attention", "MQA"
    elif kv_heads < part.heads:
        name, short = "Grouped-query attention", "GQA"
    if cross:
        name, short = "Cross-attention", "cross-attention"
    count = f"{part.heads} Q · {kv_heads} KV" if kv_heads != part.heads else f"{part.heads} head{'s' * (part.heads > 1)}"
    facts = [count, f"d_head {part.head_dim}"]
    if part.value_dim != part.head_dim:
        facts.append(f"d_value {part.value_dim}")
    if part.qk_norm is not None:
        facts.append("QK-norm")
    if abs(part.scale - part.head_dim**-0.5) > 1e-9:
        facts.append(f"scale {part.scale:.3g}")
    facts += [f"softcap {part.softcap:g}"] if part.softcap is not None else []
    facts += ["sinks"] if part.sinks else []
    facts += [f"{part.output_gate.kind or 'output'} gate"] if part.output_gate is not None else []
    facts += ["no output map"] if part.out is None else []
    facts += _dropout(part)
    words, icon = _mask(part.mask, block)
    sides = () if part.positions is None else (positions_look(part.positions),)
    return Look(name, tuple(facts), "cross" if cross else "attn", icon, words, sides, double=cross, short=short)


def positions_look(part: Positions) -> SideLook:
    """Positions that turn queries and keys."""
    if not isinstance(part, Rotary):
        return SideLook("positions", spoken(part.kind))
    facts = [f"θ = {grouped(part.theta)}"]
    facts += [f"{part.partial_rotary_factor:.0%} of d_head"] if part.partial_rotary_factor != 1 else []
    facts += [f"scaled {factor:g} ×" if (factor := getattr(part.scaling, "factor", 0)) else "scaled"] if part.scaling else []
    return SideLook("positions", "RoPE", tuple(facts))


@look_of.register
def _(part: ScaledDotProduct, block: TypedBlock) -> Look:
    words, icon = _mask(part.mask, block)
    return Look("Scaled dot-product attention", (f"{part.heads} head{'s' * (part.heads > 1)}",), "attn", icon, words)


@look_of.register
def _(part: AdditiveAttention, block: TypedBlock) -> Look:
    return Look("Additive attention", (f"hidden {grouped(part.hidden)}",), "cross", double=True, short="attention")


def _mask(mask: Mask, block: TypedBlock) -> tuple[str, Icon]:
    """A mask in words and as a picture. Inputs that may be left out are: their predicates are true then."""
    absent = {port for port, given in block.inputs.items() if isinstance(given, TensorType) and given.optional}
    return words_of(mask, edge_names(block)), mask_icon(mask, frozenset(absent))


def words_of(mask: Mask, edges: Mapping[str, str]) -> str:
    """What all parts of a mask say: `causal, window 512`."""
    said = []
    for part in mask.conjuncts():
        if part.spoken:
            one_argument = len(type(part).model_fields) == 1 and part.kind
            text = mask_text(part, edges)
            said.append(text.replace("(", " ").rstrip(")") if one_argument else text)
    return ", ".join(said) or "full"


# -- experts and states


@look_of.register
def _(part: MixtureOfExperts, block: TypedBlock) -> Look:
    return Look("Mixture of experts", (f"{part.experts} experts", router_facts(part)[-1]), "moe", short=f"MoE {part.experts}")


def router_facts(part: MixtureOfExperts) -> tuple[str, ...]:
    """How experts are chosen."""
    router: Any = part.router
    facts = []
    if scoring := getattr(router, "scoring", ""):
        facts.append(scoring)
    if kind := {"noisy_top_k_router": "noisy", "switch_router": "switch", "expert_choice_router": "experts choose"}.get(
        router.kind
    ):
        facts.append(kind)
    if top_k := getattr(router, "top_k", 0):
        facts.append(f"top-{top_k}")
    if capacity := getattr(router, "capacity", getattr(router, "capacity_factor", 0)):
        facts.append(f"capacity {grouped(capacity)}")
    return tuple(facts) or (phrase("router", router, {}),)


@look_of.register
def _(part: State, block: TypedBlock) -> Look:
    when = "" if part.update == "training" else "renewed by every call"
    return Look("State", (" × ".join(map(grouped, part.shape)) or "one number", *([when] if when else [])), "rec", LoopIcon())


@look_of.register
def _(part: Loss, block: TypedBlock) -> Look:
    facts = [] if part.weight == 1 else [f"× {part.weight:g}"]
    facts += [f"shift {shift}"] if (shift := getattr(part, "shift", 0)) else []
    facts += ["summed"] if part.reduction == "sum" else []
    kind = "" if part.kind == "scalar" else spoken(part.kind)
    name = spoken(block.name.removeprefix("losses."))
    title = name if "loss" in name.lower() else f"{name} loss"
    return Look(title, tuple([kind, *facts] if kind else facts), "loss")


@look_of.register
def _(part: Recurrent, block: TypedBlock) -> Look:
    names = {"rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}
    facts = [f"{size(block.sizes['dim'])} → {grouped(part.hidden)}"]
    facts += [f"{part.layers} layers"] if part.layers > 1 else []
    facts += ["both directions"] if part.bidirectional else []
    facts += [f"dropout {part.dropout:g} between"] if part.dropout else []
    name = names.get(part.kind, spoken(part.kind))
    return Look(name, tuple(facts), "rec", LoopIcon(), short=name)


@look_of.register
def _(part: Cell, block: TypedBlock) -> Look:
    names = {"rnn_cell": "RNN cell", "lstm_cell": "LSTM cell", "gru_cell": "GRU cell"}
    name = names.get(part.kind, spoken(part.kind))
    return Look(name, (f"{size(block.sizes['dim'])} → {grouped(part.hidden)}",), "rec", short=name)


# -- shapes and sums


@look_of.register
def _(part: Add, block: TypedBlock) -> Look:
    return Look("Sum", hue="merge", sign="+")


@look_of.register
def _(part: Multiply, block: TypedBlock) -> Look:
    return Look("Product", hue="merge", sign="×")


@look_of.register
def _(part: Concat, block: TypedBlock) -> Look:
    return Look("Concatenation", (f"along {part.axis}",) if part.axis != "last" else (), hue="merge", sign="‖")


@look_of.register
def _(part: WeightedSum, block: TypedBlock) -> Look:
    return Look("Weighted sum", hue="embed")


@look_of.register
def _(part: Split, block: TypedBlock) -> Look:
    return Look("Split", (", ".join(part.into),), "merge")


@look_of.register
def _(part: Rearrange, block: TypedBlock) -> Look:
    return Look("Rearrange", (part.pattern.replace("->", "→"),), "merge")


@look_of.register
def _(part: Einsum, block: TypedBlock) -> Look:
    return Look("Einsum", (part.pattern.replace("->", "→"),), "merge")


@look_of.register
def _(part: Pool, block: TypedBlock) -> Look:
    mode = {"first": "first position", "last": "last position", "mean": "mean over positions", "max": "largest of each channel"}
    return Look("Pool", (mode[part.mode],), "merge")


@look_of.register
def _(part: Reduction, block: TypedBlock) -> Look:
    over = {"mean": "over", "max": "over"}.get(part.kind, "of")
    return Look(spoken(part.kind), (f"{over} {part.axis}",), "merge")


@look_of.register
def _(part: Select, block: TypedBlock) -> Look:
    return Look("Select", (f"index {part.index} of {part.axis}",), "merge")
