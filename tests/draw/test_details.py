"""Details: closed blocks drawn from inside beside the figure."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

import composer
from composer.cli import main
from composer.diagnostics import RecipeError
from composer.draw import fitting
from composer.draw.build.group_places import branching, group_places, repeat_places
from composer.draw.build.group_places import contents as contents_of
from composer.draw.details.drawn import title_of_box
from composer.draw.details.placing import GAP, best_spot, best_spots
from composer.draw.export.formats import NotDrawn
from composer.draw.figure import Figure
from composer.draw.fitting import MAX_TELLING_EXCESS, pages
from composer.draw.geometry import Area, Swatch
from composer.draw.links import LinkGraph
from composer.draw.paths import plain
from composer.draw.scene import Detail, Scene
from composer.draw.steps import steps
from composer.graph.anatomy import regions
from composer.graph.passes.roll_layers.roll_layers import folded
from composer.graph.visit import every_node, every_pass, walk
from tests.conformance.generator import generated
from tests.draw.cases import PAPERS
from tests.draw.checks import borders, ends, inside, overlaps, starts, texts
from tests.draw.edges import unread
from tests.draw.paper_shapes import paperlike
from tests.draw.read_back import SVG, Model, contents, lies, loose, read
from tests.draw.shapes import forked, shaped

BLOCKS = """recipe: mixed
inputs: {x: "float[batch, time, 8]"}
blocks:
  gated:
    doc: Two maps, multiplied.
    params: {width: 16}
    inputs: {x: "float[batch, time, dim]"}
    graph:
      value: {type: linear, out: width, in: x}
      gate: {type: linear, out: width, in: x}
      open: {type: sigmoid, in: gate}
      both: {type: multiply, in: [value, open]}
      back: {type: linear, out: dim}
  plain:
    doc: A map and an activation.
    inputs: {x: "float[batch, time, dim]"}
    graph: {a: {type: linear, out: dim}, b: relu, c: {type: linear, out: dim}}
