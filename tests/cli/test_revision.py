"""A recipe at a Git revision: only objects are read, and nothing that a repository has configured is run."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from composer.cli import revision
from composer.cli.revision import MAX_SECONDS
from composer.language.source_file import MAX_FILE_BYTES
from tests.cli.conftest import Arco

pytestmark = pytest.mark.skipif(shutil.which("git") is None or os.name == "nt", reason="needs Git and a shell")

TOP = "recipe: top\nextends: base.yaml\n"
BASE = "recipe: base\ninputs: {x: 'float[batch, 8]'}\ngraph:\n  a: {type: linear, out: 8}\n  b: tanh\n"
CHANGED = BASE.replace("  b: tanh", "  between: relu\n  b: tanh")
WARNING = "`b` reads `between` (implied), and read `a` (implied) before"


class Repository:
    """A repository of a stranger, in which every program that it can configure leaves a trace."""

    def __init__(self, folder: Path, trace: Path) -> None:
        self.folder, self.trace = folder, trace
        self.program = trace.with_name("program")
        self.program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{trace}'\nexit 0\n", encoding="utf-8")
        self.program.chmod(0o755)
        self.git("init", "-q")

    def git(self, *words: str, text: str | None = None) -> str:
        """Run Git as the stranger did, without the programs."""
        options = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        options += ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
        command = ["git", "-C", str(self.folder), *options, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout.strip()

    def write(self, name: str, text: str) -> None:
        """Write a file of the working tree."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def commit(self) -> None:
        """Commit all files."""
        self.git("add", "-A")
        self.git("commit", "-qm", "one more")

    def tree(self, *entries: tuple[str, str, str]) -> None:
        """Commit a tree of these modes, objects and names, which `git add` would not write."""
        listing = "".join(f"{mode} {'tree' if mode == '40000' else 'blob'} {name}\t{path}\n" for mode, name, path in entries)
        tree = self.git("mktree", "--missing", text=listing)
        self.git("update-ref", "refs/heads/evil", self.git("commit-tree", tree, "-m", "evil"))

    def blob(self, text: str) -> str:
        """Write an object."""
        return self.git("hash-object", "-w", "--stdin", text=text)

    def ran(self) -> str:
        """Return what was run."""
        return self.trace.read_text(encoding="utf-8") if self.trace.exists() else ""


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    """A repository with two recipes, the second changed since the first commit."""
    (tmp_path / "stranger").mkdir()
    repository = Repository(tmp_path / "stranger", tmp_path / "trace")
    repository.write("top.yaml", TOP)
    repository.write("base.yaml", BASE)
    repository.commit()
    repository.write("base.yaml", CHANGED)
    yield repository
    assert repository.ran() == ""


def test_filters_hooks_and_monitors_of_a_repository_do_not_run(arco: Arco, repository: Repository) -> None:
    """Nor pagers, external programs for diffs and text, credentials, signatures, or aliases."""
    program = str(repository.program)
    repository.write(".gitattributes", "*.yaml filter=evil diff=evil text=auto eol=crlf ident export-subst\n")
    repository.git("add", ".gitattributes")
    repository.git("commit", "-qm", "attributes")
    for key in (
        *("filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "diff.evil.command"),
        *(
            "core.fsmonitor",
            "core.pager",
            "pager.cat-file",
            "pager.ls-tree",
            "pager.rev-parse",
            "core.sshCommand",
            "core.askPass",
        ),
        *("diff.external", "credential.helper", "gpg.program", "core.editor", "core.alternateRefsCommand", "tar.tar.command"),
        *("alias.cat-file", "alias.ls-tree", "alias.rev-parse", "uploadpack.packObjectsHook", "interactive.diffFilter"),
    ):
        repository.git("config", key, f"!{program}" if key.startswith("alias") else program)
    repository.git("config", "filter.evil.required", "true")
    repository.git("config", "core.hooksPath", str(repository.program.parent))
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "query-watchman"):
        shutil.copy(program, repository.folder / ".git" / "hooks" / hook)
        shutil.copy(program, repository.program.parent / hook)
    done = arco("check", repository.folder / "top.yaml", "--against", "HEAD")
    assert (done.code, done.err) == (0, "") and WARNING in done.out


def test_an_object_that_is_missing_is_not_fetched(arco: Arco, repository: Repository) -> None:
    """From a remote that promises it, over a transport that is a program."""
    shutil.rmtree(repository.folder / ".git" / "objects" / repository.git("rev-parse", "HEAD:base.yaml")[:2])
    program = str(repository.program)
    settings = {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{program} %S",
        "remote.origin.uploadpack": program,
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "protocol.file.allow": "always",
        "core.sshCommand": program,
        "core.gitProxy": program,
    }
    urls = (f"ext::{program} %S", str(repository.folder.parent), "ssh://example.invalid/x", "git://example.invalid/x")
    for key, value in settings.items():
        repository.git("config", key, value)
    for url in urls:
        repository.git("config", "remote.origin.url", url)
        done = arco("check", repository.folder / "top.yaml", "--against", "HEAD")
        assert done.code == 2 and done.out == "" and "base.yaml" in done.err
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "word", ["--output=/tmp/x", "-h", "--exec=x", "--git-dir=/", "-", "--", "--all", "HEAD\0", "", " ", "\n"]
)
def test_a_revision_is_no_option(arco: Arco, repository: Repository, word: str) -> None:
    """Nor an empty word, nor one that no argument can be."""
    done = arco("check", repository.folder / "top.yaml", f"--against={word}")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("arco check: --against: " + ("`--` is not a value" if word == "--" else "there is no revision "))


