"""The base of all parts: a class that declares fields, ports, weights, forward, cost and look."""

# No `from __future__ import annotations`: pydantic would evaluate the annotations of `Part` again for every subclass.

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from blocks.core.look import BlockIcon, BlockView, Look, Mixture, Piece, Steps, plotted
from blocks.core.per_class import per_class
from blocks.core.text import spoken
from blocks.core.weights import Tensor, Units, Weights
from blocks.errors import ComposerError

if TYPE_CHECKING:
    from blocks.core.cost import Cost

Sizes: TypeAlias = Mapping[str, Any]
"""Axis symbols and fields of a block by name: numbers, or expressions of the model's axes."""


@dataclass(frozen=True, slots=True)
class Paper:
    """The publication of a part."""

    title: str
    reference: str
    """An arXiv number, a DOI or a venue."""


class BlockError(ComposerError):
    """A mistake that a part reports: a message in the user's words, the field or port concerned, and optionally an error code."""

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        hint: str = "",
        code: str = "",
        port: str = "",
        index: int | None = None,
        place: Any = None,
    ) -> None:
        super().__init__(message)
        self.message, self.field, self.hint, self.code, self.port = message, field, hint, code, port
        self.index = index
        """Index of the value or of the item, for a port that takes several and a field with a list."""
        self.place = place
        """The place of the part of a formula that is concerned, which the formula has from the composer."""


