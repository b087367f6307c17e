"""The same drawing laid out by Graphviz: our blocks and frames, its places and its wires."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import graphviz

from composer.draw.geometry import Area, Point, Text
from composer.draw.graphviz_programs import INCH, quoted
from composer.draw.graphviz_programs import graphviz as run
from composer.draw.layout.ends.slants import with_slants
from composer.draw.layout.fragment import Pieces
from composer.draw.layout.page import MARGIN
from composer.draw.links import Cluster, Link, LinkGraph, LinkNode
from composer.draw.scene import Box, Frame, MergeCircle, Reference, Scene, Strip, WirePath
from composer.draw.style.typography import Typography

HEAD, LINE = 30.0, 13.0
"""Height of a frame's header, and of each more line: those of the usual layout."""
INSIDE, BESIDE_STRIP = 16.0, 52.0
"""Between a frame and what it holds; where a map of layers with its numbers stands in it."""


def layout_by_graphviz(scene: Scene, typography: Typography) -> Scene:
    """Return a scene with the same nodes, frames and links; every value goes by a wire, none by its name.

    Raises:
        Missing: if Graphviz is not installed.
    """
    graph = LinkGraph(scene)
    answer = json.loads(run(problem(graph, typography), "json", "-Kdot"))
    return _Answer(graph, answer, typography).scene()


# -- what is asked


def problem(graph: LinkGraph, typography: Typography) -> str:
    """Return nodes, clusters and edges as a DOT text without places."""
    out = graphviz.Digraph(
        "model",
        graph_attr={
            "nodesep": "0.32",
            "ranksep": "0.38",
            "notranslate": "true",
            **({"rankdir": "LR"} if graph.scene.direction == "right" else {}),
        },
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
        edge_attr={"arrowhead": "none"},
    )
    _held(out, graph, typography, *graph.top)
    for number, link in enumerate(graph.links):
        weight = "8" if link.style == "main" else "1"
        above = "false" if link.style == "loop" else "true"
        out.edge(quoted(link.source), quoted(link.target), id=str(number), weight=weight, constraint=above)
    return str(out.source)


def _held(
    out: graphviz.Digraph, graph: LinkGraph, typography: Typography, nodes: Sequence[LinkNode], clusters: Sequence[Cluster]
) -> None:
    for node in nodes:
        area = area_of(node)
        size = {"width": f"{(area.right - area.left) / INCH:.3f}", "height": f"{(area.bottom - area.top) / INCH:.3f}"}
        out.node(quoted(node.key), **size)
    for cluster in clusters:
        frame = cluster.frame
        with out.subgraph(name=f"cluster_{graph.number(frame)}") as inner:
            wide, high = header_size(frame, typography)
            table = f'<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="{wide:.0f}" HEIGHT="{high:.0f}"><TR><TD></TD></TR></TABLE>'
            inner.attr(label=f"<{table}>", margin=f"{BESIDE_STRIP if frame.strip else INSIDE:g}", labelloc="b")
            _held(inner, graph, typography, cluster.nodes, cluster.clusters)


def area_of(node: LinkNode) -> Area:
    """Return the area that a node takes, wherever it stands."""
    return node.thing.text.area.grown(3) if isinstance(node.thing, Reference) else node.thing.area


def header_size(frame: Frame, typography: Typography) -> tuple[float, float]:
    """Return the size of the texts at the upper border of a frame, the pill beside them included."""
    lines = [typography.width(text.text, "header") for text in frame.texts]
    pill = typography.width(frame.pill.text, "pill") + 46 if frame.pill else 0
    return max([0.0, *lines]) + pill, HEAD - 8 + LINE * typography.scale * max(len(lines) - 1, 0)


# -- what is answered


