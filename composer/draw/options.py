"""Options of a drawing, which are the keys of a figure sheet too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias, TypedDict

from composer.draw.arrange.arrangement import Unarrangeable
from composer.draw.arrange.shares import Coloring
from composer.draw.build.levels import PassRange, passes
from composer.draw.scene import Direction
from composer.draw.style.themes import ThemeName

Engine: TypeAlias = Literal["structured", "dot"]
"""What lays a drawing out: this package, by the structure of the recipe, or Graphviz."""


class Options(TypedDict, total=False):
    """Options of a drawing."""

    direction: Direction
    """Where the stream runs to: `up` as in papers, or to the `right`, for slides and landscape pages."""
    theme: ThemeName
    """`auto` follows the reader's screen, `slide` has larger text, thicker lines and no background."""
    open: Sequence[str]
    """Paths of nodes that are shown from inside."""
    details: Sequence[str]
    """Which closed blocks are drawn from inside beside the figure, by their paths or the names of blocks of the recipe; `auto`
    chooses up to three that few words do not tell, as the page has room for them, and `none` draws none."""
    unroll: bool | str | Sequence[str] | Mapping[str, str]
    """Whether every pass of all repeats is drawn; or the paths of the repeats of which every pass is; or by these paths which
    passes are, `0:2` or `-1:`, while the others are one box."""
    highlight: Sequence[str]
    """Nodes that stay bright while all else fades."""
    width: str
    """Of the picture, with a unit: `240pt`."""
    title: str
    """What stands at the top in place of the recipe's name."""
    params: bool
    """Whether boxes show their numbers of parameters."""
    shapes: bool
    """Whether shapes stand beside the wires."""
    engine: Engine
    """What lays it out: `structured`, by the structure of the recipe, or Graphviz's `dot`."""
    color: Coloring
    """What colors tell: kinds of blocks, or as shades a node's share of the parameters, of the FLOPs or of the cache, or whether
    it is trained."""
    legend: bool
    """Whether a legend below the drawing explains the colors."""
    caption: str
    """A text below the drawing."""
    flops: bool
    """Whether boxes show their FLOPs."""
    cache: bool
    """Whether boxes show what they cache for each token."""
    names: bool
    """Whether boxes show the names of their nodes."""
    dropout: bool
    """Whether dropout is shown."""
    optional_inputs: bool
    """Whether inputs that may be left out are named at what reads them."""
    hide: Sequence[str]
    """Nodes and inputs that are left out; what reads a node reads what it reads."""
    merge: Mapping[str, Sequence[str]]
    """By the title of each box, the nodes that it stands for."""
    break_after: Sequence[str]
    """Nodes above which a column ends and the next one begins."""
    labels: Mapping[str, str]
    """Titles of nodes, headers of frames, and words for inputs, by their paths."""


ALL_PASSES = ":"
"""Every pass of a repeat, as a range of passes."""

AUTO, NONE = "auto", "none"
"""Details as a page has room for them, and none."""

DEFAULTS: Options = {
    "direction": "up",
    "theme": "light",
    "open": (),
    "details": (AUTO,),
    "unroll": False,
    "highlight": (),
    "width": "",
    "title": "",
    "params": True,
    "shapes": True,
    "engine": "structured",
    "color": "kind",
    "legend": False,
    "caption": "",
    "flops": False,
    "cache": False,
    "names": True,
    "dropout": True,
    "optional_inputs": True,
    "hide": (),
    "merge": MappingProxyType({}),
    "labels": MappingProxyType({}),
    "break_after": (),
}
"""The options that are not given."""


def passes_of(options: Options) -> tuple[PassRange, ...]:
    """Return which passes are drawn by themselves where not all are.

    Raises:
        Unarrangeable: if something else stands there.
    """
    found = []
    match options["unroll"]:
        case bool():
            return ()
        case str(path):
            ranges: Mapping[str, str] = {path: ALL_PASSES}
        case Mapping() as ranges:
            pass
        case paths:
            ranges = dict.fromkeys(paths, ALL_PASSES)
    for path, text in ranges.items():
        if (one := passes(path, text)) is None:
            raise Unarrangeable("unroll", path, f"`{text}` names no passes", "write a range such as 0:2, -1: or 3")
        found.append(one)
    return tuple(found)
