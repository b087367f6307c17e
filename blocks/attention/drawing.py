"""The appearance of multi-head attention in drawings: its look and its pieces. `part` is the attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from blocks.core import BlockView, Look, Piece, activation_piece, linear_piece, size
from blocks.positions.positions import position_ports


def attention_look(part: Any, view: BlockView) -> Look:
    """Return its look: a title that depends on the number of key/value heads, and the fields that are set."""
    cross = "memory" in view.edges
    name, short = "Multi-head attention", "MHA"
    if part.heads == 1:
        name, short = "Single-head attention", "attention"
    elif part.kv_heads == 1:
        name, short = "Multi-query attention", "MQA"
    elif part.kv_heads < part.heads:
        name, short = "Grouped-query attention", "GQA"
    if cross:
        name, short = "Cross-attention", "cross-attention"
    shared = part.kv_heads != part.heads
    facts = [f"{part.heads} Q · {part.kv_heads} KV" if shared else f"{part.heads} head{'s' * (part.heads > 1)}"]
    facts.append(f"d_head {part.head_dim}")
    facts += [f"d_value {part.value_dim}"] if part.value_dim != part.head_dim else []
    facts += ["QK-norm"] if part.qk_norm is not None else []
    facts += [f"scale {part.scale:.3g}"] if abs(part.scale - part.head_dim**-0.5) > 1e-9 else []
    facts += [f"softcap {part.softcap:g}"] if part.softcap is not None else []
    facts += ["sinks"] if part.sinks else []
    facts += [f"{part.output_gate.kind or 'output'} gate"] if part.output_gate is not None else []
    facts += ["no output map"] if part.out is None else []
    facts += [f"dropout {part.dropout:g}"] if part.dropout else []
    sides = () if part.positions is None else (part.positions.look_beside(),)
    heads = facts[0].replace(" · ", ", ")
    brief = (f"{short} {heads}", short) if part.heads > 1 else (short,)
    look = Look(name, tuple(facts), "cross" if cross else "attn", sides=sides, double=cross, short=short, brief=brief)
    with_mask: Look = part.mask.added_to(look, view)
    return with_mask


def attention_pieces(part: Any, view: BlockView) -> Sequence[Piece]:
    """Return its pieces: the maps with norms and positions of queries and keys, the softmax, and what follows."""
    wired = frozenset(view.edges)
    pieces: list[Piece] = []
    ends = {name: f"${name}" for name in "qkv" if name in wired}
    for name in "qkv":
        if name not in wired:
            own = _projected(part, view, name)
            ends[name] = own[-1].name
            pieces += [*own[:-1], replace(own[-1], gives=(name,) if name != "q" else ())]
    pieces.append(_scores(part, view, ends, pieces))
    above = "attend"
    if part.output_gate is not None:
        pieces.append(linear_piece(view, "gate", "Linear gate", "$x", "attn"))
        pieces.append(activation_piece(view, "output_gate", part.output_gate, "gate"))
        pieces.append(Piece("gated", Look("Product", hue="attn", sign="×"), ((above, ""), ("output_gate", ""))))
        above = "gated"
    if "out" in view.modules:
        pieces.append(linear_piece(view, "out", "Linear O", above, "attn", ("y",)))
    elif "out" in view.slots:
        pieces.append(Piece("out", view.slots["out"] or Look("Output", hue="attn"), ((above, ""),), ("out",), ("y",)))
    else:
        pieces[-1] = replace(pieces[-1], gives=(*pieces[-1].gives, "y"))
    return pieces


def _projected(part: Any, view: BlockView, name: str) -> list[Piece]:
    """Return the pieces of queries, keys or values: their map, norm and positions."""
    memory = "$memory" if "memory" in view.edges and name != "q" else "$x"
    pieces = [linear_piece(view, name, f"Linear {name.upper()}", memory, "attn")]
    if name != "v" and part.qk_norm is not None:
        norm = view.slots[f"{name}_norm"] or Look("QK-norm", hue="norm")
        pieces.append(Piece(f"{name}_norm", norm, ((pieces[-1].name, ""),), (f"{name}_norm",)))
    if name != "v" and part.positions is not None:
        side = part.positions.look_beside()
        width = f"{part.heads if name == 'q' else part.kv_heads} × {part.head_dim}"
        facts = (width, *side.facts) if name == "q" else (width,)
        prefix = "memory_" if name == "k" and view.edges.keys() & {"memory", "k"} else ""
        read = tuple((f"${port}", port) for port in position_ports(frozenset(view.edges), prefix))
        pieces.append(Piece(f"{name}_positions", Look(side.title, facts, "pos"), ((pieces[-1].name, ""), *read)))
    return pieces


def _scores(part: Any, view: BlockView, ends: dict[str, str], pieces: Sequence[Piece]) -> Piece:
    """Return the piece of the softmax, with its inputs."""
    look = attention_look(part, view)
    bias = " + bias" if "bias" in view.edges else ""
    mask = "" if look.mask == "full" else " + mask"
    scaled = "Q·K" if part.scale == 1 else f"{part.scale:.3g} Q·K"
    inner = f"Q·K / √{size(part.head_dim)}" if abs(part.scale - part.head_dim**-0.5) < 1e-9 else scaled
    if part.softcap is not None:
        inner = f"softcap {part.softcap:g} ({inner})"
    facts = [f"softmax({inner}{bias}{mask}) V"]
    facts += ["sinks"] if part.sinks else []
    facts += [f"KV heads repeated × {part.heads // part.kv_heads}"] if part.heads != part.kv_heads else []
    facts += [f"dropout {part.dropout:g}"] if part.dropout else []
    taken = {port for piece in pieces for _, port in piece.reads}
    others = sorted(view.edges.keys() - {"x", "memory", "k", "v"} - taken)
    reads = (*((ends[name], name) for name in "qkv"), *((f"${port}", port) for port in others))
    seen = Look("Scaled dot-product attention", tuple(facts), look.hue, look.icon, look.mask, look.known_mask, look.causal)
    return Piece(
        "attend",
        seen,
        reads,
        ("sink_scores",) if part.sinks else (),
        ("scores", "weights", "logsumexp"),
        stream_ports=("q", "k", "v"),
    )
