"""Masks in a stranger's file: a copy of every one that Composer has is one to it, and a predicate alone is enough."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import composer
from blocks.core import NodeRef, Part, standard
from blocks.core.library import parts_in
from blocks.core.look import Cells
from blocks.masks.count import visible
from blocks.masks.mask import Mask
from blocks.masks.operators import And, Not
from composer.decode.session import session
from tests.blocks.copies import NAMES, plain
from tests.blocks.copies import copies as every_copy

KINDS = {kind: part for kind, part in standard().of(Mask).items() if part.__module__.startswith("blocks.")}
RECIPE = """recipe: masks
task: {task}
inputs: {{tokens: "int[batch, time]", flags: "bool[batch, time]{optional}", ids: "int[batch, time]", n: "int[batch]",
  may: "bool[batch, time, time]"}}
graph:
  embed: {{type: embedding, vocab: 24, dim: 16}}
  look: {{type: attention, heads: 2, mask: "{mask}"}}
  head: {{type: linear, out: 24}}
outputs: {{logits: head}}
"""
EXPRESSIONS = (
    *(
        "full",
        "causal",
        "causal and window(3)",
        "local(2)",
        "causal and lookahead(0)",
        "lookahead(2)",
        "global_first(2)",
        "prefix(3)",
    ),
    *("causal and prefix(n)", "causal or prefix(n)", "chunk(3)", "causal and chunk(3)", "chunk(3) and chunk(4)", "strided(3)"),
    *("dilated(2, 3)", "block_window(2, 1)", "random(2, 3, 7)", "causal and valid(flags)", "documents(ids)"),
    *(
        "causal and documents(ids)",
        "global_tokens(flags)",
        "causal and pairs(may)",
        "causal and not documents(ids)",
        "full and causal",
    ),
    *(
        "causal and (local(2) or global_first(1)) and not strided(2)",
        "not (full and chunk(2))",
        "valid(flags) and local(1) or causal",
    ),
)
AHEAD = {
    *("full", "local(2)", "lookahead(2)", "global_first(2)", "chunk(3)", "chunk(3) and chunk(4)", "strided(3)", "dilated(2, 3)"),
    *("block_window(2, 1)", "random(2, 3, 7)", "documents(ids)", "global_tokens(flags)", "not (full and chunk(2))"),
    "valid(flags) and local(1) or causal",
}
"""Those that let a query see later keys, which a model that generates has only under `causal and`."""
FEW = {"causal", "causal and window(3)", "prefix(3)", "chunk(3) and chunk(4)", "valid(flags) and local(1) or causal"}
"""Those that are no slow tests."""
each_expression = pytest.mark.parametrize(
    "expression", [mask if mask in FEW else pytest.param(mask, marks=pytest.mark.slow) for mask in EXPRESSIONS]
)
BARE = {
    "window": "abs(q - k) < self.width",
    "strided": "(q - k) % self.step == 0",
    "global_first": "(q < self.count) | (k < self.count)",
    "global_last": '(q > edges["ends"].query - self.count) | (k > edges["ends"].key - self.count)',
    "valid": "True if edges[self.flags] is None else edges[self.flags].key",
}
"""Masks that say nothing but their predicate."""
SETTINGS = {
    "window": {"width": 5},
    "strided": {"step": 3},
    "global_first": {"count": 2},
    "global_last": {"count": 3},
    "valid": {"flags": NodeRef("f")},
}


def loaded(folder: Path, name: str, text: str) -> ModuleType:
    """Return a module of one's own."""
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[type[Part]]:
    """Every mask under another name, nothing else changed: the copy of `local` equals that of `window`."""
    return [part for part in every_copy(tmp_path_factory.mktemp("own")) if issubclass(part, Mask)]


def owned(text: str) -> str:
    """Return an expression in the copies' names."""
    return re.sub(rf"\b({'|'.join(KINDS)})\b", lambda found: NAMES[found[0]], text)


