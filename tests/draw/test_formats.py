"""Drawings as files of every format."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import composer
from composer.cli import main
from composer.draw.export.dot import dot
from composer.draw.export.drawn_signs import with_drawn_signs
from composer.draw.export.formats import written
from composer.draw.export.marks import BLACK, ArcBy, MarkShape, MoveTo, TextLine
from composer.draw.export.marks import Path as Drawn
from composer.draw.export.mermaid import mermaid
from composer.draw.export.outlines import Outline, path, rectangle
from composer.draw.export.polylines import curve
from composer.draw.figure import NotDrawn, draw
from composer.draw.geometry import Area
from composer.draw.graphviz_programs import Missing, graphviz, pure
from composer.draw.layout.graphviz_layout import problem
from composer.draw.links import LinkGraph
from composer.draw.scene import Reference, Scene
from composer.draw.style.typography import Font, Typography
from composer.graph.state_update import SUFFIX
from composer.printable import printable
from tests.conformance.generator import generated
from tests.draw.cases import CASES, REST_CASES, each_case, each_of, scenes
from tests.draw.edges import Readers, mixed, place, shown_in
from tests.draw.read_back import SVG

needs_pure = pytest.mark.skipif(pure() is None, reason="graphviz-pure is not installed")
NAMED = [case for case in CASES if not case.startswith("chunk")]
HOSTILE = [
    "</svg><script>alert(1)</script>\"'",
    '\\"]; } end -->|x| %%{init: {}}%% `b` &amp; #35;',
    "\u202eabc\u2067שלום",
    "x" * 10_000,
]


@each_case
def test_links_are_the_edges_of_the_graph(case: str) -> None:
    """Through all borders, what reads what is what the typed graph says, wherever passes do not differ."""
    for name, typed, scene in scenes(case, "block"):
        closed = [box.about.path for box in scene.boxes]
        truth = Readers(typed, quiet=True, closed=closed, sizes=False, shown=shown_in(scene))
        blocks = {place(node.about.path, truth.blocks) for node in LinkGraph(scene).nodes}
        links = set()
        for link in LinkGraph(scene).links:
            if link.style == "loop":
                continue  # what a state becomes is read in the next call
            source, target = (place(re.sub(r"#\d+$", "", end), truth.blocks) for end in (link.source, link.target))
            if source != target or source not in truth.blocks:
                links.add((source, target))
        inside = mixed(scene)
        wanted = {(maker, reader) for maker, reader, _ in truth.pairs if maker != reader and {maker, reader} <= blocks}
        wanted = {pair for pair in wanted if not next_pass(scene, *pair)}
        assert {pair for pair in wanted - links if not any(end.startswith(inside) for end in pair)} == set(), name
        known = {(maker, end) for maker, reader, _ in truth.pairs for end in (reader, reader.removesuffix(SUFFIX))}
        extra = {pair for pair in links - known if set(pair) <= truth.blocks}
        assert {pair for pair in extra if not any(end.startswith(inside) for end in pair)} == set(), name


def test_links_do_not_depend_on_places() -> None:
    """Also where several kinds of passes are drawn side by side, with boxes of the same paths."""
    scenes = (draw(composer.load(generated(seed)).program, "full").scene for seed in range(200))
    several = list(islice(filter(lambda one: any("#" in way.source for way in LinkGraph(one).ways), scenes), 3))
    assert len(several) == 3
    for scene in several:
        moved = [box.moved(-700.0 * number, 300.0 * number) for number, box in enumerate(scene.boxes)]
        elsewhere = replace(scene, boxes=tuple(moved), merges=tuple(merge.moved(5000, 0) for merge in scene.merges))
        first, second = ([(one.source, one.target, one.port) for one in LinkGraph(of).ways] for of in (scene, elsewhere))
        assert first == second


def next_pass(scene: Scene, maker: str, reader: str) -> bool:
    """Return whether a block reads what stands above it in the same repeat: what the pass before has made."""
    tops = {thing.about.path: thing.area.top for thing in (*scene.frames, *scene.boxes, *scene.merges)}
    repeats = [f"{frame.about.path}." for frame in scene.frames if frame.pill is not None]
    same = any(maker.startswith(path) and reader.startswith(path) for path in repeats)
    return same and tops.get(maker, 0) < tops.get(reader, 0)


@each_of(NAMED, REST_CASES)
def test_mermaid_says_all_nodes_clusters_and_links(case: str) -> None:
    """Each once, and every subgraph ends."""
    for name, _, scene in scenes(case, "block"):
        text, graph = mermaid(scene), LinkGraph(scene)
        assert len(re.findall(r'^ +n\d+(?:\(+|\[[/\\])"', text, re.MULTILINE)) == len(graph.nodes), name
        assert text.count("subgraph ") == len(re.findall(r"^ +end$", text, re.MULTILINE)) == len(scene.frames)
        assert len(re.findall(r"^  n\d+ -", text, re.MULTILINE)) == len(graph.links)


def read_back(text: str) -> dict[str, list[dict[str, str]]]:
    """Return what Graphviz understands of a DOT text, without laying it out."""
    told: dict[str, list[dict[str, str]]] = json.loads(graphviz(text, "json", "-Kneato", "-n2"))
    return told


@needs_pure
@each_of(NAMED, REST_CASES)
def test_graphviz_reads_the_dot_file_as_it_is_meant(case: str) -> None:
    """Nodes at their places with their sizes, clusters with their borders, an edge for each way of a link."""
    for name, _, scene in scenes(case, "block"):
        told, graph = read_back(dot(scene)), LinkGraph(scene)
        objects = {one["name"]: one for one in told["objects"]}
        for node in graph.nodes:
            if not isinstance(node.thing, Reference):
                x, y = map(float, objects[node.key]["pos"].split(","))
                area = node.thing.area
                assert (x, scene.height - y) == pytest.approx(
                    ((area.left + area.right) / 2, (area.top + area.bottom) / 2), abs=0.1
                )
        names = [one["name"] for one in told["objects"]]
        edges = [(names[int(edge["tail"])], names[int(edge["head"])]) for edge in told["edges"]]
        assert sorted(edges) == sorted((link.source, link.target) for link in graph.ways), name
        assert set(edges) == {(link.source, link.target) for link in graph.links}
        assert sum(one.startswith("cluster") for one in objects) == len(scene.frames)


@pytest.mark.slow
@pytest.mark.parametrize("title", HOSTILE, ids=["markup", "quotes", "right to left", "long"])
def test_hostile_titles_stay_text(title: str) -> None:
    """In every format that is text: nothing of them is read as anything else."""
    figure = composer.load("gpt2").draw(title=title)
    heading = [one for one in ET.fromstring(figure.svg()).iter() if one.get("font-size") == "20"]
    shown = "".join("".join(one.itertext()) for one in heading).replace(" ", "")
    assert shown == printable(title).replace(" ", "") or (len(title) > 1000 and title.startswith(shown.removesuffix("…")))
    assert figure.scene.name == title and figure.scene.width < 1200
    nodes = len(LinkGraph(figure.scene).nodes)
    assert len(re.findall(r'^ +n\d+\(+"', mermaid(figure.scene), re.MULTILINE)) == nodes
    assert "<script" not in dot(figure.scene).replace("&lt;script", "")
    if pure():
        names = {one["name"] for one in read_back(dot(figure.scene))["objects"]}
        assert {node.key for node in LinkGraph(figure.scene).nodes} <= names
        assert written(figure, "png").startswith(b"\x89PNG")
    assert written(figure, "pdf").startswith(b"%PDF")


@pytest.mark.parametrize("format", ["svg", "html", "dot", "mermaid", "pdf", pytest.param("png", marks=needs_pure)])
def test_what_no_page_can_hold_is_left_out_of_titles(format: str) -> None:
    """Control characters and halves of characters, which a terminal may hand over; all else stays."""
    figure = composer.load("gpt2").draw(title="a\x00\x1b[31m\nb\udcff\uffff 👩‍👩‍👧 e\u0301")
    assert figure.scene.name == "a��[31m b�� 👩‍👩‍👧 e\u0301"
    assert written(figure, format)  # type: ignore[arg-type]  # a literal
    ET.fromstring(figure.svg())


def with_title(title: str) -> Scene:
    """Return a model with a block that has such a title."""
    scene = composer.load("gpt2").draw().scene
    texts = tuple(replace(text, text=title) for text in scene.boxes[1].texts)
    return replace(scene, boxes=(scene.boxes[0], replace(scene.boxes[1], texts=texts), *scene.boxes[2:]))


@pytest.mark.parametrize("title", HOSTILE, ids=["markup", "quotes", "right to left", "long"])
def test_hostile_blocks_stay_text(title: str) -> None:
    """The same for what stands in a box."""
    scene = with_title(title)
    assert mermaid(scene).count("\n") == mermaid(composer.load("gpt2").draw().scene).count("\n")
    assert max(map(len, mermaid(scene).splitlines())) < 2000
    if pure():
        assert len(read_back(dot(scene))["objects"]) == len(read_back(dot(composer.load("gpt2").draw().scene))["objects"])


@pytest.mark.slow
@needs_pure
def test_png_is_twice_the_natural_size(tmp_path: Path) -> None:
    """Its middle has the colors of the drawing: the fill of the embedding stands where its box is."""
    figure = composer.load("gpt2").draw()
    figure.save(tmp_path / "a.png")
    width, height, rows = pixels((tmp_path / "a.png").read_bytes())
    assert (width, height) == pytest.approx((2 * figure.scene.width, 2 * figure.scene.height), abs=2)
    box = next(box for box in figure.scene.boxes if box.hue == "embed")
    assert rows[int(2 * (box.y + 4))][int(2 * (box.x + 60))] == (0xFB, 0xD6, 0x93)


def pixels(data: bytes) -> tuple[int, int, list[list[tuple[int, ...]]]]:
    """Return a PNG of eight bits, read by its specification."""
    width, height, _, kind = struct.unpack(">IIBB", data[16:26])
    depth, at, packed = {2: 3, 6: 4}[kind], 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        packed += data[at + 8 : at + 8 + length] if data[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + length
    raw, rows, before = zlib.decompress(packed), [], bytes(width * depth)
    for row in range(height):
        start = row * (width * depth + 1)
        line = bytearray(raw[start + 1 : start + 1 + width * depth])
        for i in range(len(line)):
            left, up, corner = (line[i - depth] if i >= depth else 0), before[i], (before[i - depth] if i >= depth else 0)
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda value: abs(guess - value))
            line[i] = (line[i] + (0, left, up, (left + up) // 2, paeth)[raw[start]]) % 256
        before = bytes(line)
        rows.append([tuple(line[i : i + 3]) for i in range(0, len(line), depth)])
    return width, height, rows


def test_pdf_embeds_its_fonts_and_holds_its_texts(tmp_path: Path) -> None:
    """The page has the width that was asked for; no font stands in it by its name alone."""
    data = written(composer.load("gpt2").draw(width="240pt"), "pdf")
    assert re.search(rb"/MediaBox \[ 0 0 240(\.0\d*)? ", data)
    fonts = re.findall(rb"/Type /Font\b", data) + re.findall(rb"/Subtype /Type1\b", data)
    assert len(fonts) == len(re.findall(rb"/FontFile2 ", data)) == 2
    assert data == written(composer.load("gpt2").draw(width="240pt"), "pdf")


def test_missing_program_gives_an_svg_and_the_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a failure without a file."""
    monkeypatch.setattr("composer.draw.graphviz_programs.pure", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert main(["draw", "gpt2", "-o", str(tmp_path / "a.png")]) == 2
    told = capsys.readouterr().err
    assert "pip install graphviz-pure" in told
    assert "wrote " in told and "a.svg instead" in told
    assert unnamed((tmp_path / "a.svg").read_text(encoding="utf-8")) == composer.load("gpt2").draw().svg()
    assert not (tmp_path / "a.png").exists()


@pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
def test_failing_program_gives_an_svg_and_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of it."""
    script = tmp_path / "broken"
    script.write_text("#!/bin/sh\necho first >&2\necho out of paint >&2\nexit 3\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setattr("composer.draw.graphviz_programs.pure", lambda: str(script))
    with pytest.raises(Missing, match=r"broken failed: out of paint; wrote .*a\.svg instead"):
        composer.load("gpt2").draw().save(tmp_path / "a.png")
    assert (tmp_path / "a.svg").exists()


def test_missing_package_for_pdf_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `dot` is not installed either."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(Missing, match=r"wrote .*a\.svg instead") as missing:
        composer.load("gpt2").draw().save(tmp_path / "a.pdf")
    assert missing.value.hint == 'pip install "arco-composer[pdf]"'


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_dot_makes_a_pdf_where_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With embedded fonts as well."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    data = written(composer.load("gpt2").draw(), "pdf")
    assert data.startswith(b"%PDF")
    assert b"/FontFile" in data or b"/ObjStm" in data


def test_files_are_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure leaves the old file, and nothing beside it."""
    (tmp_path / "a.svg").write_text("old", encoding="utf-8")
    figure = composer.load("gpt2").draw()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        figure.save(tmp_path / "a.svg")
    assert [file.name for file in tmp_path.iterdir()] == ["a.svg"]
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == "old"


@pytest.mark.skipif(os.name == "nt", reason="pipes have no names there")
def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """As any device: `-o /dev/stdout` replaces nothing."""
    pipe, told = tmp_path / "a.svg", []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: told.append(pipe.read_bytes()), daemon=True)
    reader.start()
    figure = composer.load("gpt2").draw()
    figure.save(pipe)
    assert pipe.is_fifo()
    reader.join(timeout=10)
    assert [unnamed(text.decode()) for text in told] == [figure.svg()]


