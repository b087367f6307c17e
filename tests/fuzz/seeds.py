"""What is mutated: the zoo, the pages, the cases, the forms of drawings, and generated recipes, all at small sizes; and language
models of the zoo for packed documents.
"""

from __future__ import annotations

from contextlib import chdir
from functools import cache
from random import Random

import composer
from composer.package_data import zoo
from composer.recipe import zoo_names
from composer.verify.shrink import shrunk
from tests.cases.case import FILES, FOLDER, cases
from tests.conformance.cases import TINY
from tests.conformance.generator import COUNT, generated
from tests.docs.pages import PAGES, examples
from tests.draw.cases import FORMS
from tests.fuzz.documents import Document, copied, document, places, put

WEIGHTS = {"zoo": 6, "form": 4, "page": 3, "case": 2, "generated": 6, "packed": 2}
"""How often each kind of seed is drawn; most cases have errors before anything is changed."""


@cache
def names() -> dict[str, list[str]]:
    """Return the names of all seeds by their kinds."""
    return {
        "zoo": [f"zoo {name}" for name in zoo_names()],
        "form": [f"form {path.stem}" for path in FORMS],
        "page": [f"page {number}" for number in range(len(_pages()))],
        "case": [f"case {number}" for number in range(len(_cases()))],
        "generated": [f"generated {number}" for number in range(COUNT)],
        "packed": [
            f"packed {name}" for name in zoo_names() if "task: causal_lm" in (zoo() / f"{name}.yaml").read_text(encoding="utf-8")
        ],
    }


def drawn(random: Random) -> str:
    """Return the name of a seed."""
    (kind,) = random.choices(list(WEIGHTS), list(WEIGHTS.values()))
    return random.choice(names()[kind])


@cache
def seed(name: str) -> Document:
    """Return the recipe of a seed as data, which no one may change; the zoo's first recipe where it is none."""
    kind, _, rest = name.partition(" ")
    match kind:
        case "zoo":
            text = composer.load(rest, TINY.get(rest, {})).text
        case "form":
            text = next(path for path in FORMS if path.stem == rest).read_text(encoding="utf-8")
        case "page":
            text = _pages()[int(rest)]
        case "case":
            text = _cases()[int(rest)]
        case "packed":
            return packed(seed(f"zoo {rest}"))
        case _:
            text = generated(int(rest))
    found = document(_small(text))
    return {key: value for key, value in (found or {}).items() if key not in ("doc", "paper")} or seed("zoo gpt_mini")


def packed(whole: Document) -> Document:
    """Return a recipe with an input that numbers the documents of a row, which every mask keeps apart."""
    changed = copied(whole)
    for path, value in list(places(changed)):
        if path and path[-1] == "mask" and isinstance(value, str):
            put(changed, path, f"({value}) and documents(documents)")
    changed["inputs"] = {**changed.get("inputs", {}), "documents": "int[batch, time]?"}
    return changed


def _small(text: str) -> str:
    """Return the recipe with small sizes, if it is sound and has large ones."""
    with chdir(FOLDER):
        try:
            recipe = composer.load(text)
            if any(found.severity == "error" for found in recipe.check()):
                return text
        except composer.RecipeError:
            return text
        return shrunk(recipe).text


@cache
def _pages() -> tuple[str, ...]:
    found = (example for page in PAGES for example in examples(page))
    return tuple(each.text for each in found if each.language == "yaml" and each.text.startswith("recipe:"))


@cache
def _cases() -> tuple[str, ...]:
    found = (case.text for file in FILES for case in cases(file))
    return tuple(text for text in found if "\nrecipe:" in f"\n{text}" and "\ngraph:" in text)
