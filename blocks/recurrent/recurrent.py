"""The base of recurrent layers: stacked layers, two directions, and a carry from call to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le

from blocks.core import (
    Block,
    BlockError,
    BlockView,
    Init,
    Look,
    LoopIcon,
    Piece,
    PositiveInt,
    Probability,
    Sizes,
    Steps,
    Tensor,
    Weights,
    cached,
    declaration,
    grouped,
    size,
    torch,
)
from blocks.recurrent.gates import linear, wired


class Recurrent(Block):
    """The base of recurrent layers, without the cell.

    Parameters are named as in torch's layers: `weight_ih_l0` maps the input of the first layer, `weight_hh_l0` its state, and
    `_reverse` marks the backward direction.

    Each class has two methods that call torch's kernel: `forward`, with all layers at once, and `one_direction`, with one
    direction of one layer, for padded batches.
    """

    hidden: PositiveInt
    """Width of the hidden state, and of the output of each direction; `hidden_size` in torch."""
    layers: Annotated[int, Ge(1), Le(1_000)] = 1
    """Number of stacked layers; `num_layers` in torch."""
    bidirectional: bool = False
    """Whether each layer also runs backward; the outputs of both directions are concatenated."""
    biases: Literal["two", "one"] = "two"
    """`two`: a bias for the input map and one for the state map, as in torch; `one`: only the first."""
    dropout: Probability = 0.0
    """Dropout probability of the output of each layer but the last, in training."""

    gates: ClassVar[int] = 1
    """Number of stacked maps of the hidden width in a cell."""

    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: <kind>, hidden: 12, in: x}}
"""
    causal_forms = ("`bidirectional: false`",)

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        start = Init("uniform", "1 / sqrt(hidden)")
        rows = f"{self.gates} * hidden"
        weights: dict[str, Tensor] = {}
        for layer in range(self.layers):
            width = "dim" if layer == 0 else f"{self.directions()} * hidden"
            for end in ("", "_reverse")[: self.directions()]:
                weights[f"weight_ih_l{layer}{end}"] = Tensor((rows, width), "matrix", start)
                weights[f"weight_hh_l{layer}{end}"] = Tensor((rows, "hidden"), "matrix", start)
                weights[f"bias_ih_l{layer}{end}"] = Tensor((rows,), "bias", start)
                if self.biases == "two":
                    weights[f"bias_hh_l{layer}{end}"] = Tensor((rows,), "bias", start)
        return weights

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, str]:
        return {**self.outputs, "y": f"float[batch, time, {self.directions()} * hidden]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"states": self.layers * self.directions()}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        states, wanted = sizes.get("states"), self.layers * self.directions()
        if states is not None and states != wanted:
            each = "each layer and direction" if self.bidirectional else "each layer"
            raise BlockError(f"takes {wanted} states, one for {each}, not {states}", code="type-mismatch")

    def warn(self, sizes: Sizes, wired: frozenset[str]) -> Sequence[BlockError]:
        if self.dropout and self.layers == 1:
            hint = "for dropout on the output, add a `dropout` node after it"
            return [
                BlockError(
                    "dropout is applied between layers, and there is only one", field="dropout", hint=hint, code="no-effect"
                )
            ]
        return ()

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return [sizes["time"]] if self.bidirectional else []  # the backward direction depends on later positions

    def look(self, view: BlockView) -> Look:
        facts = [f"{size(view.sizes['dim'])} → {grouped(self.hidden)}"]
        facts += [f"{self.layers} layers"] if self.layers > 1 else []
        facts += ["both directions"] if self.bidirectional else []
        facts += [f"dropout {self.dropout:g} between"] if self.dropout else []
        name, layers = f"{'bidirectional ' * self.bidirectional}{self.called()}", f", {self.layers} layers" * (self.layers > 1)
        brief = (f"{name} {facts[0]}{layers}", f"{name} {grouped(self.hidden)}{layers}", name)
        return Look(self.called(), tuple(facts), "rec", short=self.called(), brief=brief)

    def steps(self, view: BlockView) -> Sequence[Steps]:
        found = []
        h = ("@y", *wired("h", view))
        for layer in range(self.layers):
            dim = size(view.sizes["dim"]) if layer == 0 else grouped(self.directions() * self.hidden)
            for end in ("", "_reverse")[: self.directions()]:
                owned = [name for name in self.weights(view.sizes, frozenset()) if name.endswith(f"_l{layer}{end}")]
                pieces = self.pieces(linear(dim, self.hidden, self.gates, h, tuple(owned)), view)
                if "valid" in view.edges:  # without it, no step is of padding
                    pieces = (*pieces[:-1], replace(pieces[-1], reads=(*pieces[-1].reads, ("$valid", "valid"))))
                title = self.called() + (", backward" if end else ", forward" if self.bidirectional else "")
                between = f"dropout {self.dropout:g}" if self.dropout and layer < self.layers - 1 else ""
                name = "backward" if end else "forward"
                found.append(Steps(name, title, pieces, "time", layer, self.bidirectional, between))
        return found

    @declaration
    def pieces(self, maps: Piece, view: BlockView) -> tuple[Piece, ...]:
        """Return the pieces of a step, of which `y` gives the state.

        Args:
            maps: The linear maps of the input and the state.
            view: The block's place in a model.
        """
        raise NotImplementedError

    def icon(self) -> LoopIcon:
        return LoopIcon()

    def directions(self: Any) -> int:
        return 2 if self.bidirectional else 1

    def before(self: Any, name: str, given: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor:
        """Return the states before the first position, [layers · directions, B, hidden]: those of the previous call, else the
        wired ones, else zeros.
        """
        left = cached(self, name)
        states = given if left is None else left
        if states is None:
            return x.new_zeros(self.layers * self.directions(), x.shape[0], self.hidden)
        return states.to(x.dtype).transpose(0, 1).contiguous()

    def padded(self: Any, x: torch.Tensor, valid: torch.Tensor, *before: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the output and the states after the valid positions, in the form of torch's kernels.

        The valid positions of each row are moved to the front, for the backward direction in reverse order, so that a kernel
        meets padding only after them. No shape depends on the mask, so the compiler needs no break and a GPU need not wait.
        """
        order = (~valid).int().argsort(dim=1, stable=True)  # [B, T]
        lengths = valid.sum(1, keepdim=True)  # [B, 1]
        steps = torch.arange(x.shape[1], device=x.device)
        backward = torch.where(steps < lengths, lengths - 1 - steps, steps)  # [B, T]; its own inverse
        padding = (steps >= lengths)[..., None]  # [B, T, 1]
        weights = self.parameters_in_order()
        after: list[Sequence[torch.Tensor]] = []  # for each layer and direction, its last states [1, B, H]
        x = at_positions(x, order).masked_fill(padding, 0)
        for layer in range(self.layers):
            outputs = []
            for direction in range(self.directions()):
                n = layer * self.directions() + direction
                start = [state[n : n + 1] for state in before]
                given = at_positions(x, backward) if direction else x
                y, *states = self.one_direction(given, *start, weights[4 * n : 4 * n + 4], padding)
                last = at_positions(y, (lengths - 1).clamp(min=0)).transpose(0, 1)  # [1, B, H]
                after.append([torch.where(lengths > 0, last, start[0]), *states[1:]])
                outputs.append(at_positions(y, backward) if direction else y)
            x = torch.cat(outputs, dim=-1).masked_fill(padding, 0)
            if layer < self.layers - 1:
                x = torch.dropout(x, self.dropout, self.training)
        return at_positions(x, order.argsort(dim=1)), *(torch.cat(states) for states in zip(*after, strict=True))

    def all_layers(self: Any, kernel: Any, x: torch.Tensor, before: Any) -> Any:
        """Call a kernel of torch with all layers and directions."""
        dropout = self.dropout if self.training else 0.0
        return self.call(kernel, x, before, self.parameters_in_order(), self.layers, dropout, self.bidirectional)

    def call(
        self: Any,
        kernel: Any,
        x: torch.Tensor,
        before: Any,
        weights: list[torch.Tensor],
        layers: int = 1,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> Any:
        """Call a kernel of torch, which keeps what a gradient needs in evaluation too: cuDNN has no other gradient."""
        training = self.training or torch.is_grad_enabled()
        return kernel(x, before, joined(weights), True, layers, dropout, training, bidirectional, True)

    def parameters_in_order(self: Any) -> list[torch.Tensor]:
        """Return the weights for torch's kernels: for each layer and direction, two maps and two biases, the second of which is
        zero with `biases: one`.
        """
        found = []
        for layer in range(self.layers):
            for end in ("", "_reverse")[: self.directions()]:
                bias = getattr(self, f"bias_ih_l{layer}{end}")
                found += [getattr(self, f"weight_ih_l{layer}{end}"), getattr(self, f"weight_hh_l{layer}{end}"), bias]
                found.append(getattr(self, f"bias_hh_l{layer}{end}") if self.biases == "two" else torch.zeros_like(bias))
        return found


def joined(weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the weights of a kernel in one piece of memory, in the order of cuDNN: all maps, then all biases. In pieces, cuDNN
    copies them itself and warns of it; torch's own layers move their parameters, which nothing that holds these survives.
    """
    if not weights[0].is_cuda or torch.compiler.is_compiling() or torch.is_autocast_enabled("cuda"):
        return weights  # kernels of the compiler take pieces, and autocast makes one
    is_bias = [number % 4 > 1 for number in range(len(weights))]
    order = sorted(range(len(weights)), key=is_bias.__getitem__)
    pieces = torch.split(torch.cat([weights[n].flatten() for n in order]), [weights[n].numel() for n in order])
    return [pieces[order.index(n)].view_as(weight) for n, weight in enumerate(weights)]


def at_positions(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return the chosen positions of each row of x, [B, T, C]; `positions` is [B, chosen]."""
    return torch.take_along_dim(x, positions[..., None], dim=1)
