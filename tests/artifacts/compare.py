"""Two trees side by side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.artifacts.kinds import KINDS, Status, equal
from tests.artifacts.renames import Renames
from tests.artifacts.unpack import parts

LINES, WIDTH = 24, 200
"""Of a difference that is shown."""
Outcome: TypeAlias = Status | Literal["missing", "added"]


@dataclass(frozen=True)
class Found:
    """What was found of a file, or of a part of a page."""

    path: str
    """In the later tree, with `#PART`."""
    outcome: Outcome
    before: str = ""
    after: str = ""
    """What can be shown, in today's words."""

    @property
    def kind(self) -> str:
        """What sort of file it is; of a page, its part."""
        return self.path.removesuffix(".raised").rpartition("#")[2].rpartition(".")[2]


def compare(
    before: Path,
    after: Path,
    renames: Renames,
    *,
    accepted: Mapping[str, str],
    only: Sequence[str] = (),
    layout: bool = False,
    show: int = 5,
) -> int:
    """Print what differs between two trees; return 1 where something does that may not."""
    found = list(differences(before, after, renames, only))
    print(summary(found))
    harmless = {"equal", "comments", *(["layout"] if layout else [])}
    reasons = {one.path: glob for one in found if one.outcome not in harmless for glob in accepted if fnmatch(one.path, glob)}
    wrong = [one for one in found if one.outcome not in harmless and one.path not in reasons]
    for glob, count in Counter(reasons.values()).items():
        print(f"accepted {count:6}  {glob}: {accepted[glob]}")
    for glob in accepted.keys() - set(reasons.values()):
        print(f"accepted      0  {glob}: nothing differs there, take it out")
    for one in wrong:
        print(f"{one.outcome:8}  {one.path}")
    for one in [*wrong, *(one for one in found if one.outcome == "comments" and not wrong)][:show]:
        print("", *shown(one), sep="\n")
    print(f"\n{len(wrong)} of {len(found)} files and parts of pages differ" if wrong else "\nnothing differs that may not")
    return int(bool(wrong))


def differences(before: Path, after: Path, renames: Renames, only: Sequence[str] = ()) -> Iterator[Found]:
    """Yield every file of either tree."""
    new = set(files(after, only))
    old: dict[str, str] = {}
    for path in files(before, only):
        name = renames.path(path)
        other = renames.tokens(name)
        old[other if name not in new and other in new else name] = path
    for name in sorted(old.keys() | new):
        if name not in new:
            yield Found(name, "missing")
        elif name not in old:
            yield Found(name, "added")
        else:
            yield from file(before / old[name], after / name, name, renames)


def files(tree: Path, only: Sequence[str]) -> list[str]:
    """Return the files of a tree by their paths."""
    assert tree.is_dir(), f"there is no tree {tree}"
    found = (path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())
    return sorted(path for path in found if not only or path.startswith(tuple(f"{folder}/" for folder in only)))


def file(before: Path, after: Path, name: str, renames: Renames) -> Iterator[Found]:
    """Compare one file, a page by its parts."""
    old, new = before.read_bytes(), after.read_bytes()
    if old == new:
        yield Found(name, "equal")
    elif name.endswith((".png", ".pdf")):
        yield Found(name, KINDS[after.suffix](old, new))  # type: ignore[arg-type]  # these take bytes
    elif name.endswith(".html"):
        ours, theirs = parts(old.decode()), parts(new.decode())
        for part in sorted(ours.keys() | theirs.keys()):
            yield text(ours.get(part, ""), theirs.get(part, ""), f"{name}#{part}", renames)
    else:
        yield text(old.decode(), new.decode(), name, renames)


def text(before: str, after: str, name: str, renames: Renames) -> Found:
    """Return a text, in today's words."""
    if before == after:
        return Found(name, "equal")
    before = translated(before, name, lambda words: renames.either(renames.text(words, name)))
    after = translated(after, name, renames.either)
    kind = KINDS.get(f".{name.rpartition('.')[2]}", equal)
    return Found(name, kind(before, after), before, after)


def translated(text: str, name: str, translate: Callable[[str], str]) -> str:
    """Return a text in other words; of data its keys and texts, each read without the signs that JSON puts into it."""
    if not name.endswith(".json"):
        return translate(text)

    def inner(value: Any) -> Any:
        if isinstance(value, dict):
            return {translate(key): inner(held) for key, held in value.items()}
        if isinstance(value, list):
            return list(map(inner, value))
        return translate(value) if isinstance(value, str) else value

    return json.dumps(inner(json.loads(text)), indent=1, sort_keys=True, ensure_ascii=False)


def summary(found: Sequence[Found]) -> str:
    """Return how many files of each kind were found to be what."""
    counts = Counter((one.kind, one.outcome) for one in found)
    outcomes = ["equal", "comments", "layout", "differs", "missing", "added"]
    rows = [
        ["", *outcomes],
        *([kind, *(str(counts[kind, each]) for each in outcomes)] for kind in sorted({one.kind for one in found})),
    ]  # type: ignore[index]  # an outcome
    return "\n".join("".join(f"{cell:>10}" for cell in row) for row in rows)


def shown(one: Found) -> list[str]:
    """Return the first lines of a difference; a line of a picture for each of its elements."""
    sides = [text.replace("><", ">\n<").splitlines() for text in (one.before, one.after)]
    lines = unified_diff(*sides, f"before/{one.path}", f"after/{one.path}", lineterm="", n=1)
    return [line[:WIDTH] for line in islice(lines, LINES)] or [f"{one.outcome}: {one.path}"]