def unnamed(svg: str) -> str:
    """Return a saved picture without the names of its groups."""
    return re.sub(r' (xmlns:inkscape|id|inkscape:label)="[^"]*"', "", svg)


@pytest.mark.parametrize("name", ["llama3", "gemma3"])
def test_groups_of_a_saved_picture_have_names(name: str, tmp_path: Path) -> None:
    """Ids of their own, by their paths, and their titles as labels: programs that edit drawings list layers by these."""
    composer.load(name).draw().save(tmp_path / "a.svg")
    groups = [one for one in ET.parse(tmp_path / "a.svg").iter(f"{SVG}g") if one.get("data-id") or one.get("data-a")]
    names = [one.get("id", "") for one in groups]
    assert len({*names}) == len(groups) and all(re.fullmatch(r"[\w.-]+", one) for one in names)
    attention = next(one for one in groups if one.get("id") == "layers.attn.body")
    label = "{http://www.inkscape.org/namespaces/inkscape}label"
    assert attention.get("data-id") == "layers.attn.body" and "attention" in attention.get(label, "")
    assert "layers.attn.norm--layers.attn.body" in names


def test_a_file_that_may_not_be_written_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its folder may."""
    file = tmp_path / "a.svg"
    file.write_text("mine", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError):
        composer.load("gpt2").draw().save(file)
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(os.name == "nt", reason="links want rights there")
def test_a_link_is_followed(tmp_path: Path) -> None:
    """What it leads to becomes the drawing."""
    (tmp_path / "b.svg").symlink_to(tmp_path / "a.svg")
    composer.load("gpt2").draw().save(tmp_path / "b.svg")
    assert (tmp_path / "b.svg").is_symlink()
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg")


def test_unknown_endings_are_refused(tmp_path: Path) -> None:
    """By name, with those that are known."""
    with pytest.raises(NotDrawn) as no:
        composer.load("gpt2").draw().save(tmp_path / "a.bmp")
    assert ".mmd" in no.value.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    "format",
    [
        "svg",
        "pdf",
        *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("html", "mermaid", "dot")),
        pytest.param("png", marks=[needs_pure, pytest.mark.exhaustive]),
    ],
)
def test_command_pipes_any_format(format: str) -> None:
    """The bytes of the file, and nothing else; the same in processes whose sets have other orders."""
    command = [sys.executable, "-m", "composer", "draw", "mixtral", "--format", format, "-o", "-"]
    told = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert told == {written(composer.load("mixtral").draw(), format)}  # type: ignore[arg-type]  # a literal


def test_arcs_of_a_path_are_round() -> None:
    """Three quarters of a circle, as the icon of recurrence has it: every point is as far from the middle."""
    (curve,) = path(Drawn((MoveTo(6, -7), ArcBy(9, large=True, clockwise=False, end=(3, 8)))))
    middle = center(curve)
    far = [((x - middle[0]) ** 2 + (y - middle[1]) ** 2) ** 0.5 for x, y in curve.points[::3]]
    assert far == pytest.approx([9] * len(far))
    assert len(far) == 5


def center(curve: Outline) -> tuple[float, float]:
    """Return the middle of the circle through three points of a curve."""
    (ax, ay), (bx, by), (cx, cy) = curve.points[0], curve.points[3], curve.points[6]
    d = 2 * (ax * (by - cy) + bx * (cy - ay) + cx * (ay - by))
    a, b, c = ax**2 + ay**2, bx**2 + by**2, cx**2 + cy**2
    return (a * (by - cy) + b * (cy - ay) + c * (ay - by)) / d, (a * (cx - bx) + b * (ax - cx) + c * (bx - ax)) / d


def test_a_circle_is_a_rectangle_that_is_all_corners() -> None:
    """A quarter's middle is as far away as its ends, within a thousandth."""
    points = rectangle(-1, -1, 2, 2, 1).points
    for start in range(0, len(points) - 3, 3):
        four = points[start : start + 4]
        x, y = (sum(weight * p[axis] for weight, p in zip((1, 3, 3, 1), four, strict=True)) / 8 for axis in (0, 1))
        assert (x * x + y * y) ** 0.5 == pytest.approx(1, abs=1e-3)