class _Answer:
    """Reads places. Graphviz lets the data flow down and counts upwards; a page counts downwards, so there it flows up."""

    def __init__(self, graph: LinkGraph, answer: Any, typography: Typography) -> None:
        self.graph, self.given, self.typography = graph, graph.scene, typography
        self.nodes = {node.key: node for node in graph.nodes}
        self.objects = {one["name"]: one for one in answer["objects"]}
        self.ways = {int(edge["id"]): edge["pos"] for edge in answer.get("edges", [])}
        _, _, self.wide, self.high = map(float, answer["bb"].split(","))
        self.head = [text for text in self.given.texts if text.role in ("heading", "facts")]
        self.top = max([0.0, *(text.y for text in self.head)]) + MARGIN
        self.width = max([self.wide + 2 * MARGIN, *(text.area.right + MARGIN for text in self.head)])

    def scene(self) -> Scene:
        pieces = Pieces()
        for node in self.graph.nodes:
            self.node(node, pieces)
        frames = tuple(self.frame(frame) for frame in self.given.frames)
        wires = [self.wire(link, self.ways[number]) for number, link in enumerate(self.graph.links)]
        whole = replace(
            self.given,
            width=self.width,
            height=self.top + self.high + MARGIN,
            texts=tuple(self.head),
            frames=frames,
            wires=tuple(wires),
            dots=(),
            boxes=tuple(pieces.boxes),
            merges=tuple(pieces.merges),
            references=tuple(pieces.references),
        )
        return with_slants(whole)

    def place(self, text: str) -> Point:
        """Return a pair of coordinates on the page."""
        x, y = map(float, text.split(","))
        return x + (self.width - self.wide) / 2, self.top + y

    def node(self, node: LinkNode, pieces: Pieces) -> None:
        x, y = self.place(self.objects[node.key]["pos"])
        area = area_of(node)
        moved = Pieces()
        match node.thing:
            case Box():
                moved.boxes.append(node.thing)
            case MergeCircle():
                moved.merges.append(node.thing)
            case Reference():
                moved.references.append(node.thing)
        pieces.take(moved, x - (area.left + area.right) / 2, y - (area.top + area.bottom) / 2)

    def frame(self, frame: Frame) -> Frame:
        low_x, low_y, high_x, high_y = self.objects[f"cluster_{self.graph.number(frame)}"]["bb"].split(",")
        (left, top), (right, bottom) = self.place(f"{low_x},{low_y}"), self.place(f"{high_x},{high_y}")
        texts = tuple(
            Text(left + 14, top + 19 + LINE * self.typography.scale * number, text.text, "header", "start", self.typography.scale)
            for number, text in enumerate(frame.texts)
        )
        pill = frame.pill and Text(
            right - 23 - self.typography.width(frame.pill.text, "pill") / 2,
            top + 19.5,
            frame.pill.text,
            "pill",
            scale=self.typography.scale,
        )
        strip = frame.strip and self.strip(frame.strip, left + 30, top + HEAD + 8, bottom - 10)
        return replace(
            frame,
            x=left,
            y=top,
            width=right - left,
            height=bottom - top,
            texts=texts,
            pill=pill or None,
            strip=strip or None,
            icons=(),
        )

    def strip(self, strip: Strip, x: float, top: float, bottom: float) -> Strip:
        high = (bottom - top) / len(strip.kinds)
        ticks = tuple(
            Text(x - 5, bottom - high * (int(tick.text.split()[-1]) + 0.5) + 3.5, tick.text, "tick", "end", self.typography.scale)
            for tick in strip.ticks
        )
        width = min(strip.width, strip.height)
        return replace(strip, x=x, y=top, width=width, height=bottom - top, ticks=ticks, level=False)

    def wire(self, link: Link, way: str) -> WirePath:
        points = tuple(map(self.place, way.split()))
        source, target = self.nodes[link.source], self.nodes[link.target]
        style = "main" if link.style == "far" else link.style
        kind = target.kind or source.kind
        ends = source.about.path, target.about.path
        return WirePath(*ends, points, link.port, style, curved=True, partial=link.partial, kind=kind)
