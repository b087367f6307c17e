"""Blocks of a recipe's own, and of other files: they are what they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import composer
from composer.diagnostics import RecipeError

GATED = """
recipe: gated
params: {wide: 3}
blocks:
  gated:
    params: {heads: {type: int, required: true}, mask: {type: mask, default: causal}, act: {type: block, default: sigmoid}}
    inputs: {x: "float[batch, time, dim]", y: "float[batch, time, dim]?"}
    graph:
      attn: {type: attention, heads: heads, mask: mask, in: x}
      gate: {type: ffn, hidden: wide * dim // 2, in: x}
      open: act
      out: {type: multiply, in: [attn, open]}
      sum: {type: add, in: [out, y]}
inputs: {x: "float[batch, time, 32]", z: "float[batch, time, 32]", w: "float[batch, time, 24]"}
graph:
  a: {type: gated, heads: 2, in: x}
  b: {type: gated, heads: 4, mask: window(2), act: tanh, in: {x: z, y: a}}
  c: {type: gated, heads: 3, in: w}
outputs: {b: b, c: c}
"""
BY_HAND = """
recipe: gated
inputs: {x: "float[batch, time, 32]", z: "float[batch, time, 32]", w: "float[batch, time, 24]"}
graph:
  a:
    in: x
    graph:
      attn: {type: attention, heads: 2, mask: causal, in: input}
      gate: {type: ffn, hidden: 48, in: input}
      open: sigmoid
      out: {type: multiply, in: [attn, open]}
      sum: {type: add, in: [out]}
  b:
    in: {x: z, y: a}
    graph:
      attn: {type: attention, heads: 4, mask: window(2), in: x}
      gate: {type: ffn, hidden: 48, in: x}
      open: tanh
      out: {type: multiply, in: [attn, open]}
      sum: {type: add, in: [out, y]}
  c:
    in: w
    graph:
      attn: {type: attention, heads: 3, mask: causal, in: input}
      gate: {type: ffn, hidden: 36, in: input}
      open: sigmoid
      out: {type: multiply, in: [attn, open]}
      sum: {type: add, in: [out]}
outputs: {b: b, c: c}
"""


def outputs(recipe: composer.Recipe, state: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Return what the model gives for fixed inputs, with these weights."""
    model = recipe.compile().double().eval()
    model.load_state_dict(state)
    torch.manual_seed(0)
    given = (torch.randn(2, 5, width, dtype=torch.float64) for width in (32, 32, 24))
    return list(model(*given)[:2])


def test_a_block_is_what_one_would_write_in_its_place() -> None:
    """Widths, masks, slots and optional ports, with the same names of parameters."""
    defined, written = composer.load(GATED), composer.load(BY_HAND)
    assert defined.check() == []
    state = written.compile(seed=1).double().state_dict()
    for ours, theirs in zip(outputs(defined, state), outputs(written, state), strict=True):
        assert torch.equal(ours, theirs)


def test_a_block_is_one_class_of_the_code() -> None:
    """The same block used three times over, wired in two ways."""
    code = composer.load(GATED).export()
    assert code.count("class Gated(") == 1
    assert sum(line.startswith("class Gated") for line in code.splitlines()) == 3  # wired in two ways, and the model


NESTED = """
recipe: nested
blocks:
  outer:
    blocks: {curve: {inputs: {x: "float[..., dim]"}, graph: {n: relu}}}
    inputs: {x: "float[..., dim]"}
    graph: {f: {type: ffn, activation: {graph: {n: curve}}}, r: {type: residual, body: {graph: {n: curve}}}}
inputs: {x: "float[batch, time, 8]"}
graph: {f: outer}
"""


def test_graphs_in_slots_name_the_blocks_of_the_definition_that_they_stand_in() -> None:
    """Of a block that computes by itself, and of one that is a graph."""
    model = composer.load(NESTED).compile(seed=1)
    plain = NESTED.replace("{n: curve}", "{n: relu}").replace(
        '    blocks: {curve: {inputs: {x: "float[..., dim]"}, graph: {n: relu}}}\n', ""
    )
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(model(x).f, composer.load(plain).compile(seed=1)(x).f, rtol=0, atol=0)


def test_both_sides_of_a_border_are_shown() -> None:
    """Where a type does not fit, the edge and the line that declares what the block takes."""
    text = GATED.replace("in: {x: z, y: a}", "in: {x: w, y: a}")
    (found,) = composer.load(text).check()
    assert found.code == "type-mismatch"
    assert (found.span.line, found.labels[-1].span.line) == (17, 7)
    assert found.labels[-1].text == "declared here"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that use one another: a recipe, a folder of blocks, and blocks that need others."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "mlp.yaml").write_text(
        "params: {factor: 2}\nblocks:\n"
        "  mlp: {inputs: {x: 'float[..., dim]'}, graph: {up: {type: linear, out: factor * dim}, down: {type: linear, out: dim}}}"
        "\n",
        encoding="utf-8",
    )
    (tmp_path / "parts" / "twice.yaml").write_text(
        "uses: mlp.yaml\nblocks:\n  twice: {inputs: {x: 'float[..., dim]'}, graph: {a: mlp, b: {type: mlp, factor: 3}}}\n",
        encoding="utf-8",
    )
    (tmp_path / "encoder.yaml").write_text(
        "recipe: encoder\nuses: [parts/twice.yaml]\nparams: {d: 6, unread: 3, context: 8}\n"
        "blocks: {wide: {inputs: {x: 'float[..., dim]'}, graph: {lin: {type: linear, out: d}}}}\n"
        "inputs: {ids: 'int[batch, time]', kinds: {type: 'int[batch, time]', default: 0}}\n"
        "graph:\n  e: {type: embedding, vocab: 9, dim: d}\n  k: {type: embedding, vocab: 2, dim: d, in: kinds}\n"
        "  s: {type: add, in: [e, k]}\n  t: twice\n  w: wide\noutputs: {y: w, early: s}\n"
        'init: {"*": {normal: 1 / d}, "w.*|k.*": {constant: d}}\n',
        encoding="utf-8",
    )
    (tmp_path / "top.yaml").write_text(
        "recipe: top\nuses: [encoder.yaml, parts/twice.yaml]\ninputs: {ids: 'int[batch, time]', kinds: 'int[batch, time]'}\n"
        "graph:\n  small: {type: encoder, d: 4, in: {ids: ids, kinds: kinds}}\n"
        "  large: {type: encoder, in: {ids: ids, kinds: kinds}}\n"
        "  t: {type: twice, in: small.early}\n  all: {type: concat, axis: last, in: [small, large, t]}\n"
        'init: {"large.w.*": {constant: 5}}\n',
        encoding="utf-8",
    )
    return tmp_path


