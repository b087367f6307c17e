"""Groups that a page has no room for: which are closed, and what is said of it."""

import re
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

import pytest

import composer
from composer.cli import main
from composer.draw.closing import fewest_closed
from composer.draw.export.views import all_views
from composer.draw.figure import Figure
from composer.draw.fitting import MAX_EXCESS

PART = """
blocks:
  part:
    doc: Four layers below some others.
    params: {hidden: 8}
    inputs: {x: "float[batch, time, dim]"}
    graph:
      layers:
        repeat: 4
        graph: {mix: {type: attention, heads: 2}, widen: {type: ffn, hidden: hidden}}
"""


def recipe(folder: Path, graph: str, blocks: str = "") -> Path:
    """Write a recipe of one input."""
    path = folder / "large.yaml"
    path.write_text(f'recipe: large\ninputs: {{x: "float[batch, time, 8]"}}{blocks}\ngraph:\n{graph}')
    return path


def chain(kinds: str, width: int = 8) -> str:
    """Return the nodes of a group, one for each letter of their kinds."""
    said = {
        "f": "{type: ffn, hidden: %d}",
        "l": "{type: linear, out: 8}",
        "r": "relu",
        "n": "layernorm",
        "a": "{type: attention, heads: 2}",
    }
    nodes = (said[kind] % (width + number) if kind == "f" else said[kind] for number, kind in enumerate(kinds))
    return "".join(f"      n{number}: {node}\n" for number, node in enumerate(nodes))


def tall_part() -> str:
    """Return a defined block of a repeat and of blocks that stand below it, one by one."""
    more = "".join(
        f"      a{n}: {{type: attention, heads: 2}}\n      f{n}: {{type: ffn, hidden: hidden + {n}}}\n" for n in range(9)
    )
    return PART + more


def frames(figure: Figure) -> set[str]:
    """Return what is shown from inside."""
    return {frame.about.path for frame in figure.scene.frames}


def boxes(figure: Figure) -> dict[str, str]:
    """Return what boxes say, by their paths."""
    return {box.about.path: " · ".join(text.text for text in box.texts) for box in figure.scene.boxes}


SERIES = """\
  one: part
  between: {type: linear, out: 8}
  two: {type: part, hidden: 12}
  last: relu
  three: {type: part, tie: one}
"""


