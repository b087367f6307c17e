"""The appearance of a part in drawings: its title, facts, color and icon, and the pieces of its inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Hue: TypeAlias = Literal["io", "embed", "pos", "norm", "attn", "cross", "ffn", "moe", "rec", "merge", "loss", "state"]
"""The color of a box, by the kind of part."""
Sign: TypeAlias = Literal["+", "×", "‖"]
"""The sign of a merge, drawn in a circle."""
CURVE_PIECES = 24
"""Line segments of a curve, enough to look smooth in an icon."""
CURVE_REACH = 3.0
"""A curve is drawn from minus this value to plus this value, where activations differ visibly."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A mask as a square of cells: a row for each query, a column for each key, true where it may attend."""

    seen: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points of the unit square, y upwards."""

    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class LoopIcon:
    """An arrow that leads back, for step-by-step computation."""


@dataclass(frozen=True, slots=True)
class ProductSide:
    """A vector of a product, which an edge of the picture stands for."""

    value: str
    """What the formula calls it."""
    axis: str
    """What the axis along it is called."""
    place: int
    """Which axis of the value that is."""
    length: str = ""
    """How long it is; nothing where that is not known."""
    appended: bool = False
    """Whether its last entry is a 1 that a node appends."""


@dataclass(frozen=True, slots=True)
class ProductIcon:
    """All products of the entries of vectors: a grid of those of two vectors, a cube of those of three."""

    sides: tuple[ProductSide, ...]

    @property
    def is_measured(self) -> bool:
        """Whether the lengths of all vectors are known, so that a larger picture can tell them."""
        return all(side.length for side in self.sides)


@dataclass(frozen=True, slots=True)
class TableIcon:
    """Rows of cells, for a table of which rows are picked or compared, such as a codebook or a memory."""


BlockIcon: TypeAlias = Cells | Curve | LoopIcon | ProductIcon | TableIcon
"""The small picture in a box."""


def plotted(formula: Callable[[float], float | None]) -> Curve | None:
    """Return the curve of a formula, scaled to the unit square; None if the formula is undefined somewhere."""
    places = [2 * step / CURVE_PIECES - 1 for step in range(CURVE_PIECES + 1)]
    heights = [one for place in places if (one := formula(CURVE_REACH * place)) is not None]
    if len(heights) < len(places):
        return None
    low, height = min(heights), max(heights) - min(heights) or 1.0
    return Curve(tuple(((place + 1) / 2, (one - low) / height) for place, one in zip(places, heights, strict=True)))


@dataclass(frozen=True, slots=True)
class SideLook:
    """A note beside a block about a part that acts on it, such as rotary positions or an added table."""

    name: str
    """The name of the field or parameter, relative to the block's path."""
    title: str
    facts: tuple[str, ...] = ()
    hue: Hue = "pos"
    learned: bool = False
    """Whether the block's parameters belong to this part."""

    @property
    def words(self) -> str:
        """Title and facts as one text: `RoPE θ 10 000`."""
        return " ".join([self.title, *self.facts]).replace(" = ", " ")


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of a block.

    Examples:
        >>> from blocks.core import Look
        >>> Look("Feed-forward", ("768 → 3072 → 768",), "ffn").detail
        '768 → 3072 → 768'
    """

    title: str
    facts: tuple[str, ...] = ()
    """Lines below the title, the most important first."""
    hue: Hue = "io"
    icon: BlockIcon | None = None
    mask: str = ""
    """The mask in words."""
    known_mask: str = ""
    """A word for a mask whose picture suffices; empty if the text is needed."""
    causal: bool = False
    """Whether the mask, or a part of it, hides later positions."""
    sides: tuple[SideLook, ...] = ()
    sign: Sign | None = None
    """The sign of a block that is drawn as a circle."""
    double: bool = False
    """Whether it takes a second stream, shown by a second border."""
    low: bool = False
    """Whether it computes nothing but only puts numbers elsewhere, such as a transposition: drawings have it as a low box, with
    all that it says in one line.
    """
    number: str = ""
    """The one number that all of what it gives is, as for zeros: a recurrence that starts with it says that."""
    appends: tuple[int, float] | None = None
    """Along which axis, counted from the last one, it puts a single number behind what it reads, and which; none where it does
    something else."""
    quiet: bool = False
    """Whether drawings leave it out, since it acts only in training."""
    short: str = ""
    """An abbreviation for the overview: `GQA`."""
    brief: tuple[str, ...] = ()
    """It in a few letters for a box around it, with the numbers that tell it from others of its kind, from the fullest to the
    shortest: `GQA 32 Q, 8 KV`, `GQA`. None for what such a box names only where there is room.
    """
    operation: tuple[str, ...] = ()
    """What it does without parameters that makes a box around it special, in the same way: `upsample 2`, `softmax`."""
    formula: str = ""
    """What a short formula computes, for a box around it, in which a dot with spaces stands between blocks: `x·σ(gate)`."""
    after: str = ""
    """A note about what training does to its output, such as dropout."""
    unsaid: tuple[str, ...] = ()
    """Facts that need no words because they are usual, `dilation 1`, unless other passes of a repeat differ in them."""

    @property
    def spelled(self) -> Look:
        """The look with its sign in the title, for a box instead of a circle."""
        if self.sign is None or self.sign == "‖":  # not every font has this one
            return self
        return replace(self, title=f"{self.sign} {self.title.lower()}")

    @property
    def detail(self) -> str:
        """All facts in one line."""
        return " · ".join(self.facts)


@dataclass(frozen=True, slots=True)
class BlockView:
    """The place of a block in a model, on which its look may depend besides its fields."""

    name: str
    """The name of the node."""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """Axes of the ports and numeric fields by name: numbers, or expressions of the model's axes."""
    settings: tuple[str, ...] = ()
    """The fields that are set, in words: `heads 12`, `mask causal`, `no bias`."""
    edges: Mapping[str, str] = field(default_factory=dict)
    """The name of the node or input that each wired port reads."""
    optional: frozenset[str] = frozenset()
    """Ports that read an optional input."""
    learns: bool = False
    """Whether the block has parameters of its own, outside of its slots."""
    modules: Mapping[str, tuple[int, int, bool]] = field(default_factory=dict)
    """Its linear maps: name to inputs, outputs and whether there is a bias."""
    slots: Mapping[str, Look | None] = field(default_factory=dict)
    """The look of the part in each slot with a module, by the module's name; None for a graph."""
    head: str = ""
    """The title of a linear map that computes the model's logits: `LM head`."""
    axes: tuple[str, ...] = ()
    """What the axes of the first value are called that it reads, an empty word for each of which that is not certain."""
    gives: tuple[str, ...] = ()
    """How long the axes of what it gives are, as drawings tell it, for a block some of whose values lack some of them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the inside of a block."""

    name: str
    look: Look
    reads: tuple[tuple[str, str], ...]
    """Names of pieces, `@piece` for what one gave in the step before, or `$port` of the block, each with the port that reads it,
    which is empty for the stream.
    """
    parameters: tuple[str, ...] = ()
    """The parameters of the block that belong to this piece: names of maps or slots."""
    gives: tuple[str, ...] = ()
    """The outputs of the block that it computes."""
    stream_ports: tuple[str, ...] = ()
    """Named ports that read the stream: queries, keys and values."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A loop inside of a block, which computes one step after another."""

    name: str
    """The name of the loop in its layer."""
    title: str
    pieces: tuple[Piece, ...]
    """The pieces of a step."""
    axis: str
    """The axis of the steps."""
    layer: int = 0
    """The number of the layer, where several are stacked."""
    beside: bool = False
    """Whether another loop of its layer is beside it, whose output is concatenated with its own."""
    after: str = ""
    """A note about what training does to the output of the layer."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """The parts of a block that is drawn as experts side by side, with a router in front of them."""

    experts: int
    """Number of experts."""
    visits: str
    """Number of visits to experts in a sequence, as an expression of `time` and `experts`."""
    facts: tuple[str, ...]
    """How experts are selected."""
    maps: tuple[str, ...]
    """The router's linear maps, by their names in the block."""
    expert: str = "expert"
    """The slot of the expert."""
    shared: str = "shared"
    """The slot of the shared expert."""