graph:
"""
TWO = BLOCKS + "  one: gated\n  middle: plain\n  two: gated\n"
OF_TWO_WIDTHS = BLOCKS + "  one: gated\n  two: {type: gated, width: 32}\n"


def titles(figure: Figure) -> list[list[str]]:
    """Return what stands at the head of each detail."""
    return [[text.text for text in one.texts] for one in figure.scene.details]


def area_faults(scene: Scene, detail: Detail) -> list[str]:
    """Return what lies on a detail, or leaves it."""
    things = [(one.about.path, one.area) for one in (*scene.boxes, *scene.merges, *scene.frames)]
    things += [(text.text, text.area) for text in texts(scene)]
    own = [(one.about.path, one.area) for one in (*detail.inside.boxes, *detail.inside.merges, *detail.inside.frames)]
    own += [(text.text, text.area) for text in (*texts(detail.inside), *detail.texts)]
    on = [f"{name} lies on {detail.about.path}" for name, area in things if area.meets(detail.area)]
    return [*on, *(f"{name} leaves {detail.about.path}" for name, area in own if not inside(area, detail.area))]


def unlike(recipe: composer.Recipe, scene: Scene) -> list[str]:
    """Return the details that no word calls one of several and that are not the inside of every box of their title."""
    found: dict[str, list[object]] = {}
    for visit in walk(folded(recipe.program).program.root, every_pass, every_node):
        found.setdefault(plain(visit.path), []).append([contents(region.graph) for region in regions(visit.node)])
    drawn = [*scene.boxes, *(box for one in scene.details for box in one.inside.boxes)]
    wrong = []
    for one in scene.details:
        alike = {plain(box.about.path) for box in drawn if title_of_box(box) == one.texts[0].text}
        if len(one.texts) == 1 and any(found[path] != found[plain(one.about.path)] for path in alike):
            wrong.append(one.about.path)
    return wrong


def faults(scene: Scene) -> list[str]:
    """Return all that is wrong with the details of a scene."""
    found = [fault for one in scene.details for check in (overlaps, borders, ends, starts) for fault in check(one.inside)]
    found += [fault for one in scene.details for fault in area_faults(scene, one)]
    pairs = combinations(scene.details, 2)
    return found + [f"{a.about.path} lies on {b.about.path}" for a, b in pairs if a.area.meets(b.area)]


def test_a_block_with_branches_is_drawn_once_from_inside_and_a_chain_is_not() -> None:
    """Both boxes of it stay closed; its title stands for them, since they say the same from inside."""
    figure = composer.load(TWO).draw()
    assert titles(figure) == [["Gated"]]
    (detail,) = figure.scene.details
    assert detail.stands_for == ("one", "two")
    assert {"one", "middle", "two"} <= {box.about.path for box in figure.scene.boxes}
    assert {"one.value", "one.gate", "inputs/one.x", "outputs/one.output"} <= {box.about.path for box in detail.inside.boxes}
    assert faults(figure.scene) == []


def test_a_detail_of_boxes_that_differ_is_that_of_a_named_one() -> None:
    """Its numbers hold in this one alone."""
    recipe = composer.load(OF_TWO_WIDTHS)
    figure = recipe.draw()
    assert titles(figure) == [["Gated", "as in one"]]
    assert unlike(recipe, figure.scene) == []
    (detail,) = figure.scene.details
    untold = replace(figure.scene, details=(replace(detail, texts=detail.texts[:1]),))
    assert unlike(recipe, untold) == ["one"]


TURNED = """recipe: turned
inputs: {x: "float[batch, time, 8]"}
blocks:
  mix:
    params: {turn: {type: bool, default: false}, twice: {type: bool, default: false}}
    inputs: {x: "float[batch, time, dim]"}
    graph:
      value: {type: linear, out: dim}
      gate: {type: linear, out: dim, in: x}
      rows: {type: einsum, pattern: "b t d, b s d -> b t s", in: [value, gate], when: not turn}
      sums: {type: einsum, pattern: "b t d, b s d -> b s t", in: [value, gate], when: turn}
      seen: {type: softmax, in: sums if turn else rows}
      mixed: {type: einsum, pattern: "b t s, b s d -> b t d", in: [seen, value]}
      back: {type: linear, out: dim}
      more: {type: linear, out: dim, when: twice}
graph:
  one: mix
  two: {type: mix, turn: true}
