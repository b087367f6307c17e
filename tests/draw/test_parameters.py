"""The numbers of parameters on a drawing are those of the module that is built."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import TypeAlias

import pytest

import composer
from composer.cost.units import short
from composer.draw.build.levels import Level
from composer.draw.scene import Box, Frame, MergeCircle, Scene
from composer.graph.passes.roll_layers import roll_layers as layers
from tests.draw.cases import each_case, each_level, scenes, sources

STARTS = re.compile(r"\(Parameter — [^()]*— (\d+) parameters")
"""How many parameters a recurrence starts with, in the description of what reads these."""

Thing: TypeAlias = Box | MergeCircle | Frame


@cache
def modules(case: str) -> tuple[dict[str, int], ...]:
    """Return the numbers of parameters of each model of a case, tied ones once, by the names that they have where layers are
    folded; built without memory.
    """
    recipes = [composer.load(source) for _, source in sources(case)]
    found = []
    for recipe in recipes:
        name_in = layers.folded(recipe.program).names.called
        counts = {path: tensor.numel() for path, tensor in recipe.compile("meta").named_parameters()}
        mixtures = {path.partition(".expert.")[0] for path in counts if ".expert." in path}
        found.append({name_in(routed(path, mixtures)): count for path, count in counts.items()})
    return tuple(found)


def routed(name: str, mixtures: Collection[str]) -> str:
    """Return a name, with `router` in that of a map of a mixture of experts by which it chooses."""
    maps = "gate", "noise", "group_gate", "group_noise"
    mixture = next((path for path in mixtures if name.startswith(tuple(f"{path}.{each}." for each in maps))), None)
    return f"{mixture}.router{name.removeprefix(mixture)}" if mixture else name


def folded(name: str) -> str:
    """Return a name without the passes of repeats."""
    return re.sub(r"\.\d+(?=\.)", "", name)


def drawn_name(name: str, things: dict[str, list[Thing]]) -> str:
    """Return a name without the passes of repeats, but for that of the outermost one, where each of its passes is a box."""
    first = re.match(r"\w+\.\d+(?=\.)", name)
    alone = first is not None and first[0] in things
    return f"{first[0]}{folded(name[first.end() :])}" if first is not None and alone else folded(name)


def by_path(scene: Scene) -> dict[str, list[Thing]]:
    """Return what is on the page, by all the paths that it stands for."""
    found: dict[str, list[Thing]] = {}
    for thing in (*scene.frames, *scene.merges, *scene.boxes):
        for path in (thing.about.path, *thing.about.covers):
            found.setdefault(path, []).append(thing)
    return found


def holder(name: str, things: dict[str, list[Thing]]) -> str:
    """Return the path of the innermost thing that a parameter stands in."""
    found = ""
    for path in above(name):
        if path in things:
            found = things[path][0].about.path
            if any(isinstance(thing, Box) for thing in things[path]):
                break  # beside which other passes may have pieces of the same names
    assert found, f"{name} is nowhere"
    return found


def above(name: str) -> list[str]:
    """Return every path that leads to a name, and itself."""
    steps = name.split(".")
    return [".".join(steps[: end + 1]) for end in range(len(steps))]


@each_level
@each_case
def test_every_thing_has_the_parameters_of_its_modules(case: str, level: Level) -> None:
    """Over all passes of repeats, tied ones where their owner stands."""
    for (name, _, scene), module in zip(scenes(case, level), modules(case), strict=True):
        things = by_path(scene)
        told: Counter[str] = Counter()
        for thing in (*scene.frames, *scene.merges, *scene.boxes):
            told[holder(thing.about.path, things) if thing.about.path else ""] += thing.about.parameters
        wanted: Counter[str] = Counter()
        for parameter, count in module.items():
            wanted[holder(drawn_name(parameter, things), things)] += count
        assert +told == +wanted, name


def place(parameter: str, path: str) -> str:
    """Return the passes of the repeats around a thing in which a parameter of it stands."""
    steps, passes = path.split("."), []
    for step in parameter.split("."):
        if not steps:
            break
        if step == steps[0]:
            steps.pop(0)
        elif step.isdigit():
            passes.append(step)
        else:
            break  # what the thing only covers
    return ".".join(passes)


@each_level
@each_case
def test_the_number_in_a_box_is_that_of_one_of_it(case: str, level: Level) -> None:
    """In one pass of the repeats around it, where it says a number; of a mixture's expert, of all experts together."""
    for (name, _, scene), module in zip(scenes(case, level), modules(case), strict=True):
        things = by_path(scene)
        passes: dict[str, Counter[str]] = {}
        for parameter, count in module.items():
            path = holder(drawn_name(parameter, things), things)
            layer = re.search(r"_l\d+$|_l\d+_reverse$", parameter) if path.endswith(".maps") else None  # as torch names them
            passes.setdefault(path, Counter())[place(parameter, path) + (layer[0] if layer else "")] += count
        for box in scene.boxes:
            said = [
                text.text.removesuffix(" frozen").removesuffix(", some").removesuffix(" shared")
                for text in box.texts
                if text.role == "params" and text.text != "tied"
            ]
            if said and len(things[box.about.path]) == 1 and box.about.path in passes:
                begun = sum(map(int, STARTS.findall(box.about.description)))  # told where it comes in, once for all that read it
                counts = {count - less for count in passes[box.about.path].values() for less in (0, begun)}
                assert said[0] in {short(count).replace(" k", " K") for count in counts}, (
                    name,
                    box.about,
                )


@each_case
def test_the_title_says_how_many_there_are(case: str) -> None:
    """In total."""
    for (name, _, scene), module in zip(scenes(case, "block"), modules(case), strict=True):
        said = " ".join(text.text for text in scene.texts if text.role == "facts")
        total = sum(module.values())
        assert (f"{short(total).replace(' k', ' K')} parameters" in said) == (total > 0), name


@pytest.mark.parametrize(("name", "experts", "visited"), [("mixtral", 8, 2), ("switch", 8, 1), ("form moe", 64, 6)])
def test_the_title_says_how_many_a_token_meets(name: str, experts: int, visited: int) -> None:
    """All but those of experts that it does not visit."""
    case = name if " " in name else f"zoo {name}"
    ((_, _, scene),), (module,) = scenes(case, "block"), modules(case)
    of_experts = sum(count for parameter, count in module.items() if ".expert." in parameter)
    said = " ".join(text.text for text in scene.texts if text.role == "facts")
    active = sum(module.values()) - of_experts * (experts - visited) // experts
    assert f"{short(active).replace(' k', ' K')} active" in said
