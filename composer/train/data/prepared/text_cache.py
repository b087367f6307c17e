"""The cache of prepared texts: tokens and tokenizers by the content of texts, and notes on files that have not changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from composer.atomic_files import StrPath, save
from composer.train.errors import TrainingError
from composer.train.input_files import parse_json, read_bytes
from composer.train.run import disk
from composer.train.run.manifest import sealed

VARIABLE = "COMPOSER_CACHE"
"""The environment variable that names the folder of the cache, or turns it off."""
OFF, DEFAULT = "off", "default"
LIMIT = 1 << 28
"""The largest size of a note that is read, in bytes."""
MOST_BYTES = 1 << 35
"""The size of all tokens together above which those are removed that have not been used for longest."""
RECENT = 2.0
"""Seconds for which a file may change without another time of change, on any file system."""
OLD = 90 * 24 * 3600.0
"""Seconds after which a note that has not been used is removed."""


@dataclass(frozen=True)
class TextCache:
    """The folder of the cache."""

    folder: Path

    def tokens(self, key: str) -> Path:
        """Return the folder of the tokens with a key."""
        return self.folder / "tokens" / key

    def note(self, key: str) -> Path:
        """Return the file of a note."""
        return self.folder / "notes" / f"{key}.json"

    def noted(self, key: str) -> Mapping[str, Any] | None:
        """Return what was noted under a key; None without a note, or if it is damaged."""
        path = self.note(key)
        try:
            content = read_bytes(path, limit=LIMIT, follow=False)
            values = parse_json(content, path)
        except TrainingError:
            return None
        if not isinstance(values, dict):
            return None
        values.pop("sha256", None)
        if sealed(values) != content:
            return None
        with suppress(OSError):
            os.utime(path)
        return values

    def remember(self, key: str, values: Mapping[str, object]) -> None:
        """Write a note under a key; a cache that cannot be written forgets it."""
        with suppress(OSError):
            self.note(key).parent.mkdir(parents=True, exist_ok=True)
            save(self.note(key), sealed(values))

    def make_room(self, kept: str) -> None:
        """Remove what has not been used for longest, until the rest has a bounded size; the tokens of a key are kept."""
        with suppress(OSError):
            for path in (self.folder / "notes").iterdir():
                if path.stat().st_mtime < time.time() - OLD:
                    path.unlink()
            found = sorted(self._stored(), reverse=True)
            total = 0
            for used, size, path in found:
                total += size
                unfinished = path.name.startswith(disk.ASIDE)
                if path.name != kept and (total > MOST_BYTES or (unfinished and used < time.time() - OLD)):
                    shutil.rmtree(path, ignore_errors=True)

    def _stored(self) -> Iterator[tuple[float, int, Path]]:
        """Yield when each folder of tokens was used last, its size and its path."""
        for path in (self.folder / "tokens").iterdir():
            with suppress(OSError):
                yield path.stat().st_mtime, sum(each.stat().st_size for each in path.iterdir()), path


def cache_of(choice: StrPath, environment: Mapping[str, str] = os.environ) -> TextCache | None:
    """Return the cache that is chosen, None if it is off.

    Args:
        choice: `off`; a folder; or `default`, for what `COMPOSER_CACHE` says, else the user's own cache folder.
        environment: The environment variables.
    """
    if choice == DEFAULT:
        choice = environment.get(VARIABLE) or user_cache(environment) or OFF
    return None if choice == OFF else TextCache(Path(choice))


def user_cache(environment: Mapping[str, str]) -> str:
    """Return the folder in which a user's programs cache, for Composer; empty if there is none."""
    home = environment.get("HOME", "")
    if sys.platform == "win32":
        parent = environment.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        parent = home and f"{home}/Library/Caches"
    else:
        parent = environment.get("XDG_CACHE_HOME", "") or (home and f"{home}/.cache")
    return str(Path(parent) / "composer") if parent and Path(parent).is_absolute() else ""


def key_of(*parts: object) -> str:
    """Return the key of what JSON values determine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8")).hexdigest()


def state_of(paths: Sequence[Path], *, settled: bool = False) -> list[list[object]] | None:
    """Return what changes whenever one of some files changes: their sizes, times and places; None if one cannot be seen, or has
    changed so recently that it may change again without a trace.

    Args:
        paths: The files.
        settled: Whether it is known that no one else writes these files.
    """
    states: list[list[object]] = []
    for path in paths:
        try:
            found = path.stat()
        except (OSError, ValueError):
            return None
        if not settled and max(found.st_mtime, found.st_ctime) > time.time() - RECENT:
            return None
        states.append([str(path.absolute()), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev])
    return states