"""


def test_uses_that_differ_in_one_box_have_one_detail() -> None:
    """It says what stands there in the other one, and stands for both; of what differs in more, each has a detail."""
    figure = composer.load(TURNED).draw()
    (head,) = titles(figure)
    assert head == ["Mix", "as in one", "in two: Inner product b t d, b s d → b s t"]
    assert [one.stands_for for one in figure.scene.details] == [("one", "two")]
    assert faults(figure.scene) == []
    assert len(titles(composer.load(TURNED.replace("turn: true", "turn: true, twice: true")).draw())) == 2


def test_a_block_that_stands_open_in_the_figure_has_no_detail() -> None:
    """A reader sees its inside there."""
    assert titles(composer.load(TWO).draw(open=["one"])) == []


@pytest.mark.parametrize(
    "options",
    [{"width": "240pt"}, {"theme": "slide"}, {"direction": "right"}, {"unroll": True}, {"details": ["none"]}, {"engine": "dot"}],
)
def test_figures_for_other_pages_have_no_details(options: dict[str, object]) -> None:
    """A narrow one, a slide, one to the right, one with every pass, and one that says so."""
    assert not composer.load(TWO).draw(**options).scene.details  # type: ignore[arg-type]
    assert not composer.load(TWO).draw("overview").scene.details


def test_details_are_chosen_by_name_or_path() -> None:
    """Also a chain; what is unknown is told with what is known."""
    recipe = composer.load(TWO)
    assert titles(recipe.draw(details=["plain"])) == [["Plain"]]
    assert titles(recipe.draw(details=["middle", "gated"])) == [["Plain"], ["Gated"]]
    with pytest.raises(NotDrawn, match="there is no block with an inside called `gatd`"):
        recipe.draw(details=["gatd"])


def test_a_sheet_names_details(tmp_path: Path) -> None:
    """One word, or a list; an unknown name is told at its place."""
    sheet = tmp_path / "sheet.yaml"
    sheet.write_text("details: none\n")
    assert titles(composer.load(TWO).draw(sheet=sheet)) == []
    sheet.write_text("title: Two\ndetails: [plain, gatd]\n")
    with pytest.raises(RecipeError) as caught:
        composer.load(TWO).draw(sheet=sheet)
    assert [(one.span.line, one.hint) for one in caught.value.diagnostics] == [(2, "did you mean gated?")]


def test_the_command_names_details(tmp_path: Path) -> None:
    """Each draws one."""
    recipe, figure = tmp_path / "mixed.yaml", tmp_path / "mixed.svg"
    recipe.write_text(TWO)
    assert main(["draw", str(recipe), "--details", "plain", "-o", str(figure)]) == 0
    root = ET.fromstring(figure.read_text())
    details = [group for group in root.iter(f"{SVG}g") if group.get("class") == "detail"]
    assert [one.get("data-detail") for one in details] == ["middle"]
    assert details[0].findtext(f"{SVG}title") == "Plain from inside"


def test_a_detail_says_what_holds_and_every_arrowhead_leads_somewhere() -> None:
    """Read from the picture like all else."""
    for text in (TWO, OF_TWO_WIDTHS):
        recipe = composer.load(text)
        picture = read(recipe.draw().svg())
        assert [*lies(picture, Model(recipe.program)), *loose(picture)] == []


def test_a_wrong_number_in_a_detail_is_found() -> None:
    """As one in the figure is."""
    recipe = composer.load(TWO)
    svg = recipe.draw().svg()
    inside = svg[svg.index('<g class="detail"') :]
    assert "8 → 16" in inside
    assert [*lies(read(svg.replace(inside, inside.replace("8 → 16", "8 → 17"))), Model(recipe.program))]


def test_nodes_and_links_are_those_of_the_figure_alone() -> None:
    """So that each node is there once, also as DOT and Mermaid."""
    recipe = composer.load(TWO)
    with_details, without = recipe.draw().scene, recipe.draw(details=["none"]).scene
    assert [node.key for node in LinkGraph(with_details).nodes] == [node.key for node in LinkGraph(without).nodes]
    assert with_details.boxes == without.boxes


def test_a_detail_comes_with_the_first_box_that_it_is_the_inside_of() -> None:
    """Where a figure is built up."""
    built = steps(composer.load("".join((BLOCKS, "  first: plain\n  one: gated\n"))).draw())
    assert [len(step.figure.scene.details) for step in built] == [0, 1]


def test_what_stands_in_a_detail_is_called_as_in_its_block() -> None:
    """An input by its port, a value by its node: not by the layer around the block."""
    said = {text.text for one in composer.load("mamba").draw().scene.details for text in texts(one.inside)}
    assert "valid" in said
    assert {one for one in said if one.endswith("1536 × 16") and "output" in one} <= {"a output · 1536 × 16"}
    assert not any("layers" in one for one in said)


def paper(name: str) -> composer.Recipe:
    """Return the recipe of a paper."""
    return composer.load(next(path for path in PAPERS if path.stem == name))


def named(scene: Scene) -> dict[str, set[str]]:
    """Return what is called by its name where it is read, by what reads it."""
    found: dict[str, set[str]] = {}
    for one in scene.references:
        found.setdefault(one.target, set()).add(one.text.text)
    return found


def test_what_a_detail_of_a_repeat_reads_around_it_is_there() -> None:
    """Each lookup of RAFT's update reads a level of the pyramid beside it; none reads another, so that all stand side by side."""
    recipe = paper("raft")
    scene = recipe.draw(details=["updates"]).scene
    (detail,) = scene.details
    assert detail.stands_for == ("updates",)
    read_by = named(detail.inside)
    assert [read_by[f"updates.look{number}"] for number in range(4)] == [{f"level{number}"} for number in range(4)]
    assert read_by["updates.x"] == {"seen"}
    assert len({box.area.bottom for box in detail.inside.boxes if title_of_box(box) == "Lookup"}) == 1
    assert unread(recipe.program, scene) == []


