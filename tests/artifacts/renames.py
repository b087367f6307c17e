"""What is called otherwise after a refactoring."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

WORD = r"(?<!\w)[A-Za-z_]\w*"


@dataclass(frozen=True)
class Words:
    """Whole words with what becomes of them, all at once."""

    new: Mapping[str, str]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any identifier, which a look into the mapping decides on; before it the words that are none, the longest first."""
        others = sorted((old for old in self.new if not re.fullmatch(WORD, old)), key=len, reverse=True)
        return re.compile("|".join([*map(_bounded, others), WORD]))

    def __call__(self, text: str) -> str:
        return self.pattern.sub(lambda match: self.new.get(match[0], match[0]), text) if self.new else text


def _bounded(word: str) -> str:
    """Return what finds a word, but not within another."""
    start, end = r"(?<!\w)" * word[0].isalnum(), r"(?!\w)" * word[-1].isalnum()
    return f"{start}{re.escape(word)}{end}"


@dataclass(frozen=True)
class Renames:
    """How the text of an earlier tree reads today."""

    tokens: Words = Words({})
    either: Words = Words({})
    texts: tuple[tuple[re.Pattern[str], str, str], ...] = ()
    """What is looked for, what it becomes, and the files in which."""
    paths: Mapping[str, str] | None = None

    def text(self, text: str, path: str) -> str:
        """Return a text of a file of the earlier tree, in today's words."""
        text = self.tokens(text)
        for pattern, new, where in self.texts:
            if fnmatch(path, where):
                text = pattern.sub(new, text)
        return text

    def path(self, path: str) -> str:
        """Return where a file of the earlier tree is today."""
        for old, new in (self.paths or {}).items():
            if path == old or path.startswith(f"{old}/"):
                return new + path.removeprefix(old)
        return path


def load(path: Path | None) -> Renames:
    """Return the renames of a file; none without one."""
    told = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    if unknown := told.keys() - {"tokens", "either", "texts", "paths"}:
        raise SystemExit(f"{path}: {', '.join(sorted(unknown))} is not known; tokens, either, texts and paths are")
    texts = tuple((re.compile(old, re.MULTILINE), new, *(where or ["*"])) for old, new, *where in told.get("texts", ()))
    return Renames(Words(told.get("tokens", {})), Words(told.get("either", {})), texts, told.get("paths", {}))


def read(path: Path | None) -> dict[str, str]:
    """Return a JSON file of texts by texts; nothing without one."""
    found: dict[str, str] = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    return found
