"""The table of `arco generate --strategies`: what each way to choose tokens makes of a prompt."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from composer.cli.output import WIDTH
from composer.cli.writing.beams import beams
from composer.cli.writing.voices import Voice

COMPARED = 60
"""New tokens of each strategy in the table by default."""
BEAMS = 4
STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "greedy": {"temperature": 0},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 1": {},
    "temperature 1.5": {"temperature": 1.5},
    "top-k 5": {"top_k": 5},
    "top-p 0.9": {"top_p": 0.9},
    "min-p 0.1": {"min_p": 0.1},
    "greedy, no 3 tokens twice": {"temperature": 0, "no_repeat_ngram": 3},
}
"""The strategies of the table, by what they are called there; all samples have the same random seed."""


def compared(voice: Voice, *, seed: int, most: int | None) -> str:
    """Return a table of strategies with the texts that they choose, in quotes as in Python."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from composer.decode import Request, Sampling, Search, Slide, cached, stream

    most = COMPARED if most is None else most
    limit = Slide(voice.context) if not voice.encoder_inputs and voice.context is not None else None
    table = Table("strategy", "text", show_edge=False)
    for name, settings in STRATEGIES.items():
        request = Request(
            max_new_tokens=most, sampling=Sampling(**settings), stop=voice.stop, vocabulary=voice.vocabulary, limit=limit
        )
        ids = stream(voice.model, voice.tokens, request, encoder_inputs=voice.encoder_inputs, seed=seed, reading=cached)
        table.add_row(name, Text(repr("".join(voice.as_it_comes(ids, after=voice.before)))))
    room = most if limit is None else min(most, max(1, limit.length - len(voice.tokens)))
    (_, text), *_ = beams(voice, Search(num_beams=BEAMS), room)
    table.add_row(f"{BEAMS} beams", Text(repr(text)))
    console = Console(width=shutil.get_terminal_size((WIDTH, 24)).columns, color_system=None)
    with console.capture() as printed:
        console.print(table)
    return "\n".join(line.rstrip() for line in printed.get().splitlines())
