"""A recipe at an earlier Git revision, and the files that it names as they were then.

The repository may be a stranger's, so that only its objects are read. Nothing is checked out, compared or fetched: what a
repository can configure to run — filters, hooks, monitors, pagers, transports — has no occasion to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from composer.cli.arguments import Problem
from composer.diagnostics import Source
from composer.language.composition.named_files import RecipeFile
from composer.language.source_file import MAX_FILE_BYTES, decoded, refuse
from composer.recipe import zoo_source

MAX_SECONDS = 30
"""How long Git may take for one answer: a pipe among the files of its configuration has no end."""
OPTIONS = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
)
KEPT = ("GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES")
"""Variables of Git that say where it is installed and what its user has configured; all others are for other commands."""
ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}


@dataclass(frozen=True, slots=True)
class Revision:
    """The files of a folder at a revision."""

    folder: Path
    commit: str
    called: str
    """The revision as the user wrote it."""

    def __call__(self, file: RecipeFile, folder: PurePosixPath) -> Source:
        """Return the text of a recipe that is named by a file in a folder below this one.

        Raises:
            RecipeError: There is no such recipe, or it cannot be read.
        """
        return zoo_source(file.name, self.folder / folder) if file.in_zoo else self.open(file.name, self.folder / file.name)

    def open(self, name: str, shown: Path | str) -> Source:
        """Return the text of a file, given by its path from the folder.

        Raises:
            RecipeError: There is no such file at the revision, or it cannot be read.
        """
        source = Source(f"{shown} at {self.called}", "")
        found = _git(self.folder, "ls-tree", "-z", "-l", self.commit, "--", name)
        if not found:
            refuse("missing-file", f"there is no such file at {self.called}", source)
        mode, kind, blob, size = found.split(b"\0")[0].partition(b"\t")[0].split()
        if kind != b"blob" or not mode.startswith(b"100"):
            what = {b"120000": "a link", b"160000": "another repository"}.get(mode, "a folder")
            refuse("not-a-file", f"this is {what}, not a file", source)
        if size.isdigit() and int(size) > MAX_FILE_BYTES:
            refuse("too-large", f"a recipe has at most {MAX_FILE_BYTES} bytes", source)
        content = _git(self.folder, "cat-file", "blob", blob.decode("ascii"))
        if content is None:
            refuse("unreadable-file", "this file is not among the objects of the repository", source)
        return decoded(content, source)


def revision_of(file: Path, called: str) -> Revision:
    """Return the revision of the folder of a file.

    Raises:
        Problem: Git, the repository, the revision or the file in it is missing.
    """
    real = file.resolve()
    folder = real.parent
    if _git(folder, "rev-parse", "--git-dir") is None:
        raise _problem(f"{file} is not in a Git repository")
    commit = None
    if called and not called.startswith("-") and "\0" not in called:  # Git would take it for an option
        commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{called}^{{commit}}")
    if commit is None:
        raise _problem(f"there is no revision `{called}`")
    name = commit.decode("ascii").strip()
    if not _git(folder, "ls-tree", name, "--", real.name):
        raise _problem(f"there is no {file.name} at {called}")
    return Revision(folder, name, called)


def _git(folder: Path, *words: str) -> bytes | None:
    """Return the output of a Git command, or None if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in KEPT}
    command = [_program(), "-C", str(folder), *OPTIONS, *words]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=environment | ENVIRONMENT,
            timeout=MAX_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _problem(f"Git gave no answer within {MAX_SECONDS} seconds") from None
    return None if done.returncode else done.stdout


def _program() -> str:
    """Return the path of Git, which is searched in no folder that is named from the working folder."""
    folders = (each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(each).is_absolute())
    found = shutil.which("git", path=os.pathsep.join(folders))
    if found is None or not Path(found).is_absolute():
        raise Problem("arco check: --against a revision needs Git, which is not installed", "name a recipe instead")
    return found


def _problem(message: str) -> Problem:
    return Problem(f"arco check: --against: {message}", "--against takes a recipe or a revision, such as HEAD~1")