def test_a_value_that_a_detail_leaves_out_is_found() -> None:
    """By holding it against the model."""
    recipe = paper("raft")
    scene = recipe.draw(details=["updates"]).scene
    (detail,) = scene.details
    less = [wire for wire in detail.inside.wires if wire.source != "inputs/updates.level2"]
    untold = replace(scene, details=(replace(detail, inside=replace(detail.inside, wires=tuple(less))),))
    (found,) = unread(recipe.program, untold)
    assert found.startswith("('updates.look2', '')")


def test_a_detail_in_a_detail_has_the_inputs_of_its_block() -> None:
    """As the box there has, and not the names of what these are around."""
    recipe = paper("raft")
    scene = recipe.draw(details=["updates", "conv_gru"]).scene
    assert [one.texts[0].text for one in scene.details] == ["× 12 Update", "Conv GRU"]
    assert {"inputs/updates.gru.x", "inputs/updates.gru.h"} <= {box.about.path for box in scene.details[1].inside.boxes}
    assert unread(recipe.program, scene) == []


def test_streams_go_straight_through_open_stages() -> None:
    """In lanes that are as far apart in all stages, in the main figure, beside which no stage has a detail."""
    figure = paper("hrnet").draw()
    scene = figure.scene
    assert {one.about.path for one in scene.details}.isdisjoint({"stage2", "stage3", "stage4"})
    assert pages(scene.width, scene.height) < MAX_TELLING_EXCESS
    headers = {one.about.path: one.texts[0].text for one in scene.frames}
    assert [headers[stage].partition(" · ")[0] for stage in ("stage2", "stage3", "stage4")] == ["Stage 2", "Stage 3", "Stage 4"]
    lanes = {stage: through(scene, stage) for stage in ("stage2", "stage3", "stage4")}
    assert [len(one) for one in lanes.values()] == [2, 3, 4]
    assert lanes["stage2"] == pytest.approx(lanes["stage4"][:2], abs=0.1)
    assert lanes["stage3"] == pytest.approx(lanes["stage4"][:3], abs=0.1)
    (head,) = (one for one in scene.boxes if one.about.path == "head")
    assert head.x + head.width / 2 == pytest.approx(lanes["stage4"][0], abs=0.1)
    assert len([text for text in scene.texts if text.text == "next module"]) == 3
    assert unread(paper("hrnet").program, scene) == []


def through(scene: Scene, stage: str) -> list[float]:
    """Return where streams come into a frame, from the left."""
    (frame,) = (one for one in scene.frames if one.about.path == stage)
    low = frame.y + frame.height
    return sorted(wire.points[-1][0] for wire in scene.wires if wire.target == stage and wire.points[-1][1] == low)


