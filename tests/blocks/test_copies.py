"""A block is what its class says: a copy of it in a stranger's file is treated as it is by everything."""

from __future__ import annotations

import ast
import importlib
import json
import re
from functools import cache
from pathlib import Path

import pytest
import torch

import composer
from blocks.core import Part, standard
from composer.decode.session import session
from composer.diff.render import render
from composer.draw.build.levels import LEVELS, Level
from composer.graph.unparse.expanded_recipe import unparse
from composer.lower.passes.cache_layout import cache_layout
from composer.recipe import Recipe
from tests.blocks.copies import FAMILIES, KINDS, NAMES, copied, copies, plain, renamed
from tests.conformance.declared import alone, blocks
from tests.conformance.generator import generated

NODES = {kind: part for kind, part in blocks(standard()).items() if kind in KINDS and kind != "dropout"}
"""A dropout alone has no picture."""
SEEDS = range(2)
"""Of each block, recipes with some of its fields, ports and outputs."""
MODELS = range(0, 60, 5)
"""Of whole models that are drawn at random."""
TEXT = """recipe: text
task: causal_lm
params: {context: 16}
inputs:
  tokens: "int[batch, time]"
  flags: "bool[batch, time]?"
  wanted: "float[batch, time, 8]?"
graph:
  embed: {type: embedding, vocab: 1001, dim: 8}
  at: {type: learned_positions, max_length: 24}
  bias: {type: alibi, heads: 2}
  attn:
    type: residual
    in: at
    norm: rmsnorm
    dropout: 0.1
    body:
      type: attention
      heads: 2
      mask: causal and window(16)
      positions: {type: rotary, scaling: {type: llama3}}
      qk_norm: {type: layernorm, affine: false}
      output_gate: sigmoid
  biased: {type: attention, heads: 2, mask: causal and valid(flags), in: {x: attn, bias: bias}}
  dots: {type: scaled_dot_product, heads: 2, mask: causal, in: {q: attn, k: attn, v: biased}}
  experts: {type: moe, experts: 4, expert: {type: gated_ffn, hidden: 8}, router: {type: switch_router, capacity: 3}}
  conv: {type: conv1d, out: 8, kernel_size: 3, causal: true}
  wave: {type: sinusoidal_positions}
  gru: {type: gru, hidden: 8}
  lstm: {type: lstm, hidden: 8}
  level: {type: state, shape: [8], next: moved, update: always}
  moved: {type: multiply, in: [level, level]}
  drop: {type: dropout, p: 0.25, in: lstm}
  sum: {type: add, in: [drop, gru, level]}
  both: {type: concat, in: [sum, wave]}
  head: {type: linear, out: 1001}
outputs: {logits: head}
losses:
  balance: {type: scalar, in: experts.load_balancing, weight: 0.01}
  near: {type: mse, in: lstm, target: wanted}
"""
FREE = """recipe: free
inputs:
  x: "float[batch, time, 8]"
  flags: "bool[batch, time]?"
  ids: "int[batch, time]"
  table: "bool[batch, time, time]"
graph:
  wide:
    type: attention
    heads: 2
    mask: (local(2) or chunk(3) or block_window(2, 1) or dilated(2, 2) or global_first(1) or prefix(2)) and lookahead(3)
  read: {type: attention, heads: 2, mask: valid(flags) and (global_tokens(flags) or documents(ids) or not pairs(table))}
  open:
    type: attention
    heads: 2
    mask: full
    positions: {type: rotary, scaling: {type: yarn, factor: 4, original_max_position_embeddings: 8}}
  part: {type: attention, heads: 2, positions: {type: rotary, scaling: {type: proportional_scaling, partial_rotary_factor: 0.5}}}
  longer:
    type: attention
    heads: 2
    mask: global_last(1)
    positions:
      type: rotary
      max_position_embeddings: 8
      scaling: {type: longrope, short_factor: [1, 2], long_factor: [2, 3], factor: 2, original_max_position_embeddings: 4}
  moving:
    type: attention
    heads: 2
    positions: {type: rotary, max_position_embeddings: 8, scaling: {type: dynamic_scaling, factor: 2}}
  attn:
    type: attention
    heads: 2
    mask: random(2, 3, 7) and not strided(3)
    positions: {type: rotary, scaling: {type: linear_scaling, factor: 3}}
  best: {type: moe, experts: 4, expert: {type: ffn, hidden: 8}, router: {type: top_k_router, top_k: 2}}
  noisy: {type: moe, experts: 4, expert: {type: ffn, hidden: 8}, router: {type: noisy_top_k_router, top_k: 2}}
  grouped: {type: moe, experts: 4, expert: {type: ffn, hidden: 8}, router: {type: hierarchical_router, groups: 2}}
  chosen: {type: moe, experts: 4, expert: {type: ffn, hidden: 8}, router: expert_choice_router, shared: {type: ffn, hidden: 4}}
"""
"""What chance does not take."""


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> list[type[Part]]:
    """The copies."""
    return copies(tmp_path_factory.mktemp("own"))


