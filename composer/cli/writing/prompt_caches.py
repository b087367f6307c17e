"""`arco generate --prompt-cache`: the prompt in a file, so that the next time only what is new of it is read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from composer.cli.arguments import Problem
from composer.cli.writing.voices import Voice

if TYPE_CHECKING:
    from composer.decode import PromptCache, Reading
    from composer.lower import Model

WITHOUT = ("num_beams", "next", "strategies", "draft")
"""Options that read a prompt in another way."""


def prompt_cache_of(arguments: argparse.Namespace, voices: Sequence[Voice], reading: Reading) -> PromptCache | None:
    """Return the reading that keeps the prompt in the file of `--prompt-cache`, if there is one.

    Raises:
        Problem: There are several prompts, or they are read in another way.
    """
    from composer.decode import PromptCache

    if arguments.prompt_cache is None:
        return None
    if len(voices) > 1:
        raise Problem(f"arco generate: --prompt-cache keeps one prompt, and there are {len(voices)}", "run it for each prompt")
    other = next((name for name in WITHOUT if getattr(arguments, name) not in (None, False)), None)
    if other is not None:
        option = f"--{other.replace('_', '-')}"
        raise Problem(f"arco generate: {option} reads the prompt in another way, without --prompt-cache", "remove one of them")
    if voices[0].hidden is not None:
        raise Problem("arco generate: --prompt-cache is for texts that are continued, and here words are filled in")
    cache = PromptCache(arguments.prompt_cache, reading)
    cache.open(cast("Model", voices[0].model))  # a file that is refused is refused before anything is printed
    return cache


def tell_found(cache: PromptCache | None) -> None:
    """Print how much of the prompt was in the file, beside the text."""
    if cache is not None and cache.found:
        print(f"{cache.found} of {cache.length} tokens of the prompt were in the prompt cache", file=sys.stderr)