@dataclass(frozen=True, slots=True)
class PerCall:
    """A slot whose part is computed once per call of the model, in the outermost graph that has its inputs; `forward` receives
    the result as a keyword argument."""

    slot: str
    """The field of the slot; the `prepare` of its part is called."""
    ports: tuple[str, ...]
    """The block's ports that are passed to `prepare`, in order, followed by the part's own `node_refs`."""
    sizes: Mapping[str, str] = None  # type: ignore[assignment]  # replaced below; a frozen default for a mapping
    """Sizes of the block that `prepare` needs, set as attributes of the part: name to axis expression."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", dict(self.sizes or {}))


_NAME = re.compile(r"[A-Za-z_]\w*")
Method = TypeVar("Method", bound=Callable[..., Any])


def declaration(method: Method) -> Method:
    """Mark a method of a family, and methods that override it, as a declaration, which never runs in a model and is not exported.
    All methods of `Part` but `forward` are declarations without this mark.

    Args:
        method: The method.
    """
    method.__declares__ = True  # type: ignore[attr-defined]  # functions take attributes
    return method


class Part(BaseModel):
    """A piece of a model. Its direct subclasses are the families (block, norm, activation, mask, positions …); a field annotated
    with a family is a slot, which any part of the family can fill.

    A part with `outputs` can be a node of a graph. It computes by `forward`, whose `self` is a module with the fields and weights
    as attributes, or expands into the nodes of `graph`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, arbitrary_types_allowed=True)

    kind: ClassVar[str] = ""
    """The name in recipes."""
    declared: ClassVar[Mapping[str, Any] | None] = None
    """The fields of a block that a recipe defines, which are not attributes of the class."""
    paper: ClassVar[Paper | None] = None
    example: ClassVar[str] = ""
    """A recipe that uses it, for the reference: its `inputs`, `graph` and whatever else it needs; in the example of a family,
    `<kind>` stands for the name."""
    inputs: ClassVar[Mapping[str, str]] = {}
    """Port to type: `{"x": "float[batch, time, dim]", "memory?": …, "xs*": …}`; `?` optional, `*` variadic."""
    outputs: ClassVar[Mapping[str, str]] = {}
    """Port to type, the default first; one with `?` is computed only if something reads it (see `requested_outputs`)."""
    axis_defaults: ClassVar[Mapping[str, str]] = {}
    """The axis that replaces an axis of an unwired port: `{"source": "time"}`."""
    position_inputs: ClassVar[Mapping[str, str]] = {}
    """Optional ports that receive the positions of an axis unless something else is wired: `{"position_ids": "time"}`."""
    shape_only_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs of which only the shape is read, never the values."""
    training_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs that are read in training alone. What a model computes in evaluation, and so the text that it generates, does not
    depend on them: they may look ahead."""
    second_stream_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs that are usually another stream than the first input, such as the memory of cross-attention; drawings give their
    wires a color of their own."""
    cache_slots: ClassVar[Mapping[str, str]] = {}
    """Tensors that the cache keeps from call to call while decoding, name to type; they grow along the model's growing axis."""
    masked_slots: ClassVar[Mapping[str, str]] = {}
    """Slots of `cache_slots` of whose rows a query reads only those that a mask lets it see, each with the field that holds the
    mask: `{"k": "mask"}`. Behind a window, a session drops the rows that no later query sees."""
    kept_axes: ClassVar[tuple[str, ...]] = ()
    """Axes whose rows of earlier calls `cache_slots` keep, so that outputs with such an axis have all rows so far."""
    so_far_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs with a kept axis that may have all rows so far, which are then not cached, in place of the rows of the call."""
    carry: ClassVar[Mapping[str, str]] = {}
    """The recurrent state that each call passes to the next while decoding, name to type; its first axis is the batch. It is
    replaced at each call, so a session with a carry cannot be truncated."""
    causal_forms: ClassVar[tuple[str, ...]] = ()
    """What to use in its place where a text is generated along one of the `mixed_axes`, for the hint of the error: a setting or
    another block that looks back only, as in `("`causal: true`",)`."""
    other_choices: ClassVar[Mapping[str, str]] = {}
    """Fields that take one of a few words, each with what to write for a word that it lacks, for the hint of the error."""
    mean_outputs: ClassVar[Mapping[str, str]] = {}
    """Outputs that are means over a number of terms that differs between batches, such as positions, with that number."""
    batch_dependent: ClassVar[bool] = False
    """Whether the rows of a batch depend on one another in training, so that gradient accumulation is not exact."""
    is_primitive: ClassVar[bool] = False
    """Whether it says what is computed and not what for, such as a sum, so that drawings add the name of its node."""
    is_random: ClassVar[bool] = False
    """Whether it draws random numbers in evaluation too, unless a session is open, by which `cache` is set."""
    is_ordered: ClassVar[bool] = False
    """Whether the first value that it reads means something else than the second, of several that have no name."""
    node_refs: ClassVar[Mapping[str, str]] = {}
    """Fields that name nodes (a mask's `m`), each with its type over the axes `batch`, `query`, `key`."""
    graph: ClassVar[str] = ""
    """The nodes that the block expands into, in the recipe language; its fields are params, and its first input is `input`."""
    weights: ClassVar[Weights | Callable[..., Weights]] = {}
    """Name to weight; or a method of (sizes, wired ports) that returns the mapping."""
    buffers: ClassVar[Mapping[str, Tensor] | Callable[..., Mapping[str, Tensor]]] = {}
    """Tensors that are kept from call to call but not trained, such as running means, or a method of the sizes that returns them:
    saved with the model, ignored by the optimizer, and initialized as declared, regardless of `init`. With `UNIT_BUFFER`, a block
    without parameters has `self.one`, a number on the device and in the dtype of the model."""
    units: ClassVar[Mapping[str, Units]] = {}
    """The fields that count what computes side by side, such as heads: a model grows by more of them without another output."""
    forward: ClassVar[Callable[..., Any] | None] = None
    named_by: ClassVar[str] = ""
    """A field that lists the names of the outputs, if `outputs` is empty."""
    broadcasts: ClassVar[bool] = False
    """Whether the axes of the inputs are matched by name, and missing ones expanded before `forward`. A field `axes` that is
    annotated with `InputAxes` says what names do not; `sizes["..."]` are the axes of the result."""
    renewed_by: ClassVar[str] = ""
    """For a state, the field that names the node with its next value; a state also has a field `shape`, no inputs, and a method
    `renew(value)`."""
    folds_leading: ClassVar[bool] = False
    """Whether its inputs may have more axes behind the batch, which are folded into it: [batch, rows, time, dim] is
    [batch · rows, time, dim] to `forward`."""
    vocab_field: ClassVar[str] = ""
    """The field with the number of ids."""
    new_axis_field: ClassVar[str] = ""
    """The field with the name of an axis that the block makes."""
    length_field: ClassVar[str] = ""
    """The field with the maximum number of positions."""
    indexed: ClassVar[str] = ""
    """The size or the constant with the length of the axis that an input `index` counts."""
    title: ClassVar[str] = ""
    """The name in drawings; by default, the kind in words."""
    dissolved: ClassVar[bool] = False
    """Whether drawings show the nodes of its `graph` without a frame."""

    def __init_subclass__(cls, kind: str = "", **settings: Any) -> None:
        super().__init_subclass__(**settings)

    @classmethod
    def __pydantic_init_subclass__(cls, kind: str = "", **settings: Any) -> None:
        cls.kind = kind

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        """Raise `BlockError` if the fields contradict each other, the sizes or the wired ports.

        Args:
            sizes: The axis symbols of the ports and the numeric fields.
            wired: The names of the wired ports.
        """

    def warn(self, sizes: Sizes, wired: frozenset[str]) -> Sequence[BlockError]:
        """Return warnings about settings that are valid but probably not intended.

        Args:
            sizes: The axis symbols of the ports and the numeric fields.
            wired: The names of the wired ports.
        """
        return ()

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any] | None:
        """Return the type of each output if `outputs` cannot express it: as text, or as the type of an input with other axes.

        Args:
            inputs: The types of the wired inputs.
            sizes: The axis symbols of the ports and the numeric fields.
        """
        return None

    def always_renewed(self) -> bool:
        """Return whether every call renews it, also in evaluation, for a state."""
        return False

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        """Return plain values by name that `forward` and `cost` need besides `sizes`, such as the index of an axis.

        Args:
            inputs: The types of the wired inputs.
            sizes: The axis symbols of the ports and the numeric fields.
        """
        return {}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        """Return the sizes of the axes along which positions depend on each other, other than through a mask or the cache.

        Args:
            sizes: The axis symbols of the ports and the numeric fields.
        """
        return ()

    def past_axes(self, sizes: Sizes) -> Sequence[Any]:
        """Return the sizes of the axes along which a position depends on earlier ones, of which the block keeps what later calls
        need in the cache or the carry. By default, a block that has one of these has all axes of its inputs but the batch.

        Args:
            sizes: The axis symbols of the ports and the numeric fields.
        """
        if not (self.cache_slots or self.carry):
            return ()
        names = {name for text in self.inputs.values() for name in _NAME.findall(text.partition("[")[2])}
        return [
            *(axis.size for axis in sizes.get("...", ())),
            *(sizes[name] for name in sorted(names - {"batch"}) if name in sizes),
        ]

    def taps(self, sizes: Sizes) -> "tuple[Any, tuple[int, ...]] | None":
        """Return the size of the axis along which it is a convolution without steps, and which positions one of its output reads
        there, counted from itself: `(time, (-2, 0))`; None for every other part.

        Args:
            sizes: The axis symbols of the ports and the numeric fields.
        """
        return None

    def per_call(self, wired: frozenset[str]) -> Mapping[str, PerCall]:
        """Return the keyword arguments of `forward` that are computed once per call of the model, with their slots.

        Args:
            wired: The names of the wired ports.
        """
        return {}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> "Cost | None":
        """Return the FLOPs of one call as expressions of the sizes; None for two per weight of every matrix and position.

        Args:
            sizes: The axis symbols of the ports and the numeric fields.
            wired: The names of the wired ports.
        """
        return None

    def build(self, sizes: Sizes) -> "Call | None":
        """Return the constructor call of a torch module that equals this part, such as `nn.Linear`; None to use `forward`.

        Args:
            sizes: The axis symbols of the ports and the numeric fields.
        """
        return None

    def inline(self, sizes: Sizes) -> str | None:
        """Return the forward as one Python expression, in which `{x}` is a port, a field or one of the `constants`, `{xs: + }`
        all values of a variadic port joined by ` + `, `{xs[0]}` the first of them, and `{self}` the module with the block's
        buffers; None to use `forward`.

        Args:
            sizes: The axis symbols of the ports, the numeric fields and the constants.
        """
        return None

    def over_steps(self, places: Sequence[int | None], place: int) -> "Part | None":
        """Return the part that computes for all steps of a scan what this one computes for one; None if there is none. A part
        whose ports have `[...]` in front computes it itself.

        Args:
            places: Where each input has the axis of the steps; None where it has none.
            place: Where the output has it.
        """
        return None

    def reads(self, wired: frozenset[str]) -> Mapping[str, Sequence[str]]:
        """Return the inputs and slots that an output or a slot is computed from, for those that are not computed from all inputs.

        Args:
            wired: The names of the wired ports.
        """
        return {}

    @classmethod
    def called(cls) -> str:
        """Return the name in drawings."""
        return cls.title or spoken(cls.kind)

    def look(self, view: BlockView) -> Look:
        """Return the appearance in drawings, without the icon, which drawings add.

        Args:
            view: The block's place in a model.
        """
        return Look(self.called(), view.settings, "embed" if view.learns else "io")

    def icon(self) -> BlockIcon | None:
        """Return the small picture in its box; None for that of its `look`, if any."""
        return None

    def inside(self, view: BlockView) -> Sequence[Piece]:
        """Return the pieces for drawings of its inside, in the order of computation; none if it cannot be opened.

        Args:
            view: The block's place in a model.
        """
        return ()

    def steps(self, view: BlockView) -> Sequence[Steps]:
        """Return the loops for drawings of its inside, layer by layer, those of one layer side by side; none for other blocks.

        Args:
            view: The block's place in a model.
        """
        return ()

    def mixture(self) -> Mixture | None:
        """Return its experts and router, for a block that is drawn as a mixture of experts."""
        return None

    def read_by_rows(self, sizes: Sizes) -> Sequence[tuple[str, int]]:
        """Return what it reads row by row, by ports and places at these: matrices of which it picks rows, or multiplies a vector
        by each, which drawings show as tables.
        """
        return ()

    def drop_rate(self) -> float | None:
        """Return the dropout rate of a block that is only a dropout, which drawings note above its input."""
        return None