def test_of_groups_that_are_alike_the_first_stays_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its repeats, where that is enough and no detail is drawn; the others say what is in them, and the option that opens
    them.
    """
    path = recipe(tmp_path, SERIES, tall_part())
    figure = composer.load(path).draw(details=["none"])
    assert {"one", "one.layers"} <= frames(figure)
    assert {"two", "three"} <= boxes(figure).keys()
    assert "shared with one" in boxes(figure)["three"]
    assert figure.closed == ("two", "three")
    assert figure.excess <= MAX_EXCESS
    assert main(["draw", str(path), "--details", "none", "-o", str(tmp_path / "a.svg")]) == 0
    assert "closed to fit a page: two, three (`--open two --open three`" in capsys.readouterr().err
    assert "three" in frames(composer.load(path).draw(open=["three"]))


def test_uses_of_a_block_are_closed_all_or_none(tmp_path: Path) -> None:
    """With a detail of the first, though it is a chain: no use looks like another block."""
    figure = composer.load(recipe(tmp_path, SERIES, tall_part())).draw()
    assert {"one", "two", "three"} <= boxes(figure).keys()
    assert [(one.about.path, one.stands_for) for one in figure.scene.details] == [("one", ("one", "two", "three"))]
    assert "one.layers" in {frame.about.path for frame in figure.scene.details[0].inside.frames}
    assert figure.closed == ()


def test_many_uses_of_a_block_are_drawn_once_where_that_makes_a_page_smaller() -> None:
    """Of RAFT, three encoders take the room that its update needs."""
    recipe = composer.load(Path(__file__).parent / "papers/raft.yaml")
    figure = recipe.draw()
    assert {"encode_first", "encode_second", "context"} <= boxes(figure).keys()
    assert ("encode_first", "encode_second", "context") in [one.stands_for for one in figure.scene.details]
    assert "updates" in frames(figure)
    opened = recipe.draw(details=["updates"])
    assert {"encode_first", "encode_second", "context"} <= frames(opened)
    assert figure.excess < opened.excess


def test_what_is_used_twice_is_closed_where_the_stream_stays_in_one_column_by_that() -> None:
    """Of VQ-VAE, the decoder would begin at the bottom of a second column."""
    recipe = composer.load(Path(__file__).parent / "papers/vq_vae.yaml")
    figure = recipe.draw()
    assert ("encoder.units.unit", "decoder.units.unit") in [one.stands_for for one in figure.scene.details]
    places = {frame.about.path: frame.area for frame in figure.scene.frames}
    (quantize,) = (box.area for box in figure.scene.boxes if box.about.path == "quantize")
    assert places["decoder"].bottom < quantize.top and quantize.bottom < places["encoder"].top
    wrapped = recipe.draw(details=["none"])
    assert {"encoder.units", "decoder.units"} <= frames(wrapped) and wrapped.scene.width > 900
    assert "encoder.units.unit.conv1" in boxes(wrapped)


def test_small_blocks_of_a_few_uses_stand_open() -> None:
    """Where a page has room for both, as for the gates of two tasks: a detail would take as much."""
    recipe = composer.load(Path(__file__).parent / "papers/mmoe.yaml")
    figure = recipe.draw()
    assert {"gate_income", "gate_married"} <= frames(figure)
    assert figure.scene.details == () and figure.excess == 1
    asked = recipe.draw(details=["gate"])
    assert [one.stands_for for one in asked.scene.details] == [("gate_income", "gate_married")]
    many = composer.load(Path(__file__).parent / "papers/raft.yaml").draw()
    assert {"updates.look0", "updates.look3"} <= boxes(many).keys()


def test_what_a_page_has_no_detail_of_stays_open_once(tmp_path: Path) -> None:
    """No figure is poorer for having all uses of a block closed."""
    more = chain("falnrfalfrnlaafrnfalrrfnlafanrlnffaral")
    figure = composer.load(recipe(tmp_path, SERIES, tall_part() + more)).draw()
    assert figure.scene.details == ()
    assert "one" in frames(figure)


def test_only_as_many_blocks_are_closed_as_make_a_figure_fit() -> None:
    """Where all transforms of PointNet are boxes, its stacks tell the widths of their layers, which are not closed to fit."""
    figure = composer.load(Path(__file__).parent / "papers/pointnet.yaml").draw()
    assert {"input_transform", "feature_transform"} <= boxes(figure).keys()
    assert {"mlp1", "mlp2"} <= boxes(figure).keys()
    assert figure.closed == ()


def test_in_full_detail_boxes_tell_the_blocks_of_what_is_closed(tmp_path: Path) -> None:
    """And not each of their maps; groups that have no frame there are told to be closed all the same."""
    figure = composer.load(recipe(tmp_path, SERIES, tall_part())).draw("full")
    assert figure.closed == ("two", "three")
    assert "MHA" in boxes(figure)["two"]


def test_groups_stand_open_where_a_page_has_room(tmp_path: Path) -> None:
    """However many are alike."""
    figure = composer.load(recipe(tmp_path, "  one: part\n  two: part\n", PART)).draw()
    assert {"one", "two"} <= frames(figure)
    assert figure.closed == ()
    assert figure.excess == 1


def test_groups_of_the_same_nodes_are_alike(tmp_path: Path) -> None:
    """Also where no block is defined: with other numbers, but not with other nodes."""
    one, same, other = chain("flrnaffalnflnfa"), chain("flrnaffalnflnfa", 30), chain("larfn")
    groups = {"one": one, "same": same, "other": other}
    graph = "".join(f"  {name}:\n    graph:\n{nodes}" for name, nodes in groups.items())
    ends = "  end: {type: concat, in: [one, same, other]}\n"
    figure = composer.load(recipe(tmp_path, graph + ends)).draw()
    assert figure.closed == ("same",)


def test_no_more_groups_are_closed_than_make_a_figure_fit(tmp_path: Path) -> None:
    """Of five that are all read at the end, where no column can end between them."""
    kinds = ("falnrfalfr", "nflarnfaff", "afrnlfanrl", "flnarlfafn", "ranfalfnrf")
    groups = "".join(f"  g{n}:\n    graph:\n{chain(each)}" for n, each in enumerate(kinds))
    figure = composer.load(recipe(tmp_path, groups + "  end: {type: concat, in: [g0, g1, g2, g3, g4]}\n")).draw()
    assert 0 < len([path for path in figure.closed if path.startswith("g")]) < 5
    assert figure.excess <= MAX_EXCESS


def test_what_is_closed_in_vain_is_opened_again() -> None:
    """In a model of parts side by side, only the tallest make the page too high; where nothing fits, little is closed."""
    heights = {"a": 3.0, "b": 1.0, "c": 2.0}

    def over(closed: Collection[str]) -> float:
        return max((height for name, height in heights.items() if name not in closed), default=0.5)

    assert fewest_closed(["b", "a", "c"], over, 1) == {"a", "c"}
    assert fewest_closed(["a", "b", "c"], over, 3) == frozenset()
    assert fewest_closed(["b"], over, 1) == frozenset()


def test_a_figure_larger_than_a_page_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is nothing to close; what a level shows less of is named."""
    nodes = "".join(f"  n{n}: {{type: ffn, hidden: {n + 8}}}\n  s{n}: {{type: linear, out: 8}}\n" for n in range(24))
    path = recipe(tmp_path, f"{nodes}  end: {{type: concat, in: [n0, n7, n14, s23]}}\n")
    figure = composer.load(path).draw()
    assert figure.excess > MAX_EXCESS
    assert main(["draw", str(path), "-o", str(tmp_path / "a.svg")]) == 0
    assert "times as large as a page (`--level overview` draws less)" in capsys.readouterr().err


