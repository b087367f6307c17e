"""Figures that people make their own: what a sheet leaves out, merges and colors is still told as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import composer
from composer.cli import main
from composer.diagnostics import RecipeError
from composer.draw.export.formats import NotDrawn
from composer.draw.figure_sheet import KEYS
from composer.draw.options import DEFAULTS
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import ET, SVG, Model, left_out, lies, loose, plain, read

SHEETS = {
    "gpt2": "hide: [norm, layers.attn.norm]\nmerge: {MLP: [layers.ffn]}\nlabels: {layers: Block, tokens: Words}\n",
    "llama3": "hide: [layers.ffn, head]\nhighlight: [layers.attn.body]\noptional_inputs: false\ncaption: Attention alone.\n",
    "t5": "merge: {Self-attention: [decoder.attn], Cross: [decoder.cross]}\nhide: [encoder.ffn.norm]\ndropout: false\n",
    "gemma3": "merge: {Attention: [layers.attn.body, layers.attn.branch_norm]}\ncolor: params\nlegend: true\n",
    "mixtral": "hide: layers.moe.norm\nmerge: {Output: [norm, head]}\nopen: layers.attn.body\nnames: false\nshapes: false\n",
}


def sheet(folder: Path, text: str) -> Path:
    """Return the file of a sheet."""
    path = folder / "sheet.yaml"
    path.write_text(text)
    return path


def wrong(svg: str, model: Model) -> list[str]:
    """Return all that a figure says and does not hold."""
    return [*lies(read(svg), model), *loose(read(svg)), *left_out(svg, model)]


def test_the_keys_of_a_sheet_are_the_options_of_a_drawing_and_of_the_command() -> None:
    """One vocabulary in Python, in files and on the command line."""
    from composer.cli.arguments import Parser
    from composer.cli.draw import COLORINGS, declare
    from composer.draw.arrange import shares

    parser = Parser()
    declare(parser, "draw")
    taken = {action.dest for action in parser._actions}
    assert {*KEYS} == {"level", *DEFAULTS} <= taken and shares.COLORINGS == COLORINGS


@pytest.mark.parametrize("name", ["gpt2", *(pytest.param(name, marks=pytest.mark.slow) for name in SHEETS if name != "gpt2")])
def test_what_is_left_out_or_merged_is_counted(name: str, tmp_path: Path) -> None:
    """Hidden nodes in the head, merged ones in the sum of their box; nothing lies on anything else."""
    recipe = composer.load(name)
    figure = recipe.draw(sheet=sheet(tmp_path, SHEETS[name]))
    assert wrong(figure.svg(), Model(recipe.program)) == []
    scene = figure.scene
    assert [*overlaps(scene), *borders(scene), *ends(scene), *starts(scene)] == []


@pytest.mark.parametrize(
    ("there", "planted"),
    [
        ("20.0 K parameters", "20.1 K parameters"),
        ("2 nodes not drawn", "1 node not drawn"),
        (">4.72 M<", ">4.71 M<"),
        ('data-merged="layers.ffn.norm layers.ffn.body layers.ffn.add"', 'data-merged="layers.ffn.body layers.ffn.add"'),
        ("layers.attn.norm (LayerNorm", "layers.attn.add (LayerNorm"),
    ],
)
def test_a_sum_that_is_wrong_is_found(there: str, planted: str, tmp_path: Path) -> None:
    """The check above sees a fault of each kind."""
    recipe = composer.load("gpt2")
    svg, model = recipe.draw(sheet=sheet(tmp_path, SHEETS["gpt2"])).svg(), Model(recipe.program)
    assert there in svg and wrong(svg.replace(there, planted), model)


def test_a_loss_is_not_compared_with_itself() -> None:
    """Where its target is hidden, which is computed from what it judges."""
    text = "recipe: target\ninputs: {x: 'float[batch, 8]'}\ngraph:\n  map: {type: linear, out: 1}\n  no: {compute: 0 * map}\n"
    text += "outputs: {y: map}\nlosses: {fake: {type: binary_cross_entropy, in: {input: map, target: no}}}\n"
    read = [wire.source for wire in composer.load(text).draw(hide=["no"]).scene.wires if wire.target == "losses.fake"]
    assert read == ["map"]


def test_wires_of_a_hidden_node_go_on() -> None:
    """A block reads what the hidden ones before it read, and a picture at another level does so too."""
    figure = composer.load("gpt2").draw(hide=["layers.attn.norm", "layers.attn.body", "embed"])
    into = {(wire.source, wire.target) for wire in figure.scene.wires}
    assert ("layers", "layers.attn.add") in into and ("tokens", "embed.add") not in into
    assert not any("layers.attn.norm" in pair or "layers.attn.body" in pair for pair in into)
    assert "layers.attn.norm" not in {box.about.path for box in figure.at("full", ()).scene.boxes}


def test_shades_are_shares_of_the_parameters() -> None:
    """Each box is as dark as what it stands for in all passes, relative to the whole model."""
    recipe = composer.load("gpt2")
    model = Model(recipe.program)
    bounds = {"0.00": (0, 0), "0.08": (0, 0.01), "0.16": (0.01, 0.05), "0.24": (0.05, 0.2), "0.32": (0.2, 1)}
    seen = set()
    for group in ET.fromstring(recipe.draw(color="params").svg()).iter(f"{SVG}g"):
        shade = group.find(f"{SVG}rect[@class='on']")
        if shade is not None and (path := group.get("data-id")):
            share = sum(truth.count for truth in model.by_path.get(plain(path), [])) / model.owned[""]
            low, high = bounds[shade.get("fill-opacity", "")]
            assert low <= share <= high, path
            seen.add(shade.get("fill-opacity"))
    assert len(seen) >= 3


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("hid: [norm]", "1:1", "a figure sheet has no key `hid`"),
        ("level: blok", "1:8", "there is no level called `blok`"),
        ("legend: yes", "1:9", "`legend` takes `true` or `false`, not `yes`"),
        ("width: wide", "1:8", "`wide` is not a valid width"),
        ("hide:\n  - norm\n  - layers.atn", "3:5", "there is no node called `layers.atn`"),
        ("hide: [layers.attn]\nhighlight: [layers.attn.norm]", "2:13", "`layers.attn.norm` is hidden and highlighted"),
        ("merge:\n  A: [layers.ffn]\n  B: [layers.ffn.norm]", "3:3", "`layers.ffn.norm` is merged into `A` already"),
        ("merge: {A: [norm, layers.ffn]}", "1:9", "`layers.ffn` and `norm` do not stand in the same frame"),
        ("merge: {A: [embed, norm]}", "1:9", "`layers` stands between"),
        ("labels: {layers.attn: Attention}", "1:10", "`layers.attn` has no title of its own"),
        ("hide: [layers.ffn.add]", "1:8", "would read several values"),
        ("hide: [tokens]", "1:8", "computes from `tokens` alone"),
        ("break_after: layers.attn", "1:14", "no column can end after `layers.attn`"),
        ("unroll: {lyers: 0:2}", "1:10", "there is no repeat called `lyers`"),
        ("unroll:\n  layers: '12:'", "2:3", "`layers` has no such passes"),
        ("unroll: {layers: first}", "1:10", "`first` names no passes"),
        ("unroll: some", "1:9", "there is no repeat called `some`"),
        ("merge: {A: [layers.attn.add]}", "1:9", "`layers.attn.add` alone is a circle"),
        ("direction: left", "1:12", "there is no direction called `left`"),
        ("level: full\ncolor: flops", "2:1", "color flops tells what whole blocks have"),
    ],
)
def test_mistakes_in_a_sheet_are_told_at_their_place(text: str, place: str, message: str, tmp_path: Path) -> None:
    """Keys, values, nodes, and what contradicts itself."""
    with pytest.raises(RecipeError) as caught:
        composer.load("gpt2").draw(sheet=sheet(tmp_path, text))
    (found,) = caught.value.diagnostics
    assert f"{found.span.line}:{found.span.column}" == place and message in found.message


def test_an_option_beside_a_sheet_goes_before_it(tmp_path: Path) -> None:
    """The sheet's level and caption, and another theme."""
    text = "level: overview\ncaption: All of it.\ntheme: dark\n"
    figure = composer.load("gpt2").draw(sheet=sheet(tmp_path, text), theme="light")
    assert figure.level == "overview" and figure.theme == "light" and "All of it." in figure.svg()
    with pytest.raises(NotDrawn, match="no node called `nrm`"):
        composer.load("gpt2").draw(hide=["nrm"])


