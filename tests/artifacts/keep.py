"""Writes a tree: each task in a folder of its own, one after the other or in several processes."""

from __future__ import annotations

import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir
from functools import partial
from pathlib import Path

from tests.artifacts.renames import Renames
from tests.artifacts.tasks import Task, tasks

REPLAYED = ("generated/*/recipe.yaml", "diffs/mutated/*/*/recipe.yaml")
"""Recipes that an earlier tree can give."""


def keep(folder: Path, only: tuple[str, ...], *, jobs: int, replay: Path | None, renames: Renames) -> list[str]:
    """Write the tree; return the files that stand for exceptions."""
    found = tasks(only, None if replay is None else texts(replay, renames))
    twice = [path for path, count in Counter(task.path for task in found).items() if count > 1]
    assert not twice, twice
    write = partial(written, folder.absolute())
    if jobs == 1:
        return [raised for task in found for raised in write(task)]
    with ProcessPoolExecutor(jobs) as pool:
        return [raised for files in pool.map(write, found, chunksize=4) for raised in files]


def texts(tree: Path, renames: Renames) -> dict[str, str]:
    """Return the recipes of a tree in today's words, by the paths of their folders."""
    files = sorted(file for pattern in REPLAYED for file in tree.glob(pattern))
    return {
        (path := file.parent.relative_to(tree).as_posix()): renames.text(file.read_text(encoding="utf-8"), f"{path}/recipe.yaml")
        for file in files
    }


def written(tree: Path, task: Task) -> list[str]:
    """Write a folder; return the files in it that stand for exceptions."""
    target, raised = tree / task.path, []
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as empty, chdir(task.folder or empty):
        try:
            for name, make in task.make(*task.given):
                try:
                    content = make()
                except Exception as error:
                    raised.append(_note(tree, f"{task.path}/{name}.raised", error))
                    continue
                (target / name).write_bytes(content.encode() if isinstance(content, str) else content)
        except Exception as error:
            raised.append(_note(tree, f"{task.path}/folder.raised", error))
    return raised


def _note(tree: Path, path: str, error: Exception) -> str:
    (tree / path).write_text(f"{type(error).__name__}: {error}\n", encoding="utf-8")
    return path
