"""What a user may ask of a drawing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import composer
from composer.cli import main
from composer.draw.figure import NotDrawn
from composer.draw.geometry import Text
from composer.draw.style.text_metrics import text_width
from tests.draw.processes import printed

TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "n_kv_heads": 2, "hidden": 48, "vocab": 61}


@pytest.mark.slow
def test_any_process_draws_the_same_bytes() -> None:
    """Whatever order its sets have."""
    code = "import composer; print(*(composer.load(n).draw(l).svg() for n in ('gemma3', 'mixtral') for l in ('block', 'full')))"
    assert len(printed(code)) == 1


def test_torch_is_never_loaded() -> None:
    """Nor anything as slow."""
    code = (
        "import sys, composer; composer.load('llama3').draw('full').svg(); "
        "print([name for name in ('torch', 'networkx', 'numpy', 'graphviz') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert told.strip() == "[]"


def test_expand_opens_one_block() -> None:
    """Its parts stand in the picture, those of other blocks do not."""
    paths = {box.about.path for box in composer.load("llama3").draw(open=["layers.ffn.body"]).scene.boxes}
    assert {"layers.ffn.body.gate", "layers.ffn.body.up", "layers.ffn.body.down", "layers.attn.body"} <= paths
    assert "layers.attn.body.q" not in paths


def test_expand_opens_a_repeat_of_the_overview() -> None:
    """Which is one box otherwise."""
    recipe = composer.load("llama3")
    assert "layers" in {box.about.path for box in recipe.draw("overview").scene.boxes}
    assert "layers.attn.body" in {box.about.path for box in recipe.draw("overview", open=["layers"]).scene.boxes}


def test_unroll_draws_every_pass() -> None:
    """Each with its index in the path."""
    scene = composer.load("llama3", overrides=TINY).draw(unroll=True).scene
    assert {"layers.0.attn.body", "layers.1.attn.body"} <= {box.about.path for box in scene.boxes}
    assert not scene.frames


def test_unroll_says_how_many_boxes_are_too_many() -> None:
    """The refusal names the number."""
    with pytest.raises(NotDrawn, match="195 boxes"):
        composer.load("llama3").draw(unroll=True)


def test_highlight_fades_all_else() -> None:
    """What is named, with or without a pass, keeps its colors."""
    svg = composer.load("llama3").draw(highlight=["layers.3.attn"]).svg()
    faded = [line for line in svg.splitlines() if 'opacity=".35"' in line]
    assert any('data-id="layers.ffn.body"' in line for line in faded)
    assert not any('data-id="layers.attn.body"' in line for line in faded)


def test_paths_that_lead_nowhere_are_refused() -> None:
    """With the nearest ones."""
    with pytest.raises(NotDrawn, match=r"layers\.attn\.bod") as no:
        composer.load("llama3").draw(highlight=["layers.attn.bod"])
    assert "layers.attn.body" in no.value.hint


def test_params_and_shapes_can_be_left_out() -> None:
    """Then no text tells them."""
    recipe = composer.load("llama3")
    bare = recipe.draw(params=False, shapes=False).svg()
    assert "525 M" in recipe.draw().svg()
    assert "525 M" not in bare
    assert ">B × T" not in bare


def test_width_and_title() -> None:
    """The picture scales, and says what it is told to."""
    svg = composer.load("gpt2").draw(width="240pt", title="Mine & yours").svg()
    opened, box = svg.split(">", 1)[0], re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert 'width="240pt"' in opened and box
    height = re.search(r'height="([\d.]+)pt"', opened)
    assert height and float(height[1]) == pytest.approx(240 * float(box[2]) / float(box[1]), abs=0.5)  # who prints wants both
    assert "Mine &amp; yours" in svg
    with pytest.raises(NotDrawn, match="not a valid width"):
        composer.load("gpt2").draw(width="wide")


def test_an_option_that_there_is_not_is_refused() -> None:
    """It is not passed over in silence."""
    with pytest.raises(TypeError, match="unknown option: shade; the options are direction, theme, open,"):
        composer.load("gpt2").draw(shade="red")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("level", "options", "says", "hint"),
    [
        ("ful", {}, "level: there is no `ful`", "did you mean full?"),
        ("block", {"theme": "drak"}, "theme: there is no `drak`", "did you mean dark?"),
        ("block", {"engine": "neato"}, "engine: there is no `neato`", "choose from structured, dot"),
    ],
)
def test_a_value_that_there_is_not_is_refused(level: Any, options: Any, says: str, hint: str) -> None:
    """As on the command line."""
    with pytest.raises(NotDrawn) as no:
        composer.load("gpt_mini").draw(level, **options)
    assert (no.value.message, no.value.hint) == (says, hint)


def test_a_format_and_an_ending_that_disagree_are_refused(tmp_path: Path) -> None:
    """No PNG is called x.svg."""
    figure = composer.load("gpt_mini").draw()
    with pytest.raises(NotDrawn, match=r"x\.svg ends like a file of svg, but the format is png"):
        figure.save(tmp_path / "x.svg", "png")
    figure.save(tmp_path / "x.txt", "svg")
    assert [file.name for file in tmp_path.iterdir()] == ["x.txt"]


def test_notebooks_show_recipes() -> None:
    """Compiled ones too; and nothing of a recipe with mistakes, which has no picture."""
    recipe = composer.load("gpt2")
    assert "prefers-color-scheme" in (recipe._repr_svg_() or "")
    assert recipe._repr_svg_() == recipe.draw(theme="auto")._repr_svg_()
    small = composer.load("gpt_mini", overrides={"n_layers": 1})
    assert small.compile()._repr_svg_() == small._repr_svg_()
    assert composer.load("recipe: x\ngraph: {a: nothing}")._repr_svg_() is None


def test_command_writes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And says so."""
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "gpt2", "--level", "overview", "-o", "gpt2.svg"]) == 0
    assert capsys.readouterr().out == "wrote gpt2.svg\n"
    composer.load("gpt2").draw("overview").save("same.svg")
    assert Path("gpt2.svg").read_text(encoding="utf-8") == Path("same.svg").read_text(encoding="utf-8")


