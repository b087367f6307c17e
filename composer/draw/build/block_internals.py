"""What blocks that compute by themselves consist of, for a drawing in full detail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

from blocks.attention.attention import MultiHead
from blocks.core import Activation, Part
from blocks.feed_forward.ffn import FeedForward
from blocks.feed_forward.gated_ffn import GatedFeedForward
from composer.draw.style.icons import curve_icon
from composer.draw.style.looks import Look, curve_name, look, positions_look
from composer.draw.style.palette import Hue
from composer.draw.wording import grouped, size, spoken
from composer.graph.typed import TypedBlock


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a block."""

    name: str
    look: Look
    reads: tuple[tuple[str, str], ...]
    """Names of pieces, or `$port` of the block, each with the port that it goes to; the stream has none."""
    parameters: tuple[str, ...] = ()
    """Of the block, those that are this piece's: names of maps or of slots."""
    gives: tuple[str, ...] = ()
    """The block's outputs that it makes."""
    shape: str = ""


def inside(block: TypedBlock) -> Sequence[Piece]:
    """The parts of a block in the order in which they compute; nothing for one that is not drawn from inside."""
    return _inside(block.part, block)


@singledispatch
def _inside(part: Part, block: TypedBlock) -> Sequence[Piece]:
    return ()


def linear(block: TypedBlock, name: str, title: str, reads: str, hue: Hue, gives: tuple[str, ...] = ()) -> Piece:
    """A learned map of a block."""
    wide, out, bias = block.modules[name]
    return Piece(name, Look(title, (f"{grouped(wide)} → {grouped(out)}{' + bias' * bias}",), hue), ((reads, ""),), (name,), gives)


def curve(block: TypedBlock, slot: str, reads: str) -> Piece:
    """What fills the slot of an activation."""
    held = block.slots.get(slot)
    if isinstance(held, TypedBlock):
        return Piece(slot, look(held), ((reads, ""),), (slot,))
    part = getattr(block.part, slot)
    if isinstance(part, Activation):
        return Piece(slot, Look(curve_name(part), hue="ffn", icon=curve_icon(part)), ((reads, ""),))
    return Piece(slot, Look(spoken(slot), hue="ffn"), ((reads, ""),), (slot,))


@_inside.register
def _(part: FeedForward, block: TypedBlock) -> Sequence[Piece]:
    pieces = [linear(block, "up", "Linear up", "$x", "ffn"), curve(block, "activation", "up")]
    if part.dropout:
        pieces.append(Piece("dropout", Look(f"Dropout {part.dropout:g}", quiet=True), (("activation", ""),)))
    return [*pieces, linear(block, "down", "Linear down", pieces[-1].name, "ffn", ("y",))]


@_inside.register
def _(part: GatedFeedForward, block: TypedBlock) -> Sequence[Piece]:
    return [
        linear(block, "gate", "Linear gate", "$x", "ffn"),
        curve(block, "activation", "gate"),
        linear(block, "up", "Linear up", "$x", "ffn"),
        Piece("gated", Look("Product", hue="ffn", sign="×"), (("activation", ""), ("up", ""))),
        linear(block, "down", "Linear down", "gated", "ffn", ("y",)),
    ]


@_inside.register
def _(part: MultiHead, block: TypedBlock) -> Sequence[Piece]:
    wired = {wire.port for wire in block.node.wires}
    memory = "$memory" if "memory" in wired else "$x"
    pieces: list[Piece] = []
    ends = {}
    for name, reads, heads in (("q", "$x", part.heads), ("k", memory, part.kv_heads), ("v", memory, part.kv_heads)):
        if name in wired:
            ends[name] = f"${name}"
            continue
        own = [linear(block, name, f"Linear {name.upper()}", reads, "attn")]
        if name != "v" and part.qk_norm is not None:
            norm = block.slots[f"{name}_norm"]
            assert norm is not None
            seen = look(norm) if isinstance(norm, TypedBlock) else Look("QK-norm", hue="norm")
            own.append(Piece(f"{name}_norm", seen, ((own[-1].name, ""),), (f"{name}_norm",)))
        if name != "v" and part.positions is not None:
            turn = positions_look(part.positions)
            facts = (f"{heads} × {part.head_dim}", *turn.facts) if name == "q" else (f"{heads} × {part.head_dim}",)
            at = "memory_position_ids" if name == "k" and wired & {"memory", "k"} else "position_ids"
            own.append(Piece(f"{name}_positions", Look(turn.title, facts, "pos"), ((own[-1].name, ""), (f"${at}", at))))
        ends[name] = own[-1].name
        pieces += own[:-1]
        last = own[-1]
        pieces.append(Piece(last.name, last.look, last.reads, last.parameters, (name,) if name != "q" else (), last.shape))
    pieces.append(_scores(part, block, ends, wired, pieces))
    above = "attend"
    if part.output_gate is not None:
        pieces.append(linear(block, "gate", "Linear gate", "$x", "attn"))
        pieces.append(curve(block, "output_gate", "gate"))
        pieces.append(Piece("gated", Look("Product", hue="attn", sign="×"), ((above, ""), ("output_gate", ""))))
        above = "gated"
    if "out" in block.modules:
        pieces.append(linear(block, "out", "Linear O", above, "attn", ("y",)))
    elif (held := block.slots.get("out")) is not None:
        seen = look(held) if isinstance(held, TypedBlock) else Look("Output", hue="attn")
        pieces.append(Piece("out", seen, ((above, ""),), ("out",), ("y",)))
    else:
        last = pieces[-1]
        pieces[-1] = Piece(last.name, last.look, last.reads, last.parameters, (*last.gives, "y"), last.shape)
    return pieces


def _scores(part: MultiHead, block: TypedBlock, ends: dict[str, str], wired: set[str], pieces: Sequence[Piece]) -> Piece:
    """The softmax and what goes into it."""
    whole = look(block)
    bias = " + bias" if "bias" in wired else ""
    mask = "" if whole.mask == "full" else " + mask"
    own = "Q·K" if part.scale == 1 else f"{part.scale:.3g} Q·K"
    inner = f"Q·K / √{size(part.head_dim)}" if abs(part.scale - part.head_dim**-0.5) < 1e-9 else own
    if part.softcap is not None:
        inner = f"softcap {part.softcap:g} ({inner})"
    facts = [f"softmax({inner}{bias}{mask}) V"]
    facts += ["sinks"] if part.sinks else []
    facts += [f"KV heads repeated × {part.heads // part.kv_heads}"] if part.heads != part.kv_heads else []
    facts += [f"dropout {part.dropout:g}"] if part.dropout else []
    others = sorted(wired - {"x", "memory", "k", "v"} - {port for piece in pieces for _, port in piece.reads})
    reads = (*((ends[name], name) for name in "qkv"), *((f"${port}", port) for port in others))
    seen = Look("Scaled dot-product attention", tuple(facts), whole.hue, whole.icon, whole.mask)
    return Piece("attend", seen, reads, ("sink_scores",) if part.sinks else (), ("scores", "weights"))
