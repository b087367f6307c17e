"""Two models side by side: every change has its mark, and nothing lies on anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Literal

import pytest

import composer
from composer.cli import main
from composer.diff.changes import Nodes, Stated
from composer.diff.difference import Difference
from composer.diff.figure.comparison import draw
from composer.diff.figure.sides import SIDES
from composer.diff.find_changes import paired
from composer.draw.build.levels import Level
from composer.draw.figure import NotDrawn
from composer.draw.geometry import Area
from composer.draw.paths import is_output, plain
from composer.draw.scene import Badge, Ring, Scene, WirePath
from tests.draw.checks import crosses, inside, overlaps, pieces, texts

SWIGLU = """
recipe: gpt2_swiglu
extends: gpt2
params: {n_layers: 6}
graph:
  layers: {graph: {attn: {norm: rmsnorm}, ffn: {norm: rmsnorm, body: {type: gated_ffn, hidden: 2048, activation: silu}}}}
  norm: rmsnorm
checkpoints: null
"""
PAIRS = (
    ("gpt2", SWIGLU),
    ("gpt2", "llama3"),
    ("llama3", "mixtral"),
    ("mixtral", "llama3"),
    ("gpt2", "bert"),
    ("bert", "vit"),
    ("gpt2", "gpt_mini"),
    ("gpt_mini", "gpt2"),
    ("llama3", "gemma3"),
    ("seq2seq_rnn", "lstm_lm"),
    ("bert", "albert"),
    ("transformer", "t5"),
    ("gpt2", "transformer"),
)
LEVELS: tuple[Level, ...] = ("block", "full")
CASES = [(pair, level) for pair in range(len(PAIRS)) for level in LEVELS]


@cache
def difference(pair: int) -> Difference:
    """Return what differs in a pair."""
    before, after = (composer.load(name) for name in PAIRS[pair])
    return before.diff(after)


@cache
def scene(pair: int, level: Level) -> Scene:
    """Return the drawing of a pair."""
    return draw(difference(pair), level).scene


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "level"), CASES)
def test_nothing_lies_on_anything_else(pair: int, level: Level) -> None:
    """As in a drawing of one model."""
    assert list(overlaps(scene(pair, level))) == []


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "level"), CASES)
def test_badges_hide_nothing(pair: int, level: Level) -> None:
    """Neither a text nor one another, nor a block that they do not stand at; all are on the page."""
    page = scene(pair, level)
    for badge in page.badges:
        assert [text.text for text in texts(page) if badge.area.meets(text.area)] == []
        others = [one for one in (*page.boxes, *page.merges) if one.about.path != badge.path]
        assert [one.about.path for one in others if badge.area.grown(-1.5).meets(one.area)] == []
        assert inside(badge.area, Area(0, 0, page.width, page.height).grown(-2))
    assert [(a.text.text, b.text.text) for a, b in combinations(page.badges, 2) if a.area.meets(b.area)] == []


def marks(page: Scene) -> dict[str, list[Badge]]:
    """Return the badges in the drawings, by what they say; those of the legend say no number, those of notes have no place."""
    found: dict[str, list[Badge]] = {}
    for badge in page.badges:
        if badge.path:
            found.setdefault(badge.text.text, []).append(badge)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "level"), CASES)
def test_every_change_is_noted_and_marked_on_its_sides(pair: int, level: Level) -> None:
    """What only one model has in that model alone, everything else in both."""
    page = scene(pair, level)
    notes = [badge.text.text for badge in page.badges if not badge.path and " " in badge.text.text]
    changes = difference(pair).changes
    assert len(notes) == len(set(notes)) == len(changes)
    found = marks(page)
    assert set(found) == set(notes)
    sides = {"+": {"after:"}, "−": {"before:"}}
    for text, badges in found.items():
        assert {side for badge in badges for side in SIDES if badge.path.startswith(side)} == sides.get(text[0], set(SIDES)), text
    count = {sign: sum(text[0] == sign for text in notes) for sign in "+−→>="}
    kinds = {"+": "Added", "−": "Removed", "→": "Replaced", ">": "Rewired", "=": "Tied"}
    assert count == {sign: sum(type(one).__name__ == kind for one in changes) for sign, kind in kinds.items()}


def related(one: str, other: str) -> bool:
    """Return whether a path leads to another, or both are one."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "level"), CASES)
