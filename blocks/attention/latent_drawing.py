"""The appearance of latent attention in drawings: its look and its pieces. `part` is the attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import BlockView, Look, Piece, grouped, linear_piece, size
from blocks.positions.positions import position_ports


def latent_look(part: Any, view: BlockView) -> Look:
    """Return its look: the widths of a head and of the latents, and the fields that are set."""
    facts = [f"{part.heads} head{'s' * (part.heads > 1)}", f"KV latent {grouped(part.kv_rank)}"]
    facts += [f"Q latent {grouped(part.q_rank)}"] if part.q_rank is not None else []
    facts.append(f"d_head {part.nope_dim} + {part.rope_dim} {'rotary' if part.positions else 'shared'}")
    facts += [f"d_value {part.value_dim}"] if part.value_dim != part.nope_dim else []
    facts += [f"scale {part.scale:.3g}"] if not scaled_by_width(part) else []
    facts += [f"dropout {part.dropout:g}"] if part.dropout else []
    sides = () if part.positions is None else (part.positions.look_beside(),)
    brief = (f"MLA {facts[0]}, {facts[1]}", f"MLA {facts[0]}", "MLA")
    look = Look("Multi-head latent attention", tuple(facts), "attn", sides=sides, short="MLA", brief=brief)
    with_mask: Look = part.mask.added_to(look, view)
    return with_mask


def latent_pieces(part: Any, view: BlockView) -> Sequence[Piece]:
    """Return its pieces: the maps of queries, the latent with the maps from it, and the softmax."""
    pieces: list[Piece] = []
    if part.q_rank is None:
        pieces.append(linear_piece(view, "q", "Linear Q", "$x", "attn"))
    else:
        pieces.append(linear_piece(view, "q_down", "Linear Q down", "$x", "attn"))
        pieces += _normed(part, view, "q_norm", "q_down")
        pieces.append(linear_piece(view, "q_up", "Linear Q up", pieces[-1].name, "attn"))
    pieces += _encoded(part, view, "q_positions", part.heads, pieces[-1].name, facts=True)
    queries = pieces[-1].name
    pieces.append(linear_piece(view, "kv_down", "Linear KV down", "$x", "attn"))
    shared = _encoded(part, view, "k_positions", 1, "kv_down")
    pieces += _normed(part, view, "kv_norm", "kv_down")
    pieces.append(linear_piece(view, "kv_up", "Linear KV up", pieces[-1].name, "attn"))
    pieces += shared
    look = latent_look(part, view)
    inner = f"Q·K / √{size(part.nope_dim + part.rope_dim)}" if scaled_by_width(part) else f"{part.scale:.3g} Q·K"
    facts = [f"softmax({inner}{'' if look.mask == 'full' else ' + mask'}) V", f"{part.rope_dim} of K shared by heads"]
    facts += [f"dropout {part.dropout:g}"] if part.dropout else []
    taken = {port for piece in pieces for _, port in piece.reads}
    others = sorted(view.edges.keys() - {"x"} - taken)
    reads = ((queries, "q"), (shared[-1].name if shared else "kv_down", "k"), ("kv_up", "v"))
    seen = Look("Scaled dot-product attention", tuple(facts), look.hue, look.icon, look.mask, look.known_mask, look.causal)
    wires = (*reads, *((f"${port}", port) for port in others))
    pieces.append(Piece("attend", seen, wires, stream_ports=("q", "k", "v")))
    pieces.append(linear_piece(view, "out", "Linear O", "attend", "attn", ("y",)))
    return pieces


def scaled_by_width(part: Any) -> bool:
    """Return whether scores have the factor that they have by default."""
    return bool(abs(part.scale - (part.nope_dim + part.rope_dim) ** -0.5) < 1e-9)


def _normed(part: Any, view: BlockView, slot: str, reads: str) -> list[Piece]:
    """Return the piece of the norm of a latent, if it has one."""
    if part.norm is None:
        return []
    return [Piece(slot, view.slots[slot] or Look("Norm", hue="norm"), ((reads, ""),), (slot,))]


def _encoded(part: Any, view: BlockView, name: str, heads: int, reads: str, *, facts: bool = False) -> list[Piece]:
    """Return the piece of the positions of queries or of the shared key, if there are any."""
    if part.positions is None:
        return []
    side = part.positions.look_beside()
    width = (f"{heads} × {part.rope_dim}", *(side.facts if facts else ()))
    read = tuple((f"${port}", port) for port in position_ports(frozenset(view.edges)))
    return [Piece(name, Look(side.title, width, "pos"), ((reads, ""), *read))]
