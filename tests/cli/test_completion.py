"""`arco completion`: the scripts, run by the shells that are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from composer.cli import COMMANDS, main
from composer.cli.completion import SHELLS
from composer.recipe import zoo_names
from tests.cli.conftest import Arco
from tests.docs.sessions import output

ROOT = Path(__file__).parents[2]
CASES = [
    ("arco che", {"check"}),
    ("arco check ll", {"llama1", "llama2", "llama3", "llama4"}),
    ("arco check mi", {"minilm", "mistral", "mixtral", "mixture_of_depths", "mine.yaml"}),
    ("arco check small.yaml gpt_", {"gpt_mini", "gpt_neo", "gpt_neox", "gpt_oss"}),
    ("arco check --form", {"--format"}),
    ("arco check gpt2 --format js", {"json"}),
    ("arco diff gpt2 ll", {"llama1", "llama2", "llama3", "llama4"}),
    ("arco draw gpt2 --theme sl", {"slide"}),
    ("arco train gpt_mini --data no", {"notes.txt"}),
    ("arco generate ru", {"runs"}),
    ("arco explain indiv", {"indivisible"}),
    ("arco blocks gated_f", {"gated_ffn"}),
    ("arco help su", {"summary"}),
]
BASH = r"""
source ./arco.bash
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_shtab_arco; printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scripts, a recipe, a text and a folder of runs."""
    folder = tmp_path_factory.mktemp("shells")
    for shell in SHELLS:
        (folder / f"arco.{shell}").write_text(output(lambda shell=shell: main(["completion", shell])), encoding="utf-8")
    (folder / "mine.yaml").touch()
    (folder / "notes.txt").touch()
    (folder / "runs").mkdir()
    return folder


def needs(shell: str) -> None:
    """Skip a test where a shell is not installed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


@pytest.mark.parametrize(("line", "offered"), CASES, ids=[line for line, _ in CASES])
def test_bash_completes(line: str, offered: set[str], scripts: Path) -> None:
    """Commands, options, choices, recipes, files and folders."""
    needs("bash")
    done = subprocess.run(["bash", "-c", BASH, "bash", *line.split()], cwd=scripts, capture_output=True, encoding="utf-8")
    assert {*done.stdout.split()} == offered, done.stderr


@pytest.mark.parametrize(("line", "offered"), CASES, ids=[line for line, _ in CASES])
def test_fish_completes(line: str, offered: set[str], scripts: Path) -> None:
    """The same."""
    needs("fish")
    words = ["fish", "--no-config", "-c", "source arco.fish; complete -C $argv[1]", line]
    done = subprocess.run(words, cwd=scripts, capture_output=True, encoding="utf-8")
    assert {each.partition("\t")[0].rstrip("/") for each in done.stdout.splitlines()} == offered, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_scripts_are_well_formed(shell: str, scripts: Path) -> None:
    """To the shell itself."""
    needs(shell)
    assert subprocess.run([shell, "-n", f"arco.{shell}"], cwd=scripts, capture_output=True).stderr == b""


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_knows_every_command_and_recipe(shell: str, arco: Arco) -> None:
    """And says nothing else."""
    done = arco("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert all(name in done.out for name in (*COMMANDS, *zoo_names(), "help"))


def test_no_other_command_loads_shtab() -> None:
    """It costs nothing to start."""
    code = "import sys; from composer.cli import main; main(['check', 'gpt2']); main(['train', '-h'])"
    done = subprocess.run([sys.executable, "-c", f"{code}; sys.exit('shtab' in sys.modules)"], cwd=ROOT, capture_output=True)
    assert done.returncode == 0