def test_only_what_changed_is_marked(pair: int, level: Level) -> None:
    """Every ring is around a node of a change, a part of it or what holds it; everything else is faint, but what they hold."""
    page = scene(pair, level)
    found = difference(pair)
    rings = {ring.path for ring in page.rings if ring.path}
    pairing = paired(*found.models)
    partners = {
        plain(pairing.before.nodes[one].path): plain(pairing.after.nodes[two].path) for one, two in pairing.forward.items()
    }
    learned = {plain(name.replace(".*", "")) for one in found.changes for name in getattr(one, "parameters", ())}
    for number, side in enumerate(SIDES):
        meant = {plain(path) for one in found.changes for path in paths_of(one, number)}
        meant |= {other if number else one for one, other in partners.items() if any(related(one, name) for name in learned)}
        drawn = [one.about.path.removeprefix(side) for one in (*page.boxes, *page.merges, *page.references)]
        silent = [path for path in meant if not any(related(path, one) for one in drawn)]  # shown where their stream comes from
        here = [ring.removeprefix(side) for ring in rings if ring.startswith(side)]
        apart = [
            one
            for one in here
            if not is_output(one) and not one.startswith("losses.") and not any(related(one, m) for m in meant)
        ]
        nodes = {plain(node.path) for node in (pairing.after if number else pairing.before).nodes}
        blocks = {next((node for node in nodes if one.startswith(f"{node}.")), one) for one in apart}  # each once, not its parts
        assert len(blocks) <= len(silent), (apart, silent)
    rings = {ring.path for ring in page.rings if ring.path and not counts(page, ring)}
    for thing in (*page.boxes, *page.merges, *page.references):
        marked = any(thing.about.path == ring or thing.about.path.startswith(f"{ring}.") for ring in rings)
        assert marked != (thing.about.path in page.faint), thing.about.path


def counts(page: Scene, ring: Ring) -> bool:
    """Return whether a ring is around the number of layers alone."""
    return any(frame.about.path == ring.path and not inside(frame.area, ring.area) for frame in page.frames)


def paths_of(change: object, side: int) -> tuple[str, ...]:
    """Return the nodes of a change on one side."""
    nodes = getattr(change, ("before", "after")[side], None)
    return nodes.paths if isinstance(nodes, Nodes) else ()


def test_a_change_of_a_field_marks_its_block_on_both_sides_and_nothing_else() -> None:
    """The note says the value that it had and the one that it has."""
    page = composer.load("gpt2").diff(composer.load("gpt2", overrides={"layers.ffn.body.hidden": "1024"})).draw().scene
    assert {ring.path for ring in page.rings if ring.path} == {"before:layers.ffn.body", "after:layers.ffn.body"}
    assert {"layers.*.ffn.body (12×)", "hidden 3072 → 1024"} <= {text.text for text in page.texts}
    assert {box.about.path for box in page.boxes} - page.faint == {"before:layers.ffn.body", "after:layers.ffn.body"}


def test_more_layers_are_marked_at_their_number() -> None:
    """The layers themselves are the same, and fade."""
    page = composer.load("gpt2", overrides={"n_layers": 6}).diff(composer.load("gpt2")).draw().scene
    (ring,) = (one for one in page.rings if one.path and one.happened == "added")
    frame = next(one for one in page.frames if one.about.path == ring.path == "after:layers")
    assert frame.pill is not None and inside(frame.pill.area, ring.area) and ring.area.bottom - ring.area.top < 40
    assert "after:layers.attn.norm" in page.faint


def test_a_change_inside_a_closed_box_is_marked_at_the_box() -> None:
    """An activation in a feed-forward layer at the level of blocks; where that is open, at the activation itself."""
    found = composer.load("gpt2").diff(composer.load("gpt2", overrides={"layers.ffn.body.activation": "relu"}))
    for level, path in (("overview", "layers"), ("block", "layers.ffn.body"), ("full", "layers.ffn.body.activation")):
        assert {ring.path for ring in found.draw(level).scene.rings if ring.path} == {f"{side}{path}" for side in SIDES}


def test_a_wire_that_leads_elsewhere_is_marked() -> None:
    """And no other wire; its badge lies on it."""
    page = scene(PAIRS.index(("gpt2", "bert")), "block")
    wires = [wire for wire in page.wires if wire.style == "rewired"]
    assert {wire.target for wire in wires} == {f"{side}layers.{name}.add" for side in SIDES for name in ("attn", "ffn")}
    for badge in (one for one in page.badges if one.happened == "rewired" and one.path):
        assert any(touches(wire, badge) for wire in wires if wire.target == badge.path)


def touches(wire: WirePath, badge: Badge) -> bool:
    """Return whether a badge lies on a wire."""
    return any(crosses(a, b, badge.area) for a, b in pieces(wire))


def test_marks_do_not_rest_on_color() -> None:
    """Kinds of changes differ in their sign, and rings of different colors in their dashes."""
    from composer.diff.figure.layout import SIGNS
    from composer.draw.style.themes import CHANGES

    assert len(set(SIGNS.values())) == len(SIGNS) == len(CHANGES)
    ringed = [dashes for happened, (_, dashes) in CHANGES.items() if happened != "rewired"]
    assert len(set(ringed)) == len(ringed)
    assert len({hue for hue, _ in CHANGES.values()}) == len(CHANGES)


