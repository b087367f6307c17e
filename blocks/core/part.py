"""What a part of a model is: one class that declares its fields, ports, weights, forward, cost and look."""

# Annotations are evaluated here, once: as text, pydantic would evaluate those of `Part` anew for each class below it.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from blocks.core.look import BlockIcon, BlockView, Look, Mixture, Piece, plotted
from blocks.core.text import spoken
from blocks.core.weights import Tensor, Weights
from blocks.errors import ComposerError

if TYPE_CHECKING:
    from blocks.core.cost import Cost

Sizes: TypeAlias = Mapping[str, Any]
"""Axis symbols and fields of a block, by name: numbers, or expressions of the model's own axes."""


@dataclass(frozen=True, slots=True)
class Paper:
    """Where a part was published."""

    title: str
    reference: str
    """An arXiv number, a DOI or a venue."""


class BlockError(ComposerError):
    """A mistake that a part reports: a sentence in the user's words, the field or the port that it is about, and the code of the
    error where it has one of its own."""

    def __init__(
        self, message: str, *, field: str | None = None, hint: str = "", code: str = "", port: str = "", index: int | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.field, self.hint, self.code, self.port = message, field, hint, code, port
        self.index = index
        """Which of the values at a port that takes several."""


@dataclass(frozen=True, slots=True)
class PerCall:
    """A slot whose part is computed once per call of the model, in the outermost scope where its inputs live; `forward` receives
    the result as a keyword argument."""

    slot: str
    """The field that holds the part; its `prepare` is called."""
    ports: tuple[str, ...]
    """The holder's ports that `prepare` takes, in order; the part's own `node_refs` follow them."""
    sizes: Mapping[str, str] = None  # type: ignore[assignment]  # replaced below; a frozen default for a mapping
    """What `prepare` needs to know of the holder, as attributes of the part: name to axis expression."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", dict(self.sizes or {}))


Method = TypeVar("Method", bound=Callable[..., Any])


def declaration(method: Method) -> Method:
    """Mark a method of a family, and with it those that override it, as one that declares: it runs in no model, and stands in
    no exported source. The methods of `Part` are such by themselves.
    """
    method.__declares__ = True  # type: ignore[attr-defined]  # functions take attributes
    return method


class Part(BaseModel):
    """A piece of a model. Its direct subclasses are the families (block, norm, activation, mask, positions …);
    an annotation with a family is a slot that any part of the family fills.

    A part with `outputs` can stand as a node of a graph. It computes by `forward`, whose `self` is the module that holds
    fields and weights as attributes, or expands into the nodes of `graph`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, arbitrary_types_allowed=True)

    kind: ClassVar[str] = ""
    """The name recipes use."""
    declared: ClassVar[Mapping[str, Any] | None] = None
    """Its fields, where they are no attributes of the class: those of a block that a recipe defines."""
    paper: ClassVar[Paper | None] = None
    inputs: ClassVar[Mapping[str, str]] = {}
    """Port to type: `{"x": "float[batch, time, dim]", "memory?": …, "xs*": …}`; `?` optional, `*` variadic."""
    outputs: ClassVar[Mapping[str, str]] = {}
    """Port to type, the default first; one with `?` is computed only where something reads it (see `requested_outputs`)."""
    axis_defaults: ClassVar[Mapping[str, str]] = {}
    """The axis that stands for an axis of an unwired port: `{"source": "time"}`."""
    position_inputs: ClassVar[Mapping[str, str]] = {}
    """Optional ports that receive the positions of an axis unless something else is wired: `{"position_ids": "time"}`."""
    shape_only_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs of which only the shape is read, never the numbers."""
    cache_slots: ClassVar[Mapping[str, str]] = {}
    """What the cache holds from call to call while decoding, name to type; it grows along the axis that the model grows."""
    carry: ClassVar[Mapping[str, str]] = {}
    """The recurrent state that each call passes to the next while decoding, name to type; its first axis is the batch. It is
    replaced at each call, so a session with a carry cannot be truncated."""
    mean_outputs: ClassVar[Mapping[str, str]] = {}
    """Outputs that are means over something whose number differs between batches, such as positions, with that number."""
    batch_dependent: ClassVar[bool] = False
    """Whether the rows of a batch depend on one another in training, so that gradient accumulation is not exact."""
    node_refs: ClassVar[Mapping[str, str]] = {}
    """Fields that name nodes (a mask's `m`), each with the type it takes over the axes `batch`, `query`, `key`."""
    graph: ClassVar[str] = ""
    """The expansion, in the language of recipes; its fields are the params, and the first input is `input`."""
    weights: ClassVar[Weights | Callable[..., Weights]] = {}
    """Name to weight; or a method of (sizes, wired ports) that returns the mapping."""
    buffers: ClassVar[Mapping[str, Tensor] | Callable[..., Mapping[str, Tensor]]] = {}
    """What the block keeps from call to call without learning it, such as running means, or a method that returns it: saved with
    the model, moved by no optimizer, started as declared whatever `init` says."""
    forward: ClassVar[Callable[..., Any] | None] = None
    named_by: ClassVar[str] = ""
    """A field that lists the names of the outputs, where `outputs` is empty."""
    broadcasts: ClassVar[bool] = False
    """Whether inputs match by the names of their axes, the missing ones expanded before `forward` sees them."""
    renewed_by: ClassVar[str] = ""
    """The field that names the node whose value it has in the next call, for a state: it also has a field `shape`, no inputs, and
    a method `renew(value)`."""
    vocab_field: ClassVar[str] = ""
    """The field that says how many ids there are."""
    length_field: ClassVar[str] = ""
    """The field that says how many positions there are at most."""
    title: ClassVar[str] = ""
    """What drawings call it; without it, its kind in words."""
    dissolved: ClassVar[bool] = False
    """Whether drawings show the nodes of its `graph` among those around it, without a frame."""

    def __init_subclass__(cls, kind: str = "", **settings: Any) -> None:
        super().__init_subclass__(**settings)

    @classmethod
    def __pydantic_init_subclass__(cls, kind: str = "", **settings: Any) -> None:
        cls.kind = kind

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        """Raise `BlockError` where the fields contradict each other, the sizes or the wired ports."""

    def warn(self, sizes: Sizes, wired: frozenset[str]) -> Sequence[BlockError]:
        """Return warnings: what is sound and probably not meant."""
        return ()

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any] | None:
        """Return the type of each output where `outputs` cannot say it (ports that depend on fields): as text, or as the type of
        an input with other axes."""
        return None

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        """Return plain values by name that `forward` and `cost` need of the input types besides `sizes`."""
        return {}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        """Return the sizes of the axes along which positions depend on each other, other than through a mask or the cache."""
        return ()

    def per_call(self, wired: frozenset[str]) -> Mapping[str, PerCall]:
        """Return keyword arguments of `forward` that are computed once per call of the model, with their slots."""
        return {}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> "Cost | None":
        """Return the FLOPs of one call as expressions of the sizes; None: two per weight of every matrix and position."""
        return None

    def build(self, sizes: Sizes) -> "Call | None":
        """Return the constructor call of a foreign module that equals this part (`nn.Linear`); None: the part's own `forward`."""
        return None

    def inline(self) -> str | None:
        """Return the forward as one Python expression: `{x}` a port or a field, `{xs: + }` all of a variadic port
        joined by ` + `.
        """
        return None

    @classmethod
    def called(cls) -> str:
        """Return what drawings call it."""
        return cls.title or spoken(cls.kind)

    def look(self, view: BlockView) -> Look:
        """Return what it looks like in drawings, from its fields and from its place in a model; drawings add its `icon`."""
        return Look(self.called(), view.settings, "embed" if view.learns else "io")

    def icon(self) -> BlockIcon | None:
        """Return the small picture that stands in its box; None: that of its `look`, if that has one."""
        return None

    def inside(self, view: BlockView) -> Sequence[Piece]:
        """Return what it consists of, in the order in which that computes; nothing for what drawings do not open."""
        return ()

    def mixture(self) -> Mixture | None:
        """Return its experts and its router, for a block that drawings open as such."""
        return None

    def drop_rate(self) -> float | None:
        """Return the probability of a zero, for a block that does nothing else: drawings say it above what it reads."""
        return None