def test_exchanges_of_many_streams_stand_in_two_rows_between_these() -> None:
    """Of four, each beside the column that it leads to, in a small box; what is in a branch alone, a repeat, is its box."""
    scene = paper("hrnet").draw().scene
    boxes = {box.about.path.removeprefix("stage4."): box for box in scene.boxes if box.about.path.startswith("stage4.")}
    middles = {name: (box.x + box.width / 2, box.y + box.height / 2) for name, box in boxes.items()}
    rows = {kind: {round(y) for name, (_, y) in middles.items() if name.startswith(kind)} for kind in ("up", "down", "branch")}
    assert [len(one) for one in rows.values()] == [1, 1, 1]
    assert max(rows["up"]) < max(rows["down"]) < max(rows["branch"])
    columns = [middles[f"branch{number}"][0] for number in range(1, 5)]
    for name, (x, _) in middles.items():
        if name.startswith(("up", "down")):
            end, to_right = int(name[-1]) - 1, name.startswith("down")
            assert columns[end - to_right] < x < columns[end - to_right + 1]
    assert {boxes[f"branch{number}"].texts[0].text for number in range(1, 5)} == {"Branch · × 4 Unit"}
    assert [text.text for text in boxes["up41"].texts] == ["Up", "conv 1 × 1", "BN", "upsample 8"]
    assert [text.text for text in boxes["down24"].texts] == ["Down", "× 2 Step", "conv 3 × 3", "stride 2"]


def test_the_block_that_a_model_is_about_may_fill_a_second_page() -> None:
    """One that is far from a chain, which is drawn first; others beside it only where they make the page no larger than that."""
    scene = paper("neural_turing_machine").draw().scene
    assert [one.about.path for one in scene.details] == ["steps.write_head"]
    assert 1.0 < pages(scene.width, scene.height) <= MAX_TELLING_EXCESS


def test_the_body_of_a_branch_goes_by_the_name_of_that() -> None:
    """Which its author chose."""
    assert titles(paper("detr").draw())[0] == ["Placed attention", "as in decoder.cross"]


def test_details_that_are_not_drawn_are_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With the names of those that could be; in figures that have none, with which have them."""
    recipe = composer.load(TWO)
    figure = recipe.draw(open=["one"], details=["gated", "middle"])
    assert titles(figure) == [["Plain"]]
    assert (figure.undetailed, figure.possible_details) == (("gated",), ())
    assert recipe.draw(open=["one"], details=["gated"]).possible_details == ("plain",)
    assert recipe.draw(details=["gated"]).undetailed == ()
    assert recipe.draw("overview", details=["gated"]).undetailed == ("gated",)
    path = tmp_path / "mixed.yaml"
    path.write_text(TWO)
    out = str(tmp_path / "mixed.svg")
    assert main(["draw", str(path), "--open", "one", "--details", "gated", "-o", out]) == 0
    told = "arco draw: no details, since inside of a box or open: gated"
    assert f"{told} (`--details plain` draws others)\n" in capsys.readouterr().err
    assert main(["draw", str(path), "--level", "overview", "--details", "gated", "-o", out]) == 0
    assert f"{told} (details are of closed boxes of upright figures)\n" in capsys.readouterr().err


def seeds(few: int, more: int) -> list[object]:
    """Return numbers of generated recipes, most of them for the exhaustive tests."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(few, more))]