@pytest.mark.skipif(pure() is None and shutil.which("dot") is None, reason="Graphviz is not installed")
@each_of(NAMED, REST_CASES)
def test_both_engines_draw_one_graph(case: str) -> None:
    """What Graphviz answers, read anew, has the nodes, the clusters and the edges of our drawing, and of the typed graph."""
    for name, typed, scene in scenes(case, "block"):
        told = json.loads(graphviz(problem(LinkGraph(scene), Typography()), "json", "-Kdot"))
        names = [one["name"] for one in told["objects"]]
        assert {key for key in names if not key.startswith("cluster_")} == {node.key for node in LinkGraph(scene).nodes}, name
        assert sum(key.startswith("cluster_") for key in names) == len(scene.frames)
        held = held_by(told)
        for node in LinkGraph(scene).nodes:
            assert held[node.key] == (enclosing(scene, node.thing.area) if not isinstance(node.thing, Reference) else set()), name
        edges = Counter((names[edge["tail"]], names[edge["head"]]) for edge in told.get("edges", []))
        assert edges == Counter((link.source, link.target) for link in LinkGraph(scene).links)
        other = draw(typed, engine="dot").scene
        assert links(LinkGraph(other)) == links(LinkGraph(scene))
        by_path = {one.about.path: one.area for one in (*scene.boxes, *scene.merges)}
        for one in (*other.boxes, *other.merges):
            assert 0 <= one.area.left < one.area.right <= other.width
            if list(by_path).count(one.about.path) == 1 and not mixed(scene):
                assert enclosing(other, one.area) == enclosing(scene, by_path[one.about.path]), name