@pytest.mark.parametrize(
    ("outputs", "marked"),
    [
        ("{first: up, z: curve}", {"before:outputs/y", "after:outputs/first"}),
        ("{y: up, rest: curve}", {"before:outputs/z", "after:outputs/rest"}),
        ("{y: up, z: x}", {"before:outputs/z", "after:outputs/z"}),
    ],
)
def test_an_output_that_changed_is_marked_where_it_is_drawn(outputs: str, marked: set[str]) -> None:
    """Its name, or what gives it."""
    inputs = 'recipe: small\ninputs: {x: "float[batch, time, 16]"}\n'
    text = inputs + "graph: {curve: silu, up: {type: linear, out: 16}}\noutputs: {y: up, z: curve}"
    before, after = composer.load(text), composer.load(text.replace("{y: up, z: curve}", outputs))
    (change,) = before.diff(after).changes
    assert isinstance(change, Stated)
    assert {ring.path for ring in before.diff(after).draw().scene.rings if ring.path} == marked


def test_equal_models_are_drawn_without_marks() -> None:
    """The head says that they are one."""
    page = composer.load("gpt2").diff(composer.load("gpt2")).draw().scene
    assert (page.rings, page.badges, page.faint) == ((), (), frozenset())
    assert "the same model" in {text.text for text in page.texts}


def test_the_head_has_the_costs_of_both() -> None:
    """As the text of the difference has them."""
    found = difference(PAIRS.index(("gpt2", "llama3")))
    said = " ".join(text.text for text in draw(found).scene.texts if text.role == "facts")
    for line in str(found).splitlines():
        if line.startswith(("parameters", "FLOPs", "KV cache")):
            assert " ".join(line.split()) in said


def test_the_head_tells_costs_that_are_the_same() -> None:
    """The base of the rotation changes no count; where nothing differs, the verdict says all."""
    llama = composer.load("llama3")
    page = llama.diff(composer.load("llama3", overrides={"theta": "10000"})).draw().scene
    said = " ".join(text.text for text in page.texts if text.role == "facts")
    for line in (
        "parameters unchanged (8,030,261,248)",
        "FLOPs per token unchanged (17.2 GFLOPs)",
        "cache per token unchanged (128 KiB)",
    ):
        assert line in said
    assert "unchanged" not in " ".join(text.text for text in llama.diff(llama).draw().scene.texts)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_same_bytes_come_from_another_process(theme: Literal["light", "dark"]) -> None:
    """Whatever the seed of its hashes."""
    code = "import composer, sys\nfound = composer.load('gpt2').diff(composer.load('llama3'))\n"
    code += f"sys.stdout.buffer.write(found.draw(theme={theme!r}).svg().encode())"
    words = [sys.executable, "-c", code]
    runs = [
        subprocess.run(words, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] == draw(difference(PAIRS.index(("gpt2", "llama3"))), theme=theme).svg().encode()


def test_command_draws_what_the_name_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An SVG in a file, and nothing in a format that holds one model only."""
    monkeypatch.chdir(tmp_path)
    assert main(["diff", "gpt2", "llama3", "-o", "both.svg"]) == 1
    assert main(["diff", "gpt2", "gpt2", "-o", "one.svg", "--theme", "dark"]) == 0
    assert capsys.readouterr().out == "wrote both.svg\nwrote one.svg\n"
    draw(difference(PAIRS.index(("gpt2", "llama3")))).save(tmp_path / "same.svg")
    assert (tmp_path / "both.svg").read_text(encoding="utf-8") == (tmp_path / "same.svg").read_text(encoding="utf-8")
    assert main(["diff", "gpt2", "llama3", "-o", "both.dot"]) == 2
    assert "use one of .svg, .html, .png, .pdf" in capsys.readouterr().err
    with pytest.raises(NotDrawn):
        draw(difference(0)).save(tmp_path / "both.dot")


@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_missing_program_gives_an_svg_and_the_install_line(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where one model is drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["diff", "gpt2", "llama3", "-o", f"both.{ending}"]) == 2
    told = capsys.readouterr().err
    assert "both.svg instead" in told and "pip install" in told
    draw(difference(PAIRS.index(("gpt2", "llama3")))).save(tmp_path / "same.svg")
    assert (tmp_path / "both.svg").read_text(encoding="utf-8") == (tmp_path / "same.svg").read_text(encoding="utf-8")


def test_text_goes_where_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A dash is the terminal, and no file of that name."""
    monkeypatch.chdir(tmp_path)
    assert main(["diff", "gpt2", "llama3", "-o", "-"]) == 1
    assert capsys.readouterr().out == f"{difference(PAIRS.index(('gpt2', 'llama3')))}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_command_prints_a_picture_to_a_pipe() -> None:
    """Where no file is named."""
    words = ["diff", "gpt2", "llama3", "--format", "svg"]
    done = subprocess.run([sys.executable, "-m", "composer", *words], capture_output=True, check=False)
    assert done.returncode == 1 and done.stdout.startswith(b"<svg ") and done.stdout.endswith(b"</svg>\n")