@pytest.mark.parametrize("seed", seeds(6, 60))
@pytest.mark.parametrize("write", [paperlike, forked, shaped, generated])
def test_all_details_of_generated_models_say_what_holds(
    write: Callable[[int], str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn on a page that is so small that all is closed; each value that is read in one is there."""
    monkeypatch.setattr(fitting, "MAX_PAGE_WIDTH", 300.0)
    monkeypatch.setattr(fitting, "MAX_PAGE_HEIGHT", 300.0)
    recipe = composer.load(write(seed))
    root = folded(recipe.program).program.root
    figure = recipe.draw(details=[one.path for one in (*group_places(root), *repeat_places(root))] or ["none"])
    assert [*faults(figure.scene), *unread(recipe.program, figure.scene)] == []
    picture = read(figure.svg())
    assert [*lies(picture, Model(recipe.program)), *loose(picture)] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_details_of_papers_are_sound(path: Path) -> None:
    """Nothing lies on anything, no box is of the figure and of a detail, and all that is said holds."""
    recipe = composer.load(path)
    figure = recipe.draw()
    assert faults(figure.scene) == []
    assert unlike(recipe, figure.scene) == []
    assert unread(recipe.program, figure.scene) == []
    drawn = {plain(box.about.path) for box in figure.scene.boxes}
    assert not drawn & {plain(box.about.path) for one in figure.scene.details for box in one.inside.boxes}
    picture = read(figure.svg())
    details = {one.about.path for one in figure.scene.details}
    assert [said for said in lies(picture, Model(recipe.program)) if said.startswith(tuple(details))] == []
    assert [*loose(picture)] == []


def test_a_detail_names_its_place_where_a_closed_block_of_its_kind_is_another() -> None:
    """The block of a U whose skip is a map elsewhere, inside of what is closed, which is told too; and one of other widths."""
    scene = composer.load(Path(__file__).parent / "papers/latent_diffusion.yaml").draw().scene
    said = {one.texts[0].text: [text.text for text in one.texts[1:]] for one in scene.details}
    assert said["Res block"] == ["as in middle.res1", "in some others: conv 1 × 1 on the skip"]
    assert said["Spatial Transformer"] == ["as in middle.transformer"]


def test_a_detail_is_of_the_use_of_which_most_is_read() -> None:
    """What only a loss reads of one of two transforms is an output of this one."""
    (detail,) = paper("pointnet").draw().scene.details
    assert [text.text for text in detail.texts] == ["Transform", "as in feature_transform"]
    assert {"outputs/feature_transform.crooked", "outputs/feature_transform.x"} <= {box.about.path for box in detail.inside.boxes}


def test_passes_of_a_stack_do_not_make_a_chain_branch() -> None:
    """Each of them reads the one before."""
    places = group_places(folded(paper("retinanet").program).program.root)
    subnet = contents_of(next(one.node for one in places if one.block == "subnet"))
    assert subnet is not None
    assert branching(subnet) == 0


SKIPS = """recipe: skips
inputs: {x: "float[batch, 8, 16, 16]"}
blocks:
  unit:
    doc: Two convolutions with a connection around them.
    params: {out: 8, project: {type: bool, default: false}}
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      a: {type: conv2d, out: out, kernel_size: 3, padding: 1}
      b: {type: conv2d, out: out, kernel_size: 3, padding: 1}
      shortcut: {type: conv2d, out: out, kernel_size: 1, in: x, when: project}
      sum: {type: add, in: [b, shortcut]}
graph:
"""


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("  one: unit\n  two: {type: unit, out: 16, project: true}\n", "conv 1 × 1 on the skip"),
        ("  one: {type: unit, out: 16, project: true}\n  two: {type: unit, out: 16}\n", "no conv 1 × 1 on the skip"),
    ],
)
def test_a_detail_tells_a_map_on_the_skip_of_other_uses(graph: str, said: str) -> None:
    """More or less, where that is all by which they differ but for numbers."""
    lines = titles(composer.load(SKIPS + graph).draw(details=["one"]))
    assert lines == [["Unit", "as in one", f"in some others: {said}"]]


def test_a_detail_does_not_tell_of_uses_that_differ_otherwise() -> None:
    """A map on the skip, and another activation."""
    other = SKIPS.replace("      b: ", "      act: {type: relu, when: project}\n      b: ")
    figure = composer.load(other + "  one: unit\n  two: {type: unit, out: 16, project: true}\n").draw(details=["one"])
    assert titles(figure) == [["Unit", "as in one"]]


def test_one_pass_of_streams_that_residual_connections_give_is_a_detail(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is closed to fit a page is drawn beside it, with what is closed in that."""
    monkeypatch.setattr(fitting, "SUBJECT_FACTOR", 1.0)
    monkeypatch.setattr(fitting, "FEW_BOXES_FACTOR", 1.0)
    recipe = paper("evoformer")
    scene = recipe.draw().scene
    first = scene.details[0]
    assert (first.about.path, [text.text for text in first.texts]) == ("blocks", ["× 48 Block", "one of 48"])
    ends = {box.about.path for box in first.inside.boxes if box.about.path.startswith(("inputs/", "outputs/"))}
    assert ends == {"inputs/blocks.m", "inputs/blocks.z", "outputs/blocks.m", "outputs/blocks.z"}
    assert len(scene.details) > 1
    assert [*faults(scene), *unlike(recipe, scene), *unread(recipe.program, scene)] == []


def test_a_fourth_detail_needs_free_room() -> None:
    """Of RAFT, whose lookup comes early since it stands in four boxes, and of the Evoformer, whose pages hardly grow by it."""
    details = {name: [title for title, *_ in titles(paper(name).draw())] for name in ("raft", "evoformer")}
    assert "Lookup" in details["raft"][:2]
    assert len(details["raft"]) == 4
    assert len(details["evoformer"]) == 4


def test_several_details_are_placed_together() -> None:
    """Below a wide drawing side by side, though the first one alone would make the page smaller at its right."""
    page, extents = Area(0, 0, 1264, 980), [(356.0, 879.0), (456.0, 743.0)]
    box = Area(600, 600, 700, 640)
    assert best_spot([page], page, *extents[0], box, pages)[0] == page.right + GAP
    first, second = best_spots([page], page, extents, [box, box], pages)
    assert min(first.top, second.top) >= page.bottom + GAP
    assert max(first.right, second.right) <= page.right
    assert not first.meets(second)


def test_details_fill_the_room_beside_a_column() -> None:
    """Two at its right and a wide one below."""
    figure = composer.load("uvit").draw()
    assert len(figure.scene.details) == 3
    assert faults(figure.scene) == []
    filled = sum(one.width * one.height for one in figure.scene.details)
    assert filled > 0.4 * figure.scene.width * figure.scene.height


@pytest.mark.parametrize("name", ["pointnet", "vq_vae"])
def test_details_of_what_a_small_page_has_no_room_for_are_sound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed repeats too, with level wires between the blocks that all else stands on."""
    monkeypatch.setattr(fitting, "MAX_PAGE_WIDTH", 900.0)
    monkeypatch.setattr(fitting, "MAX_PAGE_HEIGHT", 1100.0)
    recipe = paper(name)
    scene = recipe.draw().scene
    assert scene.details
    assert [*faults(scene), *unlike(recipe, scene), *unread(recipe.program, scene)] == []


STAGES = """recipe: stages
inputs: {image: "float[batch, 3, 64, 64]"}
blocks:
  down:
    params: {out: {type: int, required: true}}
    inputs: {x: "float[batch, channels, height, width]"}
    graph:
      first: {type: conv2d, out: out // 2, kernel_size: 3, stride: 2, padding: 1, in: x}
      narrow: {type: conv2d, out: out // 2, kernel_size: 1, in: x}
      relu: relu
      second: {type: conv2d, out: out // 2, kernel_size: 3, stride: 2, padding: 1}
      both: {type: concat, axis: -3, in: [first, second]}
graph:
  stages:
    repeat: 3
    as: stage
    graph:
      down: {type: down, out: 8 * (stage + 1)}
      act: relu
  pool: {type: mean, axis: [-2, -1]}
"""


def test_a_detail_tells_what_comes_into_all_passes() -> None:
    """Into the first stage come three channels, into others what the one before gives."""
    (detail,) = composer.load(STAGES).draw(details=["down"]).scene.details
    (box,) = (one for one in detail.inside.boxes if one.about.path.endswith(".x"))
    assert "B × 3, 8, 16 × 64, 32, 16 × 64, 32, 16" in [text.text for text in box.texts]


def test_rows_of_a_detail_have_colors_of_a_map_in_the_drawing_alone() -> None:
    """No box in the frame of the stages has rows, so that there is no map beside it."""
    scene = composer.load(STAGES).draw(details=["down"]).scene
    assert not any(frame.strip for frame in scene.frames)
    (detail,) = scene.details
    assert not any(isinstance(icon.icon, Swatch) for box in detail.inside.boxes for icon in box.icons)