def recipe_of(mask: str, optional: str = "", task: str = "") -> str:
    """Return a recipe with a mask, whose model generates a text unless the mask looks ahead."""
    return RECIPE.format(mask=mask, optional=optional, task=task or ("token_classification" if mask in AHEAD else "causal_lm"))


def both(expression: str, optional: str, copies: list[type[Part]]) -> list[composer.Recipe]:
    """Return recipes with a mask of the library and with its copy."""
    text = recipe_of(expression, optional)
    return [composer.load(text), composer.load(text.replace(f'"{expression}"', f'"{owned(expression)}"'), blocks=copies)]


@pytest.mark.parametrize("optional", ["", "?"])
@each_expression
def test_a_copy_of_a_mask_is_one_to_everything(expression: str, optional: str, copies: list[type[Part]]) -> None:
    """Its warnings, cost, plan and code, picture and words, logits, and what it remembers while a text is written."""
    built_in, own = both(expression, optional, copies)
    assert [(each.code, each.span.line) for each in own.check()] == [(each.code, each.span.line) for each in built_in.check()]
    lengths = {"time": 300}
    assert own.summary(lengths).to_json()["flops"] == built_in.summary(lengths).to_json()["flops"]
    assert ast.dump(ast.parse(plain(own.export()))) == ast.dump(ast.parse(built_in.export()))  # lines break elsewhere
    (ours,), (theirs,) = ([box for box in recipe.draw().scene.boxes if box.about.path == "look"] for recipe in (own, built_in))
    assert isinstance(ours.icons[0].icon, Cells) and ours.icons[0].icon == theirs.icons[0].icon
    assert len(ours.texts) == len(theirs.texts)
    if expression != "full":  # which goes without saying
        assert plain(ours.about.description) == theirs.about.description
    models = [recipe.compile(seed=3).double() for recipe in (own, built_in)]
    torch.manual_seed(0)
    given = {
        "tokens": torch.randint(24, (2, 9)),
        "flags": torch.rand(2, 9) < 0.7,
        "ids": torch.tensor([[1] * 4 + [2] * 5, [7] * 9]),
        "n": torch.tensor([3, 1]),
        "may": torch.rand(2, 9, 9) < 0.7,
    }
    given = {name: value for name, value in given.items() if name in own.program.inputs}
    mine, right = (model(**given).logits for model in models)
    torch.testing.assert_close(mine, right, rtol=0, atol=0)
    if expression in AHEAD:
        assert "not-causal" in {found.code for found in composer.load(recipe_of(expression, optional, "causal_lm")).check()}
        pair = both(f"causal and ({expression})", optional, copies)
        models = [recipe.compile(seed=3).double() for recipe in pair]
    written = []
    for model in models:
        with session(model):
            cuts = ((0, 4), (4, 5), (5, 9))
            pieces = [
                {name: value if name == "n" else value[:, start:stop] for name, value in given.items()} for start, stop in cuts
            ]
            written.append(torch.cat([model(**piece).logits for piece in pieces], 1))
    torch.testing.assert_close(*written, rtol=0, atol=0)


def test_copies_are_compared_as_the_originals_are(copies: list[type[Part]]) -> None:
    """Two names of one predicate are no change, and another number is one."""

    def same(one: str, other: str) -> bool:
        recipes = (recipe_of(owned(text), task="token_classification") for text in (one, other))
        first, second = (composer.load(text, blocks=copies) for text in recipes)
        return first.diff(second).equal

    assert same("causal and local(2)", "window(3) and causal")
    assert same("lookahead(0)", "full and causal")
    assert same("not (causal and chunk(3))", "not chunk(3) or not causal")
    assert not same("causal and local(2)", "causal and local(3)")