def test_every_pass_of_one_repeat(tmp_path: Path) -> None:
    """By its path alone, in Python, in a sheet and on the command line; the other one stays folded."""
    recipe = composer.load("transformer").with_overrides("n_layers=2")
    figure = recipe.draw(unroll="encoder")
    assert wrong(figure.svg(), Model(recipe.program)) == []
    paths = {box.about.path for box in figure.scene.boxes}
    assert {"encoder.0.attn.body", "encoder.1.attn.body", "decoder.attn.body"} <= paths
    ways: list[bool | str | list[str] | dict[str, str]] = [["encoder"], {"encoder": ":"}]
    assert {recipe.draw(unroll=way).svg() for way in ways} == {figure.svg()}
    for text in ("unroll: encoder\n", "unroll: [encoder]\n"):
        assert recipe.draw(sheet=sheet(tmp_path, text)).svg() == figure.svg()
    assert main(["draw", "transformer", "--set", "n_layers=2", "--unroll", "encoder", "-o", str(tmp_path / "a.svg")]) == 0
    figure.save(tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("some", ["0:2", "-1:", "3", "1:4"])
def test_some_passes_are_drawn_by_themselves(some: str) -> None:
    """The others in a box before and after, with what these have together."""
    recipe = composer.load("gemma3").with_overrides("n_layers=7")
    figure = recipe.draw(unroll={"layers": some})
    every = range(7)
    alone = set(every[slice(*(int(one) if one else None for one in some.split(":")))] if ":" in some else [int(some)])
    shown = {int(found[1]) for box in figure.scene.boxes if (found := re.match(r"layers\.(\d+)\.", box.about.path))}
    assert shown == alone and wrong(figure.svg(), Model(recipe.program)) == []
    scene = figure.scene
    assert [*overlaps(scene), *borders(scene), *ends(scene), *starts(scene)] == []


@pytest.mark.parametrize(
    ("there", "planted"),
    [
        ("layers(2:7)", "layers(2:6)"),
        ("× 5 Decoder layer", "× 4 Decoder layer"),
        (">134 M<", ">133 M<"),
        ("window 512", "window 511"),
    ],
)
def test_a_box_of_passes_that_says_something_wrong_is_found(there: str, planted: str) -> None:
    """Which passes, how many, how many parameters, and what they have."""
    recipe = composer.load("gemma3").with_overrides("n_layers=7")
    svg, model = recipe.draw(unroll={"layers": "0:2"}).svg(), Model(recipe.program)
    assert there in svg and wrong(svg.replace(there, planted), model)


def test_passes_with_values_of_others_are_drawn() -> None:
    """What a pass reads of passes in the box before comes from there, and a box reads what any of its passes does."""
    recipe = composer.load("denseformer")
    figure = recipe.draw(unroll={"layers": "-1:"})
    assert wrong(figure.svg(), Model(recipe.program)) == []


def test_a_column_ends_where_it_is_said() -> None:
    """What comes after stands right of it, from the bottom on, and the picture says what it said."""
    recipe = composer.load("gpt2")
    figure = recipe.draw(break_after=["embed", "layers"])
    left = {box.about.path: box.x for box in figure.scene.boxes}
    assert left["embed"] < left["layers.attn.body"] < left["head"] and left["head"] == left["norm"]
    assert [*overlaps(figure.scene), *ends(figure.scene), *wrong(figure.svg(), Model(recipe.program))] == []


def test_flops_and_cache_are_those_of_a_block_for_a_token() -> None:
    """By hand: two maps of 768 × 3072; keys and values of 768 numbers of two bytes. Of parts of a block, nothing is told."""
    recipe = composer.load("gpt2")
    said = {box.about.path: box.texts for box in recipe.draw(flops=True, cache=True).scene.boxes}
    assert any("9.44 MFLOPs/token" in text.text for text in said["layers.ffn.body"])
    assert any("KV cache 3.00 KiB/token" in text.text for text in said["layers.attn.body"])
    pieces = recipe.draw("full", flops=True, cache=True).svg()
    assert "3.00 KiB" not in pieces and "77.2 MFLOPs/token" in pieces


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_a_hostile_sheet_is_refused_or_stays_text(times: int, tmp_path: Path) -> None:
    """Texts and lists without end, what is no YAML, and words that would be markup."""
    long, listed = times * 60_000 * "x", times * 1_000 * "norm, "
    for text in (
        f"caption: {long}",
        f"title: {long}",
        f"labels: {{norm: {long}}}",
        f"merge: {{{long}: [norm]}}",
        f"hide: [{listed}nrm]",
        f"merge: {{A: [{listed}norm]}}",
        "open: [" * 5000,
        "hide: &a [*a, *a]",
    ):
        with pytest.raises(RecipeError) as caught:
            composer.load("gpt2").draw(sheet=sheet(tmp_path, text))
        assert len(caught.value.diagnostics[0].message) < 500
    evil = "<script>alert(1)</script>&"
    text = f"caption: '{evil}'\ntitle: '{evil}'\nlabels: {{norm: '{evil}'}}\nmerge: {{'{evil}': [layers.ffn]}}\n"
    svg = composer.load("gpt2").draw(sheet=sheet(tmp_path, text)).svg()
    assert "<script" not in svg and svg.count("&lt;script&gt;") >= 4 and ET.fromstring(svg) is not None


OWN = """
recipe: own
extends: gpt2
figure:
  level: full
  title: Ours
  hide: [norm]
  labels: {layers: Block}
"""


def test_a_recipe_says_itself_how_it_is_drawn(tmp_path: Path) -> None:
    """Its key `figure` is a sheet, over which a file and options go; it is merged and written like other keys."""
    (tmp_path / "own.yaml").write_text(OWN)
    recipe = composer.load(tmp_path / "own.yaml")
    assert recipe.check() == []
    hidden = read(recipe.draw().svg())
    assert recipe.draw().level == "full" and "norm" not in {box.path for box in hidden.boxes}
    assert recipe.draw().scene.name == "Ours"
    over = recipe.draw(sheet=sheet(tmp_path, "title: Theirs\nhide: []\n"), theme="dark")
    assert (over.level, over.scene.name, over.theme) == ("full", "Theirs", "dark")
    assert "norm" in {box.path for box in read(over.svg()).boxes}
    again = composer.load(recipe.expand()).draw()
    assert (again.level, again.scene.name) == ("full", "Ours")
    (tmp_path / "next.yaml").write_text("recipe: next\nextends: own.yaml\nfigure: {title: Next}\n")
    assert composer.load(tmp_path / "next.yaml").draw("block").scene.name == "Next"


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ("hidden: [norm]", "5:3", "unknown-key"),
        ("hide: [nrom]", "5:10", "unknown-node"),
        ("hide: [norm]\n  labels: {norm: Last}", "6:12", "rejected"),
        ("theme: drak", "5:10", "unknown-choice"),
    ],
)
def test_what_a_recipe_says_of_its_figure_is_checked_with_it(text: str, place: str, code: str, tmp_path: Path) -> None:
    """At its line."""
    (tmp_path / "own.yaml").write_text(f"recipe: own\nextends: gpt2\nfigure:\n  params: false\n  {text}\n")
    (found,) = composer.load(tmp_path / "own.yaml").check()
    assert (found.code, f"{found.span.line}:{found.span.column}") == (code, place)
