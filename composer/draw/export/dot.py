"""A drawing as a DOT file in which everything has its place: `neato -n2` draws it, and any program for graphs reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import graphviz

from blocks.core.look import Cells
from composer.draw.export.paint import cell_ink
from composer.draw.export.polylines import CORNER, shortened
from composer.draw.export.svg import n
from composer.draw.geometry import Point, Text
from composer.draw.graphviz_programs import INCH, quoted
from composer.draw.links import Cluster, Link, LinkGraph, LinkNode
from composer.draw.scene import DASHED, DOTTED, RADIUS, UPRIGHT, Box, MergeCircle, Reference, Scene, Side, Strip
from composer.draw.style.themes import THEMES, WIDTHS, Theme, ThemeName, wire_color
from composer.draw.style.typography import Typography
from composer.printable import markup

FONT = "Arial"
"""Not Helvetica, which Graphviz takes to be narrower than it draws it."""


def dot(scene: Scene, theme: ThemeName = "light") -> str:
    """Return the text of a `.dot` file. Beside the nodes of the graph, dots, pills and free texts are nodes
    of the class `mark`.
    """
    return _Writer(scene, THEMES[theme]).text()


class _Writer:
    def __init__(self, scene: Scene, theme: Theme) -> None:
        self.scene, self.palette = scene, theme.palette
        self.graph = LinkGraph(scene)
        self.stroke = theme.stroke
        self.out = graphviz.Digraph(
            "model",
            engine="neato",
            graph_attr={
                "bb": f"0,0,{n(scene.width)},{n(scene.height)}",
                "bgcolor": theme.palette.paper if theme.paper else "transparent",
                "fontname": FONT,
                "pad": "0.2",
                "notranslate": "true",
                "outputorder": "edgesfirst",
            },
            node_attr={"fontname": FONT, "fixedsize": "true", "label": "", "margin": "0"},
            edge_attr={"fontname": FONT, "arrowsize": "0.7"},
        )

    def text(self) -> str:
        nodes, clusters = self.graph.top
        self.held(self.out, nodes, clusters)
        for link in self.graph.ways:
            self.link(link)
        for number, spot in enumerate(self.scene.dots):
            size = {"width": f"{5.2 / INCH:.3f}", "height": f"{5.2 / INCH:.3f}"}
            look = {"shape": "circle", "style": "filled", "color": self.palette.wire}
            self.mark(f"dot {number}", {"pos": self.at(spot.x, spot.y)} | size | look)
        nodes = {id(node.thing) for node in self.graph.nodes}
        references = [reference.text for reference in self.scene.references if id(reference) not in nodes]
        strips = [tick for frame in self.scene.frames if frame.strip for tick in frame.strip.ticks]
        for number, text in enumerate([*self.scene.texts, *references, *strips]):
            self.free(f"text {number}", text)
        return str(self.out.source)

    def at(self, x: float, y: float) -> str:
        """Return a place, counted from the lower left corner as Graphviz does."""
        return f"{n(x)},{n(self.scene.height - y)}"

    # -- nodes and clusters

    def held(self, out: graphviz.Digraph, nodes: Sequence[LinkNode], clusters: Sequence[Cluster]) -> None:
        for cluster in clusters:
            self.cluster(out, cluster)
        for node in nodes:
            match node.thing:
                case Box():
                    self.box(out, node, node.thing)
                case MergeCircle():
                    self.merge(out, node, node.thing)
                case Reference():
                    self.by_name(out, node, node.thing)

    def cluster(self, out: graphviz.Digraph, cluster: Cluster) -> None:
        frame, number = cluster.frame, self.graph.number(cluster.frame)
        low, high = self.at(frame.x, frame.y + frame.height), self.at(frame.x + frame.width, frame.y)
        with out.subgraph(name=f"cluster_{number}") as inner:
            paint = self.palette.frame
            inner.attr(
                bb=f"{low},{high}",
                style="rounded,filled",
                fillcolor=paint.fill,
                color=paint.stroke,
                penwidth=f"{1.2 * self.stroke:g}",
                tooltip=quoted(frame.about.tip),
            )
            self.held(inner, cluster.nodes, cluster.clusters)
        if frame.strip is not None:
            self.strip(number, frame.strip)
        for index, text in enumerate(frame.texts):
            self.free(f"header {number} {index}", text)
        if frame.pill is not None:
            area = frame.pill.area.grown(9)
            pill = {"shape": "box", "style": "rounded,filled", "fillcolor": self.palette.pill.fill, "penwidth": "0"}
            size = {"width": f"{(area.right - area.left) / INCH:.3f}", "height": f"{20 / INCH:.3f}"}
            place = {"pos": self.at(frame.pill.x, frame.pill.y - 4.5)}
            label = {"label": self.lines([frame.pill], self.palette.pill.stroke)}
            self.mark(f"pill {number}", pill | size | place | label)

    def strip(self, number: int, strip: Strip) -> None:
        """Draw a cell for each layer, the first one below."""
        high = strip.height / len(strip.kinds)
        size = {"width": f"{strip.width / INCH:.3f}", "height": f"{high / INCH:.3f}"}
        for index, kind in enumerate(strip.kinds):
            place = {"pos": self.at(strip.x + strip.width / 2, strip.y + strip.height - high * (index + 0.5))}
            paint = self.palette.hues["attn"]
            ink = cell_ink(self.palette, kind)
            fill = ink.color if ink.cover == 1 else f"{ink.color}{round(255 * ink.cover):02X}"
            look = {"shape": "box", "style": "filled", "fillcolor": fill, "color": paint.stroke, "penwidth": "0.7"}
            self.mark(f"layer {number} {index}", place | size | look)

    def box(self, out: graphviz.Digraph, node: LinkNode, box: Box) -> None:
        paint = self.palette.hues[box.hue]
        second = 8 if box.double else 0  # Graphviz draws another border outside
        out.node(
            quoted(node.key),
            label=self.label(box),
            **polygon(box),
            style="rounded,filled,dashed" if box.dashed else "rounded,filled",
            pos=self.at(box.x + box.width / 2, box.y + box.height / 2),
            width=f"{(box.width - second) / INCH:.3f}",
            height=f"{(box.height - second) / INCH:.3f}",
            fillcolor=paint.fill,
            color=paint.stroke,
            penwidth=f"{1.4 * self.stroke:g}",
            peripheries="2" if box.double else "1",
            tooltip=quoted(box.about.tip),
        )

    def label(self, box: Box) -> str:
        """Return the title and the detail in the middle, the mask left of them, name and parameters right of them, rows below."""
        slots = [text for text in box.texts if text.role in ("name", "params")]
        rest = [text for text in box.texts if text.role not in ("name", "params")]
        mask = next((icon.icon for icon in box.icons if isinstance(icon.icon, Cells)), None)
        wide = max([34.0 if mask else 0.0, *(Typography().width(text.text, "params") + 2 for text in slots)])
        side = f'<TD WIDTH="{wide:.0f}" ALIGN="{{}}">{{}}</TD>' if wide else ""
        left = side.format("LEFT", self.mask(mask, self.palette.hues[box.hue].stroke) if mask else "")
        right = side.format("RIGHT", self.lines(slots)[1:-1] if slots else "")
        beside = box.slant.by if box.slant and box.slant.toward in UPRIGHT else 0.0
        free = box.width - 18 - 2 * (wide + beside)
        middle = f'<TD WIDTH="{max(free, 1):.0f}">{self.lines(rest)[1:-1]}</TD>'
        return f'<<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>{left}{middle}{right}</TR></TABLE>>'

    def lines(self, texts: Sequence[Text], color: str = "") -> str:
        """Return the texts below each other, as a label."""
        said = []
        for text in texts:
            font = text.font
            ink = color or (self.palette.title if font.bold else self.palette.muted)
            inner = markup(text.text)
            inner = f"<B>{inner}</B>" if font.bold else inner
            said.append(f'<FONT POINT-SIZE="{font.size:g}" COLOR="{ink}">{inner}</FONT>')
        return f"<{'<BR/>'.join(said)}>"

    def mask(self, cells: Cells, color: str) -> str:
        """Return a mask as a table of cells."""
        rows = "".join(
            f"<TR>{''.join(self.cell(color if seen else self.palette.paper) for seen in row)}</TR>" for row in cells.seen
        )
        size = 'FIXEDSIZE="TRUE" WIDTH="34" HEIGHT="34"'
        return f'<TABLE {size} BORDER="1" COLOR="{color}" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">{rows}</TABLE>'

    def cell(self, color: str) -> str:
        return f'<TD FIXEDSIZE="TRUE" WIDTH="4" HEIGHT="4" BGCOLOR="{color}"></TD>'

    def merge(self, out: graphviz.Digraph, node: LinkNode, merge: MergeCircle) -> None:
        paint = self.palette.hues["merge"]
        out.node(
            quoted(node.key),
            label=f'<<FONT POINT-SIZE="14" COLOR="{paint.stroke}">{merge.sign}</FONT>>',
            shape="circle",
            style="filled",
            pos=self.at(merge.x, merge.y),
            width=f"{2 * RADIUS / INCH:.3f}",
            height=f"{2 * RADIUS / INCH:.3f}",
            fillcolor=paint.fill,
            color=paint.stroke,
            tooltip=quoted(merge.about.tip),
        )

    def by_name(self, out: graphviz.Digraph, node: LinkNode, reference: Reference) -> None:
        """Write an input or output that is only a name on the page."""
        out.node(quoted(node.key), **self.placed(reference.text), label=self.lines([reference.text]), shape="plaintext")

    # -- wires and what else is on the page

    def link(self, link: Link) -> None:
        color = wire_color(self.palette, link.style)
        dash = "dotted" if link.style in DOTTED else "dashed" if link.partial or link.style in DASHED else "solid"
        *before, last = link.wires
        pieces = [wire.points if wire.curved else cubic(wire.points) for wire in before]
        pieces.append(shortened(last.points) if last.curved else cubic(shortened(last.points)))
        controls = joined(pieces)
        spline = " ".join(self.at(*point) for point in controls)
        self.out.edge(
            quoted(link.source),
            quoted(link.target),
            pos=f"e,{self.at(*last.points[-1])} {spline}",
            color=color,
            style=dash,
            penwidth=f"{WIDTHS[link.style] * self.stroke:g}",
            tooltip=quoted(link.port.strip(", ")),
        )

    def free(self, name: str, text: Text) -> None:
        self.mark(name, self.placed(text) | {"label": self.lines([text]), "shape": "plaintext"})

    def placed(self, text: Text) -> dict[str, str]:
        """Return where a text is."""
        area = text.area
        room = text.font.size * 1.6  # what Graphviz wants around a line, which nothing shows
        size = {"width": f"{(area.right - area.left + room) / INCH:.3f}", "height": f"{room / INCH:.3f}"}
        return {"pos": self.at((area.left + area.right) / 2, (area.top + area.bottom) / 2), **size}

    def mark(self, name: str, attributes: dict[str, str]) -> None:
        self.out.node(name, **{"class": "mark"}, **attributes)


TURNS: Mapping[Side, int] = {"top": 0, "left": 90, "bottom": 180, "right": 270}
"""By how many degrees a box that is narrower above is turned, against the clock, to be so at another side."""


def polygon(box: Box) -> dict[str, str]:
    """Return the shape of a box, which may be narrower at a side."""
    if box.slant is None:
        return {"shape": "box"}
    least = 1 - 2 * box.slant.by / (box.width if box.slant.toward in UPRIGHT else box.height)  # of the wider side
    share = (1 - least) / (1 + least)
    distortion = -share / sqrt(1 - share * share)  # Graphviz stretches both ends by the length of (distortion, 1)
    turn = TURNS[box.slant.toward]
    return {"shape": "polygon", "sides": "4", "distortion": f"{distortion:.4f}"} | ({"orientation": str(turn)} if turn else {})


def joined(pieces: Sequence[Sequence[Point]]) -> list[Point]:
    """Return the control points of several curves one after the other as those of one."""
    found = list(pieces[0])
    for piece in pieces[1:]:
        gap = [] if found[-1] == piece[0] else [found[-1], piece[0], piece[0]]
        found += [*gap, *piece[1:]]
    return found


def cubic(points: Sequence[Point]) -> list[Point]:
    """Return a line with round corners as control points, of which each three lead to the next place."""
    found: list[Point] = [points[0]]

    def straight(end: Point) -> None:
        (x, y), (a, b) = found[-1], end
        found.extend([(x + (a - x) / 3, y + (b - y) / 3), (x + 2 * (a - x) / 3, y + 2 * (b - y) / 3), end])

    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        enters, leaves = _toward(corner, before), _toward(corner, after)
        straight(enters)
        found += [_toward(corner, before, 1 / 3), _toward(corner, after, 1 / 3), leaves]
    straight(points[-1])
    return found


def _toward(corner: Point, other: Point, share: float = 1.0) -> Point:
    """Return a place near a corner, on the way to another."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = abs(dx) + abs(dy)
    step = share * min(CORNER, length / 2) / length if length else 0
    return corner[0] + dx * step, corner[1] + dy * step