def test_copies_are_warned_of_as_the_originals_are(copies: list[type[Part]]) -> None:
    """A window that cuts nothing off."""
    text = RECIPE.replace("task: {task}", "params: {{context: 8}}")
    found = [
        [(each.code, each.span.line) for each in composer.load(text.format(mask=mask, optional=""), blocks=copies).check()]
        for mask in ("causal and window(8)", owned("causal and window(8)"))
    ]
    assert found[0] == found[1] and {"idle-window"} <= {code for code, _ in found[0]}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, type[Mask]]:
    """Masks that declare their fields and a predicate."""
    lines = ["from typing import Any", "from blocks.core import NodeRef, PositiveInt", "from blocks.masks.mask import Mask"]
    for kind, predicate in BARE.items():
        (field,) = SETTINGS[kind]
        lines += [f'class Bare_{kind}(Mask, kind="bare_{kind}"):', '    """As one would write it first."""']
        lines += [f"    {field}: {'NodeRef' if kind == 'valid' else 'PositiveInt'}"]
        lines += ['    node_refs = {"flags": "bool[batch, key]"}'] * (kind == "valid")
        lines += ["    needs_ends = True"] * (kind == "global_last")
        lines += ["    def allows(self, q: Any, k: Any, **edges: Any) -> Any:", f"        return {predicate}"]
    module = loaded(tmp_path_factory.mktemp("bare"), "bare_masks", "\n".join(lines) + "\n")
    return {part.kind.removeprefix("bare_"): part for part in parts_in(module)}  # type: ignore[misc]  # each is a mask


@pytest.mark.parametrize("kind", BARE)
def test_a_predicate_alone_is_counted(kind: str, bare: dict[str, type[Mask]]) -> None:
    """Pair by pair where there are up to a million, alone and under operators; what data decides counts as seen."""
    mine, right = bare[kind](**SETTINGS[kind]), KINDS[kind](**SETTINGS[kind])
    causal = KINDS["causal"]()
    for queries, keys in ((1, 1), (13, 9), (5, 40), (300, 300)):
        for wrap in (lambda mask: mask, lambda mask: And(left=causal, right=mask), lambda mask: Not(mask=mask)):
            assert visible(wrap(mine), queries, keys) == visible(wrap(right), queries, keys)


@pytest.mark.parametrize("kind", ["window", "strided", "global_first"])
def test_a_predicate_alone_is_estimated_for_a_long_text(kind: str, bare: dict[str, type[Mask]]) -> None:
    """At a hundred queries, and only where what else must hold lets a key be seen."""
    causal = KINDS["causal"]()
    settings = {"count": 400} if kind == "global_first" else SETTINGS[kind]
    mine, right = (And(left=causal, right=part(**settings)) for part in (bare[kind], KINDS[kind]))
    assert visible(mine, 3000, 3000) == pytest.approx(visible(right, 3000, 3000), rel=0.03)


def test_a_predicate_alone_is_drawn_small(bare: dict[str, type[Mask]]) -> None:
    """Numbers at most half the picture, and an edge with an example of its type."""
    text = recipe_of("bare_window(900) and bare_valid(flags)", task="token_classification")
    recipe = composer.load(text, blocks=list(bare.values()))
    (icon,) = (box.icons[0].icon for box in recipe.draw().scene.boxes if box.about.path == "look")
    assert isinstance(icon, Cells)
    assert icon.seen == tuple(tuple(abs(q - k) < 4 and k < 6 for k in range(8)) for q in range(8))


def test_no_other_file_names_a_mask() -> None:
    """Beside the files of masks only the default of attention, and what a plan does where nothing is read."""
    root = Path(composer.__file__).parents[1]
    names = re.compile(rf"\b({'|'.join(sorted(part.__name__ for part in KINDS.values()))})\b")
    importing = re.compile(r"from blocks\.masks\.(?:block_masks|data_masks|position_masks|random_mask) import (.*)")
    found = {
        (file.relative_to(root).as_posix(), name)
        for package in ("blocks", "composer")
        for file in (root / package).rglob("*.py")
        for line in importing.findall(file.read_text(encoding="utf-8"))
        for name in names.findall(line)
    }
    assert {name for _, name in found} == {"Full"}
    assert not [path for path, _ in found if path.startswith("composer/")]