def test_command_prints_unless_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All settings reach the drawing."""
    words = ["--theme", "dark", "--open", "layers.attn.body", "--highlight", "layers.attn", "--width", "10cm", "--title", "T"]
    assert main(["draw", "gpt2", *words, "--no-params", "--no-shapes"]) == 0
    figure = composer.load("gpt2").draw(
        theme="dark", open=["layers.attn.body"], highlight=["layers.attn"], width="10cm", title="T", params=False, shapes=False
    )
    figure.save(tmp_path / "same.svg")
    assert capsys.readouterr().out == (tmp_path / "same.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--open", "nowhere"], "there is no node called `nowhere`"),
        (["-o", "a.bmp"], "a.bmp does not end in a supported format"),
        (["-o", "no/such/folder.svg"], "no/such/folder.svg cannot be written: no such file or directory"),
        (["--unroll"], "the unrolled model has"),
    ],
)
def test_command_says_what_it_cannot_do(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, without a traceback."""
    assert main(["draw", "llama3", *words]) == 2
    assert told in capsys.readouterr().err


def test_widths_are_those_of_helvetica() -> None:
    """Adobe's metrics: H 722, e 556, l 222, o 556 in Helvetica; H 722, e 556, l 278, o 611 in Helvetica-Bold."""
    assert text_width("Hello", 10) == pytest.approx(22.78)
    assert text_width("Hello", 10, bold=True) == pytest.approx(24.45)


def test_tied_box_names_its_partner() -> None:
    """By title where no other block has that, also where it is inside of a part of the model."""
    assert "50\u00a0257" in detail("gpt2", "head") and "weight = token embedding" in detail("gpt2", "head")
    assert "weight = source embedding" in detail("transformer", "target_embed")
    assert "weight = token embedding" in detail("captioner", "head")
    assert "weight" not in detail("llama3", "head")


def test_tied_block_among_its_like_names_a_path(tmp_path: Path) -> None:
    """A title that two blocks have would not tell which of them it is; passes of a repeat are all drawn as one."""
    recipe = tmp_path / "twins.yaml"
    recipe.write_text(
        """recipe: twins
language: 1
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 61, dim: 32}
  layers:
    repeat: 3
    graph:
      one: {type: ffn, hidden: 48}
      two: {type: ffn, hidden: 48, tie: one}
  head: {type: linear, out: 61}
outputs: {logits: head}
""",
        encoding="utf-8",
    )
    assert detail(recipe, "layers.two").endswith("weights = layers.one")


