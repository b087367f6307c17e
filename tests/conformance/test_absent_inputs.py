"""Optional ports that an input of the model may leave empty: a model runs without it as if nothing were wired, or is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import composer
from blocks.core import ports, standard
from composer.language.recipe.writer import YamlValue, data_of, write
from composer.language.yaml.nodes import YamlMapping
from tests.conformance.declared import alone, blocks
from tests.conformance.inputs import DRAWS, draw

OPTIONAL = [
    (kind, port) for kind, part in sorted(blocks(standard()).items()) for port, mark in ports(part).items() if mark == "?"
]
SEEDS = 24
ENOUGH = 4
"""Recipes that are looked at for each port, where tests are exhaustive."""


def recipes(kind: str, port: str) -> Iterator[tuple[composer.Recipe, composer.Recipe]]:
    """Yield recipes of the block in which the port reads an input that may be absent, each with the same without the wire."""
    for seed in range(SEEDS):
        root = composer.load(alone(blocks(standard())[kind], standard(), seed)).document.root
        assert root is not None
        data = plain(root)
        node = data["graph"]["block"]  # type: ignore[index, call-overload]  # of a form that `alone` writes
        if port in (node.get("in") or {}):
            data["inputs"][port] += "?"  # type: ignore[index, call-overload]
            wired = composer.load(write(data))
            del node["in"][port]
            yield wired, composer.load(write(data))


def plain(root: YamlMapping) -> dict[str, YamlValue]:
    """Return the recipe as data."""
    data = data_of(root)
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize(
    ("kind", "port", "enough"),
    [
        pytest.param(*each, enough, id=f"{'.'.join(each)}-{enough}", marks=() if few else pytest.mark.exhaustive)
        for index, each in enumerate(OPTIONAL)
        for enough, few in ((1, index % 3 == 0), (ENOUGH, False))
    ],
)
def test_an_absent_input_is_an_empty_port(kind: str, port: str, enough: int) -> None:
    """Where shapes or weights depend on the input, `check` says so; a port that is never refused and never runs is not tested."""
    seen = 0
    for wired, bare in recipes(kind, port):
        if any(found.severity == "error" for found in bare.check()):
            continue  # the block needs the port for another
        seen += 1
        errors = [found.code for found in wired.check() if found.severity == "error"]
        if errors:
            assert errors == ["optional-edge"]
            continue
        ours, theirs = (one.compile(seed=0).eval() for one in (wired, bare))
        given = draw(bare.program, DRAWS[0], optional=False)
        for found, expected in zip(ours(**given), theirs(**given), strict=True):
            if isinstance(found, torch.Tensor):
                torch.testing.assert_close(found, expected, rtol=0, atol=0)
        if seen == enough:
            break


def test_positions_of_an_axis_may_be_absent() -> None:
    """Those of the top level are counted too, for every block that reads them, in a repeat as well."""
    text = """
recipe: example
inputs: {x: "float[batch, time, 8]", at: "int[batch, time]?"}
positions: {time: at}
graph:
  a: {type: learned_positions, max_length: 16}
  b: {repeat: 2, graph: {c: {type: attention, heads: 2, mask: causal and window(2), positions: rotary}}}
"""
    model = composer.load(text).compile(seed=0).eval()
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    counted = model(x, at=torch.arange(5).expand(2, 5)).b
    torch.testing.assert_close(model(x).b, counted)
    assert not torch.allclose(model(x, at=torch.arange(5).flip(0).expand(2, 5)).b, counted)
