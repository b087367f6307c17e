"""What the packages may do with text that could be code: the few places that execute some, each with its reason.

Files that users name with `--blocks` are executed, and so is our own generated source; no recipe can name a file to run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import blocks
import composer

MODULES = {
    "pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "code", "codeop", "runpy", "ctypes", "pty",
    "subprocess", "importlib", "webbrowser", "socket", "urllib", "http", "ftplib", "smtplib", "requests", "httpx",
}  # fmt: skip
"""Modules that run what they are given, or that fetch it."""
CALLS = re.compile(
    r"(builtins\.)?(eval|exec|__import__)|os\.(system|popen|exec|spawn).*|(torch\.)?hub\.load.*|yaml\..*load.*|torch\.load|.*jit\.load"
)
"""Functions that run text, or start a program, or unpickle."""
ALLOWED = {
    "composer/lower/generated.py": {"exec"},  # our own source
    "composer/verify/subject.py": {"exec"},  # our own source, as a file of its own
    "composer/own_blocks.py": {"importlib"},  # `--blocks`
    "blocks/core/library.py": {"importlib"},  # our own modules, and installed packages with an entry point
    "blocks/core/lazy.py": {"importlib"},  # torch
    "composer/__main__.py": {"importlib"},  # where our packages are
    "composer/lazy_names.py": {"importlib"},  # our own modules
    "composer/block_reference.py": {"importlib"},
    "composer/cli/__init__.py": {"importlib"},
    "composer/evaluate/translations.py": {"importlib"},  # whether sacrebleu is installed
    "composer/train/data/arrow_tables.py": {"importlib"},  # whether pyarrow is installed
    "composer/draw/export/formats.py": {"importlib"},  # whether a package of ours is installed
    "composer/published/exported_onnx.py": {"importlib"},  # whether the packages of ONNX are installed
    "composer/published/loaded_class.py": {"importlib"},  # whether transformers and accelerate are installed
    "composer/version.py": {"importlib"},  # metadata
    "composer/cli/revision.py": {"subprocess"},  # Git, for objects alone
    "composer/draw/graphviz_programs.py": {"subprocess"},  # Graphviz, which reads a figure
}
"""What each file may use of them."""


def used(tree: ast.AST) -> Iterator[str]:
    """Yield what runs or fetches something in a file: functions that are called, and modules that are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {each.arg: ast.unparse(each.value) for each in node.keywords}
            if CALLS.fullmatch(name) and given.get("weights_only") != "True":
                yield name
            if given.get("allow_pickle", "False") != "False":
                yield "allow_pickle"
            if given.get("shell", "False") != "False" and name.rpartition(".")[2] in {"run", "Popen", "call", "check_output"}:
                yield "shell"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (head for each in names if (head := each.partition(".")[0]) in MODULES)


@pytest.mark.parametrize(
    "text",
    [
        *("eval('1')", "exec(x)", "builtins.exec(x)", "os.system(x)", "os.execvp(x)", "__import__(x)"),
        *("import pickle", "from pickle import load", "import subprocess", "from urllib.request import urlopen"),
        *("torch.load(x)", "torch.load(x, weights_only=False)", "numpy.load(x, allow_pickle=True)", "yaml.unsafe_load(x)"),
        "run(x, shell=True)",
    ],
)
def test_what_runs_something_is_found(text: str) -> None:
    """Each way, so that the next test can fail."""
    assert len([*used(ast.parse(text))]) == 1
    assert [*used(ast.parse("torch.load(x, weights_only=True); model.compile(); numpy.load(x, allow_pickle=False)"))] == []


def test_no_other_file_runs_or_fetches_anything() -> None:
    """A new place is added here, with its reason, or not at all."""
    found: dict[str, set[str]] = {}
    for package in (blocks, composer):
        root = Path(package.__file__ or "").parent
        for file in root.rglob("*.py"):
            names = {*used(_parsed(file))}
            if names:
                found[file.relative_to(root.parent).as_posix()] = names
    assert {name: names - ALLOWED.get(name, set()) for name, names in found.items() if names - ALLOWED.get(name, set())} == {}
    assert {name for name in ALLOWED if name not in found} == set(), "no longer needed"


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


EVIL = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"
NAMES = ["evil.py", "./evil.py", "evil", "python:evil", "evil.py:Block", "file:evil.py", "!!python/module:evil"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "line",
    [
        *("extends: {name}", "uses: {name}", "uses: [{name}]", "blocks: {name}", "blocks: {{evil: {name}}}", "imports: {name}"),
        *(
            "plugins: {name}",
            "python: {name}",
            "task: {name}",
            "checkpoints: {{gpt2: {{rules: {name}}}}}",
            "params: {{d: {name}}}",
        ),
    ],
)
def test_a_recipe_cannot_name_a_python_file_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, name: str) -> None:
    """In whichever key: what it names is read as a recipe, or is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "evil.py").write_text(EVIL, encoding="utf-8")
    (tmp_path / "blocks.py").write_text(EVIL, encoding="utf-8")
    quoted = f'"{name}"'
    text = f"recipe: r\n{line.format(name=quoted)}\ninputs: {{x: 'float[batch, 8]'}}\n"
    text += f"graph: {{a: {{type: {quoted}, out: {quoted}}}}}\n"
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    found = composer.load(tmp_path / "r.yaml").check()
    assert any(each.severity == "error" for each in found)
    assert not (tmp_path / "ran").exists()


def test_a_file_of_blocks_is_run_only_where_the_user_names_it(tmp_path: Path) -> None:
    """So the test above would see it."""
    (tmp_path / "evil.py").write_text(EVIL, encoding="utf-8")
    with pytest.raises(composer.RecipeError, match="defines no block"):
        composer.load("gpt2", blocks=tmp_path / "evil.py")
    assert (tmp_path / "ran").exists()
