"""What a block is: its declaration, and nothing of recipes, graphs or files."""

from blocks.core.cache import append_to_cache, cached, load_carry, store_carry
from blocks.core.cost import Cost
from blocks.core.fields import AxisRef, Field, NodeRef, NonNegativeInt, PositiveFloat, PositiveInt, Probability, derived, fields
from blocks.core.lazy import F, nn, torch
from blocks.core.library import Library, NameClash, standard
from blocks.core.part import (
    Activation,
    Block,
    BlockError,
    Builtin,
    Call,
    Expert,
    Norm,
    Paper,
    Part,
    PerCall,
    Sizes,
    is_node,
    ports,
)
from blocks.core.weights import ONES, ZEROS, Init, LinearWeights, ParameterRole, Slot, Tensor, Weights

__all__ = [
    "ONES",
    "ZEROS",
    "Activation",
    "AxisRef",
    "Block",
    "BlockError",
    "Builtin",
    "Call",
    "Cost",
    "Expert",
    "F",
    "Field",
    "Init",
    "Library",
    "LinearWeights",
    "NameClash",
    "NodeRef",
    "NonNegativeInt",
    "Norm",
    "Paper",
    "ParameterRole",
    "Part",
    "PerCall",
    "PositiveFloat",
    "PositiveInt",
    "Probability",
    "Sizes",
    "Slot",
    "Tensor",
    "Weights",
    "append_to_cache",
    "cached",
    "derived",
    "fields",
    "is_node",
    "load_carry",
    "nn",
    "ports",
    "standard",
    "store_carry",
    "torch",
]
