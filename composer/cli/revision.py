"""A file at an earlier Git revision."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from composer.cli.arguments import Problem


@contextmanager
def at_revision(file: Path, revision: str) -> Iterator[Path]:
    """Yield the file as it was at a revision, in a temporary folder with all recipes beside and below it.

    Raises:
        Problem: Git, the repository, the revision or the file in it is missing.
    """
    folder = file.resolve().parent
    _git(folder, ["rev-parse", "--git-dir"], f"{file} is not in a Git repository")
    commit = _git(folder, ["rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"], f"there is no revision `{revision}`")
    name = commit.decode("ascii").strip()
    _git(folder, ["cat-file", "-e", f"{name}:./{file.name}"], f"there is no {file.name} at {revision}")
    archive = _git(folder, ["archive", "--format=tar", name, "--", "*.y*ml"], f"{revision} cannot be read")
    with TemporaryDirectory() as place, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(place, filter="data")
        yield Path(place) / file.name


def _git(folder: Path, words: list[str], otherwise: str) -> bytes:
    """Return the output of a Git command; `otherwise` is the message if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except FileNotFoundError:
        raise Problem("arco check: --against a revision needs Git, which is not installed", "name a recipe instead") from None
    if done.returncode:
        raise Problem(f"arco check: --against: {otherwise}", "--against takes a recipe or a revision, such as HEAD~1")
    return done.stdout