@dataclass(frozen=True, slots=True)
class Call:
    """A constructor call of plain values: `Call("nn.Linear", ("dim", "out"), {"bias": False})`."""

    function: str
    """`nn.Linear`, or `package.module:Name` for a module of one's own."""
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = None  # type: ignore[assignment]  # replaced below

    def __post_init__(self) -> None:
        object.__setattr__(self, "keywords", dict(self.keywords or {}))


class Block(Part):
    """A node of a graph that is none of the narrower families."""


class Expert(Block):
    """A block that can also stand in many copies, of which each computes a part of the rows."""

    grouped: ClassVar[type[Part]]
    """Its grouped form, many copies in one module: the same fields, every parameter with the copies along a first axis, and a
    `forward` that takes the rows sorted by copy and how many each copy has."""


class Norm(Part):
    """Brings what it is given to a common scale; the type does not change."""

    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., dim]"}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["dim"],)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="norm")


class Activation(Part):
    """A curve applied to each number alone."""

    gated_title: ClassVar[str] = ""
    """What a feed-forward layer is called that it gates: `SwiGLU`."""
    approximate: ClassVar[bool] = False
    """Whether it stands in for the curve that `gated_title` is about, so that drawings add its own title."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    @declaration
    def curve(self, x: float) -> float | None:
        """Return what it makes of a number, without torch, which drawings do not load; None where no icon can show it. Learned
        numbers are those that it starts with."""
        return None

    def icon(self) -> BlockIcon | None:
        return plotted(self.curve)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="ffn")


class Builtin(Part):
    """The default of a slot that the holder implements itself, such as the output projection of attention."""


def look_with_icon(part: Part, view: BlockView) -> Look:
    """Return the look of a part with its icon, as drawings show it."""
    look, icon = part.look(view), part.icon()
    return look if icon is None else replace(look, icon=icon)


def is_node(part: type[Part]) -> bool:
    """Return whether a part can be a node of a graph: it has outputs."""
    return bool(part.outputs) or part.output_types is not Part.output_types


def declares(part: type[Part], method: str) -> bool:
    """Return whether a method declares rather than runs: all that `Part` has but `forward`, and what a family marks."""
    if method in vars(Part):
        return method != "forward"
    return any(getattr(vars(owner).get(method), "__declares__", False) for owner in part.__mro__)


def ports(part: type[Part]) -> dict[str, str]:
    """Return the input ports of a part with their marks: `"?"` for an optional one, `"*"` for one that takes several values.

    Examples:
        >>> from blocks.core import ports
        >>> from blocks.primitives.combine import Add
        >>> ports(Add)
        {'xs': '*'}
    """
    return {name.rstrip("?*"): name[len(name.rstrip("?*")) :] for name in part.inputs}