@dataclass(frozen=True, slots=True)
class Call:
    """A constructor call of plain values: `Call("nn.Linear", ("dim", "out"), {"bias": False})`."""

    function: str
    """`nn.Linear`, or `package.module:Name` for a module of your own."""
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = None  # type: ignore[assignment]  # replaced below

    def __post_init__(self) -> None:
        object.__setattr__(self, "keywords", dict(self.keywords or {}))


class Block(Part):
    """A block that belongs to none of the narrower families."""


class Expert(Block):
    """A block that a mixture of experts can replicate; each copy computes some of the rows."""

    grouped: ClassVar[type[Part]]
    """Its grouped form, many copies in one module: the same fields, every parameter with the copies along a first axis, and a
    `forward` that takes the rows sorted by copy and the number of rows of each copy, followed by that of rows of no copy where
    there may be such; what it returns for these is zero."""


class Norm(Part):
    """Normalizes its input to a common scale; the type does not change."""

    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., dim]"}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["dim"],)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="norm")


class Activation(Part):
    """A nonlinear function applied to each element."""

    is_primitive = True
    gated_title: ClassVar[str] = ""
    """The title of a feed-forward layer that it gates: `SwiGLU`."""
    approximate: ClassVar[bool] = False
    """Whether it approximates the activation of `gated_title`, so that drawings add its own title."""

    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: ffn, hidden: 24, activation: <kind>, in: x}}
