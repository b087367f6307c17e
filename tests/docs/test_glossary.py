"""docs/glossary.md has every term of the product and of the code once, and words that were given up stay away."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import composer
from blocks.core import Part
from composer.cli import COMMANDS
from composer.language.recipe.ast import ParamType
from composer.language.recipe.keys import TABLE
from composer.language.tasks import TASKS
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "glossary.md"
CODE = [file for package in ("blocks", "composer") for file in sorted((ROOT / package).rglob("*.py"))]
CELLS = re.compile(r"(?<!\\)\|")


def sections() -> dict[str, list[list[str]]]:
    """Return the rows of each table, cell by cell, by the heading above it."""
    found: dict[str, list[list[str]]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, *lines = part.splitlines()
        rows = [[cell.strip() for cell in CELLS.split(line)[1:-1]] for line in lines if line.startswith("|")]
        assert rows[0] == ["term", "meaning", "also known as, in other tools"]
        found[title] = rows[2:]
    return found


def terms(cell: str) -> list[str]:
    """Return the terms that one row defines: ``mask area (`MaskArea`)`` is two, and ``a, b`` is too."""
    return [term.replace("`", "").strip() for term in re.split(r", | \((?=`)", cell.removesuffix("`)"))]


TERMS = [term for rows in sections().values() for row in rows for term in terms(row[0])]


def test_no_term_is_defined_twice() -> None:
    """Nor is one without a meaning."""
    assert [term for term, count in Counter(TERMS).items() if count > 1] == []
    assert [row for rows in sections().values() for row in rows if len(row) != 3 or not all(row)] == []


@pytest.mark.parametrize("section", sections())
def test_terms_are_in_the_order_of_the_alphabet(section: str) -> None:
    """Whatever is set in code letters."""
    first = [row[0].replace("`", "") for row in sections()[section]]
    assert first == sorted(first, key=lambda term: (term.lower(), term))


def language_keys() -> set[str]:
    """Return the keys of recipes, wherever they stand."""
    return {key.name for key in TABLE}


def declarations() -> set[str]:
    """Return what the class of a block may declare."""
    return {name for name in vars(Part) if not name.startswith(("_", "model_"))}


def public_names() -> set[str]:
    """Return the names of the API; what two packages offer goes by the shorter path, and `packages` has the packages."""
    below = [package for package in (getattr(composer, name) for name in composer.__all__) if isinstance(package, ModuleType)]
    top = {id(getattr(composer, name)) for name in composer.__all__}
    found = {f"composer.{name}" for name in composer.__all__} - {package.__name__ for package in below}
    for package in below:
        short = package.__name__.removeprefix("composer.")
        found |= {f"{short}.{name}" for name in package.__all__ if id(getattr(package, name)) not in top}
    return found


def members() -> set[str]:
    """Return the public fields, properties and methods of a recipe, as rows name them."""
    names = {field.name for field in fields(composer.Recipe)} | {name for name in vars(composer.Recipe) if name[0] != "_"}
    known = {term.removeprefix("Recipe.").partition("(")[0]: term for term in TERMS}
    return {known.get(name, f"Recipe.{name}") for name in names}


def packages() -> set[str]:
    """Return the folders right below `blocks` and `composer`."""
    folders = [folder for package in ("blocks", "composer") for folder in (ROOT / package).iterdir() if folder.is_dir()]
    return {f"{folder.relative_to(ROOT).as_posix()}/" for folder in folders if any(folder.glob("*.py")) or folder.name == "data"}


WANTED = {
    "keys of recipes": language_keys(),
    "declarations of blocks": declarations(),
    "commands": {f"arco {name}" for name in COMMANDS},
    "public names": public_names(),
    "members of a recipe": members(),
    "param types": {*get_args(ParamType)},
    "tasks": {*TASKS},
    "packages": packages(),
}


@pytest.mark.parametrize("kind", WANTED)
def test_everything_with_a_name_is_a_term(kind: str) -> None:
    """The lists are those of the code."""
    assert len(WANTED[kind]) > 5
    assert sorted(WANTED[kind] - {*TERMS}) == []


def test_the_glossary_is_found() -> None:
    """From the front page, the site and the page about the inside."""
    for page in ("README.md", "mkdocs.yml", "docs/architecture.md"):
        assert "glossary.md" in (ROOT / page).read_text(encoding="utf-8"), page


# -- words that were given up

RETIRED = {
    "Beside": "SideInput",
    "ByNumber": "ElementwiseLoss",
    "Chosen": "GlobalTokens",
    "DrawnNode": "FlowBuilder",
    "EdgeName": "NodeName",
    "FeedForwards": "GroupedFeedForward",
    "Flag": "Boolean",
    "FlagsBy": "BooleanMap",
    "Form": "FieldForm",
    "GatedFeedForwards": "GroupedGatedFeedForward",
    "Given": "Pairs",
    "Named": "NamedInput",
    "Near": "Local",
    "OrEdge": "NumberOrNodeRef",
    "Own": "Builtin",
    "Positive": "PositiveFloat",
    "Prepared": "PerCall",
    "Reject": "BlockError",
    "Scalar": "ScalarLoss",
    "Shown": "LayoutOptions",
    "Size": "PositiveInt",
    "Small": "SideBox",
    "Wired": "WiredInput",
    "Word": "OneOf",
    "abreast": "parallel_columns",
    "as_flag": "as_bool",
    "asides": "side_inputs",
    "besides": "side_inputs",
    "carries": "carry",
    "chip": "reference",
    "chip_of": "reference_of",
    "chips": "references",
    "configured": "with_config",
    "crop": "truncate",
    "foretell": "predict",
    "keeps": "cache_slots",
    "leave_at": "draw_outgoing",
    "leaving": "outgoing_edges",
    "leaving_across": "crossed_paths",
    "legible": "fit_to_paper",
    "linear_each": "grouped_linear",
    "measures": "shape_only_inputs",
    "memory_at": "memory_position_ids",
    "memory_turn": "memory_rope",
    "mixes": "mixed_axes",
    "mixes_rows": "batch_dependent",
    "purpose": "task_signature",
    "recall": "cached",
    "reject": "check",
    "reject_leading_axes": "check_leading_axes",
    "reject_too_many": "check_top_k",
    "reject_uneven_heads": "check_head_counts",
    "slender": "fits_box_width",
    "standing": "side_inputs",
    "trouble": "errors",
    "unbound": "axis_defaults",
    "visiting": "token_choice",
    "weave": "irregular",
    "web": "irregular",
}
"""Names as they were, with what they are called now: nothing has one of them, anywhere."""
MEMBERS = {
    "blocks": {
        "at": "position_ids",
        "chosen": "global_tokens",
        "counts": "position_inputs",
        "edges": "node_refs",
        "known": "constants",
        "many": "grouped",
        "means": "mean_outputs",
        "prepared": "per_call",
        "source": "paper",
        "turn": "rotate",
        "types": "output_types",
        "wanted": "requested_outputs",
    },
    "composer/decode": {"beams": "num_beams", "beside": "encoder_inputs", "capacity": "initial_length"},
    "composer/recipe.py": {"typed": "program"},
    "composer/train/settings.py": {
        "accumulation": "grad_accum",
        "batch": "batch_size",
        "clip": "max_grad_norm",
        "context": "seq_len",
        "floor": "min_lr_ratio",
        "warmup": "warmup_steps",
    },
}
"""Ordinary words that a declaration, a field or a method of a class there was called by, and is no more."""
ORDINARY = {
    "blocks/core/look.py: edges": "what is wired to the ports of a block that is drawn",
}
"""Where one of these has its ordinary meaning, and which."""


def members(file: Path) -> Iterator[str]:
    """Yield the names that the bodies of a file's classes define."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        for item in node.body if isinstance(node, ast.ClassDef) else ():
            match item:
                case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    yield name
                case ast.Assign(targets=targets):
                    yield from (target.id for target in targets if isinstance(target, ast.Name))


