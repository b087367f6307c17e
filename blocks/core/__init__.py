"""What a block is: its declaration, and nothing of recipes, graphs or files."""

from blocks.core.cost import Cost
from blocks.core.fields import Axis, Count, Edge, Field, Positive, Probability, Size, derived, fields
from blocks.core.keep import keep, leave, recall, resume
from blocks.core.lazy import F, nn, torch
from blocks.core.library import Library, NameClash, standard
from blocks.core.part import Activation, Block, Call, Expert, Norm, Own, Paper, Part, Prepared, Reject, Sizes, is_node, ports
from blocks.core.weights import ONES, ZEROS, Init, Linear, Role, Slot, Tensor, Weights

__all__ = [
    "ONES",
    "ZEROS",
    "Activation",
    "Axis",
    "Block",
    "Call",
    "Cost",
    "Count",
    "Edge",
    "Expert",
    "F",
    "Field",
    "Init",
    "Library",
    "Linear",
    "NameClash",
    "Norm",
    "Own",
    "Paper",
    "Part",
    "Positive",
    "Prepared",
    "Probability",
    "Reject",
    "Role",
    "Size",
    "Sizes",
    "Slot",
    "Tensor",
    "Weights",
    "derived",
    "fields",
    "is_node",
    "keep",
    "leave",
    "nn",
    "ports",
    "recall",
    "resume",
    "standard",
    "torch",
]