"""
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    @declaration
    def curve(self, x: float) -> float | None:
        """Return the activation of a number in plain Python, since drawings do not import torch; None to have no icon. Learned
        parameters have their initial values.

        Args:
            x: The number.
        """
        return None

    def icon(self) -> BlockIcon | None:
        return plotted(self.curve)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="ffn")


class Builtin(Part):
    """The default of a slot that the block implements itself, such as the output projection of attention."""


def look_with_icon(part: Part, view: BlockView) -> Look:
    """Return the look of a part with its icon, as drawings show it."""
    look, icon = part.look(view), part.icon()
    return look if icon is None else replace(look, icon=icon)


def is_node(part: type[Part]) -> bool:
    """Return whether a part has outputs, and so can be a node of a graph.

    Args:
        part: The class of the part.

    Examples:
        >>> from blocks.core import is_node, standard
        >>> is_node(standard()["linear"]), is_node(standard()["causal"])
        (True, False)
    """
    return bool(part.outputs) or part.output_types is not Part.output_types


def declares(part: type[Part], method: str) -> bool:
    """Return whether a method is a declaration: one of `Part` other than `forward`, or one marked with `@declaration`.

    Args:
        part: The class of the part.
        method: The name of the method.

    Examples:
        >>> from blocks.core import declares, standard
        >>> declares(standard()["relu"], "curve"), declares(standard()["relu"], "forward")
        (True, False)
    """
    if method in vars(Part):
        return method != "forward"
    return any(getattr(vars(owner).get(method), "__declares__", False) for owner in part.__mro__)


def ports(part: type[Part]) -> dict[str, str]:
    """Return the input ports of a part with their marks: `"?"` for an optional one, `"*"` for one that takes several values.

    Args:
        part: The class of the part.

    Examples:
        >>> from blocks.core import ports
        >>> from blocks.primitives.combine import Add
        >>> ports(Add)
        {'xs': '*'}
    """
    return dict(_marks(part))


@per_class
def _marks(part: type[Part]) -> dict[str, str]:
    return {name.rstrip("?*"): name[len(name.rstrip("?*")) :] for name in part.inputs}
