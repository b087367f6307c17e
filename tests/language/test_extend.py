"""Recipes over recipes: what comes of two, where paths lead, and what is kept."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import composer

BASE = """
recipe: base
params: {wide: 8, unused_here: 2}
inputs: {x: "float[batch, time, 8]"}
graph:
  a: {type: residual, norm: layernorm, body: {type: ffn, hidden: wide}}
  b: {type: linear, out: 8 * unused_here}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a recipe, and one below it."""
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "over.yaml").write_text("recipe: over\nextends: ../base.yaml\nparams: {wide: 16}\n", encoding="utf-8")
    return tmp_path


def load(folder: Path, text: str) -> composer.Recipe:
    """Return a recipe of the folder."""
    (folder / "top.yaml").write_text(text, encoding="utf-8")
    return composer.load(folder / "top.yaml")


def written_out(text: str) -> str:
    """Return what the composer makes of a recipe that extends none."""
    return composer.load(text).expand()


def test_what_comes_of_two_is_what_one_would_write(folder: Path) -> None:
    """A node changed deep inside, one in its place between others, one deleted, and edges implied after the merge."""
    top = """
recipe: base
extends: base.yaml
graph:
  a: {norm: rmsnorm, body: {activation: silu}}
  between: {type: scale, by: 2}
  b: null
  c: {type: linear, out: unused_here}
"""
    same = """
recipe: base
params: {wide: 8, unused_here: 2}
inputs: {x: "float[batch, time, 8]"}
graph:
  a: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: wide, activation: silu}}
  between: {type: scale, by: 2}
  c: {type: linear, out: unused_here}
"""
    assert load(folder, top).expand() == written_out(same)


@pytest.mark.parametrize(
    ("graph", "order"),
    [
        ("n: relu, a: {norm: rmsnorm}", "n a b"),
        ("n: relu, m: gelu, b: {bias: false}, o: relu", "a n m b o"),
        ("n: relu, a: null, o: gelu", "n o b"),
        ("n: relu, a: {}, o: gelu, b: {}, p: relu", "n a o b p"),
        ("b: {}, n: relu, a: {}", "a b n"),
        ("n: relu", "a b n"),
    ],
)
def test_a_new_node_stands_where_its_neighbors_do(graph: str, order: str, folder: Path) -> None:
    """After the one before it, or else before the first that follows; last where no other is named."""
    top = load(folder, f"recipe: top\nextends: base.yaml\ngraph: {{{graph}}}\n")
    assert [node.name for node in top.program.root.nodes] == order.split()
    (output,) = top.program.root.outputs
    assert output == order.split()[-1]


def test_paths_lead_on_from_the_recipe_that_they_stand_in(folder: Path) -> None:
    """Also back up, as far as the folder of the outermost one."""
    recipe = load(folder, "recipe: base\nextends: below/over.yaml\n")
    assert recipe.check() == []
    assert recipe.expand() == written_out(BASE.replace("wide: 8", "wide: 16"))
    (found,) = composer.load(folder / "below" / "over.yaml").check()
    assert found.code == "outside-folder"


def test_mistakes_are_located_in_the_file_that_holds_them(folder: Path) -> None:
    """Two files, each with one."""
    (folder / "base.yaml").write_text(BASE.replace("8 * unused_here", "8 * unknown_here"), encoding="utf-8")
    found = load(folder, "recipe: top\nextends: base.yaml\ngraph: {a: {norm: rms_norm}}\n").check()
    places = {(Path(each.span.source.name).name, each.code) for each in found if each.severity == "error"}
    assert places == {("base.yaml", "unknown-name"), ("top.yaml", "unknown-block")}


def test_settings_are_laid_over_the_whole(folder: Path) -> None:
    """A param of the base is set as one's own."""
    load(folder, "recipe: base\nextends: base.yaml\n")
    set_ = composer.load(folder / "top.yaml", overrides={"wide": 12, "a.norm": "rmsnorm"})
    assert set_.expand() == written_out(BASE.replace("wide: 8", "wide: 12").replace("layernorm", "rmsnorm"))


def test_the_text_that_is_kept_needs_no_other_file(folder: Path) -> None:
    """Neither saved nor pickled."""
    recipe = load(folder, "recipe: base\nextends: below/over.yaml\n")
    expected = recipe.expand()
    text, pickled = recipe.text, pickle.dumps(recipe)
    for file in folder.rglob("*.yaml"):
        file.unlink()
    assert "extends" not in text
    assert composer.load(text).expand() == pickle.loads(pickled).expand() == expected


def test_a_recipe_keeps_its_own_name(folder: Path) -> None:
    """And must have one."""
    assert load(folder, "recipe: mine\nextends: base.yaml\n").name == "mine"
    (found,) = [each for each in load(folder, "extends: base.yaml\n").check() if each.severity == "error"]
    assert (found.code, Path(found.span.source.name).name) == ("missing-key", "top.yaml")


def test_a_long_chain_is_refused(folder: Path) -> None:
    """With the place that goes too far."""
    for number in range(30):
        text = f"recipe: r{number}\nextends: r{number + 1}.yaml\n"
        (folder / f"r{number}.yaml").write_text(text, encoding="utf-8")
    (found,) = composer.load(folder / "r0.yaml").check()
    assert found.code == "too-deep"
    assert Path(found.span.source.name).name == "r19.yaml"


