"""`arco diff` and `arco check --against`: exit codes, formats, and what git is asked."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from composer.recipe import zoo
from tests.cli.conftest import Arco

with_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def test_equal_models_end_with_0_and_others_with_1(arco: Arco) -> None:
    """As `diff` does."""
    assert arco("diff", "gpt2", "gpt2") == (0, "gpt2 → gpt2: the same model\n", "")
    done = arco("diff", "gpt_mini", "gpt_mini", "--set", "layers.attn.norm=layernorm")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[0] == "gpt_mini → gpt_mini with layers.attn.norm=layernorm: 1 change, +0.064 % parameters"


def test_what_cannot_be_compared_ends_with_2(arco: Arco, wrong: Path) -> None:
    """A missing recipe, or a wrong one on either side."""
    assert arco("diff", "gpt2", "gpt") == (2, "", "arco: gpt: there is no such recipe\n  = did you mean gpt1 or gpt2 or gpt3?\n")
    for words in (("gpt2", wrong), (wrong, "gpt2")):
        done = arco("diff", *words)
        assert (done.code, done.out) == (2, "") and "error[unknown-block]" in done.err


def test_json_is_written_where_it_is_asked_for(arco: Arco, tmp_path: Path) -> None:
    """To the terminal or to a file."""
    done = arco("diff", "gpt2", "llama3", "--format", "json")
    assert done.code == 1 and json.loads(done.out)["before"] == "gpt2"
    assert arco("diff", "gpt2", "llama3", "--format", "json", "-o", "found.json") == (1, "wrote found.json\n", "")
    assert (tmp_path / "found.json").read_text(encoding="utf-8") == done.out
    done = arco("diff", "gpt2", "llama3", "-o", "no/found.txt")
    assert (done.code, done.err) == (2, f"arco: {Path('no/found.txt')} cannot be written: no such file or directory\n")


@pytest.mark.slow
def test_models_are_compared_without_torch() -> None:
    """And so are edges."""
    for words in (["diff", "gpt2", "llama3"], ["check", "gpt2", "--against", "gpt_mini"]):
        code = f"from composer.cli import main\nmain({words!r})\nimport sys\nassert 'torch' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, check=True)


# -- against


@pytest.fixture
def history(tmp_path: Path) -> Callable[[str], None]:
    """A repository whose first commit holds a recipe, and what writes it anew."""
    file = tmp_path / "mine.yaml"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    text = (zoo() / "gpt_mini.yaml").read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)

    def put(between: str) -> None:
        file.write_text(text.replace("  layers:\n    repeat", f"  {between}\n  layers:\n    repeat"), encoding="utf-8")

    return put


@with_git
def test_a_node_put_in_between_is_seen_against_a_revision(arco: Arco, history: Callable[[str], None]) -> None:
    """With the lines of both sides; it is a warning, which does not count."""
    assert arco("check", "mine.yaml", "--against", "HEAD") == (0, "mine.yaml: no problems found\n", "")
    history("squash: tanh")
    done = arco("check", "mine.yaml", "--against", "HEAD")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "mine.yaml:22:3: warning[edge-changed]: `layers` reads `squash` (implied), and read `embed` (implied) before\n"
        "   |\n"
        "22 |  layers:\n"
        "   |  ^^^^^^\n"
        "  --> mine.yaml at HEAD:21\n"
        "21 |  layers:\n"
        "   |  ------ read `embed` (implied)\n"
        "   = mine.yaml at HEAD:21 has it as it was\n"
        "\n"
        "1 warning\n"
    )
    (found,) = json.loads(arco("check", "mine.yaml", "--against", "HEAD", "--format", "json").out)
    assert (found["code"], found["line"], found["labels"][0]["line"]) == ("edge-changed", 22, 21)
    github = arco("check", "mine.yaml", "--against", "HEAD", "--format", "github").out
    assert github.startswith("::warning file=mine.yaml,line=22,") and "mine.yaml at HEAD:21" in github


@with_git
def test_a_recipe_may_lie_below_the_root_of_its_repository(arco: Arco, history: Callable[[str], None], tmp_path: Path) -> None:
    """And be named from anywhere."""
    folder = tmp_path / "models"
    folder.mkdir()
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    (folder / "deep.yaml").write_text(text, encoding="utf-8")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "second"], check=True)
    (folder / "deep.yaml").write_text(text.replace("\n  norm: rmsnorm", "\n  curve: silu\n  norm: rmsnorm"), encoding="utf-8")
    done = arco("check", "models/deep.yaml", "--against", "HEAD")
    assert done.code == 0 and "`norm` reads `curve` (implied), and read `layers` (implied) before" in done.out


@with_git
def test_what_a_recipe_extends_is_read_at_the_same_revision(arco: Arco, history: Callable[[str], None], tmp_path: Path) -> None:
    """Not as it lies there now."""
    child = tmp_path / "child.yaml"
    child.write_text("recipe: child\nextends: mine.yaml\n", encoding="utf-8")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "second"], check=True)
    history("squash: tanh")
    done = arco("check", "child.yaml", "--against", "HEAD")
    assert done.code == 0 and "`layers` reads `squash` (implied), and read `embed` (implied) before" in done.out


@with_git
def test_what_git_does_not_know_is_said(arco: Arco, history: Callable[[str], None], tmp_path: Path) -> None:
    """No such revision, no such file in it, no file at all, no repository."""
    hint = "  = --against takes a recipe or a revision, such as HEAD~1\n"
    assert arco("check", "mine.yaml", "--against", "nope") == (
        2,
        "",
        f"arco check: --against: there is no revision `nope`\n{hint}",
    )
    shutil.copy(tmp_path / "mine.yaml", tmp_path / "new.yaml")
    assert arco("check", "new.yaml", "--against", "HEAD") == (
        2,
        "",
        f"arco check: --against: there is no new.yaml at HEAD\n{hint}",
    )
    assert (
        arco("check", "gpt2", "--against", "HEAD").err
        == "arco check: --against HEAD: gpt2 is not a file, so Git has no revisions of it\n  = compare it with another recipe\n"
    )
    (tmp_path / ".git").rename(tmp_path / "elsewhere")
    assert arco("check", "mine.yaml", "--against", "HEAD").err == (
        f"arco check: --against: mine.yaml is not in a Git repository\n{hint}"
    )


def test_without_git_a_revision_cannot_be_read(arco: Arco, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And another recipe still can."""
    shutil.copy(zoo() / "gpt_mini.yaml", tmp_path / "mine.yaml")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert arco("check", "mine.yaml", "--against", "HEAD") == (
        2,
        "",
        "arco check: --against a revision needs Git, which is not installed\n  = name a recipe instead\n",
    )
    assert arco("check", "mine.yaml", "--against", "gpt_mini") == (0, "mine.yaml: no problems found\n", "")


def test_a_wrong_recipe_is_nothing_to_hold_against(arco: Arco, wrong: Path) -> None:
    """Its own mistakes are told."""
    done = arco("check", "gpt2", "--against", wrong)
    assert done.code == 2 and done.err.startswith(f"arco check: --against {wrong}: that recipe has errors itself\n\n")
    assert "error[unknown-block]" in done.err