def test_what_is_not_a_file_in_a_tree_is_not_read(arco: Arco, repository: Repository, tmp_path: Path) -> None:
    """A link, a folder, and another repository; names that lead out of the tree name nothing there."""
    (tmp_path / "outside.yaml").write_text(BASE, encoding="utf-8")
    link, base = repository.blob("../outside.yaml"), repository.blob(BASE)
    inner = repository.git("mktree", text=f"100644 blob {base}\tbase.yaml\n")
    for name in ("linked.yaml", "folder.yaml", "module.yaml"):
        top = repository.blob(f"recipe: top\nextends: {name}\n")
        repository.tree(("100644", top, "top.yaml"), ("120000", link, "linked.yaml"), ("40000", inner, "folder.yaml"))
        done = arco("check", repository.folder / "top.yaml", "--against", "evil")
        assert done.code == 2 and f"{name}:" in done.err and "top.yaml at evil:2" in done.err
    repository.tree(("120000", link, "top.yaml"))
    done = arco("check", repository.folder / "top.yaml", "--against", "evil")
    assert (done.code, done.out) == (2, "") and "top.yaml at evil" in done.err


def test_a_file_at_a_revision_is_bounded(arco: Arco, repository: Repository) -> None:
    """Its size is asked for first."""
    repository.write("base.yaml", "#" * (MAX_FILE_BYTES + 1))
    repository.commit()
    repository.write("base.yaml", BASE)
    done = arco("check", repository.folder / "top.yaml", "--against", "HEAD")
    assert done.code == 2 and f"a recipe has at most {MAX_FILE_BYTES} bytes" in done.err


def test_git_is_not_waited_for_without_end(arco: Arco, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository may include a pipe as a part of its configuration."""
    os.mkfifo(repository.folder / "pipe")
    with (repository.folder / ".git" / "config").open("a", encoding="utf-8") as config:
        config.write(f"[include]\n  path = {repository.folder / 'pipe'}\n")
    assert MAX_SECONDS <= 60
    monkeypatch.setattr(revision, "MAX_SECONDS", 1)
    done = arco("check", repository.folder / "top.yaml", "--against", "HEAD")
    assert (done.code, done.out) == (2, "") and "Git gave no answer" in done.err


def test_a_git_that_lies_beside_the_recipe_is_not_run(
    arco: Arco, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a path that is searched in the working folder would have it."""
    shutil.copy(repository.program, tmp_path / "git")
    (tmp_path / "git").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}{os.environ['PATH']}")
    done = arco("check", repository.folder / "top.yaml", "--against", "HEAD")
    assert done.code == 0 and WARNING in done.out


def test_the_environment_of_a_hook_changes_nothing(
    arco: Arco, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Git exports its own variables to hooks, which name folders from there."""
    program = str(repository.program)
    for name, value in {
        **{"GIT_DIR": ".git", "GIT_INDEX_FILE": ".git/index", "GIT_EXTERNAL_DIFF": program, "GIT_PAGER": program},
        **{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.pager", "GIT_CONFIG_VALUE_0": program},
        "GIT_TRACE": str(repository.trace),
    }.items():
        monkeypatch.setenv(name, value)
    done = arco("check", repository.folder / "top.yaml", "--against", "HEAD")
    assert done.code == 0 and WARNING in done.out
    for name in [each for each in os.environ if each.startswith("GIT_")]:
        monkeypatch.delenv(name)


def test_every_place_is_named_with_its_file_and_revision(arco: Arco, repository: Repository) -> None:
    """Also in a file that the recipe extends, and in one that is wrong."""
    done = arco("check", repository.folder / "top.yaml", "--against", "HEAD")
    assert f"--> {repository.folder / 'base.yaml'} at HEAD:5" in done.out
    assert f"= {repository.folder / 'base.yaml'} at HEAD:5 has it as it was" in done.out
    repository.write("base.yaml", BASE.replace("tanh", "tan"))
    repository.commit()
    repository.write("base.yaml", BASE)
    done = arco("check", repository.folder / "top.yaml", "--against", "HEAD")
    assert done.code == 2 and f"{repository.folder / 'base.yaml'} at HEAD:5:6: error[unknown-block]" in done.err


def test_a_recipe_that_is_a_link_is_read_where_it_lies(arco: Arco, repository: Repository, tmp_path: Path) -> None:
    """With the files beside it."""
    (tmp_path / "short.yaml").symlink_to(repository.folder / "base.yaml")
    done = arco("check", tmp_path / "short.yaml", "--against", "HEAD")
    assert done.code == 0 and WARNING in done.out


def test_the_working_tree_is_left_as_it_is(arco: Arco, repository: Repository) -> None:
    """Neither the index nor any other file changes, and nothing is written elsewhere."""
    before = {file: file.stat().st_mtime_ns for file in repository.folder.rglob("*")}
    arco("check", repository.folder / "top.yaml", "--against", "HEAD")
    assert {file: file.stat().st_mtime_ns for file in repository.folder.rglob("*")} == before
