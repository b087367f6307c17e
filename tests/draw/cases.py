"""What the checks of drawings run over: the zoo, architectures of well-known forms, generated recipes, and such as are wired at
random."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import composer
from composer.draw.build.levels import LEVELS, Level
from composer.draw.figure import draw
from composer.draw.scene import Scene
from composer.graph.typed import TypedProgram
from composer.recipe import zoo_names
from tests.conformance.generator import COUNT, generated
from tests.draw.wired import mixed, ring

FORMS = sorted((Path(__file__).parent / "forms").glob("*.yaml"))
"""An encoder beside a decoder, blocks side by side, two towers, a U, a mixture whose passes differ."""
CHUNKS = 10
WIRED = 12
"""Recipes of each way to wire at random."""
CASES = [
    *(f"zoo {name}" for name in zoo_names()),
    *(f"form {path.stem}" for path in FORMS),
    *(f"chunk {n}" for n in range(CHUNKS)),
    "wired ring",
    "wired mixed",
]
LEVEL_CASES = [(case, level) for case in CASES for level in LEVELS]


def sources(case: str) -> tuple[tuple[str, str | Path], ...]:
    """The recipes of a case, each with its name."""
    kind, _, name = case.partition(" ")
    match kind:
        case "zoo":
            return ((name, name),)
        case "form":
            return ((name, next(path for path in FORMS if path.stem == name)),)
        case "wired":
            write = ring if name == "ring" else mixed
            return tuple((f"{name} {seed}", write(seed)) for seed in range(WIRED))
    return tuple((f"generated {seed}", generated(seed)) for seed in range(int(name), COUNT, CHUNKS))


@cache
def programs(case: str) -> tuple[tuple[str, TypedProgram], ...]:
    """The typed recipes of a case, each with its name."""
    return tuple((name, composer.load(source).program) for name, source in sources(case))


@cache
def scenes(case: str, level: Level) -> tuple[tuple[str, TypedProgram, Scene], ...]:
    """The drawings of a case."""
    return tuple((name, typed, draw(typed, level).scene) for name, typed in programs(case))