def test_a_recipe_is_a_block(folder: Path) -> None:
    """Its params are fields, its blocks see them, and its start holds unless the outer recipe says otherwise."""
    model = composer.load(folder / "top.yaml").compile(seed=0)
    state = model.state_dict()
    assert state["small.e.weight"].shape == (9, 4)
    assert state["large.e.weight"].shape == (9, 6)
    assert state["large.t.a.up.weight"].shape == (12, 6)
    assert state["t.b.up.weight"].shape == (12, 4)
    assert (state["small.w.lin.weight"] == 4).all()
    assert (state["large.w.lin.weight"] == 5).all()
    assert (state["large.k.weight"] == 6).all()
    assert 0.1 < state["large.e.weight"].std() < 0.25  # normal, of 1 / 6


def test_the_text_that_is_kept_needs_no_file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With all blocks in it, it is the same model, weight by weight."""
    recipe = composer.load(folder / "top.yaml")
    again = composer.load(recipe.text)
    assert [found for found in again.check() if found.severity == "error"] == []
    one, other = recipe.compile(seed=2).state_dict(), again.compile(seed=2).state_dict()
    assert {name: value.shape for name, value in one.items()} == {name: value.shape for name, value in other.items()}
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_base_brings_the_blocks_that_it_uses(folder: Path) -> None:
    """Paths lead from the file that they stand in, and a block of the base is changed like all else."""
    (folder / "over.yaml").write_text(
        "recipe: over\nextends: top.yaml\nblocks: {twice: {graph: {b: {factor: 5}}}}\n", encoding="utf-8"
    )
    state = composer.load(folder / "over.yaml").compile().state_dict()
    assert state["t.b.up.weight"].shape == (20, 4)
    assert state["large.t.b.up.weight"].shape == (18, 6)  # a block of that recipe's own


def test_files_that_double_at_each_step_are_read_once(tmp_path: Path) -> None:
    """Twenty files, each of which is used by two others."""
    lin = "{inputs: {x: 'float[..., dim]'}, graph: {lin: {type: linear, out: dim}}}"
    (tmp_path / "f0.yaml").write_text(
        f"recipe: r0\ninputs: {{x: 'float[b, 8]'}}\ngraph: {{l: relu}}\nblocks: {{b: {lin}}}\n", "utf-8"
    )
    for step in range(1, 18):
        for side in "ab":
            used = f"[f{step - 1}a.yaml, f{step - 1}b.yaml]" if step > 1 else "f0.yaml"
            (tmp_path / f"f{step}{side}.yaml").write_text(
                f"recipe: r{step}{side}\nuses: {used}\ninputs: {{x: 'float[b, 8]'}}\ngraph: {{l: relu}}\n", encoding="utf-8"
            )
    recipe = composer.load(tmp_path / "f17a.yaml")
    with pytest.raises(RecipeError, match="at most 500 blocks"):
        _ = recipe.program