def test_towers_in_a_column_of_paper_are_closed(tmp_path: Path) -> None:
    """What stays open at the lowest level, since it holds layers, is closed where the figure would be taller than the paper."""
    towers = "  one: {type: part, in: x}\n  two: {type: part, in: x}\n  three: {type: part, in: x}\n"
    figure = composer.load(recipe(tmp_path, towers + "  sum: {type: add, in: [one, two, three]}\n", tall_part())).draw(
        width="240pt"
    )
    assert {"two", "three"} <= boxes(figure).keys()
    assert figure.excess <= MAX_EXCESS


def test_a_page_opens_what_is_closed_to_fit_one(tmp_path: Path) -> None:
    """Also where nothing in it is drawn at any level, since it is closed in full detail too."""
    views = {view.key: view for view in all_views(composer.load(recipe(tmp_path, SERIES, tall_part())).draw())}
    assert "two" in views["block"].opens


def test_a_view_keeps_closed_what_the_figure_closed() -> None:
    """A reader who opens one block finds the others as they were."""
    figure = composer.load(Path(__file__).parent / "papers/retinanet.yaml").draw()
    opened = figure.at("block", ["class5"])
    boxes = [{box.about.path for box in one.scene.boxes} for one in (figure, opened)]
    assert boxes[0] - boxes[1] == {"class5"}
    assert all(path.startswith("class5.") for path in boxes[1] - boxes[0])


def test_repeats_that_a_page_has_room_for_stay_open(tmp_path: Path) -> None:
    """Of three that are too large together, the largest one, and then the other for which there is room."""
    kinds = ("falnrfalfr", "nflarnfaffanlrfanlrf", "flnarlfafnralnfa")
    each = "".join(f"  r{n}:\n    repeat: 3\n    graph:\n{chain(own)}" for n, own in enumerate(kinds))
    figure = composer.load(recipe(tmp_path, each + "  end: {type: concat, in: [r0, r1, r2]}\n")).draw()
    assert frames(figure) == {"r0", "r1"}
    assert "r2" in boxes(figure)
    assert figure.excess <= MAX_EXCESS


def widened(text: str, node: str, more: int) -> str:
    """Return a recipe with so many activations behind a node."""
    (said,) = re.findall(rf"^( +){node}: (.*)$", text, re.MULTILINE)
    names = [*(f"{node}_{number}" for number in range(more)), node]
    kinds = [said[1], *("relu" if number % 2 else "gelu" for number in range(more))]
    lines = (f"{said[0]}{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    return re.sub(rf"^ +{node}: .*$", "\n".join(lines).replace("\\", r"\\"), text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("paper", "node", "most"),
    [
        ("evoformer", "far", 4),
        pytest.param("evoformer", "m_new", 3, marks=pytest.mark.exhaustive),
        ("detr", "narrow", 6),
        ("tacotron2", "final", 6),
        pytest.param("latent_diffusion", "conv_in", 6, marks=pytest.mark.exhaustive),
        pytest.param("raft", "motion", 6, marks=pytest.mark.exhaustive),
        pytest.param("latent_diffusion", "sines", 6, marks=pytest.mark.exhaustive),
    ],
)
def test_what_is_shown_shrinks_gradually(paper: str, node: str, most: int) -> None:
    """However near to the limit of a page a figure is, a few more boxes close a little of it: no more than a third."""
    text = (Path(__file__).parent / f"papers/{paper}.yaml").read_text(encoding="utf-8")
    scenes = [composer.load(widened(text, node, more)).draw().scene for more in range(0, most + 1, 2)]
    shown = [len(one.boxes) + sum(len(detail.inside.boxes) for detail in one.details) for one in scenes]
    assert all(after > 2 / 3 * before for before, after in pairwise(shown))