def links(graph: LinkGraph) -> set[tuple[str, str, str]]:
    """Return which node reads which, at which port."""
    return {(link.source, link.target, link.port) for link in graph.links}


def held_by(told: dict[str, Any]) -> dict[str, set[int]]:
    """Return the clusters around each node, by number, as Graphviz tells it."""
    found: dict[str, set[int]] = {one["name"]: set() for one in told["objects"] if not one["name"].startswith("cluster_")}
    for cluster in told["objects"]:
        if cluster["name"].startswith("cluster_"):
            for node in cluster.get("nodes", []):
                found[told["objects"][node]["name"]].add(int(cluster["name"].removeprefix("cluster_")))
    return found


def enclosing(scene: Scene, area: Area) -> set[int]:
    """Return the frames around a place, by number."""
    return {
        number
        for number, frame in enumerate(scene.frames)
        if frame.area.left <= area.left and area.right <= frame.area.right and frame.area.top <= area.top <= frame.area.bottom
    }


def test_engine_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the line that installs it."""
    monkeypatch.setattr("composer.draw.graphviz_programs.pure", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert main(["draw", "gpt2", "--engine", "dot", "-o", "-"]) == 2
    assert capsys.readouterr().err.splitlines() == ["arco draw: Graphviz is not installed", "  = pip install graphviz-pure"]


@needs_pure
def test_every_piece_of_a_curved_wire_goes_on_where_the_one_before_ends() -> None:
    """The wires of Graphviz consist of several curves, and the pen ends where the wire does."""
    wires = [wire for wire in draw(composer.load("llama3").program, engine="dot").scene.wires if len(wire.points) > 4]
    assert wires
    for wire in wires:
        (outline,) = path(curve(wire.points))
        assert outline.points[-1] == pytest.approx(wire.points[-1], abs=0.5)


@pytest.mark.parametrize("text", ["⊗", "a ⊗", "⊗ b", "a ⊗ b ⊗ c"])
def test_no_line_of_text_is_empty_beside_a_drawn_sign(text: str) -> None:
    """Behind one without letters, nothing else would be in a PNG."""
    line = TextLine(10.0, 20.0, text, Font(10), "middle", BLACK, "")
    found = [*with_drawn_signs(line)]
    assert [one.text for one in found if isinstance(one, TextLine)] == text.replace("⊗", " ").split()
    assert sum(isinstance(one, MarkShape) for one in found) == 3 * text.count("⊗")
