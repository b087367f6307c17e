"""The summary: rows that add up, passes that differ, numbers as people read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import composer
from composer.cost.summary import SummaryRow
from composer.cost.units import in_bytes, in_flops, ranges, short
from tests.draw.cases import FORMS


def rows_of(name: str, **changes: object) -> tuple[SummaryRow, ...]:
    """Return the rows of a recipe of the zoo."""
    return composer.load(name, overrides=changes).summary().rows


@pytest.mark.parametrize("name", ["gpt2", "llama3", "gemma3", "gpt_mini", "universal_transformer", "transformer_xl", "conv_lm"])
def test_totals_add_up_to_the_model(name: str) -> None:
    """At the top level, and below each row that has rows below it."""
    summary = composer.load(name).summary()
    assert sum(row.total for row in summary.rows) == summary.costs.parameters
    waiting = list(summary.rows)
    while waiting:
        row = waiting.pop()
        below = sum(child.total for child in row.children)
        assert below == row.total or row.children == () or row.block in ("attention", "ffn", "gated_ffn")
        waiting.extend(row.children)


def test_equal_passes_are_one_row_and_unequal_ones_are_told_apart() -> None:
    """Gemma's every sixth layer sees all; a pass has the parameters of one, the row those of all."""
    (layers,) = (row for row in rows_of("gpt2") if row.name == "layers")
    assert (layers.block, [child.name for child in layers.children]) == ("× 12", ["attn", "ffn"])
    assert layers.children[0].total == 12 * layers.children[0].parameters
    (layers,) = (row for row in rows_of("gemma3") if row.name == "layers")
    assert [(kind.name, kind.detail) for kind in layers.children] == [
        ("22 of 26", "passes 0-4, 6-10, 12-16, 18-22, 24-25"),
        ("4 of 26", "passes 5, 11, 17, 23"),
    ]
    assert [kind.total for kind in layers.children] == [22 * layers.children[0].parameters, 4 * layers.children[1].parameters]


MEMORIES = """
recipe: memories
params: {slopes: [0.5, 0.25, 0.125, 1]}
inputs: {x: "float[batch, 8]", memory: "float[batch, 4, 8]"}
graph:
  layers:
    repeat: 4
    in: x
    graph:
      past: {type: select, axis: -2, index: layer, in: memory}
      slope: {type: scale, by: "slopes(layer)"}
      sum: {type: add, in: [slope, input]}
      up: {type: linear, out: 8 if layer < LAST else 8, bias: layer < LAST}
"""


def test_passes_that_differ_by_a_number_are_one_row() -> None:
    """The line lists the numbers; a pass with other parameters stands apart."""
    (layers,) = composer.load(MEMORIES.replace("LAST", "4")).summary().rows
    assert [child.detail for child in layers.children] == ["axis -2, index 0-3", "by 0.5 | 0.25 | 0.125 | 1", "", "out 8"]
    assert [child.total for child in layers.children] == [0, 0, 0, 4 * 72]
    (layers,) = composer.load(MEMORIES.replace("LAST", "3")).summary().rows
    assert [(kind.name, kind.detail, kind.total) for kind in layers.children] == [
        ("3 of 4", "passes 0-2", 3 * 72),
        ("1 of 4", "pass 3", 64),
    ]
    assert layers.children[0].children[0].detail == "axis -2, index 0-2"


def test_long_names_end_lines_at_dots() -> None:
    """Where a name is longer than a line; and no line is longer than the page."""
    name = "a_long_name_of_a_group"
    lines = "\n".join(
        [
            "recipe: ties", 'inputs: {x: "float[batch, 8]"}', "graph:", f"  {name}:", "    in: x",
            f"    graph: {{{name}_inside: {{in: input, graph: {{{name}_map: {{type: linear, out: 8}}}}}}}}",
            f"  tied: {{type: linear, out: 8, tie: {name}.{name}_inside.{name}_map}}",
        ]
    )  # fmt: skip
    text = str(composer.load(lines).summary())
    assert f"{name}.\n" in "".join(line.split("  [")[0].rstrip() + "\n" for line in text.splitlines())


def test_lengths_that_are_assumed_of_several_axes_are_told() -> None:
    """With how they are set; a length that is given is not assumed."""
    recipe = composer.load(
        'recipe: words\ninputs: {x: "int[batch, word, letter]"}\ngraph: {y: {type: embedding, vocab: 9, dim: 4}}'
    )
    assert "assumed     1,024 for word and letter: set them, such as --at letter=16\n" in str(recipe.summary())
    assert "assumed" not in str(recipe.summary({"letter": 16}))