RECIPES = [*(f"{kind}-{seed}" for kind in NODES for seed in SEEDS), *(f"model-{seed}" for seed in MODELS), "text", "free"]
FEW = {*(f"{kind}-0" for kind in NODES), "model-5"}
"""Those that are no slow tests."""
each_recipe = pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in RECIPES]
)


@cache
def text_of(name: str) -> str:
    """Return a recipe by its name."""
    if name in ("text", "free"):
        return TEXT if name == "text" else FREE
    kind, _, seed = name.rpartition("-")
    return generated(int(seed)) if kind == "model" else alone(NODES[kind], standard(), int(seed))


def test_every_block_has_a_copy(own: list[type[Part]]) -> None:
    """Of another class, which is below no other block."""
    assert sorted(part.kind for part in own) == sorted(NAMES.values())
    assert not NAMES.keys() & set(NAMES.values())
    for part in own:
        assert not [base for base in part.__mro__[1:] if getattr(base, "kind", "")], part


@pytest.mark.slow
def test_every_block_is_in_some_recipe() -> None:
    """A new one wants a line in `FREE`, unless chance takes it."""
    seen: set[str] = set()
    for name in RECIPES:
        renamed(text_of(name), seen)
    assert seen == KINDS.keys()


def loaded(text: str, own: list[type[Part]]) -> tuple[Recipe, Recipe]:
    """Return a recipe of the copies, and the same of the originals."""
    return composer.load(renamed(text, set()), blocks=own), composer.load(renamed(text, None))


@each_recipe
def test_a_copy_is_what_the_block_is(name: str, own: list[type[Part]]) -> None:
    """Its findings, its cost, its pictures at every level, its source, what stays in the cache, and how it is written again."""
    mine, right = loaded(text_of(name), own)
    assert [plain(str(each)) for each in mine.check()] == [str(each) for each in right.check()]
    assert plain(json.dumps(mine.summary().to_json())) == json.dumps(right.summary().to_json())
    for level in LEVELS:
        assert plain(mine.draw(level).svg()) == right.draw(level).svg()
    assert ast.dump(ast.parse(plain(mine.export()))) == ast.dump(ast.parse(right.export()))  # lines break elsewhere
    assert plain(repr(cache_layout(mine.program))) == repr(cache_layout(right.program))
    assert plain(unparse(mine.program)) == unparse(right.program)


@pytest.mark.parametrize("kind", NODES)
def test_a_copy_differs_as_the_block_does(kind: str, own: list[type[Part]]) -> None:
    """From other uses of itself."""
    first, *others = (loaded(text_of(f"{kind}-{seed}"), own) for seed in SEEDS)
    for other in others:
        assert plain(render(first[0].diff(other[0]))) == render(first[1].diff(other[1]))


