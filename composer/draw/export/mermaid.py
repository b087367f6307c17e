"""A drawing as Mermaid, which GitHub shows in a README."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from blocks.core.look import Hue
from composer.draw.links import Cluster, LinkGraph, LinkNode
from composer.draw.scene import DASHED, DOTTED, Box, Direction, MergeCircle, Places, Reference, Scene
from composer.draw.style.palette import Palette
from composer.draw.style.themes import THEMES, ThemeName
from composer.printable import printable

DIRECTIONS: dict[Direction, str] = {"up": "BT", "right": "LR"}
ROUND = "(", ")"
SHAPES: Mapping[Places, tuple[str, str]] = {"fewer": ("[/", "\\]"), "more": ("[\\", "/]")}
"""What stands around the text of a box that is narrower above or below, where the data flow up; Mermaid has none for sides."""
"""Where the stream runs to, as Mermaid calls it."""
MAX_LINE_LENGTH = 90
"""Letters of a line: the whole text has a limit that one endless name must not use up."""


def mermaid(scene: Scene, theme: ThemeName = "light") -> str:
    """Return the text of a `.mmd` file. Mermaid lays it out by itself; side inputs and merges keep their colors."""
    return "\n".join(_lines(LinkGraph(scene), THEMES[theme].palette)) + "\n"


def _lines(graph: LinkGraph, palette: Palette) -> Iterator[str]:
    names = {node.key: f"n{number}" for number, node in enumerate(graph.nodes)}
    title = next((text.text for text in graph.scene.texts if text.role == "heading"), graph.scene.name)
    facts = " · ".join(text.text for text in graph.scene.texts if text.role == "facts")
    yield f"%% {' — '.join(_plain(part) for part in (title, facts) if part)}"
    yield f"flowchart {DIRECTIONS[graph.scene.direction]}"
    nodes, clusters = graph.top
    numbers = {id(frame): number for number, frame in enumerate(graph.scene.frames)}
    shapes = SHAPES if graph.scene.direction == "up" else {}
    yield from _held(nodes, clusters, names, numbers, shapes, "  ")
    for link in graph.links:
        arrow = "-.->" if link.partial or link.style in DOTTED | DASHED else "-->"
        port = f'|"{escaped(link.port)}"|' if link.port and link.style != "main" else ""
        yield f"  {names[link.source]} {arrow}{port} {names[link.target]}"
    hues: dict[Hue, list[str]] = {}
    for node in graph.nodes:
        hues.setdefault(_hue(node), []).append(names[node.key])
    for hue, members in hues.items():
        paint = palette.hues[hue]
        yield f"  classDef {hue} fill:{paint.fill},stroke:{paint.stroke},color:{palette.title}"
        yield f"  class {','.join(members)} {hue}"
    if numbers:
        yield f"  classDef frame fill:{palette.frame.fill},stroke:{palette.frame.stroke},color:{palette.detail}"
        yield f"  class {','.join(f'c{number}' for number in numbers.values())} frame"


def _held(
    nodes: tuple[LinkNode, ...],
    clusters: tuple[Cluster, ...],
    names: dict[str, str],
    numbers: dict[int, int],
    shapes: Mapping[Places, tuple[str, str]],
    indent: str,
) -> Iterator[str]:
    for node in nodes:
        text = "<br/>".join(escaped(line) for line in node.lines)
        box = shapes.get(node.thing.places, ROUND) if isinstance(node.thing, Box) else ROUND
        left, right = ("((", "))") if isinstance(node.thing, MergeCircle) else box
        yield f'{indent}{names[node.key]}{left}"{text}"{right}'
    for cluster in clusters:
        yield f'{indent}subgraph c{numbers[id(cluster.frame)]}["{escaped(cluster.header) or " "}"]'
        yield from _held(cluster.nodes, cluster.clusters, names, numbers, shapes, indent + "  ")
        yield f"{indent}end"


def _hue(node: LinkNode) -> Hue:
    match node.thing:
        case Box(hue=hue):
            return hue
        case MergeCircle():
            return "merge"
        case Reference():
            return "io"


def _plain(text: str) -> str:
    """Return a text in a comment, which ends with its line and must not look like a directive."""
    return re.sub(r"[{}%]|\s+", " ", printable(text))[: 4 * MAX_LINE_LENGTH]


def escaped(text: str) -> str:
    """Return a text that Mermaid and the page around it show as it is: everything but letters and harmless
    signs by its number.
    """
    text = printable(text)
    short = text if len(text) <= MAX_LINE_LENGTH else text[: MAX_LINE_LENGTH - 1] + "…"
    return "".join(sign if sign.isalnum() or sign in " .,·×→+-/=()…−√‖Σ\u00a0" else f"#{ord(sign)};" for sign in short)
