"""What losses of connectionist temporal classification (CTC) align: the scores of frames with the tokens of an input."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from blocks.losses.ctc import CTC
from composer.graph.dims import Dim, names, substitute
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.types import TensorType


@dataclass(frozen=True, slots=True)
class Alignment:
    """What one loss aligns."""

    scores: Ref
    """The logits of each frame."""
    target: str
    """The input that has the tokens."""
    blank: int
    """The class of the blank."""
    frames: Dim
    """The number of frames, in terms of the axes of the inputs."""
    classes: Dim
    """The number of classes."""

    def frames_of(self, axis: Dim, length: int) -> int:
        """Return how many frames an input of a length has; none if it is too short for one.

        Args:
            axis: The size of the input's axis.
            length: The length of this axis.
        """
        return max(0, substitute(self.frames, dict.fromkeys(map(str, names(axis)), length)))


def alignments(program: TypedProgram) -> tuple[Alignment, ...]:
    """Return what the losses of a model align with one of its inputs."""
    found: list[Alignment] = []
    for node in program.root.nodes:
        if not (isinstance(node, TypedBlock) and isinstance(node.part, CTC)):
            continue
        refs = {wire.port: wire.refs for wire in node.node.wires}
        scores = node.inputs["input"]
        for ref, type_ in zip(refs["input"], scores if isinstance(scores, tuple) else (scores,), strict=True):
            target = refs["target"][0].node
            if target in program.inputs and isinstance(type_, TensorType):
                found.append(Alignment(ref, target, node.part.blank, *type_.sizes[1:]))
    return tuple(found)


def frames_needed(tokens: list[int]) -> int:
    """Return the least number of frames that tokens can be aligned with: one each, and a blank between equal neighbors."""
    return len(tokens) + sum(one == after for one, after in pairwise(tokens))