@pytest.mark.parametrize("level", LEVELS)
def test_an_attention_may_call_its_ports_otherwise(tmp_path: Path, level: Level) -> None:
    """Its picture is that of the built-in one, also from outside of a box that holds it."""
    text = """recipe: r
inputs: {tokens: "int[batch, time]", ids: "int[batch, source]"}
graph:
  states: {type: embedding, vocab: 9, dim: 8, in: ids}
  embed: {type: embedding, vocab: 9, dim: 8, in: tokens}
  last: {type: select, axis: time, index: -1, in: embed}
  look: {type: additive_attention, hidden: 4, in: {query: last, memory: states}}
  layer: {in: look, graph: {again: {type: additive_attention, hidden: 4, in: {query: input, memory: states}}}}
outputs: {y: layer}
"""
    own = tmp_path / "own.py"
    copy = copied(importlib.import_module("blocks.attention.additive"))
    own.write_text(re.sub(r"\bmemory\b", "memoyr", copy), encoding="utf-8")
    mine = text.replace("additive_attention", NAMES["additive_attention"]).replace("memory:", "memoyr:")
    picture = plain(composer.load(mine, blocks=[own]).draw(level).svg())
    assert picture.replace("memoyr", "memory") == composer.load(text).draw(level).svg()


def test_copies_compute_and_cache_as_the_blocks_do(own: list[type[Part]]) -> None:
    """A text in one call and in pieces, and what is learned from it in two halves of a batch."""
    tokens = torch.randint(1001, (4, 9), generator=torch.Generator().manual_seed(0))
    logits, pieces, learned = [], [], []
    for recipe in loaded(TEXT, own):
        model = recipe.compile(seed=0).double().eval()
        logits.append(model(tokens).logits)
        with session(model):
            pieces.append(torch.cat([model(piece).logits for piece in tokens.split([4, 1, 4], dim=1)], 1))
        whole = {"tokens": tokens, "wanted": torch.zeros(4, 9, 8, dtype=torch.float64)}
        learned.append({name: value.item() for name, value in composer.loss(model, whole).by_name.items()})
    for mine, right in (logits, pieces, learned):
        torch.testing.assert_close(mine, right, rtol=0, atol=0)
    torch.testing.assert_close(logits[0], pieces[0])


EXCEPTIONS = {
    ("graph/alignments.py", "CTC"): "the loss by whose blank rows are checked and transcripts are read",
    ("graph/passes/expand/mask_expressions.py", "And"): "the operator `and` of the language",
    ("graph/passes/expand/mask_expressions.py", "Or"): "the operator `or` of the language",
    ("graph/passes/expand/mask_expressions.py", "Not"): "the operator `not` of the language",
    ("graph/passes/expand/mask_expressions.py", "NEUTRAL"): "what a mask allows whose optional input is not given",
    ("graph/state_update.py", "State"): "what is called like the node that renews it",
    ("language/recipe/losses.py", "ScalarLoss"): "what a loss without a type is",
    ("lower/passes/hoist.py", "Folded"): "made by the compiler where a value lacks axes in front; no recipe can name it",
    ("lower/passes/hoist.py", "Counted"): "made by the compiler where nothing gives positions; no recipe can name it",
    (
        "lower/passes/hoist.py",
        "OptionalPositions",
    ): "made by the compiler where an optional input gives positions; no recipe can name it",
    ("lower/passes/hoist.py", "Plan"): "how any mask is executed, chosen by its structure",
    ("lower/passes/cache_layout.py", "Plan"): "how any mask is executed, chosen by its structure",
    ("train/losses.py", "mean_cross_entropy"): "a function: the loss of the tasks that predict tokens or classes",
    ("train/losses.py", "symmetric_cross_entropy"): "a function: the loss of the task `contrastive`",
}
"""What `composer` takes from the files of blocks besides families, and why."""


def test_composer_names_families_only() -> None:
    """What a single block is stands in its class."""
    root = Path(composer.__file__).parent
    concrete = {part.__module__ for part in KINDS.values()}
    found = set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("blocks."):
                for name in (alias.name for alias in node.names):
                    value = getattr(importlib.import_module(node.module), name)
                    part = isinstance(value, type) and issubclass(value, Part)
                    if value not in FAMILIES and (part or node.module in concrete):
                        found.add((file.relative_to(root).as_posix(), name))
    assert found == EXCEPTIONS.keys()