def test_dropout_is_said_where_it_acts() -> None:
    """Beside the wire that it acts on, once for each place of the recipe; nothing where there is none."""
    assert [text.text for text in shapes("gpt2")].count("dropout 0.1") == 3  # of the embeddings and of both branches
    assert "dropout 0.1" in detail("gpt2", "layers.attn.body")  # of the weights
    assert not [text for text in shapes("gpt2", dropout=0) if "dropout" in text.text]
    assert "dropout" not in detail("llama3", "layers.attn.body")


def test_inputs_beside_the_stream_are_called_inputs() -> None:
    """And optional where they may be left out."""
    references = {reference.text.text for reference in composer.load("transformer").draw().scene.references}
    assert references == {"valid (optional input)", "source_valid (optional input)"}
    references = {reference.text.text for reference in composer.load("bert").draw().scene.references}
    assert references == {"valid (optional input)", "token_types (optional input)"}  # which has a default


def test_mixture_tells_what_an_expert_is() -> None:
    """How wide, how many of them a token visits, and what their sum is weighed by."""
    scene = composer.load("mixtral").draw().scene
    said = " · ".join(text.text for frame in scene.frames for text in frame.texts)
    assert "4096 → 14\u00a0336 → 4096" in said
    assert "2 of 8 active" in said
    assert "router weight × expert(x)" in {text.text for text in scene.texts}
    assert "from each router · × 0.02" in detail("mixtral", "losses.balance")


def test_what_is_to_be_opened_is_open_and_what_the_page_closes_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With all that is around it; a figure that closes something names the option that opens it."""
    overview = composer.load("mixtral").draw("overview", open=["layers.moe.body"]).scene
    assert {"layers", "layers.moe.body"} <= {frame.about.path for frame in overview.frames}
    layers = "\n".join(
        f"      a{n}: {{type: attention, heads: 2}}\n      b{n}: {{type: ffn, hidden: {n + 2}}}" for n in range(70)
    )
    large = tmp_path / "large.yaml"
    large.write_text(
        'recipe: large\ninputs: {x: "float[batch, time, 8]"}\ngraph:\n  layers:\n    repeat: 2\n    graph:\n' + layers + "\n"
    )
    assert main(["draw", str(large), "-o", str(tmp_path / "a.svg")]) == 0
    assert "closed to fit a page: layers (`--open layers` draws it from inside)" in capsys.readouterr().err
    assert main(["draw", str(large), "--open", "layers", "-o", str(tmp_path / "a.svg")]) == 0
    assert "closed" not in capsys.readouterr().err


def test_the_repeat_that_a_model_is_about_stays_open(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """If the page is hardly larger with it; what is closed is named with the options that open all of it."""

    def repeat(name: str, blocks: int) -> str:
        lines = "".join(f"      {name}{n}: {{type: ffn, hidden: {n + 2}}}\n" for n in range(blocks))
        return f"  {name}:\n    repeat: 3\n    graph:\n{lines}"

    large = tmp_path / "large.yaml"
    graph = repeat("first", 12) + repeat("joint", 24) + repeat("last", 12)
    large.write_text('recipe: large\ninputs: {x: "float[batch, time, 8]"}\ngraph:\n' + graph)
    assert main(["draw", str(large), "-o", str(tmp_path / "a.svg")]) == 0
    told = capsys.readouterr().err
    assert "closed to fit a page: last (`--open last` draws it from inside)" in told  # another one has room


def detail(recipe: str | Path, path: str) -> str:
    """Return what stands below the title of a box."""
    (box,) = (box for box in composer.load(recipe).draw().scene.boxes if box.about.path == path)
    return next(text.text for text in box.texts if text.role == "detail")


def shapes(recipe: str, **params: float) -> list[Text]:
    """Return what stands beside wires."""
    return [text for text in composer.load(recipe, overrides=params).draw().scene.texts if text.role in ("shape", "note")]


def test_a_number_that_is_usual_in_some_layers_is_told_of_all() -> None:
    """The dilations of a stack of convolutions, of which the first does not say its own."""
    assert "dilation 1, 2, 4, 8, 16, 32" in detail("conv_lm", "layers.conv.body.filter")
