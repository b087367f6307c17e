"""Many names, of which one asks whether a pattern matches any."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import takewhile

from composer.language.patterns import PatternPiece, matches, parsed


class NameIndex:
    """Names in order, so that a pattern is compared with few of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = sorted(names)
        self.words = "\n".join(dict.fromkeys(word for name in self.names for word in name.split(".")))
        """What stands between the dots of names, each once."""

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern matches any of the names."""
        return any(matches(pattern, name) for way in parsed(pattern).ways for name in self._near(way))

    def _near(self, way: tuple[PatternPiece, ...]) -> Iterator[str]:
        """Yield the names that may be meant: those that begin as the pattern does, if they have all of its words."""
        texts = [piece for piece in way if isinstance(piece, str)]
        if any(word not in self.words for text in texts for word in re.split(r"[.*?]", text)):
            return iter(())
        start = way[0].partition("?")[0] if way and isinstance(way[0], str) and way[0] != "*" else ""
        first = bisect_left(self.names, start)
        return takewhile(lambda name: name.startswith(start), (self.names[at] for at in range(first, len(self.names))))
