"""What a part looks like in drawings: its title, the facts below it, its color and its icon, and what it consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Hue: TypeAlias = Literal["io", "embed", "pos", "norm", "attn", "cross", "ffn", "moe", "rec", "merge", "loss"]
"""What a part is, as far as colors tell."""
Sign: TypeAlias = Literal["+", "×", "‖"]
"""What a merge is drawn as, in a circle."""
CURVE_PIECES = 24
"""Straight pieces of a curve."""
CURVE_REACH = 3.0
"""A curve is drawn from minus to plus this."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A mask as a square of cells: a row for each query, a column for each key, true where it may look."""

    seen: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points of the unit square, y upwards."""

    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class LoopIcon:
    """An arrow that leads back: what is computed step by step."""


BlockIcon: TypeAlias = Cells | Curve | LoopIcon
"""The small picture in a box."""


def plotted(formula: Callable[[float], float | None]) -> Curve | None:
    """Return the curve of a formula, scaled to the unit square; None where the formula gives no number."""
    places = [2 * step / CURVE_PIECES - 1 for step in range(CURVE_PIECES + 1)]
    heights = [one for place in places if (one := formula(CURVE_REACH * place)) is not None]
    if len(heights) < len(places):
        return None
    low, height = min(heights), max(heights) - min(heights) or 1.0
    return Curve(tuple(((place + 1) / 2, (one - low) / height) for place, one in zip(places, heights, strict=True)))


@dataclass(frozen=True, slots=True)
class SideLook:
    """What stands beside a block and acts on it: rotary positions, a table that is added."""

    name: str
    """Of the field or the parameter, below the block's path."""
    title: str
    facts: tuple[str, ...] = ()
    hue: Hue = "pos"
    learned: bool = False
    """Whether the block's parameters are here."""

    @property
    def words(self) -> str:
        """The same in a few words: `RoPE θ 10 000`."""
        return " ".join([self.title, *self.facts]).replace(" = ", " ")


@dataclass(frozen=True, slots=True)
class Look:
    """What a block is called, and shown as."""

    title: str
    facts: tuple[str, ...] = ()
    """What stands below the title, the most important first."""
    hue: Hue = "io"
    icon: BlockIcon | None = None
    mask: str = ""
    """The mask in words."""
    known_mask: str = ""
    """A word for a mask that its picture already tells; empty where the words are needed."""
    sides: tuple[SideLook, ...] = ()
    sign: Sign | None = None
    """For what is drawn as a circle."""
    double: bool = False
    """Whether it takes a second stream, which a second border shows."""
    quiet: bool = False
    """Whether a picture of the architecture leaves it out: it does nothing but in training."""
    short: str = ""
    """A few letters for the overview: `GQA`."""
    after: str = ""
    """What happens in training to what it gives."""

    @property
    def spelled(self) -> Look:
        """The same for a box, where there is no room for a circle."""
        if self.sign is None or self.sign == "‖":  # not every font has this one
            return self
        return replace(self, title=f"{self.sign} {self.title.lower()}")

    @property
    def detail(self) -> str:
        """All facts in one line."""
        return " · ".join(self.facts)


@dataclass(frozen=True, slots=True)
class BlockView:
    """What a look may depend on beside the part's own fields: the place that the part has in a model."""

    name: str
    """Of the node."""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """Axes of the ports and numeric fields by name: numbers, or expressions of the model's own axes."""
    settings: tuple[str, ...] = ()
    """The fields that are set, in words: `heads 12`, `mask causal`, `no bias`."""
    edges: Mapping[str, str] = field(default_factory=dict)
    """What each wired port reads, by the name of the node or input."""
    optional: frozenset[str] = frozenset()
    """Ports that read what may be left out."""
    learns: bool = False
    """Whether the block has parameters of its own, outside of its slots."""
    modules: Mapping[str, tuple[int, int, bool]] = field(default_factory=dict)
    """Its linear maps: name to inputs, outputs and whether there is a bias."""
    slots: Mapping[str, Look | None] = field(default_factory=dict)
    """The look of what fills each slot with a module, by the module's name; None for a graph."""
    head: str = ""
    """What a map is called that gives the model's logits: `LM head`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One of those that a block consists of."""

    name: str
    look: Look
    reads: tuple[tuple[str, str], ...]
    """Names of pieces, or `$port` of the block, each with the port that it goes to; the stream has none."""
    parameters: tuple[str, ...] = ()
    """Of the block, those that are this piece's: names of maps or of slots."""
    gives: tuple[str, ...] = ()
    """The block's outputs that it makes."""
    stream_ports: tuple[str, ...] = ()
    """Ports that read the stream although they are named: queries, keys and values."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """How a block is drawn that opens as experts side by side, with a router in front of them."""

    experts: int
    """How many there are."""
    visits: str
    """How many visits to experts there are in a sequence, as an expression of `time` and `experts`."""
    facts: tuple[str, ...]
    """How experts are chosen."""
    maps: tuple[str, ...]
    """The router's linear maps, by their names in the block."""
    expert: str = "expert"
    """The slot of what each of them computes."""
    shared: str = "shared"
    """The slot of what every position visits."""
