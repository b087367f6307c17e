"""What the checks of drawings run over: representatives of the zoo, architectures of well-known forms, recipes that were once
drawn wrong, generated ones, and such as are wired at random."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

import composer
from composer.draw.build.levels import LEVELS, Level
from composer.draw.figure import draw
from composer.draw.scene import Scene
from composer.graph.typed import TypedProgram
from tests.conformance.generator import COUNT, FIRST, generated
from tests.draw.wired import mixed, ring
from tests.zoo import NAMED, REST, UNNAMED

FORMS = sorted((Path(__file__).parent / "forms").glob("*.yaml"))
"""An encoder beside a decoder, blocks side by side, two towers, a U, a mixture whose passes differ."""
FINDS = sorted((Path(__file__).parent / "finds").glob("*.yaml"))
"""Recipes in whose drawings one thing lay on another or was missing, each as small as it gets."""
PAPERS = sorted((Path(__file__).parent / "papers").glob("*.yaml"))
"""Models of papers that the zoo lacks, each with its graph as people write it who know nothing of how it is drawn."""
CHUNKS = 5
WIRED = 12
"""Recipes of each way to wire at random."""
CASES = [
    *(f"zoo {name}" for name in NAMED),
    *(f"form {path.stem}" for path in FORMS),
    *(f"find {path.stem}" for path in FINDS),
    *(f"chunk {n}" for n in range(CHUNKS)),
    "wired ring",
    "wired mixed",
]
FEW = {"zoo gpt2", "zoo gemma3", "zoo t5", "form unet", "form clip"}
"""Cases that are no slow tests: a chain of layers, layers that differ, an encoder with its decoder, skips, two towers."""
REST_CASES = [f"zoo {name}" for name in (*UNNAMED, *REST)]
PAPER_CASES = [f"paper {path.stem}" for path in PAPERS]
MORE = COUNT // 2
"""Recipes that are generated beyond the first ones, and twice the recipes that are wired, for the exhaustive tests."""
MORE_CASES = [*(f"more {n}" for n in range(3 * CHUNKS)), "wired more rings", "wired more mixed", *REST_CASES, *PAPER_CASES]


def each_of(cases: Sequence[str], more: Sequence[str] = ()) -> pytest.MarkDecorator:
    """Return a test for each of some cases, most of them slow; and for some `more` where tests are exhaustive."""
    known = [case if case in FEW else pytest.param(case, marks=pytest.mark.slow) for case in cases]
    return pytest.mark.parametrize("case", [*known, *(pytest.param(case, marks=pytest.mark.exhaustive) for case in more)])


each_case = each_of(CASES, MORE_CASES)
each_level = pytest.mark.parametrize("level", LEVELS)


def sources(case: str) -> tuple[tuple[str, str | Path], ...]:
    """Return the recipes of a case, each with its name."""
    kind, _, name = case.partition(" ")
    match kind:
        case "zoo":
            return ((name, name),)
        case "form" | "find" | "paper":
            return ((name, Path(__file__).parent / f"{kind}s" / f"{name}.yaml"),)
        case "wired":
            write = ring if "ring" in name else mixed
            seeds = range(WIRED, 3 * WIRED) if name.startswith("more") else range(WIRED)
            return tuple((f"{name} {seed}", write(seed)) for seed in seeds)
        case "more":
            return tuple((f"generated {seed}", generated(seed)) for seed in range(FIRST + int(name), COUNT + MORE, 3 * CHUNKS))
    return tuple((f"generated {seed}", generated(seed)) for seed in range(int(name), FIRST, CHUNKS))


@cache
def programs(case: str) -> tuple[tuple[str, TypedProgram], ...]:
    """Return the typed recipes of a case, each with its name."""
    return tuple((name, composer.load(source).program) for name, source in sources(case))


@cache
def scenes(case: str, level: Level) -> tuple[tuple[str, TypedProgram, Scene], ...]:
    """Return the drawings of a case."""
    return tuple((name, typed, draw(typed, level).scene) for name, typed in programs(case))