def test_ties_and_frozen_nodes_are_noted() -> None:
    """A head without a matrix of its own says whose it has."""
    by_name = {row.name: row for row in rows_of("gpt2", **{"graph.positions.trainable": False})}
    assert "weight is embed.weight" in by_name["head"].detail and by_name["head"].total == 0
    assert "not trained" in by_name["positions"].detail
    assert "not trained" not in by_name["embed"].detail


def test_json_is_plain_and_has_the_figures_of_the_text() -> None:
    """It survives a round trip, and a page can be made of it."""
    summary = composer.load("gpt2").summary({"time": 128})
    told = json.loads(json.dumps(summary.to_json()))
    assert (told["name"], told["parameters"], told["lengths"]) == ("gpt2", 124_439_808, {"batch": 1, "time": 128})
    assert told["bytes"]["adamw"] == 2 * told["bytes"]["fp32"] == 8 * told["parameters"]
    assert [node["name"] for node in told["nodes"]] == [row.name for row in summary.rows]
    text = str(summary)
    assert f"{told['parameters']:,} (124 M)" in text
    assert in_flops(told["flops"]["dense"]) in text and in_flops(told["flops_per_token"]["masked"]) in text


@pytest.mark.parametrize(
    ("lengths", "hint"), [({"tim": 5}, "did you mean time?"), ({"time": 4, "size": 5}, "known here: batch, time")]
)
def test_length_of_an_axis_that_is_not_there_is_refused(lengths: dict[str, int], hint: str) -> None:
    """As the command refuses it, instead of measuring at another length."""
    with pytest.raises(composer.RecipeError, match=f"there is no axis called `{list(lengths)[-1]}`") as error:
        composer.load("gpt2").summary(lengths)
    assert [(one.code, one.hint) for one in error.value.diagnostics] == [("unknown-axis", hint)]


@pytest.mark.parametrize(
    ("indices", "shown"),
    [([0], "0"), ([0, 1], "0-1"), ([0, 2, 3, 4, 9], "0, 2-4, 9"), ([0, 2, 4, 6, 8, 10, 12], "0, 2, 4, …, 12")],
)
def test_indices_are_shown_as_ranges(indices: list[int], shown: str) -> None:
    """The first three and the last of many."""
    assert ranges(indices) == shown


@pytest.mark.parametrize(
    ("number", "as_count", "as_bytes", "as_flops"),
    [
        (0, "0", "0 bytes", "0 FLOPs"),
        (999, "999", "999 bytes", "999 FLOPs"),
        (1000, "1.00 K", "1000 bytes", "1.00 kFLOPs"),
        (1024, "1.02 K", "1.00 KiB", "1.02 kFLOPs"),
        (124_439_808, "124 M", "119 MiB", "124 MFLOPs"),
        (999_499, "999 K", "976 KiB", "999 kFLOPs"),
        (999_500, "1.00 M", "976 KiB", "1.00 MFLOPs"),
        (99_960_000, "100 M", "95.3 MiB", "100 MFLOPs"),
        (1024**2 - 1, "1.05 M", "1.00 MiB", "1.05 MFLOPs"),
        (8_030_261_248, "8.03 B", "7.48 GiB", "8.03 GFLOPs"),
    ],
)
def test_numbers_have_three_digits_and_a_unit(number: int, as_count: str, as_bytes: str, as_flops: str) -> None:
    """Rounded before the unit is chosen, so that nothing has four."""
    assert (short(number), in_bytes(number), in_flops(number)) == (as_count, as_bytes, as_flops)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_rows_of_layers_that_are_written_one_by_one_add_up(path: Path) -> None:
    """Each parameter is counted in one row, whether or not its layer has become a pass of a repeat."""
    summary = composer.load(path).summary()
    assert sum(row.total for row in summary.rows) == summary.costs.parameters


def test_layers_that_are_written_one_by_one_are_one_row() -> None:
    """Which says so."""
    summary = composer.load(next(path for path in FORMS if path.stem == "layers_of_nodes")).summary()
    (layers,) = (row for row in summary.rows if row.name == "layers")
    assert (layers.block, layers.detail) == ("× 5", "written one by one")
    assert layers.total == layers.parameters == sum(child.total for child in layers.children)
