"""The Markdown pages as examples: fenced blocks with the page and line where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+)(?P<info>.*)$")


@dataclass(frozen=True)
class Example:
    """One fenced block: ```` ```yaml graph error=cycle ```` has the language `yaml`, the word `graph` and the option `error`."""

    page: Path
    line: int
    """Of the fence that opens it."""
    info: str
    text: str

    @property
    def language(self) -> str:
        """What colors it."""
        return self.info.partition(" ")[0]

    @property
    def words(self) -> list[str]:
        """How it is to be tested."""
        return [word for word in self.info.split()[1:] if "=" not in word]

    def option(self, name: str) -> str:
        """Return the value of `name=value` after the language, or nothing."""
        return next((word.partition("=")[2] for word in self.info.split() if word.startswith(f"{name}=")), "")

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def examples(page: Path) -> list[Example]:
    """Return the fenced blocks of a page, in its order."""
    return list(_blocks(page))


def _blocks(page: Path) -> Iterator[Example]:
    opened: tuple[int, str, str] | None = None
    body: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        match = _FENCE.match(line)
        if opened is None and match:
            opened, body = (number, match["fence"], match["info"].strip()), []
        elif opened is not None and match and match["fence"] == opened[1] and not match["info"]:
            yield Example(page, opened[0], opened[2], "".join(f"{each}\n" for each in body))
            opened = None
        elif opened is not None:
            body.append(line)
    assert opened is None, f"{page}:{opened and opened[0]}: this block has no end"