def identifiers(file: Path) -> Iterator[str]:
    """Yield the names that a file defines or reads, attributes and arguments included, and that of the file."""
    yield file.stem
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")


def given_up() -> Iterator[tuple[str, str]]:
    """Yield each place of a retired word, with the word that stands for it now."""
    for file in CODE:
        place = file.relative_to(ROOT).as_posix()
        gone = [new for folder, new in MEMBERS.items() if place.startswith(folder)]
        yield from ((f"{place}: {name}", RETIRED[name]) for name in identifiers(file) if name in RETIRED)
        yield from ((f"{place}: {name}", new[name]) for new in gone for name in members(file) if name in new)


def test_words_that_were_given_up_do_not_come_back() -> None:
    """As names of the code; an ordinary word needs a reason, and a reason a word."""
    found = dict(given_up())
    assert {place: new for place, new in found.items() if place not in ORDINARY} == {}
    assert sorted(ORDINARY.keys() - found.keys()) == []


def test_no_retired_word_is_a_term() -> None:
    """In this glossary."""
    assert sorted({*RETIRED} & {*TERMS}) == []


# -- American spelling

BRITISH = re.compile(
    r"""\w*(?:
        (?:token|optim|initial|normal|summar|recogn|random|material|minim|maxim|quant|general|serial|parallel|vector|organ|real
          |character|regular|factor|special|visual|local|categor|emphas|standard|synchron|util)is(?:e[ds]?|ing|ation|er)\b
        |colour|neighbour|behaviour|favour|honour|labour\b|flavour|rumour
        |\bcentre[ds]?\b|\bmetres?\b|\bfibres?\b|\btheatre
        |\blicence|\bdefence\b|\boffence\b|\bgrey|labelled|labelling|modelled|modelling|travelled|cancelled|signalled|levelled
        |catalogue|\bdialogue|artefact|judgement|analyse[ds]?\b|\blearnt\b|\bspelt\b|misspelt|\bspoilt\b|\btowards\b|\bafterwards\b
        |programmes?\b|\bwhilst\b|\bamongst\b
    )\w*""",
    re.IGNORECASE | re.VERBOSE,
)
QUOTED: frozenset[str] = frozenset()
"""Words that stand in titles of papers as these are written."""
SPELLED = [
    *CODE,
    ROOT / "README.md",
    *(file for file in sorted((ROOT / "docs").rglob("*.md")) if file.name != "models-on-plays.md"),
    *sorted((ROOT / "recipes").rglob("*.yaml")),
]


@pytest.mark.parametrize(
    "word", ["tokeniser", "Optimised", "initialisation", "colours", "centred", "grey", "labelled", "analyse"]
)
def test_british_spellings_are_seen(word: str) -> None:
    """By the pattern."""
    assert is_british(word)


def test_the_spelling_is_american() -> None:
    """In code, pages and recipes, as torch has it; the page that quotes what models write is theirs."""
    found = [
        f"{file.relative_to(ROOT).as_posix()}:{number}: {word}"
        for file in SPELLED
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for word in re.findall(r"\w+", line)
        if is_british(word)
    ]
    assert found == []


@cache
def is_british(word: str) -> bool:
    """Return whether a word is spelled as in Britain; the texts have a million words, and few that differ."""
    return BRITISH.search(word) is not None and word.lower() not in QUOTED
