"""Docstrings of functions tell what to do: `Return the …`, not `The …` or `Returns the …`."""

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERBS = re.findall(
    r"\w+",
    """
    Add Advance Append Apply Ask Assert Assign Attach Begin Bind Build Call Check Choose Clear Close Collect Combine Compare
    Compile Compute Connect Continue Convert Copy Count Create Cut Declare Decode Describe Diagnose Divide Draw Drop Emit Encode
    End Estimate Evaluate Execute Expand Export Extend Fill Find Flatten Fold Follow Forget Format Generate Give Go Group Guess
    Hand Hold Infer Initialize Insert Join Keep Lay Lead Learn Leave Lend Lengthen Let List Load Locate Lock Look Lower Make Map
    Mark Measure Merge Move Multiply Normalize Note Open Order Pack Pair Parse Paste Pick Place Prepare Print Prune Put Quote
    Raise Read Record Reduce Refuse Register Release Remove Rename Render Replace Report Require Reserve Reset Resolve Restore
    Resume Return Reverse Rewrite Rotate Round Route Run Sample Save Say Scale Seal Search Select Send Separate Set Settle Shift
    Show Skip Sort Split Start Stop Store Stretch Sum Swap Take Tell Tie Tokenize Train Traverse Trim Truncate Turn Type Undo
    Unify Unite Update Use Validate Verify Visit Wait Walk Warn Wire Wrap Write Yield
    """,
)
"""What docstrings begin with. A verb that is missing belongs here."""
NOUNS = frozenset({"property", "cached_property", "lazy", "setter", "overload"})
"""Decorators of what is read like an attribute, which is named by a noun, and of what has no docstring of its own."""


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions and methods that are called by name."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            decorators = {part for decorator in node.decorator_list for part in ast.unparse(decorator).split(".")}
            if not decorators & NOUNS:
                yield node


@pytest.mark.parametrize("package", ["blocks", "composer"])
def test_docstrings_of_functions_begin_with_a_bare_verb(package: str) -> None:
    """As PEP 257 asks, so that all read alike; properties, classes and modules are named by nouns."""
    other = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {text.splitlines()[0]}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for node in functions(ast.parse(file.read_text(encoding="utf-8")))
        if (text := ast.get_docstring(node)) and text.split()[0].rstrip(",:") not in VERBS
    ]
    assert not other, "\n".join(other)


def test_exceptions_that_docstrings_name_exist() -> None:
    """A class under `Raises:` is one of ours, or of Python's."""
    files = [file for package in ("blocks", "composer") for file in sorted((ROOT / package).rglob("*.py"))]
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    ours = {node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    known = {*ours, *dir(builtins), "yaml.YAMLError"}
    named = [
        (f"{file.relative_to(ROOT)}:{node.lineno}", name.strip("` "))
        for file, tree in trees.items()
        for node in functions(tree)
        for section in re.findall(r"^Raises:\n((?: +.*\n?|\n)+)", ast.get_docstring(node) or "", re.M)
        for names in re.findall(r"^    ([\w`, .]+):", section, re.M)
        for name in re.split(r",| and | or ", names)
    ]
    assert len(named) > 50
    assert [(place, name) for place, name in named if name not in known] == []
