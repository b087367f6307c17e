"""What beam search finds for a prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from composer.cli.writing.voices import Voice

if TYPE_CHECKING:
    from composer.decode import Search

MOST = 400
"""New tokens by default."""


def beams(voice: Voice, search: Search, max_new_tokens: int | None) -> list[tuple[float, str]]:
    """Return score and text of what beam search finds, best first, of up to `max_new_tokens` or as many as the context has room
    for.
    """
    from composer.decode import Refuse, beam_search, cached

    limited = not voice.encoder_inputs and voice.context is not None
    room = min(MOST, max(1, (voice.context or MOST) - len(voice.tokens))) if limited else MOST
    most = room if max_new_tokens is None else max_new_tokens
    search = replace(search, stop=voice.stop, vocabulary=voice.vocabulary, max_new_tokens=most)
    if not voice.encoder_inputs and voice.context is not None:
        search = replace(search, limit=Refuse(voice.context))
    (found,) = beam_search(voice.model, [voice.tokens], search, encoder_inputs=voice.encoder_inputs, reading=cached)
    begin = len(voice.decode(voice.before))
    return [(each.score, voice.decode([*voice.before, *each.tokens])[begin:]) for each in found]