def cycle(folder: Path, text: str, **files: str) -> list[tuple[str, str, str, list[str]]]:
    """Return the circles that are reported, each with its file and the files of its labels."""
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(content, encoding="utf-8")
    found = [each for each in load(folder, text).check() if each.code.endswith("-cycle")]
    return [
        (each.code, each.message, Path(each.span.source.name).name, [Path(label.span.source.name).name for label in each.labels])
        for each in found
    ]


TAIL = "inputs: {x: 'float[batch, 8]'}\ngraph: {a: tanh}\n"


def test_a_circle_is_the_same_in_whichever_order_its_files_are_named(folder: Path) -> None:
    """Two files that use one another, where the recipe names both."""
    files = {"a": f"recipe: a\nuses: b.yaml\n{TAIL}", "b": f"recipe: b\nuses: a.yaml\n{TAIL}"}
    expected = [("uses-cycle", "a.yaml uses a file that uses it", "b.yaml", ["top.yaml"])]
    for order in ("a.yaml, b.yaml", "b.yaml, a.yaml"):
        assert cycle(folder, f"recipe: top\nuses: [{order}]\n{TAIL}", **files) == expected


def test_a_circle_is_told_by_what_its_files_do(folder: Path) -> None:
    """One extends what uses it, whichever of the two the recipe names first."""
    files = {"a": f"recipe: a\nuses: b.yaml\n{TAIL}", "b": "recipe: b\nextends: a.yaml\n"}
    expected = [("extends-cycle", "a.yaml uses a file that extends it", "b.yaml", ["top.yaml"])]
    for order in ("a.yaml, b.yaml", "b.yaml, a.yaml"):
        assert cycle(folder, f"recipe: top\nuses: [{order}]\n{TAIL}", **files) == expected


def test_a_mistake_in_a_file_that_two_others_use_is_reported_once(folder: Path) -> None:
    """Since it is one."""
    for name in "ab":
        (folder / f"{name}.yaml").write_text(f"recipe: {name}\nuses: c.yaml\n{TAIL}", encoding="utf-8")
    (folder / "c.yaml").write_text(f"recipe: c\nrecipe: c\n{TAIL}", encoding="utf-8")
    found = load(folder, f"recipe: top\nuses: [a.yaml, b.yaml]\n{TAIL}").check()
    assert [each.code for each in found if each.severity == "error"] == ["duplicate-key"]


def test_a_file_beside_that_a_name_meant_is_offered(folder: Path) -> None:
    """Beside the recipe that names it, wherever one is."""
    for key in ("extends", "uses"):
        (found, *_) = load(folder, f"recipe: top\n{key}: base\n{TAIL}").check()
        assert (found.code, found.hint) == ("unknown-recipe", "did you mean base.yaml?")


@pytest.mark.parametrize("name", ["./base.yaml", "below/../base.yaml", ".\\base.yaml", "below\\..\\base.yaml"])
def test_a_path_may_be_written_in_any_way(folder: Path, name: str) -> None:
    """Of any system."""
    assert load(folder, f"recipe: base\nextends: {name}\n").expand() == written_out(BASE)


def test_a_file_without_ending_is_no_recipe_of_the_zoo(folder: Path) -> None:
    """With a folder before it, it is a path."""
    (folder / "gpt2").write_text(BASE, encoding="utf-8")
    assert load(folder, "recipe: base\nextends: ./gpt2\n").expand() == written_out(BASE)


def test_a_chain_is_too_long_whatever_shorter_way_there_is(folder: Path) -> None:
    """The last of a long chain is near as well."""
    for number in range(25):
        (folder / f"r{number}.yaml").write_text(f"recipe: r{number}\nuses: r{number + 1}.yaml\n{TAIL}", encoding="utf-8")
    (folder / "r25.yaml").write_text(f"recipe: r25\n{TAIL}", encoding="utf-8")
    places = set()
    for order in ("r0.yaml, r24.yaml", "r24.yaml, r0.yaml"):
        found = load(folder, f"recipe: top\nuses: [{order}]\n{TAIL}").check()
        places |= {Path(each.span.source.name).name for each in found if each.code == "too-deep"}
    assert places == {"r18.yaml"}


def test_a_node_in_front_of_the_last_one_is_told_its_mark() -> None:
    """Written below what reads it and without a mark, it goes behind that; above, it stands before."""
    text = "recipe: less\nextends: gpt_mini\ngraph:\n  head: {{in: less}}\n{}  less: {{type: linear, out: d_model}}\n"
    (cycle,) = (each for each in composer.load(text.format("")).check() if each.code == "cycle")
    assert cycle.hint == "`less` stands behind `head`, which reads it: `norm: {}` above `less` puts it before `head`"
    assert composer.load(text.format("  norm: {}\n")).check() == []
    above = "recipe: less\nextends: gpt_mini\ngraph:\n  less: {type: linear, out: d_model}\n  head: {}\n"
    assert composer.load(above).check() == []
